"""What the owner answers with "always" is allowed by exactly the pattern that they saw, for a time, until they take it
back; and tools that are asked about each time are, whatever was said."""

from __future__ import annotations

import re
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from assistant.core.approvals import ApprovalPattern, ProposedEffect
from assistant.core.errors import UsageError
from assistant.core.messages import ToolCall
from assistant.core.permissions import ALL_ROLES
from assistant.core.ports import ToolContext, WordsOfCall
from assistant.core.records import Turn
from assistant.core.sessions import MAIN_SESSION
from assistant.runtime.approvals import ApprovalGate
from assistant.runtime.tool_registry import ToolRegistry
from assistant.store.script.approvals import StoredApprovals
from tests.scenario.test_approvals import READ, app, ask, states
from tests.support.in_memory import grant_others
from tests.support.running_app import LiveApp
from tests.support.store_home import NOW, StoreHome
from tools.declaration import FunctionTool, tool

LATER = NOW + timedelta(days=30)
BELL_RUNG = "The bell of the boat rang."


def ring(place: str, number: int = 1) -> ToolCall:
    return ToolCall(f"r{number}-{place}", "ring_bell", {"place": place})


def bells(rung: list[str]) -> FunctionTool:
    @tool(
        effects="once",
        roles=ALL_ROLES,
        touches={"people"},
        allows=lambda context, place: ApprovalPattern(place, f"ring the bell of the {place}"),
        effect=lambda context, place: f"ring the bell of the {place}",
    )
    def ring_bell(context: ToolContext, place: str) -> str:
        """Ring a bell."""
        rung.append(place)
        return f"The bell of the {place} rang."

    return ring_bell


def letters(written: list[str]) -> FunctionTool:
    @tool(effects="once", touches={"people"}, words=WordsOfCall(words=("to",)), asked_each_time=True)
    def write_letter(context: ToolContext, to: str) -> str:
        """Write a letter."""
        written.append(to)
        return f"Written to {to}."

    return write_letter


def allowed_effect(turn: Turn, key: str) -> ProposedEffect:
    return ProposedEffect(
        *(key, turn.session, turn.generation, turn.scope, turn.id, "c0", "ring_bell", {"place": "boat"}, "ring"),
        *("kept", "main", NOW, LATER, "boat", "ring the bell of the boat"),
    )


def add_bell(it: LiveApp) -> list[str]:
    """What was rung until now."""
    rung: list[str] = []
    it.app.toolbox.add(bells(rung))
    return rung


async def test_always_does_it_and_then_what_is_like_it_without_a_question(tmp_path: Path) -> None:
    async with app(tmp_path, READ, ring("boat"), "It is a note.", READ, ring("boat", 2), "Rung.") as it:
        rung = add_bell(it)
        answer = await ask(it, "What does notes.txt say?")
        assert "Answer yes, no or always, until" in answer and rung == []
        assert "`/approvals yes 1 --always` does it and allows for 30 days: ring the bell of the boat." in answer
        assert it.bridge.sent[-1].outgoing.buttons[-1].command == "/approvals yes 1 --always"
        answer = await ask(it, "Always")
        assert answer.startswith(f"Done: ring the bell of the boat.\n\n{BELL_RUNG}\n\nAllowed until")
        assert "`/approvals revoke 1` takes it back." in answer and rung == ["boat"]
        assert await ask(it, "And what does it say now?") == "Rung."
        assert rung == ["boat", "boat"] and states(it) == ["done"]
        listed = await it.app.commands.run("/approvals allowed", MAIN_SESSION)
        assert listed.startswith("- 1: ring the bell of the boat; until") and "used 1 time, last" in listed


async def test_what_is_only_like_it_in_other_words_is_asked_about(tmp_path: Path) -> None:
    async with app(tmp_path, READ, ring("boat"), "It is a note.", READ, ring("church"), "Rung.") as it:
        rung = add_bell(it)
        await ask(it, "What does notes.txt say?")
        await it.app.commands.run("/approvals yes 1 --always", MAIN_SESSION)
        assert "ring the bell of the church" in await ask(it, "And what does it say now?")
        assert rung == ["boat"] and states(it) == ["done", "pending"]


@pytest.mark.parametrize("ends", ["in time", "revoked", "forgotten"])
async def test_what_was_allowed_ends(tmp_path: Path, ends: str) -> None:
    async with app(tmp_path, READ, ring("boat"), "It is a note.", READ, ring("boat", 2), "Asked.") as it:
        rung = add_bell(it)
        await ask(it, "What does notes.txt say?")
        await ask(it, "always")
        if ends == "in time":
            it.clock.now += timedelta(days=30, minutes=1)
        elif ends == "revoked":
            text = await it.app.commands.run("/approvals revoke 1", MAIN_SESSION)
            assert text == "From now on you are asked again before I ring the bell of the boat."
            with pytest.raises(UsageError, match="Approval 1 allows nothing now"):
                await it.app.commands.run("/approvals revoke 1", MAIN_SESSION)
        else:
            preview = await it.app.commands.run("/forget bell of the boat", MAIN_SESSION)
            code = re.search(r"type /forget (\w+)", preview)
            assert code is not None, preview
            await it.app.commands.run(f"/forget {code[1]}", MAIN_SESSION)
        assert await it.app.commands.run("/approvals allowed", MAIN_SESSION) == (
            "Nothing is allowed without a question."
        )
        assert "Not done yet" in await ask(it, "And what does it say now?")
        assert rung == ["boat"]


async def test_what_was_allowed_holds_after_a_restart_and_a_kill_between_the_word_and_the_deed(tmp_path: Path) -> None:
    async with app(tmp_path, READ, ring("boat"), "It is a note.") as it:
        add_bell(it)
        await ask(it, "What does notes.txt say?")
        until = it.clock.now + timedelta(days=30)
        assert it.app.stores.approvals.decide(1, "approved", "", it.clock(), allowed_until=until)
    async with app(tmp_path, READ, ring("boat", 2), "Rung.") as it:
        rung = add_bell(it)
        await it.say("What does notes.txt say?", "after the restart")
        await it.wait_idle()
        assert rung == ["boat"] and len(it.app.stores.approvals.list_allowed(it.clock.now)) == 1


def test_what_a_clock_that_was_ahead_allowed_nothing_allows_once_it_is_right(tmp_path: Path) -> None:
    with closing(StoreHome(tmp_path).open()) as home:
        stored, ahead = StoredApprovals(home.db), NOW + timedelta(days=3 * 365)
        turn = home.conversation.mark_untrusted(home.begin_turn("What is it?", MAIN_SESSION), ["read_file"])
        (approval,) = [stored.propose(allowed_effect(turn, "allowed"), "pending")]
        assert stored.decide(approval.id, "approved", "", ahead, allowed_until=ahead + timedelta(days=30))
        for now, count in ((ahead, 1), (NOW, 0)):
            assert len(stored.list_allowed(now)) == count
            assert (stored.use_allowed(approval.tool, approval.pattern, now) is not None) == bool(count)


async def test_what_the_owner_allowed_is_no_guests(tmp_path: Path) -> None:
    rung: list[str] = []
    box = ToolRegistry([bells(rung)], timeout_seconds=5, authority=grant_others(["ring_bell"]))
    with closing(StoreHome(tmp_path).open()) as home:
        stored = StoredApprovals(home.db)
        gate = ApprovalGate(stored, home.conversation, box, ZoneInfo("UTC"), timedelta(hours=1), timedelta(days=30))
        for session, told in ((MAIN_SESSION, None), ("guest:1", "Only they can ask for it")):
            turn = home.conversation.mark_untrusted(home.begin_turn("What is it?", session), ["read_file"])
            stored.propose(allowed_effect(turn, f"allowed in {session}"), "pending")
            assert stored.decide(stored.list_by_turn(turn.id)[0].id, "approved", "", NOW, allowed_until=LATER)
            context = ToolContext(session, turn.scope, turn.id, f"{turn.id}:c1", NOW)
            answer = await gate.review(turn, ring("boat"), context)
            assert answer is None if told is None else told in str(answer)


async def test_a_tool_that_is_asked_about_each_time_is_asked_about_though_the_words_ask_for_it(tmp_path: Path) -> None:
    call, again = (ToolCall(f"l{n}", "write_letter", {"to": "Bob"}) for n in (1, 2))
    async with app(tmp_path, call, "Asked.", again, "Asked again.") as it:
        written: list[str] = []
        it.app.toolbox.add(letters(written))
        answer = await ask(it, "Write a letter to Bob")
        assert "Not done yet, since it needs your yes. Answer yes or no, until" in answer and written == []
        assert "--always" not in answer
        with pytest.raises(UsageError, match="Approval 1 is asked about each time: answer yes or no"):
            await it.app.commands.run("/approvals yes 1 --always", MAIN_SESSION)
        assert states(it) == ["pending"]
        assert "you will be asked again" in await ask(it, "always") and written == ["Bob"]
        assert "Not done yet" in await ask(it, "Write a letter to Bob again") and written == ["Bob"]
        assert it.app.stores.approvals.list_allowed(it.clock.now) == []
