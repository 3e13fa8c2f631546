"""The home: whether it is there, closed to others, whole, and on a disk that keeps what it is given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from assistant.core.errors import AssistantError, OlderSchema, StoreError
from assistant.core.records import IntegrityProblem
from assistant.core.text import format_duration, pluralize
from assistant.health.problems import disk_problems
from assistant.health.values import Finding, mended, note, ok, problem

_SHOWN = 3
# Every message waits for the disk a few times.
_SLOW_SECONDS = 0.25
_LATER = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Files:
    """What can be asked of the files of a home at `path`; every call may raise `StoreError`. `opened` tells what others
    may get at, paths within the home and their modes; `databases` maps the names of those that are there to what finds
    their flaws."""

    path: str
    exists: bool
    opened: Callable[[], Mapping[str, str]]
    close: Callable[[Iterable[str]], None]
    databases: dict[str, Callable[[], list[str]]]
    sync_seconds: Callable[[], float]
    free: int | None


def there(files: Files) -> Finding:
    if files.exists:
        return ok("home", files.path)
    return problem("home", f"Nothing is at {files.path}.", "`assistant chat` makes one; if it had one, bring it back.")


def permissions(files: Files, *, fix: bool) -> Finding:
    found = files.opened()
    if not found:
        return ok("permissions", "closed to others")
    names = ", ".join(f"{path} ({mode})" for path, mode in islice(found.items(), _SHOWN))
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    told = f"Others may get at {pluralize(len(found), 'file')}: {names}{more}."
    if not fix:
        return problem("permissions", told, "`assistant doctor --fix` closes them.")
    files.close(found)
    return mended("permissions", told, f"Closed {pluralize(len(found), 'file')} to others.")


def databases(files: Files) -> Iterator[Finding]:
    for name, flaws in files.databases.items():
        try:
            found = flaws()
        except StoreError as error:
            yield problem(name, str(error), "")
            continue
        if found:
            yield problem(
                name, f"SQLite finds {found[0]!r}, and {len(found) - 1} more.",
                "`assistant verify` tells what is hurt; `assistant backup restore` brings back a backup.",
            )  # fmt: skip
        else:
            yield ok(name, "whole")


def log_chain(recent: Callable[[int], Sequence[IntegrityProblem]], last: int) -> Finding:
    """Of the newest records; the whole takes a while on an old home, and has a command of its own."""
    found = recent(last)
    if not found:
        return ok("log", f"the last {last:,} records of each conversation prove right; `assistant verify` reads it all")
    first = found[0]
    return problem(
        "log", f"{first.where}: {first.text}; {pluralize(len(found), 'problem')} in all.",
        "`assistant verify` lists them; `--repair` mends the index.",
    )  # fmt: skip


def disk(files: Files) -> Iterator[Finding]:
    told = list(disk_problems(files.path, files.free))
    if told:
        yield problem("disk", told[0], "")
    elif files.free is not None:
        yield ok("disk", f"{files.free / 1e9:,.1f} GB free")
    seconds = files.sync_seconds()
    if seconds > _SLOW_SECONDS:
        yield note("disk", f"it takes {seconds:.2f} s to keep a few bytes", "Every message waits for that a few times.")
    else:
        yield ok("disk", f"keeps what it is given, in {seconds * 1000:.1f} ms")


def clock(newest: datetime | None, zone: str, zone_is_known: bool, now: datetime) -> Iterator[Finding]:
    if not zone_is_known:
        yield problem(
            "time zone", "The system does not tell one that is known, so that times are in UTC.",
            "`assistant config set home.timezone Europe/Oslo` sets one.",
        )  # fmt: skip
    else:
        yield ok("time zone", zone)
    if newest is not None and newest > now + _LATER:
        ahead = format_duration((newest - now).total_seconds())
        yield problem(
            "clock", f"It is {ahead} behind the newest message that is kept.",
            "Set the clock (`timedatectl`, or the system's settings): reminders would come late.",
        )  # fmt: skip
    else:
        yield ok("clock", f"{now:%Y-%m-%d %H:%M} UTC")


def looked(subject: str, look: Callable[[], Iterator[Finding]], to_do: str) -> Iterator[Finding]:
    """What a look finds; where it cannot be carried out, that. A home that only has to be started is no problem,
    and errors of stores say themselves what to do."""
    try:
        yield from look()
    except OlderSchema as error:
        yield note(subject, str(error))
    except StoreError as error:
        yield problem(subject, str(error), "")
    except AssistantError as error:
        yield problem(subject, str(error), to_do)
    except OSError as error:
        yield problem(subject, f"It cannot be looked at: {error.strerror or error}.", to_do)
