"""What the web API answers to those who read a data folder, as pydantic models: the shapes that `/openapi.json`
describes. Each is made of the value of `assistant.core` whose attributes it names. Times are UTC.

Words of people, models and tools are given as they were said; escape them where you show them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import AliasPath, BeforeValidator, ConfigDict, Field

from assistant.commands.sessions import session_item
from assistant.core.memories import SleepReport
from assistant.core.records import LogRecord
from assistant.sessions.listing import SessionRow
from assistant.web.schemas_chat import Answer


def as_html(text: str) -> str:
    from assistant.web.markdown_html import render_html  # only for the page

    return render_html(text)


class ReadAnswer(Answer):
    model_config = ConfigDict(frozen=True, from_attributes=True)


class LoggedToolCall(ReadAnswer):
    """A tool that the model called."""

    id: str
    name: str
    arguments: dict[str, Any]


class LoggedFile(ReadAnswer):
    """A picture or file that came with a message; `GET /v1/history/{message_id}/files/{number}` gives its bytes."""

    kind: str
    mime: str
    name: str
    size: int


class LoggedMessage(ReadAnswer):
    """One record of a conversation. `kind` is "message", or what was noted of one ("edit", "undo", ...)."""

    id: int
    session: str
    generation: int
    at: datetime = Field(validation_alias="ts")
    kind: str
    role: str
    text: str = Field(validation_alias="content")
    name: str | None
    bridge: str | None
    model: str | None
    turn: str | None
    tool_calls: list[LoggedToolCall]
    tool_call_id: str | None
    media: list[LoggedFile]
    # Whether `GET /v1/history/{id}/spoken` has a recording of it.
    spoken: bool = False
    html: str | None = None

    def with_html(self) -> LoggedMessage:
        """What people and the model said, also as HTML that is safe to show."""
        return self.model_copy(update={"html": as_html(self.text)})


class MessagePage(ReadAnswer):
    """Oldest first."""

    messages: list[LoggedMessage]

    @classmethod
    def from_records(cls, records: Sequence[LogRecord], spoken: Collection[int], *, html: bool) -> MessagePage:
        """`spoken` has the ids of answers that were spoken."""
        page = cls.model_validate({"messages": records})
        marked = [message.model_copy(update={"spoken": message.id in spoken}) for message in page.messages]
        return cls(messages=[message.with_html() for message in marked] if html else marked)


class FoundMessage(ReadAnswer):
    """A message that was found; `text` is an excerpt. A larger `score` is better, within one search."""

    id: int = Field(validation_alias="message_id")
    session: str
    generation: int
    at: datetime = Field(validation_alias="ts")
    role: str
    text: str
    score: float


class FoundMessages(ReadAnswer):
    """Best first."""

    hits: list[FoundMessage]


class ConversationEntry(ReadAnswer):
    """One generation of a session: a conversation until it was reset. `ended` says why it ended."""

    session: str
    number: int = Field(validation_alias="generation")
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
    def from_row(cls, row: SessionRow, **notes: str) -> Self:
        return cls.model_validate({**session_item(row).model_dump(), "current": row.info is not None, **notes})


class ConversationDetails(ConversationEntry):
    """With the note it began with and its newest summary; "" where there is none."""

    handover: str
    summary: str


class ConversationList(ReadAnswer):
    """The session spoken in last first; of each the newest conversation first."""

    sessions: list[ConversationEntry]


class MemoryEntry(ReadAnswer):
    """A memory, or something noted that no memory was made of yet. `until`: it is no longer true since then, and
    `superseded_by` is in its place."""

    id: str = Field(validation_alias=AliasPath("memory", "reference"))
    kind: str = Field(validation_alias=AliasPath("memory", "kind"))
    text: str = Field(validation_alias=AliasPath("memory", "text"))
    said_at: datetime = Field(validation_alias=AliasPath("memory", "said_at"))
    until: datetime | None = Field(validation_alias=AliasPath("memory", "until"))
    superseded_by: Annotated[str | None, BeforeValidator(lambda text: text or None)] = Field(
        validation_alias="replaced_by"
    )
    importance: float = Field(validation_alias=AliasPath("memory", "importance"))


class FoundMemory(MemoryEntry):
    """A memory that was found. `sources` are the messages it was learned from."""

    superseded_by: Annotated[str | None, BeforeValidator(lambda memory: memory[:8] or None)] = Field(
        validation_alias=AliasPath("memory", "superseded_by")
    )
    score: float
    sources: list[int]


class MemoryEntries(ReadAnswer):
    """Newest first. `more`: whether there are older ones; `note` says why it may not be all, "" where it is."""

    memories: list[MemoryEntry]
    more: bool
    note: str


class FoundMemories(ReadAnswer):
    """Best first."""

    memories: list[FoundMemory]


class SleepEntry(ReadAnswer):
    """One sleep. `phases` has by name what each read, wrote and spent; `text` is its report, Markdown."""

    id: int
    trigger: str
    state: str
    started_at: datetime
    ended_at: datetime | None
    phases: dict[str, dict[str, Any]]
    text: str
    html: str | None = None

    @classmethod
    def from_report(cls, report: SleepReport, text: str, *, html: bool) -> SleepEntry:
        return cls(**asdict(report), text=text, html=as_html(text) if html else None)


class SleepList(ReadAnswer):
    """Newest first."""

    sleeps: list[SleepEntry]


class CompactionEntry(ReadAnswer):
    """One compaction: since then a summary is in the place of the messages from one id to another."""

    id: int
    session: str
    at: datetime = Field(validation_alias="created_at")
    trigger: str
    tier: str
    state: str
    from_message_id: int
    to_message_id: int
    messages: int = Field(validation_alias="messages_compressed")
    original_tokens: int
    summary_tokens: int = Field(validation_alias="compressed_tokens")
    cost_usd: float | None
    summary: str


class CompactionList(ReadAnswer):
    """Newest first."""

    compactions: list[CompactionEntry]
