"""Stores the files and pictures of an incoming message before it is accepted.

Invariants: the owner's files are durably in the workspace before the message that names them is accepted; storing the
same file again is idempotent. The workspace belongs to the owner: of other people's files only the names are stored
(I10). A picture that models can view is in the message as well, and in the message alone if it is not the owner's. Data
that no model can view is not stored in the database, nor is a text longer than `MAX_TEXT_BYTES`.
"""

from __future__ import annotations

import base64
import binascii
import errno
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

from assistant.core.errors import BridgeError, StoreError
from assistant.core.messages import Media, decode_base64
from assistant.core.records import IncomingMessage
from assistant.core.sessions import session_role
from assistant.store.home.workspace import MAX_SENT_BYTES, WorkspaceFiles, safe_file_name

RECEIVED_FOLDER = "received"
MAX_RECEIVED_BYTES = 50 * 1024 * 1024
_NO_SUCH_FILE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.ENAMETOOLONG)
# Provider limit for one picture.
MAX_PICTURE_BYTES = 5 * 1024 * 1024
MAX_FILES_PER_MESSAGE = 20
# A longer text of the owner is stored as a file, since every step of a turn handles the whole text.
MAX_TEXT_BYTES = 2_000_000
LONG_TEXT_START = 4_000
LONG_TEXT_NAME = "message.txt"

# Picture types that providers accept, by magic bytes; plus WebP.
_SIGNATURES = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}


class AttachmentIntake:
    def __init__(self, files: WorkspaceFiles, zone: ZoneInfo) -> None:
        """`zone` determines the date in file names."""
        self._files = files
        self._zone = zone

    def store_attachments(self, incoming: IncomingMessage, now: datetime) -> IncomingMessage:
        """Store a message's files and return the message to accept. Slow if it has files. Raises `StoreError`."""
        is_owners = incoming.trust == "owner" and session_role(incoming.session) == "owner"
        if is_owners:
            incoming = _with_long_text_as_file(incoming)
        media = tuple(
            self._store_medium(medium, now, is_owners, number < MAX_FILES_PER_MESSAGE)
            for number, medium in enumerate(incoming.media)
        )
        return incoming if media == incoming.media else replace(incoming, media=media)

    def _store_medium(self, medium: Media, now: datetime, is_owners: bool, may_be_stored: bool) -> Media:
        if medium.data is None:
            # A file the owner refers to again is already in the workspace.
            return medium if is_owners else replace(medium, path=None)
        size = len(medium.data) * 3 // 4 - medium.data[-2:].count("=")
        mime = _picture_type(medium.data)
        if medium.kind == "image" and mime and size <= MAX_PICTURE_BYTES:
            accepted = replace(medium, mime=mime, size=size, path=None)
        else:
            accepted = replace(medium, size=size, data=None, path=None)
        if not (is_owners and may_be_stored) or size > MAX_RECEIVED_BYTES:
            return accepted
        try:
            data = decode_base64(medium.data)
        except ValueError:
            return accepted
        names = dated_file_names(accepted, now, self._zone)
        return replace(accepted, path=self._files.save(RECEIVED_FOLDER, names, data))


def is_long_text(incoming: IncomingMessage) -> bool:
    """Return whether the text of a message is stored as a file. Slow only near the limit or above."""
    text = incoming.content
    return 4 * len(text) > MAX_TEXT_BYTES and len(text.encode("utf-8", "surrogatepass")) > MAX_TEXT_BYTES


def _with_long_text_as_file(incoming: IncomingMessage) -> IncomingMessage:
    """Return the message with a text above the limit moved to a file, and only its start in the message."""
    if not is_long_text(incoming):
        return incoming
    data = incoming.content.encode("utf-8", "replace")
    file = Media("file", "text/plain", LONG_TEXT_NAME, len(data), base64.b64encode(data).decode())
    text = f"{incoming.content[:LONG_TEXT_START]}\n\n{_long_text_note(f'{len(incoming.content):,}')}"
    return replace(incoming, content=text, media=(file, *incoming.media))


def long_text_file(incoming: IncomingMessage) -> tuple[str, Media] | None:
    """The characters ("2,500,021") and the file of a text that was moved to one; None for any other message."""
    file = incoming.media[0] if incoming.media else None
    characters = incoming.content[LONG_TEXT_START:].strip().removeprefix("[This message has ").partition(" ")[0]
    if file is None or file.name != LONG_TEXT_NAME or not incoming.content.endswith(_long_text_note(characters)):
        return None
    return characters, file


def _long_text_note(characters: str) -> str:
    return f"[This message has {characters} characters. All of it is in the file {LONG_TEXT_NAME}.]"


def load_outgoing_file(files: WorkspaceFiles, medium: Media) -> Media:
    """Load the bytes of an outgoing file. Raises `BridgeError`, `refused` if the file does not exist."""
    if medium.path is None or medium.data is not None:
        return medium
    try:
        data = files.read(medium.path, MAX_SENT_BYTES)
    except StoreError as error:
        cause = error.__cause__
        may_pass = isinstance(cause, OSError) and cause.errno not in _NO_SUCH_FILE
        raise BridgeError(str(error), refused=not may_pass) from error
    return replace(medium, data=base64.b64encode(data).decode())


def dated_file_names(medium: Media, now: datetime, zone: ZoneInfo) -> tuple[str, ...]:
    """Return candidate names for a file: dated today, and yesterday in case it is resubmitted after midnight."""
    name, today = safe_file_name(medium), now.astimezone(zone).date()
    return tuple(f"{date.isoformat()}-{name}" for date in (today, today.fromordinal(today.toordinal() - 1)))


def _picture_type(data: str) -> str | None:
    """Return the MIME type of a picture by its magic bytes. A provider rejects a picture with a wrong type, and with it
    every later request."""
    try:
        first_bytes = base64.b64decode(data[:24])
    except binascii.Error:
        return None
    if first_bytes.startswith(b"RIFF"):
        return "image/webp" if first_bytes[8:12] == b"WEBP" else None
    return next((mime for mark, mime in _SIGNATURES.items() if first_bytes.startswith(mark)), None)
