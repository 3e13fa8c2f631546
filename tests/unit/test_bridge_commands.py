"""/bridge and /deliveries: over the real stores and the real delivery, with bridges whose network is a list."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

from assistant.commands.bridges import NO_BRIDGE
from assistant.core.bridge_api import BridgeCapabilities
from assistant.core.errors import AssistantError, BridgeError, RecipientNotConnected, UsageError
from assistant.core.notices import NoticeKind
from assistant.core.people import Identity
from assistant.core.records import OutboxItem, OutgoingMessage
from assistant.core.sessions import MAIN_SESSION, OWNER_SCOPE
from assistant.gateway.bridge_operations import BridgeOperations
from assistant.gateway.dispatcher import Dispatcher
from assistant.store.database import Database
from assistant.store.schema.migrations import script_migrations
from assistant.store.script.inbox import BridgeStates
from assistant.store.script.outbox import StoredOutbox, StuckItems
from assistant.store.script.people import ConversationRoutes, People
from tests.support.commands import run_line
from tests.support.dispatching import open_dispatcher
from tests.support.scripted import RecordingBridge, SteppingClock

TEST_MESSAGE = NoticeKind.BRIDGE_TEST.fill().text

NOTHING_STUCK = "Nothing is stuck: what was sent arrived, or is on its way."
FORGETFUL = BridgeCapabilities(dedupe_seconds=0)
UNCERTAIN = BridgeError("the connection broke off", ambiguous=True)


class SilentInbound:
    """A door for bridges that bring nothing."""

    def __init__(self, delivery: Dispatcher) -> None:
        self._delivery = delivery

    def mark_connected(self, bridge: str) -> None:
        self._delivery.mark_connected(bridge)


class CommandSetup:
    """The commands, and everything under them."""

    def __init__(self, path: Path) -> None:
        self.clock = SteppingClock()
        self.db = Database.open(path / "script.db", script_migrations, self.clock())
        self.outbox, self.states, self.people = StoredOutbox(self.db), BridgeStates(self.db), People(self.db)
        self.places, self.stuck = ConversationRoutes(self.db), StuckItems(self.db)
        self.bridge, self.home = RecordingBridge("telegram", FORGETFUL), RecordingBridge("terminal")
        self.reloaded: list[str] = []
        there = {"terminal": self.home, "telegram": self.bridge}
        self.delivery = open_dispatcher(self.outbox, there, self.clock, states=self.states)
        self.bridges = BridgeOperations(
            self.delivery, self.reload, self.outbox, self.stuck, self.states, self.places, "terminal"
        )

    async def reload(self, name: str) -> None:
        self.reloaded.append(name)

    async def start(self) -> None:
        door: Any = SilentInbound(self.delivery)
        await self.delivery.start(door)

    async def type(self, text: str) -> str:
        return await run_line(text, MAIN_SESSION, self.clock(), UTC, bridges=self.bridges, deliveries=self.stuck)

    def owner_writes(self) -> None:
        self.people.link_owner(Identity("telegram", "42"), self.clock())
        self.places.record_account("telegram", "chat-42", "42")

    def push(self, key: str, scope: str = OWNER_SCOPE, body: str = "words") -> int:
        session = MAIN_SESSION if scope == OWNER_SCOPE else scope
        outgoing = OutgoingMessage(key, session, scope, "telegram", "chat-42", body)
        return self.outbox.push(outgoing, self.clock()).id

    async def uncertain(self, key: str = "a", body: str = "words") -> int:
        """Something that may have arrived."""
        self.bridge.send_errors.append(UNCERTAIN)
        number = self.push(key, body=body)
        await self.delivery.flush("telegram")
        return number

    @property
    def letters(self) -> list[OutboxItem]:
        """What was sent, but for the notices of what may have arrived."""
        return [item for item in self.bridge.sent if not item.outgoing.key.startswith("uncertain:")]

    def state(self, key: str) -> str:
        fate = self.stuck.delivery_state(key)
        assert fate is not None
        return fate.state


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[CommandSetup]:
    made = CommandSetup(tmp_path)
    yield made
    await made.delivery.stop()
    made.db.close()


# --- looking


async def test_a_bridge_is_listed_with_who_we_are_there_and_what_waits(desk: CommandSetup) -> None:
    await desk.start()
    (one,) = json.loads(await desk.type("/bridge list --json"))
    assert (one["name"], one["state"], one["account"], one["waiting"], one["todo"]) == (
        "telegram",
        "connected",
        "telegram",
        0,
        "",
    )
    assert (await desk.type("/bridge")).startswith("- telegram as telegram: connected since 2026-03-01 09:00")


async def test_the_terminal_is_no_bridge_to_be_listed(desk: CommandSetup) -> None:
    await desk.start()
    await desk.delivery.drop("telegram")
    assert await desk.type("/bridge list") == NO_BRIDGE
    with pytest.raises(UsageError, match="telegram is not set up"):
        await desk.type("/bridge test telegram")
    with pytest.raises(UsageError, match="no bridge 'terminal'"):
        await desk.type("/bridge pause terminal")


# --- test


async def test_a_test_goes_through_the_outbox_to_the_place_where_the_owner_writes(desk: CommandSetup) -> None:
    await desk.start()
    desk.owner_writes()
    assert await desk.type("/bridge test telegram") == "telegram answers, as telegram, and took the test message."
    (item,) = desk.bridge.sent
    assert (item.outgoing.body, item.outgoing.target, item.outgoing.scope) == (TEST_MESSAGE, "chat-42", OWNER_SCOPE)


async def test_a_test_works_before_anything_was_started(desk: CommandSetup) -> None:
    desk.owner_writes()
    await desk.type("/bridge test telegram")
    assert desk.bridge.bodies == [TEST_MESSAGE]


async def test_a_test_to_nobody_sends_nothing_and_says_so(desk: CommandSetup) -> None:
    desk.people.admit_guest(Identity("telegram", "7"), "Ann", "allowed", desk.clock())
    desk.places.record_account("telegram", "chat-7", "7")
    with pytest.raises(AssistantError, match="you have not written from there yet"):
        await desk.type("/bridge test telegram")
    assert desk.letters == []


@pytest.mark.parametrize(
    ("error", "told", "state"),
    [
        (BridgeError("the network is away."), "still waits: the network is away.", "pending"),
        (UNCERTAIN, "whether the test message arrived is not known", "ambiguous"),
        (BridgeError("you blocked the bot.", refused=True), "refused the test message: you blocked", "failed"),
    ],
)
async def test_a_test_that_was_not_sent_fails_with_what_became_of_it(
    desk: CommandSetup, error: BridgeError, told: str, state: str
) -> None:
    desk.owner_writes()
    desk.bridge.send_errors.append(error)
    with pytest.raises(AssistantError, match=told):
        await desk.type("/bridge test telegram")
    assert desk.outbox.count_by_state()[state] == 1


# --- pause and resume


async def test_what_goes_out_waits_while_a_bridge_is_paused_and_goes_when_it_is_not(desk: CommandSetup) -> None:
    await desk.start()
    desk.owner_writes()
    await desk.type("/bridge pause telegram")
    desk.push("a")
    desk.delivery.wake()
    (one,) = json.loads(await desk.type("/bridge list --json"))
    assert (one["state"], one["waiting"]) == ("paused", 1)
    assert one["todo"] == "`assistant bridge resume telegram` resumes it."
    with pytest.raises(UsageError, match="paused, and nothing was sent"):
        await desk.type("/bridge test telegram")
    assert desk.letters == []
    assert desk.states.is_paused("telegram")
    await desk.type("/bridge resume telegram")
    await desk.bridge.delivered.wait()
    assert not desk.states.is_paused("telegram")


# --- remove


async def test_what_waits_for_the_owner_comes_home_once_the_bridge_is_gone(desk: CommandSetup) -> None:
    with pytest.raises(UsageError, match="telegram is set up"):
        await desk.type("/bridge remove telegram")
    await desk.delivery.drop("telegram")
    desk.push("mine")
    desk.push("hers", scope="peer:telegram:7")
    cut = desk.push("cut")
    desk.outbox.set_state(cut, "sending", desk.clock())
    desk.states.save_position("telegram", "17")
    desk.states.set_paused("telegram", True)
    told = await desk.type("/bridge remove telegram")
    assert told == (
        "To the terminal instead: 1 delivery to you. Kept, should telegram be added again: 1 delivery to others."
    )
    assert desk.reloaded == ["telegram", "telegram"]
    assert (desk.states.load_position("telegram"), desk.states.is_paused("telegram")) == ("", False)
    assert desk.state("cut") == "ambiguous"
    await desk.delivery.flush("terminal")
    assert [item.outgoing.key for item in desk.home.sent] == ["mine"]
    assert await desk.type("/bridge remove telegram") == ("Kept, should telegram be added again: 1 delivery to others.")


async def test_f36_what_was_cut_off_is_not_repeated_from_another_account(desk: CommandSetup) -> None:
    await desk.delivery.drop("telegram")
    cut = desk.push("cut")
    desk.outbox.set_state(cut, "sending", desk.clock())
    desk.push("waits")
    await desk.type("/bridge anew telegram")
    assert (desk.state("cut"), desk.state("waits")) == ("ambiguous", "pending")


# --- deliveries


async def test_what_may_have_arrived_is_shown_and_never_sent_again_by_itself(desk: CommandSetup) -> None:
    await desk.start()
    assert await desk.type("/deliveries") == NOTHING_STUCK
    number = await desk.uncertain(body="the `boat` leaves at nine\nbring soup")
    listed = await desk.type("/deliveries")
    assert f"- #{number} to telegram" in listed
    assert "may or may not have arrived (the connection broke off). `the 'boat' leaves at nine bring soup`" in listed
    desk.delivery.wake()
    await desk.delivery.flush()
    assert desk.letters == []


async def test_it_is_sent_once_more_on_the_owners_word_under_its_key(desk: CommandSetup) -> None:
    number = await desk.uncertain()
    assert "Sent again: #1" in await desk.type(f"/deliveries again #{number}")
    await desk.delivery.flush("telegram")
    assert [(item.outgoing.key, item.outgoing.body) for item in desk.letters] == [("a", "words")]
    with pytest.raises(UsageError, match="Delivery 1 is not stuck"):
        await desk.type(f"/deliveries again {number}")


async def test_what_was_refused_is_listed_and_sent_once_more_on_the_owners_word(desk: CommandSetup) -> None:
    desk.bridge.send_errors.append(BridgeError("you blocked the bot.", refused=True))
    number = desk.push("a")
    await desk.delivery.flush("telegram")
    listed = await desk.type("/deliveries")
    assert f"- #{number} to telegram" in listed and "was refused (you blocked the bot). `words`" in listed
    await desk.type(f"/deliveries again {number}")
    await desk.delivery.flush("telegram")
    assert (desk.state("a"), desk.bridge.bodies) == ("sent", ["words"])


async def test_what_waits_for_another_try_can_be_let_go_and_what_came_after_it_goes(desk: CommandSetup) -> None:
    desk.bridge.send_errors.append(BridgeError("the network is away."))
    number, after = desk.push("a"), desk.push("b")
    await desk.delivery.flush("telegram")
    assert "is retried automatically, after 1 try (the network is away)" in await desk.type("/deliveries")
    with pytest.raises(UsageError, match="is retried automatically"):
        await desk.type(f"/deliveries again {number}")
    with pytest.raises(UsageError, match=f"Delivery #{after} is on its way"):
        await desk.type(f"/deliveries drop {after}")
    await desk.type(f"/deliveries drop {number}")
    await desk.delivery.flush("telegram")
    assert ([item.outgoing.key for item in desk.bridge.sent], desk.state("a")) == (["b"], "dropped")
    assert await desk.type("/deliveries") == NOTHING_STUCK


@pytest.mark.parametrize("verb", ["again", "drop"])
async def test_f36_what_is_being_sent_is_neither_sent_once_more_nor_let_go(desk: CommandSetup, verb: str) -> None:
    desk.bridge.send_errors.append(BridgeError("the network is away."))
    number = desk.push("a")
    await desk.delivery.flush("telegram")
    desk.outbox.set_state(number, "sending", desk.clock())
    with pytest.raises(UsageError, match=f"Delivery #{number} is on its way"):
        await desk.type(f"/deliveries {verb} {number}")
    decided = {"again": desk.stuck.retry, "drop": desk.stuck.drop}[verb](number, desk.clock())
    assert (desk.state("a"), decided) == ("sending", False)


async def test_what_nobody_is_there_to_hear_is_not_listed(desk: CommandSetup) -> None:
    desk.home.send_errors.append(RecipientNotConnected())
    desk.outbox.push(OutgoingMessage("a", MAIN_SESSION, OWNER_SCOPE, "terminal", MAIN_SESSION, "words"), desk.clock())
    await desk.delivery.flush("terminal")
    assert (await desk.type("/deliveries"), desk.state("a")) == (
        NOTHING_STUCK,
        "pending",
    )


async def test_what_is_dropped_goes_nowhere_and_is_told_of_no_more(desk: CommandSetup) -> None:
    number = await desk.uncertain()
    await desk.type(f"/deliveries drop {number}")
    await desk.delivery.flush()
    assert (desk.state("a"), desk.letters) == ("dropped", [])
    assert await desk.type("/deliveries") == NOTHING_STUCK


async def test_of_several_one_that_is_not_stuck_changes_none(desk: CommandSetup) -> None:
    number = await desk.uncertain()
    for wrong in ("99", "x", "9" * 30, "-1"):
        with pytest.raises(UsageError, match=r"is not stuck|is not a number|that large|No such option"):
            await desk.type(f"/deliveries drop {number} {wrong}")
    assert desk.state("a") == "ambiguous"


async def test_the_words_to_a_guest_are_not_shown(desk: CommandSetup) -> None:
    number = desk.push("hers", scope="peer:telegram:7", body="her secret")
    desk.outbox.set_state(number, "withheld", desk.clock(), error="denied")
    listed = await desk.type("/deliveries")
    assert "(for peer:telegram:7)" in listed
    assert "her secret" not in listed


@pytest.mark.parametrize("text", ["/bridge", "/deliveries"])
async def test_what_is_not_understood_is_told_how_to_say(desk: CommandSetup, text: str) -> None:
    with pytest.raises(UsageError, match=f"Use `?{text} "):
        await desk.type(f"{text} sideways")
