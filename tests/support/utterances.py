"""A table of what people say to offline mode, each line with what must hold in the stores and in the answer afterwards.

A line is JSON: `lang`, `kind`, `given` (said before, in this order), `say`, `intent` (what the sentence wants, for the
fit of the weights) and `then`:

- `reminders`: every reminder that waits: `text` (words that it has, whatever their case and accents), `due` (local
  time, or a list of which any is right), `repeat` (null, "daily", "weekly:MO,TU", "monthly:15", "yearly",
  "every N minutes"), `until` (the last day of what repeats; absent where it has none).
- `todos`: every open to-do: `text`, `list` (how its name begins; null is the ordinary one), `due` (a day, null, or a
  list).
- `done`: the words of each to-do that is done. `answer_has`, `answer_lacks`: what the answer says and does not say.
- `cannot`: the answer says plainly that it can't. `kept`: a statement, after which nothing but the message is there.

Where `then` names no store, nothing may be different from what `given` made.

`python -m tests.support.utterances tests/data/utterances/unseen.jsonl.gz` plays the table that nobody builds with, and
prints only how many were right: what was wrong must stay unknown, else it no longer judges. It is not the other half of
`seen.jsonl`, which is part of `developed.jsonl` now: it has the languages and kinds of the lines `d3-*` there. So does
`unseen_imperatives.jsonl.gz`: orders against statements of the same verbs, and timers (146 of 151 when first played).
"""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import sys
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zoneinfo import ZoneInfo

from assistant.core.calendar import utc_to_local
from assistant.core.jobs import Job, RRuleSpec
from assistant.core.records import TodoItem
from assistant.core.text import fold_text
from assistant.models.offline.model import OfflineModel
from tests.support.new_databases import make_new_databases_once
from tests.support.running_app import LiveApp, run_app

TABLES = Path(__file__).parents[1] / "data" / "utterances"
BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 3, 11, 8, 0, tzinfo=UTC)
# Hundreds of homes are opened: where there is a folder in memory, they are there.
_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
_CHANGING = ("reminder_set", "reminder_change", "todo", "cannot", "statement")
_CANNOT = re.compile(r"\b(?:can't|cannot|kann (?:das |ich )?.*nicht|peux pas|no puedo)\b", re.IGNORECASE)
_INTERVALS = {"MINUTELY": "minutes", "HOURLY": "hours", "DAILY": "days", "WEEKLY": "weeks"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was there after a line was said."""

    reminders: tuple[Job, ...]
    todos: tuple[TodoItem, ...]
    answer: str
    messages: int  # in view: what was said, answers, calls and their results


@dataclass(frozen=True, slots=True)
class TableResult:
    """How a table was played."""

    rows: int
    right: int
    shares: str  # right of all, by language and kind
    wrong: tuple[str, ...]  # what was said, what is not as it should be, and the answer
    noted: tuple[str, ...]  # orders that were answered as if they were statements


def read_table(path: Path) -> list[dict[str, Any]]:
    """A packed table too: the half that judges is packed, so that nobody reads it by accident while building."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    return [json.loads(line) for line in text.splitlines()]


async def play_table(path: Path, *, step: int = 1) -> TableResult:
    """Each line in a home of its own; with `step` every so many lines."""
    rows, right = read_table(path)[::step], Counter[str]()
    wrong, noted = [], []
    for row in rows:
        with TemporaryDirectory(dir=_MEMORY) as folder:
            before, after = await play(Path(folder) / "home", row)
        faults = find_faults(row, before, after)
        right.update(_groups(row) if not faults else ())
        if faults:
            said = f"{row['id']} {row['kind']}: {row['say']}"
            wrong.append(f"{said}\n    {'; '.join(faults)}\n    said: {after.answer[:200]!r}")
        if is_order_noted(row, before, after):
            noted.append(row["say"])
    of = Counter(name for row in rows for name in _groups(row))
    shares = ", ".join(f"{name} {right[name]}/{count}" for name, count in of.items())
    return TableResult(len(rows), right["all"], shares, tuple(wrong), tuple(noted))


def _groups(row: dict[str, Any]) -> tuple[str, str, str]:
    return "all", row["lang"], row["kind"]


async def play(home: Path, row: dict[str, Any]) -> tuple[Outcome, Outcome]:
    """Before the utterance and after it, in a home of its own."""
    async with run_app(home, model=OfflineModel(), ASSISTANT_HOME__TIMEZONE="Europe/Berlin") as it:  # type: ignore[arg-type]
        it.clock.now = NOW
        for text in row.get("given", []):
            await _say(it, text)
        before = _look(it)
        await _say(it, row["say"])
        return before, _look(it)


async def after(folder: Path, *sentences: str) -> Outcome:
    """What is there after sentences of one conversation, in a home of its own within the folder."""
    *given, say = sentences
    return (await play(folder / "home", {"given": given, "say": say}))[1]


async def _say(it: LiveApp, text: str) -> None:
    await it.say(text)
    await it.wait_idle()


def _look(it: LiveApp) -> Outcome:
    todos = it.app.stores.todos.list_todos("owner", include_done=True)
    reminders = it.app.agenda.list_reminders("owner")
    answer = it.bridge.bodies[-1] if it.bridge.bodies else ""
    return Outcome(tuple(reminders), tuple(todos), answer, len(it.view_contents()))


def find_faults(row: dict[str, Any], before: Outcome, after: Outcome) -> list[str]:
    """What is not as the line says; empty where all is."""
    then, faults = row["then"], []
    if row["kind"] in _CHANGING and ("reminders" in then or "todos" in then or "done" in then):
        faults += _differences("reminders", then.get("reminders", []), after.reminders, _is_reminder)
        faults += _differences("to-dos", then.get("todos", []), [t for t in after.todos if not t.done], _is_todo)
        done = [{"text": words} for words in then.get("done", [])]
        faults += _differences("done", done, [t for t in after.todos if t.done], _has_words)
    elif [(j.id, j.text, j.due) for j in before.reminders] != [(j.id, j.text, j.due) for j in after.reminders]:
        faults.append("reminders changed")
    elif before.todos != after.todos:
        faults.append("to-dos changed")
    answer = fold_text(after.answer)
    faults += [f"answer lacks {word!r}" for word in then.get("answer_has", []) if fold_text(word) not in answer]
    faults += [f"answer has {word!r}" for word in then.get("answer_lacks", []) if fold_text(word) in answer]
    if then.get("cannot") and not _CANNOT.search(after.answer):
        faults.append("it does not say that it can't")
    if then.get("kept") and "noted" not in after.answer.casefold():
        faults.append("it is not noted")
    return faults


def is_order_noted(row: dict[str, Any], before: Outcome, after: Outcome) -> bool:
    """An order that was answered as if it were a statement: nothing was done, and nothing says that it was not."""
    is_order = row["kind"] in ("reminder_set", "reminder_change", "todo", "cannot")
    idle = (before.reminders, before.todos) == (after.reminders, after.todos)
    return is_order and idle and after.answer.startswith("Noted") and "was changed" not in after.answer


def _differences(what: str, wanted: list[dict[str, Any]], there: Any, fits: Any) -> list[str]:
    left = list(there)
    faults = []
    for row in wanted:
        match = next((item for item in left if fits(row, item)), None)
        if match is None:
            faults.append(f"{what}: missing {row}")
        else:
            left.remove(match)
    return faults + [f"{what}: too many, {item.text!r} {_when(item)}" for item in left]


def _when(item: Any) -> str:
    return f"{as_local(item)} {_repeat_name(item)}" if isinstance(item, Job) else f"{item.list!r} {item.due}"


def _has_words(row: dict[str, Any], item: Any) -> bool:
    return all(fold_text(word) in fold_text(item.text) for word in row["text"])


def _is_reminder(row: dict[str, Any], job: Job) -> bool:
    dues = row["due"] if isinstance(row["due"], list) else [row["due"]]
    repeats = row["repeat"] in (_repeat_name(job), _long_name(job)) and row.get("until") == _last_day(job)
    return _has_words(row, job) and as_local(job) in dues and repeats


def as_local(job: Job) -> str:
    assert job.due is not None
    return utc_to_local(job.due.at, BERLIN).isoformat()[:16]


def waiting(outcome: Outcome) -> list[tuple[str, str]]:
    """Each reminder that waits, with its local time."""
    return sorted((job.text, as_local(job)) for job in outcome.reminders)


def listed(outcome: Outcome) -> list[tuple[str, str, str, bool]]:
    """Each to-do: its text, its list, the day when it is due or "", and whether it is done."""
    return sorted((todo.text, todo.list, (todo.due or "")[:10], todo.done) for todo in outcome.todos)


def _is_todo(row: dict[str, Any], todo: TodoItem) -> bool:
    dues = row["due"] if isinstance(row["due"], list) else [row["due"]]
    lists = fold_text(todo.list).startswith(fold_text(row["list"])) if row["list"] else not todo.list
    return _has_words(row, todo) and lists and ((todo.due or "")[:10] or None) in dues


def _parts(job: Job) -> dict[str, str]:
    if not isinstance(job.spec, RRuleSpec):
        return {}
    return dict(part.split("=") for part in job.spec.rrule.split(";"))


def _repeat_name(job: Job) -> str | None:
    """As the tables name how often."""
    parts = _parts(job)
    if not parts:
        return None
    frequency, days = parts["FREQ"], parts.get("BYDAY", "")
    if frequency in ("MINUTELY", "HOURLY") or parts.get("INTERVAL", "1") != "1":
        return _long_name(job)
    assert job.due is not None
    local = utc_to_local(job.due.at, BERLIN)
    if frequency == "WEEKLY":
        order = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
        return "weekly:" + ",".join(sorted((days or order[local.weekday()]).split(","), key=order.index))
    return {"DAILY": "daily", "MONTHLY": f"monthly:{parts.get('BYMONTHDAY', local.day)}", "YEARLY": "yearly"}[frequency]


def _last_day(job: Job) -> str | None:
    until = _parts(job).get("UNTIL")
    if until is None:
        return None
    return f"{until[:4]}-{until[4:6]}-{until[6:8]}"


def _long_name(job: Job) -> str | None:
    parts = _parts(job)
    unit = _INTERVALS.get(parts.get("FREQ", ""), "")
    return f"every {parts.get('INTERVAL', '1')} {unit}" if unit else None


if __name__ == "__main__":
    make_new_databases_once()
    for name in sys.argv[1:]:
        result = asyncio.run(play_table(Path(name)))
        print(f"{name}: {result.shares}; orders answered as noted: {len(result.noted)}")
