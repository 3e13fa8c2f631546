"""The words of the generated talks, read from `talk_words.toml`: two halves."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class TalkWords:
    """One half."""

    planted: Sequence[str]
    openings: Sequence[str]
    asides: Sequence[str]
    answers: Sequence[str]
    echoes: Sequence[str]
    follow_ups: Sequence[str]
    topics: Mapping[str, Sequence[str]]  # topic: its parts
    slots: Mapping[str, Sequence[str]]


def read_words() -> dict[str, TalkWords]:
    """By the names of the halves."""
    read = tomllib.loads((Path(__file__).parent / "talk_words.toml").read_text(encoding="utf-8"))
    slots = _split(read.pop("slots"))
    return {
        half: TalkWords(
            topics=_split(words.pop("topics")),
            slots=slots,
            **{name: text.strip().splitlines() for name, text in words.items()},
        )
        for half, words in read.items()
    }


def _split(lists: Mapping[str, str]) -> dict[str, list[str]]:
    return {name: text.split(", ") for name, text in lists.items()}
