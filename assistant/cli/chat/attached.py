"""Files that a person sends with a message: this process reads them, as the person may, and sends what is in them."""

from __future__ import annotations

import base64
import mimetypes
from collections.abc import Sequence
from pathlib import Path

from assistant.core.errors import UsageError
from assistant.core.messages import Media, media_kind
from assistant.core.plain_files import FileRefused, expand_home, read_plain_file

# What goes to a daemon in one request, once it is written in base64.
_MAX_BYTES = 20 * 1024 * 1024


def read_attached(names: Sequence[str]) -> tuple[Media, ...]:
    """Read the files of a message. Raises `UsageError` where one cannot be read, or all are too large."""
    media: list[Media] = []
    left = _MAX_BYTES
    for name in names:
        try:
            data = read_plain_file(expand_home(name), left)
        except FileRefused as error:
            raise UsageError(f"{name} {error}. Nothing was sent; `assistant add` takes larger files.") from None
        left -= len(data)
        mime = mimetypes.guess_type(name)[0] or "application/octet-stream"
        in_base64 = base64.b64encode(data).decode()
        media.append(Media(media_kind(mime), mime, Path(name).name, len(data), in_base64))
    return tuple(media)
