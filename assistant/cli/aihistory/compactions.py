"""`aihistory list`, `show` and `recover`: which compactions there are, what each made, and the messages that it removed
from what the model sees. Messages are read from the message log a page at a time: there may be a million.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Annotated, Any, TypeVar

import click
from pydantic import BeforeValidator

from assistant.cli.aihistory.saving import Saving, SavingItem, find_saving
from assistant.cli.aihistory.secret_mask import SECRETS_LEFT_OUT, SecretMask, secrets_option
from assistant.cli.home_stores import load_effective_settings, open_home_stores, scope_of_session
from assistant.cli.log import print_record
from assistant.cli.output import clean_line, json_option, print_remark, print_text
from assistant.commands.archive import MessageItem
from assistant.commands.compaction import CompactionItem
from assistant.commands.context import CommandContext, CommandStores
from assistant.commands.table import TableCommand, number_argument
from assistant.core.calendar import format_local_time
from assistant.core.checkpoints import Checkpoint, describe_state, describe_tier
from assistant.core.dataclass import dataclass
from assistant.core.errors import CorruptStore, UsageError
from assistant.core.messages import media_to_json
from assistant.core.records import LogRecord
from assistant.core.sessions import session_name
from assistant.core.store_ports import Conversation
from assistant.core.text import pluralize
from assistant.wire.services import build_command_stores
from sleep.compaction.validate import RESTORED_HEADING

Function = TypeVar("Function", bound=Callable[..., Any])

# In these states a compaction removed nothing from what a model sees.
NEVER_INSTALLED = ("started", "failed")
NOTHING_COMPACTED = "Nothing was compacted yet."


# ----------------------------------------------------------------------------------------------------------- selection


def filter_options(function: Function) -> Function:
    """`--since` and `--session`, for `select_checkpoints`."""
    function = click.option("--session", metavar="NAME", help="Only this conversation.")(function)
    about = "Only compactions since this day or moment, in your time zone."
    return click.option("--since", metavar="DATE", help=about)(function)


def select_checkpoints(
    conversation: Conversation, zone: tzinfo, since: str | None, session: str | None
) -> list[Checkpoint]:
    """The compactions since a day or moment, of one conversation or of all, newest first. Raises `UsageError`."""
    earliest = parse_moment(since, zone) if since is not None else None
    if session is not None:
        scope_of_session(conversation, session)
    sessions = [session] if session is not None else {info.key for info in conversation.list_sessions()}
    checkpoints = (checkpoint for key in sessions for checkpoint in conversation.checkpoints(key))
    selected = [it for it in checkpoints if earliest is None or it.created_at >= earliest]
    return sorted(selected, key=lambda checkpoint: checkpoint.id, reverse=True)


def find_checkpoint(
    conversation: Conversation, zone: tzinfo, checkpoint_id: int, since: str | None, session: str | None
) -> Checkpoint:
    """Raises `UsageError` where there is no such compaction among those selected."""
    for checkpoint in select_checkpoints(conversation, zone, since, session):
        if checkpoint.id == checkpoint_id:
            return checkpoint
    where = f" of {session_name(session)!r}" if session else ""
    when = f" since {parse_moment(since, zone):%Y-%m-%d %H:%M}" if since else ""
    raise UsageError(f"There is no compaction {checkpoint_id}{where}{when}. `aihistory` lists the compactions.")


def parse_moment(text: str, zone: tzinfo) -> datetime:
    """Return the moment; a date is its midnight, and without an offset it is in `zone`. Raises `UsageError` if it is no
    ISO date."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text!r} is not a date. Write it as 2026-11-20, or as 2026-11-20T18:30.") from None
    return moment.astimezone(zone) if moment.tzinfo else moment.replace(tzinfo=zone)


# ------------------------------------------------------------------------------------------------------------- listing


def _render_list(checkpoints: Sequence[Checkpoint], zone: tzinfo) -> str:
    lines = [
        f"- #{it.id} {session_name(it.session)}, {format_local_time(it.created_at, zone)}: "
        f"{pluralize(it.messages_compressed, 'message')}, {_tokens(it)}, {describe_tier(it.tier)}, {it.trigger}, "
        f"{describe_state(it.state)}, {format_dollars(it.cost_usd)}"
        for it in checkpoints
    ]
    return "\n".join(lines) or NOTHING_COMPACTED


def _tokens(checkpoint: Checkpoint) -> str:
    return f"{checkpoint.original_tokens:,} -> {checkpoint.compressed_tokens:,} tokens ({checkpoint.ratio:.0%})"


def format_dollars(amount: float | None) -> str:
    return "cost not known" if amount is None else f"${amount:.4f}"


@click.command(
    "list", cls=TableCommand, result=list[CompactionItem], render=_render_list, reads=True, with_session=False
)
@filter_options
def list_compactions(context: CommandContext, since: str | None, session: str | None) -> list[Checkpoint]:
    """List the compactions, newest first. Of each, what it made of how much, its state and cost.

    > aihistory list --since 2026-11-01
    """
    return select_checkpoints(context.stores.conversation, context.zone, since, session)


# ---------------------------------------------------------------------------------------------------- one in detail


class CompactionDetail(CompactionItem):
    """Everything about one compaction."""

    num: int  # of its conversation, in the order in which they were begun
    generation: int
    model: str
    attempts: int  # calls of the model
    note: str  # why it failed
    summary: str
    key_facts: dict[str, Any]
    saving: SavingItem | None = None


# Key facts that have a heading, in this order; every other one follows as it is.
_HEADINGS = {
    "decisions": "Decisions",
    "preferences": "Preferences",
    "facts": "Facts",
    "entities": "Names",
    "identifiers": "Identifiers",
    "kept": "Messages that stay as they were said",
    "restored": "Put back by the check, word for word",
    "memories": "Written into the journal",
    "failures": "Why nothing better was used",
}


@dataclass(frozen=True, slots=True)
class _ShownCompaction:
    checkpoint: Checkpoint
    with_secrets: bool
    saving: Saving | None = None


def _render_detail(shown: _ShownCompaction, zone: tzinfo) -> str:
    checkpoint = shown.checkpoint
    facts = dict(checkpoint.key_facts)
    ranges = facts.pop("byte_ranges", ())
    for machine_readable in ("since", "until", "pressure", "economy", "awaits_summary"):
        facts.pop(machine_readable, None)
    if RESTORED_HEADING in checkpoint.summary:
        # The summary ends with them.
        facts.pop("restored", None)
    head = _head(checkpoint, zone) + (f"\n- {shown.saving.describe()}" if shown.saving else "")
    sections = [head, checkpoint.summary or "(no summary)"]
    sections += [_list(title, facts.pop(key)) for key, title in _HEADINGS.items() if facts.get(key)]
    others = {key: value for key, value in facts.items() if value not in (None, "", [], {})}
    if others:
        sections.append(
            _list("Also noted", [f"{key.replace('_', ' ')}: {_plain(value)}" for key, value in others.items()])
        )
    places = "".join(f"\n- {path} bytes {start:,} to {end:,}" for path, start, end in ranges)
    sections.append(f"The original messages: `aihistory recover {checkpoint.id}`{places}")
    return SecretMask(asked=shown.with_secrets).with_remark("\n\n".join(sections))


def _head(checkpoint: Checkpoint, zone: tzinfo) -> str:
    note = f" ({clean_line(checkpoint.note, 200)})" if checkpoint.note else ""
    calls = pluralize(checkpoint.attempts, "model call") if checkpoint.attempts else "no model call"
    model = f" of {checkpoint.model}" if checkpoint.attempts and checkpoint.model else ""
    sources = "earlier summaries" if checkpoint.depth > 1 else "the original messages"
    return "\n".join(
        (
            f"Compaction #{checkpoint.id} of {session_name(checkpoint.session)}, "
            f"{format_local_time(checkpoint.created_at, zone)}:",
            f"- {checkpoint.trigger}, {describe_tier(checkpoint.tier)}, {describe_state(checkpoint.state)}{note}",
            f"- messages {checkpoint.from_message_id} to {checkpoint.to_message_id} "
            f"({checkpoint.messages_compressed:,}), {_tokens(checkpoint)}",
            f"- {calls}{model}, {format_dollars(checkpoint.cost_usd)}; made from {sources}",
        )
    )


def _list(title: str, value: object) -> str:
    items = value if isinstance(value, list | tuple) else [value]
    return f"{title}:" + "".join(f"\n- {_item(item)}" for item in items)


def _plain(value: object) -> str:
    """What has no heading of its own, in a line."""
    if isinstance(value, Mapping):
        return "; ".join(f"{str(key).replace('_', ' ')}: {_plain(part)}" for key, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_plain, value))
    return clean_line(str(value), 400)


def _item(item: object) -> str:
    """A number is the id of a message."""
    if isinstance(item, Mapping | list):
        return _plain(item)
    return f"#{item}" if isinstance(item, int) else clean_line(str(item).removeprefix("- "), 400)


def _detail_of(shown: _ShownCompaction) -> CompactionDetail:
    detail = CompactionDetail.model_validate(shown.checkpoint)
    saving = SavingItem.model_validate(shown.saving) if shown.saving else None
    return detail.model_copy(update={"saving": saving})


_DETAIL_JSON = Annotated[CompactionDetail, BeforeValidator(_detail_of)]


@click.command(cls=TableCommand, result=_DETAIL_JSON, render=_render_detail, reads=True, with_session=False)
@number_argument("checkpoint_id")
@filter_options
@secrets_option
def show(
    context: CommandContext, checkpoint_id: int, since: str | None, session: str | None, secrets: bool
) -> _ShownCompaction:
    """Show a compaction: its summary and key facts. Also where the originals are.

    > aihistory show 3
    > aihistory show 3 --json
    """
    checkpoint = find_checkpoint(context.stores.conversation, context.zone, checkpoint_id, since, session)
    saving = find_saving(context.stores.ledger, checkpoint, context.now)
    return _ShownCompaction(checkpoint, secrets, saving)


# ----------------------------------------------------------------------------------------------------------- originals


def read_originals(stores: CommandStores, checkpoint: Checkpoint) -> Iterator[LogRecord]:
    """The records in the range of a compaction, oldest first, undone ones among them. Those that a branch took over
    from the conversation it came from, or a conversation from an earlier one that it continues from, stand first.
    Raises `CorruptStore` where the index does not know the range."""
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
    records = stores.sessions.generations.records_of_generation(checkpoint.session, checkpoint.generation)
    first_record = next(iter(records), None)
    begins_at = 0 if first_record is None else first_record.span.start  # the conversation, in its log
    elsewhere = [
        (path, start, end)
        for path, start, end in checkpoint.key_facts.get("byte_ranges", ())
        if path not in (first.path, last.path) or end <= begins_at
    ]
    logs = {**_logs_of_ancestors(stores, checkpoint.session), first.path: checkpoint.session} if elsewhere else {}
    return [*((logs[path], start, end) for path, start, end in elsewhere if path in logs), own]


def _logs_of_ancestors(stores: CommandStores, session: str) -> dict[str, str]:
    """The log's path -> the session, of those that this one was branched from."""
    sessions = {info.key: info for info in stores.conversation.list_sessions()}
    logs: dict[str, str] = {}
    parent = sessions.get(sessions[session].parent or "")
    while parent is not None:
        newest = [record.id for record in stores.history.recent(parent.scope, session=parent.key, limit=1)]
        logs |= {place.path: parent.key for place in stores.conversation.find_log_places(newest).values()}
        parent = sessions.get(parent.parent or "")
    return logs


class OriginalMessage(MessageItem):
    """A record of the message log, with its pictures and files."""

    media: Annotated[list[dict[str, Any]], BeforeValidator(lambda media: list(map(media_to_json, media)))]


@click.command()
@number_argument("checkpoint_id")
@filter_options
@secrets_option
@json_option(list[OriginalMessage], "Print one JSON array, with pictures and files as in the log, and with secrets.")
def recover(checkpoint_id: int, since: str | None, session: str | None, secrets: bool, json_out: bool) -> None:
    """Print the original messages of a compaction, oldest first. They come from the message log.

    > aihistory recover 3
    > aihistory recover 3 --secrets
    > aihistory recover 3 --json > before-the-move.json
    """
    settings = load_effective_settings(read_only=True)
    with open_home_stores(settings) as opened:
        stores = build_command_stores(settings, opened)
        checkpoint = find_checkpoint(stores.conversation, settings.zone, checkpoint_id, since, session)
        if json_out:
            _print_array(read_originals(stores, checkpoint))
            return
        mask = SecretMask(asked=secrets)
        for record in read_originals(stores, checkpoint):
            print_record(record, settings.zone, mask=mask.apply)
        if mask.left_out:
            print_remark(SECRETS_LEFT_OUT)


def _print_array(records: Iterator[LogRecord]) -> None:
    """One array, an element a line, so that it is never in memory as a whole."""
    separator = "["
    for record in records:
        item = OriginalMessage.model_validate(record).model_dump(mode="json")
        print_text(f"{separator}{json.dumps(item, ensure_ascii=False)}")
        separator = ","
    print_text("]" if separator == "," else "[]")
