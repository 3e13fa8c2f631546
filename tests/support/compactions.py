"""Compactions for tests: made of the live rows of a view by their indexes, as a planner would name them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from assistant.core.checkpoints import Checkpoint, Compaction
from assistant.core.messages import Message
from tests.support.store_home import StoreHome, count_tokens


def summary_message(text: str = "[CONTEXT SUMMARY] earlier") -> Message:
    return Message("system", text, metadata={"type": "compaction"})


def kept_copy(message: Message) -> Message:
    """A kept copy, outside of coverage."""
    origin = message.metadata.get("carried_from", message.id)
    return replace(message, id=None, metadata={**message.metadata, "carried_from": origin})


def live_messages(home: StoreHome, session: str = "main") -> list[Message]:
    """The rows that stand for the messages themselves."""
    shown = home.conversation.load_view(session).messages
    return [message for message in shown if message.id is not None and "carried_from" not in message.metadata]


def plan_compaction(home: StoreHome, first: int, last: int, *prefix: Message, session: str = "main") -> Compaction:
    """A compaction of the live rows `first` to `last` (inclusive indexes among them)."""
    of_it = live_messages(home, session)[first : last + 1]
    return Compaction(
        session,
        home.conversation.load_view(session).prefix_rev,
        "test",
        "drop",
        of_it[0].id or 0,
        of_it[-1].id or 0,
        len(of_it),
        prefix,
        "summary",
        sum(count_tokens(message) for message in of_it),
        sum(count_tokens(message) for message in prefix),
        {"identifiers": ["A-1"]},
    )


def plan_masking(home: StoreHome, *indexes: int, text: str = "[archived]", session: str = "main") -> Compaction:
    """The live rows at these indexes, shortened."""
    rows = live_messages(home, session)
    shorter = tuple(rows[index].with_content(text, archived=True) for index in indexes)
    return Compaction(
        session,
        home.conversation.load_view(session).prefix_rev,
        "test",
        "mask",
        shorter[0].id or 0,
        shorter[-1].id or 0,
        len(shorter),
        (),
        "",
        sum(count_tokens(rows[index]) for index in indexes),
        sum(count_tokens(row) for row in shorter),
        shortened=shorter,
    )


def plan_merge(home: StoreHome, absorbed: Sequence[Checkpoint], *prefix: Message, session: str = "main") -> Compaction:
    """Live checkpoints as one, nothing else leaving the view."""
    first, last = absorbed[0], absorbed[-1]
    return Compaction(
        session,
        home.conversation.load_view(session).prefix_rev,
        "test",
        "merge",
        first.from_message_id,
        last.to_message_id,
        0,
        prefix,
        "merged",
        10,
        5,
        absorbed_ids=tuple(one.id for one in absorbed),
        depth=2,
    )
