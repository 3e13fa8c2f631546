"""What goes out over the Matrix bridge, to a real Synapse."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from assistant.bridges.matrix.bridge import login
from assistant.core.errors import BridgeError
from assistant.core.messages import Media
from tests.support.hostile_texts import hostile_text
from tests.support.loop_texts import texts_parsed_on_the_loop
from tests.support.matrix_bot import MatrixBot, MatrixInboundRecorder, open_direct_room, outgoing_part, turn_event
from tests.support.matrix_proxy import FaultyMatrixProxy
from tests.support.matrix_users import MatrixUser
from tests.support.synapse import Synapse


async def test_an_answer_is_formatted_and_calls_nobody(bot: MatrixBot, erik: MatrixUser) -> None:
    room = await open_direct_room(bot, erik, MatrixInboundRecorder())
    bridge = bot.bridge()
    await bridge.send(outgoing_part(room, "A **bold** <b>claim</b>\n\n- one", key="a"))
    await bridge.send(outgoing_part(room, "plain", key="b"))
    await bridge.aclose()
    await erik.sync_until(lambda: len(erik.messages(room, bot.user)) == 2)
    bold, plain = (one["content"] for one in erik.messages(room, bot.user))
    assert "<strong>bold</strong> &lt;b&gt;claim&lt;/b&gt;" in bold["formatted_body"]
    assert "formatted_body" not in plain and plain["m.mentions"] == {}


async def test_a_long_part_is_formatted_for_matrix_beside_the_loop(
    bot: MatrixBot, erik: MatrixUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = await open_direct_room(bot, erik, MatrixInboundRecorder())
    bridge = bot.bridge()
    with texts_parsed_on_the_loop(monkeypatch) as lengths:
        for key, text in (("a", "Short."), ("b", hostile_text("brackets", 9_000))):
            await bridge.send(outgoing_part(room, text, key=key))
    await bridge.aclose()
    assert lengths == [len("Short.")]


async def test_f36_a_resend_is_shown_once_after_a_restart_too(bot: MatrixBot, erik: MatrixUser) -> None:
    room = await open_direct_room(bot, erik, MatrixInboundRecorder())
    for _ in range(2):
        bridge = bot.bridge()
        await bridge.send(outgoing_part(room, "the answer"))
        await bridge.aclose()
    bridge = bot.bridge()
    await bridge.send(outgoing_part(room, "the answer", key="reply:2"))
    await bridge.send(outgoing_part(room, "another home's answer"))
    await bridge.aclose()
    await erik.sync_until(lambda: "another home's answer" in erik.texts(room, bot.user))
    assert erik.texts(room, bot.user) == ["the answer", "the answer", "another home's answer"]


async def test_a_file_goes_out_once_under_its_name(bot: MatrixBot, erik: MatrixUser) -> None:
    room = await open_direct_room(bot, erik, MatrixInboundRecorder())
    media = Media("file", "text/plain", "list.txt", 4, base64.b64encode(b"milk").decode())
    for one in (
        outgoing_part(room, "", media=media),
        outgoing_part(room, "", media=media),
        outgoing_part(room, "the end", key="reply:2"),
    ):
        bridge = bot.bridge()
        await bridge.send(one)
        await bridge.aclose()
    await erik.sync_until(lambda: "the end" in erik.texts(room, bot.user))
    sent, _ = erik.messages(room, bot.user)
    assert (sent["content"]["msgtype"], sent["content"]["body"]) == ("m.file", "list.txt")
    server, media_id = sent["content"]["url"].removeprefix("mxc://").split("/")
    got = await erik.http.get(f"/_matrix/client/v1/media/download/{server}/{media_id}")
    assert got.content == b"milk"


async def test_live_text_becomes_the_answer(bot: MatrixBot, erik: MatrixUser) -> None:
    door = MatrixInboundRecorder()
    room = await open_direct_room(bot, erik, door)
    async with bot.run_bridge(door) as bridge:
        bridge.show(turn_event("turn", state="started"), room)
        await erik.sync_until(lambda: erik.typing.get(room))
        bridge.show(turn_event("delta", text="Let me"), room)
        await erik.sync_until(lambda: erik.texts(room, bot.user) == ["Let me"])
        bridge.show(turn_event("discard"), room)
        await erik.sync_until(lambda: erik.texts(room, bot.user) == ["…"])
        bridge.show(turn_event("delta", text="It is **nine**"), room)
        await erik.sync_until(lambda: erik.texts(room, bot.user) == ["It is **nine**"])
        await bridge.send(outgoing_part(room, "A reminder", key="n", kind="notice"))
        bridge.show(turn_event("turn", state="answered"), room)
        await bridge.send(outgoing_part(room, "It is **nine** o'clock."))
        await bridge.send(outgoing_part(room, "Second part", number=2))
        await erik.sync_until(lambda: "Second part" in erik.texts(room, bot.user))
    assert erik.texts(room, bot.user) == ["It is **nine** o'clock.", "A reminder", "Second part"]


async def test_a_turn_that_was_stopped_leaves_no_text(bot: MatrixBot, erik: MatrixUser) -> None:
    door = MatrixInboundRecorder()
    room = await open_direct_room(bot, erik, door)
    async with bot.run_bridge(door) as bridge:
        bridge.show(turn_event("turn", state="started"), room)
        bridge.show(turn_event("delta", text="Once upon"), room)
        await erik.sync_until(lambda: erik.texts(room, bot.user) == ["Once upon"])
        bridge.show(turn_event("turn", state="aborted"), room)
        await erik.sync_until(lambda: erik.texts(room, bot.user) == [])
        await bridge.send(outgoing_part(room, "Another time."))
        await erik.sync_until(lambda: bool(erik.texts(room, bot.user)))
    assert erik.texts(room, bot.user) == ["Another time."]


@pytest.mark.parametrize("resumed", [True, False])
async def test_live_text_of_a_killed_process_is_replaced_by_the_answer(
    bot: MatrixBot, erik: MatrixUser, resumed: bool
) -> None:
    door = MatrixInboundRecorder()
    room = await open_direct_room(bot, erik, door)
    async with bot.run_bridge(door) as bridge:
        bridge.show(turn_event("delta", text="Once upon"), room)
        await erik.sync_until(lambda: erik.texts(room, bot.user) == ["Once upon"])
        # Nothing is told to a process that is killed: its client is just gone.
    async with bot.run_bridge(door) as bridge:
        if resumed:
            bridge.show(turn_event("delta", text="Twice upon"), room)
            await erik.sync_until(lambda: erik.texts(room, bot.user) == ["Twice upon"])
        await bridge.send(outgoing_part(room, "The end."))
        await erik.sync_until(lambda: "The end." in erik.texts(room, bot.user))
    assert erik.texts(room, bot.user) == ["The end."]
    async with bot.run_bridge(door) as bridge:
        await bridge.send(outgoing_part(room, "More.", key="reply:2"))
    await erik.sync_until(lambda: "More." in erik.texts(room, bot.user))
    assert erik.texts(room, bot.user) == ["The end.", "More."]


async def test_a_rate_limit_says_how_long_to_wait(bot: MatrixBot, erik: MatrixUser) -> None:
    room = await open_direct_room(bot, erik, MatrixInboundRecorder())
    limit = {"messages_per_second": 1, "burst_count": 1}
    await erik.request("POST", f"/v1/users/{bot.user}/override_ratelimit", limit, base="/_synapse/admin")
    bridge = bot.bridge()
    with pytest.raises(BridgeError) as refused:
        for number in range(10):
            await bridge.send(outgoing_part(room, "quick", key=f"{number}"))
    await bridge.aclose()
    assert refused.value.retry_after and not refused.value.ambiguous


async def test_f39_a_token_that_is_gone_says_what_to_do(bot: MatrixBot, homeserver: Synapse) -> None:
    bot.token = "syt_gone"
    bridge = bot.bridge()
    for asked in (bridge.check, lambda: bridge.run(MatrixInboundRecorder())):
        with pytest.raises(BridgeError, match="assistant bridge add matrix"):
            await asked()
    await bridge.aclose()


async def test_the_account_tells_who_it_is(bot: MatrixBot) -> None:
    assert await bot.bridge().check() == bot.user
    for other in (replace(bot, device="OTHER"), replace(bot, user="@other:test.example")):
        with pytest.raises(BridgeError, match="belongs to"):
            await other.bridge().check()


async def test_what_a_room_never_takes_is_told_apart(bot: MatrixBot, erik: MatrixUser) -> None:
    mine = await erik.create_room()
    there = await open_direct_room(bot, erik, MatrixInboundRecorder())
    bridge = bot.bridge()
    for room, text in ((mine, "hello"), ("!nowhere:test.example", "hello"), (there, "x" * 70_000)):
        with pytest.raises(BridgeError, match="refused") as refused:
            await bridge.send(outgoing_part(room, text))
        assert refused.value.refused and not refused.value.ambiguous
    await bridge.aclose()


async def test_a_log_in_makes_a_device_or_says_that_the_password_is_wrong(homeserver: Synapse, bot: MatrixBot) -> None:
    user, password = homeserver.register("nocturne")
    made = await login(homeserver.url, user, password)
    bot.user, bot.device, bot.token = user, made.device, made.token
    assert made.user == user == await bot.bridge().check()
    with pytest.raises(BridgeError, match="password"):
        await login(homeserver.url, bot.user, "wrong")


async def test_a_server_that_is_not_there_leaves_no_doubt_about_a_message(bot: MatrixBot) -> None:
    bridge = bot.bridge("http://127.0.0.1:9")
    with pytest.raises(BridgeError) as refused:
        await bridge.send(outgoing_part("!room:test.example", "hello"))
    await bridge.aclose()
    assert not refused.value.ambiguous


@pytest.fixture
async def proxy(homeserver: Synapse) -> AsyncIterator[FaultyMatrixProxy]:
    proxy = FaultyMatrixProxy(homeserver.url)
    await proxy.start()
    yield proxy
    await proxy.aclose()


async def test_live_text_waits_for_an_answer_that_was_refused_at_first(
    bot: MatrixBot, erik: MatrixUser, proxy: FaultyMatrixProxy
) -> None:
    door = MatrixInboundRecorder()
    room = await open_direct_room(bot, erik, door)
    async with bot.run_bridge(door, bot.bridge(proxy.url)) as bridge:
        bridge.show(turn_event("delta", text="It is"), room)
        await erik.sync_until(lambda: erik.texts(room, bot.user) == ["It is"])
        proxy.refuse_sends(1, 0.5)
        with pytest.raises(BridgeError) as refused:
            await bridge.send(outgoing_part(room, "It is nine."))
        assert refused.value.retry_after == 0.5
        await bridge.send(outgoing_part(room, "It is nine."))
        await erik.sync_until(lambda: erik.texts(room, bot.user) == ["It is nine."])


@pytest.mark.parametrize("path", ["/draft-", "/notice-"])
async def test_live_text_of_which_nobody_knows_never_covers_the_answer(
    bot: MatrixBot, erik: MatrixUser, proxy: FaultyMatrixProxy, path: str
) -> None:
    door = MatrixInboundRecorder()
    room = await open_direct_room(bot, erik, door)
    proxy.cut_connections("after", path=path)
    async with bot.run_bridge(door, bot.bridge(proxy.url)) as bridge:
        bridge.show(turn_event("delta", text="It is"), room)
        await erik.sync_until(lambda: erik.texts(room, bot.user) == ["It is"])
        if path == "/notice-":
            bridge.show(turn_event("delta", text=" about"), room)
            await erik.sync_until(lambda: erik.texts(room, bot.user) == ["It is about"])
        await bridge.send(outgoing_part(room, "It is nine."))
        await erik.sync_until(lambda: erik.texts(room, bot.user) == ["It is nine."])
    (answer,) = erik.messages(room, bot.user)
    assert answer["content"]["body"] == "It is nine."
