"""Effects that wait for the owner's word.

What always holds: an effect is carried out under its key, with exactly the arguments that were shown; whether it was is
known, or said to be unknown. What an approval allows beyond its own call is what its tool says of it and no more, for a
time, until the owner takes it back.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, tzinfo
from typing import Any, Literal

from assistant.core.calendar import format_moment
from assistant.core.dataclass import dataclass
from assistant.core.messages import ToolCall
from assistant.core.text import fold_text

ApprovalState = Literal["pending", "approved", "done", "failed", "uncertain", "declined", "lapsed", "refused"]
"""`pending` waits; `approved` is being carried out, and then `done`, `failed` or `uncertain`; `refused` was never
asked: in the conversation of a guest or room, or where too many wait."""

# What a call that needs the person's word is answered with begins with this.
NOT_DONE = "[not done]"

Answer = Literal["yes", "no", "always"]
"""`always`: yes, and what is like it is allowed for some time."""

_ANSWERS: dict[Answer, tuple[str, ...]] = {
    "yes": ("yes", "y", "yes please", "ja", "oui", "si", "sí"),
    "no": ("no", "n", "no thanks", "nein", "non"),
    "always": ("always", "yes always", "immer", "ja immer", "toujours", "oui toujours", "siempre", "si siempre"),
}
_LONGEST_ANSWER = 20


@dataclass(frozen=True, slots=True)
class ApprovalPattern:
    """What of a tool's calls may be allowed at once: `key` says it exactly, `allows` as a person reads it."""

    key: str
    allows: str


@dataclass(frozen=True, slots=True)
class ProposedEffect:
    """What a model wanted to do and nobody asked for.

    - `key`: of the effect: carried out twice under it, it happens once.
    - `effect`: what will happen, as a person reads it.
    - `bridge`, `target`: where it is asked.
    - `pattern`, `allows`: what may be allowed with it, as in `ApprovalPattern`; "" where each call is asked about.
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
    """A proposed effect as it is stored. `decided_by`: the turn whose message answered it; "" for a command.
    `allowed_until`: calls of its pattern are done without a question until then; `uses` counts them."""

    id: int
    state: ApprovalState
    result: str
    decided_by: str
    decided_at: datetime | None
    ended_at: datetime | None
    allowed_until: datetime | None
    uses: int
    used_at: datetime | None


def read_answer(text: str) -> Answer | None:
    """The answer that a message is; None where it is anything else."""
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
    """What became of one, and what it allows from now on, as Markdown."""
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
