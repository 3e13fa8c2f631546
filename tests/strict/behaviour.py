"""What the strict server does with an accepted request: one of these per request, in order; then it answers "ok".

Words are streamed one by one, so that a stream can break anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class ToolUse:
    """A tool call in an answer. `arguments` may be text, for servers that write broken JSON."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    id: str = ""


@dataclass(frozen=True)
class ScriptedAnswer:
    """An answer. `thinking` comes signed before the text; `again` is thought between text and calls. `stop` overrides
    the stop or finish reason; `silent_usage` leaves the usage out, as many local servers do."""

    text: str = ""
    calls: Sequence[ToolUse] = ()
    thinking: str | None = None
    again: str | None = None
    redacted: str | None = None
    stop: str = ""
    silent_usage: bool = False


@dataclass(frozen=True)
class Refusal:
    """The service declines, with a normal response."""

    explanation: str = "This request was declined."
    text: str = ""


@dataclass(frozen=True)
class ErrorStatus:
    """An error response. `code` and `details` go where the API has them."""

    status: int
    type: str
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)
    code: str | None = None


@dataclass(frozen=True)
class ErrorEvent:
    """The stream begins, `text` comes, then an error event."""

    type: str
    message: str
    text: str = ""


@dataclass(frozen=True)
class Stall:
    """The stream begins, `text` comes, then nothing until the server stops. `pings` keep the connection alive first."""

    text: str = ""
    pings: int = 0
    before_headers: bool = False


@dataclass(frozen=True)
class Held:
    """An answer that comes when the test releases it."""

    answer: ScriptedAnswer


@dataclass(frozen=True)
class Garbage:
    """The stream begins, `text` comes, then these bytes and the end."""

    raw: bytes
    text: str = ""


@dataclass(frozen=True)
class ConnectionCut:
    """The stream begins, `text` comes, then the connection closes without an end."""

    text: str = ""


Behaviour = ScriptedAnswer | Refusal | ErrorStatus | ErrorEvent | Stall | Held | Garbage | ConnectionCut


def pieces(text: str) -> list[str]:
    """`text` as it is streamed: word by word."""
    words = text.split(" ")
    return [word if index == 0 else f" {word}" for index, word in enumerate(words)] if text else []
