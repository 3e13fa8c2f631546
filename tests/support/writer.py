"""Somebody who writes to an assistant in another process as fast as it acknowledges."""

from __future__ import annotations

from pathlib import Path
from threading import Thread

import httpx

from tests.support.command_line import TIMEOUT_SECONDS


class Writer(Thread):
    """Somebody who writes until nobody answers, or until `leave`; `acknowledged` has what was accepted. `client` is
    used in place of the control socket of `home`. `repeats`: what is refused with 503, as where a busy machine takes
    longer than an acknowledgement may, is said again."""

    def __init__(self, home: Path, limit: int, client: httpx.Client | None = None, *, repeats: bool = False) -> None:
        super().__init__()
        self.limit, self.repeats = limit, repeats
        self.acknowledged: list[str] = []
        self.has_enough = self.is_leaving = False
        transport = httpx.HTTPTransport(uds=str(home / "run" / "control.sock"))
        self._client = client or httpx.Client(transport=transport, base_url="http://home", timeout=TIMEOUT_SECONDS)

    def run(self) -> None:
        with self._client as client:
            try:
                for number in range(100_000):
                    text = f"remember that parcel {number} is in the hall"
                    said = {"text": text, "external_id": f"x{number}"}
                    answer = client.post("/v1/messages", json=said)
                    while self.repeats and answer.status_code == 503:
                        answer = client.post("/v1/messages", json=said)
                    assert answer.status_code == 202, answer.text
                    self.acknowledged.append(text)
                    self.has_enough = len(self.acknowledged) >= self.limit
                    if self.is_leaving:
                        return
            except httpx.TransportError:
                return

    def leave(self) -> list[str]:
        """Stop, and return what was acknowledged."""
        self.is_leaving = True
        self.join(TIMEOUT_SECONDS)
        return self.acknowledged
