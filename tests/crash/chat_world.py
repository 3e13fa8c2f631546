"""Slack and Discord in a crash scenario: the real bridge over real sockets, to a strict server of the suite.

The server is in the process that is killed, but what it showed to people is noted by the witness before the bridge
hears of it, and is there again after a restart. So every kill is one between the network and the app. What people say
comes straight into the inbox: how a bridge receives is broken over Telegram (`telegram_world.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import structlog

from assistant.bridges.discord.bridge import DiscordBridge
from assistant.bridges.slack.bridge import SlackBridge
from assistant.core.bridge_api import Bridge
from assistant.core.people import Identity
from assistant.wire.app import build_app
from tests.crash.witness import EffectLog
from tests.crash.world import BEGUN, Answer, AppRun, EffectNetwork, message, noted, settings_of
from tests.strict import discord, slack
from tests.strict.slack_people import OWNER as SLACK_OWNER
from tests.support.scripted import ScriptedModel, SteppingClock

_MOST_TRIES = 60
_A_MOMENT = 0.02


@dataclass(frozen=True, slots=True)
class ChatPlace:
    """A bridge, and where its owner talks to the assistant."""

    bridge: Bridge
    owner: str
    channel: str


OpenChat = Callable[[EffectLog], AbstractAsyncContextManager[ChatPlace]]


class RecordedSlack(slack.StrictSlack):
    def __init__(self, witness: EffectLog) -> None:
        super().__init__()
        self._witness = witness
        for seen in witness.recorded("shown"):
            self.new_ts()
            self.messages.setdefault(seen["channel"], []).append(seen["message"])

    def _chat_postmessage(self, params: dict[str, Any]) -> dict[str, Any]:
        answer = super()._chat_postmessage(params)
        message = answer["message"]
        blocks = [block["text"] for block in message.get("blocks", ()) if block["type"] == "markdown"]
        text = "\n".join(blocks) or message["text"]
        self._witness.record("shown", channel=answer["channel"], message=message, text=text)
        return answer


class RecordedDiscord(discord.StrictDiscord):
    """What it knows of nonces is gone with it: a life is an hour after the one before."""

    def __init__(self, witness: EffectLog) -> None:
        super().__init__()
        self._witness = witness

    def _send_message(self, channel: str, body: dict[str, Any], files: list[tuple[str, bytes]]) -> dict[str, Any]:
        before = len(self.sent)
        message = super()._send_message(channel, body, files)
        if len(self.sent) > before:
            self._witness.record("shown", text=message["content"])
        return message


@asynccontextmanager
async def open_slack(witness: EffectLog) -> AsyncIterator[ChatPlace]:
    async with RecordedSlack(witness) as server:
        yield ChatPlace(SlackBridge(server.tokens, server.url), SLACK_OWNER, server.direct(SLACK_OWNER))


@asynccontextmanager
async def open_discord(witness: EffectLog) -> AsyncIterator[ChatPlace]:
    async with RecordedDiscord(witness) as server:
        yield ChatPlace(DiscordBridge(server.token, server.url), discord.OWNER, server.direct(discord.OWNER))


def live_on_chat(home: Path, open_chat: OpenChat, said: Sequence[str], answer: Answer) -> None:
    """One life of the process, until all is answered and delivered, or was tried often enough."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    asyncio.run(_live(home, open_chat, said, answer))


async def _live(home: Path, open_chat: OpenChat, said: Sequence[str], answer: Answer) -> None:
    witness = EffectLog(home)
    clock = SteppingClock(BEGUN + timedelta(hours=len(witness.recorded("began"))))
    witness.record("began")
    async with open_chat(witness) as place:
        name = place.bridge.name
        model = ScriptedModel(partial(noted, answer, witness))
        app = build_app(settings_of(home), clock, bridges={name: place.bridge}, model=model)
        messages = [
            message(text, number, bridge=name, sender=place.owner, target=place.channel)
            for number, text in enumerate(said, 1)
        ]
        try:
            if app.stores.people.find_by_identity(owner := Identity(name, place.owner)) is None:
                app.stores.people.link_owner(owner, BEGUN)
            await app.start()
            await EffectNetwork(witness, deduplicates=False).hand_in(messages, app.runtime.accept)
            await _until_sent(AppRun(app, model, clock), name)
            await app.stop(drain_seconds=0)
        finally:
            await app.models.aclose()
            app.close()


async def _until_sent(life: AppRun, name: str) -> None:
    for _ in range(_MOST_TRIES):
        busy = await life.is_busy()
        await life.app.runtime.wait_until_idle()
        if not busy and not life.app.stores.outbox.pending_items(name):
            return
        # What is under way over a socket takes its time; what the disk refused is tried again.
        await asyncio.sleep(_A_MOMENT)
        life.app.dispatcher.retry_now(name)
