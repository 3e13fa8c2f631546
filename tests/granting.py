"""What others than the owner may do, where a test says so."""

from __future__ import annotations

from collections.abc import Iterable

from assistant.core.authority import Authority, Grant
from assistant.core.ports import Tool


def granting(
    tools: Iterable[str] = (), commands: Iterable[str] = (), *, memory: bool = True, share: float = 1.0
) -> Authority:
    """The same for guests and rooms."""
    grant = Grant(frozenset(tools), frozenset(commands), memory, share)
    return Authority({"guest": grant, "room": grant})


def granting_all(tools: Iterable[Tool]) -> Authority:
    """Every tool that admits others at all."""
    return granting(tool.spec.name for tool in tools)
