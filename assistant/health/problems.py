"""What needs a person, each in one line that ends with what to do (I11). From the stores alone (`StatusSources`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from assistant.agenda.catch_up import LatenessPolicy
from assistant.agenda.service import find_agenda_problems
from assistant.backup.scheduler import first_missed_backup
from assistant.core.calendar import SleepSchedule, find_first_message_time
from assistant.core.errors import StoreError
from assistant.core.memories import SleepReport
from assistant.core.text import pluralize, shorten_line
from assistant.mem0.client import Mem0Client
from assistant.sessions.scheduler import ResetPolicies, find_reset_problems
from assistant.settings.settings import Settings
from assistant.spending.notices import budget_problems
from assistant.store.backup.folder import BackupFolder
from assistant.store.character.consolidations import StoredConsolidations
from assistant.store.character.journal import StoredJournal
from assistant.store.erasure.store import ErasureStore
from assistant.store.script.conversation import StoredConversation
from assistant.store.script.generations import StoredGenerations, StoredResets
from assistant.store.script.jobs import Jobs
from assistant.store.script.ledger import Ledger
from assistant.store.script.outbox import StoredOutbox
from assistant.store.script.state import CircuitBreakers


@dataclass(frozen=True, slots=True)
class StatusSources:
    """The stores of one data folder that `status` reads."""

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
    generations: StoredGenerations
    resets: StoredResets
    lateness: LatenessPolicy


LOW_DISK_BYTES = 200 * 1024 * 1024
"""With less room than this a sleep, a backup or an upgrade may not come to its end."""
_PROBLEM_KEYS = ("error", "warning")
_CYCLES = 100
_MOST_PENDING = 10_000
_SAMPLE_SIZE = 20
_ENDED = ("done", "failed", "undone")


def find_problems(settings: Settings, stores: StatusSources, free: int | None, now: datetime) -> list[str]:
    """`free` is what the home's file system has left, in bytes; None where it cannot tell."""
    return [
        *_delivery_problems(stores.outbox.count_by_state()),
        *disk_problems(str(settings.home.path), free),
        *budget_problems(stores.ledger.budget_status(now), settings.zone),
        *_breaker_problems(stores, settings),
        *_sleep_problems(stores),
        *_night_problems(stores, settings, now),
        *_forgetting_problems(stores),
        *_memory_problems(stores, settings),
        *backup_problems(stores.backups, stores.conversation, settings, now),
        *settings.warnings,
        *find_reset_problems(
            stores.conversation,
            stores.generations,
            stores.resets,
            ResetPolicies.from_settings(settings.values.reset, settings.zone),
            now,
        ),
        *find_agenda_problems(stores.jobs, stores.lateness, settings.values.daemon.watch_seconds, now),
    ]


def disk_problems(home: str, free: int | None) -> Iterator[str]:
    """A file system with little room, or one that is not there."""
    if free is None:
        yield f"{home} cannot be read. Bring it back (is its disk mounted?); nothing is answered until then."
    elif free < LOW_DISK_BYTES:
        yield (
            f"Only {free // 1024**2} MB are free at {home}; with less than {LOW_DISK_BYTES // 1024**2} MB a sleep or a "
            "backup may not finish. Make room soon."
        )


def _delivery_problems(counts: Mapping[Any, int]) -> Iterator[str]:
    if counts.get("ambiguous"):
        yield (
            f"{pluralize(counts['ambiguous'], 'delivery', 'deliveries')} may or may not have arrived, and nothing was "
            "repeated. `assistant deliveries` shows what, sends it once more, or lets it go."
        )
    if counts.get("failed"):
        yield (
            f"Refused: {pluralize(counts['failed'], 'delivery', 'deliveries')}; nothing is sent again automatically. "
            "`assistant deliveries` shows why, sends it once more, or lets it go."
        )


def _breaker_problems(stores: StatusSources, settings: Settings) -> Iterator[str]:
    """What is done without a model because that failed too often."""
    for name, what in (("summary", "Summaries are made"), ("extraction", "The journal is written")):
        fuse = stores.breakers.get(name)
        if fuse.opened_at is not None:
            since = f"{fuse.opened_at.astimezone(settings.zone):%Y-%m-%d %H:%M}"
            yield (
                f"{what} without a model since {since}: {shorten_to_sentence(fuse.last_error)} It is retried "
                "automatically."
            )


def _sleep_problems(stores: StatusSources) -> Iterator[str]:
    """What went wrong in the last sleep, phase by phase: of a nap those that it has, the rest of the night before."""
    cycles = stores.journal.list_cycles(limit=_CYCLES)
    phases = _last_phases(cycles)
    unsaved = phases.pop("consolidate", {}).get("error")
    if unsaved:
        waiting = len(stores.consolidations.pending_entries(limit=_MOST_PENDING))
        yield (
            f"What was learned is not in the memory store: {shorten_to_sentence(unsaved)} The journal keeps it "
            f"(entries "
            f"that wait: {waiting:,}); `assistant sleep` tries again."
        )
    told = [f"{name}: {phase[key]}" for name, phase in phases.items() for key in _PROBLEM_KEYS if phase.get(key)]
    if told:
        yield f"The last sleep: {shorten_to_sentence('; '.join(told))} `/sleep` tries again."
    if any(cycle.state == "undoing" for cycle in cycles):
        yield "A sleep is only partly undone. `assistant sleep --undo` continues."


def _last_phases(cycles: Sequence[SleepReport]) -> dict[str, dict[str, Any]]:
    """Each phase as it was carried out last; `cycles` newest first."""
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


def _memory_problems(stores: StatusSources, settings: Settings) -> Iterator[str]:
    """A memory.db that was lost, lacks some of what it should have, or is another one."""
    if settings.values.memory.store != "local":
        return
    fault = stores.memories.unavailable_reason()
    if fault:
        yield fault
        return
    planned = {change.memory.id for plan in stores.consolidations.unapplied_plans() for change in plan.changes}
    known = _sample([one for one in stores.consolidations.memory_ids() if one not in planned])
    there = stores.memories.read_locally(known)
    missing = sum(one not in there for one in known)
    if missing:
        some = "none" if missing == len(known) else f"not all ({missing} of {len(known)} looked for are missing)"
        yield (
            f"memory.db has {some} of the memories that were made; the journal has what they are made of. "
            "`assistant memory rebuild` makes them again."
        )


def backup_problems(
    backups: BackupFolder, conversation: StoredConversation, settings: Settings, now: datetime
) -> Iterator[str]:
    """A day without the backup that it should have had, or a folder of backups that is not there."""
    days = SleepSchedule(settings.values.backup.at, settings.zone)
    if not days.at:
        return
    try:
        missed = first_missed_backup(
            days, backups.list_backups(), find_first_message_time(conversation.list_sessions()), now
        )
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
    steps = min(len(known), _SAMPLE_SIZE) - 1
    return [known[step * (len(known) - 1) // steps] for step in range(steps + 1)] if steps > 0 else list(known)


def _forgetting_problems(stores: StatusSources) -> Iterator[str]:
    try:
        if stores.erasure.unfinished_plans():
            yield ("Something that you forgot is not erased everywhere yet. Restart the assistant: it finishes that.")
    except StoreError as error:
        yield str(error)


def shorten_to_sentence(text: str, max_length: int = 200) -> str:
    """A text as a sentence of a line."""
    line = shorten_line(text, max_length)
    return line if line.endswith((".", "…")) else f"{line}."
