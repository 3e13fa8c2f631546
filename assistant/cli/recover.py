"""`aihistory recover`: the messages that a compaction took out of view, as they were said."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import click

from assistant.cli.originals import originals
from assistant.cli.plain import say
from assistant.cli.selection import selected, selecting
from assistant.cli.stored import opened
from assistant.cli.transcript import print_record, record_json
from assistant.core.messages import media_to_json
from assistant.core.records import LogRecord


@click.command()
@click.argument("checkpoint_id", metavar="ID", type=int)
@selecting("Print one JSON array, with pictures and files where they are in the log.")
@click.pass_context
def recover(context: click.Context, checkpoint_id: int) -> None:
    """Print the original messages of a compaction, oldest first, whole, from the master log.

    \b
    Example:
      aihistory recover 3
      aihistory recover 3 --json > before-the-move.json
    """
    chosen = selected(context)
    with opened(chosen.settings) as stores:
        records = originals(stores, chosen.one(stores.conversation, checkpoint_id))
        if chosen.json_out:
            _print_array(record_json(record) | {"media": _media(record)} for record in records)
            return
        for record in records:
            print_record(record, chosen.settings.zone)


def _media(record: LogRecord) -> list[dict[str, Any]]:
    return [media_to_json(media) for media in record.media]


def _print_array(items: Iterable[dict[str, Any]]) -> None:
    """One array, an element a line, never held as a whole."""
    before = "["
    for item in items:
        say(f"{before}{json.dumps(item, ensure_ascii=False)}")
        before = ","
    say("]" if before == "," else "[]")
