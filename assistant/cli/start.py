"""Where the programs begin: standard streams are open, an interrupt (Ctrl-C) while they load ends them without a
traceback, and what they load is not searched for garbage."""

from __future__ import annotations

import gc
import os
import signal
import sys


def _open_standard_streams() -> None:
    """Open to nothing what is closed of them: else the next file that is opened, a log or a database, would have the
    number that errors are written to, and whoever prints would fail."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            try:
                os.fstat(number)
            except OSError:
                os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # gets the lowest free number
            nothing = os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, os.fdopen(nothing, "w" if number else "r", encoding="utf-8"))


_open_standard_streams()

# New objects after which the collector of cycles looks at them. After Python's own 700 it would walk what a start
# loads, which all stays, two hundred times. A daemon that is ready goes back to those (`keep_for_good`).
_COLLECT_AFTER = 200_000
# Before anything else is imported. Whoever starts this may have it ignore interrupts, and then they stay ignored.
_is_heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler
if _is_heard:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _hear_interrupts() -> None:
    if _is_heard:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def assistant() -> None:
    gc.set_threshold(_COLLECT_AFTER)
    from assistant.cli.main import main

    _hear_interrupts()
    main()


def aihistory() -> None:
    gc.set_threshold(_COLLECT_AFTER)
    from assistant.cli.aihistory.main import main

    _hear_interrupts()
    main()
