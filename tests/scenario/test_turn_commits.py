"""Which commits of a turn wait for the disk: those after which somebody outside knows what they say."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from assistant.core.bridge_api import BridgeCapabilities
from assistant.core.messages import Message, Usage
from assistant.core.model_api import ModelReply, StopReason
from assistant.models.failover import FailoverModel, RetryPolicy
from assistant.models.metered import MeteredModel
from assistant.models.prices import Prices
from tests.support.running_app import LiveApp, run_app, use_model
from tests.support.scripted import ScriptedModel, owner_message


class _Commits:
    """Notes the statements of script.db, and how each commit waits for the disk."""

    def __init__(self, it: LiveApp, monkeypatch: pytest.MonkeyPatch) -> None:
        self.statements: list[str] = []
        self.levels: list[str] = []
        self.synced_by: list[int] = []
        self.was_synced = threading.Event()
        self._level = "NORMAL" if not it.app.stores.conversation._db._durable else "FULL"
        self._connection = it.app.stores.conversation._db.connection
        self._sync = it.app.stores.outbox.sync
        monkeypatch.setattr(it.app.stores.outbox, "sync", self._note_sync)
        self._connection.set_trace_callback(self._note)

    def end(self) -> None:
        self._connection.set_trace_callback(None)

    def _note(self, statement: str) -> None:
        # Whether somebody else has committed is looked up in shared memory.
        if statement != "PRAGMA data_version":
            self.statements.append(statement)
        if statement.startswith("PRAGMA synchronous = "):
            self._level = statement.rpartition(" ")[2]
        elif statement == "COMMIT":
            self.levels.append(self._level)

    def _note_sync(self) -> None:
        self.synced_by.append(threading.get_ident())
        self._sync()
        self.was_synced.set()


async def _second_turn(home: Path, capabilities: BridgeCapabilities, monkeypatch: pytest.MonkeyPatch) -> _Commits:
    """A turn after one that was metered."""
    reply = ModelReply(Message("assistant", "A fine walk.", model="scripted-1"), Usage(input=900, output=5), "end")
    async with run_app(home, model=ScriptedModel(lambda request: reply)) as it:
        it.bridge.capabilities = capabilities
        model, stores = it.model, it.app.stores
        count = it.app.estimates.request_tokens
        metered = MeteredModel(model.provider, model.name, lambda: (model, Prices()), stores.ledger, count, it.clock)
        use_model(it.app, FailoverModel([metered], RetryPolicy()))
        await it.say("hello")
        await it.wait_idle()
        commits = _Commits(it, monkeypatch)
        await it.app.runtime.accept(owner_message("How was the walk?", external_id="walk"))
        await it.bridge.delivered.wait()
        await it.wait_idle()
        await it.app.dispatcher.flush()
        commits.end()
        assert await asyncio.to_thread(commits.was_synced.wait, 60)
    return commits


def test_a_turn_waits_for_the_disk_before_it_acknowledges_and_sends_and_no_oftener(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is: accepted, about to be sent; that it was sent is synced beside the loop. What a turn begins with, what it
    reserves within what was reserved with the message, what a call was billed and measured at, the correction learnt
    from it, and the answer, which the log has, are on the disk with the next of these."""
    commits = asyncio.run(
        _second_turn(tmp_path, BridgeCapabilities(dedupe_seconds=86_400, shows_sessions=True), monkeypatch)
    )
    # Each gives the interpreter back, and waits for whatever works beside the loop to get it again.
    assert len(commits.statements) <= 84, "\n".join(commits.statements)
    assert commits.levels == ["FULL", "NORMAL", "NORMAL", "NORMAL", "NORMAL", "NORMAL", "NORMAL", "FULL", "NORMAL"]
    assert len(commits.synced_by) == 1 and commits.synced_by[0] != threading.get_ident()


def test_where_a_key_is_shown_once_a_turn_waits_for_the_disk_only_to_accept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    capabilities = BridgeCapabilities(shows_sessions=True, shows_key_once=True)
    commits = asyncio.run(_second_turn(tmp_path, capabilities, monkeypatch))
    assert commits.levels == ["FULL"] + ["NORMAL"] * 8
    # A little later, unless the next message takes it along.
    assert len(commits.synced_by) == 1 and commits.synced_by[0] != threading.get_ident()


def test_an_answer_with_words_that_the_log_lacks_waits_for_the_disk(tmp_path: Path) -> None:
    """A start could not make the same body again."""

    async def commits_of(stop: StopReason) -> int:
        reply = ModelReply(Message("assistant", "A fine walk."), Usage(input=9, output=5), stop)
        async with run_app(tmp_path / stop, model=ScriptedModel(lambda request: reply)) as it:
            it.bridge.capabilities = BridgeCapabilities(shows_sessions=True, shows_key_once=True)
            db, before = it.app.stores.conversation._db, it.app.stores.conversation._db.durable_commits
            await it.say("How was the walk?")
            await it.wait_idle()
            await it.app.dispatcher.flush()
            return db.durable_commits - before

    assert asyncio.run(commits_of("max_tokens")) == asyncio.run(commits_of("end")) + 1
