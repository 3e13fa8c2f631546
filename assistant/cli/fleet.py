"""`assistant fleet`: many homes on several machines. The commands connect to the PostgreSQL server of `replica.url`
themselves, from any machine.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any

import click

from assistant.cli.fleet_servers import route, serve_homes
from assistant.cli.fleet_tables import NO_URL, load_fleet_settings, require_name, with_tables
from assistant.cli.home_stores import load_effective_settings
from assistant.cli.lazy import DefaultGroup
from assistant.cli.output import json_result, print_text
from assistant.commands.items import Item
from assistant.core.calendar import format_local_time
from assistant.core.errors import UsageError
from assistant.core.text import pluralize

if TYPE_CHECKING:
    from assistant.fleet.tables import FleetTables, Quota


class FleetHomeReport(Item):
    """A home and where it is."""

    home: str
    host: str  # that has it, or had it last; "" for none
    is_held: bool  # whether that host has it now
    address: str  # where it can be reached there
    moves_to: str  # "" for nowhere
    epoch: int
    asleep_until: datetime | None  # null for a home that does not sleep
    is_full: bool  # it is stopped, since its folder is larger than its quota
    memory_mb: int  # its quota, 0 for none
    disk_mb: int  # its quota, 0 for none
    monthly_usd: float  # its quota, 0 for none
    memory_bytes: int  # that its processes had when they were measured last
    disk_bytes: int  # that its folder had when it was measured last


class FleetHostReport(Item):
    """A machine of the fleet."""

    host: str
    address: str
    is_alive: bool
    is_draining: bool
    seen_at: datetime
    homes: int


class FleetReport(Item):
    """The homes and hosts of a fleet."""

    ok: bool  # whether a host has each home that does not sleep
    homes: list[FleetHomeReport]
    hosts: list[FleetHostReport]


@click.group(cls=DefaultGroup, default="status")
def fleet() -> None:
    """Run many homes on several machines that share a PostgreSQL server; alone it shows which home is where.

    When a machine dies, another one continues with its homes.

    > assistant fleet
    """


@fleet.command()
@json_result(bool, "Print true.")
def init() -> bool:
    """Make the tables of a fleet in the database of replica.url.

    > assistant fleet init
    """
    settings = load_fleet_settings()

    async def prepare(tables: FleetTables) -> None:
        from assistant.wire.replica import open_replica

        database = open_replica(settings)
        try:
            await database.prepare()
        finally:
            await database.aclose()
        await tables.prepare()

    with_tables(settings, prepare, is_new=True)
    print_text("The fleet is ready. `assistant fleet host` runs its homes, `assistant fleet add HOME` adds one.")
    return True


_quota_options = (
    click.option("--memory", type=click.IntRange(0), help="MB of memory for each of its processes; 0: no limit."),
    click.option("--disk", type=click.IntRange(0), help="MB of disk for its folder; 0: no limit."),
    click.option("--spending", type=click.FloatRange(0), help="US dollars a month for models; 0: no limit."),
)


def _with_quota_options(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_quota_options):
        function = option(function)
    return function


@fleet.command()
@click.argument("home")
@_with_quota_options
@json_result(bool, "Print whether it is new.")
def add(home: str, memory: int | None, disk: int | None, spending: float | None) -> bool:
    """Add a home: a new one, or one that the server has a copy of.

    The next host that is free takes it. A machine that runs it outside of the fleet is refused from then on.

    > assistant fleet add alice
    > assistant fleet add bob --memory 600 --disk 2000 --spending 10
    """
    settings = load_fleet_settings()
    require_name(home)

    async def act(tables: FleetTables) -> bool:
        is_new = await tables.add(home)
        if is_new:
            await _change_quota(tables, home, memory, disk, spending)
        return is_new

    is_new = with_tables(settings, act)
    print_text(f"Added {home}." if is_new else f"The fleet has {home} already. Nothing was changed.")
    return is_new


@fleet.command(name="set")
@click.argument("home")
@_with_quota_options
@json_result(bool, "Print true.")
def set_quota(home: str, memory: int | None, disk: int | None, spending: float | None) -> bool:
    """Change how much memory, disk and money a home may use.

    If it runs, its host starts it again with the new limits.

    > assistant fleet set alice --memory 600 --disk 2000
    > assistant fleet set alice --spending 0
    """
    quota = with_tables(load_fleet_settings(), lambda tables: _change_quota(tables, home, memory, disk, spending))
    parts = [
        f"{quota.memory_mb} MB of memory for each process" if quota.memory_mb else "",
        f"{quota.disk_mb} MB of disk" if quota.disk_mb else "",
        f"${quota.monthly_usd:.2f} a month" if quota.monthly_usd else "",
    ]
    print_text(f"{home} may use {', '.join(part for part in parts if part) or 'as much as there is'}.")
    return True


async def _change_quota(
    tables: FleetTables, home: str, memory: int | None, disk: int | None, spending: float | None
) -> Quota:
    """Change what is given. Raises `UsageError`."""
    from assistant.fleet.tables import Quota

    now = next((row.quota for row in await tables.list_homes() if row.home == home), Quota())
    quota = Quota(
        now.memory_mb if memory is None else memory,
        now.disk_mb if disk is None else disk,
        now.monthly_usd if spending is None else spending,
    )
    await tables.set_quota(home, quota)
    return quota


@fleet.command()
@click.option("--metrics", is_flag=True, help="Print numbers for Prometheus.")
@json_result(FleetReport | None, ok=lambda report: report is None or report.ok)
def status(metrics: bool = False) -> FleetReport | None:
    """Show which host has which home, and which hosts there are.

    It exits with 1 if no host has one of the homes.

    > assistant fleet status
    > assistant fleet status --metrics
    """
    settings = load_effective_settings()
    if not settings.values.replica.url.get_secret_value():
        print_text(f"There is no fleet: {NO_URL}")
        return None
    if metrics:
        from assistant.web.fleet_metrics import render_fleet_metrics

        print_text(with_tables(settings, render_fleet_metrics).decode().rstrip())
        return None
    report = with_tables(settings, _read_report)
    print_text("\n".join(_status_lines(report, settings.zone)))
    return report


@fleet.command()
@click.argument("home")
@json_result(bool, "Print whether it was part of the fleet.")
def remove(home: str) -> bool:
    """Take a home out of the fleet: its host stops it, its copy stays.

    > assistant fleet remove alice
    """
    removed = with_tables(load_fleet_settings(), lambda tables: tables.remove(home))
    if not removed:
        raise UsageError(f"The fleet has no home {home!r}. Nothing was changed; see `assistant fleet status`.")
    print_text(
        f"{home} is no longer in the fleet. Its copy on the server stays: `assistant replica restore` gets it where "
        f"ASSISTANT_REPLICA__HOME_NAME is {home}."
    )
    return removed


@fleet.command()
@click.argument("home")
@click.argument("host")
@json_result(bool, "Print true.")
def move(home: str, host: str) -> bool:
    """Move a home to another host.

    Its host stops it and gives it up; then the other one takes it. `assistant fleet status` shows when it has.

    > assistant fleet move alice m2
    """
    with_tables(load_fleet_settings(), lambda tables: tables.want(home, host))
    print_text(f"{home} moves to {host}.")
    return True


@fleet.command()
@click.argument("host")
@json_result(list[str], "Print the homes that move.")
def drain(host: str) -> list[str]:
    """Move all homes of a host to the others, before you stop its machine.

    It takes no home any more until it is started again.

    > assistant fleet drain m1
    """
    homes = with_tables(load_fleet_settings(), lambda tables: tables.drain(host))
    print_text(f"{pluralize(len(homes), 'home')} of {host} {'moves' if len(homes) == 1 else 'move'} to the others.")
    return homes


fleet.add_command(serve_homes)
fleet.add_command(route)


async def _read_report(tables: FleetTables) -> FleetReport:
    homes = [
        FleetHomeReport(
            home=row.home,
            host=row.host,
            is_held=row.is_held,
            address=row.address,
            moves_to=row.wanted,
            epoch=row.epoch,
            asleep_until=row.asleep_until,
            is_full=row.is_full,
            memory_mb=row.quota.memory_mb,
            disk_mb=row.quota.disk_mb,
            monthly_usd=row.quota.monthly_usd,
            memory_bytes=row.memory_bytes,
            disk_bytes=row.disk_bytes,
        )
        for row in await tables.list_homes()
    ]
    hosts = [
        FleetHostReport(
            host=row.host,
            address=row.address,
            is_alive=row.is_alive,
            is_draining=row.is_draining,
            seen_at=row.seen_at,
            homes=row.homes,
        )
        for row in await tables.list_hosts()
    ]
    return FleetReport(ok=all(home.is_held or home.asleep_until for home in homes), homes=homes, hosts=hosts)


def _status_lines(report: FleetReport, zone: tzinfo) -> list[str]:
    held = sum(home.is_held for home in report.homes)
    asleep = sum(home.asleep_until is not None and not home.is_held for home in report.homes)
    runs = f"{held} run and {asleep} sleep" if asleep else f"{held} run"
    lines = [f"{pluralize(len(report.homes), 'home')}, of which {runs}, on {pluralize(len(report.hosts), 'host')}."]
    for host in report.hosts:
        seen = "" if host.is_alive else f"; NOT SEEN since {format_local_time(host.seen_at, zone)}"
        draining = "; takes no more" if host.is_draining else ""
        lines.append(f"Host {host.host} ({host.address}): {pluralize(host.homes, 'home')}{draining}{seen}.")
    for home in report.homes:
        moves = f", moves to {home.moves_to}" if home.moves_to else ""
        if home.is_full:
            size, raise_it = home.disk_bytes / 1e6, f"`assistant fleet set {home.home} --disk MB` raises it"
            lines.append(f"{home.home}: STOPPED, since its folder has {size:.1f} MB of {home.disk_mb} MB; {raise_it}.")
        elif home.asleep_until is not None:
            lines.append(f"{home.home}: sleeps until {format_local_time(home.asleep_until, zone)}{moves}.")
        elif home.is_held:
            lines.append(f"{home.home}: on {home.host} ({home.address}){moves}.")
        else:
            lines.append(f"{home.home}: NO HOST has it{f'; {home.host} had it last' if home.host else ''}{moves}.")
    return lines
