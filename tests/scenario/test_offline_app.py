"""Offline mode in the whole program: real stores and search, real tools, the real runtime."""

from __future__ import annotations

from pathlib import Path

import pytest

from assistant.models.offline.model import OfflineModel
from tests.support.offline_facts import QUESTIONS, STATEMENTS, UNSEEN_QUESTIONS, UNSEEN_STATEMENTS
from tests.support.running_app import LiveApp, run_app


async def say(it: LiveApp, text: str) -> str:
    await it.say(text)
    await it.wait_idle()
    return it.bridge.bodies[-1]


def right(reply: str, value: str) -> bool:
    """Whether the first quotation holds `value`, or, without one to find, none is given as the answer."""
    if not value:
        return reply.startswith("I found nothing")
    return reply.startswith("You told me") and value in reply.split("\n\n")[1]


async def test_a_day_with_the_offline_model(tmp_path: Path) -> None:
    async with run_app(tmp_path, model=OfflineModel()) as it:  # type: ignore[arg-type]
        assert "offline" in await say(it, "hi")
        assert (await say(it, "my sister is called Hanna")).startswith("Noted.")
        assert "- 1: milk" in await say(it, "add milk to my list")
        assert "> my sister is called Hanna" in await say(it, "no, my sister is called Anna, not Hanna")
        assert "> no, my sister is called Anna" in await say(it, "what is my sister called?")
        assert "Sunday 2026-03-01" in await say(it, "what day is it today?")
        assert "Completed: 1." in await say(it, "done with milk")
        assert [todo.done for todo in it.app.stores.todos.list_todos("owner", include_done=True)] == [True]
        assert "> my sister is called Hanna" in await say(it, "read #3")


@pytest.mark.parametrize("text", ["setup", "Setup.", "assistant setup model", "run setup"])
async def test_who_types_setup_is_told_where_it_is_run(tmp_path: Path, text: str) -> None:
    async with run_app(tmp_path, model=OfflineModel()) as it:  # type: ignore[arg-type]
        answer = await say(it, text)
        assert "`assistant setup`" in answer and "Noted" not in answer
        assert "Noted" in await say(it, "the setup of the stage took an hour")


async def test_whoever_wants_something_forgotten_is_told_of_the_command_in_each_language(tmp_path: Path) -> None:
    async with run_app(tmp_path, model=OfflineModel()) as it:  # type: ignore[arg-type]
        for text in (
            "Forget the password of the cellar",
            "Vergiss das Passwort für den Keller",
            "Oublie le mot de passe de la cave",
            "Olvida la contraseña del sótano",
        ):
            answer = await say(it, text)
            assert "If you mean what you told me: `/forget` erases words from everything that is stored." in answer
        assert "`/forget`" not in await say(it, "Cancel the reminder of the dentist")


@pytest.mark.parametrize(
    ("told", "asked", "allowed"),
    [(STATEMENTS, QUESTIONS, 3), (UNSEEN_STATEMENTS, UNSEEN_QUESTIONS, 4)],
    ids=["first", "second"],
)
async def test_facts_are_found_by_the_stores_own_search(
    tmp_path: Path, told: tuple[str, ...], asked: tuple[tuple[str, str], ...], allowed: int
) -> None:
    async with run_app(tmp_path, model=OfflineModel()) as it:  # type: ignore[arg-type]
        for text in told:
            await say(it, text)
        wrong = []
        for question, value in asked:
            reply = await say(it, question)
            wrong += [] if right(reply, value) else [f"{question} -> {reply}"]
    assert len(wrong) <= allowed, "\n".join(wrong)


async def test_what_only_an_added_file_says_is_answered_with_the_name_of_the_file(tmp_path: Path) -> None:
    async with run_app(tmp_path, model=OfflineModel()) as it:  # type: ignore[arg-type]
        assert "I found nothing" in await say(it, "When is the launch?")
        plan = tmp_path / "workspace" / "files" / "plan.md"
        plan.parent.mkdir(parents=True, exist_ok=True)
        wrapped = "The parking permit for guests is at the\nfront desk, behind the\nlamp. Ring twice.\n"
        text = f"# Plan\n\nLaunch date: 14 March 2027\nVenue: the old mill\n\n{wrapped}"
        plan.write_text(text, encoding="utf-8")
        for question in ("When is the launch?", "Wann ist der Launch?", "what's the launch date"):
            answer = await say(it, question)
            assert answer.startswith('In the file "files/plan.md":') and "> Launch date: 14 March 2027" in answer
        quoted = await say(it, "Where is the parking permit?")
        assert "> The parking permit for guests is at the front desk, behind the lamp. Ring twice." in quoted
        for other in ("When is the harvest?", "When is the lunch?"):
            assert "I found nothing" in await say(it, other)
        await say(it, "The launch is on 20 March 2027.")
        assert (await say(it, "When is the launch?")).startswith("You told me")
