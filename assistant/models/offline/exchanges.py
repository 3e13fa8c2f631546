"""Two things that change places: "swap yoga and the vet", "inverse le yoga et le véto". Pure; as `plans` tells.

What always holds: only what the person has changes places, and only two things of one kind that each come once.
"""

from __future__ import annotations

from collections.abc import Sequence

from assistant.core.text import lazy_regex
from assistant.models.offline.cues import fold
from assistant.models.offline.matching import ListedItem, each_named
from assistant.models.offline.plans import MOMENT, Plan, call_tool, describe_todos

_EXCHANGES = lazy_regex(
    r"^(?:please |bitte |can you |kannst du |tu peux |puedes )*(?:swap|switch|exchange|(?:ver)?tausch\w*|echange\w*"
    r"|inverse\w*|intervert\w*|permute\w*|intercambi\w*|invierte)\b"
    r"(?P<pair>[^?]+?\b(?:and|with|und|mit|et|avec|y|con)\b[^?]+)"
)


def pair_to_exchange(text: str, items: Sequence[ListedItem]) -> tuple[ListedItem, ListedItem] | None:
    """The two things whose times a sentence wants exchanged; None where it names no such pair."""
    match = _EXCHANGES.match(fold(text))
    if match is None:
        return None
    pair = match["pair"].replace(" with ", " and ").replace(" avec ", " et ").replace(" con ", " y ")
    once = [item for item in items if item.due and not item.done and not item.often]
    named = each_named(pair.replace(" mit ", " und "), once)
    return (named[0], named[1]) if len(named) == 2 and named[0].kind == named[1].kind else None


def wants_exchange(text: str) -> bool:
    """Whether a sentence has the form of an order that two things change places."""
    return "?" not in text and _EXCHANGES.match(fold(text)) is not None


def exchange(one: ListedItem, other: ListedItem) -> Plan:
    """Each of the two comes when the other was to come."""
    assert one.due is not None
    assert other.due is not None
    answers = []
    for item, due in ((one, other.due), (other, one.due)):
        if item.kind == "reminder":
            answers.append((yield from call_tool("change_reminder", id=item.id, when=due.strftime(MOMENT))))
        else:
            day = due.strftime("%Y-%m-%d")
            answers.append(
                describe_todos((yield from call_tool("manage_todo_list", action="edit", ids=[item.id], due=day)))
            )
    return "\n".join(answers)
