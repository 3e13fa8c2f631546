"""What is to be summarised, and what came of it. Frozen values between planning, summarising and committing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from assistant.core.messages import Message
from assistant.core.records import LogLocation

SummaryTier = Literal["full", "partial", "extractive", "ends", "floor"]


@dataclass(frozen=True, slots=True)
class Material:
    """What a summary is made of.

    `rows` leave the view, oldest first, by the clock of the home; `places` tell where the log has them whole. `tasks`
    are the words of open requests and to-dos, which have to survive; `earlier` is what the summaries that stay say, so
    that it is not said again; `known` what the journal has of today; `focus` what the person asked to keep in mind.
    `budget` is the most that the summary may take, in tokens, `restored` what may be appended to it word for word.
    `depth` is 1 where `rows` are original messages, 2 where they are summaries."""

    session: str
    scope: str
    rows: tuple[Message, ...]
    places: Mapping[int, LogLocation]
    budget: int
    tasks: tuple[str, ...] = ()
    earlier: str = ""
    known: tuple[str, ...] = ()
    focus: str = ""
    depth: int = 1
    restored: int = 800


@dataclass(frozen=True, slots=True)
class Summary:
    """What stands for messages that left. `text` is checked, its boundary tags escaped, what verification re-added
    (`restored`) at its end. `key_facts` lists decisions, preferences, entities and identifiers; `memories` are durable
    facts for the journal. `failures` tell why better tiers were not used, one line each; `attempts` counts model
    calls; tier "floor" tells nothing at all; `cost_usd` is None where one of them has no known price."""

    text: str
    tier: SummaryTier
    tokens: int
    memories: tuple[str, ...] = ()
    key_facts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    restored: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    model: str = ""
    attempts: int = 0
    cost_usd: float | None = 0.0
    depth: int = 1
