"""What leaves the machine: a day of the daemon, its child processes among them, as the kernel saw it.

Every connection and every datagram of the process and of all that it starts is traced (strace): with the built-in model
there is none, and with a provider they go to that provider's address alone.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.crash.available import needs_strace
from tests.scenario.command_line import daemon, look
from tests.strict.behaviour import Answer
from tests.strict.server import StrictServer

_ADDRESS = re.compile(r"sa_family=(AF_\w+)(?:, sin6?_port=htons\((\d+)\))?")
_DAY = (
    ("chat", "-m", "Remember that my sister Ines lives in Bergen."),
    ("chat", "-m", "My dentist is Dr. Aas. Put lamp oil on my list."),
    ("remind", "call Ines", "--at", "tomorrow at 9"),
    ("memory", "search", "where does Ines live"),
    ("sleep",),
    ("backup", "create"),
    ("reset", "--yes"),
    ("status",),
    ("stop",),
)


@contextmanager
def traced(process: int, trace: Path) -> Iterator[None]:
    """Follows a process, and all that it starts from now on."""
    words = ["strace", "-f", "-p", str(process), "-e", "trace=connect,sendto,sendmsg,sendmmsg", "-o", str(trace)]
    with subprocess.Popen(words, stderr=subprocess.PIPE) as tracer:
        assert tracer.stderr is not None
        while b"attached" not in tracer.stderr.readline():
            assert tracer.poll() is None
        yield
        tracer.communicate(timeout=60)


def ports_of_a_day(home: Path, trace: Path, **settings: str) -> set[tuple[str, str]]:
    """Where a daemon went: (kind of address, port), but for sockets of files, which end on this machine."""
    with daemon(home, **settings) as running, traced(running.process.pid, trace):
        for words in _DAY:
            done = look(home, *words)
            assert done.returncode == 0, (words, done.out, done.err)
        assert running.process.wait(60) == 0
    calls = trace.read_text(encoding="utf-8", errors="replace")
    # It was really watched to its end, and its children with it.
    assert "+++ exited with 0 +++" in calls and "HTTP/1.1 202 Accepted" in calls
    assert len({line.split()[0] for line in calls.splitlines()}) > 2
    return {(kind, port) for kind, port in _ADDRESS.findall(calls) if kind != "AF_UNIX"}


@needs_strace
def test_with_the_built_in_model_nothing_leaves_the_machine(tmp_path: Path) -> None:
    assert ports_of_a_day(tmp_path / "home", tmp_path / "trace") == set()


@needs_strace
def test_with_a_provider_nothing_goes_anywhere_else(tmp_path: Path) -> None:
    with StrictServer(*[Answer("Noted.")] * 40) as server:
        port = server.url.rpartition(":")[2]
        settings = {"OPENAI_BASE_URL": f"{server.url}/v1", "ASSISTANT_MODEL__NAME": "local-model"}
        assert ports_of_a_day(tmp_path / "home", tmp_path / "trace", **settings) == {("AF_INET", port)}
