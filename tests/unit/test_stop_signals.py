"""Signals read in a thread of their own, and the time that they leave. Bytes stand for signals, as the interpreter
writes them; who ends the process is a list."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from assistant.core.shutdown import EXIT_SECONDS
from assistant.service.stop_signals import HURRY_SECONDS, SignalListener

SECONDS = 10


class SignalLog:
    """A thread that listens, and what came of it."""

    def __init__(self) -> None:
        ears, self.mouth = socket.socketpair()
        self.armed: list[float] = []
        self.stopped, self.hurried = threading.Event(), threading.Event()
        self.listening = SignalListener(ears, self.mouth, 30, self.stopped.set, self.hurried.set, self.armed.append)

    def signal(self, number: int) -> None:
        self.mouth.send(bytes([number]))


@contextmanager
def listening() -> Iterator[SignalLog]:
    heard = SignalLog()
    thread = threading.Thread(target=heard.listening.run)
    thread.start()
    try:
        yield heard
    finally:
        heard.mouth.close()
        thread.join(SECONDS)
        heard.listening.reader.close()
        assert not thread.is_alive()


def test_f38_the_first_signal_begins_an_end_that_has_a_limit() -> None:
    with listening() as heard:
        heard.signal(signal.SIGTERM)
        assert heard.stopped.wait(SECONDS)
    assert heard.armed == [30 + EXIT_SECONDS]
    assert not heard.hurried.is_set()


def test_f38_a_second_signal_hurries() -> None:
    with listening() as heard:
        heard.signal(signal.SIGTERM)
        heard.signal(signal.SIGINT)
        assert heard.hurried.wait(SECONDS)
    assert heard.armed == [30 + EXIT_SECONDS, HURRY_SECONDS]


def test_a_terminal_that_goes_away_says_so_twice_and_means_no_hurry() -> None:
    with listening() as heard:
        heard.signal(signal.SIGHUP)
        heard.signal(signal.SIGHUP)
        heard.signal(signal.SIGCHLD)
        assert heard.stopped.wait(SECONDS)
    assert not heard.hurried.is_set()
    assert len(heard.armed) == 1


def test_an_end_without_a_signal_has_a_limit_too() -> None:
    with listening() as heard:
        heard.listening.begin_shutdown()
        heard.listening.limit_shutdown(2)
    assert heard.armed == [30 + EXIT_SECONDS, 2]


def test_f40_where_no_manager_watches_the_process_watches_itself_until_its_end_has_begun() -> None:
    with listening() as heard:
        heard.listening.arm_watchdog(180)
        heard.listening.arm_watchdog(180)
        heard.listening.begin_shutdown()
        heard.listening.arm_watchdog(180)
    assert heard.armed == [180, 180, 30 + EXIT_SECONDS]


_HANGS = """
import os, sys
from assistant.service.stop_signals import listen_for_stop
with listen_for_stop(-2.5, lambda: os.write(1, b"told to stop"), lambda: None):
    os.write(1, b"hangs, ")
    os.open(sys.argv[1], os.O_RDONLY)
"""


def test_f38_a_process_whose_main_thread_hangs_for_ever_hears_a_signal_ends_and_tells_where(tmp_path: Path) -> None:
    """Nobody ever writes to the pipe that it opens; what an end may take is negative, so that it is soon over."""
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(
        [sys.executable, "-c", _HANGS, str(tmp_path / "pipe")], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.read(7) == b"hangs, "
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, out) == (1, b"told to stop")
    assert b"stopping took too long and was cut off" in err
    assert b'File "<string>", line 6 in <module>' in err


_LOADS = """
import asyncio, os, sys, threading
from assistant.models.metered import MeteredModel

async def main():
    begun, loop = asyncio.Event(), asyncio.get_running_loop()
    def load():
        loop.call_soon_threadsafe(begun.set)
        os.open(sys.argv[1], os.O_RDONLY)
    model = MeteredModel("a", "b", load, ledger=None, estimate_tokens=None, clock=None)
    asking = asyncio.create_task(model.limits())
    await begun.wait()

asyncio.run(main())
"""


def test_f38_a_model_that_is_being_loaded_does_not_hold_up_the_end(tmp_path: Path) -> None:
    """Importing what asks it takes seconds on a slow machine, in which a daemon may be stopped."""
    os.mkfifo(tmp_path / "pipe")
    done = subprocess.run(
        [sys.executable, "-c", _LOADS, str(tmp_path / "pipe")], capture_output=True, timeout=SECONDS, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")


_LOADED = """
import asyncio, os, sys
from assistant.core.calendar import utc_now
from assistant.settings.settings import load_settings
from assistant.wire.app import build_app

async def main():
    app = build_app(load_settings(), utc_now)
    model, *_ = app.models.answering._chain
    await model._load_once()
    os.write(1, f"{'openai' in sys.modules} {'anyio._backends._asyncio' in sys.modules}".encode())
    app.close()

asyncio.run(main())
"""


def test_f38_what_closes_a_model_that_was_never_asked_is_loaded_with_it(tmp_path: Path) -> None:
    """Or closing it imports that in the event loop, which nothing can cut off."""
    settings = {"HOME": str(tmp_path / "home"), "MODEL__PROVIDER": "openai", "MODEL__BASE_URL": "http://127.0.0.1:9/v1"}
    environment = {**os.environ, **{f"ASSISTANT_{name}": value for name, value in settings.items()}}
    done = subprocess.run(
        [sys.executable, "-c", _LOADED], capture_output=True, timeout=10 * SECONDS, check=False, env=environment
    )
    assert done.stdout == b"True True", done.stderr


_INTERRUPTED = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from assistant.cli import start

class Interrupts:
    def find_spec(self, name, *_):
        if name == f"assistant.cli.{sys.argv[1]}":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupts())
start.assistant() if sys.argv[1] == "main" else start.aihistory()
"""


@pytest.mark.parametrize("module", ["main", "aihistory.main"])
def test_an_interrupt_while_a_program_loads_ends_it_without_a_traceback(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED, module], capture_output=True, timeout=SECONDS, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")


def test_the_programs_that_are_installed_begin_there() -> None:
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["scripts"] == {name: f"assistant.cli.start:{name}" for name in ("assistant", "aihistory")}
