"""Value types of the stores: incoming and outgoing messages, log records, turns, views, search hits, integrity reports.
Frozen; all times are aware and in UTC.
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
    """A message from a bridge. Each pair of bridge and external_id is accepted once."""

    bridge: str
    external_id: str  # the network's id
    session: str
    scope: str
    sender: str
    trust: Trust
    content: str
    media: tuple[Media, ...] = ()
    name: str | None = None
    target: str = ""  # reply address on the bridge; opaque elsewhere
    position: str = ""  # where the bridge resumes receiving after this message, if known


@dataclass(frozen=True, slots=True)
class InboxReceipt:
    """Confirmation that the inbox stored a message durably."""

    inbox_id: int
    message_id: int
    duplicate: bool = False  # it was already stored
    conflicts: bool = False  # another message with these ids was already stored; this one was discarded


@dataclass(frozen=True, slots=True)
class Button:
    """A button that sends `command`; the text names the command too."""

    label: str
    command: str


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """A reply or notice to deliver, with a unique key and an immutable body (I8)."""

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
    """Return whether a delivery key is for a turn's reply or for the notice in its place, not for an additional
    notice."""
    return key.startswith(("reply:", "notice:"))


def spoken_key(message_id: int | None) -> str:
    """Return the delivery key of the recording of an answer, at the first place that it was sent to."""
    return f"spoken:{message_id}"


OutboxState = Literal["pending", "sending", "sent", "ambiguous", "failed", "withheld", "dropped"]


@dataclass(frozen=True, slots=True)
class OutboxItem:
    """A queued outgoing message."""

    id: int
    outgoing: OutgoingMessage
    state: OutboxState
    attempts: int
    created_at: datetime
    parts_sent: int = 0  # number of parts the network has
    parts: tuple[str, ...] = ()  # texts of a split message, from its first send attempt on
    tried_at: datetime | None = None  # first attempt to send the current part, while its outcome is unknown


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One line of the message log. The header is every field except the six covered by `commit`
    (`store/log/format`)."""

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
    refs: tuple[int, ...] = ()  # ids of the messages that an edit, delete, undo or redaction refers to
    external_id: str | None = None  # id in the program it was imported from
    span: LogByteRange = field(default=LogByteRange(0, 0))

    def to_message(self, metadata: Mapping[str, Any] | None = None) -> Message:
        """Return the full message, with its turn and `metadata`."""
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
    """The location of a log record."""

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
    """One user request, from its start to its answer."""

    id: str
    session: str
    generation: int
    scope: str
    volatile: str  # see "volatile block" in `docs/glossary.md`
    state: TurnState
    started_at: datetime
    items: tuple[InboxItem, ...] = ()
    untrusted: tuple[str, ...] = ()  # sources the model has read other than the user's own current message


@dataclass(frozen=True, slots=True)
class FailedTurn:
    """A turn that ended without an answer."""

    session: str
    error: str  # why, as its owner reads it, with what to do
    ended_at: datetime


@dataclass(frozen=True, slots=True)
class ToolRun:
    call: ToolCall
    turn: str
    state: Literal["started", "done", "interrupted"]


@dataclass(frozen=True, slots=True)
class ContextView:
    """What the model sees of a session, oldest first. Totals are stored, not recomputed."""

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
    # (tokens, bytes, images) of each message, as counted on append; empty if the view was not read from a store
    sizes: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A session and its current generation."""

    key: str
    generation: int
    scope: str
    started_at: datetime  # start of the first generation
    last_at: datetime | None  # time of the last log record, over all generations
    messages: int  # in the whole log
    view_messages: int
    view_tokens: int
    prefix_rev: int
    checkpoints: int  # compactions that were not undone
    unextracted: int = 0  # compacted messages not yet extracted to the journal
    extracted_seq: int = 0  # last seq of this generation that the journal has read
    parent: str | None = None  # the session it was branched from


@dataclass(frozen=True, slots=True)
class RecoveryResult:
    """What recovery at start-up found and repaired."""

    adopted_records: int = 0  # logged but missing in the index
    torn_files: tuple[str, ...] = ()  # files with torn log bytes that were set aside
    running_turns: tuple[Turn, ...] = ()  # to be resumed
    answered_turns: tuple[Turn, ...] = ()  # the newest few, newest first: what follows an answer may have been cut off


@dataclass(frozen=True, slots=True)
class MatchQuality:
    """How well an excerpt matches a query, comparable between searches."""

    words: int = 0  # number of matched rare words of the query (in at most 5% of all messages)
    chance: float = math.inf  # expected number of passages of this length matching all of these by chance
    share: float = 0.0  # share of the query matched, 0 to 1, weighted by rarity
    rarity: float = 0.0  # summed idf of the matched words
    surprise: float = 0.0  # 1 if chance would yield one such passage, more if less likely, at most 2
    # Only for history search:
    likeness: float = 0.0  # cosine similarity of meaning, -1 to 1
    nearby: float = 0.0  # share of the query in the message and its neighbours, 0 to 1
    names_unknown: bool = False  # whether the query names something that was never mentioned


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A found message."""

    message_id: int
    session: str
    generation: int
    role: Role
    name: str | None
    ts: datetime
    text: str  # an excerpt around the best matches, some hundred characters at most
    score: float  # higher is better; comparable within one search only
    location: LogLocation
    quality: MatchQuality = MatchQuality()  # whether the match is good enough


@dataclass(frozen=True, slots=True)
class TodoItem:
    id: int
    text: str
    done: bool
    created_at: datetime
    done_at: datetime | None = None
    list: str = ""  # its name; "" for the default list
    due: str | None = None  # local: "2026-03-13" or "2026-03-13T17:00"


_ORDINARY_LIST = frozenset({"to-do", "todo", "to-dos", "todos", "to do", "to-do list", "todo list"})


def find_list_name(words: str) -> str:
    """Normalise the name of a to-do list; "" for any name of the default list."""
    name = " ".join(words.split())
    return "" if name.lower() in _ORDINARY_LIST else name


@dataclass(frozen=True, slots=True)
class TokenCalibration:
    """The ratio of a model's own token counts to our estimates."""

    model: str
    factor: float  # multiplier for estimates
    samples: int


@dataclass(frozen=True, slots=True)
class IntegrityProblem:
    """A problem found by `verify`."""

    kind: str
    where: str
    text: str
    repairable: bool = False  # by `assistant verify --repair`


@dataclass(frozen=True, slots=True)
class IntegrityReport:
    """The result of `verify`."""

    sessions: int
    records: int
    bytes: int
    problems: tuple[IntegrityProblem, ...] = ()
    redactions: tuple[int, ...] = ()  # ids of erased messages
    seconds: float = 0.0
    repaired: tuple[str, ...] = ()  # what a repair did, one line each

    @property
    def ok(self) -> bool:
        return not self.problems


SCHEDULE_KEY_PREFIX, MANUAL_RUN_PREFIX, SCHEDULE_SENDER_PREFIX = "schedule:", "by hand ", "schedule "
_SCHEDULE_HEADING = lazy_regex(r"\A\[Scheduled prompt .+, (?:run (?:manually|by hand)|due .{1,99})\]\n")


def strip_schedule_heading(content: str) -> str:
    """Return the prompt of a schedule without its heading; other text unchanged."""
    return _SCHEDULE_HEADING.sub("", content, count=1)


def is_from_schedule(message: IncomingMessage | LogRecord) -> bool:
    """Return whether a schedule sent the message, on time or started manually."""
    return (message.sender or "").startswith(SCHEDULE_SENDER_PREFIX)


def is_timed_schedule_prompt(incoming: IncomingMessage) -> bool:
    """Return whether a schedule sent the message on time, so that nobody is waiting for the answer."""
    return incoming.external_id.startswith(SCHEDULE_KEY_PREFIX) and MANUAL_RUN_PREFIX not in incoming.external_id


@dataclass(frozen=True, slots=True)
class CountingTier:
    """The token counting method of a model, and why it was chosen."""

    name: Literal["tiktoken", "toksum", "estimate"]
    model: str
    reason: str
    encoding: str = ""
    path: Path | None = None  # vocabulary file of the tiktoken tier

    def as_estimate(self, why: str) -> CountingTier:
        """Return the fallback tier with a reason."""
        return CountingTier("estimate", self.model, why)


@dataclass(frozen=True, slots=True)
class PendingCommand:
    """A command received on a bridge and not answered yet."""

    id: int
    bridge: str
    external_id: str
    session: str
    scope: str
    sender: str
    target: str
    text: str
    begun: bool  # whether it may have taken effect
