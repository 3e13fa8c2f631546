"""What the web API answers to whoever looks into a home, as pydantic models: the shapes that `/openapi.json` describes.
Times are UTC.

Words of people, models and tools are given as they were said; whoever shows them escapes them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import ConfigDict, Field

from assistant.core.checkpoints import Checkpoint
from assistant.core.memories import Memory, MemoryHit, MemoryList, MemoryState, SleepReport
from assistant.core.messages import Media
from assistant.core.records import LogRecord, SearchHit
from assistant.core.sessions import session_kind
from assistant.web.read_values import GenerationDetails
from assistant.web.schemas_chat import Answer


class Called(Answer):
    """A tool that the model asked for."""

    id: str
    name: str
    arguments: dict[str, Any]


class Attached(Answer):
    """A picture or file that came with a message; its bytes are not given here."""

    kind: str
    mime: str
    name: str
    size: int

    @classmethod
    def of(cls, media: Media) -> Attached:
        return cls(kind=media.kind, mime=media.mime, name=media.name, size=media.size)


class Said(Answer):
    """One record of a conversation. `kind` is "message", or what was noted of one ("edit", "undo", ...)."""

    id: int
    session: str
    generation: int
    at: datetime
    kind: str
    role: str
    text: str
    name: str | None
    bridge: str | None
    model: str | None
    turn: str | None
    tool_calls: list[Called]
    tool_call_id: str | None
    media: list[Attached]

    @classmethod
    def of(cls, record: LogRecord) -> Said:
        calls = [Called(id=call.id, name=call.name, arguments=dict(call.arguments)) for call in record.tool_calls]
        return cls(
            id=record.id,
            session=record.session,
            generation=record.generation,
            at=record.ts,
            kind=record.kind,
            role=record.role,
            text=record.content,
            name=record.name,
            bridge=record.bridge,
            model=record.model,
            turn=record.turn,
            tool_calls=calls,
            tool_call_id=record.tool_call_id,
            media=[Attached.of(one) for one in record.media],
        )


class Messages(Answer):
    """Oldest first."""

    messages: list[Said]


class Found(Answer):
    """A message that was found; `text` is an excerpt. A larger `score` is better, within one search."""

    id: int
    session: str
    generation: int
    at: datetime
    role: str
    text: str
    score: float

    @classmethod
    def of(cls, hit: SearchHit) -> Found:
        return cls(
            id=hit.message_id,
            session=hit.session,
            generation=hit.generation,
            at=hit.ts,
            role=hit.role,
            text=hit.text,
            score=hit.score,
        )


class Hits(Answer):
    """Best first."""

    hits: list[Found]


class Conversation(Answer):
    """One generation of a session: a conversation until it was reset. `ended` says why it ended."""

    session: str
    number: int
    kind: str
    current: bool
    started_at: datetime
    last_at: datetime | None
    ended_at: datetime | None
    ended: str | None
    messages: int
    view_messages: int
    view_tokens: int
    archive: str | None

    @classmethod
    def of(cls, one: GenerationDetails) -> Conversation:
        return cls(**_listed(one))


class WholeConversation(Conversation):
    """With the note it began with and its newest summary; "" where there is none."""

    handover: str
    summary: str

    @classmethod
    def of(cls, one: GenerationDetails) -> WholeConversation:
        return cls(**_listed(one), handover=one.handover, summary=one.summary)


class Conversations(Answer):
    """The session spoken in last first; of each the newest conversation first."""

    sessions: list[Conversation]


class Remembered(Answer):
    """A memory, or something noted that no memory was made of yet. `until`: it no longer holds since then, and
    `superseded_by` does in its place."""

    id: str
    kind: str
    text: str
    said_at: datetime
    until: datetime | None
    superseded_by: str | None
    importance: float

    @classmethod
    def of(cls, known: MemoryState) -> Remembered:
        return cls(**_remembered(known.memory, known.replaced_by))


class RecalledMemory(Remembered):
    """A memory that was found. `sources` are the messages it was learned from."""

    score: float
    sources: list[int]

    @classmethod
    def found(cls, one: MemoryHit) -> RecalledMemory:
        said = _remembered(one.memory, one.memory.superseded_by[:8])
        return cls(**said, score=one.score, sources=list(one.sources))


class Memories(Answer):
    """Newest first. `left_out` are older ones beyond the limit; `note` says why it may not be all, "" where it is."""

    memories: list[Remembered]
    left_out: int
    note: str

    @classmethod
    def of(cls, held: MemoryList, *, former: bool, limit: int) -> Memories:
        wanted = [one for one in reversed(held.memories) if former or one.memory.is_current]
        shown = [Remembered.of(one) for one in wanted[:limit]]
        return cls(memories=shown, left_out=max(0, len(wanted) - limit), note=held.note)


class RecalledMemories(Answer):
    """Best first."""

    memories: list[RecalledMemory]


class Slept(Answer):
    """One sleep. `phases` has by name what each read, wrote and spent; `text` tells it, Markdown."""

    id: int
    trigger: str
    state: str
    started_at: datetime
    ended_at: datetime | None
    phases: dict[str, dict[str, Any]]
    text: str

    @classmethod
    def of(cls, report: SleepReport, text: str) -> Slept:
        return cls(
            id=report.id,
            trigger=report.trigger,
            state=report.state,
            started_at=report.started_at,
            ended_at=report.ended_at,
            phases=report.phases,
            text=text,
        )


class Sleeps(Answer):
    """Newest first."""

    sleeps: list[Slept]


class Compacted(Answer):
    """One compaction: the messages from one id to another stand as a summary since."""

    id: int
    session: str
    at: datetime
    trigger: str
    tier: str
    state: str
    from_message_id: int
    to_message_id: int
    messages: int
    original_tokens: int
    summary_tokens: int
    cost_usd: float | None
    summary: str

    @classmethod
    def of(cls, one: Checkpoint) -> Compacted:
        return cls(
            id=one.id,
            session=one.session,
            at=one.created_at,
            trigger=one.trigger,
            tier=one.tier,
            state=one.state,
            from_message_id=one.from_message_id,
            to_message_id=one.to_message_id,
            messages=one.messages_compressed,
            original_tokens=one.original_tokens,
            summary_tokens=one.compressed_tokens,
            cost_usd=one.cost_usd,
            summary=one.summary,
        )


class Compactions(Answer):
    """Newest first."""

    compactions: list[Compacted]


class Sums(Answer):
    """What calls of models cost in US dollars; `unpriced_tokens` are of calls whose price is not known."""

    calls: int
    tokens: int
    usd: float
    unpriced_tokens: int


class Cost(Sums):
    """With what the tokens were for."""

    input: int
    output: int
    cache_read: int
    cache_write: int


class CostRow(Cost):
    """Of a day, a model, a kind or a session, whichever was asked for; calls without a session have an empty one."""

    day: str | None = None
    model: str | None = None
    kind: str | None = None
    session: str | None = None


class Split(Answer):
    """Calls that somebody waits for, and those that nobody does."""

    answering: Cost
    background: Cost


class Cap(Answer):
    """A limit of the budget, and how much of it is used, in US dollars or tokens. `setting` is its key in `[budget]`,
    `period` the day or month it is of."""

    setting: str
    period: str
    used: float
    most: float
    share: float
    used_up: bool


class StoppedRequest(Answer):
    """A request of the background that was sent again and again, and is not sent any more until then."""

    kind: str
    times: int
    until: datetime


class Costs(Answer):
    """What `assistant usage --json` prints: rows of the last `days`, and how the budget stands. Of each cap,
    `background_caps` has the part that work in the background may use; `forecast_usd` is what the month comes to if it
    goes on as it did."""

    by: str
    days: int
    rows: list[CostRow]
    split: Split
    today: Sums
    month: Sums
    forecast_usd: float | None
    caps: list[Cap]
    background_caps: list[Cap]
    stopped: list[StoppedRequest]


class Status(Answer):
    """How the assistant is; whatever else `assistant status --json` tells stands beside these."""

    model_config = ConfigDict(frozen=True, extra="allow")

    ok: bool = Field(description="False when anything needs a person.")
    problems: list[str] = Field(description="A line each, ending with what to do.")


def _listed(one: GenerationDetails) -> dict[str, Any]:
    known, info = one.generation, one.info
    return {
        "session": known.session,
        "number": known.number,
        "kind": session_kind(known.session),
        "current": info is not None,
        "started_at": known.started_at,
        "last_at": known.last_at,
        "ended_at": known.ended_at,
        "ended": known.end_reason or None,
        "messages": known.messages,
        "view_messages": info.view_messages if info else 0,
        "view_tokens": info.view_tokens if info else 0,
        "archive": one.archive or None,
    }


def _remembered(memory: Memory, by: str) -> dict[str, Any]:
    return {
        "id": memory.reference,
        "kind": memory.kind,
        "text": memory.text,
        "said_at": memory.said_at,
        "until": memory.until,
        "superseded_by": by or None,
        "importance": memory.importance,
    }
