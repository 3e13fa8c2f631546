"""What is told of messages that were edited or deleted on their network: facts beside what was said. Pure.

What always holds: the words of an edit are quoted, and cannot leave their quotation (I10). What somebody took back is
shown where it was said, since it was, and goes into no summary.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from assistant.context.quote import visible
from assistant.core.messages import Message

TAKEN_BACK = "(deleted by its sender)"
_BEGINNING = 60


def is_change(message: Message) -> bool:
    return message.metadata.get("type") in ("edit", "delete")


def told_of(message: Message, said: Mapping[int, str]) -> str:
    """What an edit or a deletion tells; `said` are the words of earlier messages, by their numbers. An edit of a turn
    came before its message was answered: it has the earlier words."""
    content = message.content.strip()
    about = ", ".join(f"#{ref}{_beginning(said.get(ref, ''))}" for ref in message.metadata.get("refs", ()))
    if message.metadata["type"] == "delete":
        return f"The sender deleted message {about}.\n{content}".strip()
    words = "\n".join(f"> {line}" for line in visible(content).splitlines()) or "> (no words)"
    if message.metadata.get("turn"):
        return f"Message {about}, which follows, was edited before it was answered. At first it said:\n{words}"
    return f"The sender edited message {about}. It now says:\n{words}"


def as_changed(rows: Sequence[Message]) -> tuple[Message, ...]:
    """Rows as they are summarised: without the words of what was deleted, the changes told."""
    changes = [row for row in rows if is_change(row)]
    if not changes:
        return tuple(rows)
    deleted = {ref for row in changes if row.metadata["type"] == "delete" for ref in row.metadata.get("refs", ())}
    return tuple(_as_changed(row, deleted) for row in rows)


def _as_changed(row: Message, deleted: set[int]) -> Message:
    if is_change(row):
        left = replace(row, content="") if deleted & set(row.metadata.get("refs", ())) else row
        return replace(row, content=told_of(left, {}))
    return replace(row, content=TAKEN_BACK, media=()) if row.id in deleted else row


def _beginning(text: str) -> str:
    line = visible(" ".join(text.split()))
    cut = line if len(line) <= _BEGINNING else f"{line[:_BEGINNING]}…"
    return f" ({json.dumps(cut, ensure_ascii=False)})" if cut else ""
