"""What is remembered, looked at and put right in a whole app: by slash commands and by the model, with Mem0 in its
child process; and the journal read from the log once more."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from assistant.commands.erasure import parse_forget_target
from assistant.core.erasure import ErasureRequest
from assistant.core.errors import UsageError
from assistant.core.memories import JournalEntry
from assistant.core.messages import ToolCall
from assistant.core.sessions import MAIN_SESSION
from assistant.store.script.index import UnreadMessages
from sleep.cycle.extract import Extractor
from sleep.cycle.rebuild import Reextraction, derive_memories
from tests.support.consolidation_home import JUNE, NOW, ConsolidationHome, decisions_answer, open_consolidation_home
from tests.support.erasure_home import ErasureHome
from tests.support.memories_home import GUEST
from tests.support.running_app import LiveApp, run_app
from tests.support.scripted import ScriptedModel, owner_message
from tests.support.semantic_memory import make_memory
from tests.support.sleep_home import FACTS, LEARNED_TEXTS, NETWORK_ERROR, JournalHome, memories_answer, say_facts

NURSE, DOCTOR = "My sister Anna is a nurse in Rome.", "My sister Anna is a nurse."


async def ask(it: LiveApp, command: str, session: str = MAIN_SESSION) -> str:
    return await it.app.commands.run(command, session)


def note(it: LiveApp, text: str, *sources: int, scope: str = "owner") -> JournalEntry:
    session = MAIN_SESSION if scope == "owner" else scope
    entry = JournalEntry(f"k:{scope}:{text}", scope, session, 1, text, JUNE, "tool", 0.7, ("fact",), sources)
    return it.app.stores.journal.add([entry], NOW)[0]


# ------------------------------------------------------------------------------------------------------- a whole app


async def test_a_memory_is_found_traced_put_right_and_found_put_right_at_once(tmp_path: Path) -> None:
    async with run_app(tmp_path, "Noted.") as it:
        await it.say("Oh: my sister Anna -- she's a nurse in Rome")
        await it.wait_idle()
        note(it, NURSE, 1)
        await ask(it, "/sleep --phase consolidate")
        (found,) = (await ask(it, "/memory what does Anna do")).split("\n")
        reference = found[3:11]
        assert found == f'- [{reference}] 2026-06-10, fact: "{NURSE}"'
        assert await ask(it, "/memory search what does Anna do") == found
        explained = await ask(it, "/memory search what does Anna do --explain")
        assert explained.startswith("Words: anna.\nAsks for: nothing in particular.\nCompared: 1 part of entries with")
        assert f"\n{found}\n  " in explained and " = bm25 +0.60, " in explained
        assert f"Journal entries: 1. `/why {reference}` shows" in await ask(it, f"/memory show {reference}")
        why = await ask(it, f"/why {reference}")
        assert "> Oh: my sister Anna -- she's a nurse in Rome" in why and "#1 " in why

        corrected = await ask(it, f"/memory edit {reference} {DOCTOR}")
        assert corrected.startswith(f"Corrected: [{reference}] is out of date.") and "\n" not in corrected
        assert it.app.stores.memories.child.pid is None
        now, former = (await ask(it, "/memory what does Anna do")).split("\n")
        assert now.endswith(f': "{DOCTOR}"') and f"then [{now[3:11]}]" in former
        held = {one.id: one for one in await it.app.stores.memories.all("owner")}
        assert len(held) == 2 and {one.id: one for one in derive_memories(it.app.stores.consolidations)} == held
        assert [one.is_current for one in sorted(held.values(), key=lambda one: one.said_at)] == [False, True]
        assert (await ask(it, "/memory list")).count("\n- ") == 0
        assert "current memories: 1 (1 fact)\n- former memories: 1" in await ask(it, "/memory stats")
        assert "changed: 0 memories" in await ask(it, "/memory rebuild")
        (tmp_path / "workspace").mkdir(exist_ok=True)
        (tmp_path / "workspace" / "more.txt").write_text("I sail.\n")
        assert (await ask(it, "/memory import more.txt")).startswith("Added 1 journal entry. The next sleep")


async def test_what_came_to_mind_for_the_last_answer_is_traced_without_naming_it(tmp_path: Path) -> None:
    async with run_app(tmp_path, "A nurse.", "No.") as it:
        note(it, "My sister Anna is a nurse in Rome.")
        await it.say("What does my sister Anna do in Rome?")
        await it.wait_idle()
        assert "[entry 1]" in it.app.stores.conversation.last_volatile(MAIN_SESSION)
        assert (await ask(it, "/why")).startswith("[entry 1] fact, said ")
        await it.say("- [entry 1] 2026-01-01: thanks")
        await it.wait_idle()
        assert await ask(it, "/why") == "Nothing was recalled for the last answer. Name a memory: `/why ID`."


async def test_the_model_puts_right_what_it_looked_up_in_its_own_scope(tmp_path: Path) -> None:
    look = ToolCall("c1", "search_memory", {"query": "what does Anna do"})
    change = ToolCall("c2", "update_memory", {"reference": "entry 1", "text": DOCTOR})
    async with run_app(tmp_path, look, change, "Look below.", look, replace(change, id="c3"), "Sorry.") as it:
        note(it, NURSE)
        await it.say("No, Anna is not in Rome any more")
        await it.wait_idle()
        results = [one.content for one in it.model.requests[2].messages if one.role == "tool"]
        assert results[0].endswith(f'[entry 1] 2026-06-10: "{NURSE}"')
        assert f'correct what I remember: "{NURSE}" becomes "{DOCTOR}"' in it.bridge.bodies[-1]
        await it.say("yes")
        await it.wait_idle()
        assert "Corrected: [entry 1] is out of date. Current now: [entry 2]" in it.bridge.bodies[-1]
        correction = it.app.stores.journal.read([2], "owner")[0]
        assert correction.sources == (7,) and correction.key.startswith("tool:")

        guests = replace(owner_message("Anna?", external_id="g"), session=GUEST, scope=GUEST, trust="guest")
        await it.app.runtime.accept(guests)
        await it.wait_idle()
        results = [one.content for one in it.model.requests[5].messages if one.role == "tool"]
        assert "Nothing noted" in results[0] and "There is no entry 1 here" in results[1]
        assert len(it.app.stores.journal.entries_after(0)) == 2


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("/memory show", "Use `/memory show ID`"),
        ("/memory edit", "Use `/memory edit ID TEXT`"),
        ("/memory edit e1", "`/memory edit ID TEXT`"),
        ("/memory rebuild now", "Use `/memory rebuild"),
        ("/memory import", "Use `/memory import FILE`"),
        ("/memory edit e9 x", "no e9 here"),
        ("/memory import no-such-file", "is not there"),
        ("/why nothing", "`/memory search` finds both"),
    ],
)
async def test_what_is_refused_is_told_in_a_line(tmp_path: Path, command: str, why: str) -> None:
    async with run_app(tmp_path) as it:
        with pytest.raises(UsageError, match=why.replace("[", r"\[")) as refused:
            await ask(it, command)
        assert len(str(refused.value)) < 320
        assert bool(re.search("Nothing was (?!recalled)", str(refused.value))) != command.startswith("/why"), (
            "what only reads changes nothing"
        )


async def test_f33_nobody_but_the_owner_types_them(tmp_path: Path) -> None:
    async with run_app(tmp_path, "Hi.") as it:
        note(it, NURSE)
        await it.app.runtime.accept(
            replace(owner_message("hello", external_id="g"), session=GUEST, scope=GUEST, trust="guest")
        )
        await it.wait_idle()
        for command in ("/memory list", "/memory edit e1 x", "/why e1"):
            with pytest.raises(UsageError, match="cannot be used here"):
                await ask(it, command, GUEST)


async def test_a_text_of_one_word_that_is_an_action_is_searched_for_by_name(tmp_path: Path) -> None:
    async with run_app(tmp_path) as it:
        note(it, "The guest list is on the fridge.")
        for command in ("/memory search list", "/memory list of guests"):
            assert "on the fridge" in await ask(it, command)


async def test_a_memory_is_forgotten_by_the_reference_it_is_shown_with(tmp_path: Path) -> None:
    async with run_app(tmp_path) as it:
        note(it, NURSE)
        note(it, "I sail every Friday.")
        await ask(it, "/sleep --phase consolidate")
        reference = (await ask(it, "/memory what does Anna do"))[3:11]
        for name in (f"memory {reference[:5]}", f"memory {reference}"):
            shown = await ask(it, f"/forget {name}")
            assert "- journal: 1" in shown and "nurse" in shown
        with pytest.raises(UsageError, match="There is no memory deadbee5"):
            await ask(it, "/forget deadbee5")
        code = shown.rpartition("/forget ")[2][:6]
        assert (await ask(it, f"/forget {code}")).startswith("Forgotten:")
        assert [one.text for one in await it.app.stores.memories.all()] == ["I sail every Friday."]


async def test_a_code_stands_for_the_memory_that_was_shown_whatever_is_remembered_since(tmp_path: Path) -> None:
    home = ErasureHome(tmp_path).open()
    one, other = (
        replace(make_memory(text, "owner"), id=f"aaaa{number}111-0000-5000-8000-000000000000", entries=())
        for number, text in enumerate((NURSE, "I sail every Friday."))
    )
    home.add_memory(one)
    _, code = await home.erasure.request_code(parse_forget_target("memory aaaa", "owner"), NOW)
    home.add_memory(other)
    with pytest.raises(UsageError, match="2 memories begin with aaaa"):
        await home.erasure.request_code(parse_forget_target("memory aaaa", "owner"), NOW)
    for short in ("", "aaa"):
        with pytest.raises(UsageError, match="There is no memory"):
            await home.erasure.request_code(ErasureRequest("owner", memories=(short,)), NOW)
    assert (await home.erasure.confirm(code, "owner", NOW)).complete
    assert await home.memories.all("owner") == [other]
    home.close()


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("1a2b3c4d", ErasureRequest("owner", memories=("1a2b3c4d",))),
        ("memory 1A2B", ErasureRequest("owner", memories=("1a2b",))),
        ("memory 12345678", ErasureRequest("owner", memories=("12345678",))),
        ("12345678", ErasureRequest("owner", digits="12345678")),
        ("1a2b", ErasureRequest("owner", text="1a2b")),
        ('"1a2b3c4d"', ErasureRequest("owner", text="1a2b3c4d")),
        ("e12", ErasureRequest("owner", entries=(12,))),
        ("memory lane 12", ErasureRequest("owner", text="memory lane 12")),
    ],
)
def test_what_is_to_be_forgotten_is_told_apart(typed: str, meant: ErasureRequest) -> None:
    assert parse_forget_target(typed, "owner") == meant


# ------------------------------------------------------------------------------------------------------------- a night


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[ConsolidationHome]:
    async with open_consolidation_home(tmp_path) as home:
        yield home


def put_right(home: ConsolidationHome, number: int, text: str) -> JournalEntry:
    """A correction of an entry before any memory was made of it."""
    (former,) = home.journal.read([number], "owner")
    entry = JournalEntry(
        f"right:{number}", "owner", MAIN_SESSION, 1, text, JUNE, "correction", former.importance, ("fact", "correction")
    )
    return home.journal.add([entry], NOW, replaced={former.key: entry.key})[0]


async def test_a_correction_takes_the_place_of_what_it_corrects_whatever_a_model_says(tmp_path: Path) -> None:
    answer = decisions_answer(("e1", "NEW", []), ("e2", "SAME", ["m1"]))
    async with open_consolidation_home(tmp_path, answer, answer) as home:
        home.add_entries(NURSE)
        put_right(home, 1, DOCTOR)
        await home.consolidate()
        assert await home.current_texts() == {DOCTOR}
        held = await home.memory_texts()
        assert held[NURSE].until == JUNE and held[NURSE].superseded_by == held[DOCTOR].id


async def test_a_correction_in_another_batch_still_takes_its_place(home: ConsolidationHome) -> None:
    home.add_entries(NURSE, *(f"Shelf {number} holds box {number}." for number in range(100)))
    put_right(home, 1, DOCTOR)
    await home.consolidate()
    held = await home.memory_texts()
    assert held[NURSE].superseded_by == held[DOCTOR].id and held[DOCTOR].is_current
    assert {one.id: one for one in derive_memories(home.consolidations)} == {one.id: one for one in held.values()}


# --------------------------------------------------------------------------------------------------------- read again


def test_entries_are_noted_as_replaced_in_their_own_scope_alone(tmp_path: Path) -> None:
    home = ConsolidationHome(tmp_path).open()
    home.add_entries(NURSE, scope=GUEST)
    entry = JournalEntry("right", "owner", MAIN_SESSION, 1, DOCTOR, JUNE, "correction")
    home.journal.add([entry], NOW, replaced={f"{GUEST}:1": "right", "nobody": "right"})
    assert home.journal.read([1], GUEST)[0].superseded_by is None
    home.memory_db.close()
    home.db.close()


async def test_the_log_is_read_again_for_what_the_journal_lacks_and_nothing_else(tmp_path: Path) -> None:
    home = JournalHome(tmp_path, model=ScriptedModel()).open()
    home.model.provider = "offline"
    for number, fact in enumerate(FACTS * 20):
        home.say(fact.replace(".", f", door {number}."), "Noted.")
        if number % 7 == 6:
            await home.sleep()
    await home.sleep()
    known = [one.content for one in home.journal.entries_after(0)]
    assert len(known) > 40
    unread = UnreadMessages(home.db, home.log)
    extractor = Extractor(lambda: home.model, "<memories>", batch_tokens=home.batch_tokens)
    again = Reextraction(home.conversation, unread, home.journal, extractor)
    assert (await again.run(NOW)).learned_count == 0

    kept = home.journal.entries_after(0)[:10]
    correction = replace(kept[0], id=None, key="right", content="I live in Bodø.", source_type="correction")
    home.journal.add([correction], NOW, replaced={kept[0].key: "right"})
    lost = [one.id for one in home.journal.entries_after(0)[10:-1]]
    with home.character_db.write() as db:
        db.execute(f"DELETE FROM journal WHERE id IN ({','.join(map(str, lost))})")
    done = await again.run(NOW)
    assert done.learned_count == len(lost) and done.read_count == len(FACTS) * 40 and done.notes == ()
    assert sorted(one.content for one in home.journal.entries_after(0)) == sorted([*known, "I live in Bodø."])
    assert home.journal.read([kept[0].id or 0], "owner")[0].superseded_by is not None
    home.close()


async def test_what_a_model_learned_is_known_again_in_other_words_and_a_model_that_fails_is_told_of(
    tmp_path: Path,
) -> None:
    answers = [
        memories_answer(*((f"{how} {fact}", 2 * number + 1) for number, fact in enumerate(FACTS)))
        for how in ("Told:", "User told me:")
    ]
    home = JournalHome(tmp_path, model=ScriptedModel(*answers, NETWORK_ERROR)).open()
    say_facts(home)
    await home.sleep()
    assert home.entry_texts() == LEARNED_TEXTS
    again = Reextraction(
        home.conversation,
        UnreadMessages(home.db, home.log),
        home.journal,
        Extractor(lambda: home.model, "<memories>", batch_tokens=home.batch_tokens),
    )
    assert (await again.run(NOW)).learned_count == 0 and home.entry_texts() == LEARNED_TEXTS
    done = await again.run(NOW)
    assert (done.read_count, done.learned_count) == (0, 0) and done.notes[0].startswith(
        "main: the model failed: no route"
    )
    home.close()
