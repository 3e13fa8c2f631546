"""Formats a status report for people: problems first, then one line per subject. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from assistant.core.budget import format_usd
from assistant.core.sessions import session_name
from assistant.core.text import format_duration, pluralize

_ALL_GOOD = "Green: nothing needs you."
# Words for delivery states; sent and dropped need none.
_UNDELIVERED = {
    "pending": "to be sent",
    "sending": "being sent",
    "ambiguous": "that may not have arrived",
    "failed": "that could not be delivered",
    "withheld": "held back",
}
_SLEEPS = {
    "running": "under way",
    "done": "went well",
    "failed": "did not go well",
    "interrupted": "was cut off",
    "undoing": "is being undone",
    "undone": "was undone",
}
_SHOWN = 5


def render_lines(report: Mapping[str, Any]) -> list[str]:
    """Format line by line, where columns cannot be aligned."""
    return [
        *(f"! {problem}" for problem in report["problems"]),
        *([] if report["problems"] else [render_good(report)]),
        *(f"{name}: {text}" for name, text in render_facts(report)),
    ]


def render_good(report: Mapping[str, Any]) -> str:
    """The first line where there is no problem."""
    asked = pluralize(report["approvals"], "question waits", "questions wait")
    return f"Green; {asked} for your yes or no: `assistant approvals`." if report["approvals"] else _ALL_GOOD


def render_facts(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (subject, text) in reading order."""
    times, changed = _TimeFormatter(report), report.get("changed_settings")
    return [
        ("Nocturne", f"{report['version']} at {report['home']}, {_running(report, times)}"),
        *([("Model", report["model"])] if "model" in report else []),
        *([("Settings", f"changed ones take effect at the next start: {', '.join(changed)}")] if changed else []),
        *((f"Bridge {name}", _bridge(bridge, times)) for name, bridge in report.get("bridges", {}).items()),
        *([("Web API", report["web"]["address"] or "does not listen")] if report.get("web") else []),
        *((f"Conversation {session_name(session['session'])}", _session(session)) for session in report["sessions"]),
        ("Waiting", _waiting(report["waiting"], report["outbox"])),
        *_stored(report, times),
        *(("Search", text) for text in _first(report.get("passed_over", ()))),
        ("Spent", _spent(report["spent"])),
        *([("Prompts", _prompts(parts))] if (parts := report["spent"].get("prompts_today")) else []),
        *(("Budget", note) for note in report["spent"]["notes"]),
        ("Disk", _disk(report["disk_free_bytes"])),
    ]


def _first(texts: Sequence[str]) -> Iterator[str]:
    yield from texts[:_SHOWN]
    if more := texts[_SHOWN:]:
        yield f"{len(more):,} more are found in part or not at all"


class _TimeFormatter:
    """Formats times relative to the report, in the zone of the data folder."""

    def __init__(self, report: Mapping[str, Any]) -> None:
        self._at = datetime.fromisoformat(report["at"])
        self._zone = ZoneInfo(report["timezone"])

    def ago(self, iso: str) -> str:
        return f"{format_duration((self._at - datetime.fromisoformat(iso)).total_seconds())} ago"

    def clock(self, iso: str) -> str:
        """Format a time, with its day if that differs."""
        then, now = datetime.fromisoformat(iso).astimezone(self._zone), self._at.astimezone(self._zone)
        return f"{then:%H:%M}" if then.date() == now.date() else f"{then:%Y-%m-%d %H:%M}"

    def upcoming(self, iso: str) -> str:
        """Format when something comes that may be overdue."""
        return f"due since {self.clock(iso)}" if self.is_past(iso) else self.clock(iso)

    def is_past(self, iso: str) -> bool:
        return datetime.fromisoformat(iso) <= self._at


def _running(report: Mapping[str, Any], times: _TimeFormatter) -> str:
    if not report.get("running", "daemon" in report):
        return "not running"
    daemon = report.get("daemon", {})
    words = ["running"]
    if daemon.get("uptime_seconds") is not None:
        words = [f"running for {format_duration(daemon['uptime_seconds'])}"]
    if daemon.get("last_tick"):
        words.append(f"last activity {times.ago(daemon['last_tick'])}")
    if daemon.get("running_turns"):
        words.append(pluralize(daemon["running_turns"], "answer is being written", "answers are being written"))
    return ", ".join(words)


def _bridge(bridge: Mapping[str, Any], times: _TimeFormatter) -> str:
    # A connected bridge may still fail to send.
    is_failing = not bridge["ok"] and bridge["state"] in ("connected", "failing")
    words = "failing" if is_failing else bridge["state"]
    if words != "connected":
        words += f" since {times.clock(bridge['since'])}"
    if bridge["waiting"]:
        words += f", {pluralize(bridge['waiting'], 'message')} waiting"
    if not is_failing:
        return words
    again = f" Next try {times.clock(bridge['retry_at'])}." if bridge["retry_at"] else ""
    return f"{words}: {bridge['error']}{again}"


def _session(session: Mapping[str, Any]) -> str:
    number = f"number {session['generation']}, " if session["generation"] > 1 else ""
    room = "with tools, instructions and room for the answer"
    full = f"; {room} the context is {session['pressure']:.0%} full" if session.get("pressure") is not None else ""
    compacted = f", {pluralize(session['checkpoints'], 'compaction')}" if session["checkpoints"] else ""
    if session["unextracted"]:
        compacted += f", {pluralize(session['unextracted'], 'message')} for the next sleep to read"
    return (
        f"{number}{pluralize(session['messages'], 'message')}, {session['in_view']:,} shown to the model "
        f"({session['view_tokens']:,} tokens{full}){compacted}"
    )


def _stored(report: Mapping[str, Any], times: _TimeFormatter) -> Iterator[tuple[str, str]]:
    """Report what was learned, what is scheduled, and duplicates."""
    slept = report["last_sleep"]
    if slept:
        saved = (
            f"{pluralize(slept['entries'], 'entry', 'entries')}, {pluralize(slept['memories'], 'memory', 'memories')}"
        )
        yield "Last sleep", f"{times.clock(slept['started_at'])}, {_SLEEPS[slept['state']]}; saved: {saved}"
    else:
        yield "Last sleep", "none yet"
    if report["next_sleep"]:
        yield "Next sleep", times.upcoming(report["next_sleep"])
    yield "Memory", f"{report['memory']['store']}, {'cannot be read' if report['memory']['error'] else 'ok'}"
    if report["next_due"]:
        yield "Next due", times.upcoming(report["next_due"])
    # What is overdue is a problem above.
    if report["unattended"] and not (report["next_due"] and times.is_past(report["next_due"])):
        yield "Unattended", report["unattended"]
    last = report["backups"]["last"]
    yield "Backups", f"{report['backups']['kept']}, the last {times.ago(last)}" if last else "none"


def _waiting(conversations: int, outbox: Mapping[str, int]) -> str:
    """Report what waits to be answered or delivered."""
    answers = f"{pluralize(conversations, 'conversation')} for an answer" if conversations else ""
    sends = [f"{outbox[state]:,} {words}" for state, words in _UNDELIVERED.items() if outbox.get(state)]
    return "; ".join(filter(None, [answers, ", ".join(sends)])) or "nothing"


def _spent(spent: Mapping[str, Any]) -> str:
    capped = "".join(
        f"; of the {cap['period']}'s {cap['most']:,.0f} tokens {cap['used'] / cap['most']:.0%}"
        for cap in spent["token_caps"]
    )
    return (
        f"today {_of_cap(spent['today_usd'], spent['daily_cap_usd'])}, "
        f"this month {_of_cap(spent['month_usd'], spent['monthly_cap_usd'])}; today {spent['today_tokens']:,} tokens"
        f"{capped}"
    )


def _prompts(parts: Mapping[str, Mapping[str, int]]) -> str:
    """Report how today's prompts were paid, and their largest part."""
    sums = {kind: sum(part[kind] for part in parts.values()) for kind in ("read", "written", "full")}
    whole, most = sum(sums.values()), max(parts, key=lambda name: sum(parts[name].values()))
    return (
        f"today {whole:,} tokens: {sums['read'] / whole:.0%} read from the provider's cache, "
        f"{sums['written'] / whole:.0%} written to it, {sums['full'] / whole:.0%} at the full price; most of them "
        f"{most} ({sum(parts[most].values()) / whole:.0%}; `assistant usage --by part`)"
    )


def _of_cap(usd: float, cap: float) -> str:
    return f"{format_usd(usd)} of {format_usd(cap)} ({usd / cap:.0%})" if cap else f"{format_usd(usd)} (no cap)"


def _disk(free: int | None) -> str:
    return "cannot be read" if free is None else f"{free / 1e9:,.1f} GB free"
