"""Tools of MCP servers, as they were seen and as the owner approved them. Pure.

What always holds: a model is offered what the owner approved, word for word; a tool that says anything else of itself
than it did then is not offered until that is approved as well.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, field
from datetime import datetime
from typing import Any, Literal

from assistant.core.dataclass import dataclass

McpToolState = Literal["approved", "new", "changed", "gone"]

_CODE_LENGTH = 8


@dataclass(frozen=True, slots=True)
class McpToolDefinition:
    """What a server says of one of its tools. `annotations` are its own hints, which nothing goes by."""

    name: str
    description: str = ""
    schema: Mapping[str, Any] = field(default_factory=dict)
    annotations: Mapping[str, Any] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        return hashlib.sha256(_dump(self).encode()).hexdigest()

    @property
    def size(self) -> int:
        return len(_dump(self))


@dataclass(frozen=True, slots=True)
class McpToolPin:
    """`seen` is what its server said last, None where it has no such tool any more; `approved` what the owner saw."""

    server: str
    name: str
    seen: McpToolDefinition | None
    approved: McpToolDefinition | None
    approved_at: datetime | None

    @property
    def state(self) -> McpToolState:
        if self.seen is None:
            return "gone"
        if self.approved is None:
            return "new"
        return "approved" if _dump(self.seen) == _dump(self.approved) else "changed"


def approval_code(pins: Iterable[McpToolPin]) -> str:
    """Names everything that a server was last seen to say of its tools: who approves it approves just that."""
    seen = sorted(_dump(pin.seen) for pin in pins if pin.seen is not None)
    return hashlib.sha256("\n".join(seen).encode()).hexdigest()[:_CODE_LENGTH]


def _dump(definition: McpToolDefinition) -> str:
    return json.dumps(asdict(definition), sort_keys=True)
