"""How a row of messages hangs together: which request is the newest, where the open tool loop starts, what is a pair,
and which messages report that an earlier one was edited or deleted on its network. Pure.

What always holds:
- Everything that cuts, shortens or sends a view asks here, so that all agree on what may not be separated.
- The words of an edit are quoted, and cannot leave their quotation (I10). What somebody deleted is shown where it was
  said, since it was said, and goes into no summary.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from assistant.core.messages import Message
from assistant.core.quoting import replace_hidden_characters
from assistant.core.text import shorten


def is_user_request(message: Message) -> bool:
    """Whether somebody asks for something here and now: a user's message, not a note, a record or a kept copy."""
    return message.role == "user" and not (
        message.metadata and any(message.metadata.get(key) for key in ("note", "internal", "carried_from", "type"))
    )


def is_retained_request(message: Message) -> bool:
    """Whether these are a person's words from long ago that a compaction kept; inherited words of a branch are not."""
    metadata = message.metadata
    return message.role == "user" and bool(metadata) and "carried_from" in metadata and not metadata.get("inherited")


def newest_request_index(messages: Sequence[Message]) -> int:
    """Index of the newest user request; -1 where there is none."""
    for index in range(len(messages) - 1, -1, -1):
        if is_user_request(messages[index]):
            return index
    return -1


def tool_loop_start(messages: Sequence[Message]) -> int:
    """Index of the user message that opened the tool loop which may still run; -1 without one.

    User messages directly after a tool result steer the loop; they do not open a new one, and the thinking before
    them still belongs to the calls it led to."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role == "user" and (index == 0 or messages[index - 1].role not in ("tool", "user")):
            return index
    return -1


def turn_start(messages: Sequence[Message]) -> int:
    """Index of the request that opened the newest turn; -1 where there is none. That is the newest request, or, where
    that one steers a tool loop, the one before it which the loop belongs to."""
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
    """Indexes at which the row may be cut: an assistant message with calls, and everything up to its last result, is
    one block; every other message is a block of its own."""
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
    """What an edit or a deletion tells; `words_by_id` are the words of earlier messages. An edit of a turn
    came before its message was answered: it has the earlier words."""
    content = message.content.strip()
    about = ", ".join(f"#{ref}{_excerpt(words_by_id.get(ref, ''))}" for ref in message.metadata.get("refs", ()))
    if message.metadata["type"] == "delete":
        return f"The sender deleted message {about}.\n{content}".strip()
    words = "\n".join(f"> {line}" for line in replace_hidden_characters(content).splitlines()) or "> (no words)"
    if message.metadata.get("turn"):
        return f"Message {about}, which follows, was edited before it was answered. At first it said:\n{words}"
    return f"The sender edited message {about}. It now says:\n{words}"


def with_changes_described(rows: Sequence[Message]) -> tuple[Message, ...]:
    """Rows as they are summarised: without the words of what was deleted, the changes told."""
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
