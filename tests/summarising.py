"""Material for summaries, and answers of models that summarise."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from assistant.messages import Message, Usage
from assistant.requests import Reply, StopReason
from assistant.tokens import Tier, TokenCounter
from sleep.summary import Material

COUNTER = TokenCounter(Tier("estimate", "", ""))
START = datetime(2026, 3, 4, 9, 0, tzinfo=UTC)
RECORD = (
    "The person plans a trip to Bergen with Anna and has booked the ferry. They want a cabin with a window, and the "
    "assistant is to look for a hotel near the harbour next."
)


def count(text: str) -> int:
    return COUNTER.count_text(text)


def spoken(*texts: str, first: int = 1) -> tuple[Message, ...]:
    """The person and the assistant in turn, a minute apart."""
    return tuple(
        Message("user" if n % 2 == 0 else "assistant", text, id=first + n, ts=START + timedelta(minutes=n))
        for n, text in enumerate(texts)
    )


def material(rows: Sequence[Message], budget: int = 2000, **more: Any) -> Material:
    return Material("main", "owner", tuple(rows), {}, budget, **more)


def long_talk(pairs: int = 30) -> tuple[Message, ...]:
    """Ordinary English, some of it numbered, about forty tokens a message."""
    texts: list[str] = []
    for n in range(pairs):
        texts.append(
            f"We talked about the trip again, and for day {n + 1} of it I would like to have a place that is near the "
            "water, because the children were tired the last time and it was not easy for them to walk so far."
        )
        texts.append(
            f"That is a good idea for day {n + 1}. There are some places by the harbour, and from there you can take "
            "the bus to the old town, which is not as full in the morning as it is later."
        )
    return spoken(*texts)


def answered(text: str = RECORD, memories: Sequence[str] = (), facts: str = "") -> str:
    """In the form that is asked for."""
    lines = "\n".join(f"- {memory}" for memory in memories)
    return f"<summary>\n{text}\n</summary>\n<memories>\n{lines}\n</memories>\n<facts>\n{facts}\n</facts>"


def reply(text: str, stop: StopReason = "end", **more: Any) -> Reply:
    return Reply(Message("assistant", text, **more), Usage(), stop)
