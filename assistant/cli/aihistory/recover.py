"""`aihistory recover`: the messages that a compaction took out of view, as they were said. They are read from the
message log a page at a time: a range may hold a million.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import click

from assistant.cli.aihistory.compactions import filter_options, read_filter
from assistant.cli.home_stores import open_home_stores, scope_of_session
from assistant.cli.log import print_record, record_json
from assistant.cli.output import print_text
from assistant.core.checkpoints import Checkpoint
from assistant.core.errors import CorruptStore
from assistant.core.messages import media_to_json
from assistant.core.records import LogLocation, LogRecord, SessionInfo
from assistant.wire.stores import Stores


def read_originals(stores: Stores, checkpoint: Checkpoint) -> Iterator[LogRecord]:
    """The records in the range of a compaction, oldest first, undone ones among them. Those that a branch took over
    from the conversation it came from, or a conversation from an earlier one that it goes on from, stand first. Raises
    `CorruptStore` where the index does not know the range."""
    scope = scope_of_session(stores.conversation, checkpoint.session)
    for session, start, end in _stretches(stores, checkpoint):
        while page := stores.history.read_byte_range(session, start, end, scope):
            yield from page
            start = page[-1].span.end


def _stretches(stores: Stores, checkpoint: Checkpoint) -> list[tuple[str, int, int]]:
    """(session, first byte, end) of each log that has messages of the range. The compaction's own is told by its
    first and last message; other logs by what it noted."""
    ends = (checkpoint.from_message_id, checkpoint.to_message_id)
    places = stores.conversation.find_log_places(ends)
    if not all(one in places for one in ends):
        raise CorruptStore(
            f"The messages {ends[0]} to {ends[1]} of compaction {checkpoint.id} are not in the index. Nothing was "
            "changed; run `assistant verify`."
        )
    first, last = (places[one] for one in ends)
    own = (checkpoint.session, first.span.start, last.span.end)
    begun = _begun(stores, checkpoint)
    elsewhere = [
        r for r in checkpoint.key_facts.get("byte_ranges", ()) if r[0] not in (first.path, last.path) or r[2] <= begun
    ]
    if not elsewhere:
        return [own]
    logs = {**_logs_of_ancestors(stores, checkpoint.session), first.path: checkpoint.session}
    return [*((logs[path], start, end) for path, start, end in elsewhere if path in logs), own]


def _begun(stores: Stores, checkpoint: Checkpoint) -> int:
    """The byte at which the compaction's generation begins in its log."""
    first = next(iter(stores.generations.records_of_generation(checkpoint.session, checkpoint.generation)), None)
    return 0 if first is None else first.span.start


def _logs_of_ancestors(stores: Stores, session: str) -> dict[str, str]:
    """The log's path -> the session, of those that this one was branched from."""
    known = {info.key: info for info in stores.conversation.list_sessions()}
    found: dict[str, str] = {}
    parent = known[session].parent
    while parent is not None and parent in known:
        place = _place(stores, known[parent])
        if place is not None:
            found[place.path] = parent
        parent = known[parent].parent
    return found


def _place(stores: Stores, info: SessionInfo) -> LogLocation | None:
    """Where the newest message of a session stands."""
    newest = stores.history.recent(info.scope, session=info.key, limit=1)
    return stores.conversation.find_log_places([newest[0].id]).get(newest[0].id) if newest else None


@click.command()
@click.argument("checkpoint_id", metavar="ID", type=int)
@filter_options("Print one JSON array, with pictures and files where they are in the log.")
@click.pass_context
def recover(context: click.Context, checkpoint_id: int) -> None:
    """Print the original messages of a compaction, oldest first, whole, from the master log.

    \b
    Example:
      aihistory recover 3
      aihistory recover 3 --json > before-the-move.json
    """
    chosen = read_filter(context)
    with open_home_stores(chosen.settings) as stores:
        records = read_originals(stores, chosen.get_checkpoint(stores.conversation, checkpoint_id))
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
        print_text(f"{before}{json.dumps(item, ensure_ascii=False)}")
        before = ","
    print_text("]" if before == "," else "[]")
