"""The checks of `assistant doctor`, each of which gives findings: the process that serves the data folder; the folder
itself (whether it is there, closed to others, whole, and on a disk that keeps what it is given); and what the assistant
needs of others (a provider, a tokenizer, bridges, the programs under it).
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Literal
from zoneinfo import ZoneInfo

import tzlocal

from assistant import __version__
from assistant.context.tokens import is_known_to_toksum
from assistant.core.bridge_api import Bridge
from assistant.core.dataclass import dataclass
from assistant.core.errors import AssistantError, BridgeError, OlderSchema, StoreError, ToolError
from assistant.core.records import CountingTier, IntegrityProblem
from assistant.core.text import format_duration, pluralize, shorten_line
from assistant.health.installed_extras import list_installed_extras
from assistant.health.problems import disk_problems, find_missing_key
from assistant.models.prices import ANTHROPIC_URL, OPENAI_URL
from assistant.sandbox.command import CommandSandbox
from assistant.service.presence import advise_to_stay
from assistant.settings.layers import mask_secrets_in_text
from assistant.settings.settings import Settings
from assistant.store.home.guard import (
    DATABASE_NAMES,
    HOME_MISSING,
    check_database_pages,
    find_exposed_files,
    is_home_missing,
    restrict_permissions,
)

_LONGEST_REASON = 200
_ALLOW_NAMESPACES = (
    "Allow user namespaces on this machine (`sysctl kernel.unprivileged_userns_clone=1`, or a profile of AppArmor), or "
    "turn commands off: `assistant config set run_command.enabled false`."
)
_PYTHON = (3, 11)
_SQLITE = (3, 37)
_PATHS_SHOWN = 3
# Every message waits for the disk a few times.
_SLOW_SECONDS = 0.25
_CLOCK_TOLERANCE = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. A "note" is no problem, but may be useful."""

    subject: str
    verdict: Literal["ok", "note", "problem"]
    text: str
    to_do: str = ""  # what a person can do; for a "problem" it is always said, here or at the end of `text`
    fixed: str = ""  # what was done about it
    detail: str = ""  # how it works inside, for `--verbose`


@dataclass(frozen=True, slots=True)
class DaemonState:
    """The process that uses the data folder, if any."""

    served: bool
    holder: int | None  # the process that has the lock; None where it is not known
    answers: bool  # it listens at the control socket
    has_socket: bool
    remove_socket: Callable[[], None]


def run_check(subject: str, check: Callable[[], Iterable[Finding]], to_do: str) -> Iterator[Finding]:
    """What a check finds; where it cannot be carried out, that. A data folder that a start has to upgrade is no
    problem, and errors of stores say themselves what to do."""
    try:
        yield from check()
    except OlderSchema as error:
        yield Finding(subject, "note", str(error))
    except StoreError as error:
        yield Finding(subject, "problem", str(error))
    except AssistantError as error:
        yield Finding(subject, "problem", str(error), to_do)
    except OSError as error:
        yield Finding(subject, "problem", f"It cannot be checked: {error.strerror or error}.", to_do)


def check_settings(problems: Sequence[str], settings: Settings | None) -> Iterator[Finding]:
    """`settings` is None where they are not understood."""
    for problem in problems:
        yield Finding("settings", "problem", problem, "`assistant config check` shows whether it is right.")
    if settings is None:
        return
    for warning in settings.warnings:
        yield Finding("settings", "problem", warning)
    if not problems and not settings.warnings:
        own = sum(origin == str(settings.home.config) for origin in settings.origins.values())
        yield Finding(
            "settings", "ok", f"understood; {own:,} set by you" if own else "understood; all at their defaults"
        )


def check_daemon(serving: DaemonState) -> Finding:
    """A process that holds the data folder but does not answer is a problem; none at all is a note."""
    who = f"process {serving.holder}" if serving.holder else "a process"
    if not serving.served:
        return Finding("daemon", "note", "the assistant is not running", advise_to_stay())
    if serving.answers:
        return Finding("daemon", "ok", f"{who} runs the assistant")
    return Finding(
        "daemon",
        "problem",
        f"{who.capitalize()} uses the data folder and does not answer.",
        "If it is not just starting: `assistant stop`, then start it again.",
    )


def check_stale_socket(serving: DaemonState, *, fix: bool) -> Iterator[Finding]:
    """Check for a socket without a listening process; the next start removes it as well."""
    if not serving.has_socket or serving.answers or serving.served:
        return
    text = "A control socket was left behind by a process that died."
    if fix:
        serving.remove_socket()
        yield Finding("socket", "ok", text, fixed="Removed it.")
    else:
        yield Finding("socket", "note", text, "The next start removes it, and so does `assistant doctor --fix`.")


def check_home_exists(home: Path, folder_list: Path | None) -> Finding:
    """A folder that was there before and is gone is a problem; one not made yet is a note."""
    if home.is_dir():
        return Finding("data folder", "ok", str(home))
    if is_home_missing(home, folder_list):
        return Finding("data folder", "problem", HOME_MISSING.format(home=home))
    return Finding("data folder", "note", f"nothing is in {home} yet", "`assistant setup` or `assistant chat` begins.")


def check_permissions(home: Path, *, fix: bool) -> Iterator[Finding]:
    """Yield one finding: which files others can read, a problem unless `fix` closes them. Raises `StoreError`."""
    exposed = find_exposed_files(home)
    if not exposed:
        yield Finding("permissions", "ok", "closed to others")
        return
    names = ", ".join(f"{path} ({mode})" for path, mode in islice(exposed.items(), _PATHS_SHOWN))
    more = f" and {len(exposed) - _PATHS_SHOWN} more" if len(exposed) > _PATHS_SHOWN else ""
    text = f"Others can read {pluralize(len(exposed), 'file')}: {names}{more}."
    if fix:
        restrict_permissions(home, exposed)
        yield Finding("permissions", "ok", text, fixed=f"Closed {pluralize(len(exposed), 'file')} to others.")
    else:
        yield Finding("permissions", "problem", text, "`assistant doctor --fix` closes them.")


def check_databases(home: Path) -> Iterator[Finding]:
    """Yield a finding for each database that exists; one that cannot be opened is a problem."""
    for name in DATABASE_NAMES:
        if (home / name).is_file():
            yield from run_check(name, partial(_check_database, home / name), "")


def _check_database(path: Path) -> Iterator[Finding]:
    flaws = check_database_pages(path)
    if flaws:
        yield Finding(
            path.name,
            "problem",
            f"SQLite finds {flaws[0]!r}, and {len(flaws) - 1} more.",
            "`assistant verify` shows what is damaged; stop the assistant, then run `assistant verify --repair`.",
        )
    else:
        yield Finding(path.name, "ok", "intact")


def check_disk(home: str, free: int | None, sync_seconds: Callable[[], float]) -> Iterator[Finding]:
    """Check free space and speed of the disk; `free` is in bytes; `sync_seconds` measures the disk, and may raise
    `StoreError`."""
    problems = list(disk_problems(home, free))
    if problems:
        yield Finding("disk", "problem", problems[0])
    elif free is not None:
        yield Finding("disk", "ok", f"{free / 1e9:,.1f} GB free")
    seconds = sync_seconds()
    if seconds > _SLOW_SECONDS:
        slow = f"it takes {seconds:.2f} s to write a few bytes"
        yield Finding("disk", "note", slow, "Every message waits for that a few times.")
    else:
        yield Finding("disk", "ok", f"writes reliably, in {seconds * 1000:.1f} ms")


def check_log_chain(recent: Callable[[int], Sequence[IntegrityProblem]], last: int) -> Finding:
    """Check the newest records; checking all takes a while in an old data folder, and has its own command."""
    problems = recent(last)
    if not problems:
        intact = f"the last {last:,} records of each conversation are intact; `assistant verify` reads it all"
        return Finding("log", "ok", intact)
    first = problems[0]
    return Finding(
        "log",
        "problem",
        f"{first.where}: {first.text}; {pluralize(len(problems), 'problem')} in all.",
        "`assistant verify` lists them; `--repair` repairs the index.",
    )


def check_clock(newest: datetime | None, settings: Settings, now: datetime) -> Iterator[Finding]:
    """Check the clock; `newest` is when the newest message was stored."""
    if settings.values.home.timezone or _system_has_zone():
        yield Finding("time zone", "ok", settings.zone.key)
    else:
        yield Finding(
            "time zone",
            "problem",
            "The system does not say which it is, so times are in UTC.",
            "`assistant config set home.timezone Europe/Oslo` sets one.",
        )
    if newest is not None and newest > now + _CLOCK_TOLERANCE:
        ahead = format_duration((newest - now).total_seconds())
        yield Finding(
            "clock",
            "problem",
            f"It is {ahead} behind the newest stored message.",
            "Set the clock (`timedatectl`, or the system's settings): reminders would come late.",
        )
    else:
        yield Finding("clock", "ok", f"{now:%Y-%m-%d %H:%M} UTC")


def _system_has_zone() -> bool:
    try:
        return bool(ZoneInfo(tzlocal.get_localzone_name() or ""))
    except (KeyError, ValueError, OSError):
        return False


def check_provider(settings: Settings) -> Finding:
    """Looks at the settings only, and calls nobody: a missing key is a problem, offline mode a note."""
    provider = settings.provider
    if provider == "offline":
        return Finding(
            "provider",
            "note",
            "offline mode (no language model), which knows only what you tell it",
            "`assistant setup` sets up a provider.",
        )
    for problem in find_missing_key(settings):
        return Finding("provider", "problem", problem)
    is_anthropic = provider == "anthropic"
    key = settings.anthropic_key if is_anthropic else settings.openai_key
    model = f"{provider} {settings.values.model.name}".strip()
    address = settings.anthropic_url or ANTHROPIC_URL if is_anthropic else settings.openai_url or OPENAI_URL
    with_key = "with a key" if key.get_secret_value() else "without a key"
    text = f"{model} at {mask_secrets_in_text(address)}, {with_key}; `--call` asks it something"
    return Finding("provider", "note" if settings.unused_address else "ok", text, settings.unused_address)


def check_provider_answer(answer: Callable[[], str]) -> Iterator[Finding]:
    """Check a real call, which costs money. `answer` raises `AssistantError`."""
    if answer().strip():
        yield Finding("provider", "ok", "it answers")
    else:
        another = "Choose another model: `assistant config set model.name`."
        yield Finding("provider", "problem", "It answered with nothing.", another)


def check_tokenizer(tier: CountingTier, described: str, *, has_extra: bool | None = None) -> Finding:
    """`has_extra`: whether the `tokens` extra is installed; None asks."""
    if tier.name != "estimate":
        return Finding("tokens", "ok", "counted with the vocabulary of the model", detail=described)
    is_improvable = is_known_to_toksum(tier.model) and not (is_installed("toksum") if has_extra is None else has_extra)
    better = "The `tokens` extra counts this model's tokens better." if is_improvable else ""
    text = "estimated from the length of a text; the estimate learns from what is billed"
    return Finding("tokens", "note", text, better, detail=described)


async def check_bridges(bridges: Mapping[str, Bridge], seconds: float) -> list[Finding]:
    """Ask each bridge at the same time for our account on its network, for at most so many seconds."""
    return list(await asyncio.gather(*(_check_bridge(name, bridge, seconds) for name, bridge in bridges.items())))


async def _check_bridge(name: str, bridge: Bridge, seconds: float) -> Finding:
    subject, test = f"bridge {name}", f"`assistant bridge test {name}`"
    try:
        async with asyncio.timeout(seconds):
            return Finding(subject, "ok", f"reached as {await bridge.check()}")
    except BridgeError as error:
        return Finding(subject, "problem", str(error), f"{test} tries it again.")
    except TimeoutError:
        text = f"Its network did not answer within {seconds:g} s."
        return Finding(subject, "problem", text, f"Look at the connection, then {test}.")
    finally:
        await bridge.aclose()


def check_versions(python: tuple[int, int, int], sqlite: str, *, full_text: bool) -> Iterator[Finding]:
    """`full_text`: whether SQLite has FTS5."""
    if python[:2] < _PYTHON:
        too_old = f"{'.'.join(map(str, python))} is too old."
        yield Finding("python", "problem", too_old, f"Install {'.'.join(map(str, _PYTHON))} or later.")
    if tuple(int(part) for part in sqlite.split(".")[:2]) < _SQLITE or not full_text:
        lacks = "" if full_text else ", without full-text search (FTS5)"
        yield Finding(
            "sqlite",
            "problem",
            f"{sqlite}{lacks}.",
            f"Use a Python with SQLite {'.'.join(map(str, _SQLITE))} or later and FTS5, as python.org and uv have it.",
        )
    installed = list_installed_extras()
    extras = f"extras: {', '.join(installed)}" if installed else "no extras"
    programs = f"Nocturne {__version__}, Python {'.'.join(map(str, python))}, SQLite {sqlite}"
    yield Finding("versions", "ok", f"{programs}; {extras}")


async def check_command_sandbox(sandbox: CommandSandbox | None) -> list[Finding]:
    """Check whether a command can run in the configured sandbox; None if the model may run none."""
    if sandbox is None:
        return []
    if sandbox.kind == "none":
        text = "Commands that you approve run without a sandbox: they can do all that you can."
        return [
            Finding("commands", "note", text, "`assistant config set run_command.sandbox bubblewrap` confines them.")
        ]
    try:
        result = await sandbox.run("echo fine")
    except ToolError as error:
        return [Finding("commands", "problem", str(error), "Install bubblewrap.")]
    if result.exit_code == 0:
        return [Finding("commands", "ok", "run in bubblewrap, without network")]
    why = shorten_line(result.output or result.stopped, _LONGEST_REASON)
    return [Finding("commands", "problem", f"bubblewrap does not run here: {why}", _ALLOW_NAMESPACES)]


def is_installed(module: str) -> bool:
    """Return whether it can be imported, without importing it."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
