"""What a crash leaves behind, settled: at any operation the transaction may be lost and the log cut anywhere behind
what was indexed, as a power cut does it; afterwards the home is whole and no accepted message is missing."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assistant.core.errors import CorruptStore
from assistant.core.messages import Message
from assistant.core.records import Turn
from tests.support.compactions import kept_copy, live_messages, plan_compaction, plan_masking, summary_message
from tests.support.imports import import_messages
from tests.support.store_home import NOW, StoreHome, count_tokens, memory_backed_directory, reply_item, tool_round

SESSIONS = ("main", "peer:x")
OPERATIONS = ("accept", "begin", "tools", "finish", "undo", "annotate", "compact", "shorten", "ingest", "supersede")


@dataclass(frozen=True)
class CrashStep:
    operation: str
    session: str
    number: int
    crash: Literal["no", "dropped", "commit lost"]
    cut: float
    garbage: bytes


steps = st.builds(
    CrashStep,
    st.sampled_from(OPERATIONS),
    st.sampled_from(SESSIONS),
    st.integers(0, 1000),
    st.sampled_from(["no", "no", "dropped", "commit lost"]),
    st.floats(0, 1),
    st.sampled_from([b"", b"", b"\x00" * 7, b'{"v":1,', b"}\n"]),
)


@dataclass
class CrashingHome:
    """A home that lives through steps and crashes; `accepted` are the ids that were acknowledged, `there` those that
    wait or are in the log."""

    home: StoreHome
    accepted: set[int] = field(default_factory=set)
    there: set[int] = field(default_factory=set)
    turns: dict[str, Turn] = field(default_factory=dict)

    def live(self, step: CrashStep) -> None:
        copy = self._copied()
        acknowledged = self._do(step)
        if step.crash == "no":
            self.accepted |= acknowledged
        elif step.crash == "dropped":
            self.accepted |= acknowledged
            self.home.restart()
            self._come_back()
        else:
            self._lose(copy, step)
        self._check()

    def _do(self, step: CrashStep) -> set[int]:
        if step.operation == "accept":
            return {self.home.accept(f"words {step.number}", step.session).message_id}
        act: Callable[[CrashStep], None] = getattr(self, f"_{step.operation}")
        act(step)
        return set()

    # --------------------------------------------------------------------------------------------------- operations

    def _begin(self, step: CrashStep) -> None:
        waiting = self.home.conversation.list_accepted(step.session)
        if waiting and step.session not in self.turns:
            self.turns[step.session] = self.home.conversation.begin_turn(waiting[0], "", NOW)

    def _tools(self, step: CrashStep) -> None:
        turn = self.turns.get(step.session)
        if turn is not None:
            call, result = tool_round(f"c{step.number}", "r" * (step.number * 3))
            self.home.conversation.start_tool(turn, call.tool_calls[0], NOW)
            self.home.conversation.record_messages(turn, [call, result], NOW)

    def _finish(self, step: CrashStep) -> None:
        turn = self.turns.pop(step.session, None)
        if turn is not None:
            reply = Message("assistant", f"reply {step.number}")
            self.home.conversation.finish_turn(turn, "answered", reply, [reply_item(turn, reply.content)], NOW)

    def _undo(self, step: CrashStep) -> None:
        rows = live_messages(self.home, step.session)
        if rows:
            self.home.conversation.hide_messages(step.session, [rows[step.number % len(rows)].id or 0], NOW)

    def _annotate(self, step: CrashStep) -> None:
        rows = live_messages(self.home, step.session)
        if rows:
            self.home.conversation.annotate(step.session, "edit", [rows[0].id or 0], f"edit {step.number}", NOW)

    def _compact(self, step: CrashStep) -> None:
        rows = live_messages(self.home, step.session)
        if len(rows) >= 2:
            last = step.number % (len(rows) - 1)
            prefix = (summary_message(), kept_copy(rows[0]))
            self.home.conversation.commit_compaction(
                plan_compaction(self.home, 0, last, *prefix, session=step.session), NOW
            )

    def _shorten(self, step: CrashStep) -> None:
        if live_messages(self.home, step.session):
            self.home.conversation.commit_compaction(
                plan_masking(self.home, 0, text="short", session=step.session), NOW
            )

    def _ingest(self, step: CrashStep) -> None:
        said = [Message("user" if n % 2 == 0 else "assistant", f"old {n}") for n in range(step.number % 9)]
        if said:
            import_messages(self.home.conversation, step.session, "owner", said, NOW, keep=5)

    def _supersede(self, step: CrashStep) -> None:
        self.home.conversation.supersede_items(self.home.conversation.list_accepted(step.session), [], NOW)

    # ------------------------------------------------------------------------------------------------------ crashing

    def _copied(self) -> Path:
        copy = self.home.path.with_name("copy")
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir()
        for name in ("script.db", "script.db-wal"):
            shutil.copy(self.home.path / name, copy)
        return copy

    def _lose(self, copy: Path, step: CrashStep) -> None:
        """The database as it was before the step; the logs cut somewhere behind what it has indexed."""
        self.home.close()
        for path in self.home.path.glob("script.db*"):
            path.unlink()
        for path in copy.iterdir():
            shutil.copy(path, self.home.path)
        self.home.open()
        for session in SESSIONS:
            row = self.home.db.row("SELECT max(byte_end) FROM messages WHERE session = ?", (session,))
            path = self.home.log.path(session)
            if path.exists():
                indexed, end = int(row[0] or 0) if row else 0, path.stat().st_size
                with path.open("r+b") as file:
                    file.truncate(indexed + round((end - indexed) * step.cut))
                    file.seek(0, 2)
                    file.write(step.garbage)
        self._come_back()

    def _come_back(self) -> None:
        found = self.home.conversation.recover_after_crash(NOW)
        self.turns = {turn.session: turn for turn in found.running_turns}

    def _check(self) -> None:
        assert self.home.verify().problems == ()
        logged = [record.id for session in SESSIONS for record in self.home.log.scan(session)]
        assert len(logged) == len(set(logged))
        waiting = {
            item.message_id
            for session in SESSIONS
            for item in self.home.conversation.list_accepted(session, limit=1000)
        }
        self.there = waiting | set(logged)
        assert self.accepted <= self.there
        for session in SESSIONS:
            view = self.home.conversation.load_view(session)
            assert view.tokens == sum(count_tokens(message) for message in view.messages)


@settings(deadline=None, max_examples=80, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(lived=st.lists(steps, min_size=1, max_size=30))
def test_f35_no_accepted_message_is_lost_whatever_a_crash_leaves(lived: list[CrashStep]) -> None:
    with memory_backed_directory() as directory:
        home = StoreHome(directory / "home").open()
        life = CrashingHome(home)
        for step in lived:
            life.live(step)
        assert life.accepted <= life.there
        home.close()


# ------------------------------------------------------------------------------------------------- one case at a time


@pytest.fixture
def home(tmp_path: Path) -> Iterator[StoreHome]:
    home = StoreHome(tmp_path / "home").open()
    yield home
    assert home.verify().problems == ()
    home.close()


def crash_after(home: StoreHome, act: Callable[[], object]) -> None:
    """`act` reaches the log, and its transaction is lost."""
    step = CrashStep("", "main", 0, "commit lost", 1.0, b"")
    life = CrashingHome(home)
    copy = life._copied()
    act()
    life._lose(copy, step)


def test_f35_an_acknowledged_message_waits_after_a_restart(home: StoreHome) -> None:
    home.accept("do not lose me")
    home.restart()
    assert [item.incoming.content for item in home.conversation.list_accepted("main")] == ["do not lose me"]
    assert home.conversation.sessions_waiting() == ["main"]


def test_f35_a_message_killed_between_log_and_index_is_answered_once(home: StoreHome) -> None:
    item = home.inbox_item("hi")
    crash_after(home, lambda: home.conversation.begin_turn(item, "", NOW))
    assert home.conversation.sessions_waiting() == ["main"]
    assert home.view_contents() == ["hi"]
    turn = home.conversation.begin_turn(home.conversation.list_accepted("main")[0], "", NOW)
    home.conversation.finish_turn(turn, "answered", Message("assistant", "ho"), [], NOW)
    assert home.add_message() == home.view_contents() == ["hi", "ho"]


def test_a_reply_that_only_the_log_has_is_adopted_and_not_logged_again(home: StoreHome) -> None:
    turn = home.begin_turn("hi")
    reply = Message("assistant", "ho")
    crash_after(home, lambda: home.conversation.finish_turn(turn, "answered", reply, [], NOW))
    (turn,) = home.conversation.recover_after_crash(NOW).running_turns
    said = home.conversation.turn_messages(turn)
    assert [message.content for message in said] == ["hi", "ho"]
    home.conversation.finish_turn(turn, "answered", said[-1], [reply_item(turn, "ho")], NOW)
    assert home.add_message() == ["hi", "ho"]
    assert home.outbox.pending_items("terminal")[0].outgoing.message_id == said[-1].id


def test_an_adopted_tool_result_ends_its_run(home: StoreHome) -> None:
    turn = home.begin_turn("look")
    call, result = tool_round(result="z" * 4000)
    home.conversation.record_messages(turn, [call], NOW)
    home.conversation.start_tool(turn, call.tool_calls[0], NOW)
    crash_after(home, lambda: home.conversation.record_messages(turn, [result], NOW))
    assert [run.state for run in home.conversation.list_tool_runs(turn)] == ["done"]
    assert home.conversation.load_view("main").messages[-1].metadata["truncated"] is True


def test_an_adopted_undo_hides_again(home: StoreHome) -> None:
    home.chat(2)
    crash_after(home, lambda: home.conversation.hide_messages("main", [3, 4], NOW))
    assert home.view_contents() == ["question 0", "answer 0"]


def test_start_tells_what_it_settled(home: StoreHome) -> None:
    home.chat(2)
    turn = home.begin_turn("running")
    home.close()
    with home.log.path("main").open("ab") as file:
        file.write(b'{"v":1')
    home.open()
    found = home.conversation.recover_after_crash(NOW)
    assert (found.adopted_records, [one.id for one in found.running_turns]) == (0, [turn.id])
    (torn,) = found.torn_files
    assert Path(torn).read_bytes() == b'{"v":1'
    assert home.conversation.recover_after_crash(NOW).torn_files == ()


def test_a_torn_first_line_of_an_unknown_session_is_set_aside(home: StoreHome) -> None:
    home.accept("hi", "peer:x")
    stump = home.log.path("peer:new")
    stump.parent.mkdir(parents=True)
    stump.write_bytes(b'{"v":1,"kind":"mess')
    (torn,) = home.conversation.recover_after_crash(NOW).torn_files
    assert Path(torn).read_bytes() == b'{"v":1,"kind":"mess'
    assert not stump.exists()
    home.say("first words", "of a new session", "peer:new")


def test_start_reads_only_what_is_not_indexed(home: StoreHome) -> None:
    home.chat(3)
    home.close()
    whole = home.log_bytes()
    data = bytearray(whole)
    data[20:30] = b"?" * 10
    home.log.path("main").write_bytes(data)
    home.open()
    assert home.conversation.recover_after_crash(NOW).adopted_records == 0
    assert home.verify().problems != ()
    home.log.path("main").write_bytes(whole)


def test_a_log_that_lost_what_was_indexed_stops_the_start(home: StoreHome) -> None:
    home.chat(2)
    whole = home.log_bytes()
    home.log.path("main").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CorruptStore, match="Nothing was changed"):
        home.restart().conversation.recover_after_crash(NOW)
    home.log.path("main").write_bytes(whole)
    home.conversation.recover_after_crash(NOW)
