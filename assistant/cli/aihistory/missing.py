"""`aihistory diff`: what the summary of a compaction does not name of the messages under it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, tzinfo
from operator import attrgetter
from typing import Annotated

import click
from pydantic import BeforeValidator

from assistant.cli.aihistory.compactions import filter_options, find_checkpoint, read_originals
from assistant.cli.aihistory.secret_mask import SECRETS_LEFT_OUT, secrets_option
from assistant.cli.output import clean_line
from assistant.commands.context import CommandContext, CommandStores
from assistant.commands.table import TableCommand, number_argument
from assistant.core.checkpoints import Checkpoint
from assistant.core.dataclass import dataclass
from assistant.wire.services import find_missing_values
from sleep.rules.secrets import find_secret_values

_SPOKEN = ("user", "assistant")


@dataclass(frozen=True, slots=True)
class MissingFact:
    """Something that a message named, and the summary does not."""

    kind: str  # "identifiers", "numbers", "names" or "tasks"
    text: str
    message_id: int  # of the message that named it first
    at: datetime
    kept: bool  # the model still sees that message word for word
    secret: str  # "password", "key", "PIN" or "card number" where it looks like (a part of) one; else ""


@dataclass(frozen=True, slots=True)
class _MissingFacts:
    facts: Sequence[MissingFact]
    with_secrets: bool


def _render_missing(missing: _MissingFacts, _: tzinfo) -> str:
    sections = []
    facts = missing.facts
    for kind in dict.fromkeys(fact.kind for fact in facts):
        lines = [
            f"- {_fact_text(fact, missing.with_secrets)} (#{fact.message_id}"
            f"{', kept word for word' if fact.kept else ''})"
            for fact in facts
            if fact.kind == kind
        ]
        sections.append("\n".join([f"{kind.capitalize()}:", *lines]))
    if not missing.with_secrets and any(fact.secret for fact in facts):
        sections.append(SECRETS_LEFT_OUT)
    return "\n\n".join(sections) or "The summary names everything that the original messages name."


def _fact_text(fact: MissingFact, with_secrets: bool) -> str:
    return f"[{fact.secret} left out]" if fact.secret and not with_secrets else clean_line(fact.text, 200)


_MISSING_JSON = Annotated[list[MissingFact], BeforeValidator(attrgetter("facts"))]


@click.command(cls=TableCommand, result=_MISSING_JSON, render=_render_missing, reads=True, with_session=False)
@number_argument("checkpoint_id")
@filter_options
@secrets_option
def diff(
    context: CommandContext, checkpoint_id: int, since: str | None, session: str | None, secrets: bool
) -> _MissingFacts:
    """List what the summary lacks: identifiers, numbers, names, tasks.

    They are not lost: `aihistory recover` prints the messages, and the assistant finds them by their words.

    > aihistory diff 3
    > aihistory diff 3 --json
    """
    checkpoint = find_checkpoint(context.stores.conversation, context.zone, checkpoint_id, since, session)
    return _MissingFacts(list(find_missing_facts(context.stores, checkpoint)), secrets)


def find_missing_facts(stores: CommandStores, checkpoint: Checkpoint) -> Iterator[MissingFact]:
    """In the order they were said, each once. What tools returned is not read: what mattered of it was said."""
    kept_ids = set(checkpoint.key_facts.get("kept", ()))
    seen: set[tuple[str, str]] = set()
    secrets: dict[str, str] = {}
    for record in read_originals(stores, checkpoint):
        if record.role not in _SPOKEN:
            continue
        secrets |= find_secret_values([record.content])
        for kind, texts in find_missing_values(record.content, checkpoint.summary).items():
            for text in texts:
                if (kind, text.casefold()) not in seen:
                    seen.add((kind, text.casefold()))
                    is_kept = record.id in kept_ids
                    yield MissingFact(kind, text, record.id, record.ts, is_kept, _secret_kind(text, secrets))


def _secret_kind(text: str, secrets: Mapping[str, str]) -> str:
    """Of the first secret that has the text in it, or is in it."""
    return next((kind for value, kind in secrets.items() if text in value or value in text), "")
