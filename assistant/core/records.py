"""What the stores keep and return: incoming and outgoing messages, log records, turns, views, search hits, integrity
reports. Frozen values; all times are aware and in UTC.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from assistant.core.messages import LogByteRange, Media, Message, RecordKind, Role, ToolCall, Trust
from assistant.core.text import lazy_regex


@dataclass(frozen=True, slots=True)
class IncomingMessage:
    """A message as a bridge hands it over. `external_id` is the network's own id: the same pair of bridge and
    external_id is accepted once. `target` is where replies go on that bridge (opaque to everyone else); `position`, if
    any, where the bridge goes on receiving after this one."""

    bridge: str
    external_id: str
    session: str
    scope: str
    sender: str
    trust: Trust
    content: str
    media: tuple[Media, ...] = ()
    name: str | None = None
    target: str = ""
    position: str = ""


@dataclass(frozen=True, slots=True)
class InboxReceipt:
    """The inbox has it, durably. `duplicate` means that it had it before; `differs`, that what it had, and keeps, is
    another message: this one was not kept."""

    inbox_id: int
    message_id: int
    duplicate: bool = False
    conflicts: bool = False


@dataclass(frozen=True, slots=True)
class Button:
    """What a person may press instead of typing `command`, which the text names too."""

    label: str
    command: str


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """One reply or notice to deliver: one key, one body, for ever (I8). Files come after the text."""

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
    media: tuple[Media, ...] = ()


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


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One line of the master log. The header is every field but the six that `commit` covers (see `store/log.py`).

    `refs` are the message ids that an edit, delete, undo or redaction speaks of."""

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
    refs: tuple[int, ...] = ()
    span: LogByteRange = field(default=LogByteRange(0, 0))

    def to_message(self) -> Message:
        """The record as a message, whole."""
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
            {"turn": self.turn} if self.turn else {},
        )


@dataclass(frozen=True, slots=True)
class LogLocation:
    """Where a record stands, for references: the session, the file's path relative to the home, the byte range."""

    session: str
    path: str
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
    """One user request until its answer. `volatile` is its volatile block (see `docs/glossary.md`)."""

    id: str
    session: str
    generation: int
    scope: str
    volatile: str
    state: TurnState
    started_at: datetime
    items: tuple[InboxItem, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolRun:
    call: ToolCall
    turn: str
    state: Literal["started", "done", "interrupted"]


@dataclass(frozen=True, slots=True)
class ContextView:
    """The working context of a session as stored: what the model sees, oldest first.

    Running totals are kept, never recounted; `sizes` are (tokens, bytes, images) of each message, in their order, as
    counted when they were shown (empty where the view was not read from a store). `reported` is (prefix_rev, prompt
    tokens, last message id that the prompt held) of the last model call, for pressure (F04)."""

    session: str
    generation: int
    scope: str
    prefix_rev: int
    messages: tuple[Message, ...]
    tokens: int
    bytes: int
    images: int
    reported: tuple[int, int, int] | None = None
    sizes: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """The current generation of a session; `started_at` is when its first one began, `messages` and `last_at` are of
    its whole log. `unextracted` counts the messages that a compaction took out of view and that still wait to be read
    for the journal; `parent` is the session a branch was made from."""

    key: str
    generation: int
    scope: str
    started_at: datetime
    last_at: datetime | None
    messages: int
    view_messages: int
    view_tokens: int
    prefix_rev: int
    checkpoints: int
    unextracted: int = 0
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class RecoveryResult:
    """What start-up found and settled: records that the log had and the index lacked, log bytes set aside as torn
    (file names), turns to resume."""

    adopted_records: int = 0
    torn_files: tuple[str, ...] = ()
    running_turns: tuple[Turn, ...] = ()


@dataclass(frozen=True, slots=True)
class MatchQuality:
    """How an excerpt fits its question, comparable between searches. `words` is how many of the question's telling
    words it has: those that at most one message in twenty has. `chance` is how many passages of this length would have
    all of these by coincidence; `share` how much of the question the excerpt's words are, 0 to 1, rare ones most."""

    words: int = 0
    chance: float = math.inf
    share: float = 0.0


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A message found. `text` is an excerpt around the best words of the original, at most some hundred characters;
    `score` is larger for better, comparable within one search only; `fit` tells whether it is any good."""

    message_id: int
    session: str
    generation: int
    role: Role
    name: str | None
    ts: datetime
    text: str
    score: float
    location: LogLocation
    quality: MatchQuality = MatchQuality()


@dataclass(frozen=True, slots=True)
class TodoItem:
    id: int
    text: str
    done: bool
    created_at: datetime
    done_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class TokenCalibration:
    """How a model's own token counts relate to our estimates. `factor` multiplies an estimate."""

    model: str
    factor: float
    samples: int


@dataclass(frozen=True, slots=True)
class IntegrityProblem:
    """Something `verify` found. `repairable` by `assistant verify --repair`."""

    kind: str
    where: str
    text: str
    repairable: bool = False


@dataclass(frozen=True, slots=True)
class IntegrityReport:
    """The outcome of `verify`: counts of what was read, and the problems; `redactions` are message ids blanked by
    `forget`."""

    sessions: int
    records: int
    bytes: int
    problems: tuple[IntegrityProblem, ...] = ()
    redactions: tuple[int, ...] = ()
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        return not self.problems


SCHEDULE_KEY_PREFIX, MANUAL_RUN_PREFIX, SCHEDULE_SENDER_PREFIX = "schedule:", "by hand ", "schedule "
_SCHEDULE_HEADING = lazy_regex(r"\A\[Scheduled prompt .+, (?:run by hand|due .+)\]\n")


def strip_schedule_heading(content: str) -> str:
    """What a schedule asks, without what says that it is one; what anybody else said, as it is."""
    return _SCHEDULE_HEADING.sub("", content, count=1)


def is_from_schedule(said: IncomingMessage | LogRecord) -> bool:
    """Whether a schedule said it, at its time or by hand."""
    return (said.sender or "").startswith(SCHEDULE_SENDER_PREFIX)


def is_timed_schedule_prompt(incoming: IncomingMessage) -> bool:
    """Whether a schedule said it at its time, so that nobody waits for the answer."""
    return incoming.external_id.startswith(SCHEDULE_KEY_PREFIX) and MANUAL_RUN_PREFIX not in incoming.external_id


@dataclass(frozen=True, slots=True)
class CountingTier:
    """Which way of counting was chosen for a model, and why. `path` is the vocabulary file of the tiktoken tier."""

    name: Literal["tiktoken", "toksum", "estimate"]
    model: str
    reason: str
    encoding: str = ""
    path: Path | None = None

    def as_estimate(self, why: str) -> CountingTier:
        """The last tier instead of this one."""
        return CountingTier("estimate", self.model, why)
