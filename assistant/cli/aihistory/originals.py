"""`aihistory recover` and `diff`: the messages that a compaction removed from what the model sees, and what its summary
does not name of them. They are read from the message log a page at a time: there may be a million.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

import click

from assistant.cli.aihistory.compactions import filter_options, find_checkpoint
from assistant.cli.home_stores import load_effective_settings, open_home_stores, scope_of_session
from assistant.cli.log import print_record, record_json
from assistant.cli.output import print_text, shorten_line
from assistant.commands.context import CommandContext, CommandStores
from assistant.commands.table import TableCommand, number_argument
from assistant.core.checkpoints import Checkpoint
from assistant.core.errors import CorruptStore
from assistant.core.messages import media_to_json
from assistant.core.records import LogLocation, LogRecord, SessionInfo
from assistant.wire.commands import command_stores


def read_originals(stores: CommandStores, checkpoint: Checkpoint) -> Iterator[LogRecord]:
    """The records in the range of a compaction, oldest first, undone ones among them. Those that a branch took over
    from the conversation it came from, or a conversation from an earlier one that it goes on from, stand first. Raises
    `CorruptStore` where the index does not know the range."""
    scope = scope_of_session(stores.conversation, checkpoint.session)
    for session, start, end in _stretches(stores, checkpoint):
        while page := stores.history.read_byte_range(session, start, end, scope):
            yield from page
            start = page[-1].span.end


def _stretches(stores: CommandStores, checkpoint: Checkpoint) -> list[tuple[str, int, int]]:
    """(session, first byte, end) of each log that has messages of the range. The compaction's own is told by its
    first and last message; other logs by what it noted."""
    ends = (checkpoint.from_message_id, checkpoint.to_message_id)
    places = stores.conversation.find_log_places(ends)
    if not all(message_id in places for message_id in ends):
        raise CorruptStore(
            f"The messages {ends[0]} to {ends[1]} of compaction {checkpoint.id} are not in the index. Nothing was "
            "changed; run `assistant verify`."
        )
    first, last = (places[message_id] for message_id in ends)
    own = (checkpoint.session, first.span.start, last.span.end)
    begun = _begun(stores, checkpoint)
    elsewhere = [
        r for r in checkpoint.key_facts.get("byte_ranges", ()) if r[0] not in (first.path, last.path) or r[2] <= begun
    ]
    if not elsewhere:
        return [own]
    logs = {**_logs_of_ancestors(stores, checkpoint.session), first.path: checkpoint.session}
    return [*((logs[path], start, end) for path, start, end in elsewhere if path in logs), own]


def _begun(stores: CommandStores, checkpoint: Checkpoint) -> int:
    """The byte at which the compaction's conversation begins in its log."""
    first = next(
        iter(stores.sessions.generations.records_of_generation(checkpoint.session, checkpoint.generation)), None
    )
    return 0 if first is None else first.span.start


def _logs_of_ancestors(stores: CommandStores, session: str) -> dict[str, str]:
    """The log's path -> the session, of those that this one was branched from."""
    sessions = {info.key: info for info in stores.conversation.list_sessions()}
    logs: dict[str, str] = {}
    parent = sessions[session].parent
    while parent is not None and parent in sessions:
        place = _place(stores, sessions[parent])
        if place is not None:
            logs[place.path] = parent
        parent = sessions[parent].parent
    return logs


def _place(stores: CommandStores, info: SessionInfo) -> LogLocation | None:
    """Where the newest message of a session is in its log."""
    newest = stores.history.recent(info.scope, session=info.key, limit=1)
    return stores.conversation.find_log_places([newest[0].id]).get(newest[0].id) if newest else None


@click.command()
@number_argument("checkpoint_id")
@filter_options
@click.option("--json", "json_out", is_flag=True, help="Print one JSON array, with pictures and files as in the log.")
def recover(checkpoint_id: int, since: str | None, session: str | None, json_out: bool) -> None:
    """Print the original messages of a compaction, oldest first, complete, from the message log.

    \b
    Example:
      aihistory recover 3
      aihistory recover 3 --json > before-the-move.json
    """
    settings = load_effective_settings(read_only=True)
    with open_home_stores(settings) as opened:
        stores = command_stores(settings, opened)
        checkpoint = find_checkpoint(stores.conversation, settings.zone, checkpoint_id, since, session)
        if json_out:
            _print_array(read_originals(stores, checkpoint))
            return
        for record in read_originals(stores, checkpoint):
            print_record(record, settings.zone)


def _print_array(records: Iterator[LogRecord]) -> None:
    """One array, an element a line, so that it is never in memory as a whole."""
    separator = "["
    for record in records:
        item = record_json(record) | {"media": [media_to_json(media) for media in record.media]}
        print_text(f"{separator}{json.dumps(item, ensure_ascii=False)}")
        separator = ","
    print_text("]" if separator == "," else "[]")


# ---------------------------------------------------------------------------------------------------------------- diff

_SPOKEN = ("user", "assistant")


@dataclass(frozen=True, slots=True)
class MissingFact:
    """Something that a message named, and the summary does not."""

    kind: str  # "identifiers", "numbers", "names" or "tasks"
    text: str
    message_id: int  # of the message that named it first
    at: datetime
    kept: bool  # the model still sees that message word for word


def _render_missing(facts: Sequence[MissingFact], _: tzinfo) -> str:
    sections = []
    for kind in dict.fromkeys(fact.kind for fact in facts):
        lines = [
            f"- {shorten_line(fact.text, 200)} (#{fact.message_id}{', kept word for word' if fact.kept else ''})"
            for fact in facts
            if fact.kind == kind
        ]
        sections.append("\n".join([f"{kind.capitalize()}:", *lines]))
    return "\n\n".join(sections) or "The summary names everything that the original messages name."


@click.command(cls=TableCommand, result=list[MissingFact], render=_render_missing, reads=True, with_session=False)
@number_argument("checkpoint_id")
@filter_options
def diff(context: CommandContext, checkpoint_id: int, since: str | None, session: str | None) -> list[MissingFact]:
    """List identifiers, numbers, names and tasks that the summary does not have.

    They are not lost: `aihistory recover` prints the messages, and the assistant finds them by their words.

    \b
    Example:
      aihistory diff 3
      aihistory diff 3 --json
    """
    checkpoint = find_checkpoint(context.stores.conversation, context.zone, checkpoint_id, since, session)
    return list(find_missing_facts(context.stores, checkpoint))


def find_missing_facts(stores: CommandStores, checkpoint: Checkpoint) -> Iterator[MissingFact]:
    """In the order they were said, each once. What tools returned is not read: what mattered of it was said."""
    from sleep.compaction.validate import find_missing_values  # the other commands do without its patterns

    kept = set(checkpoint.key_facts.get("kept", ()))
    seen: set[tuple[str, str]] = set()
    for record in read_originals(stores, checkpoint):
        if record.role not in _SPOKEN:
            continue
        for kind, texts in find_missing_values([record.content], checkpoint.summary).items():
            for text in texts:
                if (kind, text.casefold()) not in seen:
                    seen.add((kind, text.casefold()))
                    yield MissingFact(kind, text, record.id, record.ts, record.id in kept)
