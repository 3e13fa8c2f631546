"""Notices to the owner about the budget, each sent once. Pure.

Each has its own key, so that it is sent once; only the owner sees sums, settings and names of requests.
"""

from __future__ import annotations

from zoneinfo import ZoneInfo

from assistant.core.budget import BlockedRequest, BudgetNotice, BudgetStatus, CapNotice, CapUsage, ShareNotice
from assistant.core.notices import Notice, NoticeKind


def render_notice(notice: BudgetNotice, zone: ZoneInfo) -> Notice:
    """Return a notice for the owner, sent once under its name."""
    match notice:
        case CapNotice():
            return _render_cap(notice)
        case ShareNotice(role, cap):
            who = "guests" if role == "guest" else "rooms"
            return NoticeKind.SHARE_OF_OTHERS_USED.fill(notice.name, cap=cap, who=who, role=role)
        case BlockedRequest():
            return _render_blocked(notice, zone)


def _render_cap(notice: CapNotice) -> Notice:
    cap = notice.cap
    kind = {
        "near": NoticeKind.CAP_NEAR,
        "reached": NoticeKind.CAP_REACHED,
        "background": NoticeKind.BACKGROUND_SHARE_USED,
    }[notice.kind]
    return kind.fill(
        notice.name,
        share=f"{cap.share:.0%}",
        cap=cap.name,
        used=cap.describe(),
        state=cap.state,
        consequence=cap.consequence,
        unit=cap.unit,
        setting=cap.setting,
        raise_it=raise_cap_hint(cap),
    )


def _render_blocked(stopped: BlockedRequest, zone: ZoneInfo) -> Notice:
    until = f"{stopped.until.astimezone(zone):%Y-%m-%d %H:%M}"
    return NoticeKind.REPEATED_REQUEST.fill(stopped.name, purpose=stopped.purpose, times=stopped.times, until=until)


def budget_problems(status: BudgetStatus, zone: ZoneInfo) -> list[str]:
    """Return problems of the budget, one line each, that end with what to do."""
    spent = [
        f"The {cap.name} budget {cap.state}. {cap.consequence}. {raise_cap_hint(cap)}"
        for cap in status.caps
        if cap.is_used_up
    ]
    return [*spent, *(_render_blocked(request, zone).text for request in status.stopped)]


def budget_notes(status: BudgetStatus) -> list[str]:
    """Return remarks on the budget that need no action."""
    near = [
        f"{cap.share:.0%} of the {cap.name} budget is used: {cap.describe()}"
        for cap in status.caps
        if cap.is_near_limit and not cap.is_used_up
    ]
    quiet = [
        f"sleep works without a model until the next {cap.unit}: its part of the {cap.name} budget {cap.state} "
        "(budget.background_share)"
        for cap in status.background
        if cap.limit and cap.is_used_up
    ]
    return [*near, *quiet]


def raise_cap_hint(cap: CapUsage) -> str:
    return f"Raise it with `assistant config set budget.{cap.setting} NUMBER`, which takes effect at once."
