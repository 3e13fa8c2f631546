"""Commands with arguments that nobody would type: huge, empty, foreign, out of range, or made to break something.

A case is one line of a command that is drawn, with arguments that are: in a shell (`assistant`, `aihistory`), or as a
slash command of the owner, a guest or a room. It is carried out or refused in a few words, within ten seconds of
processor time, without a defect and without anything that a terminal would act on.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import click

from assistant.cli.aihistory.main import aihistory
from assistant.cli.main import assistant
from assistant.core.errors import AssistantError
from tests.attack.tally import Tally
from tests.crash.homes import scratch
from tests.support.command_line import run_in_process
from tests.support.running_app import LiveApp, run_app

KIND = "command-lines"
CASES = 2_000
_MOST_SECONDS, _LONGEST_ERROR, _MOST_LINES = 10.0, 4_500, 50
# They serve, wait for a person, change this machine, or begin programs of their own.
_NOT_TRIED = frozenset(
    (
        *(
            "run",
            "setup",
            "service",
            "stop",
            "fleet",
            "web",
            "mcp",
            "update",
            "uninstall",
            "completion",
            "bridge",
            "open",
        ),
        *("config edit", "--follow", "--watch"),
    )
)
_PATHS = (
    "pipe",
    "folder",
    "loop",
    "empty",
    "zeros",
    "gone",
    "/dev/zero",
    "/proc/self/environ",
    "/",
    "..",
    "",
    "a" * 300,
)
_WORDS = (
    *("", " " * 50_000, "\n" * 1_000, "x" * 100_000, "(" * 16_000, "\\" * 5_000, "é" * 5_000, "🦄" * 3_000, "1h" * 500),
    *(
        "\udcff\udcfe",
        "\x1b]0;evil\x07\x1b[31m",
        "\x01",
        "\u202eevil",
        "--",
        "-",
        "--help",
        '"',
        "*",
        "%s%n",
        "{0}",
        "NEAR(",
    ),
    *("-1", "0", "1", "9" * 30, "1e309", "nan", "#1", "main", "owner", "peer:x:y", "../../etc/passwd", "tea", "boat"),
    *("today", "9999-12-31", "0001-01-01", "2026-02-30", "24:60", "-5m", "every minute", "FREQ=SECONDLY", "0 0 31 2 *"),
    *("in 99999999999 years", "in 1e9 hours", "in 3000000 days", "every 99999999 days", "next year", "9:00-8:00"),
)
_SESSIONS = ("main", "main", "thread:garden", "peer:kept:ada", "room:kept:r")


def run(seed: int, cases: int = CASES, until: float = float("inf"), only: int | None = None) -> Tally:
    """Of three cases one is a slash command."""
    numbers = list(range(cases)) if only is None else [only]
    with TemporaryDirectory(dir=scratch()) as folder, _hostile_files(Path(folder)):
        tried = asyncio.run(_run_slash(Path(folder) / "slash", seed, [n for n in numbers if n % 3 == 0], until))
        for number in numbers:
            if number % 3 and time.monotonic() < until:
                tried[number] = _run_shell(Path(folder) / "home", Random(f"{seed} {number}"))
    failures = tuple(f"case {number}: {problem}" for number, problem in sorted(tried.items()) if problem)
    return Tally(KIND, len(tried), failures)


@contextlib.contextmanager
def _hostile_files(folder: Path) -> Iterator[None]:
    """A working directory with what `_PATHS` names."""
    with contextlib.chdir(folder):
        os.mkfifo("pipe")
        Path("folder").mkdir()
        Path("loop").symlink_to("loop")
        Path("gone").symlink_to("nowhere")
        Path("empty").touch()
        Path("zeros").write_bytes(bytes(5_000))
        yield


def _leaves(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if not isinstance(command, click.Group):
        yield path, command
        return
    for name in command.list_commands(click.Context(command)):
        below = command.get_command(click.Context(command), name)
        if below is not None and " ".join((*path, name)) not in _NOT_TRIED:
            yield from _leaves(below, (*path, name))


def _draw(path: tuple[str, ...], command: click.Command, chance: Random) -> list[str]:
    """A line of this command."""
    words = [*path]
    for option in [it for it in command.params if isinstance(it, click.Option)]:
        name = chance.choice(option.opts)
        if chance.random() < 0.4 and name not in _NOT_TRIED:
            words += [name] if option.is_flag else [name, _draw_value(option, chance)]
    for argument in [it for it in command.params if isinstance(it, click.Argument)]:
        words += ["--"] * (chance.random() < 0.5)
        words += [_draw_value(argument, chance) for _ in range(1 if argument.nargs == 1 else chance.randrange(4))]
    return words


def _draw_value(parameter: click.Parameter, chance: Random) -> str:
    if isinstance(parameter.type, click.Choice) and chance.random() < 0.8:
        return str(chance.choice([*parameter.type.choices]))
    takes_path = "path" in f"{parameter.name}{type(parameter.type).__name__}".lower() or chance.random() < 0.1
    return chance.choice(_PATHS if takes_path else _WORDS)


def _run_shell(home: Path, chance: Random) -> str:
    program = aihistory if chance.random() < 0.1 else assistant
    line, begun = _draw(*chance.choice([*_leaves(program)]), chance), time.process_time()
    try:
        done = run_in_process(home, *line, command=program)
    except Exception as error:  # noqa: BLE001 -- whatever it is, it is a defect
        return _problem([str(program.name), *line], _traceback(error), begun)
    wrong = "a traceback" if "Traceback (most recent call last)" in done.err + done.out else ""
    wrong = wrong or (f"exit code {done.returncode}" if done.returncode not in (0, 1, 2, 3, 4) else "")
    return _problem([str(program.name), *line], wrong or _unfit(done.err), begun)


async def _run_slash(home: Path, seed: int, numbers: list[int], until: float) -> dict[int, str]:
    tried: dict[int, str] = {}
    async with run_app(home, *["ok"] * (len(numbers) + 9)) as it:
        await it.say("I like tea, and the boat is at Lund.")
        await it.wait_idle()
        leaves = [*_leaves(it.app.commands.root)]
        for number in numbers:
            if time.monotonic() < until:
                chance = Random(f"{seed} {number}")
                tried[number] = await _run_command(it, _draw(*chance.choice(leaves), chance), chance)
        await it.app.agenda_scheduler.fire_due()
        await it.wait_idle()
    return tried


async def _run_command(it: LiveApp, line: list[str], chance: Random) -> str:
    text = " ".join(line) if chance.random() < 0.3 else shlex.join(line)
    begun, wrong = time.process_time(), ""
    try:
        await it.app.commands.run(f"/{text}", chance.choice(_SESSIONS), bridge="kept", target="main")
    except AssistantError as error:
        wrong = _unfit(str(error), quotes=True)
    except Exception as error:  # noqa: BLE001 -- whatever it is, it is a defect
        wrong = _traceback(error)
    return _problem(["slash", *line], wrong, begun)


def _unfit(error: str, *, quotes: bool = False) -> str:
    """What is wrong with the words of an error; one that is not for a terminal yet may quote anything."""
    if len(error) > _LONGEST_ERROR or error.count("\n") > _MOST_LINES:
        return f"an error of {len(error):,} characters in {error.count(chr(10)) + 1} lines"
    return "" if quotes or not {*"\x1b\x07\x01\u202e"} & {*error} else f"an error that a terminal acts on: {error!r}"


def _traceback(error: Exception) -> str:
    return "".join(traceback.format_exception(error))[-1_000:]


def _problem(line: list[str], wrong: str, begun: float) -> str:
    seconds = time.process_time() - begun
    wrong = wrong or (f"it took {seconds:.1f} s of a processor" if seconds > _MOST_SECONDS else "")
    return f"{shlex.join(word[:60] for word in line)}: {wrong}" if wrong else ""
