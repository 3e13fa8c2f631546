"""Value types that cross room boundaries: frozen and small. No I/O, no clock.

A `Message` is what a person or model said, or a tool returned. The message log keeps it complete; the working context
may contain a shortened version with the same id. JSON encodings are here too, because the log, the working context and
the control API share them.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterable, Mapping
from dataclasses import asdict, field, replace
from datetime import datetime, tzinfo
from itertools import chain, count
from typing import Any, Literal

from assistant.core.dataclass import dataclass

Role = Literal["system", "user", "assistant", "tool"]
Trust = Literal["owner", "guest", "model", "tool", "system"]
RecordKind = Literal["message", "edit", "delete", "undo", "redaction", "branch", "handover", "resume", "reminder"]

ABORTED_MARKER = "<turn-aborted>"
# How a turn ends that the person stopped.
STOPPED_REPLY = "Stopped."
SUMMARY_MARKER = "[CONTEXT SUMMARY]"
# Tools whose results repeat what is kept elsewhere, best or first words first.
LOOKUP_TOOLS = frozenset({"search_history", "read_history", "search_memory"})


MediaKind = Literal["image", "file"]


def media_kind(mime: str) -> MediaKind:
    """Return how a file of this MIME type is attached."""
    return "image" if mime.startswith("image/") else "file"


@dataclass(frozen=True, slots=True)
class Media:
    """A picture or file attached to a message."""

    kind: MediaKind
    mime: str
    name: str = ""
    size: int = 0  # bytes of the decoded content
    data: str | None = None  # base64, for images small enough to send
    path: str | None = None  # relative to the workspace, for the owner's files and pictures
    voice: bool = False  # a voice recording to be transcribed


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's request to run a tool."""

    id: str
    name: str
    # parsed; invalid JSON is kept raw under `__invalid_json__`, and the registry returns an error
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one model call as billed by the provider."""

    input: int = 0  # excluding cache reads and writes
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost_usd: float | None = None  # None if no price is known
    cache_write_hour: int = 0  # the part of `cache_write` with a lifetime of an hour instead of five minutes

    @property
    def prompt(self) -> int:
        """Tokens of the whole prompt, cached or not."""
        return self.input + self.cache_read + self.cache_write

    def __add__(self, other: Usage) -> Usage:
        costs = [c for c in (self.cost_usd, other.cost_usd) if c is not None]
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            sum(costs) if costs else None,
            self.cache_write_hour + other.cache_write_hour,
        )


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `id` is unique in the home and increasing; None until it is logged.

    `metadata` belongs to the working context, not to the log: `type` ("compaction" for a summary), `carried_from` (id
    of the message it copies), `inherited` (a branch's copy of a parent's message), `archived` (a masked tool result),
    `truncated`, `interrupted`, `internal` (never sent), `turn`.

    `thinking` holds the provider's own blocks verbatim: they are signed and readable only by that provider.
    """

    role: Role
    content: str = ""
    id: int | None = None
    ts: datetime | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    media: tuple[Media, ...] = ()
    thinking: tuple[Mapping[str, Any], ...] = ()
    model: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def with_content(self, content: str, **metadata: Any) -> Message:
        """Return a copy with other content and extended metadata."""
        return replace(self, content=content, metadata={**self.metadata, **metadata})

    def in_timezone(self, zone: tzinfo) -> Message:
        """Return a copy whose timestamp is in `zone`, so that its date is the local one."""
        return replace(self, ts=self.ts.astimezone(zone)) if self.ts else self

    def with_unique_call_ids(self, earlier: Iterable[Message], stem: str) -> Message:
        """Return a copy whose tool call ids do not occur in `earlier`. Some local servers number calls from zero each
        time, and providers refuse repeated ids. A replacement is `stem` plus a number."""
        used = {call.id for message in earlier for call in message.tool_calls}
        calls: list[ToolCall] = []
        for call in self.tool_calls:
            ids = chain([call.id], (f"{stem}_{number}" for number in count(1)))
            calls.append(replace(call, id=next(call_id for call_id in ids if call_id and call_id not in used)))
            used.add(calls[-1].id)
        return replace(self, tool_calls=tuple(calls))

    @property
    def is_summary(self) -> bool:
        return self.metadata.get("type") == "compaction"


def find_summaries(messages: Iterable[Message]) -> list[Message]:
    """Return the compaction summaries among messages. Called for a whole view several times per turn."""
    return [message for message in messages if (told := message.metadata) and told.get("type") == "compaction"]


@dataclass(frozen=True, slots=True)
class LogByteRange:
    """The byte range [start, end) of a record in a log file, including its newline."""

    start: int
    end: int


# Characters decoded at once (some milliseconds); a multiple of four, since four of them are three bytes.
_BASE64_WINDOW = 1 << 20


def decode_base64(data: str) -> bytes:
    """Strictly decode base64 of any length in chunks, so that other threads can run in between. Raises `ValueError`."""
    if 0 <= data.find("=") < len(data) - 2:
        raise ValueError("Excess data after padding")
    parts = range(0, len(data), _BASE64_WINDOW)
    return b"".join(binascii.a2b_base64(data[at : at + _BASE64_WINDOW], strict_mode=True) for at in parts)


def media_to_json(media: Media) -> dict[str, Any]:
    """Encode `media` without unset fields."""
    return {name: value for name, value in asdict(media).items() if value or name in ("kind", "mime")}


def media_from_json(raw: Mapping[str, Any]) -> Media:
    return Media(**raw)


def tool_call_to_json(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "name": call.name, "arguments": dict(call.arguments)}


def tool_call_from_json(raw: Mapping[str, Any]) -> ToolCall:
    return ToolCall(raw["id"], raw["name"], raw["arguments"])
