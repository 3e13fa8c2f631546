"""Files and pictures that come with a message, before it is accepted, and how long what others write may be. Pure but
for the port.

What always holds: a file of the owner's is in the workspace, whole and durable, before the message that names it is
accepted; the same file that is handed in again is the same file. The workspace is the owner's: of what others send, the
names are kept and nothing else (I10). What nobody can look at is not kept in the database either.
"""

from __future__ import annotations

import base64
import binascii
import errno
import mimetypes
import unicodedata
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

from assistant.core.errors import BridgeError, StoreError
from assistant.core.messages import Media
from assistant.core.records import IncomingMessage
from assistant.core.sessions import session_role
from assistant.store.home.workspace import WorkspaceFiles

RECEIVED_FOLDER = "received"
SENT_FOLDER = "sent"
MAX_RECEIVED_BYTES = 50 * 1024 * 1024
MAX_SENT_BYTES = 10 * 1024 * 1024
_NO_SUCH_FILE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.ENAMETOOLONG)
# What providers take of one picture.
MAX_PICTURE_BYTES = 5 * 1024 * 1024
MAX_FILES_PER_MESSAGE = 20

# What providers see, by how it begins; WebP besides.
_MARKS = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
_LONGEST_NAME = 100
_LONGEST_ENDING = 16


class AttachmentIntake:
    def __init__(self, files: WorkspaceFiles, zone: ZoneInfo) -> None:
        """`zone` is the home's: a file is named for the day on which it came."""
        self._files = files
        self._zone = zone

    def store_attachments(self, incoming: IncomingMessage, now: datetime) -> IncomingMessage:
        """The message as it is to be accepted; its files are kept. Slow where there are some. Raises `StoreError`."""
        owners = incoming.trust == "owner" and session_role(incoming.session) == "owner"
        media = tuple(
            self._medium(one, now, owners, number < MAX_FILES_PER_MESSAGE) for number, one in enumerate(incoming.media)
        )
        return incoming if media == incoming.media else replace(incoming, media=media)

    def _medium(self, medium: Media, now: datetime, owners: bool, may_be_kept: bool) -> Media:
        if medium.data is None:
            # What the owner asks again about is in the workspace already.
            return medium if owners else replace(medium, path=None)
        size = len(medium.data) * 3 // 4 - medium.data[-2:].count("=")
        mime = _picture(medium.data)
        if medium.kind == "image" and mime and size <= MAX_PICTURE_BYTES:
            return replace(medium, mime=mime, size=size, path=None)
        named = replace(medium, size=size, data=None, path=None)
        if not (owners and may_be_kept) or size > MAX_RECEIVED_BYTES:
            return named
        try:
            data = base64.b64decode(medium.data, validate=True)
        except binascii.Error:
            return named
        return replace(named, path=self._files.save(RECEIVED_FOLDER, dated_file_names(medium, now, self._zone), data))


def load_outgoing_file(files: WorkspaceFiles, medium: Media) -> Media:
    """A file that goes out, with what is in it. Raises `BridgeError`, `refused` where there is no such file."""
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
    """Names for a file, the first for today. The others are for the same file handed in again after midnight."""
    name, today = safe_file_name(medium), now.astimezone(zone).date()
    return tuple(f"{date.isoformat()}-{name}" for date in (today, today.fromordinal(today.toordinal() - 1)))


def safe_file_name(medium: Media) -> str:
    """The name that somebody gave a file, as one that is safe in a folder: no path, nothing that hides or turns text,
    its ending kept."""
    last = unicodedata.normalize("NFC", medium.name).replace("\\", "/").rsplit("/", 1)[-1]
    kept = "".join(letter if letter.isprintable() and letter not in '<>:"|?*' else "_" for letter in last)
    stem, dot, ending = kept.strip(" .").rpartition(".")
    if not dot or len(ending) > _LONGEST_ENDING:
        stem, dot, ending = kept.strip(" ."), "", ""
    whole = f"{_cut(stem.strip(), _LONGEST_NAME)}{dot}{ending}"
    return whole if stem.strip() else f"{medium.kind}{dot}{ending}" if dot else _unnamed(medium)


def _picture(data: str) -> str | None:
    """What kind of picture it is, by how it begins: a provider refuses one that is called by another's name, and would
    with every later request."""
    try:
        begins = base64.b64decode(data[:24])
    except binascii.Error:
        return None
    if begins.startswith(b"RIFF"):
        return "image/webp" if begins[8:12] == b"WEBP" else None
    return next((mime for mark, mime in _MARKS.items() if begins.startswith(mark)), None)


def _unnamed(medium: Media) -> str:
    return f"{medium.kind}{mimetypes.guess_extension(medium.mime) or ''}"


def _cut(text: str, most: int) -> str:
    """At most so many bytes."""
    return text.encode()[:most].decode("utf-8", "ignore") if text.isprintable() else ""
