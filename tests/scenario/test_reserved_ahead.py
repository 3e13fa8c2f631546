"""What is reserved for a call that is not made counts no longer than its message waits, also over a restart."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from assistant.core.bridge_api import MessageChange
from assistant.core.messages import Message, Usage
from assistant.core.model_api import ModelReply
from assistant.models.failover import FailoverModel, RetryPolicy
from assistant.models.metered import MeteredModel
from assistant.models.prices import Price, Prices
from assistant.store.script import reserved_ahead
from tests.support.running_app import LiveApp, run_app, use_model
from tests.support.scripted import ScriptedModel, owner_message

_PRICES = Prices({"scripted-1": Price(input=1, output=5, cache_read=0.1, cache_write=1.25)})
_REPLY = ModelReply(Message("assistant", "A fine walk.", model="scripted-1"), Usage(input=900, output=5), "end")


@asynccontextmanager
async def metered_app(home: Path) -> AsyncIterator[LiveApp]:
    async with run_app(home, model=ScriptedModel(lambda request: _REPLY)) as it:
        model, count = it.model, it.app.estimates.request_tokens
        metered = MeteredModel(
            model.provider, model.name, lambda: (model, _PRICES), it.app.stores.ledger, count, it.clock
        )
        use_model(it.app, FailoverModel([metered], RetryPolicy()))
        try:
            yield it
        finally:
            if it.model.gate is not None:
                it.model.gate.set()


async def with_one_waiting(it: LiveApp) -> int:
    """A message was answered, one is being answered, and the next one waits, with its call reserved."""
    await it.say("hello")
    await it.wait_idle()
    it.model.gate, it.model.called = asyncio.Event(), asyncio.Event()
    await it.say("How was the walk?")
    await it.app.runtime.tick(it.clock())
    await it.model.called.wait()
    waiting = await it.say("And the one before?")
    assert rows(it) == ["settled", "reserved", "ahead"]
    return waiting


def rows(it: LiveApp) -> list[str]:
    """The calls that count, by their state; each sum is that of the rows."""
    db = it.app.stores.ledger._db
    counted = db.rows("SELECT iif(boot IS NULL, state, 'ahead') AS state FROM usage ORDER BY id")
    calls, usd = db.rows("SELECT count(*), sum(iif(state = 'reserved', reserved_usd, usd)) FROM usage")[0]
    status = it.app.stores.ledger.budget_status(it.clock())
    assert (status.day.calls, pytest.approx(status.day.usd)) == (calls, usd)
    return [row["state"] for row in counted]


async def test_what_waits_at_a_stop_is_counted_once_it_is_answered_and_not_before(tmp_path: Path) -> None:
    async with metered_app(tmp_path) as it:
        await with_one_waiting(it)
        # It is answered while the assistant stops, which begins with no other.
        asyncio.get_running_loop().call_soon(it.model.gate.set)
    async with metered_app(tmp_path) as it:
        assert "ahead" not in rows(it) and "reserved" not in rows(it)


async def killed(home: Path, left: Path) -> None:
    """`left` is what a home has whose process is killed while a message waits."""
    async with metered_app(home) as it:
        await with_one_waiting(it)
        shutil.copytree(home, left)
        it.model.gate.set()
        await it.wait_idle()


async def test_what_a_killed_process_reserved_for_a_message_is_counted_once_when_it_is_answered(tmp_path: Path) -> None:
    await killed(tmp_path / "home", tmp_path / "left")
    async with metered_app(tmp_path / "left") as it:
        await it.wait_idle()
        # The call that was under way may have been billed. Its turn goes on at once, before anything is metered here.
        assert sorted(rows(it)) == ["reserved", "settled", "settled"]
        assert len(it.bridge.bodies) == 2


async def test_after_a_power_cut_it_goes_on_counting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The row of the call that replaced it was on no disk."""
    await killed(tmp_path / "home", tmp_path / "left")
    boot = tmp_path / "boot_id"
    for name in ("another\n", "a third\n"):
        boot.write_text(name, encoding="utf-8")
        monkeypatch.setattr(reserved_ahead, "BOOT_ID_FILE", boot)
        async with metered_app(tmp_path / "left") as it:
            await it.wait_idle()
            assert sorted(rows(it)) == ["ahead", "reserved", "settled", "settled"]


async def test_where_the_boot_is_not_known_it_goes_on_counting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reserved_ahead, "BOOT_ID_FILE", tmp_path / "nothing")
    await killed(tmp_path / "home", tmp_path / "left")
    async with metered_app(tmp_path / "left") as it:
        await it.wait_idle()
        assert sorted(rows(it)) == ["ahead", "reserved", "settled", "settled"]


async def test_what_was_reserved_for_a_message_that_is_withdrawn_counts_no_longer(tmp_path: Path) -> None:
    async with metered_app(tmp_path) as it:
        await it.say("hello")
        await it.wait_idle()
        with it.app.running_turns.pause_session("main"):
            await it.say("How was the walk?", "walk")
            it.app.check_due()
            assert rows(it) == ["settled", "ahead"]
            said = owner_message("How was the walk?", external_id="walk")
            change = MessageChange(said.bridge, "walk", "c1", "delete", said.sender)
            assert it.app.stores.message_edits.record_change(change, it.clock())
            it.app.check_due()
            assert rows(it) == ["settled"]


async def test_what_was_reserved_for_a_message_that_a_stop_ends_unanswered_is_counted_no_longer(tmp_path: Path) -> None:
    """The turn that it joined made no further call."""
    async with metered_app(tmp_path) as it:
        await with_one_waiting(it)
        it.model.gate = None
        await it.app.runtime.stop_turn("main")
        await it.wait_idle()
        assert rows(it) == ["settled"] * 3
