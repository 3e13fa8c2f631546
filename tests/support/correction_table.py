"""A table of what people tell and put right later, in one language or another, each line with what must hold then.

A line is JSON: `said`, in this order, a few minutes apart on a Monday; `ask`, questions whose answers must have `now`
and not what was `old`; `both`: what must stand side by side, where nothing is put right; `days`, what the agenda has.
Answers are looked at with what was said in view, and after a reset, when only a search finds it; memories as the rules
of extraction and of memory make them.

`python -m tests.support.correction_table tests/data/corrections/unseen.jsonl.gz` plays the half that nobody builds
with, and prints only how many were right.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zoneinfo import ZoneInfo

from assistant.agenda.mentioned_dates import find_dated_mentions
from assistant.core.records import LogRecord
from assistant.core.text import fold_text
from sleep.rules.extract_statements import SourcedStatement, extract_from_conversation
from sleep.rules.supersede import MemoryCandidate, decide_entry, parse_entry
from tests.support.in_memory import OfflineChat
from tests.support.utterances import read_table

TABLES = Path(__file__).parents[1] / "data" / "corrections"
MONDAY = datetime(2026, 3, 2, 10, tzinfo=UTC)


def record(number: int, role: str, content: str) -> LogRecord:
    said_at = MONDAY + timedelta(minutes=number)
    return LogRecord(number, number, said_at, "main", 1, "owner", "message", role, content, "", "")  # type: ignore[arg-type]


def as_records(*said: str) -> list[LogRecord]:
    """A conversation in which everything is acknowledged."""
    pairs = ((n, own) for n, own in enumerate(said))
    return [
        record(2 * n + answered, role, text)
        for n, own in pairs
        for answered, (role, text) in enumerate((("user", own), ("assistant", "Noted.")))
    ]


def current(statements: Sequence[SourcedStatement]) -> list[str]:
    """What still holds of what a conversation left in the journal."""
    known: dict[str, SourcedStatement] = {}
    for new in statements:
        candidates = [MemoryCandidate(text, parse_entry(text), old.record.ts) for text, old in known.items()]
        entry = parse_entry(new.statement.content, corrects=new.statement.is_correction)
        decision = decide_entry(entry, new.record.ts, candidates)
        for gone in decision.superseded_ids:
            del known[gone]
        if not decision.same_as:
            known[new.statement.content] = new
    return list(known)


async def find_faults(row: dict[str, Any]) -> list[str]:
    """What is not as the line says; empty where all is."""
    records = as_records(*row["said"])
    faults = [*_of_memories(row, current(extract_from_conversation(records))), *_of_agenda(row, records)]
    with TemporaryDirectory() as folder:
        chat = OfflineChat(Path(folder), now=MONDAY)
        for text in row["said"]:
            await chat.say(text)
        told = list(chat.view)
        for question in row["ask"]:
            for place, view in (("in view", told), ("after a reset", [])):
                chat.view[:] = view
                faults += _of_answer(row, f"{question} {place}", await chat.say(question))
    return faults


def _of_answer(row: dict[str, Any], question: str, reply: str) -> list[str]:
    answer = fold_text("\n".join(line for line in reply.split("\n") if line.startswith(">")))
    found = reply.startswith(("You told me", "Noted on")) and fold_text(row["now"]) in answer
    old = any(fold_text(word) in answer for word in row["old"])
    return [] if found and not old else [f"{question}: {reply!r}"]


def _of_memories(row: dict[str, Any], memories: list[str]) -> list[str]:
    kept = [fold_text(memory) for memory in memories]
    wanted = list(map(fold_text, row.get("both", [row.get("now", "")])))
    missing = any(not any(word in memory for memory in kept) for word in wanted)
    stale = any(fold_text(old) in memory and wanted[0] not in memory for old in row.get("old", []) for memory in kept)
    several = "both" not in row and sum(wanted[0] in memory for memory in kept) > 1
    return [f"memories: {memories}"] if missing or stale or several else []


def _of_agenda(row: dict[str, Any], records: list[LogRecord]) -> list[str]:
    if "days" not in row:
        return []
    own = [record for record in records if record.role == "user"]
    things = find_dated_mentions(own, [], ZoneInfo("UTC"))
    first = MONDAY.date()
    days = {first + timedelta(days=n) for n in range(300)}
    on = sorted(next((day for day in sorted(days) if thing.when.is_on(day, first)), date.max) for thing in things)
    wanted = sorted(map(date.fromisoformat, row["days"]))
    return (
        [] if on == wanted else [f"agenda: {[(thing.text, str(day)) for thing, day in zip(things, on, strict=True)]}"]
    )


async def play_table(path: Path) -> dict[str, list[str]]:
    """The faults of each line that has some, by what was said in it."""
    rows = read_table(path)
    return {" / ".join(row["said"]): faults for row in rows if (faults := await find_faults(row))}


if __name__ == "__main__":
    table = Path(sys.argv[1])
    print(f"{len(read_table(table)) - len(asyncio.run(play_table(table)))} of {len(read_table(table))} are right")
