"""A month of talk as frozen values: what was said, what of it is true and lasting, and what was corrected.

Messages are numbered from 1 in the order they were said, and facts and corrections name them by number. The data lies
in a TOML file beside this one, so that another month can be read in its place; its form is described at its head.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast
from zoneinfo import ZoneInfo

Role = Literal["user", "assistant", "tool"]

MONTH = Path(__file__).with_name("month.toml")
SECOND = Path(__file__).with_name("second.toml")


@dataclass(frozen=True, slots=True)
class RequiredPhrases:
    """What a text must hold: of each list at least one word or phrase, as whole words, whatever their case.

    A phrase that ends in "*" stands for every word that begins so."""

    lists: tuple[tuple[str, ...], ...]

    def held_by(self, text: str) -> bool:
        plain = _plain(text)
        return all(any(_pattern(phrase).search(plain) for phrase in phrases) for phrases in self.lists)


@dataclass(frozen=True, slots=True)
class MonthMessage:
    """One message of the month. `noise`: nothing lasting is said in it. `passing`: phrases of a message that is not all
    noise which belong to what was only passing in it."""

    number: int
    at: datetime
    role: Role
    text: str
    name: str | None = None
    noise: bool = False
    passing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MonthFact:
    """Something lasting; `messages` are the numbers that tell it, with the question where only that makes it plain."""

    id: str
    says: str
    keys: RequiredPhrases
    messages: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Correction:
    """What `message` says anew. `fact` is the id of the fact that it supersedes, or "" where that is none of them."""

    id: str
    old: RequiredPhrases
    new: RequiredPhrases
    message: int
    fact: str


@dataclass(frozen=True, slots=True)
class MonthConversation:
    said: tuple[MonthMessage, ...]
    facts: tuple[MonthFact, ...]
    corrections: tuple[Correction, ...]

    def message(self, number: int) -> MonthMessage:
        """KeyError when no message has that number."""
        if not 1 <= number <= len(self.said):
            raise KeyError(number)
        return self.said[number - 1]


def read_month(path: Path = MONTH) -> MonthConversation:
    """OSError, TOMLDecodeError or KeyError when the file is not a month."""
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    starts, zone = data["starts"], ZoneInfo(data["timezone"])
    return MonthConversation(
        tuple(_said(number, row, starts, zone) for number, row in enumerate(data["message"], 1)),
        tuple(MonthFact(row["id"], row["says"], _keys(row["keys"]), tuple(row["messages"])) for row in data["fact"]),
        tuple(
            Correction(row["id"], _keys(row["old_keys"]), _keys(row["new_keys"]), row["message"], row["fact"])
            for row in data["correction"]
        ),
    )


def has_phrase(text: str, phrase: str) -> bool:
    """Whether the phrase stands in the text as whole words, whatever their case."""
    return bool(_pattern(phrase).search(_plain(text)))


def _said(number: int, row: Mapping[str, Any], starts: date, zone: ZoneInfo) -> MonthMessage:
    local = datetime.combine(starts + timedelta(days=row["day"] - 1), time.fromisoformat(row["time"]), zone)
    return MonthMessage(
        number,
        local.astimezone(UTC),
        cast(Role, row["role"]),
        row["text"],
        row.get("name"),
        row.get("noise", False),
        tuple(row.get("passing", ())),
    )


def _keys(lists: Sequence[Sequence[str]]) -> RequiredPhrases:
    return RequiredPhrases(tuple(tuple(phrases) for phrases in lists))


def _plain(text: str) -> str:
    return " ".join(text.replace("’", "'").casefold().split())


@cache
def _pattern(phrase: str) -> re.Pattern[str]:
    stem = phrase.endswith("*")
    words = re.escape(_plain(phrase.removesuffix("*")))
    return re.compile(rf"(?<!\w){words}" + ("" if stem else r"(?!\w)"))
