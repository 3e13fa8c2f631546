"""`notify`: the services outside at which you are told of what waits for you, and how they are."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, tzinfo

import click

from assistant.commands.context import CommandContext
from assistant.commands.items import Item
from assistant.commands.table import CommandGroup
from assistant.core.calendar import format_local_time
from assistant.notify.notifier import NotifyServiceReport

_TEST_SECONDS = 120.0
_NONE = (
    "No service is set up. `assistant config secret set notify.urls` takes the addresses, as in "
    "ntfy://ntfy.sh/my-secret-topic."
)
_ENDS = {"sent": "the last one was sent", "failed": "failed", "uncertain": "may or may not have arrived"}


class ServiceItem(Item):
    """A service outside."""

    name: str
    ok: bool
    state: str  # of what was sent last: sent, failed, uncertain; "" where nothing was
    at: datetime | None
    error: str


@click.group(cls=CommandGroup)
def notify() -> None:
    """Services outside that tell you of reminders and questions where you are not looking.

    > assistant notify
    > assistant notify test
    """


def _render(reports: Sequence[NotifyServiceReport], zone: tzinfo) -> str:
    return "\n".join(f"- {_line(report, zone)}" for report in reports) or _NONE


def _line(report: NotifyServiceReport, zone: tzinfo) -> str:
    if report.at is None:
        return f"{report.name}: nothing was sent yet"
    error = f": {report.error}" if report.error else ""
    return f"{report.name}: {_ENDS.get(report.state, report.state)} {format_local_time(report.at, zone)}{error}"


@notify.command("list", result=list[ServiceItem], render=_render, with_session=False)
def list_services(context: CommandContext) -> Sequence[NotifyServiceReport]:
    """List the services and what became of the last message.

    Their addresses have passwords in them, and are not shown.

    > assistant notify list
    """
    return context.services.notifier.list_services()


@notify.command(
    "test",
    result=list[ServiceItem],
    render=_render,
    with_session=False,
    max_seconds=_TEST_SECONDS,
    exit_code=lambda reports: 0 if all(report.ok for report in reports) else 1,
)
async def test(context: CommandContext) -> Sequence[NotifyServiceReport]:
    """Send a test to each service. Exits with 0 when each took it.

    > assistant notify test
    """
    return await context.services.notifier.test()
