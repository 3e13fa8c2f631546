"""Signals that end the daemon, heard even where its loop stands still, and an end that comes for certain (F38).

Python runs its signal handlers between two steps of the main thread, asyncio's in the loop: neither happens while a
store or a file system holds the main thread. The bytes that the interpreter writes at every signal are read by a thread
of their own instead. It tells the service manager at once, asks the loop to stop, and sets the interpreter's own timer
(`faulthandler`, which needs neither loop nor interpreter lock): whatever still hangs when the time is up is written to
standard error, thread by thread, and the process ends. What was accepted is in the stores by then.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from assistant.core.shutdown import EXIT_SECONDS

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# A terminal that goes away says so more than once, and means no hurry.
_HURRIES = (signal.SIGINT, signal.SIGTERM)
# What the second signal leaves of the time: to note what was aborted, and to go.
HURRY_SECONDS = 3.0
_STANDARD_ERROR = 2
# So long before the process is ended, a line says why.
_WORD_SECONDS = 0.2
_WORD = (
    "Error: the end took too long and was cut off; what hung is listed below. Everything that was accepted is kept: "
    "the next start goes on with it.\n"
)


def exit_within(seconds: float) -> None:
    """End the process, with what hangs on standard error, unless it has ended by itself until then."""
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        faulthandler.dump_traceback_later(seconds, exit=True, file=_STANDARD_ERROR)


@dataclass(slots=True)
class SignalListener:
    """Reads signals from `ears`, a byte each; `mouth` is where the interpreter writes them.

    `stop` is called at the first signal, `hurry` at a further one, both in a thread of their own; `arm` is told within
    how many seconds the process has to have left, the last word counting."""

    reader: socket.socket
    writer: socket.socket
    end_seconds: float
    stop: Callable[[], None]
    hurry: Callable[[], None]
    arm_exit: Callable[[float], None] = exit_within
    shutdown_begun: threading.Event = field(default_factory=threading.Event)
    _limit: float | None = None
    _deciding: threading.Lock = field(default_factory=threading.Lock)

    def run(self) -> None:
        """Listen until the mouth is closed, or the time for the end is up."""
        with contextlib.suppress(TimeoutError):
            while True:
                self.reader.settimeout(None if self._limit is None else max(self._limit - time.monotonic(), 0.001))
                numbers = self.reader.recv(64)
                if not numbers:
                    return
                for number in numbers:
                    self._hear(number)
        with contextlib.suppress(OSError):
            os.write(_STANDARD_ERROR, _WORD.encode())

    def begin_shutdown(self) -> None:
        """The end has begun, by a signal or without one."""
        with self._deciding:
            first = not self.shutdown_begun.is_set()
            self.shutdown_begun.set()
        if first:
            self.limit_shutdown(self.end_seconds + EXIT_SECONDS)

    def arm_watchdog(self, seconds: float) -> None:
        """Be gone within so many seconds unless this is said again: the watchdog where no manager has one (launchd)."""
        with self._deciding:
            if not self.shutdown_begun.is_set():
                self.arm_exit(seconds)

    def limit_shutdown(self, seconds: float) -> None:
        """Be gone within so many seconds."""
        self._limit = time.monotonic() + seconds - _WORD_SECONDS
        self.arm_exit(seconds)
        with contextlib.suppress(OSError):
            # No signal has this number: the thread looks at its limit again.
            self.writer.send(b"\0")

    def _hear(self, number: int) -> None:
        if number in STOP_SIGNALS and not self.shutdown_begun.is_set():
            self.begin_shutdown()
            self.stop()
        elif number in _HURRIES:
            self.limit_shutdown(HURRY_SECONDS)
            self.hurry()


@contextmanager
def listen_for_stop(
    end_seconds: float, stop: Callable[[], None], hurry: Callable[[], None]
) -> Iterator[SignalListener]:
    """From here on this process ends as told above, for good: what it still does after the context, such as to wait for
    a thread that hangs, is cut off too."""
    ears, mouth = socket.socketpair()
    mouth.setblocking(False)
    listening = SignalListener(ears, mouth, end_seconds, stop, hurry)
    signal.set_wakeup_fd(mouth.fileno(), warn_on_full_buffer=False)
    for number in STOP_SIGNALS:
        # Without a handler of Python's the interpreter would not write the byte.
        signal.signal(number, _noted)
    # A watchdog ends the process by SIGABRT: its log then says where everything stood.
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        faulthandler.enable(_STANDARD_ERROR)
    threading.Thread(target=listening.run, name="signals", daemon=True).start()
    try:
        yield listening
    finally:
        listening.begin_shutdown()
        listening.limit_shutdown(EXIT_SECONDS)


def _noted(number: int, frame: object) -> None:
    """The thread acts."""
