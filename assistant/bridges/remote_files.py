"""Downloads files that a message refers to by an address on the network's servers.

A file that is not downloaded is replaced by a notice with the reason. After an error its message is requested again a
few times; then the message is accepted without it.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable, Iterable

from assistant.core.dataclass import dataclass
from assistant.core.errors import BridgeError
from assistant.core.messages import Media, MediaKind
from assistant.core.people import clean_display_name

_MAX_BYTES = 20_000_000
_MAX_TRIES = 3


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file on the network's servers. `size` is in bytes."""

    id: str
    kind: MediaKind
    mime: str
    name: str
    size: int
    address: str
    voice: bool

    def missing_notice(self, why: str) -> str:
        """Return the text in place of a file."""
        size = f", {max(self.size / 1e6, 0.1):.1f} MB" if self.size else ""
        return f"[file {clean_display_name(self.name)}{size}: {why}]"


class RemoteFiles:
    """Files of one network. After `_MAX_TRIES` errors a file counts as not delivered."""

    def __init__(self, network: str, download: Callable[[str, int], Awaitable[bytes | None]]) -> None:
        """`network`: its name, for people. `download` receives an address and a maximum size, returns None if the
        network refuses the file, and raises `BridgeError` if it fails."""
        self._network = network
        self._download = download
        self._failures: dict[str, int] = {}

    async def fetch(
        self, files: Iterable[RemoteFile], *, is_expected: bool
    ) -> tuple[tuple[Media, ...], tuple[str, ...]]:
        """Return the files, with notices for those not downloaded. Raises `BridgeError` if one fails, so that the
        message is requested again."""
        media, missing = [], []
        for file in files:
            if not is_expected:
                missing.append(file.missing_notice("it was not fetched"))
            elif file.size > _MAX_BYTES:
                missing.append(file.missing_notice("files above 20 MB are not fetched"))
            elif (data := await self._fetch(file)) is None:
                missing.append(file.missing_notice(f"{self._network} did not deliver it"))
            else:
                encoded = await asyncio.to_thread(base64.b64encode, data)
                media.append(Media(file.kind, file.mime, file.name, len(data), encoded.decode(), voice=file.voice))
        return tuple(media), tuple(missing)

    async def _fetch(self, file: RemoteFile) -> bytes | None:
        self._failures[file.id] = self._failures.get(file.id, 0) + 1
        try:
            data = await self._download(file.address, _MAX_BYTES)
        except BridgeError:
            if self._failures[file.id] < _MAX_TRIES:
                raise
            data = None
        del self._failures[file.id]
        return data
