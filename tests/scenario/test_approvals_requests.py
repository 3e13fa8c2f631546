"""Closing a request needs no word where the turn answers it or the person speaks of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from assistant.core.messages import ToolCall
from assistant.core.model_api import ModelRequest
from assistant.core.sessions import MAIN_SESSION
from tests.scenario.test_approvals import READ, app, ask
from tests.support.scripted import ScriptStep


async def test_the_request_that_a_turn_answers_is_closed_without_a_word(tmp_path: Path) -> None:
    def close(request: ModelRequest) -> ScriptStep:
        return ToolCall("c1", "close_requests", {"ids": [1], "state": "done"})

    async with app(tmp_path, READ, close, "Booked.") as it:
        assert await ask(it, "Please book the ferry as notes.txt says") == "Booked."
        assert it.app.stores.requests.list_open(MAIN_SESSION) == []


@pytest.mark.parametrize(
    ("said", "is_closed"),
    [
        ("Check notes.txt. The ferry is booked by the way", True),
        ("Schau in notes.txt, die ferry ist gebucht", True),
        ("What does notes.txt say?", False),
        ("Is the ferry booked? See notes.txt", False),
    ],
)
async def test_an_earlier_request_is_closed_without_a_question_where_the_person_speaks_of_it(
    tmp_path: Path, said: str, is_closed: bool
) -> None:
    def close(request: ModelRequest) -> ScriptStep:
        return ToolCall("c1", "close_requests", {"ids": [1], "state": "done"})

    async with app(tmp_path, "I will.", READ, close, "Well.") as it:
        await ask(it, "Please book the ferry to Bergen for me")
        answer = await ask(it, said)
        assert ("Not done yet" in answer) is not is_closed
        assert (it.app.stores.requests.list_open(MAIN_SESSION) == []) is is_closed
