"""A received mail, parsed in a child process (`assistant/documents/mail_parts.py`)."""

from __future__ import annotations

import base64
import json

from assistant.core.dataclass import dataclass
from assistant.core.errors import MailError
from assistant.core.plain_files import FileRefused
from assistant.documents.reader import DocumentReader

_MAX_PARTS_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ReceivedFile:
    """A file of a mail, with the sender's file name. `data` is base64; None if there were too many."""

    name: str
    mime: str
    size: int
    data: str | None

    def content(self) -> bytes:
        """Decoded; empty if the data was not read."""
        return base64.b64decode(self.data or "")


@dataclass(frozen=True, slots=True)
class ParsedMail:
    """`fields` are the header fields in order, with names in lower case; `senders` has each `From` unchanged.
    `own_text` is the text without markup marked as quoted."""

    fields: tuple[tuple[str, str], ...]
    senders: tuple[str, ...]
    text: str
    own_text: str
    files: tuple[ReceivedFile, ...]

    def all(self, name: str) -> list[str]:
        return [value for field, value in self.fields if field == name]

    def get(self, name: str) -> str:
        return next(iter(self.all(name)), "")


async def parse_mail(documents: DocumentReader, raw: bytes) -> ParsedMail:
    """Raises `MailError` if it cannot be read."""
    try:
        line = (await documents.extract("mail-parts", raw, max_bytes=_MAX_PARTS_BYTES)).split(b"\n", 1)[0]
        return _parsed(line)
    except FileRefused as error:
        raise MailError(f"The mail {error}.", refused=True) from None
    except ValueError:
        raise MailError("The mail is too large to be read.", refused=True) from None


def parse_plain_mail(raw: bytes) -> ParsedMail:
    """Parse in this process: only for a limited number of bytes that are a header, or a plain-text mail."""
    from assistant.documents.mail_parts import take_apart  # loaded at first use

    return _parsed(take_apart(raw))


def _parsed(text: str | bytes) -> ParsedMail:
    found = json.loads(text)
    return ParsedMail(
        tuple((name.casefold(), value) for name, value in found["fields"]),
        tuple(found["senders"]),
        found["text"],
        found["own_text"],
        tuple(ReceivedFile(it["name"], it["mime"], it["size"], it["data"]) for it in found["files"]),
    )
