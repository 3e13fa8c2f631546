"""How a message that a schedule says for its owner is told from one that the owner typed. Pure."""

from __future__ import annotations

from assistant.core.expressions import expression
from assistant.core.records import Incoming, Record

SCHEDULE, BY_HAND, SENDER = "schedule:", "by hand ", "schedule "
_HEADING = expression(r"\A\[Scheduled prompt .+, (?:run by hand|due .+)\]\n")


def without_heading(content: str) -> str:
    """What a schedule asks, without what says that it is one; what anybody else said, as it is."""
    return _HEADING.sub("", content, count=1)


def is_by_schedule(said: Incoming | Record) -> bool:
    """Whether a schedule said it, at its time or by hand."""
    return (said.sender or "").startswith(SENDER)


def is_scheduled(incoming: Incoming) -> bool:
    """Whether a schedule said it at its time, so that nobody waits for the answer."""
    return incoming.external_id.startswith(SCHEDULE) and BY_HAND not in incoming.external_id
