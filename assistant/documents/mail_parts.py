"""Parses a mail in the child process that reads documents (`extract.py`): its header fields in order, the readable
text, and its files.

Whatever the mail contains, the result is JSON of limited size on one line. Nothing is verified: a `From` is what the
sender wrote.
"""

from __future__ import annotations

import base64
import codecs
import contextlib
import email
import email.header
import email.message
import email.policy
import json
from typing import Any

MAX_FILES = 50
_DECODED = frozenset({"from", "to", "cc", "reply-to", "subject"})
_MAX_FIELDS = 400
_MAX_FIELD = 4_000
_MAX_PARTS = 500
_MAX_TEXT = 2 * 1024 * 1024
# Marks of mail programs where the quoted, answered mail begins.
_QUOTED_MARKUP = "//blockquote | //*[contains(@class, 'gmail_quote')] | //*[@id='divRplyFwdMsg']/following-sibling::*"
_BLOCKS = ("br", "p", "div", "tr", "li", "h1", "h2", "h3", "h4", "blockquote")


def take_apart(data: bytes) -> str:
    """Return JSON: `fields` (a list of name and value; subjects and names decoded), `senders` (each `From` unchanged),
    `text`, `own_text` (without markup marked as quoted), `files` (name, mime, data in base64; data null for those after
    the first `MAX_FILES`)."""
    message = email.message_from_bytes(data, policy=email.policy.compat32)
    fields = [
        [
            str(name)[:200],
            decode_field(value) if name.casefold() in _DECODED else " ".join(str(value)[:_MAX_FIELD].split()),
        ]
        for name, value in message.items()[:_MAX_FIELDS]
    ]
    senders = [" ".join(str(value)[:_MAX_FIELD].split()) for value in message.get_all("from", [])[:2]]
    plain: list[str] = []
    markup: list[str] = []
    files: list[dict[str, Any]] = []
    for part in _leaves(message):
        kind = part.get_content_type()
        is_file = part.get_content_disposition() == "attachment" or bool(part.get_filename())
        if kind == "text/plain" and not is_file:
            plain.append(_text_of(part))
        elif kind == "text/html" and not is_file:
            markup.append(_text_of(part))
        else:
            files.append(_file_of(part, kind, with_data=len(files) < MAX_FILES))
    if any(text.strip() for text in plain):
        text = own = "\n".join(plain)[:_MAX_TEXT]
    else:
        text, own = (_render("\n".join(markup)[:_MAX_TEXT], whole=whole) for whole in (True, False))
    return json.dumps({"fields": fields, "senders": senders, "text": text, "own_text": own, "files": files})


def _leaves(message: email.message.Message) -> list[email.message.Message]:
    """Return the parts with content in order, with forwarded mails unparsed."""
    waiting: list[email.message.Message] = [message]
    found: list[email.message.Message] = []
    while waiting and len(found) < _MAX_PARTS:
        part = waiting.pop()
        payload = part.get_payload()
        if part.is_multipart() and part.get_content_maintype() == "multipart" and isinstance(payload, list):
            waiting += reversed([one for one in payload if isinstance(one, email.message.Message)])
        else:
            for name in ("content-type", "content-disposition"):
                if isinstance(value := part.get(name), email.header.Header):
                    part.replace_header(name, _text_of_field(value))  # a file name that is not encoded
            found.append(part)
    return found


def _text_of_field(value: object) -> str:
    """Return a field's text. One with bytes beyond ASCII, which programs write as UTF-8, is a `Header` here."""
    if not isinstance(value, email.header.Header):
        return str(value)
    parts = email.header.decode_header(value)
    return "".join(part.decode("utf-8", "replace") if isinstance(part, bytes) else part for part, _ in parts)


def decode_field(value: object) -> str:
    """Return the text of a field, its encoded words decoded, on one line."""
    text = _text_of_field(value)[:_MAX_FIELD]
    with contextlib.suppress(ValueError, LookupError, email.errors.MessageError):
        text = str(email.header.make_header(email.header.decode_header(text)))
    return " ".join(text.split())[:_MAX_FIELD]


def _text_of(part: email.message.Message) -> str:
    payload = part.get_payload(decode=True)
    data = payload if isinstance(payload, bytes) else b""
    text = _decode_body(data[:_MAX_TEXT], part.get_content_charset() or "").replace("\r\n", "\n")
    flowed = str(part.get_param("format", "")).lower() == "flowed"
    return _unflow(text, delsp=str(part.get_param("delsp", "")).lower() == "yes") if flowed else text


def _decode_body(data: bytes, charset: str) -> str:
    """Decode; where no encoding is named, or none that is known, as UTF-8, or if it is not that, as Windows-1252."""
    if charset:
        with contextlib.suppress(LookupError):
            return data.decode(charset, "replace")
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(data)  # it may be cut within a letter
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def _unflow(text: str, *, delsp: bool) -> str:
    """Join lines that end in a space with the next (RFC 3676), except for quoted ones."""
    lines: list[str] = []
    goes_on = False
    for line in text.split("\n"):
        stuffed = line[1:] if line.startswith(" ") else line
        if goes_on and not line.startswith(">"):
            lines[-1] = (lines[-1][:-1] if delsp else lines[-1]) + stuffed
        else:
            lines.append(stuffed)
        goes_on = stuffed.endswith(" ") and stuffed != "-- " and not line.startswith(">")
    return "\n".join(lines)


def _file_of(part: email.message.Message, kind: str, *, with_data: bool) -> dict[str, Any]:
    payload = part.get_payload(decode=True)
    if isinstance(payload, bytes):
        data = payload
    else:
        inner = part.get_payload()
        first = inner[0] if isinstance(inner, list) and inner else None
        data = first.as_bytes() if isinstance(first, email.message.Message) else b""
    name = decode_field(part.get_filename() or "")
    if not name:
        name = "mail.eml" if kind == "message/rfc822" else ""
    return {
        "name": name[:200],
        "mime": kind[:100],
        "size": len(data),
        "data": base64.b64encode(data).decode() if with_data else None,
    }


def _render(markup: str, *, whole: bool) -> str:
    """Render HTML as text; `whole`: including quotations."""
    if not markup.strip():
        return ""
    from lxml import html

    try:
        root = html.document_fromstring(markup.encode())
    except (ValueError, html.etree.LxmlError):
        return ""
    for element in root.xpath("//script | //style | //noscript | //template | //head"):
        element.drop_tree()
    for element in [] if whole else root.xpath(_QUOTED_MARKUP):
        if element.getparent() is not None:
            element.drop_tree()
    for element in root.iter("td", "th"):
        element.tail = " " + (element.tail or "")
    for element in root.iter(*_BLOCKS):
        element.tail = "\n" + (element.tail or "")
    lines = [" ".join(line.split()) for line in root.text_content().splitlines()]
    return "\n".join(line for number, line in enumerate(lines) if line or (number and lines[number - 1]))
