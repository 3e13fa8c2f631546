"""What a process that runs for months remembers stays as small as it was (F41): each of these forgets its oldest."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

from assistant.bridges.matrix.drafts import MatrixDrafts
from assistant.bridges.telegram.live_text import TelegramLiveText
from assistant.core.bridge_api import TurnEvent
from assistant.core.records import InboxItem, IncomingMessage
from assistant.runtime.runtime import TurnOutcomes
from assistant.runtime.turn import TurnOutcome
from assistant.web.guard import TokenAttempts

_MANY = 3000
_LONG = 900.0


def test_f41_of_how_turns_ended_the_newest_are_known() -> None:
    outcomes = TurnOutcomes()
    for number in range(_MANY):
        outcomes.add(TurnOutcome(f"t{number}", "main", "answered", "yes", model="m"))

    def model_of(turn: str) -> Any:
        incoming = IncomingMessage("kept", turn, "main", "owner", "owner", "owner", "hi")
        item = InboxItem(1, 1, incoming, "answered", datetime.now(UTC), turn)
        return outcomes.describe_result(item, "yes", [])["model"]

    assert (model_of("t0"), model_of(f"t{_MANY - 1}")) == (None, "m")
    assert sum(model_of(f"t{number}") is not None for number in range(_MANY)) < _MANY / 10


def test_f41_of_those_who_showed_wrong_tokens_the_newest_are_kept_apart() -> None:
    attempts = TokenAttempts(lambda: 0.0)
    for number in range(_MANY):
        for _ in range(10):
            attempts.record_wrong_token(f"caller {number}")
    assert (attempts.seconds_to_wait("caller 0"), attempts.seconds_to_wait(f"caller {_MANY - 1}") > 0) == (0, True)


async def test_f41_live_text_is_shown_at_so_many_places_of_telegram_side_by_side() -> None:
    typing: set[str] = set()

    async def type_(target: str) -> None:
        typing.add(target)

    async def draft(target: str, number: int, text: str) -> None:
        raise AssertionError("nothing was said")

    live = TelegramLiveText(type_, draft, typing_seconds=_LONG, draft_seconds=_LONG)
    for number in range(_MANY):
        live.show(TurnEvent("turn", "main", f"t{number}", {"state": "started"}), str(number), drafts=True)
    await asyncio.sleep(0)
    assert 0 < len(typing) < _MANY / 10
    await live.aclose()


async def test_f41_of_matrix_drafts_the_newest_are_known_as_its_own() -> None:
    """What is not known any more counts as left by an earlier process, and is replaced as such."""

    class Rooms:
        async def write(self, target: str, content: dict[str, Any], transaction: str) -> str:
            return f"${target}"

        async def erase(self, target: str, event: str) -> None:
            return None

        async def typing(self, target: str, seconds: float) -> None:
            return None

    rooms = Rooms()
    drafts = MatrixDrafts(rooms.write, rooms.erase, rooms.typing, 0)

    async def again(target: str) -> str:
        drafts.note_existing_drafts({target: f"${target}"})
        return await drafts.claim_for_answer(target, "key", answer=True)

    for number in range(_MANY):
        await again(f"!{number}")
    assert (await again("!0"), await again(f"!{_MANY - 1}")) == ("$!0", "")
