"""What the harness believes of strace's injection, shown on a process of a few calls."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.crash import strace
from tests.crash.available import needs_strace
from tests.crash.strace import Injection

pytestmark = needs_strace


def run(
    place: Path, injection: Injection | None = None, paths: tuple[Path, ...] = ()
) -> tuple[int, list[strace.SystemCall]]:
    """A process that writes 1, 2, 3 to the file `told`, each time after a write to the file `other`."""
    closed, gate = os.pipe()
    process = os.fork()
    if not process:
        os.close(gate)
        os.read(closed, 1)
        _write_three(place)
    os.close(closed)
    tracer = strace.attach(process, place / "trace", paths, injection)
    os.close(gate)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    strace.end(tracer)
    return status, strace.calls(place / "trace", [place / "home"])


def _write_three(place: Path) -> None:
    told = os.open(place / "home" / "told", os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    other = os.open(place / "other", os.O_CREAT | os.O_WRONLY, 0o600)
    failed = 0
    for number in (b"1", b"2", b"3"):
        os.write(other, b"-")
        try:
            os.write(told, number)
        except OSError:
            failed += 1
        os.fsync(told)
    os._exit(failed)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path


def told(place: Path) -> bytes:
    return (place / "home" / "told").read_bytes()


def test_calls_are_listed_with_their_file_and_what_was_written(place: Path) -> None:
    status, calls = run(place)
    assert status == 0
    assert [(c.name, c.number) for c in calls] == [
        ("openat", 1),
        ("write", 1),
        ("fsync", 1),
        ("write", 2),
        ("fsync", 2),
        ("write", 3),
        ("fsync", 3),
    ]
    assert calls[0].creates and {c.paths for c in calls} == {(place / "home" / "told",)}
    assert [c.data for c in calls if c.name == "write"] == [b"1", b"2", b"3"]


def test_a_killed_call_has_no_effect_and_the_ones_before_it_have_theirs(place: Path) -> None:
    status, calls = run(place, Injection("write", 2), (place / "home" / "told",))
    assert status == -9
    assert told(place) == b"1"
    assert (calls[-1].name, calls[-1].data, calls[-1].result) == ("write", b"2", None)


def test_calls_on_other_files_are_not_counted(place: Path) -> None:
    run(place, Injection("write", 2))
    assert told(place) == b"", "without a path, the second write is the first one on the file"


def test_failing_calls_fail_as_often_as_asked_for_and_have_no_effect(place: Path) -> None:
    status, calls = run(place, Injection("write", 2, "ENOSPC", 2), (place / "home" / "told",))
    assert status == 2
    assert told(place) == b"1"
    assert [(c.result or 0) < 0 for c in calls if c.name == "write"] == [False, True, True]


def test_a_call_that_another_thread_interrupts_on_paper_has_its_result_and_comes_where_it_returned(place: Path) -> None:
    """As strace writes it down; a call that is lost here would be a write or a sync that a power cut forgets."""
    told, other = (_as_strace_writes(place / "home" / name) for name in "ab")
    lines = (
        f'7 pwrite64(3{told}, "\\x31", 1, 40 <unfinished ...>',
        f'8 write(4{other}, "\\x32", 1) = 1',
        "7 <... pwrite64 resumed>)           = 1",
        f"7 fsync(3{told} <unfinished ...>",
        f"8 fsync(4{other}) = 0",
    )
    (place / "trace").write_text("\n".join(lines))
    calls = strace.calls(place / "trace", [place / "home"])
    assert [(call.thread, call.name, call.result) for call in calls] == [
        (8, "write", 1),
        (7, "pwrite64", 1),
        (8, "fsync", 0),
        (7, "fsync", None),
    ]
    assert (calls[1].data, calls[1].arguments.rpartition(",")[2].strip()) == (b"1", "40")


def test_a_fork_of_a_process_that_traces_nothing_leaves_no_process_behind(place: Path) -> None:
    run(place)
    left = subprocess.run(["pgrep", "-P", str(os.getpid())], capture_output=True, text=True, check=False).stdout.split()
    assert not [process for process in left if Path(f"/proc/{process}/comm").exists() and _name(process) == "strace"]


def _as_strace_writes(path: Path) -> str:
    return "<" + "".join(f"\\x{byte:02x}" for byte in str(path).encode()) + ">"


def _name(process: str) -> str:
    return Path(f"/proc/{process}/comm").read_text().strip()
