"""`aihistory list` and `show`, and which compactions the commands of `aihistory` are about."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Any, TypeVar

import click

from assistant.cli.home_stores import scope_of_session
from assistant.cli.output import shorten_line
from assistant.commands.compaction import CompactionItem
from assistant.commands.context import CommandContext
from assistant.commands.table import TableCommand, number_argument
from assistant.core.calendar import format_local_time
from assistant.core.checkpoints import Checkpoint
from assistant.core.errors import UsageError
from assistant.core.store_ports import Conversation
from assistant.core.text import pluralize

Function = TypeVar("Function", bound=Callable[..., Any])

NOTHING_COMPACTED = "Nothing was compacted yet."
# What people read of a tier; any other is the name of a strategy.
_TIERS = {
    "full": "by the model",
    "extractive": "without a model",
    "ends": "shortened",
    "floor": "shortened",
    "mask": "tool output shortened",
}


# ----------------------------------------------------------------------------------------------------------- selection


def filter_options(function: Function) -> Function:
    """`--since` and `--session`, for `select_checkpoints`."""
    for option in (
        click.option("--session", metavar="NAME", help="Only this conversation."),
        click.option("--since", metavar="DATE", help="Only compactions since this day or moment, in your time zone."),
    ):
        function = option(function)
    return function


def select_checkpoints(
    conversation: Conversation, zone: tzinfo, since: str | None, session: str | None
) -> list[Checkpoint]:
    """The compactions since a day or moment, of one conversation or of all, newest first. Raises `UsageError`."""
    earliest = _parse_moment(since, zone) if since is not None else None
    if session is not None:
        scope_of_session(conversation, session)
    sessions = [session] if session is not None else [info.key for info in conversation.list_sessions()]
    checkpoints = [checkpoint for key in dict.fromkeys(sessions) for checkpoint in conversation.checkpoints(key)]
    selected = [it for it in checkpoints if earliest is None or it.created_at >= earliest]
    return sorted(selected, key=lambda checkpoint: checkpoint.id, reverse=True)


def find_checkpoint(
    conversation: Conversation, zone: tzinfo, checkpoint_id: int, since: str | None, session: str | None
) -> Checkpoint:
    """Raises `UsageError` where there is no such compaction among those selected."""
    for checkpoint in select_checkpoints(conversation, zone, since, session):
        if checkpoint.id == checkpoint_id:
            return checkpoint
    where = f" of {session!r}" if session else ""
    when = f" since {_parse_moment(since, zone):%Y-%m-%d %H:%M}" if since else ""
    raise UsageError(f"There is no compaction {checkpoint_id}{where}{when}. `aihistory` lists the compactions.")


def _parse_moment(text: str, zone: tzinfo) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text!r} is not a date. Write it as 2026-11-20, or as 2026-11-20T18:30.") from None
    return moment.astimezone(zone) if moment.tzinfo else moment.replace(tzinfo=zone)


# ------------------------------------------------------------------------------------------------------------- listing


def _render_list(checkpoints: Sequence[Checkpoint], zone: tzinfo) -> str:
    return "\n".join(f"- {_line(checkpoint, zone)}" for checkpoint in checkpoints) or NOTHING_COMPACTED


def _line(checkpoint: Checkpoint, zone: tzinfo) -> str:
    return (
        f"#{checkpoint.id} {checkpoint.session}, {format_local_time(checkpoint.created_at, zone)}: "
        f"{pluralize(checkpoint.messages_compressed, 'message')}, {_tokens(checkpoint)}, "
        f"{describe_tier(checkpoint.tier)}, {checkpoint.trigger}, {checkpoint.state}, "
        f"{format_dollars(checkpoint.cost_usd)}"
    )


def _tokens(checkpoint: Checkpoint) -> str:
    return f"{checkpoint.original_tokens:,} -> {checkpoint.compressed_tokens:,} tokens ({checkpoint.ratio:.0%})"


def describe_tier(tier: str) -> str:
    return _TIERS.get(tier, tier)


def format_dollars(amount: float | None) -> str:
    return "cost not known" if amount is None else f"${amount:.4f}"


@click.command(
    "list", cls=TableCommand, result=list[CompactionItem], render=_render_list, reads=True, with_session=False
)
@filter_options
def list_compactions(context: CommandContext, since: str | None, session: str | None) -> list[Checkpoint]:
    """List the compactions, newest first: when, what it made of how much, its state and cost.

    \b
    Example:
      aihistory list --since 2026-11-01
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


# Key facts that have a heading, in this order; every other one follows as it is.
_HEADINGS = {
    "decisions": "Decisions",
    "preferences": "Preferences",
    "entities": "Names",
    "identifiers": "Identifiers",
    "kept": "Kept word for word",
    "restored": "Put back by the check, word for word",
    "memories": "Written into the journal",
    "failures": "Why nothing better was used",
}


def _render_detail(checkpoint: Checkpoint, zone: tzinfo) -> str:
    facts = dict(checkpoint.key_facts)
    ranges = facts.pop("byte_ranges", ())
    sections = [_head(checkpoint, zone), checkpoint.summary or "(no summary)"]
    sections += [_list(title, facts.pop(key)) for key, title in _HEADINGS.items() if facts.get(key)]
    others = {key: value for key, value in facts.items() if value not in (None, "", [], {})}
    if others:
        sections.append(f"Also noted:\n\n```json\n{json.dumps(others, ensure_ascii=False, indent=2)}\n```")
    places = "".join(f"\n- {path} bytes {start:,} to {end:,}" for path, start, end in ranges)
    return "\n\n".join([*sections, f"The original messages: `aihistory recover {checkpoint.id}`{places}"])


def _head(checkpoint: Checkpoint, zone: tzinfo) -> str:
    note = f" ({shorten_line(checkpoint.note, 200)})" if checkpoint.note else ""
    calls = pluralize(checkpoint.attempts, "model call") if checkpoint.attempts else "no model call"
    model = f" of {checkpoint.model}" if checkpoint.attempts and checkpoint.model else ""
    sources = "earlier summaries" if checkpoint.depth > 1 else "the original messages"
    return "\n".join(
        (
            f"Compaction #{checkpoint.id} of {checkpoint.session}, {format_local_time(checkpoint.created_at, zone)}:",
            f"- {checkpoint.trigger}, {describe_tier(checkpoint.tier)}, {checkpoint.state}{note}",
            f"- messages {checkpoint.from_message_id} to {checkpoint.to_message_id} "
            f"({checkpoint.messages_compressed:,}), {_tokens(checkpoint)}",
            f"- {calls}{model}, {format_dollars(checkpoint.cost_usd)}; made from {sources}",
        )
    )


def _list(title: str, value: object) -> str:
    items = value if isinstance(value, list | tuple) else [value]
    return f"{title}:" + "".join(f"\n- {_item(item)}" for item in items)


def _item(item: object) -> str:
    """A number is the id of a message."""
    if isinstance(item, Mapping | list):
        return json.dumps(item, ensure_ascii=False)
    return f"#{item}" if isinstance(item, int) else shorten_line(str(item).removeprefix("- "), 400)


@click.command(cls=TableCommand, result=CompactionDetail, render=_render_detail, reads=True, with_session=False)
@number_argument("checkpoint_id")
@filter_options
def show(context: CommandContext, checkpoint_id: int, since: str | None, session: str | None) -> Checkpoint:
    """Show one compaction: its summary and key facts, and where the originals are.

    \b
    Example:
      aihistory show 3
      aihistory show 3 --json
    """
    return find_checkpoint(context.stores.conversation, context.zone, checkpoint_id, since, session)
