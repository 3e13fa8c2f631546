"""In which order a client of the OpenAI-compatible API reads what arrives while it waits for its answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from assistant.web.completions import _Follower

Event = tuple[str, Mapping[str, Any]]


class Listed:
    """What happens, as a list: the events of a terminal, the result, and what was confirmed."""

    def __init__(self, *events: Event) -> None:
        self.listed = events
        self.confirmed: list[str] = []

    async def events(self, idle_seconds: float) -> AsyncIterator[Event]:
        for event in self.listed:
            yield event

    async def result(self, inbox_id: int) -> Mapping[str, Any]:
        return {"turn": "t", "state": "answered", "reply": "One two.", "error": ""}

    def acknowledge(self, key: str) -> None:
        self.confirmed.append(key)


def delivery(key: str, body: str, inbox_id: int | None) -> Event:
    return "deliver", {"key": key, "body": body, "inbox_id": inbox_id, "waited": False}


async def follow(listed: Listed) -> str:
    async def is_gone() -> bool:
        return False

    follower = _Follower(listed, listed, 7, is_gone)  # type: ignore[arg-type]
    return "".join([text async for text in follower.follow(listed)])  # type: ignore[arg-type]


async def test_what_comes_in_the_middle_of_an_answer_is_quoted_after_it() -> None:
    first = "delta", {"turn": "t", "text": "One "}
    answer = delivery("reply:t", "One two.", 7)
    listed = Listed(first, delivery("due", "Water the plants.", None), answer)
    assert await follow(listed) == "One two.\n\n> Water the plants."
    assert listed.confirmed == ["reply:t", "due"]


async def test_what_comes_before_an_answer_is_quoted_before_it() -> None:
    answer = delivery("reply:t", "One two.", 7)
    listed = Listed(delivery("due", "Water the plants.", None), answer)
    assert await follow(listed) == "> Water the plants.\n\nOne two."
