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
from assistant.cli.output import clean_line, json_option, print_json, print_remark, print_text, require_utf8
from assistant.commands.archive import MessageItem
from assistant.core.records import LogRecord
from assistant.core.sessions import MAIN_SESSION, NOTHING_SAID, OWNER_SCOPE, session_name
from assistant.core.text import pluralize, shorten_line
from assistant.store.search.history import StoredHistory

_LOOK_EVERY = 0.5
# What a record that is no message is called; the others have the name that people know.
_KINDS = {"redaction": "erasure"}


@click.command()
@click.option("--follow", is_flag=True, help="Keep printing new messages, until Ctrl-C.")
@click.option("--grep", metavar="TEXT", help="Only the newest messages that contain TEXT.")
@click.option("--session", metavar="NAME", help="Only this conversation.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 1_000_000), help="How many messages.")
@click.option("--numbers", is_flag=True, help="Also the number of each message, as `branch`, `pins`, `forget` take it.")
@click.option("--tools", is_flag=True, help="Also what each tool was called with, and all of what it answered.")
@json_option(MessageItem, "Print one JSON object a line.")
def log(
    follow: bool, grep: str | None, session: str | None, limit: int, numbers: bool, tools: bool, json_out: bool
) -> None:
    """Print messages from the message log, oldest first; what a tool did in one line.

    > assistant log --limit 50
    > assistant log --grep "passport" --numbers
    > assistant log --follow
    """
    settings = load_effective_settings(read_only=True)

    def show(record: LogRecord) -> None:
        if json_out:
            print_json(MessageItem.model_validate(record).model_dump(mode="json"), indent=None)
        else:
            # What was searched for may be anywhere in what a tool answered.
            print_record(record, settings.zone, numbers=numbers, whole=tools or bool(needle))

    def is_shown(record: LogRecord) -> bool:
        calls_alone = bool(record.tool_calls) and not record.content.strip()
        return needle in record.content.casefold() and (tools or json_out or not calls_alone)

    needle = require_utf8(grep, "TEXT").casefold() if grep else ""
    if follow:
        require_home(settings)
    with open_home_stores(settings) as stores:
        scope = scope_of_session(stores.conversation, session) if session else OWNER_SCOPE
        matching = filter(is_shown, records_newest_first(stores.history, scope, session))
        last = 0
        for record in reversed(list(islice(matching, limit))):
            show(record)
            last = max(last, record.id)
        if not (last or follow or json_out):
            # As `grep` does: what is piped on stays as it was.
            print_remark(f"No message has {grep!r}." if grep else NOTHING_SAID)
        while follow:
            time.sleep(_LOOK_EVERY)
            for record in _since(stores.history, scope, session, last):
                last = record.id
                if is_shown(record):
                    show(record)


def _since(history: StoredHistory, scope: str, session: str | None, last: int) -> list[LogRecord]:
    """The records after message `last`, oldest first."""
    return [*takewhile(lambda record: record.id > last, records_newest_first(history, scope, session))][::-1]


_PAGE = 200
_CONTINUED = "\n    "
_TOOL_LINE = 100


def records_newest_first(history: StoredHistory, scope: str, session: str | None) -> Iterator[LogRecord]:
    """Every record in scope that was not undone, newest first, read a page at a time."""
    before: int | None = None
    while page := history.recent(scope, session=session, limit=_PAGE, before_id=before):
        yield from sorted(page, key=lambda record: record.id, reverse=True)
        before = min(record.id for record in page)


def print_record(
    record: LogRecord,
    zone: ZoneInfo,
    *,
    numbers: bool = True,
    whole: bool = True,
    mask: Callable[[str], str] = lambda text: text,
) -> None:
    """When, number, session (but for the owner's own), speaker, words; then the calls of tools. Words and calls are
    shown as `mask` leaves them. Not `whole`: without the calls, and of what a tool answered one line."""
    who = f"tool {record.name}" if record.role == "tool" else record.role
    of = f" of {', '.join(map(str, record.refs))}" if record.refs and numbers else ""
    kind = "" if record.kind == "message" else f" [{_KINDS.get(record.kind, record.kind)}{of}]"
    calls = "".join(
        f"{_CONTINUED}→ {c.name} {clean_line(mask(json.dumps(dict(c.arguments))), 200)}" for c in record.tool_calls
    )
    where = "" if record.session == MAIN_SESSION else f" {session_name(record.session)}"
    number = f" #{record.id}" if numbers else ""
    files = "".join(f"[{media.name or media.kind}]" for media in record.media)
    forgotten = f"{pluralize(len(record.refs), 'message')} forgotten" if record.kind == "redaction" else ""
    silence = "" if record.tool_calls or files else forgotten or "(no words)"
    lines = mask(record.content).splitlines() if record.content.strip() else [files or silence]
    if not whole:
        calls = ""
        lines = [shorten_line(lines[0], _TOOL_LINE)] if record.role == "tool" else lines
    # A line with nothing on it gets no indent either.
    words = "\n".join([lines[0], *(f"    {line}".rstrip() for line in lines[1:])])
    print_text(f"{record.ts.astimezone(zone):%Y-%m-%d %H:%M:%S}{number}{where} {who}{kind}: {words}{calls}")
