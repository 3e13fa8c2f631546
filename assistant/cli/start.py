"""Where the programs begin: an interrupt (Ctrl-C) while they load ends them without a traceback."""

from __future__ import annotations

import signal

# Before anything else is imported. Whoever starts this may have it ignore interrupts, and then they stay ignored.
_is_heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler
if _is_heard:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _hear_interrupts() -> None:
    if _is_heard:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def assistant() -> None:
    from assistant.cli.main import main

    _hear_interrupts()
    main()


def aihistory() -> None:
    from assistant.cli.aihistory.main import main

    _hear_interrupts()
    main()
