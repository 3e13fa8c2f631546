"""MCP tool descriptions as last seen and as approved, in script.db."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime
from sqlite3 import Row

from assistant.core.mcp import McpToolDefinition, McpToolPin
from assistant.store.database import DatabaseStore
from assistant.store.rows import class_row, dump_json, from_json


def _definition(text: str) -> McpToolDefinition | None:
    return from_json(McpToolDefinition, text) if text else None


def _read_seen(row: Row) -> McpToolDefinition | None:
    return _definition(row["seen"])


def _read_approved(row: Row) -> McpToolDefinition | None:
    return _definition(row["approved"])


_read_pin = class_row(McpToolPin, seen=_read_seen, approved=_read_approved)


class StoredMcpTools(DatabaseStore):
    def list_tools(self, server: str | None = None) -> list[McpToolPin]:
        """Return the tools of one server, or of all."""
        where = "WHERE ?1 IS NULL OR server = ?1 ORDER BY server, name"
        return self._db.read_all(_read_pin, f"SELECT * FROM mcp_tools {where}", (server,))

    def record(self, server: str, definitions: Iterable[McpToolDefinition]) -> None:
        """Replace a server's current descriptions; unapproved old ones are deleted."""
        with self._db.write() as db:
            db.execute("DELETE FROM mcp_tools WHERE server = ? AND approved = ''", (server,))
            db.update_rows("mcp_tools", {"server": server}, seen="")
            for it in definitions:
                row = {"server": server, "name": it.name, "seen": dump_json(asdict(it))}
                db.upsert_row("mcp_tools", ("server", "name"), **row)

    def approve(self, server: str, tools: Iterable[str], now: datetime) -> None:
        """Approve tools as currently described; tools the server no longer has are deleted."""
        with self._db.write() as db:
            db.execute("DELETE FROM mcp_tools WHERE server = ? AND seen = ''", (server,))
            for name in tools:
                where = "WHERE server = ? AND name = ?"
                db.execute(f"UPDATE mcp_tools SET approved = seen, approved_at = ? {where}", (now, server, name))

    def remove(self, server: str) -> int:
        """Delete a server's tools; returns their number."""
        with self._db.write() as db:
            return db.execute("DELETE FROM mcp_tools WHERE server = ?", (server,))
