"""How a row of messages hangs together: which request is the newest, where the open tool loop starts, what is a pair.

Everything that cuts, shortens or sends a view asks here, so that all agree on what may not be torn apart.
"""

from __future__ import annotations

from collections.abc import Sequence

from assistant.core.messages import Message


def is_request(message: Message) -> bool:
    """Whether somebody asks for something here and now: a user's message, not a note, a record or a kept copy."""
    return message.role == "user" and not (
        message.metadata and any(message.metadata.get(key) for key in ("note", "internal", "carried_from", "type"))
    )


def is_kept_request(message: Message) -> bool:
    """Whether these are a person's words from long ago that a compaction kept; what a branch inherited goes on here."""
    metadata = message.metadata
    return message.role == "user" and bool(metadata) and "carried_from" in metadata and not metadata.get("inherited")


def newest_request(messages: Sequence[Message]) -> int:
    """Index of the newest user request; -1 where there is none."""
    for index in range(len(messages) - 1, -1, -1):
        if is_request(messages[index]):
            return index
    return -1


def loop_start(messages: Sequence[Message]) -> int:
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
    start = newest_request(messages)
    while start > 0:
        first = start
        while first > 0 and messages[first - 1].role == "user":
            first -= 1
        opener = newest_request(messages[:first])
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
            asked = owner.get(message.tool_call_id or "")
            if asked is not None:
                last_result[asked] = index
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
