"""Who was denied, or whose account is nobody's any more, is sent nothing: not what they had set for later, not what was
being answered; what is the owner's comes to the owner (I10)."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from assistant.core.errors import UsageError
from assistant.core.notices import NoticeKind
from assistant.core.sessions import peer_session_key
from tests.support.running_app import ANN, OWNER, ROOM, BridgePeople, LiveApp, run_app
from tests.support.scripted import ScriptedModel

WELCOME = NoticeKind.APPROVED.fill().text


async def let_pass(them: BridgePeople, **by: float) -> None:
    them.running.clock.now += timedelta(**by)
    await them.running.app.agenda_scheduler.fire_due()
    await them.wait_idle()


async def asking(it: LiveApp, sender: str, *texts: str) -> BridgePeople:
    """The first of the texts is being answered, and the answer held back."""
    them = BridgePeople(it)
    await them.allow_everybody()
    it.model.gate = asyncio.Event()
    for text in texts:
        await it.bridge.receive_message(text, text, sender)
    await it.app.runtime.tick(it.clock())
    await it.model.called.wait()
    return them


def at_home(it: LiveApp) -> list[tuple[str, str]]:
    """(target, body) of what waits for the owner's terminal."""
    return [(one.outgoing.target, one.outgoing.body) for one in it.app.stores.outbox.pending_items("terminal")]


async def test_what_the_denied_had_set_comes_due_no_longer(tmp_path: Path) -> None:
    async with run_app(tmp_path) as it:
        them = BridgePeople(it)
        await them.allow_everybody()
        await them.write("/remind stretch --every hour", ANN)
        await them.write("/remind meet in 5 minutes", ANN, room=ROOM)
        await them.write("/remind sail in 5 minutes", OWNER)
        for who in (f"kept {ANN}", f"room kept {ROOM}"):
            await them.command(f"/people deny {who}")
        them.sent_since_last()
        await let_pass(them, minutes=61)
        assert [target for target, _ in them.sent_since_last()] == [OWNER]
        await them.command(f"/people allow kept {ANN}")
        await let_pass(them, minutes=61)
        assert them.sent_since_last() == []


async def test_who_is_denied_by_name_has_nothing_come_due_either(tmp_path: Path) -> None:
    async with run_app(tmp_path) as it:
        them = BridgePeople(it)
        await them.allow_everybody()
        await them.write("/remind stretch in 5 minutes", ANN)
        await them.command(f"/people rename kept {ANN} Ann")
        await them.command("/people deny Ann")
        them.sent_since_last()
        await let_pass(them, minutes=6)
        assert them.sent_since_last() == []


async def test_an_answer_to_somebody_denied_meanwhile_is_withheld(tmp_path: Path) -> None:
    async with run_app(tmp_path, model=ScriptedModel("one", "two")) as it:
        them = await asking(it, ANN, "first?", "second?")
        await them.command(f"/people deny kept {ANN}")
        assert it.model.gate is not None
        it.model.gate.set()
        await them.wait_idle()
        assert them.sent_since_last() == []
        assert len(it.model.requests) == 1 and it.app.stores.outbox.count_by_state()["withheld"] == 1
        assert it.app.status()["problems"] == []


async def test_a_room_denied_meanwhile_is_not_answered(tmp_path: Path) -> None:
    async with run_app(tmp_path, "to the room") as it:
        them = BridgePeople(it)
        await them.allow_everybody()
        it.model.gate = asyncio.Event()
        await it.bridge.receive_message("hello", "n", ANN, room=ROOM)
        await it.app.runtime.tick(it.clock())
        await them.command(f"/people deny room kept {ROOM}")
        it.model.gate.set()
        await them.wait_idle()
        assert them.sent_since_last() == []


async def test_what_the_owner_asked_for_on_an_account_that_is_unlinked_comes_home(tmp_path: Path) -> None:
    async with run_app(tmp_path, "4712") as it:
        them = BridgePeople(it)
        await them.allow_everybody()
        await them.write("/remind the code is 4711 in 5 minutes", OWNER)
        await them.write('/schedule add code "What is the code?" --every hour', OWNER)
        await them.command(f"/people unlink kept {OWNER}")
        them.sent_since_last()
        await let_pass(them, minutes=6)
        await let_pass(them, minutes=60)
        assert them.sent_since_last() == []
        (reminder, answer) = at_home(it)
        assert reminder[0] == "main" and "the code is 4711" in reminder[1]
        assert answer == ("main", "Scheduled: code\n\n4712")


async def test_an_answer_that_was_being_written_to_an_unlinked_account_comes_home(tmp_path: Path) -> None:
    async with run_app(tmp_path, "4712") as it:
        them = await asking(it, OWNER, "what is the code?")
        await them.command(f"/people unlink kept {OWNER}")
        assert it.model.gate is not None
        it.model.gate.set()
        await them.wait_idle()
        assert them.sent_since_last() == [] and at_home(it) == [("main", "4712")]


async def test_an_account_that_becomes_a_guests_hears_nothing_of_the_owners(tmp_path: Path) -> None:
    async with run_app(tmp_path, "hello") as it:
        them = BridgePeople(it)
        await them.allow_everybody()
        await them.write("/remind the code is 4711 in 5 minutes", OWNER)
        await them.command(f"/people unlink kept {OWNER}")
        await them.write("it is me again", OWNER)
        await them.command(f"/pair {them.pairing_code()} Olav")
        await them.wait_idle()
        assert WELCOME in it.bridge.bodies
        await them.write("hi", OWNER)
        assert it.view_contents(peer_session_key("kept", OWNER)) == [("user", "hi"), ("assistant", "hello")]
        them.sent_since_last()
        await let_pass(them, minutes=6)
        assert them.sent_since_last() == [] and "4711" in at_home(it)[-1][1]


async def test_a_name_of_two_words_is_no_account_on_a_bridge(tmp_path: Path) -> None:
    async with run_app(tmp_path) as it:
        them = BridgePeople(it)
        await them.allow_everybody()
        await them.command(f"/people rename kept {ANN} 'Ann Lee'")
        assert await them.command("/people deny Ann Lee") == "Ann Lee is not answered any more."
        assert [person.state for person in it.app.stores.people.list_people()] == ["allowed", "denied", "allowed"]


@pytest.mark.parametrize("what", ["link kept ''", "allow kept ''", "deny room kept ''"])
async def test_nobody_has_an_account_without_a_name(tmp_path: Path, what: str) -> None:
    async with run_app(tmp_path) as it:
        with pytest.raises(UsageError, match="Nothing was changed"):
            await BridgePeople(it).command(f"/people {what}")
        assert it.app.stores.people.list_people() == [] == it.app.stores.people.list_rooms()


@pytest.mark.parametrize("often", ["--every minute", "--every 30 minutes", "--every 0,30 9 * * *"])
async def test_others_are_reminded_once_an_hour_at_most(tmp_path: Path, often: str) -> None:
    async with run_app(tmp_path) as it:
        them = BridgePeople(it)
        await them.allow_everybody()
        for about in ({}, {"room": ROOM}):
            await them.write(f"/remind stretch {often}", ANN, **about)
            assert "once an hour at most here" in them.sent_since_last()[-1][1]
        assert "Set:" in await them.command(f"/remind stretch {often}")


async def test_the_list_of_a_guest_does_not_fill_the_home(tmp_path: Path) -> None:
    async with run_app(tmp_path) as it:
        them = BridgePeople(it)
        await them.allow_everybody()
        todos, ann = it.app.stores.todos, peer_session_key("kept", ANN)
        todos.add(ann, ["x"] * 200, "many", it.clock())
        for text in ("one more", "x" * 1001):
            await them.write(f"/todo add {text}", ANN)
            assert "Nothing was added" in them.sent_since_last()[-1][1]
            await them.write(f"/todo add {'x' * 1001}", ANN, room=ROOM)
            assert "Nothing was added" in them.sent_since_last()[-1][1]
        assert len(todos.list_todos(ann)) == 200
        await them.command("/todo add " + "x" * 1001)
        assert len(todos.list_todos("owner")) == 1


@pytest.mark.parametrize("decision", ["allow", "deny"])
async def test_who_has_decided_on_a_request_is_not_asked_when_they_come_to_a_terminal(
    tmp_path: Path, decision: str
) -> None:
    async with run_app(tmp_path) as it:
        them = BridgePeople(it)
        await them.write("may I come in", ANN, sender_name="Ann")
        (question,) = it.app.stores.outbox.list_open("terminal", "main", limit=9)
        assert "Ann" in question.outgoing.body and "asks to talk to me" in question.outgoing.body
        await them.command(f"/pair {decision} 1")
        assert it.app.stores.outbox.list_open("terminal", "main", limit=9) == []
