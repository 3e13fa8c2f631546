"""A person's right that words vanish: from every place that keeps words, and from nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from assistant.core.erasure import ErasureRequest
from assistant.core.errors import UsageError
from assistant.core.memories import ChangePlan, MemoryChange
from assistant.core.profiles import Profile, ProfileAttribute
from assistant.erasure.service import ErasureService
from assistant.store.rows import FORGOTTEN_PLACEHOLDER
from tests.support.erasure_home import (
    CJK,
    CJK_SPELLINGS,
    DAY,
    GUEST,
    KEPT_FACT,
    SECRET,
    SECRET_SPELLINGS,
    ErasureHome,
    erasure_request,
    say_as_guest,
    write_everywhere,
)
from tests.support.machine_clock import MachineClock
from tests.support.semantic_memory import make_memory
from tests.support.store_home import NOW, memory_backed_directory


@pytest.fixture
def home() -> Iterator[ErasureHome]:
    with memory_backed_directory() as path:
        opened = ErasureHome(path / "home").open()
        yield opened
        opened.close()


@pytest.mark.parametrize("spelled", SECRET_SPELLINGS)
async def test_words_are_gone_from_every_byte_of_the_home(home: ErasureHome, spelled: str) -> None:
    write_everywhere(home, spelled, SECRET)
    held = home.files_containing()
    done = await home.erasure.erase(erasure_request(), NOW)
    assert [(one.where, one.count, one.why) for one in done.leftovers] == []
    assert done.complete
    assert home.files_containing() == []
    assert home.verify().problems == ()
    assert set(done.messages) == set(home.verify().redactions)
    assert len(held) >= 12, held


@pytest.mark.parametrize("spelled", CJK_SPELLINGS)
async def test_words_of_a_script_without_spaces_are_gone_too(home: ErasureHome, spelled: str) -> None:
    write_everywhere(home, spelled, CJK)
    done = await home.erasure.erase(erasure_request(CJK), NOW)
    assert [(one.where, one.why) for one in done.leftovers] == []
    assert home.files_containing() == []
    assert home.verify().problems == ()


async def test_everything_else_stays_as_it_was(home: ErasureHome) -> None:
    write_everywhere(home, SECRET, SECRET)
    before = {record.id: record for session in home.log.sessions() for record in home.log.scan(session)}
    size = home.log.size("main")
    infos = {info.key: info for info in home.conversation.list_sessions()}
    done = await home.erasure.erase(erasure_request(), NOW)
    after = {record.id: record for session in home.log.sessions() for record in home.log.scan(session)}
    for message_id, was in before.items():
        now = after[message_id]
        assert (now.span, now.seq, now.commit, now.prev) == (was.span, was.seq, was.commit, was.prev)
        assert message_id in done.messages or now == was
        assert message_id not in done.messages or (now.content, now.tool_calls, now.salt.strip()) == ("", (), "")
    assert home.log.size("main") > size, "a redaction was appended"
    for info in home.conversation.list_sessions():
        assert info.view_messages == infos[info.key].view_messages
        assert info.prefix_rev > infos[info.key].prefix_rev
    assert set(home.search_ids("boat")) >= {1, 2}
    assert home.search_ids("zanzibarquux") == []


async def test_the_rest_of_what_was_made_of_the_words_stays(home: ErasureHome) -> None:
    write_everywhere(home, SECRET, SECRET)
    await home.erasure.erase(erasure_request(), NOW)
    [summarised] = [one for one in home.conversation.checkpoints("main") if one.summary]
    assert summarised.summary == f"[CONTEXT SUMMARY]\n- {KEPT_FACT}\n- It rained."
    assert summarised.key_facts == {"identifiers": ["A-1"], "note": "Kept."}
    assert home.view_contents()[0] == summarised.summary
    assert home.files.read_memory_file() == f"- {KEPT_FACT}\n"
    assert home.files.read_daily_note("owner", DAY) == "# 2026-11-20\n\n## 10:30\n\n- It rained.\n"
    assert [todo.text for todo in home.todos.list_todos("owner", include_done=True)] == ["Buy bread."]
    assert home.pins.list_pins("main") == []
    contents = {entry.content for entry in home.journal.entries("owner")}
    assert contents == {"The boat has a word.", "The boat is red.", "They met.\nThey left.", "The word was changed."}
    [gate] = home.profiles.list_profiles("owner")
    assert (gate.aliases, gate.summary, [one.value for one in gate.attributes]) == ((), "It is old.", ["green"])
    assert home.journal.list_cycles()[0].phases["consolidate"] == {"rejected": [], "read": 3}
    assert home.db.rows("SELECT body FROM outbox WHERE kind = 'notice'")[0]["body"] == "A notice."
    assert home.db.rows("SELECT volatile FROM turns WHERE volatile LIKE '%sun%'")[0][0].endswith("The sun shines.")
    assert "hello there" in (home.path / "chat_history").read_text()


async def test_other_entries_of_a_memory_that_went_are_consolidated_anew(home: ErasureHome) -> None:
    write_everywhere(home, SECRET, SECRET)
    assert "The boat has a word." not in {entry.content for entry in home.consolidations.pending_entries()}
    await home.erasure.erase(erasure_request(), NOW)
    assert "The boat has a word." in {entry.content for entry in home.consolidations.pending_entries()}
    assert home.consolidations.unapplied_plans() == []
    [left] = home.consolidations.applied_plans(1)
    assert [change.memory.text for change in left.changes] == [KEPT_FACT]


async def test_compactions_can_still_be_undone_without_the_words(home: ErasureHome) -> None:
    write_everywhere(home, SECRET, SECRET)
    await home.erasure.erase(erasure_request(), NOW)
    for _ in range(2):
        home.conversation.undo_compaction(home.conversation.plan_uncompact("main"), "main", NOW)
    shown = home.view_contents()
    assert shown[:2] == ["What is my boat called?", KEPT_FACT]
    assert shown.count(FORGOTTEN_PLACEHOLDER) == 6
    assert home.verify().problems == ()
    assert home.files_containing() == []


async def test_edits_can_still_be_undone_without_the_words(home: ErasureHome) -> None:
    write_everywhere(home, SECRET, SECRET)
    await home.erasure.erase(erasure_request(), NOW)
    for edit in home.files.list_edits("owner", target="profile:1"):
        home.files.undo_edit(edit.id or 0, "owner", NOW)
    assert home.profiles.list_profiles("owner") == []
    [edit] = home.files.list_edits("owner", target="file:MEMORY.md")
    home.files.undo_edit(edit.id or 0, "owner", NOW)
    assert home.files.read_memory_file() == ""
    assert home.files_containing() == []


async def test_nothing_changes_before_a_person_says_so(home: ErasureHome) -> None:
    write_everywhere(home, SECRET, SECRET)
    before = {path: path.read_bytes() for path in home.path.rglob("*") if path.is_file() and path.suffix != ".db-shm"}
    found, code = await home.erasure.request_code(erasure_request(), NOW)
    assert {path: path.read_bytes() for path in before} == before
    kinds = {place.kind for place in found.places}
    assert kinds >= {
        "messages",
        "what the model sees",
        "what is stored to undo a compaction",
        "summaries",
        "notes for the model",
        "tool calls",
        "delegated tasks",
        "messages as they arrived",
        "messages sent to you",
        "reminders",
        "to-dos",
        "pins",
        "journal",
        "what sleep changed",
        "profiles",
        "earlier versions of files and profiles",
        "memories",
        "memory files",
        "lines typed in the terminal",
        "damaged ends of the message log",
        "archives",
        "sleep reports",
    }
    assert len(found.backups) == 3 and all(name.startswith("backups/") for name in found.backups)
    assert found.related == ("journal entry 2: The boat has a word.", "journal entry 5: The word was changed.")
    with pytest.raises(UsageError, match="nothing to forget under this code"):
        await home.erasure.confirm(code, GUEST, NOW)
    assert (await home.erasure.confirm(code.lower(), "owner", NOW)).complete
    with pytest.raises(UsageError, match="nothing to forget under this code"):
        await home.erasure.confirm(code, "owner", NOW)


async def test_forgetting_twice_finds_nothing_the_second_time(home: ErasureHome) -> None:
    write_everywhere(home, SECRET, SECRET)
    assert (await home.erasure.erase(erasure_request(), NOW)).messages
    again = await home.erasure.erase(erasure_request(), NOW)
    assert (again.messages, again.places, again.complete) == ((), (), True)


# ---------------------------------------------------------------------------------------------------------------- ids


async def test_a_message_goes_with_what_was_learned_from_it_alone(home: ErasureHome) -> None:
    write_everywhere(home, SECRET, SECRET)
    home.add_entry("own", "There is a gate.", [3])
    done = await home.erasure.erase(ErasureRequest("owner", messages=(3,)), NOW)
    assert done.messages == (3, 4, 5, 7, 8), "and what an edit of it said, and answers that repeat it"
    contents = {entry.content for entry in home.journal.entries("owner")}
    assert "There is a gate." not in contents
    stays = "They met.\nWord: " + SECRET + "\nThey left."
    assert {"The boat has a word.", "The word was changed.", stays} <= contents, "message 6 has the words too"
    assert home.verify().problems == ()
    assert done.complete


async def test_copies_in_other_messages_are_told_of(home: ErasureHome) -> None:
    said = [home.say(text, "Well.") for text in ("My aunt lives in Ghent now.", "My aunt lives in Ghent now. Yes.")]
    first, second = (turn.items[0].message_id for turn in said)
    done = await home.erasure.erase(ErasureRequest("owner", messages=(first,)), NOW)
    assert done.messages == (first,)
    [log] = [one for one in done.leftovers if one.where.startswith("log/")]
    assert "1 message says the same" in log.why
    assert first not in home.search_ids("aunt Ghent")
    assert second in home.search_ids("aunt Ghent")


async def test_a_journal_entry_goes_with_its_memory(home: ErasureHome) -> None:
    write_everywhere(home, SECRET, SECRET)
    done = await home.erasure.erase(ErasureRequest("owner", entries=(1,), keep_messages=True), NOW)
    assert done.messages == ()
    assert 1 not in {entry.id for entry in home.journal.entries("owner")}
    assert "Word of the gate: " + SECRET not in {one.text for one in await home.memories.all("owner")}
    assert home.verify().problems == ()


async def test_a_memory_goes_with_its_entries(home: ErasureHome) -> None:
    write_everywhere(home, SECRET, SECRET)
    [one] = [one for one in await home.memories.all("owner") if one.text.startswith("Word of the gate")]
    await home.erasure.erase(ErasureRequest("owner", memories=(one.id,)), NOW)
    assert {entry.id for entry in home.journal.entries("owner")} & set(one.entries) == set()
    assert one.id not in {left.id for left in await home.memories.all("owner")}
    assert await home.memories.history(one.id) == []


async def test_a_memory_names_none_that_is_gone_as_what_holds_instead(home: ErasureHome) -> None:
    now, former = make_memory("She drinks coffee.", "owner"), make_memory("She drinks tea.", "owner")
    boat = replace(make_memory("The boat is red.", "owner"), until=NOW, superseded_by=former.id)
    for one in (now, replace(former, until=NOW, superseded_by=now.id), boat):
        home.add_memory(one)
    await home.erasure.erase(ErasureRequest("owner", memories=(now.id,)), NOW)
    assert sorted(await home.memories.all("owner"), key=lambda one: one.text) == [former, boat]


async def test_what_a_profile_says_by_a_forgotten_memory_goes_in_other_words_too(home: ErasureHome) -> None:
    tea, boat = home.add_entry("tea", "She drinks tea without milk."), home.add_entry("boat", "She has a boat.")
    one = make_memory("She drinks tea without milk.", "owner", entries=(tea,))
    home.add_memory(one)
    home.consolidations.save_plan(ChangePlan("p", 1, "owner", (MemoryChange("add", one),), (tea,), (), ()), NOW)
    home.consolidations.mark_applied("p", NOW)
    saved = home.profiles.save(Profile("owner", "person", "Ann", (), ""), "model", NOW, key="a")
    facts = (
        ProfileAttribute("drink", "Ceylon, black", NOW, sources=(tea,)),
        ProfileAttribute("both", "x", NOW, sources=(tea, boat)),
    )
    home.profiles.save(replace(saved, attributes=(*facts, ProfileAttribute("colour", "green", NOW))), "user", NOW)
    await home.erasure.erase(ErasureRequest("owner", memories=(one.id,)), NOW)
    [left] = home.profiles.list_profiles("owner")
    assert [attribute.name for attribute in left.attributes] == ["both", "colour"]
    versions = [row["after"] for row in home.character_db.rows("SELECT after FROM edits")]
    assert any("green" in version for version in versions)
    assert not any("Ceylon" in version for version in versions)


async def test_digits_alone_are_the_memory_that_begins_so_where_no_message_has_the_number(home: ErasureHome) -> None:
    home.chat(1)
    one = replace(make_memory("She drinks tea.", "owner"), id="13164122-4a8c-5d53-9a53-0f1b3a5f5b5e")
    home.add_memory(one)
    found = await home.erasure.preview(ErasureRequest("owner", digits="13164122"))
    assert found.request == ErasureRequest("owner", memories=(one.id,))
    home.add_memory(replace(one, id="00000001-4a8c-5d53-9a53-0f1b3a5f5b5e"))
    with pytest.raises(UsageError, match="`#00000001` for the message, `memory 00000001` for the memory"):
        await home.erasure.preview(ErasureRequest("owner", digits="00000001"))
    with pytest.raises(UsageError, match=r"no message 1316\. .*`memory 1316`"):
        await home.erasure.preview(ErasureRequest("owner", messages=(1316,)))
    assert not await home.erasure.preview(ErasureRequest(GUEST, digits="13164122"))


@pytest.mark.parametrize("digits", ["015123456789", "0001", "4711"])
async def test_digits_that_name_nothing_are_words(home: ErasureHome, digits: str) -> None:
    home.say("What is the weather?", "It rains.")
    home.say("The numbers are 0151 2345 6789, 0001 and 4711.", "All right.")
    found = await home.erasure.preview(ErasureRequest("owner", digits=digits))
    assert found.request == ErasureRequest("owner", text=digits) and found.messages == (3,)


async def test_words_that_are_too_short_are_refused_with_how_short_and_the_ways_out(home: ErasureHome) -> None:
    with pytest.raises(UsageError, match=r"That is too short .* 4 letters .*\(2 of .*longer phrase.*#17.*e12.*memory"):
        await home.erasure.preview(ErasureRequest("owner", text="abc"))


@pytest.mark.parametrize(
    "asked",
    [
        ErasureRequest("owner"),
        ErasureRequest("owner", messages=(99,)),
        ErasureRequest("owner", entries=(99,)),
        ErasureRequest("owner", text="a b"),
        ErasureRequest("owner", memories=("no",)),
    ],
)
async def test_what_is_not_there_or_too_short_is_refused(home: ErasureHome, asked: ErasureRequest) -> None:
    home.chat(1)
    with pytest.raises(UsageError, match="Nothing was changed"):
        await home.erasure.erase(asked, NOW)
    assert home.erasure_store.unfinished_plans() == []


# ------------------------------------------------------------------------------------------------------------- scopes


async def test_i10_words_that_a_guest_said_stay_where_the_guest_said_them(home: ErasureHome) -> None:
    write_everywhere(home, SECRET, SECRET)
    said = say_as_guest(home, SECRET)
    raw = home.log_bytes(GUEST)
    done = await home.erasure.erase(erasure_request(), NOW)
    assert said not in done.messages
    assert done.complete
    assert home.log_bytes(GUEST) == raw
    assert [todo.text for todo in home.todos.list_todos(GUEST)] == [f"Use {SECRET}"]
    assert [entry.content for entry in home.journal.entries(GUEST)] == [f"The guest's word is {SECRET}"]
    assert [one.text for one in await home.memories.all(GUEST)] == [f"Guest said {SECRET}"]
    assert SECRET in home.files.read_daily_note(GUEST, DAY)
    assert {one.why for one in done.leftovers} == {"another person's: they said the same words"}


async def test_i10_a_guest_forgets_only_what_is_theirs_and_learns_of_nothing_else(home: ErasureHome) -> None:
    write_everywhere(home, SECRET, SECRET)
    say_as_guest(home, SECRET)
    raw, files = home.log_bytes(), home.files.read_memory_file()
    done = await home.erasure.erase(erasure_request(scope=GUEST), NOW)
    assert home.log_bytes() == raw
    assert home.files.read_memory_file() == files
    assert SECRET not in home.log_bytes(GUEST).decode()
    assert home.todos.list_todos(GUEST) == []
    assert home.journal.entries(GUEST) == []
    assert await home.memories.all(GUEST) == []
    assert SECRET not in home.files.read_daily_note(GUEST, DAY)
    assert len(home.todos.list_todos("owner", include_done=True)) == 2
    assert done.leftovers == ()
    assert done.complete
    assert home.verify().problems == ()


async def test_i10_ids_of_others_are_not_there_for_a_guest(home: ErasureHome) -> None:
    write_everywhere(home, SECRET, SECRET)
    say_as_guest(home, "hello")
    [one, *_] = await home.memories.all("owner")
    for asked in (
        ErasureRequest(GUEST, messages=(3,)),
        ErasureRequest(GUEST, entries=(1,)),
        ErasureRequest(GUEST, memories=(one.id,)),
    ):
        with pytest.raises(UsageError, match="There is no"):
            await home.erasure.erase(asked, NOW)
    assert home.verify().redactions == ()


# ------------------------------------------------------------------------------------------------------------ running


async def test_a_message_that_is_being_answered_is_refused_with_the_reason(home: ErasureHome) -> None:
    turn = home.begin_turn(f"Keep {SECRET}")
    for asked in (erasure_request(), ErasureRequest("owner", messages=(turn.items[0].message_id,))):
        with pytest.raises(UsageError, match="A message is being answered"):
            await home.erasure.erase(asked, NOW)
    assert home.verify().redactions == ()
    assert home.erasure_store.unfinished_plans() == []


async def test_a_message_that_waits_is_refused_too(home: ErasureHome) -> None:
    home.chat(1)
    home.accept(f"Keep {SECRET}")
    with pytest.raises(UsageError, match="A message with these words waits to be answered"):
        await home.erasure.erase(erasure_request(), NOW)


async def test_words_at_the_border_of_two_blocks_are_found(home: ErasureHome) -> None:
    home.say("Keep it.", "Yes.")
    secret = SECRET.encode()
    size = (4 << 20) - 10
    (home.path / "big.bin").write_bytes((b"x" * 999 + secret).rjust(size, b"x") + secret + b"y" * 100 + secret)
    (home.path / "MEMORY.md").write_text(f"- {SECRET}\n")
    done = await home.erasure.erase(erasure_request(), NOW)
    assert [(one.where, one.count) for one in done.leftovers] == [("big.bin", 3)]


async def test_a_code_ends_after_its_time_also_where_the_clock_is_set_back(home: ErasureHome) -> None:
    write_everywhere(home, SECRET, SECRET)
    machine, minute = MachineClock(NOW), timedelta(minutes=1)
    erasure = ErasureService(home.erasure_store, home.memories, elapsed=machine.elapsed)  # type: ignore[arg-type]
    for back, passed in ((10 * minute, 6 * minute), (365 * 24 * 60 * minute, 0 * minute)):
        _, code = await erasure.request_code(erasure_request(), machine.wall())
        machine.run(10 * minute)
        machine.set_clock(-back)
        machine.run(passed)
        with pytest.raises(UsageError, match="nothing to forget under this code"):
            await erasure.confirm(code, "owner", machine.wall())
