"""Which compactions a command of `aihistory` speaks of, and how it prints them.

`--since`, `--session` and `--json` may come before or after the subcommand's name; what stands last on the line
counts. A compaction is a row of the table, an object with stable keys, or everything about one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import click
from pydantic import TypeAdapter

from assistant.cli.effective_settings import load_effective_settings
from assistant.cli.home_stores import open_home_stores, scope_of_session
from assistant.cli.options import Function, shared_option, shared_option_value
from assistant.cli.output import print_json, print_text
from assistant.cli.tables import format_local_time, print_table
from assistant.cli.text import shorten_line
from assistant.commands.compaction import CompactionItem, compaction_item
from assistant.core.checkpoints import Checkpoint
from assistant.core.errors import UsageError
from assistant.core.store_ports import Conversation
from assistant.core.text import pluralize
from assistant.settings.settings import Settings


@dataclass(frozen=True, slots=True)
class CompactionFilter:
    """`since` is the earliest moment of interest, `session` the only conversation of interest; None for any."""

    settings: Settings
    since: datetime | None
    session: str | None
    json_out: bool

    def select_checkpoints(self, conversation: Conversation) -> list[Checkpoint]:
        """The compactions that were selected, newest first. Raises `UsageError` for a session that is not there."""
        if self.session is not None:
            scope_of_session(conversation, self.session)
            keys = [self.session]
        else:
            keys = list(dict.fromkeys(info.key for info in conversation.list_sessions()))
        found = [
            c for key in keys for c in conversation.checkpoints(key) if not self.since or c.created_at >= self.since
        ]
        return sorted(found, key=lambda checkpoint: checkpoint.id, reverse=True)

    def get_checkpoint(self, conversation: Conversation, checkpoint_id: int) -> Checkpoint:
        """Raises `UsageError` where there is no such compaction among those selected."""
        for checkpoint in self.select_checkpoints(conversation):
            if checkpoint.id == checkpoint_id:
                return checkpoint
        where = f" of {self.session!r}" if self.session else ""
        since = f" since {self.since.astimezone(self.settings.zone):%Y-%m-%d %H:%M}" if self.since else ""
        raise UsageError(f"There is no compaction {checkpoint_id}{where}{since}. `aihistory` lists those there are.")


def filter_options(json_help: str) -> Callable[[Function], Function]:
    """The three options, for a command that asks `selected` what they said."""

    def decorate(function: Function) -> Function:
        for option in (
            shared_option("--json", json_help, is_flag=True),
            shared_option("--session", "Only this conversation.", metavar="NAME"),
            shared_option("--since", "Only compactions since this day or moment (the home's time).", metavar="DATE"),
        ):
            function = option(function)
        return function

    return decorate


def read_filter(context: click.Context) -> CompactionFilter:
    """What the options said. Raises `UsageError` for a date that is none."""
    settings = load_effective_settings(read_only=True)
    since = shared_option_value(context, "since")
    moment = None if since is None else _moment(since, settings.zone)
    return CompactionFilter(
        settings, moment, shared_option_value(context, "session"), bool(shared_option_value(context, "json"))
    )


def _moment(text: str, zone: ZoneInfo) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text!r} is not a date. Write it as 2026-11-20, or as 2026-11-20T18:30.") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=zone)


# What `show` says under a heading of its own, in this order; every other key fact follows as it is.
_HEADINGS = (
    ("decisions", "Decisions"),
    ("preferences", "Preferences"),
    ("entities", "Names"),
    ("identifiers", "Identifiers"),
    ("kept", "Kept word for word"),
    ("restored", "Put back by the check, word for word"),
    ("memories", "Written into the journal"),
    ("failures", "Why nothing better was used"),
)


def print_compactions(found: Sequence[Checkpoint], zone: ZoneInfo) -> None:
    print_table(
        ("id", "when", "session", "trigger", "tier", "state", "messages", "tokens", "ratio", "cost"),
        [
            (
                str(c.id),
                format_local_time(c.created_at, zone),
                c.session,
                c.trigger,
                c.tier,
                c.state,
                f"{c.messages_compressed:,}",
                f"{c.original_tokens:,} -> {c.compressed_tokens:,}",
                f"{c.ratio:.2f}",
                format_dollars(c.cost_usd),
            )
            for c in found
        ],
        right=("id", "messages", "tokens", "ratio", "cost"),
        empty="Nothing was compacted yet.",
    )


def format_dollars(amount: float | None) -> str:
    """A cost; a question mark where no price is known."""
    return "?" if amount is None else f"${amount:.4f}"


def compaction_json(checkpoint: Checkpoint) -> dict[str, Any]:
    value: dict[str, Any] = TypeAdapter(CompactionItem).dump_python(compaction_item(checkpoint), mode="json")
    return value


@click.command()
@click.argument("checkpoint_id", metavar="ID", type=int)
@filter_options("Print one JSON object, with summary and key facts.")
@click.pass_context
def show(context: click.Context, checkpoint_id: int) -> None:
    """Show one compaction: its summary and key facts, what was kept, what the check put back, where the originals are.

    \b
    Example:
      aihistory show 3
      aihistory show 3 --json
    """
    chosen = read_filter(context)
    with open_home_stores(chosen.settings) as stores:
        checkpoint = chosen.get_checkpoint(stores.conversation, checkpoint_id)
    if chosen.json_out:
        print_json(_whole_json(checkpoint))
    else:
        print_text("\n\n".join(_sections(checkpoint, chosen.settings.zone)))


def _whole_json(checkpoint: Checkpoint) -> dict[str, Any]:
    return compaction_json(checkpoint) | {
        "num": checkpoint.num,
        "generation": checkpoint.generation,
        "model": checkpoint.model,
        "attempts": checkpoint.attempts,
        "note": checkpoint.note,
        "summary": checkpoint.summary,
        "key_facts": dict(checkpoint.key_facts),
    }


def _sections(c: Checkpoint, zone: ZoneInfo) -> list[str]:
    facts = dict(c.key_facts)
    ranges = facts.pop("byte_ranges", ())
    sections = [_head(c, zone), c.summary or "(no summary)"]
    sections += [_listed(title, facts.pop(key)) for key, title in _HEADINGS if facts.get(key)]
    rest = {key: value for key, value in facts.items() if value not in (None, "", [], {})}
    if rest:
        sections.append(f"Also noted: {json.dumps(rest, ensure_ascii=False, indent=2)}")
    places = "".join(f"\n  {path} bytes {start:,} to {end:,}" for path, start, end in ranges)
    return [*sections, f"The originals: `aihistory recover {c.id}`{places}"]


def _head(c: Checkpoint, zone: ZoneInfo) -> str:
    calls = (
        pluralize(c.attempts, "model call") + (f" of {c.model}" if c.model else "") if c.attempts else "no model call"
    )
    lines = [
        f"Compaction {c.id} of {c.session}, {format_local_time(c.created_at, zone)}: {c.trigger}, {c.tier}, {c.state}"
        + (f" ({shorten_line(c.note, 200)})" if c.note else ""),
        f"Messages {c.from_message_id} to {c.to_message_id} ({c.messages_compressed:,}), "
        f"{c.original_tokens:,} -> {c.compressed_tokens:,} tokens ({c.ratio:.2f})",
        f"{calls}, {format_dollars(c.cost_usd)}; made from "
        f"{'earlier summaries' if c.depth > 1 else 'the original messages'}",
    ]
    return "\n".join(lines)


def _listed(title: str, value: object) -> str:
    items = value if isinstance(value, list | tuple) else [value]
    return f"{title}:" + "".join(f"\n- {_item(item)}" for item in items)


def _item(item: object) -> str:
    """A number is the id of a message."""
    if isinstance(item, Mapping | list):
        return json.dumps(item, ensure_ascii=False)
    return f"#{item}" if isinstance(item, int) else shorten_line(str(item).removeprefix("- "), 400)
