"""What a sleep did, would do and had taken back, in words."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from assistant.commands.sleep import (
    render_forecast,
    render_phase,
    render_sleep_progress,
    render_sleep_report,
    render_sleep_undo,
)
from assistant.core.memories import SleepReport
from assistant.core.text import format_duration
from sleep.compaction.values import SummaryEstimate
from sleep.cycle.dry_run import FullSession, SleepForecast, UnreadSession
from sleep.cycle.phase import PhaseResult
from sleep.cycle.undo import SleepUndoResult
from tests.support.sentence_tables import every_case

OSLO = ZoneInfo("Europe/Oslo")
BEGUN = datetime(2026, 11, 20, 2, 30, tzinfo=UTC)
NIGHT = SleepReport(
    7,
    "sleep",
    BEGUN,
    BEGUN + timedelta(minutes=1, seconds=5),
    "done",
    {
        "settle": {"state": "done", "written": 2, "cost_usd": 0.0},
        "extract": {
            "state": "done",
            "read": 1200,
            "written": 14,
            "repeated": 2,
            "calls": 3,
            "cost_usd": 0.01,
            "waiting": 1,
            "rejected": ["not JSON"],
        },
        "score": {"state": "done", "read": 9, "written": 8, "calls": 1, "cost_usd": 0.002},
        "consolidate": {
            "state": "done",
            "read": 14,
            "learned": 9,
            "merged": 2,
            "superseded": 1,
            "junk": 3,
            "calls": 1,
            "cost_usd": 0.003,
            "rejected": ["small talk", "of little importance"],
            "waiting": 4,
        },
        "curate": {"state": "done", "read": 14, "notes": 1, "profiles": 2, "curated": 1, "cost_usd": 0.0},
        "compact": {
            "state": "done",
            "read": 2,
            "cost_usd": 0.02,
            "compacted": {
                "main": {
                    "messages": 45,
                    "tier": "full",
                    "tokens_before": 62_000,
                    "tokens_after": 18_000,
                    "cost_usd": 0.02,
                    "checkpoints": [3],
                }
            },
        },
    },
)


def say(report: SleepReport | None) -> str:
    return render_sleep_report(report, OSLO, BEGUN + timedelta(hours=1))


def only(name: str, **phase: Any) -> SleepReport:
    return replace(NIGHT, phases={name: {"state": "done", "cost_usd": 0.0, **phase}})


def test_a_night_is_told_in_the_zone_of_the_home_a_line_for_each_thing() -> None:
    assert say(NIGHT).splitlines() == [
        "Sleep 7 (night), 2026-11-20 03:30, 1 min 5 s: all went well.",
        "- Compactions: 2 entries were written into the journal.",
        "- Read: 1,200 messages; 14 entries for the journal, 2 known already.",
        "- Not taken from a model's answer: not JSON.",
        "- Left for the next sleep: 1 session not read to the end.",
        "- Weighed: 8 of 9 uncertain entries.",
        "- Remembered: 9 new memories from 14 entries; 2 merged with known ones, 1 replaced by newer ones, 3 rejected "
        "as junk (small talk; of little importance).",
        "- Left for the next sleep: 4 entries that are no memories yet.",
        "- Written: the notes of 1 day, 2 profiles, MEMORY.md.",
        "- Summarised by the model: 45 messages of main, 62,000 tokens became 18,000.",
        "- Spent: $0.0350 in 5 calls.",
    ]


def test_there_was_none_yet() -> None:
    assert say(None) == "No sleep yet."


@every_case(
    [
        ("running", "manual", "(manual), 2026-11-20 03:30, 1 h 0 min: still running"),
        ("interrupted", "late", "(night, late), 2026-11-20 03:30: cut off; the next one continues"),
        ("undone", "nap", "(nap), 2026-11-20 03:30: undone"),
        ("failed", "phase", "(one phase), 2026-11-20 03:30: not all went well"),
    ]
)
def test_how_it_began_and_how_it_ended_is_told(state: Any, trigger: str, words: str) -> None:
    assert words in say(replace(NIGHT, ended_at=None, state=state, trigger=trigger))


@every_case(["error", "warning", "model", "budget"])
def test_whatever_went_wrong_is_told(key: str) -> None:
    assert say(only("extract", **{key: "no route to host"})).splitlines()[-1] == "- ! reading: no route to host"


def test_one_reason_of_several_phases_is_one_line_and_not_called_well() -> None:
    phases = {name: {"state": "done", "budget": "The budget is used up"} for name in ("extract", "score")}
    told = say(replace(NIGHT, phases=phases)).splitlines()
    assert told[0].endswith(": done, in part by rules, without a model.")
    assert told[-1] == "- ! reading, weighing: The budget is used up"


def test_of_one_secret_and_of_two_it_is_told_how_to_see_them() -> None:
    assert "It is remembered; ask for it by its name" in say(only("curate", secrets=1))
    assert "They are remembered; ask for them by their names" in say(only("curate", secrets=2))


def test_where_nothing_was_done_that_is_told() -> None:
    assert say(only("extract")).splitlines()[1:] == [
        "- There was nothing to do.",
        "- Spent: nothing; no model was asked.",
    ]


@every_case(
    [
        ([None], "no known price in 2 calls."),
        ([0.5, None], "at least $0.5000 (not every price is known) in 2 calls."),
        ([0.0, 0.0], "$0.0000 in 2 calls."),
        ([0.25, 0.25], "$0.5000 in 2 calls."),
    ]
)
def test_a_cost_that_is_not_known_is_not_told_as_nothing(costs: list[float | None], words: str) -> None:
    phases = {str(number): {"state": "done", "cost_usd": cost} for number, cost in enumerate(costs)}
    phases["0"]["calls"] = 2
    assert f"- Spent: {words}" in say(replace(NIGHT, phases=phases))


def test_every_phase_that_failed_before_it_told_anything_can_be_told() -> None:
    for name in NIGHT.phases:
        assert "! " in say(replace(NIGHT, phases={name: {**PhaseResult(errors=["gone"]).as_json()}}))
        assert render_phase(name, {}) == []


def test_while_it_goes_on_a_line_says_where_it_is() -> None:
    now = BEGUN + timedelta(seconds=12)
    running = replace(NIGHT, state="running", phases={})
    assert render_sleep_progress(running, now) == "Falling asleep (12 s)"
    running = replace(running, phases={"settle": {}, "extract": {"state": "running", "read": 240, "written": 12}})
    assert render_sleep_progress(running, now) == "Reading: Read: 240 messages; 12 entries for the journal (12 s)"
    assert "240 messages; 12 entries for the journal. (running)" in say(running)


@every_case([(0.2, "0 s"), (59.4, "59 s"), (60, "1 min 0 s"), (7260, "2 h 1 min")])
def test_durations(seconds: float, words: str) -> None:
    assert format_duration(seconds) == words


# ------------------------------------------------------------------------------------------------------------- foreseen

NOTHING = SleepForecast((), 0, 0, 0, (), "", 0, 0, 0.0)


def test_what_a_sleep_would_do_is_told_with_its_price() -> None:
    full = FullSession("main", 0.62, 99_000, 30_000, SummaryEstimate("haiku", 2, 60_000, 2_000, 0.03))
    found = SleepForecast((UnreadSession("main", 120, 3, 9_000),), 7, 2, 1, (full,), "haiku", 7, 70_000, 0.0456)
    assert render_forecast(found).splitlines() == [
        "Nothing was changed. A sleep would find now:",
        "- main: 120 messages to read, about 3 calls and 9,000 tokens.",
        "- 7 journal entries to remember, 2 of them to be weighed.",
        "- 1 batch of changes to finish, decided on by an earlier sleep.",
        "- main to compact: it takes 62% of the context; 99,000 tokens would become about 30,000.",
        "- About 7 calls of haiku, 70,000 tokens in: about $0.0456.",
    ]
    assert "no known price" in render_forecast(replace(found, usd=None))
    refused = "The daily budget is used up: $5.00 of $5.00."
    told = render_forecast(replace(found, refused=refused)).splitlines()[-1]
    assert told == f"- {refused} The rules would do it, without a model."


def test_where_nothing_waits_that_is_foreseen() -> None:
    assert render_forecast(NOTHING) == "A sleep would find nothing to do now. Nothing was changed."
    assert "it costs nothing" in render_forecast(replace(NOTHING, pending=1))


# ----------------------------------------------------------------------------------------------------------- taken back


def test_what_was_taken_back_and_what_was_left_is_told() -> None:
    edits = ("profile:1", "profile:2", "file:MEMORY.md", "file:memory/2026-11-20.md", "file:memory/2026-11-20.md")
    done = SleepUndoResult(NIGHT, 3, 1, edits, ("main",), ("peer:x:ann: it was compacted again since",))
    assert render_sleep_undo(done, OSLO).splitlines() == [
        "Undid sleep 7 of 2026-11-20 03:30.",
        "- Memories: 3 changes undone.",
        "- Journal: 1 entry set aside: they are kept, but no memories are made of them.",
        "- None of it is learned again from what was said, not by `assistant memory rebuild --from-log` either; what "
        "is said again is.",
        "- Profiles: 2 changes undone.",
        "- Files restored: MEMORY.md, memory/2026-11-20.md.",
        "- Compaction of main undone.",
        "- ! Left as it is: peer:x:ann: it was compacted again since",
    ]
