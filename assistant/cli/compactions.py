"""Compactions as `aihistory` prints them: a row of the table, an object with stable keys, or everything about one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from zoneinfo import ZoneInfo

import click

from assistant.cli.plain import as_json, say
from assistant.cli.selection import selected, selecting
from assistant.cli.stored import opened
from assistant.cli.tables import local, table
from assistant.cli.text import one_line
from assistant.core.checkpoints import Checkpoint
from assistant.core.text import pluralize

# What `show` says under a heading of its own, in this order; every other key fact follows as it is.
_HEADINGS = (
    ("decisions", "Decisions"), ("preferences", "Preferences"), ("entities", "Names"), ("identifiers", "Identifiers"),
    ("kept", "Kept word for word"), ("restored", "Put back by the check, word for word"),
    ("memories", "Written into the journal"), ("failures", "Why nothing better was used"),
)  # fmt: skip


def draw(found: Sequence[Checkpoint], zone: ZoneInfo) -> None:
    table(
        ("id", "when", "session", "trigger", "tier", "state", "messages", "tokens", "ratio", "cost"),
        [
            (
                str(c.id), local(c.created_at, zone), c.session, c.trigger, c.tier, c.state,
                f"{c.messages_compressed:,}", f"{c.original_tokens:,} -> {c.compressed_tokens:,}", f"{c.ratio:.2f}",
                dollars(c.cost_usd),
            )
            for c in found
        ],
        right=("id", "messages", "tokens", "ratio", "cost"),
        empty="Nothing was compacted yet.",
    )  # fmt: skip


def dollars(amount: float | None) -> str:
    """A cost; a question mark where no price is known."""
    return "?" if amount is None else f"${amount:.4f}"


def compaction_json(checkpoint: Checkpoint) -> dict[str, Any]:
    return {
        "id": checkpoint.id, "session": checkpoint.session, "at": checkpoint.created_at.isoformat(),
        "trigger": checkpoint.trigger, "tier": checkpoint.tier, "state": checkpoint.state,
        "compacted_count": checkpoint.messages_compressed, "original_token_count": checkpoint.original_tokens,
        "summary_token_count": checkpoint.compressed_tokens, "ratio": round(checkpoint.ratio, 4),
        "from_message_id": checkpoint.from_message_id, "to_message_id": checkpoint.to_message_id,
        "cost_usd": checkpoint.cost_usd, "depth": checkpoint.depth,
    }  # fmt: skip


@click.command()
@click.argument("checkpoint_id", metavar="ID", type=int)
@selecting("Print one JSON object, with summary and key facts.")
@click.pass_context
def show(context: click.Context, checkpoint_id: int) -> None:
    """Show one compaction: its summary and key facts, what was kept, what the check put back, where the originals are.

    \b
    Example:
      aihistory show 3
      aihistory show 3 --json
    """
    chosen = selected(context)
    with opened(chosen.settings) as stores:
        checkpoint = chosen.one(stores.conversation, checkpoint_id)
    if chosen.json_out:
        as_json(_whole_json(checkpoint))
    else:
        say("\n\n".join(_sections(checkpoint, chosen.settings.zone)))


def _whole_json(checkpoint: Checkpoint) -> dict[str, Any]:
    return compaction_json(checkpoint) | {
        "num": checkpoint.num, "generation": checkpoint.generation, "model": checkpoint.model,
        "attempts": checkpoint.attempts, "note": checkpoint.note, "summary": checkpoint.summary,
        "key_facts": dict(checkpoint.key_facts),
    }  # fmt: skip


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
        f"Compaction {c.id} of {c.session}, {local(c.created_at, zone)}: {c.trigger}, {c.tier}, {c.state}"
        + (f" ({one_line(c.note, 200)})" if c.note else ""),
        f"Messages {c.from_message_id} to {c.to_message_id} ({c.messages_compressed:,}), "
        f"{c.original_tokens:,} -> {c.compressed_tokens:,} tokens ({c.ratio:.2f})",
        f"{calls}, {dollars(c.cost_usd)}; made from {'earlier summaries' if c.depth > 1 else 'the original messages'}",
    ]
    return "\n".join(lines)


def _listed(title: str, value: object) -> str:
    items = value if isinstance(value, list | tuple) else [value]
    return f"{title}:" + "".join(f"\n- {_item(item)}" for item in items)


def _item(item: object) -> str:
    """A number is the id of a message."""
    if isinstance(item, Mapping | list):
        return json.dumps(item, ensure_ascii=False)
    return f"#{item}" if isinstance(item, int) else one_line(str(item).removeprefix("- "), 400)
