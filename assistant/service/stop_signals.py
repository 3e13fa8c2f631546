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
from dataclasses import field

from assistant.core.dataclass import dataclass
from assistant.core.shutdown import EXIT_SECONDS

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# A terminal that goes away says so more than once, and means no hurry.
_HURRIES = (signal.SIGINT, signal.SIGTERM)
# What the second signal leaves of the time: to note what was aborted, and to go.
HURRY_SECONDS = 3.0
_STANDARD_ERROR = 2
# So long before the process is ended, a line says why.
_NOTICE_SECONDS = 0.2
_NOTICE = (
    "Error: stopping took too long and was cut off; what hung is listed below. Everything that was accepted is kept, "
    "and the next start continues with it.\n"
)


def exit_within(seconds: float) -> None:
    """End the process, with what hangs on standard error, unless it has ended by itself until then."""
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        faulthandler.dump_traceback_later(seconds, exit=True, file=_STANDARD_ERROR)


@dataclass(slots=True)
class SignalListener:
    """Reads signals in a thread of its own, a byte each."""

    reader: socket.socket
    writer: socket.socket  # where the interpreter writes signals
    end_seconds: float  # what a shutdown may take
    stop: Callable[[], None]  # called at the first signal
    hurry: Callable[[], None]  # called at a further one
    arm_exit: Callable[[float], None] = exit_within  # the last call counts
    shutdown_begun: threading.Event = field(default_factory=threading.Event)
    _limit: float | None = None
    _deciding: threading.Lock = field(default_factory=threading.Lock)

    def run(self) -> None:
        """Listen until `writer` is closed, or the time for the shutdown is over."""
        with contextlib.suppress(TimeoutError):
            while True:
                self.reader.settimeout(None if self._limit is None else max(self._limit - time.monotonic(), 0.001))
                numbers = self.reader.recv(64)
                if not numbers:
                    return
                for number in numbers:
                    self._handle(number)
        with contextlib.suppress(OSError):
            os.write(_STANDARD_ERROR, _NOTICE.encode())

    def begin_shutdown(self) -> None:
        """The shutdown has begun, by a signal or without one."""
        with self._deciding:
            first = not self.shutdown_begun.is_set()
            self.shutdown_begun.set()
        if first:
            self.limit_shutdown(self.end_seconds + EXIT_SECONDS)

    def arm_watchdog(self, seconds: float) -> None:
        """Exit within so many seconds unless this is called again: the watchdog where no manager has one (launchd)."""
        with self._deciding:
            if not self.shutdown_begun.is_set():
                self.arm_exit(seconds)

    def limit_shutdown(self, seconds: float) -> None:
        """Exit within so many seconds."""
        self._limit = time.monotonic() + seconds - _NOTICE_SECONDS
        self.arm_exit(seconds)
        with contextlib.suppress(OSError):
            # No signal has this number: the thread looks at its limit again.
            self.writer.send(b"\0")

    def _handle(self, number: int) -> None:
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
    """From here on this process ends as described above: what it still does after the context, such as waiting for a
    thread that hangs, is cut off, too."""
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    listener = SignalListener(reader, writer, end_seconds, stop, hurry)
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    for number in STOP_SIGNALS:
        # Without a handler of Python's the interpreter would not write the byte.
        signal.signal(number, _ignore)
    # A watchdog ends the process by SIGABRT: its log then says where everything stood.
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        faulthandler.enable(_STANDARD_ERROR)
    threading.Thread(target=listener.run, name="signals", daemon=True).start()
    try:
        yield listener
    finally:
        listener.begin_shutdown()
        listener.limit_shutdown(EXIT_SECONDS)


def _ignore(number: int, frame: object) -> None:
    """The thread handles it."""
