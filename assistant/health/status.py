"""How the assistant is, as plain JSON: what the stores say, and what needs a person (I11).

`build_stored_report` needs no running daemon; `DaemonStatus` adds what only that knows. A report with problems is red:
`ok` is False, and the command exits with 1.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from assistant import __version__
from assistant.core.errors import StoreError
from assistant.core.memories import SleepReport
from assistant.core.store_ports import Conversation
from assistant.gateway.dispatcher import Dispatcher
from assistant.health.problems import StatusSources, find_problems
from assistant.runtime.context_window import ContextWindow
from assistant.runtime.current_models import CurrentModels
from assistant.runtime.model_choice import model_label
from assistant.runtime.runtime import Runtime
from assistant.runtime.token_estimates import TokenEstimates
from assistant.service.heartbeat import StallDetector
from assistant.settings.settings import Settings
from assistant.settings.watch import SettingsWatch
from assistant.spending.notices import budget_notes

_STALLED_ADVICE = (
    "What was accepted is kept; a service manager starts it again, else say `assistant stop` and start it."
)


def build_stored_report(settings: Settings, stores: StatusSources, tokens: str, now: datetime) -> dict[str, Any]:
    """What the stores say; `tokens` says how tokens are counted."""
    free = free_bytes(settings.home.path)
    return {
        "version": __version__,
        "home": str(settings.home.path),
        "at": now.isoformat(),
        "timezone": settings.zone.key,
        **report_verdict(find_problems(settings, stores, free, now)),
        "sessions": _sessions(stores.conversation),
        "waiting": len(stores.conversation.sessions_waiting()),
        "outbox": dict(stores.outbox.count_by_state()),
        "spent": _spent(settings, stores, now),
        "last_sleep": _last_sleep(stores.journal.list_cycles(limit=1)),
        "memory": {"store": settings.values.memory.store, "error": stores.memories.unavailable_reason()},
        "next_due": _iso(stores.jobs.next_due_at()),
        "backups": _backups(stores),
        "disk_free_bytes": free,
        "tokens": tokens,
    }


@dataclass(frozen=True, slots=True)
class DaemonStatus:
    """The whole report of a running daemon."""

    watch: SettingsWatch
    sources: StatusSources
    runtime: Runtime
    progress: StallDetector
    dispatcher: Dispatcher
    models: CurrentModels
    estimates: TokenEstimates
    context_window: ContextWindow
    problems: Callable[[], list[str]]  # what else needs a person, and no store knows
    clock: Callable[[], datetime]
    started_at: datetime

    def report(self) -> dict[str, Any]:
        """Raises `StoreError`."""
        self.watch.check_files()
        now, settings, model = self.clock(), self.watch.settings, self.models.answering
        report = build_stored_report(settings, self.sources, self.estimates.describe(model.name), now)
        measured = ((row["session"], self.context_window.pressure(row["session"])) for row in report["sessions"])
        pressures = {session: pressure for session, pressure in measured if pressure is not None}
        report["problems"] += [*self.problems(), *_full_contexts(settings, pressures)]
        report["changed_settings"] = self.watch.keys_for_next_start()
        runtime = {
            **self.runtime.status(),
            **self.progress.status(),
            "started_at": self.started_at.isoformat(),
            "uptime_seconds": round((now - self.started_at).total_seconds()),
        }
        return add_daemon_report(report, runtime, self.dispatcher.status(), model_label(model), pressures)


def _full_contexts(settings: Settings, pressures: Mapping[str, float]) -> list[str]:
    """Conversations that are full and are not compacted automatically."""
    if settings.values.compaction.auto:
        return []
    return [
        f"The context of {session} is full, and compaction.auto is off. `/compact` makes room."
        for session, pressure in pressures.items()
        if pressure >= settings.values.context.emergency_threshold
    ]


def free_bytes(path: Path) -> int | None:
    """What the file system of a directory has left; None where there is none."""
    try:
        return shutil.disk_usage(path).free
    except OSError:
        return None


def add_daemon_report(
    report: dict[str, Any],
    runtime: Mapping[str, Any],
    delivery: Mapping[str, Any],
    model: str,
    pressures: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """`report` with what only a running daemon knows, and `ok` decided. `pressures` tells how full sessions are."""
    problems = list(report["problems"])
    problems += [runtime["trouble"]] if runtime["trouble"] else []
    problems += [f"{runtime['stalled']} {_STALLED_ADVICE}"] if runtime["stalled"] else []
    problems += [f"Session {session} waits for the disk: {text}" for session, text in runtime["blocked"].items()]
    problems += _bridge_problems(delivery["bridges"])
    full = pressures or {}
    sessions = [{**one, "pressure": full.get(one["session"])} for one in report["sessions"]]
    told = {"model": model, "daemon": dict(runtime), "bridges": delivery["bridges"], "sessions": sessions}
    return {**report, **told, **report_verdict(problems)}


def report_verdict(problems: list[str]) -> dict[str, Any]:
    return {"ok": not problems, "problems": problems}


def _bridge_problems(bridges: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """One that somebody paused is none, whatever ailed it."""
    for name, state in bridges.items():
        if not state["ok"] and state.get("state") != "paused":
            held = f" What waits for it is kept (messages: {state['waiting']:,})." if state.get("waiting") else ""
            yield f"Bridge {name}: {state['error']}{held} It is retried automatically; `assistant doctor` looks closer."


def _sessions(conversation: Conversation) -> list[dict[str, Any]]:
    former = _unread_of_ended_sessions(conversation)
    return [
        {
            "session": info.key,
            "generation": info.generation,
            "messages": info.messages,
            "in_view": info.view_messages,
            "view_tokens": info.view_tokens,
            "checkpoints": info.checkpoints,
            "unextracted": info.unextracted + former[info.key],
            "last": _iso(info.last_at),
        }
        for info in conversation.list_sessions()
    ]


def _unread_of_ended_sessions(conversation: Conversation) -> Counter[str]:
    """How many messages of ended generations wait to be read for the journal, by session."""
    waiting: Counter[str] = Counter()
    for info in conversation.list_unread_generations():
        waiting[info.key] += info.unextracted
    return waiting


def _spent(settings: Settings, stores: StatusSources, now: datetime) -> dict[str, Any]:
    standing, budget = stores.ledger.budget_status(now), settings.values.budget
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
        "notes": budget_notes(standing),
    }


def _last_sleep(cycles: list[SleepReport]) -> dict[str, Any] | None:
    """The newest sleep, and what it saved."""
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


def _backups(stores: StatusSources) -> dict[str, Any]:
    try:
        kept = stores.backups.list_backups()
    except StoreError:
        kept = []
    return {"kept": len(kept), "last": kept[-1].made_at.isoformat() if kept else None}


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None
