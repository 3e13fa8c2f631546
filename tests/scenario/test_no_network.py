"""What leaves the machine: a day of the daemon, its child processes among them, as the kernel saw it.

Every connection and every datagram of the process and of all that it starts is traced (strace): with the built-in model
there is none, and with a provider they go to that provider's address alone.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.crash.available import needs_strace
from tests.strict.behaviour import ScriptedAnswer
from tests.strict.server import StrictServer
from tests.support.command_line import ASSISTANT_COMMAND, command_environment, run_in_process

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
_SHORT_DAY = (_DAY[0], ("sleep",), ("stop",))


@contextmanager
def traced(home: Path, trace: Path, **settings: str) -> Iterator[subprocess.Popen[bytes]]:
    """A daemon, ready, that is followed with all that it starts; killed at the end if it still runs."""
    words = ["strace", "-f", "--seccomp-bpf", "-e", "trace=connect,sendto,sendmsg,sendmmsg", "-o", str(trace)]
    env = command_environment(home, ASSISTANT_LOG__LEVEL="error", **settings)
    with subprocess.Popen([*words, *ASSISTANT_COMMAND, "run"], stderr=subprocess.PIPE, env=env) as process:
        try:
            assert process.stderr is not None and b"assistant chat" in process.stderr.readline()
            yield process
        finally:
            # A tracer that is ended lets go of what it traces.
            if process.poll() is None:
                run_in_process(home, "stop")


def ports_of(day: Iterable[tuple[str, ...]], home: Path, trace: Path, **settings: str) -> set[tuple[str, str]]:
    """Where a daemon went: (kind of address, port), but for sockets of files, which end on this machine."""
    with traced(home, trace, **settings) as process:
        for words in day:
            done = run_in_process(home, *words)
            assert done.returncode == 0, (words, done.out, done.err)
        assert process.wait(60) == 0
    calls = trace.read_text(encoding="utf-8", errors="replace")
    # It was really watched to its end, and its children with it.
    assert "+++ exited with 0 +++" in calls and "HTTP/1.1 202 Accepted" in calls
    assert len({line.split()[0] for line in calls.splitlines()}) > 2
    return {(kind, port) for kind, port in _ADDRESS.findall(calls) if kind != "AF_UNIX"}


@needs_strace
def test_with_the_built_in_model_nothing_leaves_the_machine(tmp_path: Path) -> None:
    assert ports_of(_DAY, tmp_path / "home", tmp_path / "trace") == set()


@needs_strace
def test_with_a_provider_nothing_goes_anywhere_else(tmp_path: Path) -> None:
    with StrictServer(*[ScriptedAnswer("Noted.")] * 40) as server:
        port = server.url.rpartition(":")[2]
        settings = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": server.key, "ASSISTANT_MODEL__NAME": "any"}
        assert ports_of(_SHORT_DAY, tmp_path / "home", tmp_path / "trace", **settings) == {("AF_INET", port)}
