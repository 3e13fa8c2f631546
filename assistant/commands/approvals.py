"""`approvals`: effects that the model wanted and nobody asked for, and the owner's yes or no to them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, tzinfo

import click

from assistant.commands.context import CommandContext
from assistant.commands.table import CommandGroup, Item, number_argument
from assistant.core.approvals import Approval, ApprovalState, describe_outcome
from assistant.core.calendar import format_moment

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


def _render_approvals(approvals: Sequence[Approval], zone: tzinfo) -> str:
    return "\n".join(_line(approval, zone) for approval in approvals) or "Nothing waits for your approval."


def _line(approval: Approval, zone: tzinfo) -> str:
    if approval.state == "pending":
        return f"- {approval.id}: {approval.effect}; waits until {format_moment(approval.expires_at, zone)}"
    return f"- {approval.id}: {approval.effect}; {approval.state} {format_moment(approval.created_at, zone)}"


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
    pending = [approval for approval in stored.list_pending() if approval.expires_at > context.now]
    return [*pending, *(stored.list_recent(_RECENT) if with_ended else [])]


@approvals.command(
    "yes", result=ApprovalItem, render=lambda approval, _: describe_outcome(approval), with_session=False
)
@number_argument("number", metavar="N")
async def approve(context: CommandContext, number: int) -> Approval:
    """Have it done, exactly as it was shown.

    > assistant approvals yes 3
    """
    return await context.services.approvals.decide(number, True)


@approvals.command("no", result=ApprovalItem, render=lambda approval, _: describe_outcome(approval), with_session=False)
@number_argument("number", metavar="N")
async def decline(context: CommandContext, number: int) -> Approval:
    """Drop it. Nothing is changed.

    > assistant approvals no 3
    """
    return await context.services.approvals.decide(number, False)
