"""One question and its answer, for scripts: what `chat -m` and piped lines are made of.

The answer counts as given when it stands on standard output, so its delivery is confirmed only after `show` returned.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from assistant.cli.link import Event, Link, LinkLost
from assistant.core.errors import AssistantError, StoreError
from assistant.core.records import InboxReceipt

_ENDS = ("answered", "failed", "superseded")
_NO_USAGE: Mapping[str, Any] = {"input": 0, "output": 0, "cache_read": 0, "cache_write": 0, "cost_usd": None}
# The delivery follows the end of a turn at once; where another terminal's message led that turn, none comes here.
_DELIVERED_WITHIN = 2.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one message; `exit_code` as on the command line, `error` in words."""

    reply: str
    error: str
    exit_code: int
    session: str
    turn: str | None
    model: str | None
    usage: Mapping[str, Any] = field(default_factory=lambda: _NO_USAGE)
    pressure: float | None = None

    def as_json(self) -> dict[str, Any]:
        """The keys of `chat --json`; `error` only where there is one."""
        keys = ("reply", "session", "turn", "model", "usage", "pressure")
        return {key: getattr(self, key) for key in keys} | ({"error": self.error} if self.error else {})


def new_external_id() -> str:
    return str(uuid.uuid4())


async def ask(link: Link, text: str, session: str, external_id: str, show: Callable[[Answer], None]) -> Answer:
    """Say `text`, wait until its turn has ended, `show` the answer, then confirm its delivery.

    Cancelled, it stops the turn. Raises what a `Link` raises, and `StoreError` where the home cannot be written."""
    accepted = await link.say(text, external_id, session)
    try:
        async with aclosing(link.events(session, accepted.inbox_id)) as events:
            result, key = await _until_ended(link, events, accepted)
            answer = _answer(result)
            show(answer)
            with contextlib.suppress(LinkLost):
                key = key or await _late_key(events)
                if key:
                    await link.shown(key)
        return answer
    except asyncio.CancelledError:
        await _give_up(link, accepted)
        raise


async def _give_up(link: Link, accepted: InboxReceipt) -> None:
    """Stop the turn of this message, and of no other."""
    with contextlib.suppress(AssistantError):
        result = await link.result(accepted.inbox_id)
        if result["state"] == "running":
            await link.stop(result["session"])


async def _until_ended(
    link: Link, events: AsyncGenerator[Event], accepted: InboxReceipt
) -> tuple[Mapping[str, Any], str | None]:
    async for name, data in events:
        if name == "notice" and data.get("disk"):
            # Nobody sits here who could make room: the message is kept, and whoever asked is told (not left waiting).
            raise StoreError(str(data["text"]))
        if name in ("hello", "deliver") or (name == "turn" and data["state"] != "started"):
            result = await link.result(accepted.inbox_id)
            if result["state"] in _ENDS:
                return result, str(data["key"]) if name == "deliver" else None
    raise LinkLost()


async def _late_key(events: AsyncGenerator[Event]) -> str | None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_DELIVERED_WITHIN):
            async for name, data in events:
                if name == "deliver":
                    return str(data["key"])
    return None


def _answer(result: Mapping[str, Any]) -> Answer:
    return Answer(
        reply=result["reply"], error=result["error"], exit_code=result["exit_code"], session=result["session"],
        turn=result["turn"], model=result["model"], usage=result["usage"] or _NO_USAGE, pressure=result["pressure"],
    )  # fmt: skip
