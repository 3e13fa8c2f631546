"""What the stores keep and return: incoming and outgoing messages, log records, turns, views, search hits, integrity
reports. Frozen values; all times are aware and in UTC.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from assistant.core.dataclass import dataclass
from assistant.core.messages import LogByteRange, Media, Message, RecordKind, Role, ToolCall, Trust
from assistant.core.text import lazy_regex


@dataclass(frozen=True, slots=True)
class IncomingMessage:
    """A message as a bridge hands it over. The same pair of bridge and external_id is accepted once."""

    bridge: str
    external_id: str  # the network's own id of it
    session: str
    scope: str
    sender: str
    trust: Trust
    content: str
    media: tuple[Media, ...] = ()
    name: str | None = None
    target: str = ""  # where replies go on that bridge; opaque to everyone else
    position: str = ""  # where the bridge continues receiving after this message, if it says so


@dataclass(frozen=True, slots=True)
class InboxReceipt:
    """The inbox has the message, durably."""

    inbox_id: int
    message_id: int
    duplicate: bool = False  # the inbox had it before
    conflicts: bool = False  # what the inbox had, and keeps, is another message: this one was not kept


@dataclass(frozen=True, slots=True)
class Button:
    """What a person may press instead of typing `command`, which the text names too."""

    label: str
    command: str


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """One reply or notice to deliver: one key, one body, for ever (I8)."""

    key: str
    session: str
    scope: str
    bridge: str
    target: str
    body: str
    kind: Literal["reply", "notice"] = "reply"
    message_id: int | None = None
    inbox_id: int | None = None
    buttons: tuple[Button, ...] = ()
    media: tuple[Media, ...] = ()  # sent after the text


def is_answer_key(key: str) -> bool:
    """Whether a delivery of a turn is its answer, or says why there is none: others are notices beside it."""
    return key.startswith(("reply:", "notice:"))


OutboxState = Literal["pending", "sending", "sent", "ambiguous", "failed", "withheld", "dropped"]


@dataclass(frozen=True, slots=True)
class OutboxItem:
    """A message on its way out."""

    id: int
    outgoing: OutgoingMessage
    state: OutboxState
    attempts: int
    created_at: datetime
    parts_sent: int = 0  # how many of its parts the network has
    parts: tuple[str, ...] = ()  # the texts of a long one, once its first send was tried
    tried_at: datetime | None = None  # while it may have arrived: when it, or its next part, was first sent


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One line of the message log. The header is every field but the six that `commit` covers (`store/log/format`)."""

    id: int
    seq: int
    ts: datetime
    session: str
    generation: int
    scope: str
    kind: RecordKind
    role: Role
    content: str
    commit: str
    prev: str
    salt: str = ""
    name: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    media: tuple[Media, ...] = ()
    thinking: tuple[Mapping[str, Any], ...] = ()
    bridge: str | None = None
    sender: str | None = None
    trust: Trust = "owner"
    model: str | None = None
    turn: str | None = None
    refs: tuple[int, ...] = ()  # the message ids that an edit, delete, undo or redaction is about
    external_id: str | None = None  # what the program calls it that it was imported from
    span: LogByteRange = field(default=LogByteRange(0, 0))

    def to_message(self, metadata: Mapping[str, Any] | None = None) -> Message:
        """The record as a message, whole, with its turn and `metadata`."""
        turn = {"turn": self.turn} if self.turn else {}
        return Message(
            self.role,
            self.content,
            self.id,
            self.ts,
            self.tool_calls,
            self.tool_call_id,
            self.name,
            self.media,
            self.thinking,
            self.model,
            {**turn, **metadata} if metadata else turn,
        )


@dataclass(frozen=True, slots=True)
class LogLocation:
    """Where a record is, for references."""

    session: str
    path: str  # relative to the data folder
    span: LogByteRange


InboxState = Literal["accepted", "running", "answered", "failed", "superseded"]


@dataclass(frozen=True, slots=True)
class InboxItem:
    id: int
    message_id: int
    incoming: IncomingMessage
    state: InboxState
    received_at: datetime
    turn: str | None = None


TurnState = Literal["running", "answered", "failed", "aborted"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One user request until its answer."""

    id: str
    session: str
    generation: int
    scope: str
    volatile: str  # its volatile block (see `docs/glossary.md`)
    state: TurnState
    started_at: datetime
    items: tuple[InboxItem, ...] = ()
    untrusted: tuple[str, ...] = ()  # what its model has read that the person did not say now


@dataclass(frozen=True, slots=True)
class ToolRun:
    call: ToolCall
    turn: str
    state: Literal["started", "done", "interrupted"]


@dataclass(frozen=True, slots=True)
class ContextView:
    """What the model sees of a session, oldest first, as stored. The totals are kept, never recounted."""

    session: str
    generation: int
    scope: str
    prefix_rev: int
    messages: tuple[Message, ...]
    tokens: int
    bytes: int
    images: int
    # (prefix_rev, prompt tokens, last message id of the prompt) of the last model call (F04)
    reported: tuple[int, int, int] | None = None
    # (tokens, bytes, images) of each message, as counted when it was shown; empty where the view was not read from a
    # store
    sizes: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """The current generation of a session."""

    key: str
    generation: int
    scope: str
    started_at: datetime  # of the session's first generation
    last_at: datetime | None  # when the last record of its whole log was said
    messages: int  # in its whole log
    view_messages: int
    view_tokens: int
    prefix_rev: int
    checkpoints: int  # compactions that were not undone
    unextracted: int = 0  # messages that compactions took out of view and that wait to be read for the journal
    extracted_seq: int = 0  # up to where it is noted that the journal has read this generation
    parent: str | None = None  # the session that a branch was made from


@dataclass(frozen=True, slots=True)
class RecoveryResult:
    """What start-up found and repaired."""

    adopted_records: int = 0  # records that the log had and the index lacked
    torn_files: tuple[str, ...] = ()  # files with log bytes that were set aside as torn
    running_turns: tuple[Turn, ...] = ()  # to be resumed


@dataclass(frozen=True, slots=True)
class MatchQuality:
    """How an excerpt fits its question, comparable between searches."""

    words: int = 0  # how many of the question's rare words it has: those that at most one message in twenty has
    chance: float = math.inf  # how many passages of this length would have all of these by coincidence
    share: float = 0.0  # how much of the question the excerpt's words are, 0 to 1; rare words weigh most
    rarity: float = 0.0  # of these words together: the sum of their idf
    surprise: float = 0.0  # 1 where chance alone would bring one such passage, more where not even that, at most 2
    # Of hits of a search of the history:
    likeness: float = 0.0  # in meaning: the cosine, -1 to 1
    nearby: float = 0.0  # how much of the question is said in the message and beside it, 0 to 1
    names_unknown: bool = False  # whether the question names somebody or something that nobody ever named


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A message that was found."""

    message_id: int
    session: str
    generation: int
    role: Role
    name: str | None
    ts: datetime
    text: str  # an excerpt around the best words of the original, some hundred characters at most
    score: float  # larger is better; comparable within one search only
    location: LogLocation
    quality: MatchQuality = MatchQuality()  # whether it is any good


@dataclass(frozen=True, slots=True)
class TodoItem:
    id: int
    text: str
    done: bool
    created_at: datetime
    done_at: datetime | None = None
    list: str = ""  # the name of its list; "" for the ordinary one
    due: str | None = None  # by the clock of the home: "2026-03-13", or "2026-03-13T17:00"


_ORDINARY_LIST = frozenset({"to-do", "todo", "to-dos", "todos", "to do", "to-do list", "todo list"})


def find_list_name(words: str) -> str:
    """The name of a to-do list as it is stored: "" for what people call the ordinary one."""
    name = " ".join(words.split())
    return "" if name.lower() in _ORDINARY_LIST else name


@dataclass(frozen=True, slots=True)
class TokenCalibration:
    """How a model's own token counts relate to our estimates."""

    model: str
    factor: float  # multiplies an estimate
    samples: int


@dataclass(frozen=True, slots=True)
class IntegrityProblem:
    """Something `verify` found."""

    kind: str
    where: str
    text: str
    repairable: bool = False  # by `assistant verify --repair`


@dataclass(frozen=True, slots=True)
class IntegrityReport:
    """The outcome of `verify`: what was read, and the problems."""

    sessions: int
    records: int
    bytes: int
    problems: tuple[IntegrityProblem, ...] = ()
    redactions: tuple[int, ...] = ()  # ids of messages that were forgotten
    seconds: float = 0.0
    repaired: tuple[str, ...] = ()  # what a repair did, a line each

    @property
    def ok(self) -> bool:
        return not self.problems


SCHEDULE_KEY_PREFIX, MANUAL_RUN_PREFIX, SCHEDULE_SENDER_PREFIX = "schedule:", "by hand ", "schedule "
_SCHEDULE_HEADING = lazy_regex(r"\A\[Scheduled prompt .+, (?:run (?:manually|by hand)|due .{1,99})\]\n")


def strip_schedule_heading(content: str) -> str:
    """The prompt of a schedule without its heading; any other text as it is."""
    return _SCHEDULE_HEADING.sub("", content, count=1)


def is_from_schedule(message: IncomingMessage | LogRecord) -> bool:
    """Whether a schedule said it, at its time or started manually."""
    return (message.sender or "").startswith(SCHEDULE_SENDER_PREFIX)


def is_timed_schedule_prompt(incoming: IncomingMessage) -> bool:
    """Whether a schedule said it at its time, so that no person waits for the answer."""
    return incoming.external_id.startswith(SCHEDULE_KEY_PREFIX) and MANUAL_RUN_PREFIX not in incoming.external_id


@dataclass(frozen=True, slots=True)
class CountingTier:
    """Which way of counting was chosen for a model, and why."""

    name: Literal["tiktoken", "toksum", "estimate"]
    model: str
    reason: str
    encoding: str = ""
    path: Path | None = None  # the vocabulary file of the tiktoken tier

    def as_estimate(self, why: str) -> CountingTier:
        """The last tier instead of this one."""
        return CountingTier("estimate", self.model, why)


@dataclass(frozen=True, slots=True)
class PendingCommand:
    """A command that was typed on a bridge and is not answered yet."""

    id: int
    bridge: str
    external_id: str
    session: str
    scope: str
    sender: str
    target: str
    text: str
    begun: bool  # whether it may have taken effect
