"""What is lost, doubled or left half done in a home that was served, judged by what the world outside knows of it."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from assistant.core.errors import AssistantError
from assistant.store.backup.folder import BackupFolder
from assistant.store.backup.tarball import verify_backup_file
from assistant.store.files import WriteThrottle
from assistant.wire.stores import Stores
from tests.attack.served_home import WorldRecord
from tests.crash.world import settings_of

_SETTLE_SECONDS = 90.0
_UNDER_WAY = "SELECT count(*) FROM resets WHERE state NOT IN ('done', 'withdrawn')"
_OPEN = (
    "SELECT count(*) FROM inbox WHERE state IN ('accepted', 'running')",
    "SELECT count(*) FROM turns WHERE state = 'running'",
    "SELECT count(*) FROM outbox WHERE state IN ('pending', 'sending') AND bridge = 'terminal'",
    "SELECT count(*) FROM jobs WHERE state = 'active' AND kind = 'reminder' AND next_due_at <= ?",
    _UNDER_WAY,
)


def rows(home: Path, sql: str, *values: Any, database: str = "script.db") -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"file:{home / database}?mode=ro", uri=True, timeout=30)) as connection:
        return connection.execute(sql, values).fetchall()


def _find_open_work(home: Path) -> dict[str, int]:
    """What the daemon has still to do, by the statement that counts it. Nothing is left of it once it was quiet."""
    now = datetime.now(UTC).isoformat()
    counts = {sql: rows(home, sql, *([now] if "?" in sql else []))[0][0] for sql in _OPEN}
    return {sql: count for sql, count in counts.items() if count}


async def count_down(home: Path, sql: str, seconds: float) -> int:
    """Until what a statement counts is 0; what it was after that time."""
    until = time.monotonic() + seconds
    while (left := int(rows(home, sql)[0][0])) and time.monotonic() < until:  # noqa: ASYNC110 -- of another process
        await asyncio.sleep(0.2)
    return left


async def wait_until_quiet(home: Path) -> list[str]:
    """Until the daemon has nothing left to do; what it never did, as a line, if that takes too long."""
    until = time.monotonic() + _SETTLE_SECONDS
    while (left := _find_open_work(home)) and time.monotonic() < until:  # noqa: ASYNC110 -- of another process
        await asyncio.sleep(0.2)
    return [f"never done: {left}"] if left else []


def find_losses(home: Path, world: WorldRecord) -> list[str]:
    """One line for each thing that is not as it should be, in a home that nobody serves and that was quiet before."""
    return [
        *world.wrong,
        *_wrong_messages(home, world),
        *_wrong_answers(home, world),
        *_wrong_orders(home, world),
        *_wrong_backups(home),
        *_unsound(home),
    ]


def _wrong_messages(home: Path, world: WorldRecord) -> Iterator[str]:
    kept = dict(rows(home, "SELECT external_id, id FROM inbox"))
    logged = Counter(_logged_texts(home))
    for name, (text, _) in world.said.items():
        number = world.accepted.get(name)
        if number is None:
            yield f"message {name} was never accepted"
        elif kept.get(name) != number:
            yield f"message {name} was accepted as {number} and is kept as {kept.get(name)}"
        elif logged[text] != 1:
            yield f"message {name} is in the log {logged[text]} times"


def _logged_texts(home: Path) -> Iterator[str]:
    for path in sorted((home / "log").rglob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            if record.get("role") == "user" and record.get("kind") == "message":
                yield str(record.get("content"))


def _wrong_answers(home: Path, world: WorldRecord) -> Iterator[str]:
    """Each message ended as one of answered, superseded, or failed with a notice; and was answered once."""
    names = {number: name for name, number in world.accepted.items()}
    for number, state in rows(home, "SELECT id, state FROM inbox"):
        if number not in names:
            continue
        told = rows(home, "SELECT key, kind, state FROM outbox WHERE inbox_id = ?", number)
        replies = [key for key, kind, _ in told if kind == "reply"]
        if state == "answered" and not replies:
            turn = rows(home, "SELECT turn FROM inbox WHERE id = ?", number)[0][0]
            replies = [key for (key,) in rows(home, "SELECT key FROM outbox WHERE turn = ? AND kind = 'reply'", turn)]
        if state == "answered" and len(replies) != 1:
            yield f"message {names[number]} has {len(replies)} answers"
        if state not in ("answered", "superseded") and not told:
            yield f"message {names[number]} is {state} and nobody was told"
        if len(world.replies.get(number, ())) > 1:
            yield f"message {names[number]} was answered twice: {sorted(world.replies[number])}"
    states = dict(rows(home, "SELECT key, state FROM outbox"))
    for key in world.shown:
        if states.get(key) != "sent":
            yield f"{key} was shown and is kept as {states.get(key, 'nothing')}"
    undelivered = (
        "SELECT key FROM outbox WHERE state NOT IN ('sent', 'ambiguous', 'withheld', 'dropped') AND bridge = 'terminal'"
    )
    yield from (f"{key} was never delivered" for (key,) in rows(home, undelivered))


def _wrong_orders(home: Path, world: WorldRecord) -> Iterator[str]:
    """What a command said was done is there once; what was asked and not answered is there once at most."""
    done, tried = Counter(world.done), Counter(world.tried)
    todos = Counter(text for (text,) in rows(home, "SELECT text FROM todos", database="character.db"))
    rung = Counter(rows(home, "SELECT j.text, s.state FROM slots s JOIN jobs j ON j.id = s.job_id"))
    ringing = Counter(text for (text, state) in rung.elements() if state in ("ran", "late"))
    told = Counter(body for (body,) in rows(home, "SELECT body FROM outbox"))
    for (verb, text), times in tried.items():
        kept = {"todo": todos[text], "remind": ringing[text]}.get(verb)
        if kept is not None and not done[verb, text] <= kept <= times:
            yield f"{verb} {text!r}: asked {times}, confirmed {done[verb, text]}, is there {kept}"
        if verb == "remind" and told[f"Reminder: {text}"] > times:
            yield f"reminder {text!r} was told {told[f'Reminder: {text}']} times"
    ended = rows(home, "SELECT count(*) FROM resets WHERE state = 'done'")[0][0]
    confirmed = sum(count for (verb, _), count in done.items() if verb == "reset")
    if ended < confirmed:
        yield f"{confirmed} resets were confirmed, {ended} ended"
    if rows(home, _UNDER_WAY)[0][0]:
        yield "a reset never ended"


def _wrong_backups(home: Path) -> Iterator[str]:
    folder = BackupFolder(home)
    for backup in folder.list_backups():
        try:
            verify_backup_file(folder.path / backup.name, WriteThrottle(throttled=False))
        except AssistantError as error:
            yield f"backup {backup.name}: {error}"


def _unsound(home: Path) -> Iterator[str]:
    stores = Stores(settings_of(home), datetime.now(UTC))
    try:
        report = stores.verifier.verify()
    finally:
        stores.close()
    yield from (f"verify: {problem.kind} {problem.where}: {problem.text}" for problem in report.problems)
