"""Composes a mail: plain text and HTML, files, and a Message-ID derived from its key.

The same key always gives the same Message-ID, so that a sent mail can be found again. Text of a subject or name cannot
inject header fields.
"""

from __future__ import annotations

import email.policy
import hashlib
import mimetypes
import re
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import format_datetime, getaddresses

from markdown_it import MarkdownIt

from assistant.core.dataclass import dataclass
from assistant.core.errors import MailError

_ADDRESS = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9.-]{1,255}")
_MESSAGE_ID = re.compile(r"<[!-;=?-~]{1,250}>")
_MOST_REFERENCES = 20
_MARKDOWN = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])


@dataclass(frozen=True, slots=True)
class AttachedFile:
    name: str
    data: bytes
    mime: str = ""


@dataclass(frozen=True, slots=True)
class OutgoingMail:
    """`text` is Markdown. `in_reply_to` and `references` are Message-IDs with their brackets."""

    to: tuple[str, ...]
    subject: str
    text: str
    cc: tuple[str, ...] = ()
    files: tuple[AttachedFile, ...] = ()
    in_reply_to: str = ""
    references: tuple[str, ...] = ()
    automatic: bool = False  # sent without a person seeing it first (RFC 3834)


def message_id(key: str, domain: str) -> str:
    """Return the Message-ID of what has this key: the same at each try. `domain` is the sender's."""
    return f"<{hashlib.sha256(key.encode()).hexdigest()[:40]}@{domain}>"


def is_address(text: str) -> bool:
    """Return whether it is a bare address, without a name."""
    return _ADDRESS.fullmatch(text) is not None


def find_address(text: str) -> str:
    """Return the address of "Bob <bob@example.org>" or "bob@example.org". Raises `MailError` for anything else."""
    found = [address for _, address in getaddresses([text])]
    if len(found) != 1 or not is_address(found[0]):
        raise MailError(f"{text[:100]!r} is not a mail address.", refused=True)
    return found[0]


def message_ids(text: str) -> tuple[str, ...]:
    """Return the Message-IDs in a received header field."""
    return tuple(_MESSAGE_ID.findall(text))


def compose(mail: OutgoingMail, sender: str, sender_name: str, identity: str, now: datetime) -> bytes:
    """Return the mail as bytes (RFC 5322): the text as it is and as HTML, then the files. `identity` is its
    Message-ID."""
    message = EmailMessage(policy=email.policy.SMTP.clone(max_line_length=990, refold_source="long"))
    message["From"] = Address(_line(sender_name), addr_spec=sender)
    message["To"] = [Address(addr_spec=address) for address in mail.to]
    if mail.cc:
        message["Cc"] = [Address(addr_spec=address) for address in mail.cc]
    message["Subject"] = _line(mail.subject)
    message["Date"] = format_datetime(now)
    message["Message-ID"] = identity
    if mail.in_reply_to:
        message["In-Reply-To"] = mail.in_reply_to
        before = [it for it in mail.references if it != mail.in_reply_to][-_MOST_REFERENCES:]
        message["References"] = " ".join([*before, mail.in_reply_to])
    if mail.automatic:
        message["Auto-Submitted"] = "auto-replied"
        message["X-Auto-Response-Suppress"] = "All"
    message.set_content(mail.text or "\n", cte="quoted-printable")
    if mail.text.strip():
        message.add_alternative(_MARKDOWN.render(mail.text), subtype="html", cte="quoted-printable")
    for file in mail.files:
        kind = file.mime or mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        main, _, sub = kind.partition("/")
        if not (main.isalnum() and sub) or main in ("multipart", "message"):
            main, sub = "application", "octet-stream"
        message.add_attachment(file.data, maintype=main, subtype=sub, filename=_line(file.name))
    return message.as_bytes()


def reply_subject(subject: str) -> str:
    """Return the subject with one "Re:"."""
    text = _line(subject)
    return text if text.casefold().startswith("re:") else f"Re: {text}".strip()


def _line(text: str) -> str:
    """Return one line without characters that header fields forbid."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())[:300]
