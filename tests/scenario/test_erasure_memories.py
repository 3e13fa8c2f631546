"""Forgetting a memory or a journal entry: with the message that it came from, or without it, and then for good."""

from __future__ import annotations

import os
import pty
import re
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from assistant.commands.erasure import render_forget_preview
from assistant.core.erasure import ErasureRequest
from assistant.core.sessions import MAIN_SESSION
from assistant.store.script.index import UnreadMessages
from sleep.cycle.extract import extract_by_rules
from tests.scenario.test_cli_memory import remembered
from tests.support.command_line import ASSISTANT_COMMAND, TIMEOUT_SECONDS, command_environment, one_line_error
from tests.support.command_line import run_in_process as run
from tests.support.erasure_home import ErasureHome
from tests.support.running_app import run_app
from tests.support.store_home import NOW, memory_backed_directory

TOLD = "My sister Marguerite lives at Lindenweg 12, and her door code is 48213."
LEARNED = "Marguerite lives at Lindenweg 12."
RARE = [b"marguerite", b"lindenweg", b"48213"]


@pytest.fixture
def home() -> Iterator[ErasureHome]:
    with memory_backed_directory() as path:
        opened = ErasureHome(path / "home").open()
        yield opened
        opened.close()


def _tell(home: ErasureHome) -> str:
    """The id of the memory."""
    home.say(TOLD, "I will keep in mind that Marguerite lives at Lindenweg 12.")
    home.say("What is the weather?", "It rains.")
    memory = remembered(home, "k1", LEARNED, 1)
    home.add_entry("k2", "Her door opens with 48213.", [1])
    return memory.id


async def test_a_memory_goes_with_the_message_that_it_came_from(home: ErasureHome) -> None:
    memory = _tell(home)
    home.vectors.add_history([{"memory_id": memory, "old_memory": TOLD, "new_memory": LEARNED, "event": "UPDATE"}])
    done = await home.erasure.erase(ErasureRequest("owner", memories=(memory,)), NOW)
    assert done.messages == (1, 2) and done.leftovers == ()
    assert home.files_containing(RARE) == [] and home.memory_db.rows("SELECT * FROM history") == []
    assert home.journal.entries("owner") == [] and await home.memories.all("owner") == []
    assert home.verify().problems == ()


async def test_a_message_that_is_kept_is_not_learned_again(home: ErasureHome) -> None:
    memory = _tell(home)
    request = ErasureRequest("owner", memories=(memory,), keep_messages=True)
    done = await home.erasure.erase(request, NOW)
    assert done.messages == () and {left.kind for left in done.leftovers} == {"same_words"}
    assert TOLD in home.view_contents()
    assert [entry.content for entry in home.journal.entries("owner")] == ["Her door opens with 48213."]
    assert await home.memories.all("owner") == []
    unread = UnreadMessages(home.db, home.log).read_after("main", 1, 0)
    assert [record.id for record in unread] == [2, 3, 4]
    assert extract_by_rules(unread) == ()


async def test_the_preview_shows_where_it_came_from_and_both_ways(home: ErasureHome) -> None:
    memory = _tell(home)
    preview, code = await home.erasure.request_code(ErasureRequest("owner", memories=(memory,)), NOW)
    lines = render_forget_preview(preview, code)
    assert "It came from 1 message; it would be forgotten, too:" in lines
    assert any(line.startswith("- 2026-11-20: My sister Marguerite") for line in lines)
    assert lines[-2:] == [
        f"It cannot be undone. To forget it, type /forget {code} within 15 minutes.",
        f"To keep what it came from: /forget {code} --keep-message",
    ]
    assert (await home.erasure.confirm(code, "owner", NOW, keep_messages=True)).messages == ()


async def test_what_a_compaction_learned_of_a_range_goes_with_the_message_that_has_its_values(
    home: ErasureHome,
) -> None:
    home.say("Good morning.", "Good morning.")
    _tell(home)
    home.say("Good night.", "Sleep well.")
    entry = home.add_entry("k3", "The code of the sister's door: 48213", [1, 8], source_type="compaction")
    home.add_entry("k4", "They greet each other.", [1, 8], source_type="compaction")
    done = await home.erasure.erase(ErasureRequest("owner", entries=(entry,)), NOW)
    assert 3 in done.messages and not {1, 7} & set(done.messages)
    assert "They greet each other." in {entry.content for entry in home.journal.entries("owner")}
    assert home.files_containing([b"48213"]) == []


@pytest.mark.parametrize(
    ("answer", "message", "memory"),
    [(b"\n", False, False), (b"y\n", False, False), (b"n\n", True, False), (b"c\n", True, True)],
)
def test_one_question_decides_and_yes_is_its_default(
    tmp_path: Path, answer: bytes, message: bool, memory: bool
) -> None:
    home = ErasureHome(tmp_path / "home").open()
    memory_id = _tell(home)
    home.close()
    person, terminal = pty.openpty()
    command = [*ASSISTANT_COMMAND, "memory", "forget", memory_id[:8]]
    environment = command_environment(home.path)
    with Popen(command, stdin=terminal, stdout=PIPE, stderr=PIPE, env=environment) as process:
        os.write(person, answer)
        _, err = process.communicate(timeout=TIMEOUT_SECONDS)
    os.close(person)
    os.close(terminal)
    assert "Forget the message that it came from, too? [Y/n, c to cancel]" in err.decode()
    assert (TOLD.encode() in (home.path / "log" / "main" / "conversation.jsonl").read_bytes()) is message
    assert (LEARNED in run(home.path, "memory", "list").out) is memory


def test_yes_means_all_of_it_backups_too(tmp_path: Path) -> None:
    home = ErasureHome(tmp_path / "home").open()
    memory_id = _tell(home)
    home.close()
    assert run(home.path, "backup", "create").returncode == 0
    done = run(home.path, "memory", "forget", memory_id[:8], "--yes")
    assert "They are found nowhere any more." in done.out and "- backups of the data folder: 1" in done.out
    assert home.files_containing(RARE) == []
    assert len(list((home.path / "backups").glob("*.tar.gz"))) == 1
    refused = run(home.path, "forget", "a text", "--keep-message", "--yes")
    assert "--keep-message is for a memory" in one_line_error(refused)


async def test_a_conversation_and_a_program_can_keep_the_message(tmp_path: Path) -> None:
    home = ErasureHome(tmp_path / "home").open()
    memory_id = _tell(home)
    home.close()
    async with run_app(home.path) as it:
        shown = await it.app.commands.run(f"/memory forget {memory_id[:8]}", MAIN_SESSION)
        code = shown.partition("/forget ")[2][:6]
        assert "2 messages say the same" in await it.app.commands.run(f"/forget {code} --keep-message", MAIN_SESSION)
    assert TOLD.encode() in (home.path / "log" / "main" / "conversation.jsonl").read_bytes()


async def test_the_entry_of_a_summary_goes_without_the_conversation(home: ErasureHome) -> None:
    _tell(home)
    home.say("And in Lisbon?", "It rains there too, says station QX-7731.")
    told = "Marguerite has the door code 48213. Lisbon is told of by station QX-7731."
    entry = home.add_entry("k3", told, [1, 6], source_type="context_synthesis")
    done = await home.erasure.erase(ErasureRequest("owner", entries=(entry,)), NOW)
    assert done.messages == () and TOLD in home.view_contents()


async def test_no_preview_has_a_message_number_that_nobody_asked_for(home: ErasureHome) -> None:
    memory = _tell(home)
    home.pins.add("main", "owner", "Marguerite has 48213", "user", 1, NOW)
    for request in (ErasureRequest("owner", memories=(memory,)), ErasureRequest("owner", text="Marguerite")):
        lines = render_forget_preview(await home.erasure.preview(request))
        assert not [line for line in lines if re.search(r"#\d|messages? \d|pin \d|plan \d", line)]
        assert any("- messages: 2 (2026-11-20: My sister Marguerite lives" in line for line in lines)
    asked = render_forget_preview(await home.erasure.preview(ErasureRequest("owner", messages=(1,))))
    assert any("- messages: 2 (#1, 2026-11-20: My sister Marguerite lives" in line for line in asked)


async def test_of_a_merged_memory_only_what_it_says_is_forgotten(home: ErasureHome) -> None:
    told = (
        "My sister Marguerite lives at Lindenweg 12.",
        "The door of Marguerite opens with 48213.",
        "Marguerite moved to Lindenweg 12 in spring.",
        "Peter keeps bees at Ulmenhof.",
    )
    for text in told:
        home.say(text, "All right.")
    memory = remembered(home, "k0", told[0], 1)
    merged = [home.add_entry(f"k{number}", text, [2 * number + 1]) for number, text in enumerate(told) if number]
    with home.character_db.write() as db:
        for entry in merged:
            db.insert_row("consolidated_entry_ids", entry_id=entry, memory_id=memory.id, cycle=1, at=NOW.isoformat())
    request = ErasureRequest("owner", memories=(memory.id,))
    lines = render_forget_preview(await home.erasure.preview(request))
    assert "It came from 2 messages; these would be forgotten, too:" in lines
    related = lines[lines.index(next(line for line in lines if "part of the same memory" in line)) :]
    assert [line.partition(": ")[2] for line in related[1:3]] == [told[1], told[3]]
    done = await home.erasure.erase(request, NOW)
    assert done.messages == (1, 5)
    assert [entry.content for entry in home.journal.entries("owner")] == [told[3], told[1]]
    assert {told[1], told[3]} <= set(home.view_contents())
