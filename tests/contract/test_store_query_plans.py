"""What a turn asks of the database, it finds by an index: no statement reads a table from end to end, so that a turn
costs after years what it cost on the first day."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from assistant.core.checkpoints import Checkpoint
from assistant.core.messages import Message, Usage
from assistant.core.model_api import ModelCall
from assistant.core.records import TokenCalibration
from assistant.core.sessions import GenerationEnd
from assistant.settings.sections import BudgetSettings
from assistant.spending.notices import render_notice
from assistant.store.script.generations import StoredGenerations
from assistant.store.script.index import UnreadMessages
from assistant.store.script.ledger import Ledger
from assistant.store.script.turns import Delegations, UserRequests
from assistant.store.script.usage import CircuitBreakers, ModelFacts
from tests.support.compactions import plan_compaction, plan_masking, plan_merge, summary_message
from tests.support.imports import import_messages
from tests.support.outboxes import recent_items
from tests.support.store_home import NOW, StoreHome, reply_item, tool_round

READS_ALL = re.compile(
    r"^SCAN (?!CONSTANT|\d+ CONSTANT ROWS|waiting\b|json_each\b|\(subquery|.* USING (COVERING )?INDEX"
    r" (inbox_accepted|turns_running|checkpoints_started|delegations_running)$)"
)
"""The indexes named hold open items alone, however many there ever were."""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[StoreHome]:
    home = StoreHome(tmp_path).open()
    yield home
    home.close()


def traced(home: StoreHome) -> list[str]:
    statements: list[str] = []
    home.db.connection.set_trace_callback(statements.append)
    return statements


def scans(home: StoreHome, statements: list[str]) -> list[str]:
    """Statements that read a whole table or index, with their plans."""
    home.db.connection.set_trace_callback(None)
    found = []
    for sql in dict.fromkeys(statements):
        if sql.split()[0] not in ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH") or "messages_fts" in sql:
            continue
        plan = home.db.rows(f"EXPLAIN QUERY PLAN {sql}")
        found += [f"{row['detail']}: {sql}" for row in plan if READS_ALL.match(row["detail"])]
    return found


def test_a_turn_reads_no_table_from_end_to_end(home: StoreHome) -> None:
    home.chat(3)
    ledger = Ledger(
        home.db,
        BudgetSettings(
            daily_usd=5.0, monthly_usd=50.0, daily_tokens=0, monthly_tokens=0, background_share=0.5, runaway_calls=5
        ),
        ZoneInfo("UTC"),
        render_notice,
    )
    statements = traced(home)
    turn = home.begin_turn("look")
    call, result = tool_round()
    home.conversation.load_view("main")
    ledger.settle_reservation(
        ledger.reserve(ModelCall("chat", "p", "m", 1, 1, 0.1), NOW), Usage(1, 1, cost_usd=0.1), NOW
    )
    home.conversation.record_messages(turn, [call], NOW)
    home.conversation.start_tool(turn, call.tool_calls[0], NOW)
    home.conversation.record_messages(turn, [result], NOW)
    home.conversation.list_tool_runs(turn)
    home.conversation.turn_messages(turn)
    home.conversation.join_turn(turn, home.inbox_item("and"), NOW)
    home.conversation.finish_turn(turn, "answered", Message("assistant", "ok"), [reply_item(turn, "ok")], NOW)
    home.conversation.report_usage("main", 0, 10, 1)
    ModelFacts(home.db).set_calibration(TokenCalibration("m", 1.0, 1), NOW)
    home.conversation.sessions_waiting()
    for item in home.outbox.pending_items("terminal"):
        home.outbox.set_state(item.id, "sending", NOW)
        home.outbox.set_state(item.id, "sent", NOW)
    home.outbox.list_by_turn(turn.id)
    recent_items(home.outbox, "main")
    home.conversation.hide_messages("main", [1], NOW)
    home.conversation.annotate("main", "edit", [2], "x", NOW)
    assert len(statements) > 60
    assert scans(home, statements) == []


def test_compactions_and_what_belongs_to_them_read_no_table_from_end_to_end(home: StoreHome) -> None:
    home.chat(8)
    reader, requests, delegations = (
        UnreadMessages(home.db, home.log),
        UserRequests(home.db, home.log),
        Delegations(home.db),
    )
    statements = traced(home)
    first, second = (compacted(home) for _ in range(2))
    home.conversation.commit_compaction(plan_merge(home, [first, second], summary_message()), NOW)
    home.conversation.commit_compaction(plan_masking(home, 0, 1), NOW)
    home.conversation.undo_compaction(home.conversation.plan_uncompact("main", second.id), "main", NOW)
    home.conversation.mark_extracted("main", 1, reader.read_after("main", 1, 0, limit=3)[-1].seq)
    home.conversation.checkpoints("main")
    home.conversation.newest_checkpoints("main", 3)
    home.outbox.stored_keys(["turn:1", "turn:2"], "owner")
    requests.list_open("main")
    requests.list_requests("owner")
    requests.close_requests("main", [1], "open", "user", [], NOW)
    (one,) = delegations.begin("k", "t", "main", "owner", ["look"], NOW)
    delegations.end(one.id, "done", "seen", 0.0, NOW)
    delegations.list_for_session("main")
    delegations.interrupt_running(NOW)
    CircuitBreakers(home.db).record_failure("summary", "x", 3, NOW)
    CircuitBreakers(home.db).record_success("summary")
    assert len(statements) > 150
    assert scans(home, statements) == []


def compacted(home: StoreHome) -> Checkpoint:
    planned = plan_compaction(home, 0, 3, summary_message())
    named = (planned.from_message_id, planned.to_message_id)
    until = NOW + timedelta(minutes=5)
    started = home.conversation.begin_compaction("main", planned.prefix_rev, "nap", named, until, NOW)
    return home.conversation.commit_compaction(replace(planned, started_id=started), NOW)


def test_a_start_reads_no_history_from_end_to_end(home: StoreHome) -> None:
    home.chat(3)
    home.restart()
    statements = traced(home)
    home.conversation.recover_after_crash(NOW)
    allowed = [scan for scan in scans(home, statements) if " sessions " not in f"{scan.split(':')[0]} "]
    assert allowed == []


def test_the_view_is_read_once_and_extended_after_that(home: StoreHome) -> None:
    home.chat(3)
    home.conversation.load_view("main")
    statements = traced(home)
    home.say("more", "and more")
    home.conversation.load_view("main")
    assert not [sql for sql in statements if "ORDER BY position" in sql and "LIMIT" not in sql]
    home.db.connection.set_trace_callback(None)
    assert home.view_contents()[-1] == "and more"


@contextmanager
def counted_steps(home: StoreHome) -> Iterator[list[int]]:
    """How many instructions SQLite carries out meanwhile."""
    steps = [0]

    def step() -> int:
        steps[0] += 1
        return 0

    connection: sqlite3.Connection = home.db.connection
    connection.set_progress_handler(step, 1)
    try:
        yield steps
    finally:
        connection.set_progress_handler(None, 0)


def a_turn(home: StoreHome) -> None:
    turn = home.begin_turn("look")
    home.conversation.record_messages(turn, tool_round(), NOW)
    home.conversation.turn_messages(turn)
    home.conversation.load_view("main")
    home.conversation.sessions_waiting()
    home.conversation.finish_turn(turn, "answered", Message("assistant", "ok"), [reply_item(turn, "ok")], NOW)
    for item in home.outbox.pending_items("terminal"):
        home.outbox.set_state(item.id, "sending", NOW)
        home.outbox.set_state(item.id, "sent", NOW)


def test_a_turn_takes_as_many_steps_after_three_thousand_messages(home: StoreHome) -> None:
    for _ in range(3):
        a_turn(home)
    with counted_steps(home) as few:
        a_turn(home)
    said = [Message("user" if n % 2 == 0 else "assistant", f"m{n}") for n in range(3_000)]
    import_messages(home.conversation, "main", "owner", said, NOW, keep=20)
    for _ in range(100):
        a_turn(home)
    with counted_steps(home) as many:
        a_turn(home)
    assert many[0] <= few[0] * 1.2


def test_a_message_and_a_turn_take_as_many_steps_while_a_thousand_others_wait(home: StoreHome) -> None:
    def steps() -> tuple[int, int]:
        with counted_steps(home) as accepted:
            home.accept("hi", "thread:one")
        with counted_steps(home) as answered:
            a_turn(home)
        return accepted[0], answered[0]

    for _ in range(3):
        steps()
    few = steps()
    for number in range(1_000):
        home.accept("hi", f"thread:{number % 3}")
    many = steps()
    assert many[0] <= few[0] * 1.2 and many[1] <= few[1] * 1.2


def test_a_compaction_takes_as_many_steps_after_a_hundred_others(home: StoreHome) -> None:
    """Ten are kept to be taken back, and all have merged before; the history and the view stay as long as they were."""

    def steps() -> int:
        home.chat(2)
        with counted_steps(home) as counted:
            done = compacted(home)
            home.conversation.mark_extracted("main", 1, 1 << 40)
        live = [one for one in home.conversation.checkpoints("main") if one.state == "live"]
        if len(live) > 4:
            oldest = sorted(live, key=lambda one: one.from_message_id)[:2]
            home.conversation.commit_compaction(plan_merge(home, oldest, summary_message()), NOW)
        assert done.messages_compressed == 4
        return counted[0]

    home.chat(4)
    few = max(steps() for _ in range(15))
    import_messages(home.conversation, "main", "owner", [Message("user", f"m{n}") for n in range(3_000)], NOW, keep=8)
    for _ in range(85):
        steps()
    assert max(steps() for _ in range(4)) <= few * 1.2


def test_however_many_checkpoints_become_one_it_takes_as_many_statements(home: StoreHome) -> None:
    """An import leaves thousands."""

    def merged(count: int) -> int:
        home.chat(2 * count)
        several = [compacted(home) for _ in range(count)]
        statements = traced(home)
        home.conversation.commit_compaction(plan_merge(home, several, summary_message()), NOW)
        home.db.connection.set_trace_callback(None)
        return len(statements)

    assert merged(12) == merged(3)


def test_sessions_are_listed_without_reading_what_earlier_conversations_said(home: StoreHome) -> None:
    home.chat(150)
    home.conversation.begin_next_generation(GenerationEnd("main", 1, 300, "It ended.", "manual"), NOW)
    home.chat(4)
    compacted(home)
    with counted_steps(home) as steps:
        (info,) = home.conversation.list_sessions()
    assert info.unextracted == 3
    assert steps[0] < 800


def test_what_a_session_was_is_told_without_reading_its_messages(home: StoreHome) -> None:
    home.chat(150)
    home.conversation.hide_messages("main", [299, 300], NOW)
    with counted_steps(home) as steps:
        (generation,) = StoredGenerations(home.db, home.log).list_generations("main")
    visible = "SELECT count(*) FROM messages WHERE kind = 'message' AND hidden_by IS NULL"
    assert generation.messages == home.db.value(visible) < 300
    assert steps[0] < 400


def test_idle_work_empties_the_write_ahead_log(home: StoreHome) -> None:
    home.chat(5)
    home.conversation.run_maintenance()
    busy, in_log, moved = home.db.rows("PRAGMA wal_checkpoint(PASSIVE)")[0]
    assert (busy, in_log) == (0, moved)
    size = home.db.path.stat().st_size
    assert size == home.db.rows("PRAGMA page_count")[0][0] * home.db.rows("PRAGMA page_size")[0][0]


def test_the_waiting_are_found_without_reading_those_that_wait(home: StoreHome) -> None:
    for number in range(300):
        home.accept("hi", f"peer:{number % 3}")
    with counted_steps(home) as steps:
        assert len(home.conversation.sessions_waiting()) == 3
    assert steps[0] < 600
