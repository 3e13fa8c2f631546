"""Floors carried out on a home's own stores: what was planned is what the view becomes, and coverage holds (I3)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from assistant.context.build import build_request
from assistant.context.pressure import PromptSize, RequestBudgets, measure_pressure
from assistant.core.messages import Message, ToolCall
from assistant.core.records import IncomingMessage
from assistant.settings.home import Home
from assistant.settings.settings import load_settings
from assistant.wire.stores import Stores
from sleep.compaction.fallback import plan_fallback
from sleep.compaction.plan import CompactionPlan
from sleep.compaction.values import CompactionLimits
from tests.support.conversation_strategies import COUNTER, FRAME, LIMITS, PROTECTED, apply_plan

START = datetime(2026, 11, 20, 8, 0, tzinfo=UTC)
TERMS = CompactionLimits(
    RequestBudgets(10_000, 1_000, 10_000_000, 20),
    COUNTER,
    fixed=PromptSize(500, 2_000),
    protected_tools=frozenset({PROTECTED}),
)


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    stores = Stores(load_settings(Home(tmp_path / "home"), {"TIKTOKEN_CACHE_DIR": ""}), START)
    yield stores
    stores.close()


def talk(stores: Stores, number: int, now: datetime) -> None:
    """One exchange; every second one with a tool, whose output is long at times."""
    said = IncomingMessage(
        "terminal", str(number), "main", "owner", "ada", "owner", f"request {number} " + "word " * 200
    )
    stores.conversation.accept(said, now)
    turn = stores.conversation.begin_turn(stores.conversation.list_accepted("main")[0], "", now)
    if number % 2:
        call = ToolCall(f"call_{number}", PROTECTED if number % 4 == 1 else "read_file", {"n": number})
        stores.conversation.record_messages(turn, [Message("assistant", "", tool_calls=(call,), model="m")], now)
        stores.conversation.start_tool(turn, call, now)
        output = "out\n" * (3000 if number % 6 == 3 else 50)
        stores.conversation.record_messages(turn, [Message("tool", output, tool_call_id=call.id, name=call.name)], now)
    stores.conversation.finish_turn(turn, "answered", Message("assistant", "answer " * 200, model="m"), [], now)


def make_room(stores: Stores, now: datetime) -> CompactionPlan | None:
    view = stores.conversation.load_view("main")
    if measure_pressure(view, TERMS.budgets, COUNTER, TERMS.fixed).ratio < TERMS.threshold:
        return None
    ids = [message.id for message in view.messages if message.id is not None]
    plan = plan_fallback(view, stores.conversation.find_log_places(ids), TERMS, now)
    whole = plan.as_compaction()
    assert whole is not None
    stores.conversation.commit_compaction(whole, now)
    left = stores.conversation.load_view("main")
    assert [(row.id, row.content) for row in left.messages] == [
        (row.id, row.content) for row in apply_plan(plan, view.messages)
    ]
    assert measure_pressure(left, TERMS.budgets, COUNTER, TERMS.fixed).ratio == pytest.approx(
        plan.after.ratio, abs=0.01
    )
    return plan


def test_f11_floor_after_floor_leaves_every_message_in_view_or_under_a_checkpoint(stores: Stores) -> None:
    plans: list[CompactionPlan] = []
    for number in range(70):
        now = START + timedelta(minutes=number)
        talk(stores, number, now)
        if number % 10 == 9:
            hidden = [row.id for row in stores.conversation.load_view("main").messages[-2:] if row.id is not None]
            stores.conversation.hide_messages("main", hidden, now)
        plan = make_room(stores, now)
        plans += [plan] if plan else []
    assert len([plan for plan in plans if plan.compaction]) >= 4 and any(plan.shorten for plan in plans)
    covering = [one for one in stores.conversation.checkpoints("main") if one.state == "live"]
    assert len(covering) == len([plan for plan in plans if plan.compaction])
    report = stores.verifier.verify()
    assert report.ok, report.problems


def test_the_request_after_a_floor_names_what_left_and_holds_the_protected_result(stores: Stores) -> None:
    plan = None
    number = 0
    while plan is None or plan.compaction is None:
        talk(stores, number, START + timedelta(minutes=number))
        plan = make_room(stores, START + timedelta(minutes=number))
        number += 1
    request = build_request(stores.conversation.load_view("main"), FRAME, LIMITS)
    assert f"{plan.compaction.messages_compressed} earlier messages, #1 to" in request.system[1].text
    assert any(row.name == PROTECTED for row in request.messages)
