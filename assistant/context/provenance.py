"""Identifies untrusted content that a model has read. Pure.

Everything in a prompt other than the user's own message, the rules and persona, and the model's own output is reported
here. Its authors give no orders: effects in such a turn need the user's request or approval (I10, `docs/approvals.md`).
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
    """Return the kinds of untrusted content, each once.

    - `messages`: the stored view.
    - `volatile`, `memory`, `pins`: other parts of the prompt.
    - `silent_tools`: tools whose results never quote stored text.
    """
    kinds = [RECALLED] if _has_more_than_time(volatile) else []
    kinds += [MEMORY] if memory else []
    kinds += [PINS] if any(role != "user" for role, _ in pins) else []
    for message in messages:
        # Most are what the model said itself.
        if message.role != "assistant" or message.metadata:
            kinds += _kinds(message, silent_tools)
    return tuple(dict.fromkeys(kinds))


def _kinds(message: Message, silent_tools: Collection[str]) -> Iterator[str]:
    if message.is_summary:
        yield SUMMARY
    elif message.role == "tool":
        if message.name not in silent_tools or FOREIGN_TEXT in message.content:
            yield TOOL_RESULT
    elif message.role == "system":
        # Edits and deletions of the user's own messages are the user's words.
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
    """Return whether the block has more than its first paragraph, the time."""
    return "\n\n" in volatile.strip()
