"""Who may do what: the one place where it is decided. Pure, made of the settings tables `[guest]` and `[room]`.

What always holds: the owner may do everything; what another role may do is the least of what a tool or a command admits
at all (its own roles) and what the settings name. Nothing that anybody says takes part in it (I10).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from assistant.core.sessions import SessionRole, role_of

OWNER_ALONE: frozenset[str] = frozenset({"owner"})
EVERYBODY: frozenset[str] = frozenset({"owner", "guest", "room"})


@dataclass(frozen=True, slots=True)
class Grant:
    """What one role may do. `budget_share` is the part of each cap (0 to 1) that all its sessions together may use."""

    tools: frozenset[str]
    commands: frozenset[str]
    memory: bool
    budget_share: float


@dataclass(frozen=True, slots=True)
class Authority:
    """The grants of everybody but the owner."""

    grants: Mapping[SessionRole, Grant]

    def may_use(self, role: str, tool: str, admitted: Collection[str]) -> bool:
        """Whether a session of this role may use a tool that admits these roles."""
        if role == "owner":
            return "owner" in admitted
        grant = self._grant(role)
        return role in admitted and grant is not None and tool in grant.tools

    def may_type(self, role: str, command: str, admitted: Collection[str]) -> bool:
        """Whether a session of this role may type a command (without the slash) that admits these roles."""
        if role == "owner":
            return "owner" in admitted
        grant = self._grant(role)
        return role in admitted and grant is not None and command in grant.commands

    def learns(self, session: str) -> bool:
        """Whether what is said in this session is learned, for itself alone."""
        role = role_of(session)
        grant = self._grant(role)
        return role == "owner" or (grant is not None and grant.memory)

    def share(self, role: str) -> float:
        """The part of each cap that all sessions of this role together may use."""
        grant = self._grant(role)
        return 1.0 if role == "owner" else 0.0 if grant is None else grant.budget_share

    def _grant(self, role: str) -> Grant | None:
        return next((grant for known, grant in self.grants.items() if known == role), None)


NOBODY_ELSE = Authority({})
"""The owner may do everything, nobody else anything."""


def misnamed(named: Iterable[str], admitting: Mapping[str, Collection[str]], role: str) -> list[str]:
    """Of what the settings name for a role: what does not exist, or does not admit the role. `admitting` has the roles
    of each tool or command by its name."""
    return [name for name in named if role not in admitting.get(name, ())]
