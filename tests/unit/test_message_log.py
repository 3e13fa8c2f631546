"""The master log: the form of a line, the chain, append-only growth, torn ends."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assistant.core.errors import CorruptStore, StoreError
from assistant.core.messages import LogByteRange, Media, Message, ToolCall
from assistant.core.records import LogRecord
from assistant.store.log.format import GENESIS_HASH
from assistant.store.log.reader import session_folder_name
from assistant.store.log.writer import LogHead, MessageLog
from tests.support.store_home import NOW

BODY = ("content", "name", "tool_calls", "media", "thinking")


def record(content: str = "hello", message_id: int = 1, session: str = "main") -> LogRecord:
    return LogRecord(message_id, 0, NOW, session, 1, "owner", "message", "user", content, "", "", bridge="terminal")


@pytest.fixture
def log(tmp_path: Path) -> Iterator[MessageLog]:
    log = MessageLog(tmp_path)
    yield log
    log.close()


def test_what_was_appended_is_read_back_whole(log: MessageLog) -> None:
    rich = replace(
        record('quotes " and \\ and \u2028 and \x7f'),
        role="assistant",
        name="me",
        tool_calls=(ToolCall("c1", "look", {"b": [1, 2.5, None], "a": "é"}),),
        media=(Media("image", "image/png", "p.png", 3, "QUJD"),),
        thinking=({"type": "thinking", "signature": "x", "thinking": "hm"},),
        model="m-1",
        turn="t1",
        refs=(4, 5),
    )
    placed = log.append([rich, record("next", 2)])
    assert [log.read("main", one.span) for one in placed] == list(placed)
    assert replace(placed[0], seq=0, commit="", prev="", salt="", span=LogByteRange(0, 0)) == rich
    assert placed[0].span.end == placed[1].span.start
    assert list(log.scan("main")) == list(placed)
    assert list(log.scan("main", placed[1].span.start)) == [placed[1]]


def test_what_was_prepared_is_taken_once_and_only_by_what_says_the_same(log: MessageLog) -> None:
    log.prepare(Message("user", "hello", name="Ann"))
    log.prepare(Message("user", "again"))
    placed = log.append([record("hello"), record("again", 2), record("again", 3)])
    assert [(one.content, one.name) for one in log.scan("main")] == [("hello", None), ("again", None), ("again", None)]
    assert len({one.salt for one in placed}) == 3
    assert log.recover_tail("main", LogHead(), NOW) is None


def test_a_line_is_json_with_the_body_last(log: MessageLog) -> None:
    log.append([record()])
    line = log.path("main").read_text(encoding="utf-8")
    assert line.endswith("\n")
    assert list(json.loads(line))[-6:] == ["salt", *BODY]
    assert json.loads(line)["v"] == 1


def test_commitment_and_chain_can_be_made_again_from_the_json_alone(log: MessageLog) -> None:
    log.append([record("een", 1), record("twee", 2)])
    log.append([record("drie", 3)])
    expected = GENESIS_HASH
    for line in log.path("main").read_text(encoding="utf-8").splitlines():
        raw = json.loads(line)
        body = json.dumps({key: raw[key] for key in BODY}, ensure_ascii=False, separators=(",", ":"))
        header = {key: value for key, value in raw.items() if key not in (*BODY, "salt")}
        assert raw["commit"] == hashlib.sha256(bytes.fromhex(raw["salt"]) + body.encode()).hexdigest()
        assert raw["prev"] == expected
        expected = hashlib.sha256(json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()).hexdigest()


def test_the_same_words_have_another_commitment_each_time(log: MessageLog) -> None:
    first, second = log.append([record("yes", 1), record("yes", 2)])
    assert first.commit != second.commit
    assert len(bytes.fromhex(first.salt)) == 16


def test_a_value_that_looks_like_the_salt_key_misleads_nobody(log: MessageLog) -> None:
    trick = '","salt":"00000000000000000000000000000000","content":"x"}'
    log.append([replace(record(trick), sender=trick, scope=trick)])
    log.append([record("after", 2)])
    assert log.recover_tail("main", LogHead(), NOW) is None
    assert [one.content for one in log.scan("main")] == [trick, "after"]


def test_nul_is_kept_and_half_a_surrogate_becomes_a_replacement_character(log: MessageLog) -> None:
    log.append([record("a\x00b \ud800 c \ud83d\ude00")])
    assert next(log.scan("main")).content == "a\x00b \ufffd c \U0001f600"


def test_numbers_that_json_lacks_are_written_as_text(log: MessageLog) -> None:
    call = ToolCall("c", "n", {"x": float("nan"), "y": [float("inf")]})
    log.append([replace(record(), role="assistant", tool_calls=(call,))])
    assert json.loads(log.path("main").read_text())["tool_calls"][0]["arguments"] == {"x": "nan", "y": ["inf"]}


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=st.lists(st.lists(st.text(max_size=30), min_size=1, max_size=4), min_size=1, max_size=6))
def test_f16_the_log_only_ever_grows(tmp_path_factory: pytest.TempPathFactory, batches: list[list[str]]) -> None:
    home = tmp_path_factory.mktemp("home")
    log, before, at = MessageLog(home), b"", 0
    for batch in batches:
        placed = log.append([record(text, at := at + 1) for text in batch])
        log.close()
        after = log.path("main").read_bytes()
        assert after.startswith(before)
        assert len(after) == placed[-1].span.end
        before, log = after, MessageLog(home)
    assert [one.seq for one in log.scan("main")] == list(range(1, at + 1))
    log.close()


def test_a_new_log_object_continues_the_chain(log: MessageLog, tmp_path: Path) -> None:
    (first,) = log.append([record("one", 1)])
    again = MessageLog(tmp_path)
    (second,) = again.append([record("two", 2)])
    again.close()
    assert (second.seq, second.span.start) == (2, first.span.end)
    assert log.recover_tail("main", LogHead(), NOW) is None


@pytest.mark.parametrize("torn", [b'{"v":1,"kind":"mess', b"\x00\x00\x00\x00", b'{"v":1}\n', b"\xff\xfe\n"])
def test_a_torn_last_line_is_set_aside(log: MessageLog, tmp_path: Path, torn: bytes) -> None:
    (kept,) = log.append([record("kept", 1)])
    log.close()
    with log.path("main").open("ab") as file:
        file.write(torn)
    again = MessageLog(tmp_path)
    assert again.read_head("main", NOW).end == kept.span.end
    (aside,) = log.path("main").parent.glob("conversation.jsonl.torn-*")
    assert aside.name == "conversation.jsonl.torn-20261120T100000.000000Z"
    assert aside.read_bytes() == torn
    assert aside.stat().st_mode & 0o777 == 0o600
    again.append([record("after", 2)])
    again.close()
    assert [one.content for one in again.scan("main")] == ["kept", "after"]


def test_a_log_that_holds_only_a_torn_line_starts_anew(log: MessageLog, tmp_path: Path) -> None:
    log.path("main").parent.mkdir(parents=True)
    log.path("main").write_bytes(b"{")
    (first,) = log.append([record()])
    assert (first.seq, first.prev, first.span.start) == (1, GENESIS_HASH, 0)


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        (b'"content":"two"', b'"content":"2.."', ["one"]),
        (b'"seq":2', b'"seq":7', ["one"]),
        (b'"id":2', b'"id":7', ["one", "two"]),
        (b'"id":2,', b'"id":\xff,', ["one"]),
    ],
)
def test_what_breaks_the_chain_is_set_aside_with_all_behind_it(
    log: MessageLog, old: bytes, new: bytes, kept: list[str]
) -> None:
    one, two, _ = log.append([record("one", 1), record("two", 2), record("three", 3)])
    log.path("main").write_bytes(log.path("main").read_bytes().replace(old, new, 1))
    assert log.recover_tail("main", LogHead(one.span.end, 1, 1, two.prev), NOW) is not None
    assert [record.content for record in log.scan("main")] == kept


def test_what_was_indexed_is_never_set_aside(log: MessageLog) -> None:
    (one,) = log.append([record("one", 1)])
    log.recover_tail("main", LogHead(), NOW)
    log.close()
    log.path("main").write_bytes(b"x" * one.span.end)
    with pytest.raises(CorruptStore):
        log.append([record("two", 2)])
    assert log.path("main").read_bytes() == b"x" * one.span.end


def test_a_log_shorter_than_what_was_indexed_is_refused(log: MessageLog) -> None:
    one, two = log.append([record("one", 1), record("two", 2)])
    log.path("main").write_bytes(log.path("main").read_bytes()[: one.span.end])
    with pytest.raises(CorruptStore, match="ends at byte"):
        log.recover_tail("main", LogHead(two.span.end, 2, 2, "x"), NOW)


def test_a_log_that_was_removed_takes_no_more_words(log: MessageLog) -> None:
    log.append([record()])
    log.path("main").unlink()
    with pytest.raises(StoreError, match="removed or changed"):
        log.append([record("lost?", 2)])


def test_a_log_that_another_program_wrote_to_takes_no_more_words(log: MessageLog) -> None:
    log.append([record()])
    with log.path("main").open("ab") as file:
        file.write(b"intruder\n")
    with pytest.raises(StoreError, match="removed or changed"):
        log.append([record("over it", 2)])


@contextmanager
def no_file_over(size: int) -> Iterator[None]:
    """As on a full disk: files do not grow beyond `size`; what fits is written, the rest is not."""
    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, old)


@pytest.mark.parametrize("room", [0, 1, 100, 700])
def test_a_batch_that_does_not_fit_leaves_nothing(log: MessageLog, room: int) -> None:
    log.append([record("kept", 1)])
    before = log.path("main").read_bytes()
    with no_file_over(len(before) + room), pytest.raises(StoreError, match=r"was not written.*kept; make room"):
        log.append([record("a", 2), record("b", 3)])
    assert log.path("main").read_bytes() == before
    log.append([record("after", 4)])
    assert [(one.seq, one.content) for one in log.scan("main")] == [(1, "kept"), (2, "after")]


_CHILD = """
import sys
from pathlib import Path
from assistant.core.errors import StoreError
from assistant.store.log.writer import MessageLog
from tests.unit.test_message_log import no_file_over, record
log = MessageLog(Path(sys.argv[1]))
log.append([record("kept", 1)])
try:
    with no_file_over(log.size("main") + 50):
        log.append([record("half", 2)])
except StoreError:
    print("refused", log.size("main"))
log.append([record("after", 3)])
print([one.content for one in log.scan("main")])
"""


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace makes the truncation fail; CI has it")
def test_what_could_not_be_taken_back_is_set_aside_before_the_next_append(tmp_path: Path) -> None:
    log = tmp_path / "log" / "main" / "conversation.jsonl"
    watched = ("-P", str(log), "-e", "inject=ftruncate:error=EIO:when=1")
    run = subprocess.run(
        ["strace", "-f", "-qq", "-o", "/dev/null", *watched, sys.executable, "-c", _CHILD, str(tmp_path)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        check=True,
    )
    (aside,) = log.parent.glob("*.torn-*")
    assert len(aside.read_bytes()) == 50
    assert run.stdout.splitlines()[-1] == "['kept', 'after']"
    assert run.stdout.startswith("refused")
    assert log.read_bytes().count(b"\n") == 2


def test_a_torn_end_that_cannot_be_copied_stays(log: MessageLog, tmp_path: Path) -> None:
    log.append([record("kept", 1)])
    log.close()
    with log.path("main").open("ab") as file:
        file.write(b"{" * 5000)
    before = log.path("main").read_bytes()
    with no_file_over(2000), pytest.raises(StoreError, match="could not be set aside"):
        log.read_head("main", NOW)
    assert log.path("main").read_bytes() == before
    assert log.read_head("main", NOW).seq == 1


def test_open_files_are_bounded(tmp_path: Path) -> None:
    log = MessageLog(tmp_path, max_open=4)
    for number in range(20):
        log.append([record("hi", number + 1, f"peer:x:{number}")])
        log.read(f"peer:x:{number}", LogByteRange(0, log.size(f"peer:x:{number}")))
    open_files = [path for path in Path("/proc/self/fd").iterdir() if str(tmp_path) in str(path.resolve())]
    assert len(open_files) <= 8
    (again,) = log.append([record("again", 21, "peer:x:0")])
    assert again.seq == 2
    assert len(log.sessions()) == 20
    log.close()


@pytest.mark.parametrize("session", ["..", ".", "", "a/b", "../../etc", "room:matrix:!Ab:x.org", "x\x00y", "é" * 400])
def test_no_session_key_leaves_the_log_directory(log: MessageLog, session: str) -> None:
    log.append([record("hi", 1, session)])
    path = log.path(session)
    assert path.resolve().parent.parent == (log.root).resolve()
    assert log.sessions() == [session]


def test_keys_that_differ_in_capitals_have_directories_that_differ_without_them() -> None:
    assert session_folder_name("peer:m:Ada").lower() != session_folder_name("peer:m:ada").lower()
    assert session_folder_name("x" * 500) != session_folder_name("x" * 499 + "y")
    assert len(session_folder_name("ü" * 500).encode()) <= 255


def test_files_belong_to_their_owner_alone(log: MessageLog) -> None:
    log.append([record()])
    assert log.path("main").stat().st_mode & 0o777 == 0o600
    assert log.path("main").parent.stat().st_mode & 0o777 == 0o700


def test_a_record_of_fifty_megabytes_is_written_and_read(log: MessageLog) -> None:
    big = "x" * (50 << 20)
    (one,) = log.append([record(big, 1)])
    (two,) = log.append([record("after", 2)])
    log.close()
    assert log.read_head("main", NOW).seq == 2
    assert log.read("main", one.span).content == big
    assert log.read("main", two.span).prev != one.prev


def test_times_are_utc_and_of_one_width(log: MessageLog) -> None:
    log.append([record("a", 1), replace(record("b", 2), ts=NOW + timedelta(microseconds=5))])
    stamps = [json.loads(line)["ts"] for line in log.path("main").read_text().splitlines()]
    assert stamps == ["2026-11-20T10:00:00.000000Z", "2026-11-20T10:00:00.000005Z"]
