"""The Telegram bridge against a strict Bot API, without an app: what it sends and shows, and what it says of what went
wrong."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from assistant.bridges.telegram.bridge import TelegramBridge
from assistant.core.bridge_api import TurnEvent
from assistant.core.errors import BridgeError
from assistant.core.messages import Media
from tests.strict.telegram import BotApiError, StrictTelegram
from tests.strict.telegram_people import OWNER, ROOM
from tests.support.telegram_bridge import (
    PIXEL,
    TelegramInboundRecorder,
    make_telegram_bridge,
    outgoing_telegram_part,
    run_telegram_bridge,
)


def event(kind: Any, turn: str = "t1", **data: Any) -> TurnEvent:
    return TurnEvent(kind, "main", turn, data)


STARTED = event("turn", state="started", message_ids=[1])
ANSWERED = event("turn", state="answered", message_ids=[1])


# -------------------------------------------------------------------------------------------------------- what goes out


async def test_markdown_is_shown_as_what_it_means(server: StrictTelegram, bridge: TelegramBridge) -> None:
    await bridge.send(
        outgoing_telegram_part("# Plan\n\n- **buy** 😀 _rope_\n- `knot` <b> & [map](https://m.example)\n\n> said")
    )
    sent = server.sent[0]
    assert sent.text == "Plan\n\n• buy 😀 rope\n• knot <b> & map\n\nsaid"
    assert sent.entities == [
        ("bold", "Plan"),
        ("bold", "buy"),
        ("italic", "rope"),
        ("code", "knot"),
        ("text_link", "map"),
        ("blockquote", "said"),
    ]
    assert sent.links == ["https://m.example"]
    assert json.loads(server.calls[0][1]["link_preview_options"]) == {"is_disabled": True}


async def test_the_longest_part_fits(server: StrictTelegram, bridge: TelegramBridge) -> None:
    most = bridge.capabilities.max_length
    assert most is not None
    await bridge.send(outgoing_telegram_part("😀" * (most // 2)))
    await bridge.send(outgoing_telegram_part("- a\n" * (most // 4)))
    assert server.complaints == []


async def test_what_grows_beyond_the_limit_goes_out_as_it_is_written(
    server: StrictTelegram, bridge: TelegramBridge
) -> None:
    table = "|a|b|\n|-|-|\n|" + "x" * 30 + "|y|\n" + "|1|2|\n" * 600
    await bridge.send(outgoing_telegram_part(table))
    assert (server.sent[0].text, server.sent[0].entities, server.complaints) == (table, [], [])


async def test_what_telegram_cannot_format_goes_out_as_it_is_written(
    server: StrictTelegram, bridge: TelegramBridge
) -> None:
    server.trouble("sendMessage", BotApiError(400, "Bad Request: can't parse entities: unsupported type"))
    await bridge.send(outgoing_telegram_part("**bold**"))
    assert [(one.text, one.entities) for one in server.sent] == [("**bold**", [])]


async def test_a_reply_goes_to_its_topic_and_past_one_that_is_gone(
    server: StrictTelegram, bridge: TelegramBridge
) -> None:
    server.topics.add((ROOM, 9))
    await bridge.send(outgoing_telegram_part("there", f"{ROOM}:9"))
    server.topics.clear()
    await bridge.send(outgoing_telegram_part("here", f"{ROOM}:9"))
    assert [(one.text, one.thread) for one in server.sent] == [("there", 9), ("here", None)]


async def test_a_group_that_got_a_new_number_is_reached_under_it(
    server: StrictTelegram, bridge: TelegramBridge
) -> None:
    server.migrated[-5] = ROOM
    await bridge.send(outgoing_telegram_part("still here", "-5"))
    assert server.texts(ROOM) == ["still here"]


async def test_files_go_out_as_what_they_are(server: StrictTelegram, bridge: TelegramBridge) -> None:
    encoded = [base64.b64encode(data).decode() for data in (PIXEL, b"words", b"no picture")]
    await bridge.send(outgoing_telegram_part(media=Media("image", "image/png", "owl.png", data=encoded[0])))
    await bridge.send(outgoing_telegram_part(media=Media("file", "text/plain", "notes.txt", data=encoded[1])))
    await bridge.send(outgoing_telegram_part(media=Media("image", "image/png", "broken.png", data=encoded[2])))
    assert [(one.kind, one.file_name, one.file) for one in server.sent] == [
        ("photo", "owl.png", PIXEL),
        ("document", "notes.txt", b"words"),
        ("document", "broken.png", b"no picture"),
    ]


# ------------------------------------------------------------------------------------------------------ what goes wrong


@pytest.mark.parametrize(
    ("trouble", "what", "retry_after", "shown"),
    [
        ("before", "ambiguous", None, 0),
        ("after", "ambiguous", None, 1),
        (BotApiError(429, "Too Many Requests: retry after 7", retry_after=7), "", 7.0, 0),
        (BotApiError(500, "Internal Server Error: restart"), "ambiguous", None, 0),
        (BotApiError(502, "Bad Gateway"), "ambiguous", None, 0),
        (BotApiError(503, "Service Unavailable"), "", None, 0),
        (BotApiError(401, "Unauthorized"), "", None, 0),
        (BotApiError(403, "Forbidden: bot was blocked by the user"), "refused", None, 0),
        (BotApiError(400, "Bad Request: chat not found"), "refused", None, 0),
        (BotApiError(413, "Request Entity Too Large"), "refused", None, 0),
        (BotApiError(403, ""), "", None, 0),
        (BotApiError(400, ""), "", None, 0),
    ],
)
async def test_f36_what_may_have_arrived_or_is_refused_is_said_and_nothing_is_tried_twice(
    server: StrictTelegram, bridge: TelegramBridge, trouble: Any, what: str, retry_after: float | None, shown: int
) -> None:
    """What refuses without a word of Telegram's is a proxy."""
    server.trouble("send", trouble)
    with pytest.raises(BridgeError) as caught:
        await bridge.send(outgoing_telegram_part())
    assert (caught.value.ambiguous, caught.value.refused) == (what == "ambiguous", what == "refused")
    assert caught.value.retry_after == retry_after
    assert len(server.sent) == shown
    assert [method for method, _ in server.calls].count("sendmessage") == 1


async def test_f36_an_answer_that_does_not_come_in_time_may_have_arrived(server: StrictTelegram) -> None:
    server.gates["sendmessage"] = asyncio.Event()
    bridge = make_telegram_bridge(server, timeout=0.05)
    with pytest.raises(BridgeError) as caught:
        await bridge.send(outgoing_telegram_part())
    await bridge.aclose()
    assert caught.value.ambiguous


async def test_where_nothing_connects_nothing_arrived(server: StrictTelegram, bridge: TelegramBridge) -> None:
    await server.go_offline()
    with pytest.raises(BridgeError) as caught:
        await bridge.send(outgoing_telegram_part())
    assert not caught.value.ambiguous
    await server.go_online()
    await bridge.send(outgoing_telegram_part("back"))
    assert server.texts() == ["back"]


async def test_where_no_chat_is_named_nothing_is_sent(server: StrictTelegram, bridge: TelegramBridge) -> None:
    with pytest.raises(BridgeError, match="is not a chat of Telegram") as caught:
        await bridge.send(outgoing_telegram_part(target="@ann"))
    assert caught.value.refused
    assert server.calls == []


async def test_f39_a_wrong_token_says_what_to_do(server: StrictTelegram) -> None:
    bridge = make_telegram_bridge(server, token="123456:another")
    for call in (bridge.check(), bridge.run(TelegramInboundRecorder()), bridge.send(outgoing_telegram_part())):
        with pytest.raises(BridgeError, match="assistant bridge add telegram") as caught:
            await call
        assert not caught.value.ambiguous
    await bridge.aclose()


@pytest.mark.parametrize("token", ["", "hello", "1:a/../2:b", "1:a\n"])
def test_f39_what_is_no_token_is_told_before_anything_is_asked(token: str) -> None:
    with pytest.raises(BridgeError, match="not a bot's token") as caught:
        TelegramBridge(token)
    assert not token or token not in str(caught.value)


async def test_f39_a_second_assistant_on_the_bot_is_told_of(server: StrictTelegram, bridge: TelegramBridge) -> None:
    other = make_telegram_bridge(server)
    async with run_telegram_bridge(bridge, TelegramInboundRecorder()) as first:
        await server.until(lambda: server.polling)
        async with run_telegram_bridge(other, TelegramInboundRecorder()):
            with pytest.raises(BridgeError, match="Another program receives this bot's messages too"):
                await first
    await other.aclose()


async def test_f39_a_webhook_is_told_of(server: StrictTelegram, bridge: TelegramBridge) -> None:
    server.webhook = True
    door = TelegramInboundRecorder()
    with pytest.raises(BridgeError, match="webhook"):
        await bridge.run(door)
    assert door.connections == 0


async def test_the_token_is_nowhere_to_be_read(server: StrictTelegram, caplog: pytest.LogCaptureFixture) -> None:
    bridge = make_telegram_bridge(server)
    with caplog.at_level(logging.DEBUG):
        said = [await bridge.check(), repr(bridge)]
        for trouble in ("before", BotApiError(403, f"Forbidden: {server.token}"), BotApiError(500, "x")):
            server.trouble("send", trouble)  # type: ignore[arg-type]
            with pytest.raises(BridgeError) as caught:
                await bridge.send(outgoing_telegram_part())
            said += [str(caught.value), repr(caught.value), repr(caught.value.__cause__)]
        await bridge.aclose()
    assert [record for record in caplog.records if record.name == "httpx"]
    assert server.token not in caplog.text + "".join(said)


# ------------------------------------------------------------------------------------------------------- what is shown


def shown(server: StrictTelegram, kind: str, chat: int = OWNER) -> Callable[[], bool]:
    return lambda: any(one[:2] == (chat, kind) for one in server.timeline)


async def test_it_types_again_and_again_while_a_turn_runs_and_no_longer(server: StrictTelegram) -> None:
    bridge, door = make_telegram_bridge(server, typing_seconds=0.001), TelegramInboundRecorder()
    server.topics.add((ROOM, 9))
    async with run_telegram_bridge(bridge, door):
        await server.until(lambda: server.polling)
        bridge.show(STARTED, f"{ROOM}:9")
        await server.until(lambda: server.timeline.count((ROOM, "typing", "")) >= 3)
        bridge.show(ANSWERED, f"{ROOM}:9")
        await bridge.send(outgoing_telegram_part("done", f"{ROOM}:9"))
    await bridge.aclose()
    assert server.timeline[-1] == (ROOM, "message", "done")


async def test_the_answer_is_shown_as_it_grows(server: StrictTelegram) -> None:
    bridge, door = make_telegram_bridge(server, draft_seconds=0.001), TelegramInboundRecorder()
    async with run_telegram_bridge(bridge, door):
        await server.until(lambda: server.polling)
        bridge.show(STARTED, str(OWNER))
        bridge.show(event("delta", text="Once"), str(OWNER))
        await server.until(lambda: (OWNER, "draft", "Once") in server.timeline)
        bridge.show(event("delta", text=" upon a ti"), str(OWNER))
        await server.until(lambda: (OWNER, "draft", "Once upon a") in server.timeline)
        bridge.show(event("discard"), str(OWNER))
        bridge.show(event("delta", text="Now"), str(OWNER))
        await server.until(lambda: (OWNER, "draft", "Now") in server.timeline)
    await bridge.aclose()
    assert len({params["draft_id"] for method, params in server.calls if method == "sendmessagedraft"}) == 1
    assert server.complaints == []


async def test_a_draft_never_follows_the_answer(server: StrictTelegram) -> None:
    """One that Telegram takes its time over is waited for; what grew meanwhile is drawn no more."""
    bridge, door = make_telegram_bridge(server, draft_seconds=0.0), TelegramInboundRecorder()
    gate = server.gates["sendmessagedraft"] = asyncio.Event()
    async with run_telegram_bridge(bridge, door):
        await server.until(lambda: server.polling)
        bridge.show(STARTED, str(OWNER))
        bridge.show(event("delta", text="Once"), str(OWNER))
        await server.until(lambda: "sendmessagedraft" in [method for method, _ in server.calls])
        bridge.show(event("delta", text=" upon a ti"), str(OWNER))
        sending = asyncio.create_task(bridge.send(outgoing_telegram_part("Once upon a time")))
        await bridge.check()
        await bridge.check()
        assert "sendmessage" not in [method for method, _ in server.calls]
        gate.set()
        await sending
        bridge.show(event("delta", text=" a time"), str(OWNER))
        bridge.show(event("delta", text="ask"), str(ROOM))
        await bridge.send(outgoing_telegram_part("again", kind="notice"))
    await bridge.aclose()
    assert [one[1:] for one in server.timeline if one[1] != "typing"] == [
        ("draft", "Once"),
        ("message", "Once upon a time"),
        ("message", "again"),
    ]


async def test_where_telegram_wants_no_drafts_none_is_sent(server: StrictTelegram) -> None:
    bridge, door = make_telegram_bridge(server, draft_seconds=0.0), TelegramInboundRecorder()
    server.trouble("sendMessageDraft", BotApiError(400, "Bad Request: TEXTDRAFT_PEER_INVALID"))
    async with run_telegram_bridge(bridge, door):
        await server.until(lambda: server.polling)
        for target in (str(OWNER), str(ROOM)):
            bridge.show(STARTED, target)
            bridge.show(event("delta", text="Once"), target)
        await server.until(lambda: bool(server.complaints) and shown(server, "typing", ROOM)())
        bridge.show(event("delta", text=" upon a ti"), str(OWNER))
        await bridge.check()
        await bridge.check()
        await bridge.send(outgoing_telegram_part("Once upon"))
    await bridge.aclose()
    assert [method for method, _ in server.calls].count("sendmessagedraft") == 1


async def test_nothing_is_shown_where_nobody_is_connected(server: StrictTelegram) -> None:
    bridge = make_telegram_bridge(server)
    bridge.show(STARTED, str(OWNER))
    await bridge.check()
    await bridge.check()
    await bridge.aclose()
    bridge.show(STARTED, str(OWNER))
    await bridge.check()
    await bridge.check()
    await bridge.aclose()
    assert {method for method, _ in server.calls} == {"getme"}
