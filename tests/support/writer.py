"""Somebody who writes to an assistant in another process as fast as it acknowledges."""

from __future__ import annotations

from pathlib import Path
from threading import Thread

import httpx

from tests.support.command_line import TIMEOUT_SECONDS


class Writer(Thread):
    """Somebody who writes until nobody answers; `acknowledged` has what was accepted."""

    def __init__(self, home: Path, limit: int) -> None:
        super().__init__()
        self.home = home
        self.limit = limit
        self.acknowledged: list[str] = []
        self.has_enough = False

    def run(self) -> None:
        transport = httpx.HTTPTransport(uds=str(self.home / "run" / "control.sock"))
        with httpx.Client(transport=transport, base_url="http://home", timeout=TIMEOUT_SECONDS) as client:
            try:
                for number in range(100_000):
                    text = f"remember that parcel {number} is in the hall"
                    answer = client.post("/v1/messages", json={"text": text, "external_id": f"x{number}"})
                    assert answer.status_code == 202, answer.text
                    self.acknowledged.append(text)
                    self.has_enough = len(self.acknowledged) >= self.limit
            except httpx.TransportError:
                return
