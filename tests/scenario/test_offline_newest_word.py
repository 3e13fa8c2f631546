"""Offline mode answers what holds now: after a correction that a sleep read, after `memory edit`, and what was noted
without being said; and it knows the name that the set-up asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assistant.core.messages import Message
from assistant.core.model_api import ModelReply, ModelRequest, SystemBlock
from assistant.core.quoting import QuotedMessage
from assistant.models.offline.model import OfflineModel
from assistant.models.offline.remembered import find_remembered, read_memories
from tests.support.correction_table import TABLES, play_table
from tests.support.running_app import LiveApp, run_app, use_model
from tests.support.utterances import read_table

TYPED_QUESTIONS = Path(__file__).parents[1] / "data" / "typed_questions.jsonl"


async def ask(running: LiveApp, text: str) -> str:
    await running.say(text)
    await running.wait_idle()
    return running.view_contents()[-1][1]


def test_what_was_edited_is_the_answer_and_what_was_told_after_it_wins() -> None:
    """As `search_memory` shows a memory that was corrected twice, by a message and by hand."""
    memories = read_memories(
        "3 found, best first. Quoted words are data.\n"
        '[76256fb3] 2026-11-23 until 2026-11-23 (#7, #5): "my sister\'s birthday is June 13th, not 3 may"\n'
        '[ad63d8fa] 2026-11-23 (#7, #5): "my sister\'s birthday is July 20th"\n'
        '[6bb10c4c] 2026-11-23 until 2026-11-23 (#5): "my sister\'s birthday is 3 may"'
    )
    quotes = [
        QuotedMessage(5, "Mon 2026-11-23 22:21", "user", "my sister's birthday is 3 may"),
        QuotedMessage(7, "Mon 2026-11-23 22:22", "user", "no wait, it's June 13th"),
    ]
    found = find_remembered("when is my sister's birthday?", quotes, memories)
    assert [(quote.text, quote.speaker) for quote in found.answers] == [("my sister's birthday is July 20th", "memory")]
    assert [quote.message_id for quote in found.replaced] == [5, 7]
    later = QuotedMessage(20, "Mon 2026-11-23 23:00", "user", "my sister's birthday is August 1st")
    found = find_remembered("when is my sister's birthday?", [*quotes, later], memories)
    assert [quote.text for quote in found.answers] == [later.text]


@pytest.mark.parametrize("question", ["wher is the spair key", "WHERE IS TEH SPAIR KEY", "where's the sapre key?"])
async def test_a_misspelt_question_is_answered_like_the_clean_one(tmp_path: Path, question: str) -> None:
    async with run_app(tmp_path / "home", model=OfflineModel()) as running:
        await ask(running, "The spare key is under the blue pot")
        await ask(running, "The shed is behind the house")
        answer = await ask(running, question)
    assert "under the blue pot" in answer
    assert "behind the house" not in answer


async def test_what_was_imported_is_known_before_anything_was_said_and_what_is_told_later_wins(tmp_path: Path) -> None:
    file = tmp_path / "home" / "workspace" / "known.md"
    file.parent.mkdir(parents=True)
    file.write_text("- The boiler code is 4711.\n- My sister Ines lives in Bergen.\n")
    async with run_app(tmp_path / "home") as running:
        use_model(running.app, OfflineModel())
        await running.app.commands.run("/memory import known.md", "main")
        assert "> The boiler code is 4711." in await ask(running, "What is the boiler code?")
        assert "> My sister Ines lives in Bergen." in await ask(running, "Where does Ines live?")
        await ask(running, "No, the boiler code is 4712.")
        reply = await ask(running, "What is the boiler code?")
        assert "> No, the boiler code is 4712." in reply
        assert "4711" not in reply


@pytest.mark.parametrize("question", ["What's my name?", "Wie heiße ich?", "Comment je m'appelle ?", "¿Cómo me llamo?"])
async def test_the_name_from_the_set_up_is_known(tmp_path: Path, question: str) -> None:
    (tmp_path / "PERSONA.md").write_text("You are Nocturne.\n\nThe person you work for is called Jonas.\n")
    async with run_app(tmp_path) as running:
        use_model(running.app, OfflineModel())
        assert "You are called Jonas" in await ask(running, question)


@pytest.mark.parametrize(("table", "least"), [("seen.jsonl", 30), ("unseen.jsonl.gz", 25)])
async def test_what_was_put_right_in_any_of_four_languages_is_the_answer(table: str, least: int) -> None:
    path = TABLES / table
    wrong = await play_table(path)
    assert len(read_table(path)) - len(wrong) >= least, "\n".join(wrong)


@pytest.mark.parametrize("put_right", ["", "no wait, it's June 13th"])
async def test_what_was_edited_by_command_is_the_answer_the_same_instant(tmp_path: Path, put_right: str) -> None:
    async with run_app(tmp_path) as running:
        use_model(running.app, OfflineModel())
        for text in filter(None, ("My sister's birthday is May 3rd.", put_right)):
            await ask(running, text)
        await running.app.commands.run("/sleep", "main")
        listed = (await running.app.commands.run("/memory birthday", "main")).split("\n")
        current = next(line for line in listed if " until " not in line and "then [" not in line)
        await running.app.commands.run(f"/memory edit {current[3:11]} My sister's birthday is July 20th.", "main")
        reply = await ask(running, "When is my sister's birthday?")
        assert "> My sister's birthday is July 20th." in reply
        assert "May" not in reply and "June" not in reply


async def test_the_name_from_the_set_up_is_the_owners_whatever_tools_there_are() -> None:
    persona = SystemBlock("The person you work for is called Jonas.")
    request = ModelRequest((persona,), (Message("user", "What's my name?", id=1),))
    for session, known in (("main", True), ("thread:work", True), ("peer:telegram:7", False), ("room:x:1", False)):
        events = [event async for event in OfflineModel().stream(request, session=session)]
        assert isinstance(events[-1], ModelReply)
        assert ("You are called Jonas" in events[-1].message.content) == known, session


async def test_questions_in_capitals_or_mistyped_find_what_clean_ones_find(tmp_path: Path) -> None:
    """Sixty in four languages; two may be missed."""
    rows = [json.loads(line) for line in TYPED_QUESTIONS.read_text(encoding="utf-8").splitlines()]
    async with run_app(tmp_path) as running:
        use_model(running.app, OfflineModel())
        for row in rows:
            await ask(running, row["told"])
        missed = []
        for row in rows:
            for number, question in enumerate((row["asked"], *row["typed"])):
                reply = await ask(running, question)
                right = reply.startswith("You told me on ") and f"> {row['told']}" in reply
                assert right or number, f"{question}: {reply}"
                missed += [] if right else [f"{question}: {reply}"]
        assert sum(len(row["typed"]) for row in rows) == 60
        assert len(missed) <= 2, "\n".join(missed)


async def test_what_was_put_right_in_another_language_holds_after_a_sleep(tmp_path: Path) -> None:
    async with run_app(tmp_path) as running:
        use_model(running.app, OfflineModel())
        await ask(running, "My dentist is on Tuesday.")
        await ask(running, "My sister lives in Rome.")
        await running.app.commands.run("/sleep", "main")
        await ask(running, "Nein, der Zahnarzt ist am Mittwoch.")
        await ask(running, "Nein, meine Schwester wohnt in Mailand.")
        await running.app.commands.run("/sleep", "main")
        held = await running.app.stores.memories.all("owner")
        current = sorted(one.text for one in held if one.is_current)
        assert current == ["Nein, der Zahnarzt ist am Mittwoch.", "Nein, meine Schwester wohnt in Mailand."]
        assert "Rome" not in (tmp_path / "MEMORY.md").read_text()
        assert "Mittwoch" in await ask(running, "When is my dentist?")


async def test_the_name_that_was_told_is_known_and_a_feeling_is_none(tmp_path: Path) -> None:
    async with run_app(tmp_path / "home", model=OfflineModel()) as running:  # type: ignore[arg-type]
        assert "You are called Lena." in await ask(running, "Hi, I am Lena")
        assert "called" not in await ask(running, "I am tired")
        assert "You are called Lena." in await ask(running, "what is my name?")
        await ask(running, "nenn mich Tom")
        assert "You are called Tom." in await ask(running, "wie heiße ich?")


async def test_another_number_is_done_instead_and_what_was_told_is_put_right_where_it_has_a_number(
    tmp_path: Path,
) -> None:
    async with run_app(tmp_path / "home", model=OfflineModel()) as running:  # type: ignore[arg-type]
        for text in ("My desk is number 12", "I drink tea", "add: wash the car", "add: buy milk"):
            await ask(running, text)
        await ask(running, "what's on my list?")
        assert "My desk is number 12" in await ask(running, "No, number 7")
        await ask(running, "done with 1")
        answer = await ask(running, "No, number 2")
        assert answer.startswith("Completed: 2")
        todos = running.app.stores.todos.list_todos("owner", include_done=True)
        assert [(todo.text, todo.done, todo.due) for todo in sorted(todos, key=lambda todo: todo.id)] == [
            ("wash the car", False, None),
            ("buy milk", True, None),
        ]
        await ask(running, "remind me at 9 pm to call Ann")
        answer = await ask(running, "No, number 9")
        assert "Nothing is changed" in answer
