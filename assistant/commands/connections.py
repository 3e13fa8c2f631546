"""`memory connections`: what somebody or something is connected with, by the facts of profiles and by the memories that
name both.

What always holds: nothing is guessed. A connection is a dated fact, or memories that name both sides, and leads to
them. Stored words are data: on a line they are one JSON string.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from datetime import datetime, tzinfo

import click

from assistant.commands.context import CommandContext
from assistant.commands.table import TableCommand, words_argument
from assistant.core.dataclass import dataclass
from assistant.core.errors import UsageError
from assistant.core.memories import MemoryHit
from assistant.core.profiles import Profile, fold_name, has_name
from assistant.core.quoting import quote_text
from sleep.cycle.profiles import RELATION

_MOST_MEMORIES = 60
_MOST_CONNECTIONS = 40


@dataclass(frozen=True, slots=True)
class ConnectingFact:
    """A fact of a profile that names the other side."""

    name: str  # "lives in"
    since: datetime
    until: datetime | None
    source: int | None  # a journal entry: `assistant memory why e12`


@dataclass(frozen=True, slots=True)
class ConnectingMemory:
    """A memory that names both sides."""

    id: str
    text: str
    said_at: datetime
    until: datetime | None


@dataclass(slots=True)
class Connection:
    """What is connected, and why; `kind` is "" where it has no profile."""

    name: str
    kind: str
    facts: list[ConnectingFact] = field(default_factory=list)
    memories: list[ConnectingMemory] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Connections:
    """Of a person, place, project or thing, the closest first, and memories that name it and nothing else known."""

    name: str
    kind: str
    connections: list[Connection]
    memories: list[ConnectingMemory]


def _render(value: Connections, zone: tzinfo) -> str:
    lines = [f"{quote_text(value.name)} ({value.kind}):", *_lines(value, zone)]
    return "\n".join(lines) if lines[1:] else f"Nothing is known that is connected with {quote_text(value.name)}."


def _lines(value: Connections, zone: tzinfo) -> Iterator[str]:
    for connection in value.connections:
        facts = ", ".join(f"{fact.name} {_dates(fact, zone)}" for fact in connection.facts)
        yield f"- {quote_text(connection.name)}{f': {facts}' if facts else ''}"
        yield from (f"  - {memory.id[:8]}: {quote_text(memory.text)}" for memory in connection.memories)
    yield from (f"- {memory.id[:8]}: {quote_text(memory.text)}" for memory in value.memories)


def _dates(fact: ConnectingFact, zone: tzinfo) -> str:
    until = f" until {fact.until.astimezone(zone).date()}" if fact.until else ""
    return f"since {fact.since.astimezone(zone).date()}{until}"


@click.command("connections", cls=TableCommand, render=_render, reads=True)
@words_argument("name")
async def connections(context: CommandContext, name: str) -> Connections:
    """Show what a person, place or thing is connected with, and why.

    > assistant memory connections Ada
    """
    stores, scope = context.stores, context.scope
    profile = stores.profiles.find(name, scope)
    if profile is None:
        raise UsageError(f"There is no profile of {quote_text(name)}. `/memory profiles` lists them.")
    hits = await asyncio.to_thread(stores.memory.search, profile.name, scope, limit=_MOST_MEMORIES)
    named = [
        hit
        for hit in hits
        if any(has_name(profile, found.name) for found in stores.profiles.find_in_text(hit.memory.text, scope))
    ]
    others = [(hit, stores.profiles.find_in_text(hit.memory.text, scope)) for hit in named]
    return connect(profile, stores.profiles.list_profiles(scope), others)


def connect(
    profile: Profile, profiles: Sequence[Profile], named: Iterable[tuple[MemoryHit, Sequence[Profile]]]
) -> Connections:
    """`named` are memories that name the profile, each with all profiles that it names."""
    found: dict[str, Connection] = {}
    known = {fold_name(name): each for each in profiles for name in (*each.aliases, each.name)}

    def connection(name: str) -> Connection:
        other = known.get(fold_name(name))
        key = other.name if other else name
        return found.setdefault(key, Connection(key, other.kind if other else ""))

    for owner in profiles:
        for fact in owner.attributes:
            if fact.name == RELATION:
                continue  # what somebody is to the owner, as in "sister", names nobody
            linking = ConnectingFact(fact.name, fact.since, fact.until, next(iter(fact.sources), None))
            if owner.id == profile.id:
                connection(fact.value).facts.append(linking)
            elif has_name(profile, fact.value):
                connection(owner.name).facts.append(linking)
    alone = []
    for hit, mentioned in named:
        memory = ConnectingMemory(hit.memory.id, hit.memory.text, hit.memory.said_at, hit.memory.until)
        names = {each.name for each in mentioned if each.id != profile.id}
        folded = fold_name(hit.memory.text)
        names |= {it.name for it in found.values() if not it.kind and fold_name(it.name) in folded}
        for name in names:
            connection(name).memories.append(memory)
        if not names:
            alone.append(memory)
    ranked = sorted(found.values(), key=lambda it: (-len(it.facts) - len(it.memories), it.name))
    return Connections(profile.name, profile.kind, ranked[:_MOST_CONNECTIONS], alone)
