"""The status of the assistant as plain JSON: what the stores contain, and problems that need a person (I11).

`build_stored_report` needs no running daemon; `DaemonStatus` adds what only the daemon knows, and answers monitors:
whether it is alive, and whether it can serve. With problems, `ok` is False, and the command exits with 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from assistant import __version__
from assistant.core.budget import BudgetStatus
from assistant.core.calendar import SleepSchedule, find_first_message_time
from assistant.core.dataclass import dataclass
from assistant.core.errors import StoreError
from assistant.core.memories import SleepReport
from assistant.core.sessions import session_name
from assistant.core.store_ports import Conversation
from assistant.core.telemetry import Metrics
from assistant.health.problems import StatusSources, find_problems, free_bytes
from assistant.runtime.context_meter import TokenEstimates
from assistant.runtime.context_pressures import ContextPressures
from assistant.runtime.current_models import CurrentModels, model_label
from assistant.runtime.runtime import Runtime
from assistant.service.heartbeat import StallDetector
from assistant.settings.settings import Settings
from assistant.settings.watch import SettingsWatch
from assistant.spending.notices import budget_notes
from assistant.store.home.guard import HomeGuard
from assistant.store.script.usage_parts import NOT_REPORTED

_STALLED_ADVICE = (
    "What was accepted is kept. If this stays, a service manager starts it again; else say `assistant stop`, then "
    "start it."
)


def build_stored_report(settings: Settings, stores: StatusSources, tokens: str, now: datetime) -> dict[str, Any]:
    """Return the status from the stores; `tokens` describes how tokens are counted."""
    free, deliveries = free_bytes(settings.home.path), stores.outbox.count_by_state()
    budget = stores.ledger.budget_status(now)
    return {
        "version": __version__,
        "home": str(settings.home.path),
        "at": now.isoformat(),
        "timezone": settings.zone.key,
        **report_verdict(find_problems(settings, stores, free, deliveries, budget, now)),
        "sessions": _sessions(stores.conversation),
        "waiting": len(stores.conversation.sessions_waiting()),
        "approvals": len(stores.approvals.list_pending()),
        "outbox": dict(deliveries),
        "spent": _spent(settings, stores, budget, now),
        "last_sleep": _last_sleep(stores.journal.list_cycles(limit=1, sleeps_only=True)),
        "next_sleep": _iso(_next_sleep(settings, stores, now)),
        "memory": {"store": settings.values.memory.store, "error": stores.memories.unavailable_reason()},
        "next_due": _iso(stores.jobs.next_due_at()),
        "unattended": stores.unattended(now),
        "backups": _backups(stores),
        "disk_free_bytes": free,
        "tokens": tokens,
    }


@dataclass(frozen=True, slots=True)
class DaemonStatus:
    """Reports on a running daemon. Writes nothing.

    - `bridges` returns the state of each bridge by name.
    - `passed_over` returns what is not, or only partly, searchable.
    - `web` returns where the web API listens, and its problem; None if it is off.
    - `problems` returns further problems that are not in the stores.
    """

    watch: SettingsWatch
    sources: StatusSources
    runtime: Runtime
    progress: StallDetector
    home_guard: HomeGuard
    bridges: Callable[[], Mapping[str, Mapping[str, Any]]]
    passed_over: Callable[[], Sequence[str]]
    models: CurrentModels
    estimates: TokenEstimates
    context_pressures: ContextPressures
    web: Callable[[], Mapping[str, Any] | None]
    problems: Callable[[], list[str]]
    metrics: Metrics
    clock: Callable[[], datetime]
    started_at: datetime

    def report(self) -> dict[str, Any]:
        """Raises `StoreError`."""
        self.watch.check_files()
        now, settings, model = self.clock(), self.watch.settings, self.models.answering
        report = build_stored_report(settings, self.sources, self.estimates.describe(model.name), now)
        # The memory block of a prompt is made anew on another day, and after a sleep.
        state = now.astimezone(settings.zone).date(), self.sources.journal.last_finished_cycle()
        pressures = self.context_pressures.measure(report["sessions"], state)
        report["problems"] += [*self.problems(), *_full_contexts(settings, pressures)]
        report["web"] = self.web()
        report["passed_over"] = list(self.passed_over())
        report["changed_settings"] = self.watch.keys_for_next_start()
        runtime = {
            **self.runtime.status(),
            **self.progress.status(),
            "started_at": self.started_at.isoformat(),
            "uptime_seconds": round((now - self.started_at).total_seconds()),
        }
        return add_daemon_report(report, runtime, self.bridges(), model_label(model), pressures)

    def unattended(self) -> str:
        """Return a line about what waits while nothing will run it; "" if nothing does."""
        return self.sources.unattended(self.clock())

    def stall_reason(self) -> str:
        """Return what makes no progress, as a sentence; "" if all does. A restart fixes it."""
        return self.progress.fault

    def readiness_problems(self) -> list[str]:
        """Return why messages cannot be accepted and answered now, one sentence each; [] if they can."""
        stalled = [self.progress.fault] if self.progress.fault else []
        try:
            self.home_guard.require_writable()
            runtime = self.runtime.status()
        except StoreError as error:
            return [*stalled, str(error)]
        blocked = [str(text) for text in runtime["blocked"].values()]
        trouble = [runtime["trouble"]] if runtime["trouble"] else []
        starting = [] if runtime["last_tick"] else ["The assistant is starting."]
        return list(dict.fromkeys([*stalled, *trouble, *blocked, *starting]))


def _full_contexts(settings: Settings, pressures: Mapping[str, float]) -> list[str]:
    """Return full conversations that are not compacted automatically."""
    if settings.values.compaction.auto:
        return []
    return [
        f"The context of {session_name(session)} is full, and compaction.auto is off. `/compact` makes room."
        for session, pressure in pressures.items()
        if pressure >= settings.values.context.emergency_threshold
    ]


def add_daemon_report(
    report: dict[str, Any],
    runtime: Mapping[str, Any],
    bridges: Mapping[str, Mapping[str, Any]],
    model: str,
    pressures: Mapping[str, float],
) -> dict[str, Any]:
    """Add what only a running daemon knows to `report`, and set `ok`. `pressures` returns how full sessions are."""
    problems = list(report["problems"])
    problems += [runtime["trouble"]] if runtime["trouble"] else []
    problems += [f"{runtime['stalled']} {_STALLED_ADVICE}"] if runtime["stalled"] else []
    blocked = runtime["blocked"].items()
    problems += [f"Conversation {session_name(session)} waits for the disk: {text}" for session, text in blocked]
    problems += _bridge_problems(bridges)
    sessions = [{**session, "pressure": pressures.get(session["session"])} for session in report["sessions"]]
    return {
        **report,
        "model": model,
        "daemon": dict(runtime),
        "bridges": bridges,
        "sessions": sessions,
        **report_verdict(problems),
    }


def report_verdict(problems: list[str]) -> dict[str, Any]:
    # What a start found may still be so, and is found again.
    return {"ok": not problems, "problems": list(dict.fromkeys(problems))}


def _bridge_problems(bridges: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Report problems of bridges; a paused bridge is not a problem."""
    for name, state in bridges.items():
        if not state["ok"] and state.get("state") != "paused":
            kept = f" What waits for it is kept (messages: {state['waiting']:,})." if state.get("waiting") else ""
            yield f"Bridge {name}: {state['error']}{kept} It is retried automatically; `assistant doctor` looks closer."


def _sessions(conversation: Conversation) -> list[dict[str, Any]]:
    # Messages of ended generations that wait for extraction.
    unread_before: Counter[str] = Counter()
    for ended in conversation.list_unread_generations():
        unread_before[ended.key] += ended.unextracted
    return [
        {
            "session": info.key,
            "generation": info.generation,
            "messages": info.messages,
            "in_view": info.view_messages,
            "view_tokens": info.view_tokens,
            "checkpoints": info.checkpoints,
            "unextracted": info.unextracted + unread_before[info.key],
            "last": _iso(info.last_at),
        }
        for info in conversation.list_sessions()
    ]


def _spent(settings: Settings, stores: StatusSources, standing: BudgetStatus, now: datetime) -> dict[str, Any]:
    budget = settings.values.budget
    return {
        "today_usd": round(standing.day.usd, 6),
        "daily_cap_usd": budget.daily_usd,
        "month_usd": round(standing.month.usd, 6),
        "monthly_cap_usd": budget.monthly_usd,
        "today_tokens": standing.day.tokens,
        "token_caps": [
            {"period": cap.unit, "used": cap.used, "most": cap.limit}
            for cap in standing.caps
            if cap.setting.endswith("_tokens")
        ],
        "prompts_today": _prompts(stores, settings, now),
        "notes": budget_notes(standing),
    }


def _prompts(stores: StatusSources, settings: Settings, now: datetime) -> dict[str, dict[str, int]]:
    """Return for each part of today's prompts the tokens read from the provider's cache, written to it, and paid in
    full."""
    today = now.astimezone(settings.zone).replace(hour=0, minute=0, second=0, microsecond=0)
    return {
        name: {"read": it.usage.cache_read, "written": it.usage.cache_write, "full": it.usage.input}
        for name, it in stores.ledger.spent_by("part", today)
        if it.usage.prompt and name != NOT_REPORTED
    }


def _last_sleep(cycles: list[SleepReport]) -> dict[str, Any] | None:
    """Return the newest sleep cycle, and what it saved."""
    if not cycles:
        return None
    last = cycles[0]
    return {
        "id": last.id,
        "trigger": last.trigger,
        "state": last.state,
        "started_at": last.started_at.isoformat(),
        "ended_at": _iso(last.ended_at),
        "entries": last.phases.get("extract", {}).get("written", 0),
        "memories": last.phases.get("consolidate", {}).get("learned", 0),
    }


def _next_sleep(settings: Settings, stores: StatusSources, now: datetime) -> datetime | None:
    """Return when the next night is slept; before `now` if it is due already, None if nights are off."""
    first_message = find_first_message_time(stores.conversation.list_sessions())
    nights = SleepSchedule(settings.values.sleep.at, settings.zone)
    return nights.find_next_night(stores.journal.last_sleep_at(), first_message, now)


def _backups(stores: StatusSources) -> dict[str, Any]:
    try:
        backups = stores.backups.list_backups()
    except StoreError:
        backups = []
    return {"kept": len(backups), "last": _iso(backups[-1].made_at) if backups else None}


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None
