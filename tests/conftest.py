"""Property tests try the same examples in every run of CI, so that a change is judged and not luck; run by hand they
look further each time."""

from __future__ import annotations

import fcntl
import gc
import os
import shutil
import signal
import tempfile
import tomllib
from collections.abc import Generator, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import structlog
from hypothesis import settings

from tests.support import dovecot, forked_modules, new_databases, synapse
from tests.support.longest_first import put_longest_first

_HERE = Path(__file__).parent

settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")

# Whoever starts the tests in the background of a shell has them ignore Ctrl-C, and every program that they start too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests ask nothing of a disk but its system calls, and on some disks half of their time is waiting for fsync. All data
# folders of a whole run are half a gigabyte.
_MEMORY = Path("/dev/shm")
if "TMPDIR" not in os.environ and os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > 2 << 30:
    os.environ["TMPDIR"] = tempfile.tempdir = str(_MEMORY)

# Several workers share the cores: threads of numpy's in each of them wait for one another, spinning.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# The list of data folders of whoever runs the tests is theirs.
_STATE = TemporaryDirectory(prefix="assistant-tests-")
os.environ["XDG_STATE_HOME"] = _STATE.name

# Every client of HTTP begins by reading whom the machine trusts, hundreds of authorities, in 25 ms; no test needs one.
os.environ["SSL_CERT_FILE"] = str(_HERE / "support" / "unused_ca.pem")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what `slow.toml` lists: `make test` leaves it to `make test-all`. Workers begin with the longest."""
    table = tomllib.loads((_HERE / "slow.toml").read_text(encoding="utf-8"))
    first: dict[str, list[pytest.Item]] = {}
    for item in items:
        module = item.path.relative_to(_HERE).as_posix()
        lists, names = table.get(module, {}), {"*", item.name, item.name.partition("[")[0]}
        if names & set(lists.get("tests", ())):
            item.add_marker(pytest.mark.slow)
        if names & set(lists.get("first", ())):
            first.setdefault(module, []).append(item)
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if workers > 1:
        items[:] = put_longest_first(items, first.values(), workers)


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """What is collected stays: nothing is looked through for what could go, neither meanwhile nor by each test."""
    gc.disable()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """In a new checkout one worker rewrites the asserts of a module, and the others wait for what it writes: all begin
    at once, and each would do it."""
    path = collector.path
    if not isinstance(collector, pytest.Module) or any((path.parent / "__pycache__").glob(f"{path.stem}.*-pytest-*")):
        return (yield)
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        return (yield)


def pytest_collection_finish() -> None:
    gc.enable()
    gc.freeze()


new_databases.make_new_databases_once()
forked_modules.fork_modules()
# An error that is logged is shown plainly: rich takes a second to draw the values of each frame.
_LOG_PROCESSORS = [
    *structlog.get_config()["processors"][:-1],
    structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
]
structlog.configure(processors=_LOG_PROCESSORS)


@pytest.fixture(autouse=True)
def _logs_as_they_begin() -> Iterator[None]:
    """A command line that was run in this process leaves its level of logging behind."""
    yield
    structlog.reset_defaults()
    structlog.configure(processors=_LOG_PROCESSORS)


@pytest.fixture(scope="session")
def homeserver() -> Iterator[synapse.Synapse]:
    with synapse.run_synapse() as server:
        yield server


@pytest.fixture(scope="session")
def imap_server() -> Iterator[dovecot.Dovecot]:
    with dovecot.running_dovecot() as server:
        yield server
