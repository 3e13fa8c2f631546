"""Which plan carries out which order, and how far it is: the results so far decide the next call. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

from assistant.models.offline.agenda_answers import ask, look_up
from assistant.models.offline.orders import Order, fold, is_question, says
from assistant.models.offline.plans import (
    CANNOT,
    NOTHING_FITS,
    OtherAnswer,
    Plan,
    PlanContext,
    ToolFailedError,
    ToolStep,
)
from assistant.models.offline.remarks import remark
from assistant.models.offline.reminder_plans import again, cancel, move, remind, rename, snooze, undo
from assistant.models.offline.todo_plans import add, complete, more, relist, remove, reopen, undated

# They end as they are.
_NO_REMARKS = frozenset(["look_up", "remark", "world", "remind"])


def run_plan(order: Order, results: Sequence[str], context: PlanContext) -> ToolStep | str | int:
    """The next call, or the answer; a number where the sentence is to be read otherwise, with so many results used."""
    plan = _or_remark(order, context)
    used = 0
    try:
        step = next(plan)
        for result in results:
            used += 1
            step = plan.send(result)
        return step
    except StopIteration as end:
        return str(end.value)
    except OtherAnswer:
        return used
    except ToolFailedError as error:
        return f"That did not work: {error}"


def _or_remark(order: Order, context: PlanContext) -> Plan:
    """An order that turns out to be none may still be a remark on something that is there."""
    plan = _plans()[order.kind](order, context)
    if order.kind in _NO_REMARKS or (order.kind == "ask" and is_question(fold(order.text))):
        return (yield from plan)
    if order.kind in ("cancel", "remove", "complete") and says("others", fold(order.text)):
        return (yield from remark(order, context))
    try:
        answer = yield from plan
    except OtherAnswer:
        return (yield from remark(replace(order, soft=order.soft or order.kind == "ask"), context))
    if answer != CANNOT and not answer.startswith(NOTHING_FITS):
        return answer
    try:
        return (yield from remark(replace(order, soft=True), context))
    except OtherAnswer:
        return answer


def cannot(order: Order, context: PlanContext) -> Plan:
    yield from ()
    return CANNOT


@cache
def _plans() -> dict[str, Callable[[Order, PlanContext], Plan]]:
    made = (
        remind,
        again,
        snooze,
        cancel,
        move,
        rename,
        undo,
        add,
        more,
        complete,
        reopen,
        remove,
        undated,
        relist,
        cannot,
        remark,
    )
    return {"ask": ask, "look_up": look_up, "world": cannot, "change": move, **{plan.__name__: plan for plan in made}}
