"""What a branch or a resumed conversation began with is compacted as what was said in it is, also where nobody has said
anything in it yet (I7). All of it was passed over: a window that was made smaller left such a conversation full."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from assistant.core.checkpoints import Checkpoint
from assistant.core.errors import ModelError
from assistant.core.messages import Message
from tests.support.compaction_app import app_with_long_messages, summary_writer
from tests.support.running_app import LiveApp, use_model
from tests.support.scripted import ScriptedModel, owner_message

_WALKS = 20


@asynccontextmanager
async def _walked(home: Path, by: ScriptedModel | None = None) -> AsyncIterator[LiveApp]:
    """A conversation of long messages of which nothing was compacted."""
    room = {"ASSISTANT_CONTEXT__MAX_CONTEXT_TOKENS": "60000", "ASSISTANT_COMPACTION__ECONOMY": "off"}
    async with app_with_long_messages(home, _WALKS, by=by, **room) as it:
        await it.wait_idle()
        yield it
        assert it.app.stores.verifier.verify().ok


async def _branch(it: LiveApp) -> str:
    await it.app.commands.run("/branch", "main")
    return "branch:1"


async def _resume(it: LiveApp) -> str:
    await it.app.commands.run("/reset", "main")
    await it.wait_idle()
    await it.app.commands.run("/sessions resume main", "main")
    return "main"


_WAYS = pytest.mark.parametrize("begin", [_branch, _resume], ids=["branch", "resumed"])
_Begin = Callable[[LiveApp], Awaitable[str]]


def _view(it: LiveApp, session: str) -> list[Message]:
    return [*it.app.stores.conversation.load_view(session).messages]


def _made(it: LiveApp, session: str) -> list[Checkpoint]:
    generation = it.app.stores.conversation.load_view(session).generation
    return it.app.stores.conversation.live_checkpoints(session, generation)


def _answer_in(it: LiveApp, window: int) -> None:
    use_model(it.app, ScriptedModel("A fine walk.", window=window, name="small-1"))


@_WAYS
async def test_a_sleep_compacts_it_before_anybody_wrote_in_it(tmp_path: Path, begin: _Begin) -> None:
    by = summary_writer()
    async with _walked(tmp_path, by) as it:
        session = await begin(it)
        before = _view(it, session)
        assert [row.id is None for row in before].count(False) == 1
        _answer_in(it, 12_000)
        await it.app.commands.run("/sleep", session)
        (made,) = _made(it, session)
        pressure = it.app.contexts.window.pressure(session)
        assert pressure is not None and pressure < 0.5 and made.tier == "full"
        view = _view(it, session)
        # Where it goes on from is as it was, and what else is left of it is word for word.
        assert view[0].is_summary and view[-1] == before[-2]
        assert {row.content for row in view[1:]} < {row.content for row in before}
        await it.app.commands.run(f"/compact --undo {made.id}", session)
        assert _view(it, session) == before


@_WAYS
async def test_it_is_shortened_where_no_model_answers(tmp_path: Path, begin: _Begin) -> None:
    async with _walked(tmp_path, summary_writer(ModelError("away", kind="network"))) as it:
        session = await begin(it)
        last = _view(it, session)[-2]
        _answer_in(it, 9_000)
        await it.app.commands.run("/sleep", session)
        pressure = it.app.contexts.window.pressure(session)
        assert pressure is not None and pressure < 0.8
        assert _view(it, session)[-1] == last


async def test_a_message_in_a_branch_that_became_too_full_keeps_a_summary_of_it(tmp_path: Path) -> None:
    """Nobody waits for a model: without one, too, what was said before the branch is not dropped whole."""
    async with _walked(tmp_path) as it:
        session = await _branch(it)
        last = _view(it, session)[-2]
        _answer_in(it, 9_000)
        await it.app.runtime.accept(owner_message("And now?", external_id="b1", session=session))
        await it.wait_idle()
        view = _view(it, session)
        assert [row.content for row in view[-2:]] == ["And now?", "A fine walk."]
        assert "walk 1" in view[0].content and last in view
