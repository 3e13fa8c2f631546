"""Bridges and stuck deliveries as the owner reads them: lines of Markdown, and plain JSON. Pure.

What always holds: each line that says something is wrong ends with what to do. Of what was meant for others than the
owner no words are shown, only for whom it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from assistant.core.bridge_api import BridgeStatus, UndeliveredItem
from assistant.core.sessions import OWNER_SCOPE
from assistant.core.text import pluralize, preview_line

NO_BRIDGE = "No bridge is set up. `assistant bridge add telegram` or `assistant bridge add matrix` sets one up."
NOT_SET_UP = "{name} is not set up. Nothing was done; `assistant bridge add {name}` sets it up."
NOTHING_STUCK = "Nothing is stuck: what went out arrived, or is on its way."

_DONE_BY_ITSELF = "It is tried again by itself; `assistant bridge test {name}` asks now."
_TO_DO = {
    "paused": "`assistant bridge resume {name}` goes on.",
    "failing": _DONE_BY_ITSELF,
    "off": "`assistant run`, or `assistant service start`, connects it.",
}
_MEANS = {
    "ambiguous": "may or may not have arrived",
    "failed": "was refused",
    "withheld": "was kept back",
}


def standing_of(name: str, found: Mapping[str, Any], account: str = "") -> BridgeStatus:
    """What the delivery's status says of one bridge."""
    since = found.get("since")
    return BridgeStatus(
        name, found["state"], account, datetime.fromisoformat(since) if since else None, found.get("waiting", 0),
        found["error"],
    )  # fmt: skip


def standing_json(standing: BridgeStatus) -> dict[str, Any]:
    return {
        "name": standing.name, "state": standing.state, "account": standing.account,
        "since": standing.since.isoformat() if standing.since else None, "waiting": standing.waiting,
        "error": standing.error, "todo": to_do(standing),
    }  # fmt: skip


def standing_from_json(found: Mapping[str, Any]) -> BridgeStatus:
    since = datetime.fromisoformat(found["since"]) if found["since"] else None
    return BridgeStatus(found["name"], found["state"], found["account"], since, found["waiting"], found["error"])


def to_do(standing: BridgeStatus) -> str:
    """What a person may do about it; "" where nothing is needed."""
    if standing.state == "connected" and standing.error:
        return _DONE_BY_ITSELF.format(name=standing.name)
    return _TO_DO.get(standing.state, "").format(name=standing.name)


def bridge_lines(standings: Sequence[BridgeStatus], zone: ZoneInfo) -> list[str]:
    return [f"- {_bridge_line(one, zone)}" for one in standings] or [NO_BRIDGE]


def stuck_lines(stuck: Sequence[UndeliveredItem], zone: ZoneInfo) -> list[str]:
    if not stuck:
        return [NOTHING_STUCK]
    lines = [f"- {_stuck_line(one, zone)}" for one in stuck]
    return [*lines, "", "`/deliveries again ID` sends one once more, `/deliveries drop ID` lets it go."]


def stuck_json(one: UndeliveredItem) -> dict[str, Any]:
    return {
        "id": one.id, "state": one.state, "bridge": one.bridge, "session": one.session,
        "at": one.created_at.isoformat(), "since": one.updated_at.isoformat(), "parts_sent": one.parts_sent,
        "attempts": one.attempts, "error": one.error, "text": excerpt(one),
    }  # fmt: skip


def excerpt(one: UndeliveredItem) -> str:
    """The beginning of what it says, on one line; of words for others only for whom they are."""
    if one.scope != OWNER_SCOPE:
        return f"(for {one.session})"
    return preview_line(one.body)


def meaning(one: UndeliveredItem) -> str:
    """Its state, in words."""
    if one.goes_by_itself:
        return f"is tried again by itself, after {pluralize(one.attempts, 'try', 'tries')}"
    return _MEANS.get(one.state, one.state)


def _bridge_line(one: BridgeStatus, zone: ZoneInfo) -> str:
    account = f" as {one.account}" if one.account else ""
    since = f" since {one.since.astimezone(zone):%Y-%m-%d %H:%M}" if one.since else ""
    waiting = f", {pluralize(one.waiting, 'delivery', 'deliveries')} waiting" if one.waiting else ""
    told = " ".join(text for text in (_sentence(one.error), to_do(one)) if text)
    return f"{one.name}{account}: {one.state}{since}{waiting}." + (f" {told}" if told else "")


def _stuck_line(one: UndeliveredItem, zone: ZoneInfo) -> str:
    at = f"{one.created_at.astimezone(zone):%Y-%m-%d %H:%M}"
    why = f" ({one.error.rstrip('.')})" if one.error else ""
    return f"#{one.id} to {one.bridge}, {at}: {meaning(one)}{why}. `{excerpt(one)}`"


def _sentence(text: str) -> str:
    return text if not text or text.endswith((".", "!", "?", "…")) else f"{text}."
