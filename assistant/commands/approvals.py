"""`approvals`: effects that the model wanted and nobody asked for, and the owner's yes or no to them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, tzinfo

import click

from assistant.commands.context import CommandContext
from assistant.commands.items import Item
from assistant.commands.table import CommandGroup, number_argument
from assistant.core.approvals import Approval, ApprovalState, describe_outcome
from assistant.core.calendar import format_moment
from assistant.core.text import pluralize

_RECENT = 20


class ApprovalItem(Item):
    id: int
    state: ApprovalState
    effect: str
    session: str
    tool: str
    created_at: datetime
    expires_at: datetime
    decided_at: datetime | None
    result: str
    allows: str


class AllowedItem(Item):
    id: int
    allows: str
    allowed_until: datetime
    uses: int
    used_at: datetime | None
    tool: str
    decided_at: datetime


def _render_allowed(allowed: Sequence[Approval], zone: tzinfo) -> str:
    lines = [f"- {it.id}: {it.allows}; {_uses(it, zone)}" for it in allowed]
    return "\n".join(lines) or "Nothing is allowed without a question."


def _uses(it: Approval, zone: tzinfo) -> str:
    until = f"until {format_moment(it.allowed_until, zone)}" if it.allowed_until else ""
    last = f", last {format_moment(it.used_at, zone)}" if it.used_at else ""
    return f"{until}, used {pluralize(it.uses, 'time')}{last}"


def _render_revoked(approval: Approval, zone: tzinfo) -> str:
    return f"From now on you are asked again before I {approval.allows}."


def _render_approvals(approvals: Sequence[Approval], zone: tzinfo) -> str:
    return "\n".join(_line(approval, zone) for approval in approvals) or "Nothing waits for your approval."


def _line(approval: Approval, zone: tzinfo) -> str:
    if approval.state == "pending":
        return f"- {approval.id}: {approval.effect}; waits until {format_moment(approval.expires_at, zone)}"
    at = approval.ended_at or approval.decided_at or approval.created_at
    return f"- {approval.id}: {approval.effect}; {approval.state} {format_moment(at, zone)}"


@click.group(cls=CommandGroup)
def approvals() -> None:
    """Decide on what the model wanted to do and you did not ask for.

    > assistant approvals
    > assistant approvals yes 3
    """


@approvals.command("list", result=list[ApprovalItem], render=_render_approvals, reads=True, with_session=False)
@click.option("--all", "with_ended", is_flag=True, help="Also what was decided or lapsed lately.")
def list_approvals(context: CommandContext, with_ended: bool) -> list[Approval]:
    """List what waits for your yes or no.

    > assistant approvals list --all
    """
    stored = context.stores.approvals
    pending = [approval for approval in stored.list_pending() if approval.waits_at(context.now)]
    return [*pending, *(stored.list_recent(_RECENT) if with_ended else [])]


@approvals.command(
    "yes",
    result=ApprovalItem,
    render=describe_outcome,
    with_session=False,
    exit_code=lambda approval: 1 if approval.state in ("failed", "uncertain") else 0,
)
@number_argument("number", metavar="N")
@click.option("--always", is_flag=True, help="Allow what is like it, as was shown, for `tools.approval_days`.")
async def approve(context: CommandContext, number: int, always: bool) -> Approval:
    """Have it done, exactly as it was shown.

    Exits with 1 where it failed, or where nobody knows whether it was done.

    > assistant approvals yes 3
    > assistant approvals yes 3 --always
    """
    return await context.services.approvals.decide(number, "always" if always else "yes")


@approvals.command("no", result=ApprovalItem, render=describe_outcome, with_session=False)
@number_argument("number", metavar="N")
async def decline(context: CommandContext, number: int) -> Approval:
    """Drop it. Nothing is changed.

    > assistant approvals no 3
    """
    return await context.services.approvals.decide(number, "no")


@approvals.command("allowed", result=list[AllowedItem], render=_render_allowed, reads=True, with_session=False)
def list_allowed(context: CommandContext) -> list[Approval]:
    """List what you allowed for some time, and how often it was done.

    > assistant approvals allowed
    """
    return context.stores.approvals.list_allowed(context.now)


@approvals.command("revoke", result=ApprovalItem, render=_render_revoked, with_session=False)
@number_argument("number", metavar="N")
def revoke(context: CommandContext, number: int) -> Approval:
    """Be asked again about what you allowed.

    > assistant approvals revoke 3
    """
    return context.services.approvals.revoke(number)
