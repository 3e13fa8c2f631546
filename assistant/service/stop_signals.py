"""Handles signals that end the daemon even if its event loop is blocked, and guarantees that it ends (F38).

Python runs signal handlers between two steps of the main thread, and asyncio in the loop: neither happens while a store
or a file system blocks the main thread. So a separate thread reads the bytes the interpreter writes at every signal. It
notifies the service manager, asks the loop to stop, and sets the interpreter's own timer (`faulthandler`, which needs
neither the loop nor the interpreter lock): when the time is up, the stacks of all threads are written to standard
error, and the process ends. Accepted messages are stored by then.
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
# A terminal that closes may send several, which are not urgent.
_HURRIES = (signal.SIGINT, signal.SIGTERM)
# Time left after the second signal: to record what was aborted, and to exit.
HURRY_SECONDS = 3.0
_STANDARD_ERROR = 2
# A line explains why the process ends, so long before it does.
_NOTICE_SECONDS = 0.2
_NOTICE = (
    "Error: stopping took too long and was cut off; what hung is listed below. Everything that was accepted is kept, "
    "and the next start continues with it.\n"
)


def exit_within(seconds: float) -> None:
    """End the process after so many seconds, with its stacks on standard error, unless it ends by itself."""
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        faulthandler.dump_traceback_later(seconds, exit=True, file=_STANDARD_ERROR)


@dataclass(slots=True)
class SignalListener:
    """Reads signals in its own thread, one byte each."""

    reader: socket.socket
    writer: socket.socket  # where the interpreter writes signals
    end_seconds: float  # maximum time for a shutdown
    stop: Callable[[], None]  # called at the first signal
    hurry: Callable[[], None]  # called at further ones
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
        """Mark the shutdown as begun, by a signal or otherwise."""
        with self._deciding:
            first = not self.shutdown_begun.is_set()
            self.shutdown_begun.set()
        if first:
            self.limit_shutdown(self.end_seconds + EXIT_SECONDS)

    def arm_watchdog(self, seconds: float) -> None:
        """Exit after so many seconds unless this is called again: a watchdog for managers without one (launchd)."""
        with self._deciding:
            if not self.shutdown_begun.is_set():
                self.arm_exit(seconds)

    def limit_shutdown(self, seconds: float) -> None:
        """Exit after so many seconds."""
        self._limit = time.monotonic() + seconds - _NOTICE_SECONDS
        self.arm_exit(seconds)
        with contextlib.suppress(OSError):
            # No signal has this number: it wakes the thread, which checks its limit.
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
    """From here on this process ends as described above, including work after the context, such as waiting for a
    hanging thread."""
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    listener = SignalListener(reader, writer, end_seconds, stop, hurry)
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    for number in STOP_SIGNALS:
        # Without a Python handler the interpreter would not write the byte.
        signal.signal(number, _ignore)
    # A watchdog ends the process by SIGABRT: the log then has all stacks.
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        faulthandler.enable(_STANDARD_ERROR)
    threading.Thread(target=listener.run, name="signals", daemon=True).start()
    try:
        yield listener
    finally:
        listener.begin_shutdown()
        listener.limit_shutdown(EXIT_SECONDS)


def _ignore(number: int, frame: object) -> None:
    """Do nothing: the thread handles it."""
