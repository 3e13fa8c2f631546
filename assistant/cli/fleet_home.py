"""The process of a home on a host. On Linux it is forked from one that has loaded what homes need (`fleet_preload`);
elsewhere each loads it for itself.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess
from pathlib import Path

from assistant.core.errors import StoreError
from assistant.sandbox.own_folder import hide_siblings
from assistant.settings.home import home_from_environment, replace_environment

_PRELOADED = "assistant.cli.fleet_preload"
_SET_PARENT_DEATH_SIGNAL = 1  # prctl(2)
_IS_LINUX = sys.platform == "linux"


def prepare_forking() -> bool:
    """Start the process from which homes are forked, and wait until it has loaded what they need. Return whether this
    system lets a home be kept from seeing the others' folders."""
    context = _context()
    if isinstance(context, ForkServerContext):
        context.set_forkserver_preload([_PRELOADED])
    with tempfile.TemporaryDirectory(prefix="nocturne-fleet-") as folder:
        first = context.Process(target=_hide_or_exit, args=(Path(folder) / "home",))
        first.start()
        first.join()
    return first.exitcode == 0


def start_home(
    environment: Mapping[str, str], commands: Sequence[Sequence[str]], memory_bytes: int, *, hides: bool
) -> BaseProcess:
    """Start a process that runs these commands of `assistant` one after the other, up to the first that fails.
    `memory_bytes`: of its data and that of each process that it starts; 0 for no limit (Linux). `hides`: it does not
    see the folders beside its own."""
    process = _context().Process(target=_run_home, args=(dict(environment), commands, memory_bytes, hides))
    process.start()
    return process


def _context() -> ForkServerContext | SpawnContext:
    return multiprocessing.get_context("forkserver") if _IS_LINUX else multiprocessing.get_context("spawn")


def _run_home(environment: dict[str, str], commands: Sequence[Sequence[str]], memory_bytes: int, hides: bool) -> None:
    from assistant.cli.lazy import run_guarded
    from assistant.cli.main import assistant

    replace_environment(environment)
    if hides:
        _hide_or_exit(home_from_environment().path)
    if _IS_LINUX:
        _limit(memory_bytes)
    # All that homes say is on the host's standard error.
    sys.stdout = sys.stderr
    for words in commands:
        if code := run_guarded(assistant, words):
            sys.exit(code)


def _hide_or_exit(folder: Path) -> None:
    if not _IS_LINUX:
        sys.exit(1)
    try:
        hide_siblings(folder)
    except StoreError as error:
        sys.exit(str(error))


def _limit(memory_bytes: int) -> None:
    import resource

    if memory_bytes:
        resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    # It is asked to stop when its host dies, and with it the process that forked this one.
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
