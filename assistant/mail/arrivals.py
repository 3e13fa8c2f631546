"""Classifies an incoming mail: who sent it, whether it is automatic, and which of its text is the sender's own. Pure.

- `From` alone proves nothing. It only counts if the own mail server says, in the header field that it added on top,
  that it verified the domain of the address (RFC 8601).
- Automatic mails are never answered (RFC 3834): replies, bounces, lists, and our own mails.
- Quoted and forwarded text is marked as a quotation, line by line, or left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from assistant.core.quoting import quote_block
from assistant.mail.compose import is_address
from assistant.mail.parsed import ParsedMail

VerifiedWith = Literal["dmarc", "dkim"]

_RESULTS = "authentication-results"
_LIST_FIELDS = ("list-id", "list-unsubscribe", "list-post", "list-help", "feedback-id")
_AUTOMATIC_FIELDS = ("x-autoreply", "x-autorespond", "x-auto-response-suppress", "x-loop", "x-failed-recipients")
_AUTOMATIC_PRECEDENCE = frozenset({"bulk", "junk", "list", "auto_reply"})
_PROGRAMS = frozenset(
    {"mailer-daemon", "postmaster", "noreply", "no-reply", "donotreply", "do-not-reply", "bounce", "bounces"}
)
_PASSED_ON = re.compile(r"(?:fwd?|wg|tr|rv|i|doorst)\s?:", re.IGNORECASE)
_ANSWER = re.compile(r"(?:re|aw|sv|antw|odp)\s?:", re.IGNORECASE)
_DIVIDER = re.compile(
    r"-{2,} ?(?:original message|forwarded message|ursprüngliche nachricht|weitergeleitete nachricht|message d'origine|"
    r"message transféré|mensaje original|mensaje reenviado)|begin forwarded message:|_{20,}$",
    re.IGNORECASE,
)
_HEAD_LINE = re.compile(
    r"\*?(?:from|von|de|sent|gesendet|date|datum|to|an|à|subject|betreff|objet)\*?\s?:", re.IGNORECASE
)
_HEAD_LINES = 3


# ------------------------------------------------------------------------------------------------------- whose it is


def verified_sender(mail: ParsedMail, verified_by: str, verified_with: VerifiedWith) -> tuple[str, str] | None:
    """Return the address, in lower case, and the name; None if the own server did not verify the sender."""
    if not verified_by or len(mail.senders) != 1:
        return None
    sender = read_sender(mail.senders[0])
    if sender is None:
        return None
    domain = sender[0].rpartition("@")[2]
    for results in _own_results(mail, verified_by):
        for method, properties in _passed(results):
            if method != verified_with:
                continue
            if method == "dmarc" and properties.get("header.from", "") == domain:
                return sender
            signed = properties.get("header.d") or properties.get("header.i", "").rpartition("@")[2]
            if method == "dkim" and "." in signed and (domain == signed or domain.endswith(f".{signed}")):
                return sender
    return None


def first_verifier(mail: ParsedMail) -> str:
    """Return the server whose verification is on top; "" if there is none."""
    return next(iter(_without_comments(mail.get(_RESULTS)).partition(";")[0].split()), "")


def read_sender(field: str) -> tuple[str, str] | None:
    """Return the address and the name of a `From` field; None if programs could interpret it differently."""
    name, address = "", field.strip()
    if address.endswith(">"):
        name, _, address = address[:-1].rpartition("<")
        name = name.strip()
        is_quoted = len(name) > 1 and name[0] == name[-1] == '"'
        if any(sign in name for sign in "<>") or (not is_quoted and any(sign in name for sign in '@,;:"\\')):
            return None
        name = name.strip('"')
    return (address.lower(), name) if is_address(address) else None


def _own_results(mail: ParsedMail, verified_by: str) -> Iterator[str]:
    """Return the topmost fields of the own server, which may be several in a row. Fields below came with the mail,
    whatever name they have."""
    begun = False
    for name, value in mail.fields:
        server, _, results = _without_comments(value).partition(";")
        is_own = name == _RESULTS and bool(server.split()) and server.split()[0].casefold() == verified_by.casefold()
        if begun and not is_own:
            return
        if is_own:
            begun = True
            yield results


def _passed(results: str) -> Iterator[tuple[str, dict[str, str]]]:
    for result in results.split(";"):
        words = result.casefold().split()
        if words and words[0].endswith("=pass"):
            pairs = (word.partition("=") for word in words[1:])
            yield words[0].removesuffix("=pass"), {name: value.strip('"') for name, _, value in pairs}


def _without_comments(text: str) -> str:
    """Remove text in parentheses or quotation marks: it may be the sender's."""
    kept: list[str] = []
    depth, quoted, escaped = 0, False, False
    for letter in text:
        if escaped:
            escaped = False
        elif letter == "\\":
            escaped = True
        elif letter == '"' and not depth:
            quoted = not quoted
        elif letter == "(" and not quoted:
            depth += 1
        elif letter == ")" and depth:
            depth -= 1
        elif not depth and not quoted:
            kept.append(letter)
    return "".join(kept)


# ----------------------------------------------------------------------------------------------- whether it is a person


def is_automatic(mail: ParsedMail, own_address: str) -> bool:
    """Return whether a program sent it, so that an answer could loop forever or reach nobody."""
    if mail.get("auto-submitted").partition(";")[0].strip().casefold() not in ("", "no"):
        return True
    if mail.get("precedence").strip().casefold() in _AUTOMATIC_PRECEDENCE or mail.get("return-path").strip() == "<>":
        return True
    if any(mail.all(name) for name in (*_LIST_FIELDS, *_AUTOMATIC_FIELDS)):
        return True
    if mail.get("content-type").casefold().startswith("multipart/report"):
        return True
    sender = read_sender(mail.senders[0]) if mail.senders else None
    return sender is None or sender[0] == own_address.lower() or sender[0].partition("@")[0] in _PROGRAMS


# ---------------------------------------------------------------------------------------------------------- own words


def own_words(mail: ParsedMail) -> str:
    """Return what the sender wrote, with the subject if it begins a conversation; forwarded text as a quotation."""
    subject = mail.get("subject").strip()
    is_answer = bool(mail.get("in-reply-to")) or _ANSWER.match(subject) is not None
    lines = mail.own_text.replace("\r\n", "\n").rstrip().split("\n")
    divider = _find_divider(lines)
    is_passed_on = _PASSED_ON.match(subject) is not None
    if divider is None and is_passed_on:
        divider = 0
    own, others = (lines, []) if divider is None else (lines[:divider], lines[divider:])
    text = "\n".join(_without_trailing_quotation(_without_signature(own))).strip()
    if is_passed_on:
        others = [f"Subject: {subject}", *others]
    elif not is_answer and subject and not text.startswith("/") and text != subject:
        text = f"{subject}\n\n{text}".strip()
    if is_answer and not is_passed_on:
        return text
    passed_on = quote_block("\n".join(others).strip()) if others else ""
    return "\n\n".join(part for part in (text, f"[forwarded]\n{passed_on}" if others else "") if part)


def _find_divider(lines: list[str]) -> int | None:
    """Return where a forwarded mail, or the answered mail below the text, begins."""
    for number, line in enumerate(lines):
        if _DIVIDER.match(line.strip()):
            return number
        heads = [other for other in lines[number : number + _HEAD_LINES + 2] if _HEAD_LINE.match(other.strip())]
        if len(heads) >= _HEAD_LINES and _HEAD_LINE.match(line.strip()):
            return number
    return None


def _without_signature(lines: list[str]) -> list[str]:
    marks = [number for number, line in enumerate(lines) if line.rstrip("\r") in ("-- ", "--")]
    return lines[: marks[-1]] if marks and not any(line.startswith(">") for line in lines[marks[-1] :]) else lines


def _without_trailing_quotation(lines: list[str]) -> list[str]:
    """Remove the answered mail at the end, and the line that introduces it."""
    end = len(lines)
    while end and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith(">")):
        end -= 1
    if not any(line.lstrip().startswith(">") for line in lines[end:]):
        return lines
    begin = end
    while begin and lines[begin - 1].strip() and end - begin < 3:
        begin -= 1
    is_introduction = end > begin and lines[end - 1].rstrip().endswith(":")
    return lines[:begin] if is_introduction else lines[:end]
