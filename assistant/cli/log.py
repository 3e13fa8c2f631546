"""`assistant log`: what was said, read from the stores of the home whether a daemon runs or not; and records of the
message log as commands print them, a few lines for people, an object for programs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

import click

from assistant.cli.home_stores import load_effective_settings, open_home_stores, require_home, scope_of_session
from assistant.cli.output import clean_line, json_option, print_json, print_text, require_utf8
from assistant.commands.archive import MessageItem
from assistant.core.records import LogRecord
from assistant.core.sessions import MAIN_SESSION, OWNER_SCOPE
from assistant.store.search.history import StoredHistory

_LOOK_EVERY = 0.5


@click.command()
@click.option("--follow", is_flag=True, help="Keep printing new messages, until Ctrl-C.")
@click.option("--grep", metavar="TEXT", help="Only the newest messages that contain TEXT.")
@click.option("--session", metavar="NAME", help="Only this conversation.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 1_000_000), help="How many messages.")
@click.option("--numbers", is_flag=True, help="Also the number of each message, as `branch`, `pins`, `forget` take it.")
@json_option(MessageItem, "Print one JSON object a line.")
def log(follow: bool, grep: str | None, session: str | None, limit: int, numbers: bool, json_out: bool) -> None:
    """Print messages from the message log, oldest first.

    > assistant log --limit 50
    > assistant log --grep "passport" --numbers
    > assistant log --follow
    """
    settings = load_effective_settings(read_only=True)

    def show(record: LogRecord) -> None:
        if json_out:
            print_json(MessageItem.model_validate(record).model_dump(mode="json"), indent=None)
        else:
            print_record(record, settings.zone, numbers=numbers)

    needle = require_utf8(grep, "TEXT").casefold() if grep else ""
    if follow:
        require_home(settings)
    with open_home_stores(settings) as stores:
        scope = scope_of_session(stores.conversation, session) if session else OWNER_SCOPE
        matching = (r for r in records_newest_first(stores.history, scope, session) if needle in r.content.casefold())
        last = 0
        for record in reversed(list(islice(matching, limit))):
            show(record)
            last = max(last, record.id)
        while follow:
            time.sleep(_LOOK_EVERY)
            for record in _since(stores.history, scope, session, last):
                last = record.id
                if needle in record.content.casefold():
                    show(record)


def _since(history: StoredHistory, scope: str, session: str | None, last: int) -> list[LogRecord]:
    """The records after message `last`, oldest first."""
    return [*takewhile(lambda record: record.id > last, records_newest_first(history, scope, session))][::-1]


_PAGE = 200
_CONTINUED = "\n    "


def records_newest_first(history: StoredHistory, scope: str, session: str | None) -> Iterator[LogRecord]:
    """Every record in scope that was not undone, newest first, read a page at a time."""
    before: int | None = None
    while page := history.recent(scope, session=session, limit=_PAGE, before_id=before):
        yield from sorted(page, key=lambda record: record.id, reverse=True)
        before = min(record.id for record in page)


def print_record(
    record: LogRecord, zone: ZoneInfo, *, numbers: bool = True, mask: Callable[[str], str] = lambda text: text
) -> None:
    """When, number, session (but for the owner's own), speaker, words; then the calls of tools. Words and calls are
    shown as `mask` leaves them."""
    who = record.name if record.role == "tool" else record.role
    of = f" of {', '.join(map(str, record.refs))}" if record.refs and numbers else ""
    kind = "" if record.kind == "message" else f" [{record.kind}{of}]"
    calls = "".join(
        f"{_CONTINUED}→ {c.name} {clean_line(mask(json.dumps(dict(c.arguments))), 200)}" for c in record.tool_calls
    )
    where = "" if record.session == MAIN_SESSION else f" {record.session}"
    number = f" #{record.id}" if numbers else ""
    files = "".join(f"[{media.name or media.kind}]" for media in record.media)
    silence = "" if record.tool_calls or files else "(no words)"
    words = _CONTINUED.join(mask(record.content).splitlines()) if record.content.strip() else files or silence
    print_text(f"{record.ts.astimezone(zone):%Y-%m-%d %H:%M:%S}{number}{where} {who}{kind}: {words}{calls}")
