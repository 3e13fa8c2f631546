"""`assistant status`: how the assistant is, from the daemon when one runs, else from the stores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from assistant import daemon, health, wire
from assistant import settings as settings_module
from assistant.cli import attach
from assistant.cli.plain import as_json, say
from assistant.cli.stored import opened
from assistant.settings import Home
from assistant.unix_socket import answers


@click.command()
@click.option("--json", "json_out", is_flag=True, help="Print JSON; `ok` tells whether anything needs you.")
@click.pass_context
def status(context: click.Context, json_out: bool) -> None:
    """Tell how the assistant is. Exits with 1 when something needs you.

    \b
    Example:
      assistant status
      assistant status --json
    """
    report = _report()
    if json_out:
        as_json(report)
    else:
        say("\n".join(health.lines(report)))
    context.exit(0 if report["ok"] else 1)


def _report() -> dict[str, Any]:
    home = settings_module.home_from_environment()
    if answers(home.socket):
        # It runs on settings that were understood, whatever config.toml says by now.
        return {"running": True, **attach.run(_of_the_daemon(home))}
    settings = settings_module.load(home)
    with opened(settings) as stores:
        found = wire.stored_status(settings, stores, daemon.utc_now())
    return {"running": daemon.is_served(settings.home), **found}


async def _of_the_daemon(home: Home) -> Mapping[str, Any]:
    async with attach.daemon_link(home) as link:
        return await link.status()
