"""Problems that need a person, each on one line that ends with what to do (I11). Found from the stores alone
(`StatusSources`)."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from assistant.core.budget import BudgetStatus
from assistant.core.calendar import SleepSchedule, find_first_message_time
from assistant.core.dataclass import dataclass
from assistant.core.errors import StoreError
from assistant.core.memories import PHASE_NAMES, SleepReport
from assistant.core.records import OutboxState
from assistant.core.text import pluralize, shorten_line
from assistant.mem0.client import Mem0Client
from assistant.settings.settings import Settings
from assistant.spending.notices import budget_problems
from assistant.store.backup.folder import BackupFolder
from assistant.store.character.consolidations import StoredConsolidations
from assistant.store.character.journal import StoredJournal
from assistant.store.derived import MEMORY_DB, is_set_aside, remake_problems
from assistant.store.erasure.store import ErasureStore
from assistant.store.home.guard import find_special_files
from assistant.store.script.approvals import StoredApprovals
from assistant.store.script.conversation import StoredConversation
from assistant.store.script.jobs import Jobs
from assistant.store.script.ledger import Ledger
from assistant.store.script.outbox import StoredOutbox
from assistant.store.script.usage import CircuitBreakers

# Returns problems at a given time, one line each.
FindProblems = Callable[[datetime], Iterable[str]]


@dataclass(frozen=True, slots=True)
class StatusSources:
    """The stores of a data folder that `status` reads."""

    conversation: StoredConversation
    outbox: StoredOutbox
    ledger: Ledger
    breakers: CircuitBreakers
    journal: StoredJournal
    consolidations: StoredConsolidations
    erasure: ErasureStore
    memories: Mem0Client
    backups: BackupFolder
    jobs: Jobs
    approvals: StoredApprovals
    unattended: Callable[[datetime], str]  # a line about what waits while nothing will run it; "" otherwise
    finders: Sequence[FindProblems]  # problems reported by other packages: backups, resets, the agenda


LOW_DISK_BYTES = 200 * 1024 * 1024
"""With less room than this a sleep, a backup or an upgrade may not come to its end."""
_PROBLEM_KEYS = ("error", "warning")
_CYCLES = 100
_MOST_PENDING = 10_000
_SAMPLE_SIZE = 20
_ENDED = ("done", "failed", "undone")


def find_problems(
    settings: Settings,
    stores: StatusSources,
    free: int | None,
    deliveries: Mapping[OutboxState, int],
    budget: BudgetStatus,
    now: datetime,
) -> list[str]:
    """Return the problems; `free` is the free space of the data folder's file system in bytes, None if unknown, and
    `deliveries` their number by state."""
    return [
        *_delivery_problems(deliveries),
        *disk_problems(str(settings.home.path), free),
        *budget_problems(budget, settings.zone),
        *_breaker_problems(stores, settings),
        *_sleep_problems(stores),
        *_night_problems(stores, settings, now),
        *find_missing_key(settings),
        *_forgetting_problems(stores),
        *remake_problems(settings.home.path),
        *_special_file_problems(settings.home.path),
        *_memory_problems(stores, settings),
        *(problem for find in stores.finders for problem in find(now)),
        *settings.warnings,
    ]


def free_bytes(path: Path) -> int | None:
    """Return the free space of the file system of a directory; None if it does not exist."""
    try:
        return shutil.disk_usage(path).free
    except OSError:
        return None


def disk_problems(home: str, free: int | None) -> Iterator[str]:
    """Report a file system that is nearly full, or missing."""
    if free is None:
        yield f"{home} cannot be read. Bring it back (is its disk mounted?); nothing is answered until then."
    elif free < LOW_DISK_BYTES:
        yield (
            f"Only {free // 1024**2} MB are free at {home}; with less than {LOW_DISK_BYTES // 1024**2} MB a sleep or a "
            "backup may not finish. Make room soon."
        )


def _special_file_problems(home: Path) -> Iterator[str]:
    """Report what took the place of a file. Others report a data folder that is missing, and memory.db."""
    with suppress(StoreError):
        yield from (line for line in find_special_files(home) if not line.startswith(f"{MEMORY_DB} "))


def _delivery_problems(counts: Mapping[OutboxState, int]) -> Iterator[str]:
    if counts.get("ambiguous"):
        yield (
            f"{pluralize(counts['ambiguous'], 'delivery', 'deliveries')} may or may not have arrived, and nothing was "
            "repeated. `assistant deliveries` shows what, sends it again or discards it."
        )
    if counts.get("failed"):
        yield (
            f"Refused: {pluralize(counts['failed'], 'delivery', 'deliveries')}; nothing is sent again automatically. "
            "`assistant deliveries` shows why, sends it again or discards it."
        )


def _breaker_problems(stores: StatusSources, settings: Settings) -> Iterator[str]:
    """Report what is done without a model because it failed too often."""
    for name, what in (("summary", "Summaries are made"), ("extraction", "The journal is written")):
        breaker = stores.breakers.get(name)
        if breaker.opened_at is not None:
            since = f"{breaker.opened_at.astimezone(settings.zone):%Y-%m-%d %H:%M}"
            yield (
                f"{what} without a model since {since}: {_shorten_to_sentence(breaker.last_error)} It is retried "
                "automatically."
            )


def _sleep_problems(stores: StatusSources) -> Iterator[str]:
    """Report failures of the last sleep cycle by phase: the phases of a nap, the others of the night before."""
    cycles = stores.journal.list_cycles(limit=_CYCLES)
    phases = _last_phases(cycles)
    unsaved = phases.pop("consolidate", {}).get("error")
    if unsaved:
        waiting = len(stores.consolidations.pending_entries(limit=_MOST_PENDING))
        yield (
            f"What was learned is not in the memory store: {_shorten_to_sentence(unsaved)} The journal keeps it "
            f"({pluralize(waiting, 'entry waits', 'entries wait')}); `assistant sleep` tries again."
        )
    errors = [
        f"{PHASE_NAMES.get(name, name)}: {phase[key]}"
        for name, phase in phases.items()
        for key in _PROBLEM_KEYS
        if phase.get(key)
    ]
    if errors:
        yield f"The last sleep: {_shorten_to_sentence('; '.join(errors))} `/sleep` tries again."
    if any(cycle.state == "undoing" for cycle in cycles):
        yield "A sleep is only partly undone. `assistant sleep --undo` continues."


def _last_phases(cycles: Sequence[SleepReport]) -> dict[str, dict[str, Any]]:
    """Return the last run of each phase; `cycles` are newest first."""
    phases: dict[str, dict[str, Any]] = {}
    for cycle in cycles:
        phases = {**cycle.phases, **phases}
        if cycle.is_full_cycle and cycle.state in _ENDED:
            break
    return phases


def _night_problems(stores: StatusSources, settings: Settings, now: datetime) -> Iterator[str]:
    nights = SleepSchedule(settings.values.sleep.at, settings.zone)
    missed = nights.find_missed_night(
        stores.journal.last_sleep_at(), find_first_message_time(stores.conversation.list_sessions()), now
    )
    if missed is not None:
        night = f"{missed.astimezone(settings.zone):%Y-%m-%d %H:%M}"
        yield (
            f"The night of {night} was missed, and no sleep has come to its end since. Keep `assistant run` running, "
            "or say `assistant sleep`."
        )


def find_missing_key(settings: Settings) -> Iterator[str]:
    """Report that the chosen provider lacks its key."""
    has_none = {
        "anthropic": not settings.anthropic_key.get_secret_value(),
        "openai": not (settings.openai_key.get_secret_value() or settings.openai_url),
    }
    if has_none.get(settings.provider):
        store_it = f"`assistant config secret set {settings.provider.upper()}_API_KEY` stores one."
        yield f"The model cannot be asked: {settings.provider} has no key. {store_it}"


def _memory_problems(stores: StatusSources, settings: Settings) -> Iterator[str]:
    """Report a memory.db that was lost, is incomplete, or was replaced."""
    if settings.values.memory.store != "local":
        return
    fault = stores.memories.unavailable_reason()
    if fault:
        yield fault
    if fault or is_set_aside(settings.home.path / MEMORY_DB):
        return
    planned = {change.memory.id for plan in stores.consolidations.unapplied_plans() for change in plan.changes}
    memory_ids = [it for it in stores.consolidations.sample_memory_ids(_SAMPLE_SIZE) if it not in planned]
    present = stores.memories.read_locally(memory_ids)
    missing = sum(memory not in present for memory in memory_ids)
    if missing:
        count = f"{missing} of {len(memory_ids)}"
        some = "none" if missing == len(memory_ids) else f"not all ({count} looked for are missing)"
        yield (
            f"memory.db has {some} of the memories that were made; the journal has what they are made of. "
            "`assistant memory rebuild` makes them again."
        )


def _forgetting_problems(stores: StatusSources) -> Iterator[str]:
    try:
        if stores.erasure.unfinished_plans():
            yield "Something that you forgot is not erased everywhere yet. Restart the assistant: it finishes that."
    except StoreError as error:
        yield str(error)


def _shorten_to_sentence(text: str) -> str:
    """Shorten a text to one sentence."""
    line = shorten_line(text, 200)
    return line if line.endswith((".", "…")) else f"{line}."
