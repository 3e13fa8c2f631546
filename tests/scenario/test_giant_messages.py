"""Whatever one person says, and however much of it: everybody else is served meanwhile. What takes long is done beside
the loop, and what was decided from what stood there before is looked at again."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from assistant.core.sessions import peer_session_key
from tests.scenario.test_edits_and_attachments import change, newest
from tests.support.running_app import ANN, OWNER, BridgePeople, run_app

ANNS = peer_session_key("kept", ANN)


class HeldRecall:
    """Stands before the recall of messages: it waits until it is let go, for some seconds at most."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self.asked, self.go = threading.Event(), threading.Event()

    def has_something_out_of(self, view: Any) -> bool:
        return bool(view.session == "main")

    def recall_lines(self, *question: Any) -> dict[int, str]:
        self.asked.set()
        self.go.wait(5)
        return dict(self._real.recall_lines(*question))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


@asynccontextmanager
async def while_something_is_recalled(home: Path) -> AsyncIterator[tuple[BridgePeople, HeldRecall]]:
    """The owner said something, for which what was said before is being looked up."""
    async with run_app(home, "ok") as it:
        them = BridgePeople(it)
        await them.allow_everybody()
        await them.wait_idle()
        recall = it.app.runtime._turn_context._recall
        held = recall._history = HeldRecall(recall._history)  # type: ignore[assignment]
        await it.bridge.receive_message("Where is the boat?", "owners", OWNER)
        await it.app.runtime.tick(it.clock())
        await asyncio.to_thread(held.asked.wait, 5)
        yield them, held
        held.go.set()
        await them.wait_idle()


async def test_others_are_answered_while_it_is_looked_up_what_one_person_said_before(tmp_path: Path) -> None:
    async with while_something_is_recalled(tmp_path) as (them, held):
        app = them.running.app
        await them.running.bridge.receive_message("Hello", "anns", ANN)
        await app.runtime.tick(app.base.clock())
        await asyncio.wait(app.running_turns.tasks([ANNS]))
        await app.dispatcher.flush()
        assert not held.go.is_set()
        assert [target for target, body in them.sent_since_last() if body == "ok"] == [ANN]
        held.go.set()
        await them.wait_idle()
        assert [target for target, body in them.sent_since_last() if body == "ok"] == [OWNER]


async def test_what_is_taken_back_while_it_is_looked_up_is_not_answered(tmp_path: Path) -> None:
    async with while_something_is_recalled(tmp_path) as (them, held):
        await change(them.running, "owners", None)
        held.go.set()
        await them.wait_idle()
        assert them.running.model.requests == []


async def test_what_is_changed_while_it_is_looked_up_is_answered_as_it_reads_then(tmp_path: Path) -> None:
    async with while_something_is_recalled(tmp_path) as (them, held):
        await change(them.running, "owners", "Where is the harbour?")
        held.go.set()
        await them.wait_idle()
        assert ["harbour" in newest(request) for request in them.running.model.requests] == [True]
