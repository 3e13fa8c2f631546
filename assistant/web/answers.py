"""What the web API answers to whoever talks, as pydantic models: the shapes that `/openapi.json` describes."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from assistant.core.records import InboxReceipt


class Answer(BaseModel):
    model_config = ConfigDict(frozen=True)


class Failure(Answer):
    """What went wrong, in one line, and what was kept."""

    error: str


class Kept(Answer):
    """The message is durable. `duplicate`: it was before, under the same `external_id`."""

    inbox_id: int
    message_id: int
    duplicate: bool

    @classmethod
    def of(cls, accepted: InboxReceipt) -> Kept:
        return cls(inbox_id=accepted.inbox_id, message_id=accepted.message_id, duplicate=accepted.duplicate)


class Acknowledged(Answer):
    """Whether the delivery waited for that; it does not where it was confirmed before, or nobody was given it now."""

    acknowledged: bool


class Told(Answer):
    """What a command answered, Markdown."""

    text: str


class Stopped(Answer):
    """Whether a turn ran."""

    stopped: bool


class Billed(Answer):
    """What one answer cost; no `cost_usd` where no price is known."""

    input: int
    output: int
    cache_read: int
    cache_write: int
    cost_usd: float | None


class Result(Answer):
    """What became of a message: accepted, running, answered, failed or superseded."""

    state: str
    reply: str
    error: str
    exit_code: int
    session: str
    turn: str | None
    model: str | None
    usage: Billed | None
    pressure: float | None
