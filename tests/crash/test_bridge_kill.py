"""The kill that matters most for a bridge, over networks that can tell what they have: while a message is sent, on
either side of the moment at which the network takes it, and before that is known here. Afterwards it is there once, and
known as sent.

The network plays in this process, the assistant lives in a child.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from assistant.bridges.discord.bridge import DiscordBridge
from assistant.bridges.slack.bridge import SlackBridge
from assistant.core.bridge_api import Bridge, OutgoingPart
from assistant.core.people import Identity
from assistant.wire.app import build_app
from assistant.wire.stores import Stores
from tests.crash.world import BEGUN, settings_of
from tests.strict.discord import ME as DISCORD_ME
from tests.strict.discord import OWNER as DISCORD_OWNER
from tests.strict.discord import TOKEN, StrictDiscord
from tests.strict.slack import APP_TOKEN, BOT_TOKEN, StrictSlack
from tests.strict.slack_people import ME as SLACK_ME
from tests.strict.slack_people import OWNER as SLACK_OWNER
from tests.support.networks.conformance_app import echo
from tests.support.networks.probed_bridge import BridgeProbe, ProbedBridge
from tests.support.outboxes import recent_items
from tests.support.scripted import ScriptedModel, SteppingClock

_SECONDS = 120.0
_OWNERS = {"slack": SLACK_OWNER, "discord": DISCORD_OWNER}


class _SentOnce(ProbedBridge):
    def __init__(self, bridge: Bridge) -> None:
        super().__init__(bridge, BridgeProbe())
        self.sent = asyncio.Event()

    async def send(self, part: OutgoingPart) -> None:
        await super().send(part)
        self.sent.set()


def _live(home: Path, name: str, url: str, lives: int) -> None:
    """One life of the process, until what is to be sent was sent, and that is known."""
    asyncio.run(_live_once(home, name, url, lives))


async def _live_once(home: Path, name: str, url: str, lives: int) -> None:
    made = SlackBridge(f"{BOT_TOKEN} {APP_TOKEN}", url) if name == "slack" else DiscordBridge(TOKEN, url)
    bridge, clock = _SentOnce(made), SteppingClock(BEGUN + timedelta(seconds=lives))
    app = build_app(settings_of(home), clock, bridges={name: bridge}, model=ScriptedModel(echo))
    owner = Identity(name, _OWNERS[name])
    if app.stores.people.find_by_identity(owner) is None:
        app.stores.people.link_owner(owner, BEGUN)
    await app.start()
    running = asyncio.create_task(app.runtime.run())
    async with asyncio.timeout(_SECONDS):
        await bridge.sent.wait()
        await app.runtime.wait_until_idle()
        await app.dispatcher.flush(name)
    running.cancel()
    await app.stop(drain_seconds=0)
    await app.models.aclose()
    app.close()


class _KillingSlack(StrictSlack):
    kill: Callable[[str], None]

    def _chat_postmessage(self, params: dict[str, Any]) -> dict[str, Any]:
        self.kill("before")
        answer = super()._chat_postmessage(params)
        self.kill("after")
        return answer


class _KillingDiscord(StrictDiscord):
    kill: Callable[[str], None]

    def _send_message(self, channel: str, body: dict[str, Any], files: list[tuple[str, bytes]]) -> dict[str, Any]:
        self.kill("before")
        answer = super()._send_message(channel, body, files)
        self.kill("after")
        return answer


@contextmanager
def _serving(server: Any) -> Iterator[Callable[[Coroutine[Any, Any, Any]], Any]]:
    """The server in a loop of its own, and what runs something within it."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def within(work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(_SECONDS)

    within(server.go_online())
    try:
        yield within
    finally:
        within(server.go_offline())
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_SECONDS)
        loop.close()


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", ["slack", "discord"])
def test_a_message_that_was_being_sent_at_a_kill_is_there_once_and_known_as_sent(
    tmp_path: Path, name: str, when: str
) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    server: Any = _KillingSlack() if name == "slack" else _KillingDiscord()
    victims: list[int] = []

    def kill(moment: str) -> None:
        if moment == when and victims:
            os.kill(victims.pop(), signal.SIGKILL)
            if moment == "before":
                raise ConnectionResetError

    server.kill = kill

    async def speak() -> None:
        await server.changes.wait_until(lambda: server.is_connected)
        server.say("apples")

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    with _serving(server) as within:
        for lives, ends in ((0, -signal.SIGKILL), (1, 0)):
            process = context.Process(target=_live, args=(home, name, server.url, lives))
            process.start()
            if not lives:
                assert process.pid is not None
                victims.append(process.pid)
                within(speak())
            process.join(_SECONDS)
            assert process.exitcode == ends
    me = SLACK_ME if name == "slack" else DISCORD_ME
    said = [one for messages in server.messages.values() for one in messages]
    answers = [one for one in said if (one["user"] if name == "slack" else one["author"]["id"]) == me]
    assert len(answers) == 1
    stores = Stores(settings_of(home), BEGUN)
    try:
        (item,) = recent_items(stores.outbox, "main")
        assert (item.state, item.outgoing.body) == ("sent", "You said: apples")
        assert stores.verifier.verify().ok
    finally:
        stores.close()
