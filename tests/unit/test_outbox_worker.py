"""What waits, and for what: the order at each place, pauses, and what the network takes never."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from assistant.core.bridge_api import BridgeCapabilities, OutgoingPart
from assistant.core.errors import BridgeError, RecipientNotConnected
from assistant.core.records import OutgoingMessage
from assistant.gateway.dispatcher import Dispatcher
from assistant.store.script.outbox import StoredOutbox
from tests.support.dispatching import open_dispatcher
from tests.support.inbound import open_outbox, outgoing_message
from tests.support.outboxes import recent_items
from tests.support.scripted import RecordingBridge, SteppingClock


@pytest.fixture
def clock() -> SteppingClock:
    return SteppingClock()


@pytest.fixture
def outbox(tmp_path: Path, clock: SteppingClock) -> Iterator[StoredOutbox]:
    with open_outbox(tmp_path, clock) as opened:
        yield opened


async def test_what_waits_for_a_place_goes_out_in_its_order_and_other_places_go_on(
    outbox: StoredOutbox, clock: SteppingClock
) -> None:
    bridge = RecordingBridge(send_errors=[BridgeError("the network is away")])
    for key in ("a", "b"):
        outbox.push(outgoing_message(key), clock())
    delivery = open_dispatcher(outbox, {"kept": bridge}, clock)
    await delivery.flush()
    outbox.push(outgoing_message("c"), clock())
    outbox.push(OutgoingMessage("there", "main", "owner", "kept", "elsewhere", "news"), clock())
    await delivery.flush()
    assert (bridge.bodies, delivery.bridge_states()["kept"]["error"]) == (["news"], "the network is away")
    clock.now += timedelta(minutes=1)
    await delivery.flush()
    assert bridge.bodies == ["news", "body of a", "body of b", "body of c"]
    assert delivery.bridge_states()["kept"]["ok"]


async def test_each_failure_holds_its_place_for_longer(outbox: StoredOutbox, clock: SteppingClock) -> None:
    bridge = RecordingBridge(send_errors=[BridgeError("away") for _ in range(20)])
    outbox.push(outgoing_message("a"), clock())
    delivery = open_dispatcher(outbox, {"kept": bridge}, clock)
    tried = []
    for second in range(64):
        left = len(bridge.send_errors)
        await delivery.flush()
        tried += [second] if len(bridge.send_errors) < left else []
        clock.now += timedelta(seconds=1)
    assert tried == [0, 1, 3, 7, 15, 31, 63]


async def test_who_comes_ends_the_waiting_but_not_the_patience_that_a_network_asked_for(
    outbox: StoredOutbox, clock: SteppingClock
) -> None:
    bridge = RecordingBridge(send_errors=[BridgeError("away"), BridgeError("slowly", retry_after=40)])
    outbox.push(outgoing_message("a"), clock())
    delivery = open_dispatcher(outbox, {"kept": bridge}, clock)
    await delivery.flush()
    for _ in range(2):
        delivery.retry_held_back("kept")
        await delivery.flush()
        assert (bridge.bodies, bridge.send_errors) == ([], [])
    clock.now += timedelta(seconds=41)
    await delivery.flush()
    assert bridge.bodies == ["body of a"]


class ReattachingBridge(RecordingBridge):
    """One that is reached again just when the first send fails."""

    delivery: Dispatcher

    async def send(self, part: OutgoingPart) -> None:
        if self.send_errors:
            self.delivery.retry_held_back(self.name)
        await super().send(part)


async def test_who_comes_while_a_send_fails_changes_no_order(outbox: StoredOutbox, clock: SteppingClock) -> None:
    bridge = ReattachingBridge(send_errors=[BridgeError("away")])
    for key in ("a", "b"):
        outbox.push(outgoing_message(key), clock())
    bridge.delivery = open_dispatcher(outbox, {"kept": bridge}, clock)
    await bridge.delivery.flush()
    assert bridge.bodies == ["body of a", "body of b"]


async def test_what_nobody_hears_holds_up_nothing_that_somebody_would(
    outbox: StoredOutbox, clock: SteppingClock
) -> None:
    """However much there is of it: on terminals each message has an audience of its own."""
    bridge = RecordingBridge(send_errors=[RecipientNotConnected() for _ in range(150)])
    for number in range(150):
        outbox.push(outgoing_message(f"n{number}"), clock())
    outbox.push(outgoing_message("asked for"), clock())
    delivery = open_dispatcher(outbox, {"kept": bridge}, clock)
    await delivery.flush()
    assert (bridge.bodies, delivery.bridge_states()["kept"]["ok"]) == (["body of asked for"], True)


async def test_what_is_refused_for_good_holds_up_nothing_and_the_owner_is_told_once(
    outbox: StoredOutbox, clock: SteppingClock
) -> None:
    refused = [BridgeError("Nobody may write there.", refused=True) for _ in range(2)]
    bridge, home = RecordingBridge(send_errors=refused), RecordingBridge("terminal")
    mine = outbox.push(outgoing_message("a"), clock())
    hers = outbox.push(OutgoingMessage("b", "peer:kept:7", "peer:kept:7", "kept", "main", "for them alone"), clock())
    outbox.push(outgoing_message("c"), clock())
    delivery = open_dispatcher(outbox, {"kept": bridge, "terminal": home}, clock)
    for _ in range(2):
        await delivery.flush()
        clock.now += timedelta(hours=1)
    assert bridge.bodies == ["body of c"]
    assert outbox.count_by_state() == {"failed": 2, "sent": 3}
    assert [one.outgoing.key for one in home.sent] == [f"refused:{mine.id}:1", f"refused:{hers.id}:1"]
    assert home.bodies[0] == (
        f"A message to you (`body of a`) was refused by kept: Nobody may write there. `/deliveries again {mine.id}` "
        f"sends it again, `/deliveries drop {mine.id}` discards it."
    )
    assert "A message to peer:kept:7 was refused" in home.bodies[1] and "for them alone" not in home.bodies[1]
    assert delivery.bridge_states()["kept"]["ok"]


async def test_what_is_told_of_a_message_is_forgotten_with_it(outbox: StoredOutbox, clock: SteppingClock) -> None:
    for number, trouble in enumerate(({"refused": True}, {"ambiguous": True})):
        outbox.push(replace(outgoing_message(f"n{number}"), message_id=40 + number), clock())
        bridge, home = RecordingBridge(send_errors=[BridgeError("no", **trouble)]), RecordingBridge("terminal")
        bridge.capabilities = BridgeCapabilities()
        await open_dispatcher(outbox, {"kept": bridge, "terminal": home}, clock).flush()
        (told,) = [*bridge.sent, *home.sent]
        assert told.outgoing.message_id == 40 + number


async def test_of_a_refused_notice_nothing_is_told(outbox: StoredOutbox, clock: SteppingClock) -> None:
    refused = [BridgeError("not here", refused=True) for _ in range(3)]
    outbox.push(outgoing_message("a", "terminal"), clock())
    await open_dispatcher(outbox, {"terminal": RecordingBridge("terminal", send_errors=refused)}, clock).flush()
    assert (outbox.count_by_state(), len(refused)) == ({"failed": 2}, 1)


async def test_a_stranger_who_blocks_the_assistant_is_nothing_the_owner_is_told_of(
    outbox: StoredOutbox, clock: SteppingClock
) -> None:
    code = OutgoingMessage("code", "peer:kept:7", "peer:kept:7", "kept", "7", "your code", "notice")
    outbox.push(code, clock())
    refused = RecordingBridge(send_errors=[BridgeError("blocked", refused=True)])
    delivery = open_dispatcher(outbox, {"kept": refused, "terminal": RecordingBridge("terminal")}, clock)
    await delivery.flush()
    assert outbox.count_by_state() == {"dropped": 1}
    assert delivery.bridge_states()["kept"]["ok"]


async def test_f36_what_may_have_arrived_and_is_refused_then_stays_in_doubt(
    outbox: StoredOutbox, clock: SteppingClock
) -> None:
    bridge = RecordingBridge(
        send_errors=[BridgeError("timed out", ambiguous=True), BridgeError("not here", refused=True)]
    )
    outbox.push(outgoing_message("a"), clock())
    delivery = open_dispatcher(outbox, {"kept": bridge}, clock)
    for _ in range(2):
        await delivery.flush()
        clock.now += timedelta(minutes=1)
    assert (outbox.count_by_state().get("ambiguous"), outbox.count_by_state().get("failed")) == (1, None)


async def test_f36_what_may_have_arrived_is_not_shown_elsewhere_without_a_word(
    outbox: StoredOutbox, clock: SteppingClock
) -> None:
    """The account that it was sent to is the owner's no more."""
    bridge, home = RecordingBridge(), RecordingBridge("terminal")
    cut, waits = outbox.push(outgoing_message("cut"), clock()), outbox.push(outgoing_message("waits"), clock())
    outbox.set_state(cut.id, "sending", clock())
    delivery = open_dispatcher(outbox, {"kept": bridge, "terminal": home}, clock, lambda outgoing: ("terminal", "main"))
    await delivery.flush()
    await delivery.flush()
    assert bridge.bodies == []
    assert [one.outgoing.key for one in home.sent] == ["waits", f"uncertain:{cut.id}:1"]
    assert (outbox.count_by_state().get("ambiguous"), outbox.find_open(waits.id)) == (1, None)


class StatusRecordingBridge(RecordingBridge):
    """One that notes at each send what the status says of it."""

    def __init__(self, send_errors: list[BridgeError]) -> None:
        super().__init__(send_errors=send_errors)
        self.told: list[str] = []
        self.delivery: Dispatcher

    async def send(self, part: OutgoingPart) -> None:
        self.told.append(self.delivery.bridge_states()["kept"]["error"])
        await super().send(part)


class FailingSecondBridge(RecordingBridge):
    """One whose network does not take the second message, nor say why in a way that anybody foresaw."""

    def __init__(self, trouble: Exception) -> None:
        super().__init__(capabilities=BridgeCapabilities(max_length=12, dedupe_seconds=86_400))
        self._trouble = [trouble]

    async def send(self, part: OutgoingPart) -> None:
        if self.parts and self._trouble:
            raise self._trouble.pop()
        await super().send(part)


@pytest.mark.parametrize("trouble", [BridgeError("away"), KeyError("a fault of the library")])
async def test_f36_of_a_long_one_that_failed_in_the_middle_every_part_goes_out_once_and_in_order(
    outbox: StoredOutbox, clock: SteppingClock, trouble: Exception
) -> None:
    bridge = FailingSecondBridge(trouble)
    outbox.push(replace(outgoing_message("a"), body="one one\n\ntwo two\n\nthree three\n\nfour four"), clock())
    delivery = open_dispatcher(outbox, {"kept": bridge}, clock)
    await delivery.flush()
    assert not delivery.bridge_states()["kept"]["ok"]
    clock.now += timedelta(minutes=1)
    # As after a restart: what went out is known from the outbox alone.
    await open_dispatcher(outbox, {"kept": bridge}, clock).flush()
    assert [part.text for part in bridge.parts] == ["one one", "two two", "three three", "four four"]
    assert len({part.key for part in bridge.parts}) == 4


async def test_f36_how_long_a_resend_is_safe_counts_from_the_first_try_however_long_it_waited(
    outbox: StoredOutbox, clock: SteppingClock
) -> None:
    """As when somebody comes back after a month, and the daemon is killed while it delivers."""
    bridge = RecordingBridge(send_errors=[BridgeError("cut off", ambiguous=True) for _ in range(2)])
    outbox.push(outgoing_message("a"), clock())
    states = []
    for hours in (30 * 24, 1, 23):
        clock.now += timedelta(hours=hours)
        await open_dispatcher(outbox, {"kept": bridge}, clock).flush()
        states.append(recent_items(outbox, "main")[0].state)
    assert states == ["sending", "sending", "ambiguous"] and "body of a" not in bridge.bodies


async def test_f36_how_long_a_resend_is_safe_is_not_known_once_the_clock_was_set_back(
    outbox: StoredOutbox, clock: SteppingClock
) -> None:
    """It was ahead by three years when the send broke off; put right by seconds it is the same clock."""
    bridge = RecordingBridge(send_errors=[BridgeError("cut off", ambiguous=True) for _ in range(2)])
    outbox.push(outgoing_message("a"), clock())
    states = []
    for back in (timedelta(), timedelta(seconds=20), timedelta(days=3 * 365)):
        clock.now -= back
        await open_dispatcher(outbox, {"kept": bridge}, clock).flush()
        states.append(recent_items(outbox, "main")[0].state)
    assert states == ["sending", "sending", "ambiguous"] and "body of a" not in bridge.bodies


@pytest.mark.parametrize("back", [timedelta(hours=1), timedelta(days=1), timedelta(days=3 * 365)])
@pytest.mark.parametrize("error", [BridgeError("away"), BridgeError("slowly", retry_after=40)])
async def test_a_place_that_waits_to_be_tried_again_waits_no_longer_when_the_clock_is_set_back(
    outbox: StoredOutbox, clock: SteppingClock, error: BridgeError, back: timedelta
) -> None:
    bridge = RecordingBridge(send_errors=[error])
    outbox.push(outgoing_message("a"), clock())
    delivery = open_dispatcher(outbox, {"kept": bridge}, clock)
    await delivery.flush()
    clock.now -= back
    await delivery.flush()
    assert bridge.bodies == ["body of a"] and delivery.bridge_states()["kept"]["ok"]


async def test_f36_what_was_refused_for_sure_was_not_tried(outbox: StoredOutbox, clock: SteppingClock) -> None:
    bridge = RecordingBridge(send_errors=[BridgeError("away")])
    item = outbox.push(outgoing_message("a"), clock())
    await open_dispatcher(outbox, {"kept": bridge}, clock).flush()
    kept = outbox.find_open(item.id)
    assert kept is not None and (kept.state, kept.attempts, kept.tried_at) == ("pending", 1, None)


async def test_i8_the_rest_of_a_long_one_is_sent_as_it_was_cut_at_first(
    outbox: StoredOutbox, clock: SteppingClock
) -> None:
    bridge = RecordingBridge(send_errors=[])
    bridge.capabilities = BridgeCapabilities(max_length=20)
    item = outbox.push(replace(outgoing_message("a"), body="One sentence. Another one. A third one."), clock())
    outbox.save_parts(item.id, ["as an earlier", "version cut", "it"], clock())
    outbox.record_parts_sent(item.id, 1, clock())
    await open_dispatcher(outbox, {"kept": bridge}, clock).flush()
    assert [part.text for part in bridge.parts] == ["version cut", "it"]
    assert recent_items(outbox, "main")[0].parts == ()


async def test_i8_a_long_one_is_stored_as_it_is_cut(outbox: StoredOutbox, clock: SteppingClock) -> None:
    bridge = RecordingBridge(send_errors=[BridgeError("away")])
    bridge.capabilities = BridgeCapabilities(max_length=20)
    outbox.push(replace(outgoing_message("a"), body="One sentence. Another one."), clock())
    await open_dispatcher(outbox, {"kept": bridge}, clock).flush()
    assert recent_items(outbox, "main")[0].parts == ("One sentence.", "Another one.")


@pytest.mark.parametrize("trouble", [KeyError("a fault of the library"), TimeoutError()])
async def test_f36_a_fault_of_a_bridge_while_it_sends_may_have_been_after_the_message_was_out(
    outbox: StoredOutbox, clock: SteppingClock, trouble: Exception
) -> None:
    bridge = FailingSecondBridge(trouble)
    bridge.capabilities = BridgeCapabilities(max_length=12)
    outbox.push(replace(outgoing_message("a"), body="one one\n\ntwo two"), clock())
    await open_dispatcher(outbox, {"kept": bridge}, clock).flush()
    assert outbox.count_by_state()["ambiguous"] == 1


async def test_a_bridge_is_in_trouble_until_what_failed_has_gone(outbox: StoredOutbox, clock: SteppingClock) -> None:
    bridge = StatusRecordingBridge([BridgeError("away")])
    for key in ("a", "b"):
        outbox.push(outgoing_message(key), clock())
    bridge.delivery = open_dispatcher(outbox, {"kept": bridge}, clock)
    await bridge.delivery.flush()
    clock.now += timedelta(minutes=1)
    await bridge.delivery.flush()
    assert bridge.told == ["", "away", ""]


async def test_trouble_ends_with_what_was_in_it(outbox: StoredOutbox, clock: SteppingClock) -> None:
    item = outbox.push(outgoing_message("a"), clock())
    delivery = open_dispatcher(
        outbox, {"kept": RecordingBridge(send_errors=[BridgeError("slowly", retry_after=40)])}, clock
    )
    await delivery.flush()
    outbox.set_state(item.id, "dropped", clock())
    clock.now += timedelta(seconds=41)
    await delivery.flush()
    assert delivery.bridge_states()["kept"]["ok"]


class Slow(RecordingBridge):
    """One whose owner decides on something while it sends."""

    def __init__(self, outbox: StoredOutbox, dropped: int, clock: SteppingClock) -> None:
        super().__init__()
        self._outbox = outbox
        self._dropped = dropped
        self._clock = clock

    async def send(self, part: OutgoingPart) -> None:
        self._outbox.set_state(self._dropped, "dropped", self._clock())
        await super().send(part)


async def test_what_was_let_go_meanwhile_is_not_sent(outbox: StoredOutbox, clock: SteppingClock) -> None:
    outbox.push(outgoing_message("a"), clock())
    dropped = outbox.push(outgoing_message("b"), clock())
    bridge = Slow(outbox, dropped.id, clock)
    await open_dispatcher(outbox, {"kept": bridge}, clock).flush()
    assert (bridge.bodies, outbox.count_by_state()) == (["body of a"], {"sent": 1, "dropped": 1})


@pytest.mark.parametrize("asked", [-5.0, float("nan"), float("inf"), 1e300])
async def test_however_long_a_network_asks_to_wait_the_bridge_goes_on(
    outbox: StoredOutbox, clock: SteppingClock, asked: float
) -> None:
    outbox.push(outgoing_message("a"), clock())
    bridge = RecordingBridge(send_errors=[BridgeError("slowly", retry_after=asked)])
    delivery = open_dispatcher(outbox, {"kept": bridge}, clock)
    await delivery.flush()
    assert bridge.bodies == []
    clock.now += timedelta(days=1, minutes=1)
    await delivery.flush()
    assert bridge.bodies == ["body of a"]


class BarredBridge(RecordingBridge):
    """One that may not write at a place."""

    async def send(self, part: OutgoingPart) -> None:
        if part.item.outgoing.target == "barred":
            raise BridgeError("not there")
        await super().send(part)


async def test_however_much_waits_for_one_place_the_others_have_theirs(
    outbox: StoredOutbox, clock: SteppingClock
) -> None:
    for number in range(101):
        outbox.push(OutgoingMessage(f"n{number}", "room:kept:1", "room:kept:1", "kept", "barred", "news"), clock())
    outbox.push(outgoing_message("a"), clock())
    bridge = BarredBridge()
    await open_dispatcher(outbox, {"kept": bridge}, clock).flush()
    assert bridge.bodies == ["body of a"]
