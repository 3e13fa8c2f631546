"""Which message an answer takes the place of, where an earlier process left one."""

from __future__ import annotations

from typing import Any

from assistant.bridges.matrix.drafts import MatrixDrafts


class RoomDrafts:
    async def write(self, target: str, content: dict[str, Any], transaction: str) -> str:
        return "$new"

    async def erase(self, target: str, event: str) -> None:
        return None

    async def typing(self, target: str, seconds: float) -> None:
        return None


async def test_what_was_left_is_replaced_once() -> None:
    rooms = RoomDrafts()
    drafts = MatrixDrafts(rooms.write, rooms.erase, rooms.typing, 0)
    drafts.note_existing_drafts({"!a": "$1"})
    assert await drafts.claim_for_answer("!a", "notice:1", answer=False) == "$1"
    # The server has not told of the answer yet when other news come.
    drafts.note_existing_drafts({"!a": "$1"})
    assert await drafts.claim_for_answer("!a", "reply:2", answer=True) == ""


async def test_what_could_not_be_replaced_is_replaced_by_the_next_try() -> None:
    rooms = RoomDrafts()
    drafts = MatrixDrafts(rooms.write, rooms.erase, rooms.typing, 0)
    drafts.note_existing_drafts({"!a": "$1"})
    drafts.release_claim("!a", await drafts.claim_for_answer("!a", "reply:1", answer=True))
    assert await drafts.claim_for_answer("!b", "reply:1", answer=True) == ""
    assert await drafts.claim_for_answer("!a", "reply:1", answer=True) == "$1"
