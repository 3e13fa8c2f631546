"""Event streams that go on where they were: every delivery after the id that a client names, each once, in order."""

from __future__ import annotations

import asyncio
import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from assistant.bridges.terminal.bridge import TerminalBridge
from assistant.bridges.terminal.feed import DeliveryMark
from assistant.core.bridge_api import OutgoingPart, TurnEvent
from assistant.core.errors import RecipientNotConnected, UsageError
from assistant.core.records import OutgoingMessage
from assistant.web.routes_chat import _Streams
from tests.support.control_api import open_terminal
from tests.support.web_api import ApiClient, LiveApi, StreamEvent, run_web_api


def bodies(events: list[StreamEvent]) -> list[str]:
    return [event.data["body"] for event in events]


async def told(
    caller: ApiClient, count: int, last: str | int | None = None, *, confirm: bool = True
) -> list[StreamEvent]:
    """So many deliveries of a new stream."""
    async with caller.events(last) as stream:
        events = []
        for _ in range(count):
            events.append(await stream.next_delivery())
            if confirm:
                assert await caller.confirm(events[-1])
        return events


async def said(it: LiveApi, *texts: str) -> None:
    for text in texts:
        await it.tcp.say(text)
        await it.wait_idle()


def notices(it: LiveApi, *keys: str, session: str = "main", bridge: str = "terminal", day: int = 0) -> list[int]:
    """What waits to be delivered, from so many days on; their ids."""
    now = it.app.started_at + timedelta(days=day)
    items = [
        it.app.stores.outbox.push(OutgoingMessage(key, session, "owner", bridge, session, key, "notice"), now)
        for key in keys
    ]
    it.app.dispatcher.wake()
    return [item.id for item in items]


async def open_items(it: LiveApi) -> list[str]:
    """Keys of what is not confirmed once everything that could go has gone."""
    await it.app.dispatcher.flush()
    return [item.outgoing.key for item in it.app.stores.outbox.pending_items("terminal")]


async def test_an_id_is_given_with_hello_and_with_each_delivery(tmp_path: Path) -> None:
    async with run_web_api(tmp_path, "one") as it, it.tcp.events() as stream:
        assert stream.hello is not None and stream.hello.id == "0"
        await it.tcp.say("hi")
        event = await stream.next_delivery()
        assert event.id == event.data["id"] != "0"


async def test_events_that_come_together_are_sent_together() -> None:
    with open_terminal() as terminal:
        frames = _Streams(terminal).frames("main", None, None, as_html=False)
        assert (await anext(frames)).startswith(b"event: hello")
        for text in ("A fine ", "walk.", "." * 65_536, " "):
            terminal.show(TurnEvent("delta", "main", "t1", {"text": text}), "main")
        together = await anext(frames)
        assert together.count(b"event: delta") == 3 and b'"A fine "' in together
        assert (await anext(frames)).count(b"event: delta") == 1
        await frames.aclose()  # type: ignore[attr-defined]


async def test_after_a_killed_connection_nothing_is_missing_and_nothing_comes_twice(tmp_path: Path) -> None:
    async with run_web_api(tmp_path, "one", "two", "three", "four") as it:
        async with it.tcp.events() as stream:
            await said(it, "1")
            first = await stream.next_delivery()
        # The connection is gone: the first was never confirmed, the next two come while nobody listens.
        await said(it, "2", "3")
        async with it.tcp.events(first.id) as stream:
            second, third = await stream.next_delivery(), await stream.next_delivery()
            assert await it.tcp.confirm(second) and await it.tcp.confirm(third)
            await said(it, "4")
            fourth = await stream.next_delivery()
        assert bodies([second, third, fourth]) == ["two", "three", "four"]
        async with it.tcp.events(fourth.id) as stream:
            assert await open_items(it) == []
            notices(it, "later")
            assert (await stream.next_delivery()).data["body"] == "later"


async def test_after_a_restart_nothing_is_missing_and_nothing_comes_twice(tmp_path: Path) -> None:
    async with run_web_api(tmp_path, "one", "two") as it:
        async with it.tcp.events() as stream:
            await said(it, "1")
            first = await stream.next_delivery()
        await said(it, "2")
    async with run_web_api(tmp_path, "three") as it, it.tcp.events(first.id) as stream:
        second = await stream.next_delivery()
        assert await it.tcp.confirm(second)
        await said(it, "3")
        assert bodies([second, await stream.next_delivery()]) == ["two", "three"]
    async with run_web_api(tmp_path) as it, it.tcp.events(second.id) as stream:
        assert bodies([await stream.next_delivery()]) == ["three"]


async def test_what_another_terminal_confirmed_meanwhile_is_given_too(tmp_path: Path) -> None:
    async with run_web_api(tmp_path, "one", "two") as it:
        await said(it, "1")
        (first,) = await told(it.tcp, 1)
        await said(it, "2")
        (second,) = await told(it.socket, 1)
        assert bodies(await told(it.tcp, 1, first.id, confirm=False)) == ["two"]
        assert bodies(await told(it.tcp, 2, 0, confirm=False)) == ["one", "two"]
        assert second.id > first.id


async def test_a_new_client_is_given_what_waits_and_not_what_was_confirmed(tmp_path: Path) -> None:
    async with run_web_api(tmp_path, "one", "two") as it:
        await said(it, "1")
        await told(it.tcp, 1)
        await said(it, "2")
        async with it.tcp.events() as stream:
            assert (await stream.next_delivery()).data["body"] == "two"


async def test_a_client_that_only_heard_hello_misses_nothing(tmp_path: Path) -> None:
    async with run_web_api(tmp_path, "one", "two") as it:
        await said(it, "1")
        async with it.socket.events(inbox_id=999) as other, it.tcp.events() as stream:
            assert other.hello is not None and stream.hello is not None
        await said(it, "2")
        assert bodies(await told(it.tcp, 2, stream.hello.id)) == ["one", "two"]


async def test_i8_an_id_that_is_not_there_yet_confirms_nothing(tmp_path: Path) -> None:
    """As a client has it that knew the home before a backup of it was restored."""
    async with run_web_api(tmp_path, "one") as it, it.tcp.events("9" * 18) as stream:
        assert stream.hello is not None and stream.hello.id == "0"
        await it.tcp.say("hi")
        assert (await stream.next_delivery()).data["body"] == "one"


async def test_i8_a_place_holds_where_its_delivery_went_elsewhere(tmp_path: Path) -> None:
    async with run_web_api(tmp_path) as it:
        outbox, now = it.app.stores.outbox, it.app.started_at
        (elsewhere,) = notices(it, "from elsewhere", bridge="telegram")
        notices(it, "first", day=1)
        (mine,) = notices(it, "mine", day=2)
        _, last = await told(it.tcp, 2)
        outbox.redirect(mine, "telegram", "1001", now)
        outbox.redirect(elsewhere, "terminal", "main", now)
        notices(it, "new", day=3)
        assert bodies(await told(it.tcp, 2, last.id)) == ["from elsewhere", "new"]


@pytest.mark.parametrize("later", [("e",), ("e", "f"), ("e", "f", "g")])
async def test_i8_ids_that_a_restored_home_gives_again_are_not_taken_for_those_of_before(
    tmp_path: Path, later: tuple[str, ...]
) -> None:
    home, backup = tmp_path / "home", tmp_path / "backup"
    async with run_web_api(home) as it:
        notices(it, "a", "b")
        _, before = await told(it.tcp, 2)
    shutil.copytree(home, backup)
    async with run_web_api(home) as it:
        notices(it, "c", "d", day=1)
        _, lost = await told(it.tcp, 2, before.id)
    shutil.rmtree(home)
    shutil.copytree(backup, home)
    async with run_web_api(home) as it:
        ids = notices(it, *later, day=2)
        assert ids[0] < DeliveryMark.parse(lost.id).id
        assert bodies(await told(it.tcp, len(later), lost.id, confirm=False)) == list(later)
        last = (await told(it.tcp, len(later), before.id))[-1]
        notices(it, "z", day=3)
        assert bodies(await told(it.tcp, 1, last.id)) == ["z"]


async def test_confirming_what_was_confirmed_is_told_from_confirming_what_never_was(tmp_path: Path) -> None:
    async with run_web_api(tmp_path) as it:
        notices(it, "a")
        (event,) = await told(it.tcp, 1)
        await it.app.dispatcher.flush()
        assert not await it.tcp.confirm(event)
        theirs = OutgoingMessage("b", "peer:kept:7", "peer:kept:7", "kept", "7", "not yours", "notice")
        it.app.stores.outbox.push(theirs, it.app.started_at)
        for key in ("b", "never", "a "):
            answer = await it.tcp.request("POST", "/v1/deliveries/ack", json={"key": key})
            assert answer.status_code == 404
            assert f"no delivery {key!r}" in answer.json()["error"]


async def test_what_is_confirmed_before_it_is_sent_is_not_sent_again(tmp_path: Path) -> None:
    async with run_web_api(tmp_path) as it:
        terminal = it.app.terminal
        notices(it, "a", "b")
        with terminal.attach("main", after=DeliveryMark(0)):
            # Nothing ran yet between attaching and this: the pump did not ask.
            assert terminal.acknowledge("a") and terminal.acknowledge("b")
            with pytest.raises(UsageError, match="no delivery 'c'"):
                terminal.acknowledge("c")
        assert await open_items(it) == []


async def test_deliveries_come_in_the_order_of_their_ids_however_they_are_sent(tmp_path: Path) -> None:
    async with run_web_api(tmp_path) as it:
        outbox = it.app.stores.outbox
        terminal = TerminalBridge(outbox)
        for key in ("a", "b", "c"):
            outbox.push(OutgoingMessage(key, "main", "owner", "terminal", "main", key), it.app.started_at)
        items = {item.outgoing.key: item for item in outbox.pending_items("terminal")}
        for attached_first in (("a", "c"), ("c", "a"), ("b", "c", "a")):
            with terminal.attach("main") as attached:
                sends = [asyncio.create_task(terminal.send(OutgoingPart(items[key], 1, key))) for key in attached_first]
                await asyncio.sleep(0)
                got = [attached.queue.get_nowait() for _ in range(attached.queue.qsize())]
                given = [event[1]["key"] for event in got if event is not None and event[0] == "deliver"]
                assert given == ["a", "b", "c"]
            assert all(
                isinstance(gone, RecipientNotConnected) for gone in await asyncio.gather(*sends, return_exceptions=True)
            )


async def test_what_was_sent_on_from_another_bridge_is_not_passed_over(tmp_path: Path) -> None:
    async with run_web_api(tmp_path) as it:
        (elsewhere,) = notices(it, "from elsewhere", bridge="telegram")
        notices(it, "mine")
        (mine,) = await told(it.tcp, 1)
        assert elsewhere < DeliveryMark.parse(mine.id).id
        it.app.stores.outbox.redirect(elsewhere, "terminal", "main", it.app.started_at)
        it.app.dispatcher.wake("terminal")
        assert bodies(await told(it.tcp, 1, mine.id)) == ["from elsewhere"]


async def test_a_client_that_was_away_for_long_is_given_all_of_it_in_pages(tmp_path: Path) -> None:
    async with run_web_api(tmp_path) as it:
        keys = [f"n{number}" for number in range(1100)]
        ids = notices(it, *keys)
        got: list[StreamEvent] = []
        pages = 0
        while len(got) < len(keys):
            pages += 1
            async with it.tcp.events(got[-1].id if got else 0) as stream:
                if pages < 3:
                    got += [event for event in await stream.remaining_events() if event.name == "deliver"]
                else:
                    got += [await stream.next_delivery() for _ in range(100)]
        assert [DeliveryMark.parse(event.id).id for event in got] == ids
        async with it.tcp.events(got[-1].id):
            assert await open_items(it) == []


async def test_what_waits_is_given_in_order_however_much_waits_for_other_sessions(tmp_path: Path) -> None:
    async with run_web_api(tmp_path) as it:
        outbox, now = it.app.stores.outbox, it.app.started_at
        for number in range(510):
            outbox.push(OutgoingMessage(f"n{number}", "thread:b", "owner", "terminal", "thread:b", "news"), now)
        items = [outbox.push(OutgoingMessage(key, "main", "owner", "terminal", "main", key), now) for key in ("a", "b")]
        terminal = TerminalBridge(outbox)
        with terminal.attach("main") as attached:
            send = asyncio.create_task(terminal.send(OutgoingPart(items[1], 1, "b")))
            await asyncio.sleep(0)
            got = [attached.queue.get_nowait() for _ in range(attached.queue.qsize())]
        given = [event[1]["key"] for event in got if event is not None and event[0] == "deliver"]
        assert given == ["a", "b"]
        assert isinstance(*await asyncio.gather(send, return_exceptions=True), RecipientNotConnected)


async def test_other_sessions_and_other_answers_stay_out_of_a_stream(tmp_path: Path) -> None:
    async with run_web_api(tmp_path, "for a", "for b") as it:
        async with it.tcp.events() as stream, it.tcp.events(session="thread:b") as other:
            await it.tcp.say("b", "thread:b")
            await it.wait_idle()
            (for_b,) = [await other.next_delivery()]
            assert await it.tcp.confirm(for_b)
            wanted = await it.tcp.say("a")
            assert (await stream.next_delivery()).data["inbox_id"] == wanted
        async with it.tcp.events(0, inbox_id=wanted) as only:
            assert (await only.next_delivery()).data["inbox_id"] == wanted


async def test_the_stored_reply_follows_a_stream_that_broke_off_in_mid_turn(tmp_path: Path) -> None:
    """Live text is provisional and is not repeated."""
    async with run_web_api(tmp_path, "the whole answer") as it:
        async with it.tcp.events() as stream:
            assert stream.hello is not None
            await it.tcp.say("hi")
            while (await stream.next_event()).name != "turn":
                pass
        await it.wait_idle()
        async with it.tcp.events(stream.hello.id) as again:
            event = await again.next_event()
            assert (event.name, event.data["body"]) == ("deliver", "the whole answer")


async def test_who_connects_is_told_which_turn_runs(tmp_path: Path) -> None:
    """What a page showed of a turn that ended while it was away is not shown for ever."""
    async with run_web_api(tmp_path, "one") as it:
        it.model.gate = asyncio.Event()
        async with it.tcp.events() as stream:
            assert stream.hello is not None and stream.hello.data["turn"] == ""
            await it.tcp.say("Hello?")
            started = await stream.next_event()
            assert (started.name, started.data["state"]) == ("turn", "started")
            async with it.tcp.events() as other:
                assert other.hello is not None and other.hello.data["turn"] == started.data["turn"]
            it.model.gate.set()
            await stream.next_delivery()
        await it.wait_idle()
        async with it.tcp.events() as after:
            assert after.hello is not None and after.hello.data["turn"] == ""
