"""The report of `assistant status`, as people read it on a screen of 80 columns."""

from __future__ import annotations

from typing import Any

from assistant.cli.status import wrap_status_report
from assistant.health.status import add_daemon_report, report_verdict
from assistant.health.status_text import render_facts, render_lines

STORED: dict[str, Any] = {
    "version": "1.2.3",
    "home": "/srv/ada/assistant",
    "at": "2026-11-20T10:00:00+00:00",
    "timezone": "Europe/Oslo",
    "ok": True,
    "problems": [],
    "sessions": [
        {
            "session": "main",
            "generation": 2,
            "messages": 12_345,
            "in_view": 210,
            "view_tokens": 41_000,
            "checkpoints": 3,
            "unextracted": 0,
            "last": None,
        },
        {
            "session": "room:matrix:!" + "x" * 60,
            "generation": 1,
            "messages": 9,
            "in_view": 9,
            "view_tokens": 400,
            "checkpoints": 0,
            "unextracted": 4,
            "last": None,
        },
    ],
    "waiting": 1,
    "approvals": 0,
    "outbox": {"sent": 12, "pending": 1, "failed": 0},
    "spent": {
        "today_usd": 4.5,
        "daily_cap_usd": 5.0,
        "month_usd": 20.0,
        "monthly_cap_usd": 0.0,
        "today_tokens": 120_000,
        "token_caps": [{"period": "day", "used": 90_000.0, "most": 150_000.0}],
        "notes": ["Today 90% is spent."],
    },
    "last_sleep": {
        "id": 7,
        "trigger": "sleep",
        "state": "done",
        "started_at": "2026-11-20T02:30:00+00:00",
        "ended_at": "2026-11-20T02:31:00+00:00",
        "entries": 12,
        "memories": 1,
    },
    "next_sleep": "2026-11-21T02:30:00+00:00",
    "memory": {"store": "local", "error": ""},
    "next_due": "2026-11-21T08:00:00+00:00",
    "unattended": "",
    "backups": {"kept": 7, "last": "2026-11-20T03:30:00+00:00"},
    "disk_free_bytes": 62_300_000_000,
    "tokens": "characters / 4 x 1.2",
}
RUNTIME = {
    "last_tick": "2026-11-20T09:59:48+00:00",
    "running_turns": 1,
    "waiting_sessions": 1,
    "blocked": {},
    "trouble": "",
    "stalled": "",
    "loop_lag_seconds": 0.0,
    "started_at": "2026-11-17T06:00:00+00:00",
    "uptime_seconds": 273_600,
}
CONNECTED = {
    "ok": True,
    "error": "",
    "state": "connected",
    "since": "2026-11-20T09:00:00+00:00",
    "retry_at": None,
    "waiting": 0,
}
FAILING = {
    "ok": False,
    "error": "Telegram does not know this token.",
    "state": "failing",
    "since": "2026-11-20T09:02:00+00:00",
    "retry_at": "2026-11-20T10:04:00+00:00",
    "waiting": 2,
}
PAUSED = {**FAILING, "state": "paused", "retry_at": None}


def report(**bridges: Any) -> dict[str, Any]:
    return add_daemon_report(STORED, RUNTIME, bridges, "anthropic claude", {"main": 0.314})


def told(found: dict[str, Any]) -> dict[str, str]:
    return dict(render_facts(found))


def test_all_that_is_asked_of_a_home_is_in_its_lines() -> None:
    found = told(report(telegram=CONNECTED))
    assert found["Nocturne"].endswith("running for 3 d 4 h, last activity 12 s ago, 1 answer is being written")
    assert found["Conversation main"] == (
        "number 2, 12,345 messages, 210 shown to the model (41,000 tokens; with tools, instructions and room for the "
        "answer the context is 31% full), 3 compactions"
    )
    assert found["Last sleep"] == "03:30, went well; saved: 12 entries, 1 memory"
    assert found["Next sleep"] == "2026-11-21 03:30"
    late = told({**report(), "next_sleep": "2026-11-20T02:30:00+00:00"})
    assert late["Next sleep"] == "due since 03:30"
    assert found["Next due"] == "2026-11-21 09:00"
    assert found["Backups"] == "7, the last 6 h 30 min ago"
    money, tokens, cap = found["Spent"].split("; ")
    assert money == "today $4.50 of $5.00 (90%), this month $20.00 (no cap)"
    assert (tokens, cap) == ("today 120,000 tokens", "of the day's 150,000 tokens 60%")
    assert found["Budget"] == "Today 90% is spent."
    assert found["Bridge telegram"] == "connected"
    assert render_lines(report())[0] == "Green: nothing needs you."
    asked = render_lines({**report(), "approvals": 2})[0]
    assert asked == "Green; 2 questions wait for your yes or no: `assistant approvals`."


def test_a_bridge_that_fails_is_a_problem_that_says_what_waits_and_what_to_do() -> None:
    found = report(telegram=FAILING, terminal=CONNECTED)
    (line,) = found["problems"]
    assert not found["ok"] and "does not know this token" in line and "messages: 2" in line
    assert "assistant doctor" in line
    assert told(found)["Bridge telegram"] == (
        "failing since 10:02, 2 messages waiting: Telegram does not know this token. Next try 11:04."
    )


def test_f39_a_bridge_that_somebody_paused_is_no_problem_and_is_shown() -> None:
    found = report(telegram=PAUSED)
    assert found["ok"]
    assert told(found)["Bridge telegram"] == "paused since 10:02, 2 messages waiting"


def test_a_home_that_cannot_be_looked_at_is_told_as_such() -> None:
    found = {**report(), "disk_free_bytes": None, **report_verdict(["/srv/ada is away. Bring it back."])}
    assert told(found)["Disk"] == "cannot be read"
    assert render_lines(found)[0] == "! /srv/ada is away. Bring it back."


def test_a_terminal_of_80_columns_is_enough_and_nothing_is_lost_in_it() -> None:
    found = report(telegram=FAILING)
    drawing = list(wrap_status_report(found, 80))
    assert max(len(line) for line in drawing if "xxx" not in line) <= 80
    assert drawing[0] == "Red: 1 thing needs you."
    words = " ".join(" ".join(drawing).split())
    for _, text in render_facts(found):
        assert " ".join(text.split()) in words


def test_what_is_overdue_is_a_problem_and_is_told_once() -> None:
    waits = {"unattended": "1 reminder waits, and nothing runs the assistant.", "next_due": "2026-11-21T08:00:00+00:00"}
    ahead = dict(render_facts({**STORED, **waits}))
    assert (ahead["Next due"], ahead["Unattended"]) == ("2026-11-21 09:00", waits["unattended"])
    overdue = dict(render_facts({**STORED, **waits, "next_due": "2026-11-20T08:00:00+00:00"}))
    assert overdue["Next due"] == "due since 09:00" and "Unattended" not in overdue
