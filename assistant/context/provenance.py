"""What a model has read that the person did not say now. Pure.

What always holds: whatever may stand in a prompt and is neither the person's own message, nor the rules and the
persona, nor what the model itself said, is named here. It may say anything, and its author gives no orders: what
is done in such a turn needs the person's word (I10, `docs/approvals.md`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from assistant.context.structure import is_edit_or_deletion
from assistant.core.messages import ABORTED_MARKER, Message
from assistant.core.quoting import FOREIGN_TEXT

MEMORY, PINS, RECALLED = "memory", "pins", "recalled"
SUMMARY, ATTACHMENT, QUOTATION, NOTE, OTHER_PERSON = "summary", "attachment", "quotation", "note", "another person"
TOOL_RESULT = "tool result"


def find_untrusted(
    messages: Iterable[Message],
    *,
    volatile: str = "",
    memory: str = "",
    pins: Sequence[tuple[str, str]] = (),
    silent_tools: Collection[str] = (),
) -> tuple[str, ...]:
    """The kinds of it, each once.

    - `messages`: the view as stored.
    - `volatile`, `memory`, `pins`: what else the prompt has.
    - `silent_tools`: the tools whose results quote nothing that is stored.
    """
    kinds = [RECALLED] if _has_more_than_time(volatile) else []
    kinds += [MEMORY] if memory else []
    kinds += [PINS] if any(role != "user" for role, _ in pins) else []
    for message in messages:
        kinds += _kinds(message, silent_tools)
    return tuple(dict.fromkeys(kinds))


def _kinds(message: Message, silent_tools: Collection[str]) -> Iterator[str]:
    if message.is_summary:
        yield SUMMARY
    elif message.role == "tool":
        if message.name not in silent_tools or FOREIGN_TEXT in message.content:
            yield TOOL_RESULT
    elif message.role == "system":
        # A person who edited or deleted a message of theirs said so themselves.
        if not (message.content.startswith(ABORTED_MARKER) or is_edit_or_deletion(message)):
            yield NOTE
    elif message.role == "user":
        if message.media:
            yield ATTACHMENT
        if message.name:
            yield OTHER_PERSON
        if any(line.lstrip().startswith(">") for line in message.content.splitlines()):
            yield QUOTATION


def _has_more_than_time(volatile: str) -> bool:
    """The block begins with the time, and what else it has is in paragraphs of its own."""
    return "\n\n" in volatile.strip()
