"""Structure of a message sequence: the newest request, the start of the open tool loop, call/result blocks, and edits
or deletions of earlier messages. Pure.

- Everything that cuts, shortens or sends a view uses these functions, so that all agree on what must stay together.
- The text of an edit is quoted and cannot escape (I10). Deleted text stays visible where it was said, and is excluded
  from summaries.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from assistant.core.messages import Message
from assistant.core.quoting import replace_hidden_characters
from assistant.core.text import shorten


def is_user_request(message: Message) -> bool:
    """Return whether a message is a current user request, not a note, record or kept copy."""
    return message.role == "user" and not (
        message.metadata and any(message.metadata.get(key) for key in ("note", "internal", "carried_from", "type"))
    )


def is_retained_request(message: Message) -> bool:
    """Return whether it is an old user message kept by a compaction; a branch's inherited messages are not."""
    metadata = message.metadata
    return message.role == "user" and bool(metadata) and "carried_from" in metadata and not metadata.get("inherited")


def newest_request_index(messages: Sequence[Message]) -> int:
    """Return the index of the newest user request, or -1."""
    for index in range(len(messages) - 1, -1, -1):
        if is_user_request(messages[index]):
            return index
    return -1


def tool_loop_start(messages: Sequence[Message]) -> int:
    """Return the index of the user message that opened the possibly running tool loop, or -1.

    User messages directly after a tool result steer the loop and do not open a new one; the thinking before them still
    belongs to its calls.
    """
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role == "user" and (index == 0 or messages[index - 1].role not in ("tool", "user")):
            return index
    return -1


def turn_start(messages: Sequence[Message]) -> int:
    """Return the index of the request that opened the newest turn, or -1: the newest request, or if that steers a tool
    loop, the one that opened the loop."""
    start = newest_request_index(messages)
    while start > 0:
        first = start
        while first > 0 and messages[first - 1].role == "user":
            first -= 1
        opener = newest_request_index(messages[:first])
        if opener < 0 or messages[first - 1].role != "tool":
            break
        start = opener
    return start


def block_starts(messages: Sequence[Message]) -> list[int]:
    """Return the indexes at which the sequence may be cut: an assistant message with calls forms a block up to its last
    result; every other message is a block of its own."""
    last_result: dict[int, int] = {}
    owner: dict[str, int] = {}
    free: list[int] = []
    for index, message in enumerate(messages):
        if message.role == "tool":
            caller = owner.get(message.tool_call_id or "")
            if caller is not None:
                last_result[caller] = index
            continue
        free.append(index)
        for call in message.tool_calls:
            owner[call.id] = index
    starts: list[int] = []
    held_until = -1
    for index in free:
        if index > held_until:
            starts.append(index)
        held_until = max(held_until, last_result.get(index, -1))
    return starts


DELETED_TEXT = "(deleted by its sender)"
_EXCERPT_LENGTH = 60


def is_edit_or_deletion(message: Message) -> bool:
    return message.metadata.get("type") in ("edit", "delete")


def describe_change(message: Message, words_by_id: Mapping[int, str]) -> str:
    """Describe an edit or deletion; `words_by_id` has the text of earlier messages. An edit within a turn preceded the
    answer, and contains the original text."""
    content = message.content.strip()
    about = ", ".join(f"#{ref}{_excerpt(words_by_id.get(ref, ''))}" for ref in message.metadata.get("refs", ()))
    if message.metadata["type"] == "delete":
        return f"The sender deleted message {about}.\n{content}".strip()
    words = "\n".join(f"> {line}" for line in replace_hidden_characters(content).splitlines()) or "> (no words)"
    if message.metadata.get("turn"):
        return f"Message {about}, which follows, was edited before it was answered. At first it said:\n{words}"
    return f"The sender edited message {about}. It now says:\n{words}"


def with_changes_described(rows: Sequence[Message]) -> tuple[Message, ...]:
    """Return rows for summarising: without deleted text, with changes described."""
    changes = [row for row in rows if is_edit_or_deletion(row)]
    if not changes:
        return tuple(rows)
    deleted = {ref for row in changes if row.metadata["type"] == "delete" for ref in row.metadata.get("refs", ())}
    return tuple(_with_change_described(row, deleted) for row in rows)


def _with_change_described(row: Message, deleted: set[int]) -> Message:
    if is_edit_or_deletion(row):
        left = replace(row, content="") if deleted & set(row.metadata.get("refs", ())) else row
        return replace(row, content=describe_change(left, {}))
    return replace(row, content=DELETED_TEXT, media=()) if row.id in deleted else row


def _excerpt(text: str) -> str:
    cut = shorten(replace_hidden_characters(" ".join(text.split())), _EXCERPT_LENGTH)
    return f" ({json.dumps(cut, ensure_ascii=False)})" if cut else ""
