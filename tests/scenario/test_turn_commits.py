"""Which commits of a turn wait for the disk: those after which somebody outside knows what they say."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from assistant.core.messages import Message, Usage
from assistant.core.model_api import ModelReply
from assistant.models.failover import FailoverModel, RetryPolicy
from assistant.models.metered import MeteredModel
from assistant.models.prices import Prices
from tests.support.running_app import run_app, use_model
from tests.support.scripted import ScriptedModel, owner_message


def test_a_turn_waits_for_the_disk_before_it_acknowledges_calls_and_sends_and_no_oftener(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is: accepted, reserved, about to be sent; that it was sent is synced beside the loop. What a turn begins
    with, what a call was billed and measured at, the correction learnt from it, and the answer, which the log has, are
    on the disk with the next of these."""
    levels: list[str] = []
    statements: list[str] = []
    synced_by: list[int] = []

    async def live() -> None:
        reply = ModelReply(Message("assistant", "A fine walk.", model="scripted-1"), Usage(input=900, output=5), "end")
        async with run_app(tmp_path, model=ScriptedModel(lambda request: reply)) as it:
            model, stores = it.model, it.app.stores
            count = it.app.estimates.request_tokens
            metered = MeteredModel(
                model.provider, model.name, lambda: (model, Prices()), stores.ledger, count, it.clock
            )
            use_model(it.app, FailoverModel([metered], RetryPolicy()))
            await it.say("hello")
            await it.wait_idle()
            connection = stores.conversation._db.connection
            level = "FULL"

            def traced(statement: str) -> None:
                nonlocal level
                statements.append(statement)
                if statement.startswith("PRAGMA synchronous = "):
                    level = statement.rpartition(" ")[2]
                elif statement == "COMMIT":
                    levels.append(level)

            sync = stores.outbox.sync

            def noted() -> None:
                synced_by.append(threading.get_ident())
                sync()

            monkeypatch.setattr(stores.outbox, "sync", noted)
            connection.set_trace_callback(traced)
            await it.app.runtime.accept(owner_message("How was the walk?", external_id="walk"))
            await it.bridge.delivered.wait()
            await it.wait_idle()
            await it.app.dispatcher.flush()
            connection.set_trace_callback(None)

    asyncio.run(live())
    # Each gives the interpreter back, and waits for whatever works beside the loop to get it again.
    # Whether somebody else has committed is looked up in shared memory.
    statements = [statement for statement in statements if statement != "PRAGMA data_version"]
    assert len(statements) <= 82, "\n".join(statements)
    assert levels == ["FULL", "NORMAL", "FULL", "NORMAL", "NORMAL", "NORMAL", "NORMAL", "FULL", "NORMAL"]
    assert len(synced_by) == 1 and synced_by[0] != threading.get_ident()
