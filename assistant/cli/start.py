"""Where the programs begin: an interrupt (Ctrl-C) while they load ends them without a traceback, and what they load is
not searched for garbage."""

from __future__ import annotations

import gc
import signal

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
