"""`ports.Verifier`: every kind of damage is found and named, and what the logs can give back is given back."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from assistant.core.checkpoints import Compaction
from assistant.core.messages import Message
from assistant.core.records import IntegrityProblem
from assistant.store.database import Database
from assistant.store.script.append import RecordOrigin
from assistant.store.script.sessions import require_session
from assistant.store.verify.verifier import Verifier
from tests.support.imports import import_messages
from tests.support.store_home import NOW, StoreHome, blank_words, tool_round


@pytest.fixture
def home(tmp_path: Path) -> Iterator[StoreHome]:
    """A home with two sessions, tools, an undo, a note and a checkpoint with a carried copy."""
    home = StoreHome(tmp_path / "home").open()
    home.chat(4)
    turn = home.begin_turn("look")
    home.conversation.record_messages(turn, tool_round(result="r" * 3000), NOW)
    home.conversation.finish_turn(turn, "answered", Message("assistant", "seen"), [], NOW)
    home.say("hi", "ho", "peer:x")
    home.conversation.hide_messages("main", [7, 8], NOW)
    home.conversation.annotate("main", "edit", [1], "edited", NOW)
    view = home.conversation.load_view("main")
    copy = view.messages[0].with_content("question 0", carried_from=view.messages[0].id)
    home.conversation.commit_compaction(
        Compaction(
            "main",
            view.prefix_rev,
            "test",
            "drop",
            view.messages[0].id or 0,
            view.messages[3].id or 0,
            4,
            (Message("system", "summary", metadata={"type": "compaction"}), copy),
            "summary",
            40,
            10,
        ),
        NOW,
    )
    assert home.verify().problems == ()
    yield home
    home.close()


def change(home: StoreHome, sql: str) -> None:
    with home.db.write(references=False) as db:
        db.execute(sql)


def kinds(problems: tuple[IntegrityProblem, ...]) -> set[str]:
    return {problem.kind for problem in problems}


def edit_log(home: StoreHome, edit: Callable[[bytes], bytes]) -> None:
    path = home.log.path("main")
    path.write_bytes(edit(path.read_bytes()))


def test_a_whole_home_is_counted_and_has_no_problems(home: StoreHome) -> None:
    report = home.verify()
    assert report.ok
    assert (report.sessions, report.records) == (2, 16)
    assert report.bytes == home.log.size("main") + home.log.size("peer:x")
    assert report.redactions == ()


# ----------------------------------------------------------------------------------------------------------- the log


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        (rb'"content":"answer 2"', b'"content":"answer 9"', "commitment"),
        (rb'"sender":"me"', b'"sender":"yo"', "chain"),
        (rb'"name":"look"', b'"name":"cook"', "commitment"),
        (rb'"arguments":\{"where"', b'"arguments":{"there"', "commitment"),
        (rb'"trust":"model"', b'"trust":"owner"', "chain"),
    ],
)
def test_a_changed_word_is_found(home: StoreHome, old: bytes, new: bytes, kind: str) -> None:
    edit_log(home, lambda data: re.sub(old, new, data, count=1))
    problems = home.verify().problems
    assert kind in kinds(problems)
    assert all(not problem.repairable for problem in problems if problem.kind == kind)


def test_a_changed_commitment_breaks_the_chain(home: StoreHome) -> None:
    def recommit(data: bytes) -> bytes:
        at = data.index(b'"commit":"') + 10
        return data[:at] + b"0" * 64 + data[at + 64 :]

    edit_log(home, recommit)
    assert {"chain", "commitment", "index"} <= kinds(home.verify().problems)


def test_a_removed_line_is_found_where_it_was(home: StoreHome) -> None:
    edit_log(home, lambda data: b"".join(data.splitlines(True)[:3] + data.splitlines(True)[4:]))
    found = home.verify().problems
    assert any(problem.kind == "chain" and "seq 5" in problem.text for problem in found)
    assert any("message 4 (seq 4) is in the index and not in the log" in problem.text for problem in found)


def test_a_broken_line_does_not_end_the_check(home: StoreHome) -> None:
    lines = home.log_bytes().splitlines(True)
    edit_log(home, lambda data: b"".join([lines[0], b"?" * 20 + b"\n", *lines[2:]]))
    report = home.verify()
    assert any(problem.kind == "log" and f"byte {len(lines[0])}" in problem.text for problem in report.problems)
    assert report.records == 15


def test_a_torn_end_is_named_and_repaired(home: StoreHome) -> None:
    edit_log(home, lambda data: data + b'{"v":1,"ki')
    (problem,) = home.verify().problems
    assert (problem.kind, problem.repairable) == ("torn", True)
    assert home.repair().ok
    assert len(list(home.log.path("main").parent.glob("*.torn-*"))) == 1


def test_a_log_without_a_readable_start_is_named(home: StoreHome) -> None:
    home.log.path("peer:x").write_bytes(b"nothing\nat all\n")
    found = home.verify().problems
    assert any(problem.kind == "log" and "peer%3Ax" in problem.where for problem in found)


def test_many_problems_of_a_kind_are_told_in_few_lines(home: StoreHome) -> None:
    import_messages(home.conversation, "main", "owner", [Message("user", f"m{n}") for n in range(100)], NOW)
    change(home, "UPDATE messages SET commitment = 'x'")
    problems = home.verify().problems
    assert len(problems) < 50
    assert any("more like these" in problem.text for problem in problems)


# ------------------------------------------------------------------------------------------------- blanked, not broken


def test_blanked_words_leave_the_chain_provable_and_are_listed(home: StoreHome) -> None:
    blank_words(home, 4, "answer 1")
    home.conversation.annotate("main", "redaction", [4], "", NOW)
    report = home.verify()
    assert report.ok
    assert report.redactions == (4,)


def test_blanks_that_no_redaction_names_are_a_problem(home: StoreHome) -> None:
    blank_words(home, 4, "answer 1")
    assert kinds(home.verify().problems) == {"commitment"}


# --------------------------------------------------------------------------------------------------------- the index


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("DELETE FROM messages WHERE seq = 3 AND session = 'main'", "index"),
        ("DELETE FROM messages WHERE seq = (SELECT max(seq) FROM messages)", "index"),
        ("UPDATE messages SET byte_start = byte_start + 1 WHERE seq = 3", "index"),
        ("UPDATE messages SET scope = 'guest' WHERE seq = 3", "index"),
        ("UPDATE messages SET commitment = 'x' WHERE seq = 3", "index"),
        ("UPDATE messages SET id = 999 WHERE seq = 3 AND session = 'main'", "index"),
        (
            "INSERT INTO messages SELECT 999, session, generation, scope, 99, kind, role, tool_call_id, turn, ts,"
            " byte_start, byte_end, tokens, commitment, hidden_by, unlearned, external_id FROM messages WHERE id = 1",
            "index",
        ),
        ("DELETE FROM conversation_history WHERE message_id = 11", "coverage"),
        (
            "INSERT INTO conversation_history SELECT NULL, session, generation, scope, 1 << 60, message_id, NULL, role,"
            " content, parts, metadata, ts, tokens, bytes, images FROM conversation_history WHERE message_id = 11",
            "coverage",
        ),
        ("UPDATE conversation_history SET carried_from = NULL WHERE carried_from IS NOT NULL", "coverage"),
        ("UPDATE conversation_history SET carried_from = 77 WHERE carried_from IS NOT NULL", "coverage"),
        ("UPDATE conversation_history SET tokens = tokens + 1 WHERE message_id = 11", "coverage"),
        ("UPDATE conversation_history SET position = (1 << 60) - position WHERE message_id > 8", "coverage"),
        ("UPDATE sessions SET view_tokens = 0 WHERE key = 'main'", "coverage"),
    ],
)
def test_damage_to_index_or_view_is_found_and_repaired(home: StoreHome, sql: str, kind: str) -> None:
    before = home.view_contents()
    change(home, sql)
    report = home.verify()
    assert kind in kinds(report.problems)
    repaired = home.repair()
    assert repaired.problems == ()
    copies = 1 if "carried_from = " in sql else 0
    assert home.view_contents() == [text for text in before if not (copies and text == "question 0")]
    assert home.restart().verify().ok


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE checkpoints SET from_seq = 2",
        "UPDATE checkpoints SET to_seq = 3",
        "UPDATE checkpoints SET from_message_id = 999",
        "INSERT INTO tool_runs VALUES (99, 'no such turn', 'main', 1, 'owner', 'c', 'n', '{}', 'done', '', NULL)",
    ],
)
def test_damage_to_what_only_the_database_has_is_found(home: StoreHome, sql: str) -> None:
    change(home, sql)
    assert kinds(home.verify().problems) & {"coverage", "reference"}


def test_a_checkpoint_that_is_gone_leaves_a_gap(home: StoreHome) -> None:
    view = home.conversation.load_view("main")
    ids = [message.id or 0 for message in view.messages[2:4]]
    home.conversation.commit_compaction(
        Compaction("main", view.prefix_rev, "test", "drop", ids[0], ids[1], 2, view.messages[:1], "summary", 40, 10),
        NOW,
    )
    assert home.verify().ok
    change(home, "DELETE FROM checkpoints WHERE checkpoint_num = 1")
    (problem,) = home.verify().problems
    assert "starts at seq 5 where 1 would follow" in problem.text


def test_a_taken_up_message_that_the_log_lost_is_logged_again(home: StoreHome) -> None:
    home.say("only the inbox has this", "yes")
    edit_log(home, lambda data: b"".join(data.splitlines(True)[:-2]))
    assert "inbox" not in kinds(home.verify().problems)
    report = home.repair()
    assert report.problems == ()
    assert "only the inbox has this" in home.add_message()
    assert "only the inbox has this" in home.view_contents()


def test_a_message_missing_from_log_and_index_is_named(home: StoreHome) -> None:
    change(home, "UPDATE inbox SET state = 'answered', message_id = 500 WHERE id = 1")
    assert "inbox" in kinds(home.verify().problems)


def test_repair_leaves_a_whole_home_as_it_is(home: StoreHome) -> None:
    before = home.conversation.load_view("main").messages
    raw, rows = home.log_bytes(), home.db.rows("SELECT * FROM messages ORDER BY id")
    assert home.repair().ok
    assert home.conversation.load_view("main").messages == before
    assert home.log_bytes() == raw
    assert [tuple(row) for row in home.db.rows("SELECT * FROM messages ORDER BY id")] == [tuple(row) for row in rows]


@pytest.mark.parametrize("through", ["repair", "start"])
def test_a_lost_database_is_made_again_from_the_logs(home: StoreHome, through: str) -> None:
    said = home.add_message()
    home.close()
    for path in home.path.glob("script.db*"):
        path.unlink()
    home.open()
    if through == "start":
        assert home.conversation.recover_after_crash(NOW).adopted_records == 16
        assert home.verify().ok
    else:
        assert home.repair().ok
    kept = [text for text in said if text not in ("question 3", "answer 3", "r" * 3000, "")]
    assert [text for text in home.view_contents() if text and not text.startswith("rrr")] == kept
    assert "question 3" not in home.view_contents()
    assert home.view_contents("peer:x") == ["hi", "ho"]
    home.say("and on", "it goes")
    assert home.verify().ok


@pytest.mark.parametrize("through", ["repair", "start"])
def test_a_lost_database_of_a_long_history_shows_its_tail(tmp_path: Path, through: str) -> None:
    home = StoreHome(tmp_path / "long").open()
    said = [Message("user" if n % 2 == 0 else "assistant", f"m{n}") for n in range(3_000)]
    import_messages(home.conversation, "main", "owner", said, NOW)
    home.close()
    for path in home.path.glob("script.db*"):
        path.unlink()
    home.open()
    if through == "start":
        home.conversation.recover_after_crash(NOW)
        assert home.verify().ok
    else:
        assert home.repair().ok
    view = home.conversation.load_view("main")
    assert 100 < len(view.messages) <= 2_000
    assert view.messages[0].role == "user"
    assert view.messages[-1].content == "m2999"
    home.close()


def test_a_broken_page_is_found(home: StoreHome) -> None:
    path = home.path / "character.db"
    path.write_bytes(b"SQLite format 3\x00" + b"\x01" * 4000)
    assert any(
        problem.where.endswith("character.db") or "character.db" in problem.text for problem in home.verify().problems
    )


def test_a_reader_verifies_while_the_daemon_has_the_home_open(home: StoreHome) -> None:
    reading = StoreHome(home.path)
    reading.db = Database.open_reader(home.path / "script.db")
    reading.log, reading.conversation = home.log, home.conversation
    assert reading.verify().ok
    reading.db.close()


def test_a_record_that_a_running_daemon_has_not_indexed_yet_is_no_problem(home: StoreHome) -> None:
    with closing(Database.open_reader(home.path / "script.db")) as db, ExitStack() as written:
        reading = Verifier(home.path, db, home.log, home.conversation)
        appender, session = home.conversation.appender, require_session(home.db, "main")
        draft = appender.draft_record(session, Message("user", "just now"), RecordOrigin(), NOW)
        written.enter_context(appender.appending(session, [draft], NOW))
        assert kinds(reading.verify().problems) == {"index"}

        def commit_meanwhile() -> bool:
            written.close()
            return True

        assert reading.verify(is_served=commit_meanwhile).ok


@pytest.mark.parametrize("name", ["files.db", "log/main/old.jsonl", "mem0"])
def test_what_took_the_place_of_a_file_is_told(home: StoreHome, name: str) -> None:
    os.mkfifo(home.path / name)
    problems = home.verify().problems
    assert [problem.text for problem in problems if problem.text.startswith(f"{name} is a pipe")]
