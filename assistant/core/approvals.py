"""Approval requests: effects that wait for the owner's decision.

An approved effect runs at most once per key, with exactly the arguments that were shown; its outcome is recorded, or
recorded as unknown. A standing permission covers only the calls that match the tool's pattern, until it expires or the
owner revokes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, tzinfo
from typing import Any, Literal

from assistant.core.calendar import format_moment, is_valid_at
from assistant.core.dataclass import dataclass
from assistant.core.messages import ToolCall
from assistant.core.text import fold_text

ApprovalState = Literal["pending", "approved", "done", "failed", "uncertain", "declined", "lapsed", "refused"]
"""`pending`: not decided; `approved`: being executed, ends as `done`, `failed` or `uncertain`; `refused`: never shown
to the owner (a guest's or room's session, or too many pending requests)."""

# Prefix of the tool result of a call that needs approval and was not executed.
NOT_DONE = "[not done]"

Answer = Literal["yes", "no", "always"]
"""`always`: approve, and allow similar calls for some time."""

_ANSWERS: dict[Answer, tuple[str, ...]] = {
    "yes": ("yes", "y", "yes please", "ja", "oui", "si", "sí"),
    "no": ("no", "n", "no thanks", "nein", "non"),
    "always": ("always", "yes always", "immer", "ja immer", "toujours", "oui toujours", "siempre", "si siempre"),
}
_LONGEST_ANSWER = 20


@dataclass(frozen=True, slots=True)
class ApprovalPattern:
    """A set of calls of a tool that one permission can cover: `key` identifies it, `allows` describes it."""

    key: str
    allows: str


@dataclass(frozen=True, slots=True)
class ProposedEffect:
    """An effect that the model proposed and the user did not ask for.

    - `key`: idempotency key of the effect.
    - `effect`: what will happen, described for people.
    - `bridge`, `target`: where the question is sent.
    - `pattern`, `allows`: as in `ApprovalPattern`; "" where every call needs its own approval.
    """

    key: str
    session: str
    generation: int
    scope: str
    turn: str
    call_id: str
    tool: str
    arguments: Mapping[str, Any]
    effect: str
    bridge: str
    target: str
    created_at: datetime
    expires_at: datetime
    pattern: str
    allows: str

    @property
    def call(self) -> ToolCall:
        return ToolCall(self.call_id, self.tool, self.arguments)


@dataclass(frozen=True, slots=True)
class Approval(ProposedEffect):
    """A stored approval request.

    - `decided_by`: the turn whose message answered it; "" for a command.
    - `allowed_until`: calls that match its pattern run without a question until then; `uses` counts them.
    """

    id: int
    state: ApprovalState
    result: str
    decided_by: str
    decided_at: datetime | None
    ended_at: datetime | None
    allowed_until: datetime | None
    uses: int
    used_at: datetime | None

    def waits_at(self, now: datetime) -> bool:
        """Return whether it may be decided now."""
        return self.state == "pending" and is_valid_at(now, self.created_at, self.expires_at)


def read_answer(text: str) -> Answer | None:
    """Return the answer if the whole message is one, else None."""
    if len(text) > _LONGEST_ANSWER:
        return None
    word = fold_text(text.strip().rstrip(".!").replace(",", ""))
    return next((answer for answer, words in _ANSWERS.items() if word in map(fold_text, words)), None)


APPROVAL_STATE_WORDS: dict[ApprovalState, str] = {
    "approved": "is being carried out",
    "done": "is done already",
    "failed": "was tried and failed",
    "uncertain": "was interrupted",
    "declined": "was declined",
    "lapsed": "was not answered in time, so it was not done",
}


def describe_outcome(approval: Approval, zone: tzinfo) -> str:
    """Describe the outcome of a request, and what it allows from now on, as Markdown."""
    outcome = _describe_end(approval)
    if approval.allowed_until is None:
        return outcome
    until = format_moment(approval.allowed_until, zone)
    return f"{outcome}\n\nAllowed until {until}: {approval.allows}. `/approvals revoke {approval.id}` takes it back."


def _describe_end(approval: Approval) -> str:
    effect, result = approval.effect, approval.result.strip()
    match approval.state:
        case "done":
            return f"Done: {effect}.\n\n{result}"
        case "failed":
            return f"Not done: {effect}. {result}"
        case "uncertain":
            return f"It is not known whether this was done: {effect}; {result}."
        case "declined":
            return f"Dropped: {effect}. Nothing was changed."
    return f"{effect[:1].upper()}{effect[1:]}: {APPROVAL_STATE_WORDS.get(approval.state, 'waits for your answer')}."
