"""The slash command about what did not get to where it was to go: the owner looks, and says what becomes of it.

What always holds: what may have arrived is sent once more on the owner's word alone (I8). What waits for another try
can be let go, so that nothing holds up for ever what came after it; what is being sent cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Protocol
from zoneinfo import ZoneInfo

from assistant.commands.bridging_report import stuck_lines
from assistant.core.bridge_api import UndeliveredItem
from assistant.core.errors import UsageError
from assistant.core.slash_commands import Command, CommandInvocation

DELIVERIES = "/deliveries [again ID... | drop ID...]"


class Deliveries(Protocol):
    """What did not go out (`assistant.store.script.outbox.Deliveries`)."""

    def stuck(self, *, limit: int = ...) -> list[UndeliveredItem]: ...
    def one(self, item_id: int) -> UndeliveredItem | None: ...
    def again(self, item_id: int, now: datetime) -> bool: ...
    def drop(self, item_id: int, now: datetime) -> bool: ...


class DeliveryCommands:
    def __init__(self, deliveries: Deliveries, try_now: Callable[[str], None], zone: ZoneInfo) -> None:
        """`try_now` is told the bridge that has something to send at once."""
        self._deliveries = deliveries
        self._try_now = try_now
        self._zone = zone

    def entries(self) -> Mapping[str, Command]:
        text = "what did not arrive, or may not have; send it once more, or let it go"
        return {"deliveries": Command(DELIVERIES, text, self._run)}

    async def _run(self, call: CommandInvocation) -> str:
        match call.rest.split():
            case [] | ["list"]:
                return "\n".join(stuck_lines(self._deliveries.stuck(), self._zone))
            case ["again", *ids] if ids:
                found = self._found(ids)
                if waits := next((one for one in found if one.goes_by_itself), None):
                    raise UsageError(
                        f"Delivery #{waits.id} is tried again by itself. Nothing was changed; "
                        f"`/deliveries drop {waits.id}` lets it go."
                    )
                self._decide(found, self._deliveries.again, call.now)
                return f"Sent once more: {_numbers(found)}. `/deliveries` shows whether that failed again."
            case ["drop", *ids] if ids:
                found = self._found(ids)
                self._decide(found, self._deliveries.drop, call.now)
                return f"Let go: {_numbers(found)}. The conversation keeps what was said."
        raise UsageError(f"Use {DELIVERIES}. Nothing was changed.")

    def _decide(self, found: Sequence[UndeliveredItem], decide: Callable[[int, datetime], bool], now: datetime) -> None:
        for one in found:
            decide(one.id, now)
        for bridge in {one.bridge for one in found}:
            self._try_now(bridge)

    def _found(self, ids: Sequence[str]) -> list[UndeliveredItem]:
        """All of them, or `UsageError`."""
        found = []
        for text in ids:
            number = text.removeprefix("#")
            one = self._deliveries.one(int(number)) if number.isdecimal() and len(number) < 19 else None
            if one is None:
                raise UsageError(
                    f"Delivery {text} is not stuck. Nothing was changed; `/deliveries` lists those that are."
                )
            if one.goes_by_itself and not one.error:
                raise UsageError(f"Delivery #{one.id} is on its way. Nothing was changed.")
            found.append(one)
        return found


def _numbers(found: Sequence[UndeliveredItem]) -> str:
    return ", ".join(f"#{one.id}" for one in found)
