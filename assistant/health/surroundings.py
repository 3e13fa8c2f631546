"""What the assistant needs of others: a provider, an embedder, a tokenizer, bridges, the programs under it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from assistant.context.tokens import Tier
from assistant.core.errors import BridgeError
from assistant.core.text import pluralize
from assistant.health.values import Finding, note, ok, problem
from assistant.settings.settings import Settings

_PYTHON = (3, 11)
_SQLITE = (3, 37)


class Reached(Protocol):
    """The part of a bridge that is tried out."""

    async def check(self) -> str: ...
    async def aclose(self) -> None: ...


def settings(problems: Sequence[str], found: Settings | None) -> Iterator[Finding]:
    """`found` is None where they are not understood."""
    for one in problems:
        yield problem("settings", one, "`assistant config check` tells when it is right.")
    if found is None:
        return
    for one in found.warnings:
        yield problem("settings", one, "")
    own = sum(origin == str(found.home.config) for origin in found.origins.values())
    if not problems and not found.warnings:
        yield ok("settings", f"understood; {pluralize(own, 'key')} of your own")


def provider(found: Settings) -> Finding:
    model = found.values.model
    keys = {
        "anthropic": bool(found.anthropic_key.get_secret_value()),
        "openai": bool(found.openai_key.get_secret_value() or found.openai_url),
        "offline": True,
    }
    who = found.provider
    if not keys[who]:
        variable = "ANTHROPIC_API_KEY" if who == "anthropic" else "OPENAI_API_KEY"
        return problem("provider", f"{who} has no key.", f"`assistant config secret set {variable}` keeps one.")
    if who == "offline":
        return note(
            "provider", "the built-in model, which knows what you tell it and nothing else",
            "`assistant setup` sets up a provider.",
        )  # fmt: skip
    named = f"{who} {model.name}".strip()
    return ok("provider", f"{named}, with a key; `--call` asks it something")


def called(answer: Callable[[], str]) -> Finding:
    """A real call, which costs. `answer` raises `AssistantError`."""
    said = answer().strip()
    if not said:
        return problem(
            "provider", "It answered with nothing.", "Choose another model: `assistant config set model.name`."
        )
    return ok("provider", "it answers")


def tokenizer(tier: Tier, shown: str) -> Finding:
    if tier.name != "estimate":
        return ok("tokens", shown)
    better = (
        "Counts get better with what is billed. The `tokens` extra knows more models."
        if tier.encoding == "" and tier.path is None
        else ""
    )
    return note("tokens", shown, better)


async def bridges(found: Mapping[str, Reached], seconds: float) -> list[Finding]:
    """Each asked over its network who we are there, side by side, for so many seconds at most."""
    return list(await asyncio.gather(*(_bridge(name, bridge, seconds) for name, bridge in found.items())))


async def _bridge(name: str, bridge: Reached, seconds: float) -> Finding:
    subject = f"bridge {name}"
    try:
        async with asyncio.timeout(seconds):
            return ok(subject, f"reached as {await bridge.check()}")
    except BridgeError as error:
        return problem(subject, str(error), f"`assistant bridge test {name}` tries it again.")
    except TimeoutError:
        return problem(
            subject, f"Its network did not answer within {seconds:g} s.",
            f"Look at the connection, then `assistant bridge test {name}`.",
        )  # fmt: skip
    finally:
        await bridge.aclose()


@dataclass(frozen=True, slots=True)
class Programs:
    """`extras` maps the names of optional parts to whether they are installed."""

    ours: str
    python: tuple[int, int, int]
    sqlite: str
    full_text: bool
    extras: Mapping[str, bool]


def versions(programs: Programs) -> Iterator[Finding]:
    python = ".".join(map(str, programs.python))
    there = [name for name, installed in programs.extras.items() if installed]
    extras = f"extras: {', '.join(there)}" if there else "no extras"
    if programs.python[:2] < _PYTHON:
        yield problem("python", f"{python} is too old.", f"Install {'.'.join(map(str, _PYTHON))} or later.")
    sqlite = tuple(int(part) for part in programs.sqlite.split(".")[:2])
    if sqlite < _SQLITE or not programs.full_text:
        lacks = "" if programs.full_text else ", without full-text search (FTS5)"
        yield problem(
            "sqlite", f"{programs.sqlite}{lacks}.",
            f"Use a Python with SQLite {'.'.join(map(str, _SQLITE))} or later and FTS5, as python.org and uv have it.",
        )  # fmt: skip
    yield ok("versions", f"Nocturne {programs.ours}, Python {python}, SQLite {programs.sqlite}; {extras}")
