"""The checks of `assistant doctor`, each of which gives findings: the process that serves the home and what earlier
ones
left behind; the home (whether it is there, closed to others, whole, and on a disk that keeps what it is given); and
what the assistant needs of others (a provider, a tokenizer, bridges, the programs under it).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Literal, Protocol

from assistant.core.errors import AssistantError, BridgeError, OlderSchema, StoreError
from assistant.core.records import CountingTier, IntegrityProblem
from assistant.core.text import format_duration, pluralize
from assistant.health.problems import disk_problems
from assistant.settings.settings import Settings

Verdict = Literal["ok", "note", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """How one thing is. `to_do` is what a person can do: of a "problem" that is always said, here or at the end of
    `text`; a "note" is no problem, but may be worth something to them. `mended` tells what was done about it."""

    subject: str
    verdict: Verdict
    text: str
    to_do: str = ""
    mended: str = ""


def ok_finding(subject: str, text: str) -> Finding:
    return Finding(subject, "ok", text)


def note_finding(subject: str, text: str, to_do: str = "") -> Finding:
    return Finding(subject, "note", text, to_do)


def problem_finding(subject: str, text: str, to_do: str) -> Finding:
    return Finding(subject, "problem", text, to_do)


def fixed_finding(subject: str, text: str, done: str) -> Finding:
    """It was a problem."""
    return Finding(subject, "ok", text, mended=done)


@dataclass(frozen=True, slots=True)
class DaemonState:
    """`holder` is the process that holds the home's lock, None where nobody does or nobody knows; `answers`: somebody
    listens at the control socket; `has_socket`: it is there at all. `remove_socket` takes it away."""

    served: bool
    holder: int | None
    answers: bool
    has_socket: bool
    remove_socket: Callable[[], None]


def check_daemon(serving: DaemonState) -> Finding:
    who = f"process {serving.holder}" if serving.holder else "a process"
    if not serving.served:
        return note_finding("daemon", "nobody serves the home now", "`assistant run`, or `assistant service install`.")
    if serving.answers:
        return ok_finding("daemon", f"{who} serves the home")
    return problem_finding(
        "daemon",
        f"{who.capitalize()} holds the home and does not listen.",
        "If it is not just starting: `assistant stop`, then start it again.",
    )


def check_stale_socket(serving: DaemonState, *, fix: bool) -> Finding | None:
    """A socket that nobody listens at, and nobody will: it is taken away at the next start as well."""
    if not serving.has_socket or serving.answers or serving.served:
        return None
    told = "A control socket was left behind by a process that died."
    if not fix:
        return note_finding("socket", told, "The next start takes it away, and so does `assistant doctor --fix`.")
    serving.remove_socket()
    return fixed_finding("socket", told, "Took it away.")


_PATHS_SHOWN = 3
# Every message waits for the disk a few times.
_SLOW_SECONDS = 0.25
_CLOCK_TOLERANCE = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class HomeFiles:
    """What can be asked of the files of a home at `path`; every call may raise `StoreError`. `opened` tells what others
    may get at, paths within the home and their modes; `databases` maps the names of those that are there to what finds
    their flaws."""

    path: str
    exists: bool
    open_to_others: Callable[[], Mapping[str, str]]
    close_to_others: Callable[[Iterable[str]], None]
    databases: dict[str, Callable[[], list[str]]]
    sync_seconds: Callable[[], float]
    free: int | None


def check_home_exists(files: HomeFiles) -> Finding:
    if files.exists:
        return ok_finding("home", files.path)
    return problem_finding(
        "home", f"Nothing is at {files.path}.", "`assistant chat` makes one; if it had one, bring it back."
    )


def check_permissions(files: HomeFiles, *, fix: bool) -> Finding:
    found = files.open_to_others()
    if not found:
        return ok_finding("permissions", "closed to others")
    names = ", ".join(f"{path} ({mode})" for path, mode in islice(found.items(), _PATHS_SHOWN))
    more = f" and {len(found) - _PATHS_SHOWN} more" if len(found) > _PATHS_SHOWN else ""
    told = f"Others may get at {pluralize(len(found), 'file')}: {names}{more}."
    if not fix:
        return problem_finding("permissions", told, "`assistant doctor --fix` closes them.")
    files.close_to_others(found)
    return fixed_finding("permissions", told, f"Closed {pluralize(len(found), 'file')} to others.")


def check_databases(files: HomeFiles) -> Iterator[Finding]:
    for name, flaws in files.databases.items():
        try:
            found = flaws()
        except StoreError as error:
            yield problem_finding(name, str(error), "")
            continue
        if found:
            yield problem_finding(
                name,
                f"SQLite finds {found[0]!r}, and {len(found) - 1} more.",
                "`assistant verify` tells what is hurt; `assistant backup restore` brings back a backup.",
            )
        else:
            yield ok_finding(name, "whole")


def check_log_chain(recent: Callable[[int], Sequence[IntegrityProblem]], last: int) -> Finding:
    """Of the newest records; the whole takes a while on an old home, and has a command of its own."""
    found = recent(last)
    if not found:
        return ok_finding(
            "log", f"the last {last:,} records of each conversation prove right; `assistant verify` reads it all"
        )
    first = found[0]
    return problem_finding(
        "log",
        f"{first.where}: {first.text}; {pluralize(len(found), 'problem')} in all.",
        "`assistant verify` lists them; `--repair` mends the index.",
    )


def check_disk(files: HomeFiles) -> Iterator[Finding]:
    told = list(disk_problems(files.path, files.free))
    if told:
        yield problem_finding("disk", told[0], "")
    elif files.free is not None:
        yield ok_finding("disk", f"{files.free / 1e9:,.1f} GB free")
    seconds = files.sync_seconds()
    if seconds > _SLOW_SECONDS:
        yield note_finding(
            "disk", f"it takes {seconds:.2f} s to keep a few bytes", "Every message waits for that a few times."
        )
    else:
        yield ok_finding("disk", f"keeps what it is given, in {seconds * 1000:.1f} ms")


def check_clock(newest: datetime | None, zone: str, zone_is_known: bool, now: datetime) -> Iterator[Finding]:
    if not zone_is_known:
        yield problem_finding(
            "time zone",
            "The system does not tell one that is known, so that times are in UTC.",
            "`assistant config set home.timezone Europe/Oslo` sets one.",
        )
    else:
        yield ok_finding("time zone", zone)
    if newest is not None and newest > now + _CLOCK_TOLERANCE:
        ahead = format_duration((newest - now).total_seconds())
        yield problem_finding(
            "clock",
            f"It is {ahead} behind the newest message that is kept.",
            "Set the clock (`timedatectl`, or the system's settings): reminders would come late.",
        )
    else:
        yield ok_finding("clock", f"{now:%Y-%m-%d %H:%M} UTC")


def run_check(subject: str, look: Callable[[], Iterator[Finding]], to_do: str) -> Iterator[Finding]:
    """What a look finds; where it cannot be carried out, that. A home that only has to be started is no problem,
    and errors of stores say themselves what to do."""
    try:
        yield from look()
    except OlderSchema as error:
        yield note_finding(subject, str(error))
    except StoreError as error:
        yield problem_finding(subject, str(error), "")
    except AssistantError as error:
        yield problem_finding(subject, str(error), to_do)
    except OSError as error:
        yield problem_finding(subject, f"It cannot be looked at: {error.strerror or error}.", to_do)


_PYTHON = (3, 11)
_SQLITE = (3, 37)


class ReachableBridge(Protocol):
    """The part of a bridge that is tried out."""

    async def check(self) -> str: ...
    async def aclose(self) -> None: ...


def check_settings(problems: Sequence[str], found: Settings | None) -> Iterator[Finding]:
    """`found` is None where they are not understood."""
    for one in problems:
        yield problem_finding("settings", one, "`assistant config check` tells when it is right.")
    if found is None:
        return
    for one in found.warnings:
        yield problem_finding("settings", one, "")
    own = sum(origin == str(found.home.config) for origin in found.origins.values())
    if not problems and not found.warnings:
        yield ok_finding("settings", f"understood; {pluralize(own, 'key')} of your own")


def check_provider(found: Settings) -> Finding:
    model = found.values.model
    keys = {
        "anthropic": bool(found.anthropic_key.get_secret_value()),
        "openai": bool(found.openai_key.get_secret_value() or found.openai_url),
        "offline": True,
    }
    who = found.provider
    if not keys[who]:
        variable = "ANTHROPIC_API_KEY" if who == "anthropic" else "OPENAI_API_KEY"
        return problem_finding("provider", f"{who} has no key.", f"`assistant config secret set {variable}` keeps one.")
    if who == "offline":
        return note_finding(
            "provider",
            "offline mode (no language model), which knows only what you tell it",
            "`assistant setup` sets up a provider.",
        )
    named = f"{who} {model.name}".strip()
    return ok_finding("provider", f"{named}, with a key; `--call` asks it something")


def check_provider_answer(answer: Callable[[], str]) -> Finding:
    """A real call, which costs. `answer` raises `AssistantError`."""
    said = answer().strip()
    if not said:
        return problem_finding(
            "provider", "It answered with nothing.", "Choose another model: `assistant config set model.name`."
        )
    return ok_finding("provider", "it answers")


def check_tokenizer(tier: CountingTier, shown: str) -> Finding:
    if tier.name != "estimate":
        return ok_finding("tokens", shown)
    better = (
        "Counts get better with what is billed. The `tokens` extra knows more models."
        if tier.encoding == "" and tier.path is None
        else ""
    )
    return note_finding("tokens", shown, better)


async def check_bridges(found: Mapping[str, ReachableBridge], seconds: float) -> list[Finding]:
    """Each asked over its network who we are there, side by side, for so many seconds at most."""
    return list(await asyncio.gather(*(_check_bridge(name, bridge, seconds) for name, bridge in found.items())))


async def _check_bridge(name: str, bridge: ReachableBridge, seconds: float) -> Finding:
    subject = f"bridge {name}"
    try:
        async with asyncio.timeout(seconds):
            return ok_finding(subject, f"reached as {await bridge.check()}")
    except BridgeError as error:
        return problem_finding(subject, str(error), f"`assistant bridge test {name}` tries it again.")
    except TimeoutError:
        return problem_finding(
            subject,
            f"Its network did not answer within {seconds:g} s.",
            f"Look at the connection, then `assistant bridge test {name}`.",
        )
    finally:
        await bridge.aclose()


@dataclass(frozen=True, slots=True)
class InstalledPrograms:
    """`extras` maps the names of optional parts to whether they are installed."""

    ours: str
    python: tuple[int, int, int]
    sqlite: str
    full_text: bool
    extras: Mapping[str, bool]


def check_versions(programs: InstalledPrograms) -> Iterator[Finding]:
    python = ".".join(map(str, programs.python))
    there = [name for name, installed in programs.extras.items() if installed]
    extras = f"extras: {', '.join(there)}" if there else "no extras"
    if programs.python[:2] < _PYTHON:
        yield problem_finding("python", f"{python} is too old.", f"Install {'.'.join(map(str, _PYTHON))} or later.")
    sqlite = tuple(int(part) for part in programs.sqlite.split(".")[:2])
    if sqlite < _SQLITE or not programs.full_text:
        lacks = "" if programs.full_text else ", without full-text search (FTS5)"
        yield problem_finding(
            "sqlite",
            f"{programs.sqlite}{lacks}.",
            f"Use a Python with SQLite {'.'.join(map(str, _SQLITE))} or later and FTS5, as python.org and uv have it.",
        )
    yield ok_finding("versions", f"Nocturne {programs.ours}, Python {python}, SQLite {programs.sqlite}; {extras}")
