"""From the outbox to the bridges: one key, one body, and one bridge's trouble is its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from assistant.core.bridge_api import BridgeCapabilities, InboundPort, OutgoingPart, TurnEvent
from assistant.core.errors import BridgeError, RecipientNotConnected, StoreError
from assistant.core.records import InboxItem, IncomingMessage, OutgoingMessage, Turn
from assistant.gateway.dispatcher import Dispatcher
from assistant.store.script.outbox import StoredOutbox
from tests.support.dispatching import open_dispatcher
from tests.support.inbound import open_outbox, outgoing_message
from tests.support.scripted import RecordingBridge, SteppingClock

FORGETFUL = BridgeCapabilities(dedupe_seconds=0)


class BrokenBridge(RecordingBridge):
    async def run(self, door: InboundPort) -> None:
        raise BridgeError("the token is wrong")


class EmptyInbound:
    """A door for bridges that bring nothing."""

    delivery: Dispatcher

    def mark_connected(self, bridge: str) -> None:
        self.delivery.mark_connected(bridge)


def door_of(delivery: Dispatcher) -> Any:
    door = EmptyInbound()
    door.delivery = delivery
    return door


@pytest.fixture
def clock() -> SteppingClock:
    return SteppingClock()


@pytest.fixture
def outbox(tmp_path: Path, clock: SteppingClock) -> Iterator[StoredOutbox]:
    with open_outbox(tmp_path, clock) as opened:
        yield opened


async def test_what_is_pending_is_sent_in_order_and_marked(outbox: StoredOutbox, clock: SteppingClock) -> None:
    bridge = RecordingBridge()
    for key in ("a", "b"):
        outbox.push(outgoing_message(key), clock())
    delivery = open_dispatcher(outbox, {"kept": bridge}, clock)
    await delivery.flush()
    assert bridge.bodies == ["body of a", "body of b"]
    assert outbox.count_by_state().get("sent") == 2


async def test_a_key_keeps_its_first_body(outbox: StoredOutbox, clock: SteppingClock) -> None:
    bridge = RecordingBridge()
    outbox.push(outgoing_message("a"), clock())
    outbox.push(OutgoingMessage("a", "main", "owner", "kept", "main", "other words"), clock())
    await open_dispatcher(outbox, {"kept": bridge}, clock).flush()
    assert bridge.bodies == ["body of a"]


async def test_f36_an_interrupted_send_is_repeated_only_where_the_network_shows_a_key_once(
    outbox: StoredOutbox, clock: SteppingClock
) -> None:
    remembers, forgets = RecordingBridge("remembers"), RecordingBridge("forgets", FORGETFUL)
    for name in ("remembers", "forgets"):
        outbox.set_state(outbox.push(outgoing_message(name, name), clock()).id, "sending", clock())
    await open_dispatcher(outbox, {"remembers": remembers, "forgets": forgets}, clock).flush()
    assert (remembers.bodies, "body of forgets" in forgets.bodies) == (["body of remembers"], False)
    assert outbox.count_by_state().get("ambiguous") == 1


async def test_an_ambiguous_failure_is_not_sent_again_without_deduplication(
    outbox: StoredOutbox, clock: SteppingClock
) -> None:
    bridge = RecordingBridge(capabilities=FORGETFUL, send_errors=[BridgeError("timed out", ambiguous=True)])
    outbox.push(outgoing_message("a"), clock())
    delivery = open_dispatcher(outbox, {"kept": bridge}, clock)
    await delivery.flush()
    await delivery.flush()
    assert "body of a" not in bridge.bodies
    assert outbox.count_by_state().get("ambiguous") == 1


async def test_f39_a_bridge_that_cannot_start_turns_red_and_harms_nobody(
    outbox: StoredOutbox, clock: SteppingClock
) -> None:
    broken, well = BrokenBridge("broken"), RecordingBridge("well")
    delivery = open_dispatcher(outbox, {"broken": broken, "well": well}, clock)
    await delivery.start(door_of(delivery))
    outbox.push(outgoing_message("a", "well"), clock())
    delivery.wake()
    await well.delivered.wait()
    told = delivery.bridge_states()
    assert (told["broken"]["ok"], told["broken"]["error"]) == (False, "the token is wrong")
    assert (told["broken"]["state"], told["well"]["state"], told["well"]["ok"]) == ("failing", "connected", True)
    await delivery.stop()


@dataclass
class GatedBridge(RecordingBridge):
    """A network that neither takes nor refuses until its gate is opened."""

    asked: asyncio.Event = field(default_factory=asyncio.Event)
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    async def send(self, part: OutgoingPart) -> None:
        self.asked.set()
        await self.gate.wait()
        await super().send(part)


async def test_f39_a_bridge_that_takes_no_message_holds_up_no_other(outbox: StoredOutbox, clock: SteppingClock) -> None:
    held, well = GatedBridge("held"), RecordingBridge("well")
    delivery = open_dispatcher(outbox, {"held": held, "well": well}, clock)
    await delivery.start(door_of(delivery))
    outbox.push(outgoing_message("a", "held"), clock())
    delivery.wake()
    await held.asked.wait()
    outbox.push(outgoing_message("b", "well"), clock())
    delivery.wake()
    await well.delivered.wait()
    assert (held.bodies, well.bodies) == ([], ["body of b"])
    held.gate.set()
    await delivery.stop()
    assert held.bodies == ["body of a"]


async def test_a_disk_that_keeps_something_from_going_out_turns_its_bridge_red(
    tmp_path: Path, outbox: StoredOutbox, clock: SteppingClock
) -> None:
    bridge = RecordingBridge()
    outbox.push(outgoing_message("a"), clock())
    delivery = open_dispatcher(outbox, {"kept": bridge}, clock)
    (tmp_path / "script.db").rename(tmp_path / "away.db")
    with pytest.raises(StoreError):
        await delivery.flush()
    told = delivery.bridge_states()["kept"]
    assert (told["ok"], "is not there any more" in told["error"], bridge.bodies) == (False, True, [])
    (tmp_path / "away.db").rename(tmp_path / "script.db")
    clock.now += timedelta(minutes=1)
    await delivery.flush()
    assert (delivery.bridge_states()["kept"]["ok"], bridge.bodies) == (True, ["body of a"])


async def test_what_nobody_is_there_for_waits_until_somebody_attaches(
    outbox: StoredOutbox, clock: SteppingClock
) -> None:
    bridge = RecordingBridge(send_errors=[RecipientNotConnected()])
    outbox.push(outgoing_message("a"), clock())
    delivery = open_dispatcher(outbox, {"kept": bridge}, clock)
    await delivery.flush()
    await delivery.flush()
    assert bridge.bodies == []
    assert delivery.bridge_states()["kept"]["ok"]
    delivery.retry_held_back("kept")
    await delivery.flush()
    assert bridge.bodies == ["body of a"]


async def test_f33_what_happens_in_a_guests_session_is_shown_on_their_bridge_alone(
    outbox: StoredOutbox, clock: SteppingClock
) -> None:
    theirs, other = RecordingBridge("a"), RecordingBridge("b")
    delivery = open_dispatcher(outbox, {"a": theirs, "b": other}, clock)
    for session in ("main", "peer:a:1", "room:a:2"):
        delivery.show(TurnEvent("delta", session, "t", {"text": "hi"}))
    assert [event.session for event in theirs.events] == ["main", "peer:a:1", "room:a:2"]
    assert [event.session for event in other.events] == ["main"]


@dataclass
class EventRecordingBridge(RecordingBridge):
    """What was shown where: the text of a delta, the state of a turn."""

    shown: list[tuple[str, str]] = field(default_factory=list)

    def show(self, event: TurnEvent, target: str) -> None:
        self.shown.append((target, str(event.data.get("text") or event.data.get("state"))))


NOW = datetime(2026, 11, 20, 10, tzinfo=UTC)


def turn_from(id_: str, *targets: str) -> Turn:
    """A turn that answers a message from each of these places."""
    messages = [
        IncomingMessage("kept", target, "main", "owner", "7", "owner", "hi", target=target) for target in targets
    ]
    items = tuple(InboxItem(number, number, message, "running", NOW, id_) for number, message in enumerate(messages))
    return Turn(id_, "main", 1, "owner", "", "running", NOW, items)


async def test_i10_live_text_ends_in_mid_answer_where_the_answer_may_not_go_any_more(
    outbox: StoredOutbox, clock: SteppingClock
) -> None:
    """What is shown there is withdrawn, and nobody is typing any more."""
    bridge, denied = EventRecordingBridge(capabilities=BridgeCapabilities(edit=True)), set[str]()

    def allowed(outgoing: OutgoingMessage) -> tuple[str, str] | None:
        return None if outgoing.target in denied else (outgoing.bridge, outgoing.target)

    delivery = open_dispatcher(outbox, {"kept": bridge}, clock, allowed)
    with delivery.follow_turn(turn_from("t", "a", "b")):
        delivery.show(TurnEvent("delta", "main", "t", {"text": "one"}))
        denied.add("a")
        delivery.show(TurnEvent("delta", "main", "t", {"text": "two"}))
        delivery.show(TurnEvent("turn", "main", "t", {"state": "answered"}))
    assert [said for target, said in bridge.shown if target == "a"] == ["one", "aborted"]
    assert [said for target, said in bridge.shown if target == "b"] == ["one", "two", "answered"]


async def test_i10_what_happens_in_a_turn_is_shown_where_it_answers_and_at_no_other_turns_place(
    outbox: StoredOutbox, clock: SteppingClock
) -> None:
    bridge = EventRecordingBridge(capabilities=BridgeCapabilities())
    delivery = open_dispatcher(outbox, {"kept": bridge}, clock)
    with delivery.follow_turn(turn_from("t", "a")), delivery.follow_turn(turn_from("u", "b")):
        for turn, text in (("t", "one"), ("u", "two"), ("v", "of nobody's")):
            delivery.show(TurnEvent("delta", "main", turn, {"text": text}))
    assert bridge.shown == [("a", "one"), ("b", "two")]


async def test_f41_a_turn_that_ended_is_shown_nowhere_and_not_remembered(
    outbox: StoredOutbox, clock: SteppingClock
) -> None:
    bridge = EventRecordingBridge(capabilities=BridgeCapabilities())
    delivery = open_dispatcher(outbox, {"kept": bridge}, clock)
    with delivery.follow_turn(turn_from("t", "a")):
        pass
    delivery.show(TurnEvent("delta", "main", "t", {"text": "late"}))
    assert bridge.shown == []


async def test_f36_the_owner_is_told_once_of_what_may_have_arrived_and_is_given_the_choice(
    outbox: StoredOutbox, clock: SteppingClock
) -> None:
    lost = [BridgeError("timed out", ambiguous=True) for _ in range(2)]
    bridge, home = RecordingBridge(capabilities=FORGETFUL, send_errors=lost), RecordingBridge("terminal")
    item = outbox.push(outgoing_message("a"), clock())
    guests = outbox.push(OutgoingMessage("b", "peer:kept:7", "peer:kept:7", "kept", "7", "for them alone"), clock())
    delivery = open_dispatcher(outbox, {"kept": bridge, "terminal": home}, clock)
    for _ in range(2):
        await delivery.flush()
    assert [one.outgoing.key for one in bridge.sent] == [f"uncertain:{item.id}:1"]
    assert [one.outgoing.key for one in home.sent] == [f"uncertain:{guests.id}:1"]
    words = [button.command for button in bridge.sent[0].outgoing.buttons]
    assert words == [f"/deliveries {word} {item.id}" for word in ("again", "drop")]
    assert "for them alone" not in home.bodies[0]


async def test_f36_a_notice_that_may_have_arrived_is_shown_once_more_at_the_terminal(
    outbox: StoredOutbox, clock: SteppingClock
) -> None:
    lost = [BridgeError("timed out", ambiguous=True) for _ in range(3)]
    item = outbox.push(outgoing_message("a"), clock())
    bridge, home = RecordingBridge(capabilities=FORGETFUL, send_errors=lost), RecordingBridge("terminal")
    delivery = open_dispatcher(outbox, {"kept": bridge, "terminal": home}, clock)
    for _ in range(3):
        await delivery.flush()
    assert (outbox.count_by_state(), len(bridge.send_errors)) == ({"ambiguous": 2, "sent": 1}, 1)
    assert [one.outgoing.key for one in home.sent] == [f"uncertain:{item.id}:1:terminal"]
    assert [button.command for button in home.sent[0].outgoing.buttons] == [
        f"/deliveries {word} {item.id}" for word in ("again", "drop")
    ]


async def test_f36_a_notice_at_the_terminal_has_no_notice_of_its_own(
    outbox: StoredOutbox, clock: SteppingClock
) -> None:
    lost, doubt = BridgeError("no", refused=True), BridgeError("timed out", ambiguous=True)
    outbox.push(outgoing_message("a"), clock())
    bridge = RecordingBridge(capabilities=FORGETFUL, send_errors=[doubt, lost])
    home = RecordingBridge("terminal", capabilities=FORGETFUL, send_errors=[doubt])
    delivery = open_dispatcher(outbox, {"kept": bridge, "terminal": home}, clock)
    for _ in range(3):
        await delivery.flush()
    assert outbox.count_by_state() == {"ambiguous": 2, "failed": 1}


async def test_f36_what_is_in_doubt_a_second_time_is_told_again(outbox: StoredOutbox, clock: SteppingClock) -> None:
    item = outbox.push(outgoing_message("a"), clock())
    bridge = RecordingBridge(capabilities=FORGETFUL, send_errors=[BridgeError("timed out", ambiguous=True)])
    delivery = open_dispatcher(outbox, {"kept": bridge}, clock)
    await delivery.flush()
    bridge.send_errors.append(BridgeError("timed out", ambiguous=True))
    outbox.set_state(item.id, "pending", clock())
    await delivery.flush()
    assert [one.outgoing.buttons[0].command for one in bridge.sent] == [f"/deliveries again {item.id}"] * 2


class FailingCloseBridge(RecordingBridge):
    """One whose library fails at the end; what runs of it is counted."""

    running = 0

    async def run(self, door: InboundPort) -> None:
        FailingCloseBridge.running += 1
        try:
            await super().run(door)
        finally:
            FailingCloseBridge.running -= 1

    async def aclose(self) -> None:
        raise RuntimeError("the pool is closed already")


async def test_f39_a_bridge_that_cannot_be_closed_keeps_no_other_from_ending(
    outbox: StoredOutbox, clock: SteppingClock
) -> None:
    delivery = open_dispatcher(outbox, {"kept": FailingCloseBridge(), "terminal": RecordingBridge("terminal")}, clock)
    await delivery.start(door_of(delivery))
    await delivery.stop()
    assert [one["state"] for one in delivery.bridge_states().values()] == ["paused", "paused"]


class ConcurrentCloseBridge(RecordingBridge):
    """One that is closed once all are asked to."""

    def __init__(self, name: str, all_asked: asyncio.Barrier) -> None:
        super().__init__(name)
        self.closed = False
        self._all_asked = all_asked

    async def aclose(self) -> None:
        await self._all_asked.wait()
        self.closed = True


async def test_f38_bridges_end_side_by_side(outbox: StoredOutbox, clock: SteppingClock) -> None:
    """The end has the time of one, however many there are."""
    together = asyncio.Barrier(2)
    bridges = {name: ConcurrentCloseBridge(name, together) for name in ("a", "b")}
    delivery = open_dispatcher(outbox, bridges, clock)
    await delivery.start(door_of(delivery))
    await delivery.stop()
    assert [one.closed for one in bridges.values()] == [True, True]


async def test_f39_of_a_bridge_that_two_change_at_once_one_runs(outbox: StoredOutbox, clock: SteppingClock) -> None:
    delivery = open_dispatcher(outbox, {"kept": FailingCloseBridge()}, clock)
    await delivery.start(door_of(delivery))
    await asyncio.gather(
        delivery.put("kept", FailingCloseBridge()), delivery.put("kept", FailingCloseBridge()), delivery.drop("kept")
    )
    await asyncio.gather(delivery.put("kept", FailingCloseBridge()), delivery.put("kept", FailingCloseBridge()))
    await asyncio.sleep(0)
    assert FailingCloseBridge.running == 1
    await asyncio.gather(delivery.pause("kept"), delivery.resume("kept"))
    await asyncio.sleep(0)
    assert (FailingCloseBridge.running, delivery.bridge_states()["kept"]["state"]) == (1, "connected")
    await delivery.stop()
    assert FailingCloseBridge.running == 0
