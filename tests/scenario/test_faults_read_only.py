"""A home whose file system becomes read-only under a running daemon, as after an error of the disk: the kernel refuses
every write with EROFS (strace stands in for it), and takes them again later."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.crash.available import needs_strace
from tests.support.command_line import DaemonProcess, run_daemon, run_in_process

_WRITES = "pwrite64,write,ftruncate,fsync,fdatasync"


@contextmanager
def read_only(running: DaemonProcess) -> Iterator[None]:
    """The daemon's own writes to files fail; what it says over sockets does not."""
    words = ["strace", "-f", "-p", str(running.process.pid), "-e", f"trace={_WRITES}", "-o", "/dev/null"]
    with subprocess.Popen([*words, "-e", f"inject={_WRITES}:error=EROFS"], stderr=subprocess.PIPE) as tracer:
        assert tracer.stderr is not None
        while b"attached" not in tracer.stderr.readline():
            assert tracer.poll() is None
        yield
        tracer.terminate()
        tracer.communicate()


@needs_strace
def test_a_home_that_becomes_read_only_refuses_what_it_cannot_keep_says_so_and_goes_on_when_it_is_well(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    with run_daemon(home, ASSISTANT_DAEMON__WATCH_SECONDS="1") as running:
        assert run_in_process(home, "chat", "-m", "remember that the lamp is green").returncode == 0
        with read_only(running):
            refused = run_in_process(home, "chat", "-m", "remember that the chair is blue")
            assert refused.returncode == 1 and "kept" in refused.err, (refused.out, refused.err)
            report = json.loads(run_in_process(home, "status", "--json").out)
            assert not report["ok"]
            assert running.process.poll() is None
        said = run_in_process(home, "chat", "-m", "remember that the door is red")
        assert said.returncode == 0, said.err
        assert json.loads(run_in_process(home, "status", "--json").out)["ok"]
    lines = [json.loads(line) for line in run_in_process(home, "log", "--json").out.splitlines()]
    assert [one["role"] for one in lines] == ["user", "assistant", "user", "assistant"]
    assert [one["content"][-5:] for one in lines if one["role"] == "user"] == ["green", "s red"]
    assert run_in_process(home, "verify").returncode == 0


@needs_strace
def test_a_database_that_could_not_be_opened_for_writing_is_refused_at_once(tmp_path: Path) -> None:
    """SQLite opens it for reading then, and says nothing until the first message is to be kept."""
    path = tmp_path / "script.db"
    program = f"""
import sys
from datetime import UTC, datetime
from pathlib import Path
from assistant.core.errors import AssistantError
from assistant.store.database import Database
from assistant.store.schema.migrations import script_migrations
try:
    Database.open(Path({str(path)!r}), script_migrations, datetime.now(UTC)).close()
except AssistantError as error:
    sys.exit(str(error))
"""
    made = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    # The first to open it looks whether it is there, the second is SQLite.
    refusing = ["strace", "-f", "-P", str(path), "-e", "inject=openat:error=EROFS:when=2", "-o", "/dev/null"]
    done = subprocess.run([*refusing, sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1 and str(path) in done.stderr and "kept" in done.stderr, done.stderr
