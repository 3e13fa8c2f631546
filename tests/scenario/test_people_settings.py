"""What the settings say of guests and rooms holds through the whole app: what is learned of them, what they cost."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from assistant.core.errors import BudgetExceeded, ModelError
from assistant.core.model_api import ModelCall
from assistant.core.sessions import peer_session_key, room_session_key
from assistant.runtime.turn import UNAVAILABLE_REPLY
from tests.support.outboxes import recent_items
from tests.support.running_app import ANN, OWNER, ROOM, BridgePeople, run_app

ANNS, ROOMS = peer_session_key("kept", ANN), room_session_key("kept", ROOM)
TOLD = "I live in Gjeving and my sister is called Kari."


async def learned(home: Path, **environ: str) -> set[str]:
    """The scopes in which something is noted after the owner, a guest and a room told the same."""
    async with run_app(home, "I see.", **environ) as it:
        them = BridgePeople(it)
        await them.allow_everybody()
        await them.write(TOLD, OWNER)
        await them.write(TOLD, ANN)
        await them.write(TOLD, ANN, room=ROOM)
        await it.app.sleep.scheduler.run_now("nap")
        journal = it.app.stores.journal
        assert all(journal.read_position("extract", session, 1) for session in ("main", ANNS, ROOMS)), "nothing waits"
        return {scope for scope in ("owner", ANNS, ROOMS) if journal.entries(scope)}


async def test_what_others_say_is_learned_where_the_settings_say_so(tmp_path: Path) -> None:
    assert await learned(tmp_path / "a") == {"owner", ANNS, ROOMS}
    assert await learned(tmp_path / "b", ASSISTANT_GUEST__MEMORY="false") == {"owner", ROOMS}
    assert await learned(tmp_path / "c", ASSISTANT_ROOM__MEMORY="false") == {"owner", ANNS}


async def test_the_owner_is_told_once_a_day_that_a_share_is_used_up(tmp_path: Path) -> None:
    async with run_app(tmp_path, ASSISTANT_BUDGET__DAILY_USD="1.0", ASSISTANT_GUEST__BUDGET_SHARE="0.1") as it:
        ledger, outbox = it.app.stores.ledger, it.app.stores.outbox
        for day in range(2):
            for _ in range(3):
                with pytest.raises(BudgetExceeded):
                    ledger.reserve(ModelCall("chat", "anthropic", "m", 10, 10, 0.5, ANNS), it.clock())
            told = [item.outgoing.body for item in recent_items(outbox, "main")]
            assert len(told) == day + 1 and "daily budget that guests may use is used up" in told[-1]
            it.clock.now += timedelta(days=1)
        assert recent_items(outbox, ANNS) == []


async def test_what_fails_is_explained_to_the_owner_alone(tmp_path: Path) -> None:
    async with run_app(tmp_path, ModelError("http://nas.local:11434 does not answer", kind="network")) as it:
        them = BridgePeople(it)
        await them.allow_everybody()
        await them.write("hello", OWNER)
        await them.write("hello", ANN)
        assert them.sent_since_last() == [(OWNER, "http://nas.local:11434 does not answer"), (ANN, UNAVAILABLE_REPLY)]


async def test_a_fault_of_ours_names_nothing_to_a_guest(tmp_path: Path) -> None:
    def fail(_: object) -> str:
        raise RuntimeError("the owner's secret")

    async with run_app(tmp_path, fail) as it:
        them = BridgePeople(it)
        await them.allow_everybody()
        await them.write("hello", ANN)
        told = "Something in the assistant failed. Your message is kept; `/retry` asks again."
        assert them.sent_since_last() == [(ANN, told)]
