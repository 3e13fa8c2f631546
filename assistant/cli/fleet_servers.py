"""`assistant fleet host` and `route`: what runs on the machines of a fleet."""

from __future__ import annotations

import asyncio
import json
import platform
import signal
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from assistant.cli.fleet_tables import load_fleet_settings, require_name, with_tables
from assistant.cli.logging_setup import log_to_stderr
from assistant.cli.output import print_remark
from assistant.core.errors import HomeLocked, UsageError
from assistant.service.home_lock import home_lock
from assistant.service.idle_note import IdleOptions
from assistant.settings.home import environment_for
from assistant.settings.settings import Settings, load_settings

if TYPE_CHECKING:
    from assistant.fleet.tables import FleetTables, Quota


@click.command(name="host")
@click.option("--name", help="Name of this machine in the fleet; without it, its host name.")
@click.option("--folder", type=click.Path(path_type=Path), help="Has a folder for each home.")
@click.option(
    "--listen", default="127.0.0.1:8500", show_default=True, help="Where the pages of its homes are, from this port on."
)
@click.option("--domain", default="", help="Behind `fleet route`: its homes are at alice.DOMAIN and so on.")
@click.option("--idle", default=15.0, show_default=True, help="Minutes until an unused home is stopped; 0: never.")
@click.option(
    "--poll",
    default=60.0,
    show_default=True,
    help="Seconds between looks whether Telegram, Matrix or mail has something for a stopped home; 0: never stop it.",
)
@click.option("--most", default=200, show_default=True, type=click.IntRange(1), help="The most homes that it takes.")
def serve_homes(
    name: str | None, folder: Path | None, listen: str, domain: str, idle: float, poll: float, most: int
) -> None:
    """Run homes of the fleet on this machine, until Ctrl-C.

    It takes homes that no host has, restores those that another machine had, and starts each. It runs in the
    foreground; a service manager keeps it running.

    > assistant fleet host --folder /srv/homes
    > assistant fleet host --name m1 --folder /srv/homes --listen 10.0.0.5:8500
    """
    settings = load_fleet_settings()
    if folder is None:
        raise UsageError("Give --folder, where the homes are kept. Nothing was started.")
    name = name or platform.node()
    require_name(name)
    address, port = _parse_address(listen)
    log_to_stderr(settings.values.log.level)

    from assistant.fleet.tables import Quota

    folder = folder.absolute()
    environment = partial(_environment, settings, address, domain)
    _check_settings(environment(name, folder / name, port, Quota()))

    async def serve(tables: FleetTables) -> None:
        from assistant.cli.fleet_home import prepare_forking, start_home
        from assistant.fleet.host import FleetHost, HostOptions
        from assistant.replica.postgres import ReplicaDatabase

        stop = _stop_event()
        hides = await asyncio.to_thread(prepare_forking)
        options = HostOptions(
            name, folder, address, port, most, environment, IdleOptions(max(idle, 0.0), poll > 0), poll
        )
        print_remark(f"The host {name} runs homes of the fleet in {folder}. Ctrl-C stops them all.")
        if not hides:
            print_remark("This system allows no user namespaces, so a home can see the folders of the others.")
        url = settings.values.replica.url.get_secret_value()
        await FleetHost(tables, options, partial(ReplicaDatabase, url), partial(start_home, hides=hides)).run(stop)

    try:
        with home_lock(folder / ".host"):
            with_tables(settings, serve, waits=True)
    except HomeLocked:
        raise UsageError(f"Another process runs the homes in {folder}. Nothing was started.") from None


def _check_settings(environment: Mapping[str, str]) -> None:
    """Raises `SettingsError` for what would stop each home."""
    from assistant.wire.replica import make_cipher

    make_cipher(load_settings(environ=environment))


def _environment(
    settings: Settings, address: str, domain: str, home: str, folder: Path, port: int, quota: Quota
) -> dict[str, str]:
    """Return the environment for the commands of a home."""
    replica = settings.values.replica
    return {
        **environment_for(folder),
        "ASSISTANT_REPLICA__URL": replica.url.get_secret_value(),
        "ASSISTANT_REPLICA__HOME_NAME": home,
        "ASSISTANT_REPLICA__KEY": replica.key.get_secret_value(),
        # A host that is cut off must not acknowledge what another one would not know.
        "ASSISTANT_REPLICA__ON_FAILURE": "refuse",
        **({"ASSISTANT_BUDGET__MONTHLY_USD": str(quota.monthly_usd)} if quota.monthly_usd else {}),
        "ASSISTANT_WEB__HOST": address,
        "ASSISTANT_WEB__PORT": str(port),
        **(
            {"ASSISTANT_WEB__HOSTS": json.dumps([f"{home.lower()}.{domain}"]), "ASSISTANT_WEB__BEHIND_PROXY": "true"}
            if domain
            else {}
        ),
    }


@click.command()
@click.option("--listen", default="127.0.0.1:8480", show_default=True, help="Address and port where it listens.")
@click.option("--wait", default=30.0, show_default=True, help="Seconds that a request waits for its home.")
@click.option(
    "--ca", type=click.Path(exists=True, path_type=Path), help="Connect to hosts by TLS; PEM file of who signed theirs."
)
def route(listen: str, wait: float, ca: Path | None) -> None:
    """Pass requests to the hosts of their homes, until Ctrl-C.

    One for alice.DOMAIN goes to the host that has alice.

    While a home moves, its requests wait. It has no TLS: put a proxy before it that has.

    > assistant fleet route --listen 127.0.0.1:8480
    """
    settings = load_fleet_settings()
    address, port = _parse_address(listen)
    log_to_stderr(settings.values.log.level)

    async def serve(tables: FleetTables) -> None:
        from assistant.fleet.router import FleetRouter
        from assistant.web.server import SlowClientProtocol, serve_with_uvicorn
        from assistant.web.tcp_listener import listen_tcp

        stop = _stop_event()
        serving = serve_with_uvicorn(FleetRouter(tables, wait, ca), protocol=SlowClientProtocol)
        with await listen_tcp(address, port) as listening:
            async with serving(listening):
                print_remark(f"The router listens at {listen}. Ctrl-C stops it.")
                await stop.wait()

    with_tables(settings, serve, waits=True)


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
