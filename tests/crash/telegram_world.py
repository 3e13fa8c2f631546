"""An app on Telegram in a crash scenario: the real bridge over a real socket, to a Bot API that is played.

The server is in the process that is killed, but all it knows is the witness: what the bot confirmed and what people
were shown is noted outside of the home before the bot hears of it. So every kill is one between the network and the
app, and a restarted server goes on as Telegram would, whatever the app still knows.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import structlog

from assistant.bridges.telegram.bridge import TelegramBridge
from assistant.core.model_api import ModelRequest
from assistant.core.people import Identity
from assistant.wire.app import build_app
from tests.crash.witness import EffectLog
from tests.crash.world import BEGUN, AppRun, noted, settings_of
from tests.strict.telegram import StrictTelegram
from tests.strict.telegram_people import OWNER
from tests.support.scripted import ScriptedModel, ScriptStep, SteppingClock

BRIDGE = "telegram"
_FIRST_UPDATE = 500
_MOST_TRIES = 60
# How long the bridge has to fetch what waits, in seconds, before it is hurried: it pauses when the disk refuses.
_A_MOMENT = 0.5
# Live text comes by the clock: never here.
_NO_DRAFTS = 3600.0


class RecordedTelegram(StrictTelegram):
    """What `messages` says, in this order, was said before the app began."""

    def __init__(self, witness: EffectLog, messages: Sequence[str]) -> None:
        super().__init__()
        self._witness = witness
        self._last = _FIRST_UPDATE + len(messages)
        for number, text in enumerate(messages, _FIRST_UPDATE):
            written = self.written(text)
            if number >= self.confirmed:
                self.put({"update_id": number, "message": written})
        self.count_from(self._last)

    @property
    def confirmed(self) -> int:
        """The update that the bot asks for next."""
        return max((seen["offset"] for seen in self._witness.recorded("confirmed")), default=0)

    @property
    def all_confirmed(self) -> bool:
        return self.confirmed >= self._last

    async def _get_updates(self, params: Mapping[str, Any]) -> list[dict[str, Any]]:
        offset = int(params.get("offset", 0))
        if offset > self.confirmed:
            self._witness.record("confirmed", offset=offset)
            self.notify()
        return await super()._get_updates(params)

    def _send_message(self, params: dict[str, Any]) -> dict[str, Any]:
        message = super()._send_message(params)
        self._witness.record("shown", text=message["text"])
        return message


def live_on_telegram(home: Path, messages: Sequence[str], answer: Callable[[ModelRequest], ScriptStep]) -> None:
    """One life of the process, until everything is confirmed, answered and delivered, or was tried often enough."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    asyncio.run(_live(home, messages, answer))


async def _live(home: Path, messages: Sequence[str], answer: Callable[[ModelRequest], ScriptStep]) -> None:
    witness = EffectLog(home)
    clock = SteppingClock(BEGUN + timedelta(hours=len(witness.recorded("began"))))
    witness.record("began")
    async with RecordedTelegram(witness, messages) as server:
        bridge = TelegramBridge(server.token, server.url, draft_seconds=_NO_DRAFTS)
        model = ScriptedModel(partial(noted, answer, witness))
        app = build_app(settings_of(home), clock, bridges={BRIDGE: bridge}, model=model)
        try:
            if app.stores.people.find_by_identity(owner := Identity(BRIDGE, str(OWNER))) is None:
                app.stores.people.link_owner(owner, BEGUN)
            await app.start()
            await _until_quiet(AppRun(app, model, clock), server)
            await app.stop(drain_seconds=0)
        finally:
            await app.models.aclose()
            app.close()


async def _until_quiet(life: AppRun, server: RecordedTelegram) -> None:
    app = life.app
    for _ in range(_MOST_TRIES):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_A_MOMENT):
                await server.until(lambda: server.all_confirmed)
        if not server.all_confirmed:
            app.dispatcher.retry_now(BRIDGE)
        busy = await life.is_busy()
        await app.inbound.wait_until_idle()
        await app.runtime.wait_until_idle()
        await asyncio.sleep(0)
        if not busy and server.all_confirmed and not app.stores.outbox.pending_items(BRIDGE):
            return
