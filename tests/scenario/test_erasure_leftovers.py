"""What somebody found who told secrets in odd ways, forgot them, and looked through every byte of the data folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from assistant.commands.erasure import render_forget_result
from assistant.core.erasure import ErasureRequest
from assistant.core.messages import Message, ToolCall
from assistant.store.calendars import CALENDARS_DB
from tests.support.calendar_home import calendar_text, timed
from tests.support.compactions import live_messages, plan_compaction, summary_message
from tests.support.erasure_home import DAY, KEPT_FACT, ErasureHome
from tests.support.imports import import_messages
from tests.support.running_app import run_app
from tests.support.secrets import HomeBytes
from tests.support.store_home import NOW, memory_backed_directory, reply_item

BY_TEXT = ErasureRequest("owner", text="Vrunk-88-olma")


@pytest.fixture
def home() -> Iterator[ErasureHome]:
    with memory_backed_directory() as path:
        opened = ErasureHome(path / "home").open()
        yield opened
        opened.close()


def _add_job(home: ErasureHome, name: str, text: str) -> int:
    place = {"session": "main", "generation": 1, "scope": "owner", "bridge": "terminal", "target": "main"}
    when = {"spec": "{}", "zone": "UTC", "catch_up": "once", "next_due_at": "2026-12-01T09:00:00Z", "next_key": "k"}
    with home.db.write() as db:
        row = {"key": f"job {name}", "kind": "schedule", "name": name, "text": text, "state": "active"}
        return db.insert_row("jobs", **place, **when, **row, created_at=NOW.isoformat())


async def test_a_reminder_or_schedule_of_which_nothing_is_left_does_not_come(home: ErasureHome) -> None:
    _add_job(home, "gate", "Is Vrunk-88-olma paid?")
    _add_job(home, "bread", "Is the bread baked? Is Vrunk-88-olma paid?")
    _add_job(home, "Vrunk-88-olma", "Is it raining?")
    await home.erasure.erase(BY_TEXT, NOW)
    waiting = [(job["name"], job["text"]) for job in home.db.rows("SELECT * FROM jobs WHERE state = 'active'")]
    assert waiting == [("bread", "Is the bread baked?"), ("", "Is it raining?")]
    [ended] = home.db.rows("SELECT * FROM jobs WHERE state = 'cancelled'")
    assert (ended["name"], ended["text"]) == ("gate", "[forgotten]")


@pytest.mark.parametrize("name", ["memories.json", "archive/my-export.md", "secrets.toml", "notes/own.txt"])
async def test_an_export_in_the_data_folder_is_called_a_file_of_ones_own(home: ErasureHome, name: str) -> None:
    home.say("It opens with Vrunk-88-olma.", "All right.")
    path = home.path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("It opens with Vrunk-88-olma.")
    done = await home.erasure.erase(BY_TEXT, NOW)
    [left] = done.leftovers
    assert (left.where, left.kind) == (name, "own_file") and left.why.startswith("your own file (an export, for ex")
    assert done.complete and path.read_text() == "It opens with Vrunk-88-olma."


async def test_words_in_the_name_of_a_conversation_are_said_to_stay(home: ErasureHome) -> None:
    said = Message("user", "It opens with Vrunk-88-olma.")
    import_messages(home.conversation, "thread:vrunk-88-olma", "owner", [said], NOW)
    done = await home.erasure.erase(BY_TEXT, NOW)
    assert {left.kind for left in done.leftovers} == {"conversation_name"}
    report = "\n".join(render_forget_result(done))
    assert "the name of a conversation has the words" in report and "forget it again" not in report


async def test_a_note_of_which_nothing_is_left_leaves_no_heading(home: ErasureHome) -> None:
    for time, line in (("10:00", "It rained."), ("11:00", "It opens with Vrunk-88-olma."), ("12:00", "It snowed.")):
        home.files.append_daily_note("owner", DAY, time, [line], f"n{time}")
    await home.erasure.erase(BY_TEXT, NOW)
    [notes] = (home.path / "memory").glob("*.md")
    assert [line for line in notes.read_text().splitlines() if line] == [
        f"# {DAY}",
        "## 10:00",
        "- It rained.",
        "## 12:00",
        "- It snowed.",
    ]


async def test_a_part_of_memory_md_of_which_nothing_is_left_leaves_no_heading(home: ErasureHome) -> None:
    path = home.path / "MEMORY.md"
    path.write_text("# Me\n\n## Doors\n\n- It opens with Vrunk-88-olma.\n\n## Later\n\n## Rain\n\n- It rained.\n")
    await home.erasure.erase(BY_TEXT, NOW)
    assert path.read_text() == "# Me\n\n## Later\n\n## Rain\n\n- It rained.\n"


async def test_a_memory_file_that_was_set_aside_loses_the_words(home: ErasureHome) -> None:
    (home.path / "MEMORY.md.damaged").write_bytes(b"\xff\xfe It opens with Vrunk-88-olma. It rains.")
    done = await home.erasure.erase(BY_TEXT, NOW)
    assert done.leftovers == () and home.files_containing([b"vrunk"]) == []
    assert b"It rains." in (home.path / "MEMORY.md.damaged").read_bytes()


async def test_a_secret_at_the_end_of_a_giant_message_leaves_what_was_made_of_it(home: ErasureHome) -> None:
    letter = "It rained over the harbour all day long, and nobody came.\n" * 450
    home.say(f"{letter}The door opens with Vrunk-88-olma. My aunt sings at night.", "All right.")
    home.say("What is my boat called?", KEPT_FACT)
    home.say("And now?", "Now it rains.")
    told = "They speak of the door: Vrunk-88-olma"
    text = f"[CONTEXT SUMMARY]\n- {KEPT_FACT}\n- {told}.\n- My aunt sings at night."
    compaction = plan_compaction(home, 0, len(live_messages(home)) - 2, summary_message(text))
    home.conversation.commit_compaction(replace(compaction, summary=text, key_facts={"facts": [told]}), NOW)
    await home.erasure.erase(ErasureRequest("owner", messages=(1,)), NOW)
    [compacted] = home.conversation.checkpoints("main")
    assert compacted.summary == f"[CONTEXT SUMMARY]\n- {KEPT_FACT}"
    assert home.files_containing([b"vrunk", b"aunt sings"]) == []


async def test_what_a_tool_was_asked_for_a_forgotten_question_goes_with_it(home: ErasureHome) -> None:
    turn = home.begin_turn("Is Vrunk-88-olma on my list?")
    calls = (
        ToolCall("c1", "search_history", {"query": "vrunk 88 olma list"}),
        ToolCall("c2", "manage_todo_list", {"action": "show"}),
    )
    for call in calls:
        home.conversation.record_messages(turn, [Message("assistant", "", tool_calls=(call,))], NOW)
        home.conversation.start_tool(turn, call, NOW)
        result = Message("tool", "Nothing.", tool_call_id=call.id, name=call.name)
        home.conversation.record_messages(turn, [result], NOW)
    home.conversation.finish_turn(turn, "answered", Message("assistant", "No."), [reply_item(turn, "No.")], NOW)
    done = await home.erasure.erase(ErasureRequest("owner", messages=(1,)), NOW)
    assert len(done.messages) == 2 and home.files_containing([b"vrunk"]) == []
    [kept] = [
        message for message in home.conversation.load_view("main").messages if message.tool_calls[:1] == calls[1:]
    ]
    assert kept.tool_calls[0].arguments == {"action": "show"}


async def test_the_name_of_a_tool_in_a_forgotten_message_takes_no_other_call_with_it(home: ErasureHome) -> None:
    home.say("Use manage_todo_list for Vrunk-88-olma.", "All right.")
    turn = home.begin_turn("Add bread to my list.")
    call = ToolCall("c1", "manage_todo_list", {"action": "add", "items": ["bread"]})
    home.conversation.record_messages(turn, [Message("assistant", "", tool_calls=(call,))], NOW)
    home.conversation.start_tool(turn, call, NOW)
    result = Message("tool", "Added: 1", tool_call_id="c1", name="manage_todo_list")
    home.conversation.record_messages(turn, [result], NOW)
    home.conversation.finish_turn(turn, "answered", Message("assistant", "Done."), [reply_item(turn, "Done.")], NOW)
    done = await home.erasure.erase(ErasureRequest("owner", messages=(1,)), NOW)
    assert done.complete and done.leftovers == () and home.files_containing([b"vrunk"]) == []
    assert [message.tool_calls for message in home.conversation.load_view("main").messages if message.tool_calls] == [
        (call,)
    ]


async def test_what_a_service_for_notifications_answered_loses_the_words(home: ErasureHome) -> None:
    home.say("It opens with Vrunk-88-olma.", "All right.")
    with home.db.write() as db:
        row = {"key": "reminder:1", "service": "ntfy", "state": "failed", "attempts": 1, "updated_at": NOW.isoformat()}
        db.insert_row("pushes", **row, error="Refused: It opens with Vrunk-88-olma. Too long.")
    done = await home.erasure.erase(BY_TEXT, NOW)
    assert done.complete and done.leftovers == () and home.files_containing([b"vrunk"]) == []


async def test_what_an_mcp_server_says_of_its_tools_is_named_with_what_removes_it(home: ErasureHome) -> None:
    home.say("It opens with Vrunk-88-olma.", "All right.")
    with home.db.write() as db:
        db.insert_row("mcp_tools", server="gates", name="open", seen="Opens Vrunk-88-olma, and no other gate.")
    done = await home.erasure.erase(BY_TEXT, NOW)
    assert [(left.where, left.kind) for left in done.leftovers] == [("script.db", "own_file")]
    assert done.complete and "assistant mcp remove" in done.leftovers[0].why


async def test_what_a_calendar_says_is_named_and_gone_once_the_calendar_says_it_no_more(tmp_path: Path) -> None:
    home, calendar = tmp_path / "home", tmp_path / "own.ics"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(f'[[calendar.sources]]\nname = "Own"\nkind = "ics"\nurl = "{calendar}"\n')
    calendar.write_text(calendar_text(timed("Vrunk-88-olma opens", "20260302T143000", 45)))
    async with run_app(home) as it:
        await it.app.commands.run("/calendar sync", "main")
        await it.say("It opens with Vrunk-88-olma.")
        await it.wait_idle()
        done = await it.app.erasure.erase(BY_TEXT, NOW)
        assert done.complete and [(left.where, left.kind) for left in done.leftovers] == [(CALENDARS_DB, "own_file")]
        assert not (await it.app.erasure.erase(replace(BY_TEXT, scope="peer:telegram:7"), NOW)).leftovers
        calendar.write_text(calendar_text(timed("Lunch", "20260302T143000", 45)))
        await it.app.commands.run("/calendar sync", "main")
        await it.say("Again: it opens with Vrunk-88-olma.")
        await it.wait_idle()
        assert not (await it.app.erasure.erase(BY_TEXT, NOW)).leftovers
        assert HomeBytes(home).places("Vrunk-88-olma") == []
