"""Access decisions, from the settings tables `[guest]` and `[room]`. This is the only place where they are made. Pure.

The owner may do everything; another role may do what both the tool or command (its own roles) and the settings allow.
Message content never influences the decision (I10).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from assistant.core.dataclass import dataclass
from assistant.core.sessions import SessionRole, session_role

OWNER_ONLY: frozenset[str] = frozenset({"owner"})
ALL_ROLES: frozenset[str] = frozenset({"owner", "guest", "room"})


@dataclass(frozen=True, slots=True)
class RoleGrant:
    """The permissions of one role."""

    tools: frozenset[str]
    commands: frozenset[str]
    memory: bool
    budget_share: float  # share of each cap (0 to 1) for all its sessions together


_NO_GRANT = RoleGrant(frozenset(), frozenset(), memory=False, budget_share=0.0)


@dataclass(frozen=True, slots=True)
class Permissions:
    """The grants of all roles but the owner."""

    grants: Mapping[SessionRole, RoleGrant]

    def may_use_tool(self, role: str, tool: str, admitted: Collection[str]) -> bool:
        """Return whether a role may use a tool that admits these roles."""
        return role in admitted and (role == "owner" or tool in self._grant(role).tools)

    def may_run_command(self, role: str, command: str, admitted: Collection[str]) -> bool:
        """Return whether a role may run a command (without the slash) that admits these roles."""
        return role in admitted and (role == "owner" or command in self._grant(role).commands)

    def may_learn_from(self, session: str) -> bool:
        """Return whether memories may be extracted from this session, for its own scope."""
        role = session_role(session)
        return role == "owner" or self._grant(role).memory

    def budget_share(self, role: str) -> float:
        """Return the share of each cap that all sessions of this role together may use."""
        return 1.0 if role == "owner" else self._grant(role).budget_share

    def _grant(self, role: str) -> RoleGrant:
        return next((grant for granted_role, grant in self.grants.items() if granted_role == role), _NO_GRANT)


OWNER_ONLY_PERMISSIONS = Permissions({})
"""Everything for the owner, nothing for others."""
