"""`assistant fleet`: many homes on several machines. The commands connect to the PostgreSQL server of `replica.url`
themselves, from any machine.
"""

from __future__ import annotations

import asyncio
import json
import platform
import re
import signal
from collections.abc import Awaitable, Callable
from datetime import datetime, tzinfo
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from assistant.cli.home_stores import load_effective_settings
from assistant.cli.logging_setup import log_to_stderr
from assistant.cli.output import json_result, print_remark, print_text
from assistant.commands.table import Item
from assistant.core.calendar import format_local_time
from assistant.core.errors import HomeLocked, UsageError
from assistant.core.text import pluralize
from assistant.service.home_lock import home_lock
from assistant.settings.home import environment_for
from assistant.settings.settings import Settings

if TYPE_CHECKING:
    from assistant.fleet.tables import FleetTables

T = TypeVar("T")
_NO_URL = "replica.url is not set. docs/fleet.md says how to set it up."
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class FleetHomeReport(Item):
    """A home and where it is."""

    home: str
    host: str  # that has it, or had it last; "" for none
    is_held: bool  # whether that host has it now
    address: str  # where it can be reached there
    moves_to: str  # "" for nowhere
    epoch: int


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

    ok: bool  # whether a host has each home
    homes: list[FleetHomeReport]
    hosts: list[FleetHostReport]


@click.group(invoke_without_command=True)
@click.pass_context
def fleet(context: click.Context) -> None:
    """Run many homes on several machines that share a PostgreSQL server; alone it shows which home is where.

    When a machine dies, another one continues with its homes.

    > assistant fleet
    """
    if context.invoked_subcommand is None:
        context.invoke(status)


@fleet.command()
@json_result(bool, "Print true.")
def init() -> bool:
    """Make the tables of a fleet in the database of replica.url.

    > assistant fleet init
    """
    settings = _settings()

    async def prepare(tables: FleetTables) -> None:
        from assistant.wire.replica import open_replica

        database = open_replica(settings)
        try:
            await database.prepare()
        finally:
            await database.aclose()
        await tables.prepare()

    _with_tables(settings, prepare, is_new=True)
    print_text("The fleet is ready. `assistant fleet host` runs its homes, `assistant fleet add HOME` adds one.")
    return True


@fleet.command()
@click.argument("home")
@json_result(bool, "Print whether it is new.")
def add(home: str) -> bool:
    """Add a home: a new one, or one that the server has a copy of.

    The next host that is free takes it. A machine that runs it outside of the fleet is refused from then on.

    > assistant fleet add alice
    """
    settings = _settings()
    _require_name(home)
    is_new = _with_tables(settings, lambda tables: tables.add(home))
    print_text(f"Added {home}." if is_new else f"The fleet has {home} already. Nothing was changed.")
    return is_new


@fleet.command()
@json_result(FleetReport | None, ok=lambda report: report is None or report.ok)
def status() -> FleetReport | None:
    """Show which host has which home, and which hosts there are.

    It exits with 1 if no host has one of the homes.

    > assistant fleet status
    """
    settings = load_effective_settings()
    if not settings.values.replica.url.get_secret_value():
        print_text(f"There is no fleet: {_NO_URL}")
        return None
    report = _with_tables(settings, _read_report)
    print_text("\n".join(_status_lines(report, settings.zone)))
    return report


@fleet.command()
@click.argument("home")
@json_result(bool, "Print whether it was part of the fleet.")
def remove(home: str) -> bool:
    """Take a home out of the fleet: its host stops it, its copy stays.

    > assistant fleet remove alice
    """
    removed = _with_tables(_settings(), lambda tables: tables.remove(home))
    if not removed:
        raise UsageError(f"The fleet has no home {home!r}. Nothing was changed; see `assistant fleet status`.")
    print_text(f"{home} is no longer in the fleet. Its copy on the server stays; `assistant replica restore` gets it.")
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
    _with_tables(_settings(), lambda tables: tables.want(home, host))
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
    homes = _with_tables(_settings(), lambda tables: tables.drain(host))
    print_text(f"{pluralize(len(homes), 'home')} of {host} {'moves' if len(homes) == 1 else 'move'} to the others.")
    return homes


@fleet.command(name="host")
@click.option("--name", help="Name of this machine in the fleet; without it, its host name.")
@click.option("--folder", type=click.Path(path_type=Path), help="Has a folder for each home.")
@click.option(
    "--listen", default="127.0.0.1:8500", show_default=True, help="Where the pages of its homes are, from this port on."
)
@click.option("--domain", default="", help="Behind `fleet route`: its homes are at alice.DOMAIN and so on.")
@click.option("--most", default=200, show_default=True, type=click.IntRange(1), help="The most homes that it takes.")
def serve_homes(name: str | None, folder: Path | None, listen: str, domain: str, most: int) -> None:
    """Run homes of the fleet on this machine, until Ctrl-C.

    It takes homes that no host has, restores those that another machine had, and starts each. It runs in the
    foreground; a service manager keeps it running.

    > assistant fleet host --folder /srv/homes
    > assistant fleet host --name m1 --folder /srv/homes --listen 10.0.0.5:8500
    """
    settings = _settings()
    if folder is None:
        raise UsageError("Give --folder, where the homes are kept. Nothing was started.")
    name = name or platform.node()
    _require_name(name)
    address, port = _parse_address(listen)
    log_to_stderr(settings.values.log.level)

    folder = folder.absolute()
    environment = partial(_environment, settings, address, domain)

    async def serve(tables: FleetTables) -> None:
        from assistant.fleet.host import FleetHost, HostOptions
        from assistant.replica.postgres import ReplicaDatabase

        stop = _stop_event()
        options = HostOptions(name, folder, address, port, most, environment)
        print_remark(f"The host {name} runs homes of the fleet in {folder}. Ctrl-C stops them all.")
        url = settings.values.replica.url.get_secret_value()
        await FleetHost(tables, options, partial(ReplicaDatabase, url)).run(stop)

    try:
        with home_lock(folder / ".host"):
            _with_tables(settings, serve)
    except HomeLocked:
        raise UsageError(f"Another process runs the homes in {folder}. Nothing was started.") from None


def _environment(settings: Settings, address: str, domain: str, home: str, folder: Path, port: int) -> dict[str, str]:
    """Return the environment for the commands of a home."""
    replica = settings.values.replica
    return {
        **environment_for(folder),
        "ASSISTANT_REPLICA__URL": replica.url.get_secret_value(),
        "ASSISTANT_REPLICA__HOME_NAME": home,
        "ASSISTANT_REPLICA__KEY": replica.key.get_secret_value(),
        # A host that is cut off must not acknowledge what another one would not know.
        "ASSISTANT_REPLICA__ON_FAILURE": "refuse",
        "ASSISTANT_WEB__HOST": address,
        "ASSISTANT_WEB__PORT": str(port),
        **(
            {"ASSISTANT_WEB__HOSTS": json.dumps([f"{home.lower()}.{domain}"]), "ASSISTANT_WEB__BEHIND_PROXY": "true"}
            if domain
            else {}
        ),
    }


@fleet.command()
@click.option("--listen", default="127.0.0.1:8480", show_default=True, help="Address and port where it listens.")
@click.option("--wait", default=30.0, show_default=True, help="Seconds that a request waits for its home.")
def route(listen: str, wait: float) -> None:
    """Pass requests to the hosts of their homes, until Ctrl-C.

    One for alice.DOMAIN goes to the host that has alice.

    While a home moves, its requests wait. It has no TLS: put a proxy before it that has.

    > assistant fleet route --listen 127.0.0.1:8480
    """
    settings = _settings()
    address, port = _parse_address(listen)
    log_to_stderr(settings.values.log.level)

    async def serve(tables: FleetTables) -> None:
        from assistant.fleet.router import FleetRouter
        from assistant.web.server import SlowClientProtocol, serve_with_uvicorn
        from assistant.web.tcp_listener import listen_tcp

        stop = _stop_event()
        serving = serve_with_uvicorn(FleetRouter(tables, wait), protocol=SlowClientProtocol)
        with await listen_tcp(address, port) as listening:
            async with serving(listening):
                print_remark(f"The router listens at {listen}. Ctrl-C stops it.")
                await stop.wait()

    _with_tables(settings, serve)


def _parse_address(listen: str) -> tuple[str, int]:
    address, _, port = listen.rpartition(":")
    if not address or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise UsageError(f"--listen {listen!r} is no address and port, as in 10.0.0.5:8500. Nothing was started.")
    return address, int(port)


def _stop_event() -> asyncio.Event:
    """Return an event that the signals set which end a program."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


def _settings() -> Settings:
    settings = load_effective_settings()
    if not settings.values.replica.url.get_secret_value():
        raise UsageError(f"There is no replica: {_NO_URL} Nothing was changed.")
    return settings


def _require_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is no name of a home or host: 1 to 64 letters, digits, dots, dashes and underscores, of which "
            "the first is a letter or digit. Nothing was changed."
        )


def _with_tables(settings: Settings, act: Callable[[FleetTables], Awaitable[T]], *, is_new: bool = False) -> T:
    from assistant.fleet.tables import FleetTables

    async def run() -> T:
        tables = FleetTables(settings.values.replica.url.get_secret_value())
        try:
            if not is_new:
                await tables.require()
            return await act(tables)
        finally:
            await tables.aclose()

    return asyncio.run(run())


async def _read_report(tables: FleetTables) -> FleetReport:
    homes = [
        FleetHomeReport(
            home=row.home,
            host=row.host,
            is_held=row.is_held,
            address=row.address,
            moves_to=row.wanted,
            epoch=row.epoch,
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
    return FleetReport(ok=all(home.is_held for home in homes), homes=homes, hosts=hosts)


def _status_lines(report: FleetReport, zone: tzinfo) -> list[str]:
    held = sum(home.is_held for home in report.homes)
    lines = [f"{pluralize(len(report.homes), 'home')}, of which {held} run, on {pluralize(len(report.hosts), 'host')}."]
    for host in report.hosts:
        seen = "" if host.is_alive else f"; NOT SEEN since {format_local_time(host.seen_at, zone)}"
        draining = "; takes no more" if host.is_draining else ""
        lines.append(f"Host {host.host} ({host.address}): {pluralize(host.homes, 'home')}{draining}{seen}.")
    for home in report.homes:
        moves = f", moves to {home.moves_to}" if home.moves_to else ""
        if home.is_held:
            lines.append(f"{home.home}: on {home.host} ({home.address}){moves}.")
        else:
            lines.append(f"{home.home}: NO HOST has it{f'; {home.host} had it last' if home.host else ''}{moves}.")
    return lines
