"""`aihistory diff`: what the original messages name and the summary that took their place does not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import click

from assistant.cli.aihistory.compactions import filter_options, read_filter
from assistant.cli.aihistory.recover import read_originals
from assistant.cli.home_stores import open_home_stores
from assistant.cli.output import print_json, print_text
from assistant.cli.text import shorten_line
from assistant.core.checkpoints import Checkpoint
from assistant.core.records import LogRecord
from assistant.wire.stores import Stores
from sleep.compaction.validate import find_missing_values

_SPOKEN = ("user", "assistant")


@dataclass(frozen=True, slots=True)
class MissingFact:
    """Something that a message named first; `kind` is "identifiers", "numbers", "names" or "tasks". `kept` where a copy
    of that message stayed in view word for word."""

    kind: str
    text: str
    record: LogRecord
    kept: bool


@click.command()
@click.argument("checkpoint_id", metavar="ID", type=int)
@filter_options("Print one JSON array, with the message that named each first.")
@click.pass_context
def diff(context: click.Context, checkpoint_id: int) -> None:
    """List identifiers, numbers, names and tasks of the original messages that the summary does not have.

    They are not lost: `aihistory recover` prints the messages, and the assistant finds them by their words.

    \b
    Example:
      aihistory diff 3
      aihistory diff 3 --json
    """
    chosen = read_filter(context)
    with open_home_stores(chosen.settings) as stores:
        checkpoint = chosen.get_checkpoint(stores.conversation, checkpoint_id)
        found = list(find_missing_facts(stores, checkpoint))
    if chosen.json_out:
        print_json([_as_json(one) for one in found])
    else:
        print_text("\n\n".join(_sections(found)) or "The summary names everything that the originals do.")


def find_missing_facts(stores: Stores, checkpoint: Checkpoint) -> Iterator[MissingFact]:
    """In the order they were said, each once. What tools returned is not looked at: of that, what mattered was said."""
    kept = set(checkpoint.key_facts.get("kept", ()))
    told: set[tuple[str, str]] = set()
    for record in read_originals(stores, checkpoint):
        if record.role not in _SPOKEN:
            continue
        for kind, texts in find_missing_values([record.content], checkpoint.summary).items():
            for text in texts:
                if (kind, text.casefold()) not in told:
                    told.add((kind, text.casefold()))
                    yield MissingFact(kind, text, record, record.id in kept)


def _sections(found: list[MissingFact]) -> list[str]:
    kinds = dict.fromkeys(one.kind for one in found)
    return ["\n".join([f"{kind.capitalize()}:", *(_line(one) for one in found if one.kind == kind)]) for kind in kinds]


def _line(one: MissingFact) -> str:
    return f"- {shorten_line(one.text, 200)} (#{one.record.id}{', kept in view' if one.kept else ''})"


def _as_json(one: MissingFact) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "text": one.text,
        "message_id": one.record.id,
        "at": one.record.ts.isoformat(),
        "kept": one.kept,
    }
