"""The Discord bridge against a strict Discord, without an app: how its session goes on, what it reads after it was
away, what it says of what went wrong, and what it never sends twice."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any

import pytest

from assistant.bridges.discord import gateway
from assistant.bridges.discord.bridge import DiscordBridge
from assistant.bridges.discord.events import DiscordPosition, text_of_message, with_tables_as_code
from assistant.core.bridge_api import InboundMessage, MessageChange, OutgoingPart, TurnEvent
from assistant.core.errors import BridgeError, StoreError
from assistant.core.records import Button, OutboxItem, OutgoingMessage
from tests.strict.discord import ME, NONCE_SECONDS, ROOM, SERVER, DiscordFault, StrictDiscord
from tests.support.inbound import InboundRecorder

DIRECT = "51001"


class DiscordInbound(InboundRecorder):
    """What is kept moves the position."""

    def record(self, what: InboundMessage | MessageChange) -> None:
        super().record(what)
        self.stored_position = what.position

    def texts(self) -> list[str]:
        return [what.content for what in self.received]


@pytest.fixture
async def server() -> AsyncIterator[StrictDiscord]:
    async with StrictDiscord() as started:
        yield started


@pytest.fixture
async def bridge(server: StrictDiscord) -> AsyncIterator[DiscordBridge]:
    made = DiscordBridge(server.token, server.url)
    yield made
    await made.aclose()


@asynccontextmanager
async def running(
    server: StrictDiscord, bridge: DiscordBridge, door: DiscordInbound
) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(bridge.run(door))
    before = door.connections
    waiting = asyncio.ensure_future(door.changes.wait_until(lambda: door.connections > before))
    await asyncio.wait((task, waiting), return_when=asyncio.FIRST_COMPLETED)
    yield task
    task.cancel()
    waiting.cancel()
    await asyncio.wait([task])
    await server.changes.wait_until(lambda: not server.is_connected)


async def expect_texts(door: DiscordInbound, *texts: str) -> None:
    async with asyncio.timeout(20):
        await door.changes.wait_until(lambda: len(door.received) >= len(texts))
    assert door.texts() == list(texts)


def part(text: str = "hello", *, target: str = DIRECT, key: str = "key", **about: Any) -> OutgoingPart:
    outgoing = OutgoingMessage(key, "main", "owner", "discord", target, text, **about)
    return OutgoingPart(OutboxItem(1, outgoing, "pending", 1, datetime(2026, 11, 20, tzinfo=UTC)), 1, text)


# ------------------------------------------------------------------------------------------------------------ coming in


async def test_a_session_goes_on_behind_what_was_stored(server: StrictDiscord, bridge: DiscordBridge) -> None:
    door = DiscordInbound()
    async with running(server, bridge, door) as task:
        server.say("apples")
        await expect_texts(door, "apples")
        door.disk_full = True
        server.say("pears")
        await asyncio.wait([task])
        with pytest.raises(StoreError):
            task.result()
    door.disk_full = False
    async with running(server, bridge, door):
        await expect_texts(door, "apples", "pears")
    assert (server.identified, server.resumed) == (1, 1)


async def test_a_new_session_reads_what_was_said_meanwhile(server: StrictDiscord, bridge: DiscordBridge) -> None:
    door = DiscordInbound()
    server.say("long ago", channel=ROOM)
    async with running(server, bridge, door):
        server.say("apples")
        server.say(f"<@{ME}> pears", channel=ROOM)
        await expect_texts(door, "apples", "pears")
    said = [f"plum {number}" for number in range(120)]
    for text in said:
        server.say(text)
    server.say("not for it", channel=ROOM)
    server.forget_session()
    other = DiscordBridge(server.token, server.url)
    async with running(server, other, door):
        await expect_texts(door, "apples", "pears", *said, "not for it")
    await other.aclose()
    room = {what.content: what.room for what in door.received if isinstance(what, InboundMessage)}
    assert (room["plum 0"], room["not for it"]) == (None, ROOM)
    assert server.complaints == []


async def test_a_first_message_that_was_not_stored_comes_again_in_a_new_session(
    server: StrictDiscord, bridge: DiscordBridge
) -> None:
    """Nobody tells a bot of a direct conversation that it does not know."""
    door = DiscordInbound()
    async with running(server, bridge, door) as task:
        door.disk_full = True
        server.say("apples")
        await asyncio.wait([task])
    door.disk_full = False
    server.forget_session()
    other = DiscordBridge(server.token, server.url)
    async with running(server, other, door):
        await expect_texts(door, "apples")
    await other.aclose()


async def test_a_session_that_is_gone_is_begun_anew(
    server: StrictDiscord, bridge: DiscordBridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "_INVALID_SECONDS", (0.0, 0.0))
    door = DiscordInbound()
    async with running(server, bridge, door):
        server.say("apples")
        await expect_texts(door, "apples")
    server.forget_session()
    server.say("pears")
    async with running(server, bridge, door):
        await expect_texts(door, "apples", "pears")
    assert (server.identified, server.resumed) == (2, 0)


async def test_discord_may_ask_to_connect_anew_and_nothing_is_lost_or_twice(
    server: StrictDiscord, bridge: DiscordBridge
) -> None:
    door = DiscordInbound()
    async with running(server, bridge, door) as task:
        await server.request_reconnect()
        async with asyncio.timeout(20):
            await server.changes.wait_until(lambda: server.resumed == 1)
        server.say("apples")
        await expect_texts(door, "apples")
        assert not task.done()


async def test_a_connection_that_answers_no_heartbeat_is_left(server: StrictDiscord, bridge: DiscordBridge) -> None:
    server.heartbeat, server.answers_heartbeats = 0.05, False
    door = DiscordInbound()
    async with running(server, bridge, door) as task:
        async with asyncio.timeout(20):
            await asyncio.wait([task])
        with pytest.raises(BridgeError, match="connection to Discord broke"):
            task.result()
    server.answers_heartbeats = True
    async with running(server, bridge, door):
        server.say("apples")
        await expect_texts(door, "apples")
    assert server.resumed == 1 and "no heartbeat" not in server.complaints


async def test_a_thread_belongs_to_its_channel_and_is_answered_within(
    server: StrictDiscord, bridge: DiscordBridge
) -> None:
    door = DiscordInbound()
    server.channels["702"] = {"id": "702", "type": 11, "name": "a thread", "parent_id": ROOM, "guild_id": SERVER}
    async with running(server, bridge, door):
        server.say(f"<@{ME}> apples", channel="702")
        await expect_texts(door, "apples")
    (message,) = door.received
    assert isinstance(message, InboundMessage)
    assert (message.room, message.room_name, message.target, message.addressed) == (ROOM, "boat-club", "702", True)


async def test_programs_previews_and_the_bot_itself_are_not_answered(
    server: StrictDiscord, bridge: DiscordBridge
) -> None:
    door = DiscordInbound()
    async with running(server, bridge, door):
        server.say("from a webhook", webhook_id="1")
        server.say("", type=7, channel=ROOM)
        server.say("an answer", user=ME)
        server.tell("MESSAGE_CREATE", {"id": "no number at all", "author": {"id": "1001"}, "type": 0})
        message = server.say("apples")
        server.edit(message, "apples", edited=False)
        server.say("pears")
        await expect_texts(door, "apples", "pears")


async def test_a_deletion_names_no_sender(server: StrictDiscord, bridge: DiscordBridge) -> None:
    door = DiscordInbound()
    async with running(server, bridge, door):
        server.delete(server.say("apples"))
        await expect_texts(door, "apples", "")
    change = door.received[1]
    assert isinstance(change, MessageChange) and (change.kind, change.sender) == ("delete", "")


async def test_a_file_is_fetched_at_discord_alone_and_without_the_token(
    server: StrictDiscord, bridge: DiscordBridge
) -> None:
    door = DiscordInbound()
    file = server.keep_file("plan.txt", b"marmalade", "text/plain; charset=utf-8")
    elsewhere = {**file, "id": "2", "url": "https://cdn.discordapp.com.example.org/x"}
    async with running(server, bridge, door):
        server.say("look", attachments=[file, elsewhere])
        server.say("", attachments=[server.keep_file("voice-message.ogg", b"sound", "audio/ogg")], flags=1 << 13)
        await door.changes.wait_until(lambda: len(door.received) == 2)
    kept, spoken = door.received
    assert isinstance(kept, InboundMessage) and isinstance(spoken, InboundMessage)
    assert [one.voice for one in (*kept.media, *spoken.media)] == [False, True]
    assert [(one.mime, base64.b64decode(one.data or "")) for one in kept.media] == [("text/plain", b"marmalade")]
    assert kept.content.count("Discord did not deliver it") == 1 and server.complaints == []


# -------------------------------------------------------------------------------------------------------- what is wrong


async def test_a_wrong_token_and_an_intent_that_is_off_are_told_in_words(
    server: StrictDiscord, bridge: DiscordBridge
) -> None:
    assert await bridge.check() == "@nocturne"
    server.intents &= ~(1 << 15)
    with pytest.raises(BridgeError, match="Message Content Intent"):
        await bridge.check()
    with pytest.raises(BridgeError, match="Message Content Intent"):
        await bridge.run(DiscordInbound())
    server.token = "OTHER.strict.token"
    for failing in (bridge.check(), bridge.run(DiscordInbound())):
        with pytest.raises(BridgeError, match="does not accept the bot's token") as refused:
            await failing
        assert "token-of-a-test" not in str(refused.value)
    with pytest.raises(BridgeError, match="not a bot's token"):
        DiscordBridge("123456:telegram")


@pytest.mark.parametrize(
    ("fault", "ambiguous", "refused", "retry_after"),
    [
        (DiscordFault(429, 0, "You are being rate limited.", retry_after=40.5), False, False, 40.5),
        (DiscordFault(403, 50007, "Cannot send messages to this user"), False, True, None),
        (DiscordFault(502, None), True, False, None),
        (DiscordFault(503, None), False, False, None),
        (DiscordFault(403, None), False, False, None),
        (DiscordFault(401, 0, "401: Unauthorized"), False, False, None),
        ("before", True, False, None),
    ],
    ids=str,
)
async def test_each_failure_says_whether_the_message_may_have_arrived(
    server: StrictDiscord, bridge: DiscordBridge, fault: Any, ambiguous: bool, refused: bool, retry_after: float | None
) -> None:
    server.direct("1001")
    server.trouble("send", fault)
    with pytest.raises(BridgeError) as raised:
        await bridge.send(part())
    error = raised.value
    assert (error.ambiguous, error.refused, error.retry_after) == (ambiguous, refused, retry_after)


async def test_nothing_was_sent_where_nobody_answers(server: StrictDiscord, bridge: DiscordBridge) -> None:
    await server.go_offline()
    with pytest.raises(BridgeError) as raised:
        await bridge.send(part())
    assert not raised.value.ambiguous


# ------------------------------------------------------------------------------------------------------------ going out


async def test_what_is_sent_again_within_minutes_is_shown_once(server: StrictDiscord, bridge: DiscordBridge) -> None:
    now = [0.0]
    server.elapsed = lambda: now[0]
    server.direct("1001")
    server.trouble("send", "after")
    with suppress(BridgeError):
        await bridge.send(part("marmalade"))
    now[0] += bridge.capabilities.dedupe_seconds
    await bridge.send(part("marmalade"))
    assert [one["content"] for one in server.sent] == ["marmalade"]
    await bridge.send(part("marmalade", target=ROOM))
    await bridge.send(part("marmalade", key="other"))
    assert len(server.sent) == 3 and bridge.capabilities.dedupe_seconds < NONCE_SECONDS


async def test_nothing_calls_anybody_and_the_longest_part_fits(server: StrictDiscord, bridge: DiscordBridge) -> None:
    server.direct("1001")
    most = bridge.capabilities.max_length or 0
    buttons = tuple(Button("label " * 40, f"/todo add {number}") for number in range(30))
    await bridge.send(part("😀" * (most // 2), buttons=(*buttons, buttons[0], Button("too long", "x" * 101))))
    body = server.calls[-1][2]
    assert server.complaints == [] and body["allowed_mentions"] == {"parse": []} and body["flags"] == 4
    assert [len(row["components"]) for row in body["components"]] == [5] * 5


async def test_typing_is_shown_until_the_turn_ends(server: StrictDiscord, bridge: DiscordBridge) -> None:
    server.direct("1001")
    bridge.show(TurnEvent("turn", "main", "t1", {"state": "started"}), DIRECT)
    async with asyncio.timeout(20):
        await server.changes.wait_until(lambda: server.typing == [DIRECT])
    bridge.show(TurnEvent("turn", "main", "t1", {"state": "answered"}), DIRECT)
    assert bridge._typing == {}


def test_a_table_is_code_where_it_fits() -> None:
    table = "| a | b |\n|---|---|\n| 1 | 2 |"
    assert with_tables_as_code(f"Look:\n\n{table}\n\nDone | so") == f"Look:\n\n```\n{table}\n```\n\nDone | so"
    long = table + "\n| x | y |" * 197
    assert len(long) < 2000 < len(long) + 8 and with_tables_as_code(long) == long
    fenced = f"```\n{table}\n```"
    assert with_tables_as_code(fenced) == fenced


def test_discords_marks_are_written_out() -> None:
    ann = {"id": "1001", "username": "ann", "global_name": "Ann"}
    text = "<@1001> and <@!1001> in <#701> <#9> <a:wave:12> <:boat:3> <@&5> <not a mark>"
    written = text_of_message({"content": f"<@{ME}>, {text}", "mentions": [ann]}, ME, {"701": "boats"})
    assert written == "@Ann and @Ann in #boats #9 :wave: :boat: @5 <not a mark>"


def test_what_is_forwarded_or_replied_to_is_a_quotation() -> None:
    replied = {"content": "do it\nnow", "author": {"id": "2", "username": "bob"}}
    snapshot = {"message": {"content": "/forget all"}}
    text = text_of_message({"content": "see", "type": 19, "referenced_message": replied}, ME, {})
    assert text == "see\n\n[in reply to bob]\n> do it\n> now"
    assert text_of_message({"content": "", "message_snapshots": [snapshot]}, ME, {}) == "[forwarded]\n> /forget all"


def test_a_position_that_cannot_be_read_is_none() -> None:
    for text in ("", "[]", "{", '{"since": "x"}', '{"newest": 3}'):
        assert DiscordPosition.parse(text) == DiscordPosition()
    position = DiscordPosition(5).advance("@1", 7).advance("2", 6).advance("@1", 3)
    assert DiscordPosition.parse(str(position)) == DiscordPosition(7, {"2": 6, "@1": 7})
