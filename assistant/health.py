"""How the assistant is, as plain JSON: what the stores say, and what needs a person (I11).

`stored` needs no running daemon; the daemon adds what only it knows. Every problem is one line that ends with what to
do. A status with problems is red: `ok` is False and the command exits with 1.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from assistant import __version__
from assistant.backup.plan import overdue
from assistant.backup.values import Backup
from assistant.errors import StoreError
from assistant.memory_ports import Consolidations
from assistant.ports import Conversation, Ledger, Outbox
from assistant.remembered import CycleReport
from assistant.settings import Settings
from assistant.sleep_ports import Breakers, Journal
from sleep.nights import Nights, begun_at

_WRONG = ("error", "warning")
_CYCLES = 100
_MOST_PENDING = 10_000
_LOOKED_FOR = 20
_ENDED = ("done", "failed", "undone")
_LITTLE_DISK = 200 * 1024 * 1024
_STALLED = "What was accepted is kept; a service manager starts it again, else say `assistant stop` and start it."


class Forgettings(Protocol):
    def unfinished(self) -> Sequence[object]:
        """What was begun and not finished. Raises `StoreError` where nobody can tell."""
        ...


class AtHand(Protocol):
    def at_hand(self, memory_ids: Sequence[str]) -> Mapping[str, object]:
        """Those that can be read in this process, by their ids."""
        ...

    def fault(self) -> str:
        """Why none can be read; "" where they can."""
        ...


class BackupsKept(Protocol):
    def all(self) -> Sequence[Backup]:
        """Oldest first. Raises `StoreError` where nobody can tell."""
        ...


@dataclass(frozen=True, slots=True)
class Sources:
    """The stores that tell how a home is."""

    conversation: Conversation
    outbox: Outbox
    ledger: Ledger
    breakers: Breakers
    journal: Journal
    consolidations: Consolidations
    forgetting: Forgettings
    memories: AtHand
    backups: BackupsKept


def stored(settings: Settings, stores: Sources, now: datetime) -> dict[str, Any]:
    """What the home says of itself."""
    conversation, outbox, ledger = stores.conversation, stores.outbox, stores.ledger
    former = _of_ended(conversation)
    local = now.astimezone(settings.zone)
    today = local.replace(hour=0, minute=0, second=0, microsecond=0)
    day, month = ledger.spent(today, now), ledger.spent(today.replace(day=1), now)
    free = shutil.disk_usage(settings.home.path).free
    counts = outbox.counts()
    budget = settings.values.budget
    return {
        "version": __version__,
        "home": str(settings.home.path),
        **verdict(
            [
                *_stored_problems(counts, free, settings),
                *_fuse_problems(stores, settings),
                *_sleep_problems(stores),
                *_night_problems(stores, settings, now),
                *_forgetting_problems(stores),
                *_memory_problems(stores, settings),
                *_backup_problems(stores, settings, now),
                *settings.warnings,
            ]
        ),
        "sessions": [
            {
                "session": info.key,
                "generation": info.generation,
                "messages": info.messages,
                "in_view": info.view_messages,
                "view_tokens": info.view_tokens,
                "checkpoints": info.checkpoints,
                "unextracted": info.unextracted + former[info.key],
                "last": info.last_at.isoformat() if info.last_at else None,
            }
            for info in conversation.sessions()
        ],
        "waiting": len(conversation.waiting()),
        "outbox": dict(counts),
        "spent": {
            "today_usd": round(day.usd, 6),
            "daily_cap_usd": budget.daily_usd,
            "month_usd": round(month.usd, 6),
            "monthly_cap_usd": budget.monthly_usd,
            "today_tokens": day.tokens,
        },
        "disk_free_bytes": free,
    }


def _of_ended(conversation: Conversation) -> Counter[str]:
    """How many messages of ended generations wait to be read for the journal, by session."""
    waiting: Counter[str] = Counter()
    for info in conversation.unread():
        waiting[info.key] += info.unextracted
    return waiting


def _stored_problems(counts: Mapping[Any, int], free: int, settings: Settings) -> list[str]:
    problems = []
    if counts.get("ambiguous"):
        problems.append(
            f"{counts['ambiguous']} deliveries may or may not have arrived; they were not repeated. "
            "`assistant log` shows what was said."
        )
    if counts.get("failed"):
        problems.append(f"{counts['failed']} deliveries failed for good. `assistant log` shows what was said.")
    if free < _LITTLE_DISK:
        problems.append(f"Only {free // 1024**2} MB are free at {settings.home.path}. Make room soon.")
    return problems


def _fuse_problems(stores: Sources, settings: Settings) -> Iterator[str]:
    """What is done without a model because that failed too often."""
    for name, what in (("summary", "Summaries are made"), ("extraction", "The journal is written")):
        fuse = stores.breakers.get(name)
        if fuse.opened_at is not None:
            since = f"{fuse.opened_at.astimezone(settings.zone):%Y-%m-%d %H:%M}"
            yield f"{what} without a model since {since}: {one_line(fuse.last_error)} It is tried again by itself."


def _sleep_problems(stores: Sources) -> Iterator[str]:
    """What went wrong in the last sleep, phase by phase: of a nap those that it has, the rest of the night before."""
    cycles = stores.journal.cycles(limit=_CYCLES)
    phases = _last_phases(cycles)
    unsaved = phases.pop("consolidate", {}).get("error")
    if unsaved:
        waiting = len(stores.consolidations.pending(limit=_MOST_PENDING))
        yield (
            f"What was learned is not in the memory store: {one_line(unsaved)} The journal keeps it (entries "
            f"that wait: {waiting:,}); `assistant sleep` tries again."
        )
    told = [f"{name}: {phase[key]}" for name, phase in phases.items() for key in _WRONG if phase.get(key)]
    if told:
        yield f"The last sleep: {one_line('; '.join(told))} `/sleep` tries again."
    if any(cycle.state == "undoing" for cycle in cycles):
        yield "A sleep is taken back only in part. `assistant sleep --undo` goes on with it."


def _last_phases(cycles: Sequence[CycleReport]) -> dict[str, dict[str, Any]]:
    """Each phase as it was carried out last; `cycles` newest first."""
    phases: dict[str, dict[str, Any]] = {}
    for cycle in cycles:
        phases = {**cycle.phases, **phases}
        if cycle.is_whole and cycle.state in _ENDED:
            break
    return phases


def _night_problems(stores: Sources, settings: Settings, now: datetime) -> Iterator[str]:
    nights = Nights(settings.values.sleep.at, settings.zone)
    missed = nights.missed(stores.journal.slept_at(), begun_at(stores.conversation.sessions()), now)
    if missed is not None:
        night = f"{missed.astimezone(settings.zone):%Y-%m-%d %H:%M}"
        yield (
            f"The night of {night} was missed, and no sleep has come to its end since. Keep `assistant run` running, "
            "or say `assistant sleep`."
        )


def _memory_problems(stores: Sources, settings: Settings) -> Iterator[str]:
    """A memory.db that was lost, lacks some of what it should have, or is another one."""
    if settings.values.memory.store != "local":
        return
    fault = stores.memories.fault()
    if fault:
        yield fault
        return
    planned = {change.memory.id for plan in stores.consolidations.planned() for change in plan.changes}
    known = _sample([one for one in stores.consolidations.memory_ids() if one not in planned])
    there = stores.memories.at_hand(known)
    missing = sum(one not in there for one in known)
    if missing:
        some = "none" if missing == len(known) else f"not all ({missing} of {len(known)} looked for are missing)"
        yield (
            f"memory.db has {some} of the memories that were made; the journal has what they are made of. "
            "`assistant memory rebuild` makes them again."
        )


def _backup_problems(stores: Sources, settings: Settings, now: datetime) -> Iterator[str]:
    """A day without the backup that it should have had, or a folder of backups that is not there."""
    days = Nights(settings.values.backup.at, settings.zone)
    if not days.at:
        return
    try:
        missed = overdue(days, stores.backups.all(), begun_at(stores.conversation.sessions()), now)
    except StoreError as error:
        yield str(error)
        return
    if missed is not None:
        yield (
            f"There is no backup since {missed.astimezone(settings.zone):%Y-%m-%d %H:%M}, when one was due. Keep "
            "`assistant run` running, or say `assistant backup create`."
        )


def _sample(known: Sequence[str]) -> list[str]:
    """Some from the first to the last, evenly spread."""
    steps = min(len(known), _LOOKED_FOR) - 1
    return [known[step * (len(known) - 1) // steps] for step in range(steps + 1)] if steps > 0 else list(known)


def _forgetting_problems(stores: Sources) -> Iterator[str]:
    try:
        if stores.forgetting.unfinished():
            yield (
                "A forgetting is not finished: its words may still stand in some copies. Starting the assistant again "
                "goes on with it."
            )
    except StoreError as error:
        yield str(error)


def one_line(text: str, most: int = 200) -> str:
    """A text as a sentence of a line."""
    line = " ".join(text.split())
    line = line if len(line) <= most else f"{line[: most - 1]}…"
    return line if line.endswith((".", "…")) else f"{line}."


def with_daemon(
    report: dict[str, Any], runtime: Mapping[str, Any], delivery: Mapping[str, Any], model: str
) -> dict[str, Any]:
    """`report` with what only a running daemon knows, and `ok` decided."""
    problems = list(report["problems"])
    problems += [runtime["trouble"]] if runtime["trouble"] else []
    problems += [f"{runtime['stalled']} {_STALLED}"] if runtime["stalled"] else []
    problems += [f"Session {session} waits for the disk: {text}" for session, text in runtime["blocked"].items()]
    problems += [
        f"Bridge {name}: {state['error']} It is tried again by itself."
        for name, state in delivery["bridges"].items()
        if not state["ok"]
    ]
    return {**report, "model": model, "daemon": dict(runtime), "bridges": delivery["bridges"], **verdict(problems)}


def lines(report: Mapping[str, Any]) -> list[str]:
    """The report as a person reads it, a line a subject, what needs them first."""
    spent, changed = report["spent"], report.get("changed_settings")
    running = "running" if report.get("running", "daemon" in report) else "not running"
    return [
        *(f"! {problem}" for problem in report["problems"]),
        *([] if report["problems"] else ["Green: nothing needs you."]),
        f"Nocturne {report['version']} at {report['home']}, {running}",
        *([f"Answering: {report['model']}"] if "model" in report else []),
        *([f"Settings: changed ones take effect at the next start: {', '.join(changed)}"] if changed else []),
        f"Tokens: {report['tokens']}",
        *(f"Bridge {name}: {'ok' if one['ok'] else one['error']}" for name, one in report.get("bridges", {}).items()),
        *(_session_line(one) for one in report["sessions"]),
        f"Waiting: {report['waiting']} sessions; deliveries: {_counted(report['outbox'])}",
        f"Spent: today {_spent(spent['today_usd'], spent['daily_cap_usd'])}, "
        f"this month {_spent(spent['month_usd'], spent['monthly_cap_usd'])}; today {spent['today_tokens']:,} tokens",
        f"Disk: {report['disk_free_bytes'] / 1e9:,.1f} GB free",
    ]


def _session_line(session: Mapping[str, Any]) -> str:
    compacted = f", {session['checkpoints']} compactions" if session["checkpoints"] else ""
    if session["unextracted"]:
        compacted += f", {session['unextracted']:,} messages wait for the next sleep"
    number = f", number {session['generation']}" if session["generation"] > 1 else ""
    return (
        f"Session {session['session']}{number}: {session['messages']:,} messages, {session['in_view']:,} in view "
        f"({session['view_tokens']:,} tokens){compacted}"
    )


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {state}" for state, count in counts.items() if count) or "none"


def _spent(usd: float, cap: float) -> str:
    return f"${usd:.2f} of ${cap:.2f}" if cap else f"${usd:.2f} (no cap)"


def verdict(problems: list[str]) -> dict[str, Any]:
    return {"ok": not problems, "problems": problems}
