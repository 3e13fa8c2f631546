"""The strict Bot API beside a test that is not asynchronous: served by a thread of its own, with people who write."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

from tests.strict.telegram import StrictTelegram
from tests.strict.telegram_people import OWNER

T = TypeVar("T")
SECONDS = 60.0


class TelegramDesk:
    """`with TelegramDesk() as desk:` serves until the end."""

    def __init__(self) -> None:
        self.server = StrictTelegram()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="telegram", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._within(self.server.come_back())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._within(self.server.go())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(SECONDS)
        self._loop.close()

    @property
    def token(self) -> str:
        return self.server.token

    @property
    def url(self) -> str:
        return self.server.url

    def say(self, text: str, user: int = OWNER) -> None:
        async def said() -> None:
            self.server.chats.setdefault(user, {"id": user, "type": "private", "first_name": "Bob"})
            self.server.say(text, user=user)

        self._within(said())

    def texts(self, user: int = OWNER) -> list[str]:
        """What the bot wrote to somebody, oldest first."""

        async def written() -> list[str]:
            return self.server.texts(user)

        return self._within(written())

    def until(self, true: Callable[[list[str]], bool], user: int = OWNER) -> list[str]:
        """Wait until it is so of what the bot wrote to somebody."""
        self._within(self.server.until(lambda: true(self.server.texts(user))))
        return self.texts(user)

    def _within(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(SECONDS)
