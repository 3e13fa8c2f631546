"""`assistant status`: how the assistant is, from the daemon when one runs, else from the stores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from assistant import daemon, health
from assistant import settings as settings_module
from assistant.cli import attach
from assistant.cli.plain import as_json, say
from assistant.cli.stored import opened
from assistant.settings import Settings
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
    report = _report(settings_module.load())
    if json_out:
        as_json(report)
    else:
        say("\n".join(_lines(report)))
    context.exit(0 if report["ok"] else 1)


def _report(settings: Settings) -> dict[str, Any]:
    if answers(settings.home.socket):
        return {"running": True, **attach.run(_of_the_daemon(settings))}
    with opened(settings) as stores:
        found = health.stored(settings, stores.conversation, stores.outbox, stores.ledger, daemon.utc_now())
    return {"running": daemon.is_served(settings.home), **found}


async def _of_the_daemon(settings: Settings) -> Mapping[str, Any]:
    async with attach.daemon_link(settings.home) as link:
        return await link.status()


def _lines(report: Mapping[str, Any]) -> list[str]:
    verdict = "green: nothing needs you" if report["ok"] else "red: something needs you"
    lines = [f"status: {verdict}", *(f"  ! {problem}" for problem in report["problems"])]
    for key, value in report.items():
        if key not in ("ok", "problems"):
            lines += _entry(key, value)
    return lines


def _entry(key: str, value: Any) -> list[str]:
    """A value as `name: words`; what has parts, one part a line below it."""
    name = key.replace("_", " ")
    if isinstance(value, Mapping):
        return [f"{name}:", *(f"  {line}" for part, inner in value.items() for line in _entry(str(part), inner))]
    if isinstance(value, list) and any(isinstance(inner, Mapping) for inner in value):
        return [f"{name}:", *(f"  {_in_one_line(inner)}" for inner in value)]
    return [f"{name}: {_in_one_line(value)}"]


def _in_one_line(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key.replace('_', ' ')} {_in_one_line(inner)}" for key, inner in value.items())
    if isinstance(value, list):
        return ", ".join(map(_in_one_line, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None or value == "" else str(value)
