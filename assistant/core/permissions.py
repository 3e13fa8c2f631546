"""Who may do what: the one place where that is decided, made of the settings tables `[guest]` and `[room]`. Pure.

The owner may do everything; what another role may do is the least of what a tool or a command admits at all (its
own roles) and what the settings name. Nothing that anybody says takes part in it (I10).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from assistant.core.dataclass import dataclass
from assistant.core.sessions import SessionRole, session_role

OWNER_ONLY: frozenset[str] = frozenset({"owner"})
ALL_ROLES: frozenset[str] = frozenset({"owner", "guest", "room"})


@dataclass(frozen=True, slots=True)
class RoleGrant:
    """What one role may do."""

    tools: frozenset[str]
    commands: frozenset[str]
    memory: bool
    budget_share: float  # the part of each cap (0 to 1) that all its sessions together may use


_NO_GRANT = RoleGrant(frozenset(), frozenset(), memory=False, budget_share=0.0)


@dataclass(frozen=True, slots=True)
class Permissions:
    """The grants of everybody but the owner."""

    grants: Mapping[SessionRole, RoleGrant]

    def may_use_tool(self, role: str, tool: str, admitted: Collection[str]) -> bool:
        """Whether a session of this role may use a tool that admits these roles."""
        return role in admitted and (role == "owner" or tool in self._grant(role).tools)

    def may_run_command(self, role: str, command: str, admitted: Collection[str]) -> bool:
        """Whether a session of this role may type a command (without the slash) that admits these roles."""
        return role in admitted and (role == "owner" or command in self._grant(role).commands)

    def may_learn_from(self, session: str) -> bool:
        """Whether what is said in this session is learned, for itself alone."""
        role = session_role(session)
        return role == "owner" or self._grant(role).memory

    def budget_share(self, role: str) -> float:
        """The part of each cap that all sessions of this role together may use."""
        return 1.0 if role == "owner" else self._grant(role).budget_share

    def _grant(self, role: str) -> RoleGrant:
        return next((grant for granted_role, grant in self.grants.items() if granted_role == role), _NO_GRANT)


OWNER_ONLY_PERMISSIONS = Permissions({})
"""The owner may do everything, nobody else anything."""
