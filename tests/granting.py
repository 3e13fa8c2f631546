"""What others than the owner may do, where a test says so."""

from __future__ import annotations

from collections.abc import Iterable

from assistant.core.people import Permissions, RoleGrant
from assistant.core.ports import Tool


def granting(
    tools: Iterable[str] = (), commands: Iterable[str] = (), *, memory: bool = True, share: float = 1.0
) -> Permissions:
    """The same for guests and rooms."""
    grant = RoleGrant(frozenset(tools), frozenset(commands), memory, share)
    return Permissions({"guest": grant, "room": grant})


def granting_all(tools: Iterable[Tool]) -> Permissions:
    """Every tool that admits others at all."""
    return granting(tool.spec.name for tool in tools)
