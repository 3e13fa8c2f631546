"""The Slack bridge against a strict Slack, without an app: what it acknowledges and when, what it reads after it was
away, what it says of what went wrong, and what it never sends twice."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from assistant.bridges.slack.bridge import SlackBridge
from assistant.bridges.slack.events import message_payload, plain_text, text_of_message
from assistant.core.bridge_api import InboundMessage, MessageChange, OutgoingPart
from assistant.core.errors import BridgeError, StoreError
from assistant.core.messages import Media
from assistant.core.records import Button, OutboxItem, OutgoingMessage
from tests.strict.slack import SlackApiFault, StrictSlack
from tests.strict.slack_people import ME, OWNER, ROOM
from tests.support.inbound import InboundRecorder

DIRECT = "D0OWNER"


class SlackInbound(InboundRecorder):
    """What is kept moves the position."""

    def record(self, what: InboundMessage | MessageChange) -> None:
        super().record(what)
        self.stored_position = what.position

    def texts(self) -> list[str]:
        return [what.content for what in self.received]


@pytest.fixture
async def server() -> AsyncIterator[StrictSlack]:
    async with StrictSlack() as started:
        yield started


@pytest.fixture
async def bridge(server: StrictSlack) -> AsyncIterator[SlackBridge]:
    made = SlackBridge(server.tokens, server.url)
    yield made
    await made.aclose()


@asynccontextmanager
async def running(server: StrictSlack, bridge: SlackBridge, door: SlackInbound) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(bridge.run(door))
    before = door.connections
    waiting = asyncio.ensure_future(door.changes.wait_until(lambda: door.connections > before))
    await asyncio.wait((task, waiting), return_when=asyncio.FIRST_COMPLETED)
    yield task
    task.cancel()
    waiting.cancel()
    await asyncio.wait([task])
    await server.changes.wait_until(lambda: not server.is_connected)


async def expect_texts(door: SlackInbound, *texts: str) -> None:
    async with asyncio.timeout(20):
        await door.changes.wait_until(lambda: len(door.received) >= len(texts))
    assert door.texts() == list(texts)


def part(text: str = "hello", *, state: Any = "pending", target: str = DIRECT, **about: Any) -> OutgoingPart:
    media, buttons = about.pop("media", None), about.pop("buttons", ())
    outgoing = OutgoingMessage("key", "main", "owner", "slack", target, text, buttons=buttons)
    item = OutboxItem(1, outgoing, state, 1, datetime(2026, 11, 20, tzinfo=UTC), **about)
    return OutgoingPart(item, 1, "" if media else text, True, media)


# ------------------------------------------------------------------------------------------------------------ coming in


async def test_an_envelope_is_acknowledged_once_it_is_stored_and_comes_again_otherwise(
    server: StrictSlack, bridge: SlackBridge
) -> None:
    door = SlackInbound()
    async with running(server, bridge, door) as task:
        door.disk_full = True
        server.say("apples")
        await asyncio.wait([task])
        with pytest.raises(StoreError):
            task.result()
        assert server.acknowledged == []
    door.disk_full = False
    async with running(server, bridge, door):
        await expect_texts(door, "apples")
        async with asyncio.timeout(20):
            await server.changes.wait_until(lambda: len(server.acknowledged) == 1)
        server.say("pears")
        await expect_texts(door, "apples", "pears")
    assert server.complaints == []


async def test_what_was_said_while_it_was_away_is_read_in_its_order_and_in_threads(
    server: StrictSlack, bridge: SlackBridge
) -> None:
    door = SlackInbound()
    async with running(server, bridge, door):
        first = server.say("apples")
        old = server.say(f"<@{ME}> an old one", channel=ROOM)
        await expect_texts(door, "apples", "an old one")
    server.say("a reply", thread_ts=first["ts"])
    new = server.say("pears")
    server.say("another reply", thread_ts=new["ts"])
    server.say("not for it", channel=ROOM)
    async with running(server, bridge, door):
        # A thread that it was not in, and that began before, is not looked into.
        assert door.texts()[2:] in (
            ["not for it", "pears", "another reply"],
            ["pears", "another reply", "not for it"],
        )
        server.say("a late reply", thread_ts=old["ts"], channel=ROOM)
        async with asyncio.timeout(20):
            await door.changes.wait_until(lambda: "a late reply" in door.texts())
    targets = {what.content: what.target for what in door.received if isinstance(what, InboundMessage)}
    assert targets["another reply"] == f"{DIRECT}:{new['ts']}" and targets["pears"] == DIRECT


async def test_a_thread_that_it_took_part_in_is_read_after_it_was_away(
    server: StrictSlack, bridge: SlackBridge
) -> None:
    door = SlackInbound()
    async with running(server, bridge, door):
        first = server.say("apples")
        server.say("a reply", thread_ts=first["ts"])
        await expect_texts(door, "apples", "a reply")
    server.say("a reply to the reply", thread_ts=first["ts"])
    async with running(server, bridge, door):
        await expect_texts(door, "apples", "a reply", "a reply to the reply")


async def test_nothing_is_read_that_was_said_before_it_came(server: StrictSlack, bridge: SlackBridge) -> None:
    door = SlackInbound()
    server.say("long ago")
    async with running(server, bridge, door):
        server.say("apples")
        await expect_texts(door, "apples")
    server.channels["C0NEW"] = {"id": "C0NEW", "name": "new"}
    server.say("before it joined", channel="C0NEW")
    server.members.add("C0NEW")
    server.say("", user=ME, channel="C0NEW", subtype="channel_join")
    server.say(f"<@{ME}> pears", channel="C0NEW")
    async with running(server, bridge, door):
        await expect_texts(door, "apples", "pears")


async def test_slack_may_ask_to_connect_anew_and_nothing_is_lost_or_twice(
    server: StrictSlack, bridge: SlackBridge
) -> None:
    door = SlackInbound()
    async with running(server, bridge, door) as task:
        await server.disconnect("refresh_requested")
        async with asyncio.timeout(20):
            await server.changes.wait_until(lambda: server.connections == 2)
        server.say("apples")
        await expect_texts(door, "apples")
        assert not task.done()


async def test_socket_mode_turned_off_says_where_to_turn_it_on(server: StrictSlack, bridge: SlackBridge) -> None:
    async with running(server, bridge, SlackInbound()) as task:
        await server.disconnect("link_disabled")
        await asyncio.wait([task])
        with pytest.raises(BridgeError, match="Socket Mode is turned off"):
            task.result()


async def test_a_preview_is_no_edit(server: StrictSlack, bridge: SlackBridge) -> None:
    door = SlackInbound()
    async with running(server, bridge, door):
        message = server.say("https://example.org")
        await expect_texts(door, "https://example.org")
        server.edit(DIRECT, message["ts"], "https://example.org", edited=False)
        server.edit(DIRECT, message["ts"], "pears")
        await expect_texts(door, "https://example.org", "pears")
        assert isinstance(door.received[1], MessageChange)


async def test_programs_and_the_assistant_itself_are_not_answered(server: StrictSlack, bridge: SlackBridge) -> None:
    door = SlackInbound()
    async with running(server, bridge, door):
        server.say("from a program", bot_id="B0OTHER")
        server.say("somebody came", subtype="channel_join", channel=ROOM)
        await bridge.send(part("an answer"))
        server.tell(DIRECT, {"no": "message at all", "ts": None})
        server.say("apples")
        await expect_texts(door, "apples")


async def test_a_file_is_fetched_at_slack_alone(server: StrictSlack, bridge: SlackBridge) -> None:
    door = SlackInbound()
    file = server.keep_file("plan.txt", b"marmalade", mimetype="text/plain")
    elsewhere = {**file, "id": "F2", "url_private_download": "https://slack.com.example.org/x"}
    async with StrictSlack() as other:
        stolen = {**file, "id": "F3", "url_private_download": other.keep_file("x", b"y")["url_private_download"]}
        async with running(server, bridge, door):
            server.say("look", files=[file, elsewhere, stolen, {"mode": "tombstone"}], subtype="file_share")
            clip = server.keep_file("audio_message.m4a", b"sound", mimetype="audio/mp4", subtype="slack_audio")
            server.say("", files=[clip], subtype="file_share")
            await door.changes.wait_until(lambda: len(door.received) == 2)
    kept, spoken = door.received
    assert isinstance(kept, InboundMessage) and isinstance(spoken, InboundMessage)
    assert [one.voice for one in (*kept.media, *spoken.media)] == [False, True]
    assert [base64.b64decode(one.data or "") for one in kept.media] == [b"marmalade"]
    assert kept.content.count("Slack did not deliver it") == 2


# -------------------------------------------------------------------------------------------------------- what is wrong


async def test_a_wrong_token_and_a_missing_scope_are_told_in_words(server: StrictSlack, bridge: SlackBridge) -> None:
    assert await bridge.check() == "@nocturne in Test"
    server.scopes.discard("files:write")
    with pytest.raises(BridgeError, match="lacks scopes: files:write"):
        await bridge.check()
    server.scopes.add("files:write")
    server.app_token = "xapp-another"
    with pytest.raises(BridgeError, match="does not accept a token of the app") as refused:
        await bridge.check()
    assert "strict-token" not in str(refused.value)
    server.bot_token = "xoxb-another"
    with pytest.raises(BridgeError, match="does not accept a token of the app"):
        await bridge.check()
    with pytest.raises(BridgeError, match="two tokens"):
        SlackBridge("xoxb-1-only-one")


@pytest.mark.parametrize(
    ("fault", "ambiguous", "refused", "retry_after"),
    [
        (SlackApiFault("ratelimited", 429, retry_after=40), False, False, 40.0),
        (SlackApiFault("is_archived"), False, True, None),
        (SlackApiFault("fatal_error"), True, False, None),
        (SlackApiFault("service_unavailable", 503), False, False, None),
        (SlackApiFault("", 502), True, False, None),
        (SlackApiFault("token_revoked"), False, False, None),
        ("before", True, False, None),
    ],
    ids=str,
)
async def test_each_failure_says_whether_the_message_may_have_arrived(
    server: StrictSlack, bridge: SlackBridge, fault: Any, ambiguous: bool, refused: bool, retry_after: float | None
) -> None:
    server.trouble("send", fault)
    with pytest.raises(BridgeError) as raised:
        await bridge.send(part())
    error = raised.value
    assert (error.ambiguous, error.refused, error.retry_after) == (ambiguous, refused, retry_after)


async def test_nothing_was_sent_where_nobody_answers(server: StrictSlack, bridge: SlackBridge) -> None:
    await server.go_offline()
    with pytest.raises(BridgeError) as raised:
        await bridge.send(part())
    assert not raised.value.ambiguous


# ------------------------------------------------------------------------------------------------------------ going out


async def test_what_may_have_arrived_is_looked_for_before_it_is_sent_again(
    server: StrictSlack, bridge: SlackBridge
) -> None:
    server.trouble("send", "after")
    with suppress(BridgeError):
        await bridge.send(part("marmalade"))
    for number in range(250):
        server.say(f"and {number}")
    await bridge.send(part("marmalade", state="sending"))
    assert [one["text"] for one in server.posted] == ["marmalade"]
    # Another place, or another message with the same words, is another one.
    await bridge.send(part("marmalade", state="sending", target=ROOM))
    other = part("marmalade", state="sending")
    await bridge.send(replace(other, item=replace(other.item, outgoing=replace(other.item.outgoing, key="other"))))
    assert len(server.posted) == 3


async def test_what_cannot_be_told_is_reported_and_not_sent(server: StrictSlack, bridge: SlackBridge) -> None:
    for number in range(1001):
        server.say(f"{number}")
    with pytest.raises(BridgeError) as raised:
        await bridge.send(part("marmalade", state="sending"))
    assert raised.value.ambiguous and raised.value.refused and server.posted == []


async def test_a_file_that_may_have_arrived_is_known_by_the_words_before_it(
    server: StrictSlack, bridge: SlackBridge
) -> None:
    media = Media("file", "text/plain", "plan.txt", 9, base64.b64encode(b"marmalade").decode())
    text = part("Here it is.")
    await bridge.send(text)
    sent = replace(text.item, state="sending", parts_sent=1)
    file = OutgoingPart(sent, 2, "", True, media)
    await bridge.send(file)
    await bridge.send(file)
    assert [bool(one.get("files")) for one in server.posted] == [False, True]
    with pytest.raises(BridgeError) as raised:
        await bridge.send(part(state="sending", media=media, target=ROOM))
    assert raised.value.ambiguous and len(server.posted) == 2


async def test_what_slack_cannot_format_goes_out_as_it_is_written(server: StrictSlack, bridge: SlackBridge) -> None:
    server.trouble("send", SlackApiFault("invalid_blocks"))
    await bridge.send(part("**bold** <b> & more"))
    assert [(one["text"], "blocks" in server.find(DIRECT, one["ts"])) for one in server.posted] == [
        ("**bold** &lt;b&gt; &amp; more", False)
    ]


async def test_the_longest_part_fits_with_the_longest_buttons(server: StrictSlack, bridge: SlackBridge) -> None:
    most = bridge.capabilities.max_length or 0
    buttons = tuple(Button("label " * 40, f"/todo add {number} " + "x" * 1900) for number in range(30))
    await bridge.send(part("😀" * most, buttons=(*buttons, Button("too long", "x" * 2001))))
    assert server.complaints == []


def test_nothing_in_a_text_calls_people_together() -> None:
    payload = message_payload("<!channel> <@U0OWNER> <!here|x> but `a <! b`", ())
    written = payload["blocks"][0]["text"]
    assert not any(call in written for call in ("<!channel", "<@U", "<!here")) and "a <! b" in written
    assert "<" not in payload["text"]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("a &lt;b&gt; &amp;amp; c", "a <b> &amp; c"),
        ("<https://example.org|the page> <https://example.org>", "the page (https://example.org) https://example.org"),
        ("<mailto:ada@example.org|ada@example.org>", "ada@example.org"),
        ("<@U0OWNER> in <#C1|boats> <#C2> <!here> <!subteam^S1|@crew>", "@Ann in #boats #C2 @here @crew"),
        ("<not closed", "<not closed"),
    ],
)
def test_slacks_marks_are_written_out(written: str, read: str) -> None:
    assert plain_text(written, {OWNER: "Ann"}) == read


def test_what_is_shared_is_a_quotation() -> None:
    shared = {"is_share": True, "author_name": "Bob", "text": "do it\nnow"}
    text = text_of_message({"text": f"<@{ME}>, see", "attachments": [shared, {"text": "a preview"}]}, ME, {})
    assert text == "see\n\n[shared, by Bob]\n> do it\n> now"
