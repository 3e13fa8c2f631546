"""The schemas of the four databases, as numbered migrations."""

from __future__ import annotations

from collections.abc import Mapping

RETIRED_MIGRATIONS: Mapping[str, frozenset[str]] = {
    "script": frozenset(
        {
            "0001_initial",
            "0002_compaction",
            "0003_search_moved",
            "0004_people",
            "0005_agenda",
            "0006_resets",
            "0007_bridges",
            "0008_spending",
        }
    ),
    "character": frozenset({"0001_initial", "0002_journal", "0003_memory"}),
}
"""By database, migrations that are no longer here: its first migration makes at once what they and it made in steps. A
database that has some of them but not that one cannot be brought up to date any more."""
