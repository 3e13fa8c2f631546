"""MCP tools as their server describes them and as the owner approved them. Pure.

Invariant: a model is offered only tools whose current description is exactly the approved one; a tool whose description
changed is withheld until it is approved again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, field
from datetime import datetime
from typing import Any, Literal

from assistant.core.dataclass import dataclass

PROMPT, RESOURCES = "prompt:", "resources:"
LIST_RESOURCES, READ_RESOURCE = "resources:list", "resources:read"
"""Prefixes of names under which prompts and resources of a server are approved and called, as tools are."""

McpToolState = Literal["approved", "new", "changed", "gone"]

_CODE_LENGTH = 8


@dataclass(frozen=True, slots=True)
class McpToolDefinition:
    """A tool's description by its server. `annotations` are the server's own hints and have no effect here."""

    name: str
    description: str = ""
    schema: Mapping[str, Any] = field(default_factory=dict)
    annotations: Mapping[str, Any] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of all that the server says about the tool: it changes with any of it."""
        return hashlib.sha256(_dump(self).encode()).hexdigest()

    @property
    def size(self) -> int:
        """Characters of its JSON, as a model would read it."""
        return len(_dump(self))


@dataclass(frozen=True, slots=True)
class McpToolPin:
    """A tool's last description (`seen`; None if the server no longer has the tool) and the `approved` one."""

    server: str
    name: str
    seen: McpToolDefinition | None
    approved: McpToolDefinition | None
    approved_at: datetime | None

    @property
    def state(self) -> McpToolState:
        """By what the server says now: any difference from what the owner approved is "changed"."""
        if self.seen is None:
            return "gone"
        if self.approved is None:
            return "new"
        return "approved" if _dump(self.seen) == _dump(self.approved) else "changed"


def approval_code(pins: Iterable[McpToolPin]) -> str:
    """Return a code of all current tool descriptions of a server; approving it approves exactly these."""
    seen = sorted(_dump(pin.seen) for pin in pins if pin.seen is not None)
    return hashlib.sha256("\n".join(seen).encode()).hexdigest()[:_CODE_LENGTH]


def _dump(definition: McpToolDefinition) -> str:
    return json.dumps(asdict(definition), sort_keys=True)
