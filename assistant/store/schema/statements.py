"""The tables of each database are in SQL files, which its first migration runs."""

from __future__ import annotations

from pathlib import Path

from sqlite_utils import Database


def run_statements(db: Database, name: str) -> None:
    """Run a SQL file of this folder inside the transaction of a migration, which `executescript` would commit."""
    for statement in (Path(__file__).parent / name).read_text(encoding="utf-8").split(";\n"):
        db.execute(statement)
