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
from typing import Literal

from assistant.core.bridge_api import Bridge
from assistant.core.errors import AssistantError, BridgeError, OlderSchema, StoreError
from assistant.core.records import CountingTier, IntegrityProblem
from assistant.core.text import format_duration, pluralize
from assistant.health.problems import disk_problems
from assistant.settings.settings import Settings

Verdict = Literal["ok", "note", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. A "note" is no problem, but may be useful."""

    subject: str
    verdict: Verdict
    text: str
    to_do: str = ""  # what a person can do; for a "problem" it is always said, here or at the end of `text`
    mended: str = ""  # what was done about it


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
    """The process that uses the data folder, if any."""

    served: bool
    holder: int | None  # the process that has the lock; None where it is not known
    answers: bool  # it listens at the control socket
    has_socket: bool
    remove_socket: Callable[[], None]


def check_daemon(serving: DaemonState) -> Finding:
    who = f"process {serving.holder}" if serving.holder else "a process"
    if not serving.served:
        return note_finding(
            "daemon", "the assistant is not running", "`assistant run`, or `assistant service install`."
        )
    if serving.answers:
        return ok_finding("daemon", f"{who} runs the assistant")
    return problem_finding(
        "daemon",
        f"{who.capitalize()} uses the data folder and does not answer.",
        "If it is not just starting: `assistant stop`, then start it again.",
    )


def check_stale_socket(serving: DaemonState, *, fix: bool) -> Finding | None:
    """A socket that no process listens at; the next start removes it as well."""
    if not serving.has_socket or serving.answers or serving.served:
        return None
    text = "A control socket was left behind by a process that died."
    if not fix:
        return note_finding("socket", text, "The next start removes it, and so does `assistant doctor --fix`.")
    serving.remove_socket()
    return fixed_finding("socket", text, "Removed it.")


_PATHS_SHOWN = 3
# Every message waits for the disk a few times.
_SLOW_SECONDS = 0.25
_CLOCK_TOLERANCE = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class HomeFiles:
    """What can be checked of the files of a data folder; every call may raise `StoreError`."""

    path: str
    exists: bool
    open_to_others: Callable[[], Mapping[str, str]]  # paths in the folder that others may read, with their modes
    close_to_others: Callable[[Iterable[str]], None]
    databases: dict[str, Callable[[], list[str]]]  # by name: what finds flaws in those that exist
    sync_seconds: Callable[[], float]
    free: int | None  # bytes


def check_home_exists(files: HomeFiles) -> Finding:
    if files.exists:
        return ok_finding("home", files.path)
    return problem_finding(
        "home", f"Nothing is at {files.path}.", "`assistant chat` makes one; if it had one, bring it back."
    )


def check_permissions(files: HomeFiles, *, fix: bool) -> Finding:
    exposed = files.open_to_others()
    if not exposed:
        return ok_finding("permissions", "closed to others")
    names = ", ".join(f"{path} ({mode})" for path, mode in islice(exposed.items(), _PATHS_SHOWN))
    more = f" and {len(exposed) - _PATHS_SHOWN} more" if len(exposed) > _PATHS_SHOWN else ""
    text = f"Others can read {pluralize(len(exposed), 'file')}: {names}{more}."
    if not fix:
        return problem_finding("permissions", text, "`assistant doctor --fix` closes them.")
    files.close_to_others(exposed)
    return fixed_finding("permissions", text, f"Closed {pluralize(len(exposed), 'file')} to others.")


def check_databases(files: HomeFiles) -> Iterator[Finding]:
    for name, flaws in files.databases.items():
        try:
            errors = flaws()
        except StoreError as error:
            yield problem_finding(name, str(error), "")
            continue
        if errors:
            yield problem_finding(
                name,
                f"SQLite finds {errors[0]!r}, and {len(errors) - 1} more.",
                "`assistant verify` shows what is damaged; `assistant backup restore` restores a backup.",
            )
        else:
            yield ok_finding(name, "intact")


def check_log_chain(recent: Callable[[int], Sequence[IntegrityProblem]], last: int) -> Finding:
    """Of the newest records; all of them take a while in an old data folder, and have a command of their own."""
    problems = recent(last)
    if not problems:
        return ok_finding(
            "log", f"the last {last:,} records of each conversation are intact; `assistant verify` reads it all"
        )
    first = problems[0]
    return problem_finding(
        "log",
        f"{first.where}: {first.text}; {pluralize(len(problems), 'problem')} in all.",
        "`assistant verify` lists them; `--repair` repairs the index.",
    )


def check_disk(files: HomeFiles) -> Iterator[Finding]:
    problems = list(disk_problems(files.path, files.free))
    if problems:
        yield problem_finding("disk", problems[0], "")
    elif files.free is not None:
        yield ok_finding("disk", f"{files.free / 1e9:,.1f} GB free")
    seconds = files.sync_seconds()
    if seconds > _SLOW_SECONDS:
        yield note_finding(
            "disk", f"it takes {seconds:.2f} s to write a few bytes", "Every message waits for that a few times."
        )
    else:
        yield ok_finding("disk", f"writes reliably, in {seconds * 1000:.1f} ms")


def check_clock(newest: datetime | None, zone: str, zone_is_known: bool, now: datetime) -> Iterator[Finding]:
    if not zone_is_known:
        yield problem_finding(
            "time zone",
            "The system does not say which it is, so times are in UTC.",
            "`assistant config set home.timezone Europe/Oslo` sets one.",
        )
    else:
        yield ok_finding("time zone", zone)
    if newest is not None and newest > now + _CLOCK_TOLERANCE:
        ahead = format_duration((newest - now).total_seconds())
        yield problem_finding(
            "clock",
            f"It is {ahead} behind the newest stored message.",
            "Set the clock (`timedatectl`, or the system's settings): reminders would come late.",
        )
    else:
        yield ok_finding("clock", f"{now:%Y-%m-%d %H:%M} UTC")


def run_check(subject: str, check: Callable[[], Iterator[Finding]], to_do: str) -> Iterator[Finding]:
    """What a check finds; where it cannot be carried out, that. A data folder that a start has to upgrade is no
    problem, and errors of stores say themselves what to do."""
    try:
        yield from check()
    except OlderSchema as error:
        yield note_finding(subject, str(error))
    except StoreError as error:
        yield problem_finding(subject, str(error), "")
    except AssistantError as error:
        yield problem_finding(subject, str(error), to_do)
    except OSError as error:
        yield problem_finding(subject, f"It cannot be checked: {error.strerror or error}.", to_do)


_PYTHON = (3, 11)
_SQLITE = (3, 37)


def check_settings(problems: Sequence[str], settings: Settings | None) -> Iterator[Finding]:
    """`settings` is None where they are not understood."""
    for problem in problems:
        yield problem_finding("settings", problem, "`assistant config check` shows whether it is right.")
    if settings is None:
        return
    for warning in settings.warnings:
        yield problem_finding("settings", warning, "")
    own = sum(origin == str(settings.home.config) for origin in settings.origins.values())
    if not problems and not settings.warnings:
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
        return problem_finding(
            "provider", f"{who} has no key.", f"`assistant config secret set {variable}` stores one."
        )
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


async def check_bridges(found: Mapping[str, Bridge], seconds: float) -> list[Finding]:
    """Each asked over its network who we are there, side by side, for so many seconds at most."""
    return list(await asyncio.gather(*(_check_bridge(name, bridge, seconds) for name, bridge in found.items())))


async def _check_bridge(name: str, bridge: Bridge, seconds: float) -> Finding:
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
