"""Full disks, failing disks, and messages of odd sizes and contents."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from assistant.core.errors import StoreError
from assistant.core.messages import Message, ToolCall
from assistant.core.records import IncomingMessage
from assistant.store.script.inbox import Inbox
from tests.support.outboxes import recent_items
from tests.support.store_home import NOW, StoreHome, memory_backed_directory, reply_item

TURNS = 8


@pytest.fixture
def home(tmp_path: Path) -> Iterator[StoreHome]:
    home = StoreHome(tmp_path / "home").open()
    yield home
    assert home.verify().problems == ()
    home.close()


def live_through(path: Path, *, prefix: tuple[str, ...] = (), limit: int = 0) -> list[str]:
    """Have a child process say everything under a fault; the errors it met. Everything was said exactly once, in
    order, and the home is whole."""
    run = subprocess.run(
        [
            *prefix,
            sys.executable,
            "-m",
            "tests.support.processes.store_with_disk_errors",
            str(path),
            str(TURNS),
            str(limit),
        ],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        check=False,
    )
    assert run.returncode == 0, run.stderr
    outcome = json.loads(run.stdout)
    expected = [
        said
        for number in range(TURNS)
        for said in (f"question {number}", "", f"result {number} " * 200, f"reply {number}")
    ]
    assert outcome["logged"] == expected
    assert all("\n" not in error and "kept" in error for error in outcome["errors"])
    after = StoreHome(path).open()
    assert after.conversation.recover_after_crash(NOW).running_turns == ()
    assert after.verify().problems == ()
    assert len(recent_items(after.outbox, "main")) == TURNS
    after.close()
    return list(outcome["errors"])


@pytest.mark.parametrize("limit", [4_000, 9_000, 20_000, 120_000, 300_000, 420_000, 500_000])
def test_a_file_that_cannot_grow_leaves_nothing_half_written(tmp_path: Path, limit: int) -> None:
    assert live_through(tmp_path / "home", limit=limit)


def test_a_disk_that_does_not_fail_makes_no_errors(tmp_path: Path) -> None:
    assert live_through(tmp_path / "home") == []


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace makes the writes fail; CI has it")
@pytest.mark.parametrize(
    ("call", "when", "error"),
    [
        *(("fsync,fdatasync", f"{first}+5", "EIO") for first in range(1, 5)),
        *(("write,pwrite64", f"{first}+151", "EIO") for first in (1, 9, 30, 77)),
        *(("write,pwrite64", f"{first}+97", "ENOSPC") for first in (2, 51)),
        ("ftruncate", "1+1", "EIO"),
    ],
)
def test_a_disk_that_fails_now_and_then_loses_nothing(tmp_path: Path, call: str, when: str, error: str) -> None:
    path = tmp_path / "home"
    StoreHome(path).open().close()
    files = [path / "script.db", path / "script.db-wal", path / "log" / "main" / "conversation.jsonl"]
    watched = [argument for file in files for argument in ("-P", str(file))]
    prefix = ("strace", "-f", "-qq", "-o", "/dev/null", *watched, "-e", f"inject={call}:error={error}:when={when}")
    assert bool(live_through(path, prefix=prefix)) == (call != "ftruncate")


def test_a_full_file_system_is_told_and_passes(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mounted = (
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=3m,mode=0700", "tmpfs", str(small)], capture_output=True, check=False
        ).returncode
        == 0
    )
    if not mounted:
        assert live_through(small / "home", limit=300_000)
        return
    home = StoreHome(small / "home").open()
    try:
        _fill_and_go_on(home, small / "filler")
    finally:
        home.close()
        subprocess.run(["umount", str(small)], check=True)


def _fill_and_go_on(home: StoreHome, filler: Path) -> None:
    home.chat(3)
    free = os.statvfs(filler.parent)
    filler.write_bytes(b"x" * (free.f_bavail * free.f_frsize - 40_000))
    said, errors = [], []
    for number in range(60):
        try:
            home.say(f"late {number} " * 40, f"answer {number} " * 40)
            said.append(number)
        except StoreError as error:
            errors.append(str(error))
    assert errors
    assert all("disk" in error.lower() or "space" in error.lower() for error in errors)
    filler.unlink()
    for turn in home.conversation.recover_after_crash(NOW).running_turns:
        home.conversation.finish_turn(turn, "failed", None, [reply_item(turn, "sorry")], NOW)
    home.say("space again", "good")
    assert home.view_contents()[-2:] == ["space again", "good"]
    logged = home.add_message()
    assert all(f"late {number} " * 40 in logged for number in said)
    assert home.verify().problems == ()


# ------------------------------------------------------------------------------------------------- sizes and contents


def test_a_message_of_ten_megabytes_is_kept_whole(home: StoreHome) -> None:
    big = "woord " * (10 * (1 << 20) // 6)
    home.say(big, "that is long")
    home.restart()
    assert home.add_message()[0] == big
    assert home.view_contents()[0] == big


def test_a_long_message_that_changes_its_state_is_not_written_again(home: StoreHome) -> None:
    turn = home.begin_turn("woord " * (10 * (1 << 20) // 6))
    (item,) = turn.items
    inbox = Inbox(home.db, lambda: 0)
    home.db.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    with home.db.write():
        inbox.mark_running([item], turn.id)
        inbox.end_items([item.id], "answered", NOW)
    assert home.db.path.with_name("script.db-wal").stat().st_size < 1 << 16
    home.conversation.finish_turn(turn, "answered", Message("assistant", "long"), [], NOW)


def test_a_tool_result_of_fifty_megabytes_is_whole_in_the_log_alone(home: StoreHome) -> None:
    turn = home.begin_turn("look")
    big = "first " + "".join([f"{number:06x} " for number in range(50 * (1 << 20) // 7)]) + "last"
    call = Message("assistant", "", tool_calls=(ToolCall("c1", "look"),))
    shown = home.conversation.record_messages(turn, [call, Message("tool", big, tool_call_id="c1", name="look")], NOW)
    assert len(shown[-1].content) < 2000
    assert list(home.log.scan("main"))[-1].content == big
    assert home.db.path.stat().st_size + home.db.path.with_name("script.db-wal").stat().st_size < 8 << 20
    home.conversation.finish_turn(turn, "answered", Message("assistant", "long"), [], NOW)


def test_broken_text_is_kept_as_text(home: StoreHome) -> None:
    broken = b"caf\xc3\xa9 \xff\xfe end".decode("utf-8", "surrogateescape") + "\x00 \ud83d \ud83d\ude00"
    accepted = home.conversation.accept(
        IncomingMessage("t", "x\udcff", "main", "owner", "me\ud800", "owner", broken), NOW
    )
    item = home.conversation.inbox_item(accepted.inbox_id)
    assert item is not None
    turn = home.conversation.begin_turn(item, "now \udc80", NOW)
    call = ToolCall("c\ud800", "look", {"path": "a\udcff", "deep": [{"k\ud800": "v\ud800"}]})
    shown = home.conversation.record_messages(turn, [Message("assistant", "hm\udfff", tool_calls=(call,))], NOW)
    home.conversation.start_tool(turn, shown[-1].tool_calls[0], NOW)
    result = Message("tool", "r\x00\udc00", tool_call_id=shown[-1].tool_calls[0].id)
    home.conversation.record_messages(turn, [result], NOW)
    home.conversation.finish_turn(
        turn, "answered", Message("assistant", "ok\ud800"), [reply_item(turn, "ok\ud800")], NOW, error="e\ud800"
    )
    clean = "café \ufffd\ufffd end\x00 \ufffd \U0001f600"
    before = home.conversation.load_view("main")
    assert home.add_message() == home.view_contents() == [clean, "hm\ufffd", "r\x00\ufffd", "ok\ufffd"]
    assert shown[-1].tool_calls[0].arguments == {"path": "a\ufffd", "deep": [{"k\ufffd": "v\ufffd"}]}
    assert [run.state for run in home.conversation.list_tool_runs(turn)] == ["done"]
    assert home.restart().conversation.load_view("main") == before
    assert home.log_bytes().decode("utf-8")


def test_a_network_id_that_is_broken_is_still_accepted_once(home: StoreHome) -> None:
    broken = IncomingMessage("t", "id\udcff", "main", "owner", "me", "owner", "hi")
    assert not home.conversation.accept(broken, NOW).duplicate
    assert home.conversation.accept(broken, NOW).duplicate


def test_ten_thousand_messages_at_once_all_wait_their_turn() -> None:
    with memory_backed_directory() as directory:
        home = StoreHome(directory / "home").open()
        ids = [home.accept(f"m{number}").message_id for number in range(10_000)]
        home.restart()
        home.conversation.recover_after_crash(NOW)
        assert home.conversation.sessions_waiting() == ["main"]
        assert [item.message_id for item in home.conversation.list_accepted("main", limit=20_000)] == ids
        home.conversation.begin_turn(home.conversation.list_accepted("main", limit=1)[0], "", NOW)
        assert len(home.conversation.list_accepted("main", limit=20_000)) == 9_999
        home.close()
