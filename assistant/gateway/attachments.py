"""Files and pictures that come with a message, before it is accepted.

What always holds: a file of the owner's is in the workspace, whole and durable, before the message that names it is
accepted; the same file that is handed in again is stored once. The workspace is the owner's: of files that others send,
only the names are stored (I10). Bytes that no model can look at are not stored in the database.
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
# What providers take of one picture.
MAX_PICTURE_BYTES = 5 * 1024 * 1024
MAX_FILES_PER_MESSAGE = 20

# What providers see, by how it begins; WebP besides.
_SIGNATURES = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}


class AttachmentIntake:
    def __init__(self, files: WorkspaceFiles, zone: ZoneInfo) -> None:
        """`zone` decides on which day a file came: it is named for that day."""
        self._files = files
        self._zone = zone

    def store_attachments(self, incoming: IncomingMessage, now: datetime) -> IncomingMessage:
        """The message as it is to be accepted, with its files stored. Slow where it has some. Raises `StoreError`."""
        is_owners = incoming.trust == "owner" and session_role(incoming.session) == "owner"
        media = tuple(
            self._store_medium(medium, now, is_owners, number < MAX_FILES_PER_MESSAGE)
            for number, medium in enumerate(incoming.media)
        )
        return incoming if media == incoming.media else replace(incoming, media=media)

    def _store_medium(self, medium: Media, now: datetime, is_owners: bool, may_be_stored: bool) -> Media:
        if medium.data is None:
            # A file that the owner refers to again is in the workspace already.
            return medium if is_owners else replace(medium, path=None)
        size = len(medium.data) * 3 // 4 - medium.data[-2:].count("=")
        mime = _picture_type(medium.data)
        if medium.kind == "image" and mime and size <= MAX_PICTURE_BYTES:
            return replace(medium, mime=mime, size=size, path=None)
        without_data = replace(medium, size=size, data=None, path=None)
        if not (is_owners and may_be_stored) or size > MAX_RECEIVED_BYTES:
            return without_data
        try:
            data = decode_base64(medium.data)
        except ValueError:
            return without_data
        return replace(
            without_data, path=self._files.save(RECEIVED_FOLDER, dated_file_names(medium, now, self._zone), data)
        )


def load_outgoing_file(files: WorkspaceFiles, medium: Media) -> Media:
    """A file that goes out, with its bytes. Raises `BridgeError`, `refused` where there is no such file."""
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
    """Names for a file, the first for today. The second is for the same file handed in again after midnight."""
    name, today = safe_file_name(medium), now.astimezone(zone).date()
    return tuple(f"{date.isoformat()}-{name}" for date in (today, today.fromordinal(today.toordinal() - 1)))


def _picture_type(data: str) -> str | None:
    """The type of a picture by its first bytes: a provider refuses one with a wrong type, and every later request with
    it."""
    try:
        first_bytes = base64.b64decode(data[:24])
    except binascii.Error:
        return None
    if first_bytes.startswith(b"RIFF"):
        return "image/webp" if first_bytes[8:12] == b"WEBP" else None
    return next((mime for mark, mime in _SIGNATURES.items() if first_bytes.startswith(mark)), None)
