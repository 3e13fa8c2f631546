"""`assistant log`: what was said, read from the stores of the home whether a daemon runs or not."""

from __future__ import annotations

import time
from itertools import islice

import click

from assistant.cli.in_force import settings_in_force
from assistant.cli.plain import as_json
from assistant.cli.stored import opened, scope_of_session
from assistant.cli.text import typed
from assistant.cli.transcript import backwards, print_record, record_json
from assistant.core.ports import HistoryPort
from assistant.core.records import LogRecord
from assistant.core.sessions import OWNER_SCOPE
from assistant.settings.settings import Settings

_LOOK_EVERY = 0.5


@click.command()
@click.option("--follow", is_flag=True, help="Go on printing what is said, until Ctrl-C.")
@click.option("--grep", metavar="TEXT", help="Only messages that contain TEXT, in any case; the newest ones.")
@click.option("--session", metavar="NAME", help="Only this conversation.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 1_000_000), help="How many messages.")
@click.option("--json", "json_out", is_flag=True, help="Print one JSON object a line.")
def log(follow: bool, grep: str | None, session: str | None, limit: int, json_out: bool) -> None:
    """Print what was said, oldest first, whole, from the master log.

    \b
    Example:
      assistant log --limit 50
      assistant log --grep "passport" --json
      assistant log --follow
    """
    settings = settings_in_force(looks=True)
    wanted = typed(grep, "TEXT").casefold() if grep else ""
    with opened(settings) as stores:
        scope = scope_of_session(stores.conversation, session) if session else OWNER_SCOPE
        matching = (r for r in backwards(stores.history, scope, session) if wanted in r.content.casefold())
        last = 0
        for record in reversed(list(islice(matching, limit))):
            _show(record, settings, json_out)
            last = max(last, record.id)
        while follow:
            time.sleep(_LOOK_EVERY)
            for record in _since(stores.history, scope, session, last):
                last = record.id
                if wanted in record.content.casefold():
                    _show(record, settings, json_out)


def _since(history: HistoryPort, scope: str, session: str | None, last: int) -> list[LogRecord]:
    """The records after message `last`, oldest first."""
    fresh: list[LogRecord] = []
    for record in backwards(history, scope, session):
        if record.id <= last:
            break
        fresh.append(record)
    return fresh[::-1]


def _show(record: LogRecord, settings: Settings, json_out: bool) -> None:
    if json_out:
        as_json(record_json(record), indent=None)
    else:
        print_record(record, settings.zone)
