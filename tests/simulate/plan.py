"""What happens in a simulated life, drawn from a seed before it begins: a list of events, in which any may be left out.

No event depends on what the program did, so that the same list is the same life, and a shorter list a shorter one.
Times are seconds since the beginning, by a clock that nobody sets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

from tests.simulate.words import ITEMS, TASKS, make_key, make_remark, make_word

ZONE = ZoneInfo("Europe/Oslo")
# A month has the change to summer time in it, a year both changes.
BEGAN = datetime(2026, 3, 5, tzinfo=ZONE)
MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happens. `values` is what its kind needs (see `life.py`)."""

    number: int
    at: float
    kind: str
    values: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        said = ", ".join(f"{name}={value!r}" for name, value in self.values.items())
        when = (BEGAN.astimezone(ZoneInfo("UTC")) + timedelta(seconds=self.at)).astimezone(ZONE)
        return f"{self.number:5} {when:%a %Y-%m-%d %H:%M:%S} {self.kind} {said}".rstrip()


# Somebody's words are sent from one of these places.
PLACES = {"owner": ("alpha", "beta"), "ann": ("alpha",), "ivo": ("beta",), "room": ("alpha",)}

_OWNERS = {
    "remark": 36, "tell": 22, "ask": 13, "correct": 7, "remind": 6, "todo": 4, "edit": 3, "delete": 1, "file": 2,
    "long": 2, "command": 6, "again": 2,
}  # fmt: skip
_GUESTS = {"remark": 40, "tell": 30, "ask": 20, "remind": 6, "edit": 3, "command": 3, "again": 2}
_COMMANDS = (
    "/status", "/agenda", "/todo", "/usage", "/help", "/pins add The dog is allergic to chicken", "/pins",
    "/remind list", "/memory list", "/sessions", "/requests", "/remind call mum --at \"tomorrow at 9\"",
    "/todo buy lamp oil", "/deliveries", "/backup list", "/people list",
)  # fmt: skip
_GUEST_COMMANDS = ("/help", "/agenda", "/todo", "/remind list", "/status")
# What happens on a day beside what is said, and how likely it is.
_RARE = {
    "compact": 0.05, "reset": 0.02, "undo": 0.03, "branch": 0.01, "forget": 0.04, "memory_edit": 0.02, "backup": 0.02,
    "sleep": 0.03, "stranger": 0.02, "restart": 0.05, "settings": 0.04, "crash": 0.08, "off": 0.015,
    "model_down": 0.03, "bridge_down": 0.05, "unsure": 0.03, "disk_full": 0.03, "memory_down": 0.02, "jump": 0.02,
    "suspend": 0.015, "schedule": 0.02,
}  # fmt: skip
_SETTINGS = {
    "CONTEXT__MAX_CONTEXT_TOKENS": ("12000", "16000", "24000", "40000"),
    "COMPACTION__STRATEGY": ("hybrid", "summary", "mask", "sliding_window", "deletion", "selective"),
    "RESET__MAIN": ("manual", "daily", "idle"),
    "RESET__GUEST": ("manual", "daily"),
    "TURN__ON_MESSAGE": ("wait", "steer"),
    "BUDGET__DAILY_USD": ("5", "0.5"),
    "AGENDA__QUIET": ("", "22:00-07:00"),
    "AGENDA__CATCH_UP": ("once", "all", "skip"),
    "SLEEP__NAP_MINUTES": ("15", "0"),
    "MEMORY__RECALL_MAX_TOKENS": ("400", "0"),
}
_WHEN = (
    "tomorrow at 9:00",
    "in 3 hours",
    "in 20 minutes",
    "on friday at 18:30",
    "in two days at 7:45",
    "tomorrow at 2:30",
)
_DAILY = ("every day at 8:15", "every weekday at 7:45", "every day at 2:30", "every monday at 20:00")


def plan_life(seed: int, days: int) -> list[Event]:
    """In order of time. Of more days it begins alike."""
    plan = _Plan(seed, days)
    drawn = sorted(plan.draw(), key=lambda event: event[0])
    return [Event(number, at, kind, values) for number, (at, kind, values) in enumerate(drawn, 1)]


def seconds_at(day: date, at: time) -> float:
    """Since the beginning, of a time by the clock on the wall."""
    return datetime.combine(day, at, ZONE).timestamp() - BEGAN.timestamp()


class _Plan:
    def __init__(self, seed: int, days: int) -> None:
        self._seed = seed
        self._luck = Random(f"life {seed}")
        self._days = days
        self._known: dict[str, list[str]] = {scope: [] for scope in PLACES}  # keys that were told
        self._used: set[str] = set()

    def _is_away(self, week: int) -> bool:
        """In some weeks nobody has time."""
        return week > 5 and Random(f"{self._seed} week {week}").random() < 0.05

    def draw(self) -> Iterator[tuple[float, str, dict[str, Any]]]:
        for number in range(self._days):
            day = BEGAN.date() + timedelta(days=number)
            yield from self._talk(day, away=self._is_away(number // 7))
            yield from self._rare(day, first=number == 0)

    # ----------------------------------------------------------------------------------------------------- what is said

    def _talk(self, day: date, *, away: bool) -> Iterator[tuple[float, str, dict[str, Any]]]:
        luck = self._luck
        weekend = day.weekday() >= 5
        hours = ((10, 0.6, 5), (20, 0.7, 9)) if weekend else ((7, 0.6, 4), (12, 0.5, 4), (19, 0.8, 8), (23, 0.15, 5))
        for hour, chance, most in hours:
            if luck.random() < chance * (0.15 if away else 1):
                begin = seconds_at(day, time(hour, luck.randrange(60)))
                yield from self._burst("owner", begin, luck.randint(1, most))
        for scope, chance, most in (("ann", 0.35, 4), ("ivo", 0.15, 3), ("room", 0.2, 4)):
            if luck.random() < chance:
                yield from self._burst(scope, seconds_at(day, time(luck.randrange(8, 23), luck.randrange(60))), most)

    def _burst(self, scope: str, begin: float, count: int) -> Iterator[tuple[float, str, dict[str, Any]]]:
        luck, at = self._luck, begin
        kinds = _OWNERS if scope == "owner" else _GUESTS
        for _ in range(count):
            kind = luck.choices(list(kinds), list(kinds.values()))[0]
            place = luck.choice(PLACES[scope])
            values = self._values(kind, scope)
            if values is not None:
                yield at, kind, {"scope": scope, "bridge": place, **values}
            at += luck.expovariate(1 / 40)

    def _values(self, kind: str, scope: str) -> dict[str, Any] | None:
        """None where there is nothing to say that about."""
        luck, known = self._luck, self._known[scope]
        match kind:
            case "tell":
                key = make_key(luck, scope)
                # Without a word that says so, rules alone take a second value for another one: both stand.
                now = "now " if key in known else ""
                known.append(key)
                return {"key": key, "word": self._word(scope), "now": now}
            case "correct" | "edit":
                return {"key": luck.choice(known[-30:]), "word": self._word(scope)} if known else None
            case "ask":
                return {"key": luck.choice(known)} if known else None
            case "delete":
                return {"key": luck.choice(known[-10:])} if known else None
            case "remind":
                when = luck.choice(_DAILY) if luck.random() < 0.08 else luck.choice(_WHEN)
                return {"text": f"{luck.choice(TASKS)} {luck.randrange(10_000)}", "when": when}
            case "todo":
                return {"text": f"{luck.choice(ITEMS)} {luck.randrange(10_000)}"}
            case "command":
                return {"text": luck.choice(_COMMANDS if scope == "owner" else _GUEST_COMMANDS)}
            case "long":
                return {"text": " ".join(make_remark(luck, scope) for _ in range(luck.randint(20, 120)))}
            case "remark" | "file":
                return {"text": make_remark(luck, scope)}
            case _:
                return {}

    def _word(self, scope: str) -> str:
        word = make_word(self._luck, scope)
        while word in self._used:
            word = make_word(self._luck, scope)
        self._used.add(word)
        return word

    # ----------------------------------------------------------------------------------------------------- what happens

    def _rare(self, day: date, *, first: bool) -> Iterator[tuple[float, str, dict[str, Any]]]:
        luck = self._luck
        for kind, chance in _RARE.items():
            if luck.random() >= chance or first:
                continue
            # Half of it happens while somebody talks.
            hour = luck.choice((7, 12, 19, 20)) if luck.random() < 0.5 else luck.randrange(24)
            at = seconds_at(day, time(hour, luck.randrange(60), luck.randrange(60)))
            yield at, kind, self._circumstances(kind)

    def _circumstances(self, kind: str) -> dict[str, Any]:
        luck, known = self._luck, self._known["owner"]
        match kind:
            case "forget":
                return {"key": luck.choice(known) if known else ""}
            case "settings":
                name = luck.choice(list(_SETTINGS))
                return {"name": name, "value": luck.choice(_SETTINGS[name])}
            case "restart" | "crash":
                return {"seconds": luck.choice((2.0, 30.0, 600.0, 4 * HOUR)), "wait": luck.uniform(0, 8)}
            case "off":
                return {"seconds": luck.uniform(5, 150) * HOUR, "wait": 0.0}
            case "model_down":
                trouble = luck.choice(("network", "overload", "rate_limit", "auth", "no_credit"))
                return {"trouble": trouble, "seconds": luck.choice((0.2, 3.0, 30.0, 72.0)) * HOUR}
            case "bridge_down" | "unsure":
                hours = luck.choice((0.1, 2.0, 20.0)) if kind == "bridge_down" else 1.0
                return {"bridge": luck.choice(("alpha", "beta")), "seconds": hours * HOUR}
            case "disk_full":
                return {"seconds": luck.choice((2.0, 15.0, 50.0)) * MINUTE}
            case "memory_down":
                return {"seconds": luck.choice((1.0, 12.0, 30.0)) * HOUR}
            case "jump":
                by = luck.choice((-400 * DAY, -DAY, -2 * HOUR, 2 * HOUR, DAY, 3 * 365 * DAY))
                return {"by": by, "seconds": luck.choice((90.0, 40 * MINUTE))}
            case "suspend":
                return {"seconds": luck.choice((0.5, 9.0, 60.0, 168.0)) * HOUR}
            case "memory_edit":
                return {"which": luck.randrange(1000), "word": self._word("owner")}
            case "schedule":
                return {"name": f"s{luck.randrange(10_000)}", "every": luck.choice(("day at 8:30", "weekday at 17:00"))}
            case _:
                return {}
