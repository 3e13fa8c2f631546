"""Notices about the budget to the owner, each sent once. Pure.

A notice has a key of its own, so that it is sent once, whatever finds it; only the owner reads sums, settings and names
of requests.
"""

from __future__ import annotations

from zoneinfo import ZoneInfo

from assistant.core.budget import BlockedRequest, BudgetNotice, BudgetStatus, CapNotice, CapUsage, ShareNotice
from assistant.core.records import OutgoingMessage
from assistant.core.sessions import MAIN_SESSION, OWNER_SCOPE


def render_notice(notice: BudgetNotice, zone: ZoneInfo) -> OutgoingMessage:
    """To the owner's main conversation, under the notice's own name."""
    match notice:
        case CapNotice():
            body = _cap_text(notice)
        case ShareNotice(role, cap):
            who = "guests" if role == "guest" else "rooms"
            body = (
                f"The part of the {cap} budget that {who} may use is used up, so offline mode answers them. "
                f"`{role}.budget_share` in the settings sets the size of that part."
            )
        case BlockedRequest():
            body = blocked_request_text(notice, zone)
    key = f"budget:{notice.name}"
    return OutgoingMessage(key, MAIN_SESSION, OWNER_SCOPE, "terminal", MAIN_SESSION, body, "notice")


def _cap_text(notice: CapNotice) -> str:
    cap = notice.cap
    if notice.kind == "near":
        return (
            f"{cap.share:.0%} of the {cap.name} budget is used: {cap.describe()}. At 100% offline mode answers "
            f"until the next {cap.unit}. `budget.{cap.setting}` sets the amount; `/usage` shows what was spent."
        )
    if notice.kind == "reached":
        return (
            f"The {cap.name} budget is used up: {cap.describe()}. Nothing is lost. Offline mode (no language model) "
            f"answers until the next {cap.unit}. {raise_cap_hint(cap)} `/usage` shows what was spent."
        )
    return (
        f"The part of the {cap.name} budget for work in the background is used up: {cap.describe()}. Until the next "
        f"{cap.unit}, sleep works by rules, without a model; you are answered as before. "
        "`budget.background_share` sets the size of that part."
    )


def blocked_request_text(stopped: BlockedRequest, zone: ZoneInfo) -> str:
    """Why a request is not sent any more, in a line that ends with what to do."""
    until = f"{stopped.until.astimezone(zone):%Y-%m-%d %H:%M}"
    return (
        f"The same request ({stopped.purpose}) was sent {stopped.times} times within an hour without a result. It is "
        f"not sent again before {until}; rules do its work until then. `/sleep --last` shows what went wrong."
    )


def budget_problems(status: BudgetStatus, zone: ZoneInfo) -> list[str]:
    """What the owner has to know of the budget, each in a line that ends with what to do."""
    spent = [
        f"The {cap.name} budget is used up: {cap.describe()}. Offline mode answers until the next {cap.unit}. "
        f"{raise_cap_hint(cap)}"
        for cap in status.caps
        if cap.is_used_up
    ]
    return [*spent, *(blocked_request_text(request, zone) for request in status.stopped)]


def budget_notes(status: BudgetStatus) -> list[str]:
    """What is good to know of the budget, and needs nothing to be done."""
    near = [
        f"{cap.share:.0%} of the {cap.name} budget is used: {cap.describe()}"
        for cap in status.caps
        if cap.is_near_limit and not cap.is_used_up
    ]
    quiet = [
        f"sleep works without a model until the next {cap.unit}: its part of the {cap.name} budget is used up "
        f"({cap.describe()}; budget.background_share)"
        for cap in status.background
        if cap.limit and cap.is_used_up
    ]
    return [*near, *quiet]


def raise_cap_hint(cap: CapUsage) -> str:
    return f"Raise it with `assistant config set budget.{cap.setting} NUMBER`, which takes effect at once."
