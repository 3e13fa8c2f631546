"""Compactions in any order, with everything that can happen between them: after every step the home is whole, every
message is covered or in view once, and a compaction taken back leaves exactly the view that was there before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from assistant.context.build import build_request
from assistant.context.pressure import RequestBudgets
from assistant.context.structure import block_starts
from assistant.core.checkpoints import Checkpoint, Compaction
from assistant.core.messages import Message
from assistant.models import anthropic_format
from assistant.store.database import Database
from assistant.store.log.writer import MessageLog
from sleep.compaction import planner
from sleep.compaction.fallback import plan_fallback
from sleep.compaction.plan import merge_checkpoints
from sleep.compaction.values import CompactionInputs, CompactionLimits, CompactionPolicy, Summary
from tests.strict.validate import validate_messages
from tests.support.compactions import (
    kept_copy,
    live_messages,
    plan_compaction,
    plan_masking,
    plan_merge,
    summary_message,
)
from tests.support.conversation_strategies import COUNTER, FRAME, LIMITS, MODEL, PROTECTED
from tests.support.store_home import NOW, StoreHome, count_tokens, memory_backed_directory, tool_round

KEPT = 4
STRATEGIES = ("hybrid", "summary", "mask", "sliding_window", "deletion", "selective")
numbers = st.integers(0, 1 << 20)
Row = tuple[str, str, int | None, tuple[int, int, int]]


@dataclass
class SessionPast:
    """What a session was before each of its compactions that are in effect, and what was hidden in it."""

    before: list[tuple[int, tuple[Row, ...]]] = field(default_factory=list)
    hidden: set[int] = field(default_factory=set)


class CompactionMachine(RuleBasedStateMachine):
    """The home is opened again without being closed, as after a kill, at any time."""

    @initialize()
    def begin(self) -> None:
        self.dead: list[Database | MessageLog] = []
        self.directory = memory_backed_directory()
        self.home = StoreHome(self.directory.__enter__() / "home", undo_kept=KEPT).open()
        self.sessions: dict[str, SessionPast] = {"main": SessionPast()}
        self.started: dict[str, int] = {}
        self.home.chat(2)
        self._talk_at_length("main", 8)

    def teardown(self) -> None:
        if hasattr(self, "home"):
            for store in (*self.dead, self.home):
                store.close()
            self.directory.__exit__(None, None, None)

    # ------------------------------------------------------------------------------------------------------- saying

    @rule(number=numbers, tools=st.booleans())
    def talk(self, number: int, tools: bool) -> None:
        key = self._one_of(number)
        turn = self.home.begin_turn(f"question {number} " * (number % 80), key)
        if tools:
            self.home.conversation.record_messages(turn, tool_round(f"c{number}", "r" * (number % 3000)), NOW)
        self.home.conversation.finish_turn(
            turn, "answered", Message("assistant", f"answer {number} " * (1 + number % 60)), [], NOW
        )

    @rule(number=numbers, many=st.integers(2, 6))
    def talk_at_length(self, number: int, many: int) -> None:
        self._talk_at_length(self._one_of(number), many)

    def _talk_at_length(self, key: str, many: int) -> None:
        """Enough to be worth a plan."""
        for number in range(many):
            self.home.say(f"question {number} " * 40, f"answer {number} " * 40, key)

    @rule(number=numbers, many=st.integers(1, 3))
    def hide(self, number: int, many: int) -> None:
        key = self._one_of(number)
        rows = live_messages(self.home, key)
        # What is kept as a copy can be taken back as well.
        shown = {row.metadata.get("carried_from", row.id) for row in self.home.conversation.load_view(key).messages}
        own = [row.id for row in rows] + [one for one in shown if one in self._said(key)]
        wanted = sorted({one for one in own if one is not None})
        if wanted:
            at = number % len(wanted)
            self.sessions[key].hidden.update(wanted[at : at + many])
            self.home.conversation.hide_messages(key, wanted[at : at + many], NOW)

    # --------------------------------------------------------------------------------------------------- compacting

    @rule(number=numbers, share=st.floats(0, 1), copies=st.integers(0, 3), started=st.booleans(), absorb=st.booleans())
    def compact(self, number: int, share: float, copies: int, started: bool, absorb: bool) -> None:
        key = self._one_of(number)
        rows = live_messages(self.home, key)
        if not rows:
            return
        last = round(share * (len(rows) - 1))
        kept = [
            kept_copy(row) for row in self.home.conversation.load_view(key).messages[: last + 1] if not row.is_summary
        ]
        planned = plan_compaction(self.home, 0, last, summary_message(f"s{number}"), *kept[:copies], session=key)
        if absorb:
            planned = replace(planned, absorbed_ids=tuple(one.id for one in self._live(key)[-(number % 3) :]))
        if last + 1 < len(rows) and number % 2:
            planned = replace(planned, shortened=plan_masking(self.home, last + 1, session=key).shortened)
        if started:
            planned = replace(planned, started_id=self._begun(planned))
            self.home.say("meanwhile", "answered", key)
        self._commit(planned)

    @rule(number=numbers, tokens=st.integers(600, 6_000), strategy=st.sampled_from(STRATEGIES))
    def carry_out_a_plan(self, number: int, tokens: int, strategy: Any) -> None:
        """What the planner makes of the view is committed as it is, and makes it smaller (I7)."""
        key = self._one_of(number)
        view = self.home.conversation.load_view(key)
        places = self.home.conversation.find_log_places([row.id for row in view.messages if row.id is not None])
        terms = CompactionLimits(
            RequestBudgets(tokens, tokens // 8, 10**7, 20), COUNTER, protected_tools=frozenset({PROTECTED})
        )
        policy = CompactionPolicy(
            strategy, preserve_messages=1 + number % 6, preserve_share=0.05, summary_max_tokens=200
        )
        on = tuple(self._live(key))
        found = planner.plan_compaction(
            view, places, terms, policy, CompactionInputs(checkpoints=on), NOW, trigger="sleep"
        )
        said = Summary("They talked.", "full", 3)
        planned = found.as_compaction()
        if found.merge_ids:
            pair = [one for one in on if one.id in found.merge_ids]
            planned = merge_checkpoints(view, pair, on, said, COUNTER, "sleep", NOW)
        elif found.pending_summary is not None:
            planned = found.pending_summary.complete(said, NOW)
        if planned is not None:
            self._commit(planned)
            if not found.merge_ids:
                assert self.home.conversation.load_view(key).tokens < view.tokens

    @rule(number=numbers, tokens=st.integers(300, 3_000))
    def bring_to_the_floor(self, number: int, tokens: int) -> None:
        key = self._one_of(number)
        view = self.home.conversation.load_view(key)
        places = self.home.conversation.find_log_places([row.id for row in view.messages if row.id is not None])
        terms = CompactionLimits(
            RequestBudgets(tokens, tokens // 8, 10**7, 20), COUNTER, protected_tools=frozenset({PROTECTED})
        )
        planned = plan_fallback(view, places, terms, NOW).as_compaction()
        if planned is not None:
            self._commit(planned)

    @rule(number=numbers, some=st.sets(st.integers(0, 12), min_size=1, max_size=4))
    def shorten(self, number: int, some: set[int]) -> None:
        key = self._one_of(number)
        rows = live_messages(self.home, key)
        indexes = sorted({index % len(rows) for index in some}) if rows else []
        if indexes:
            self._commit(plan_masking(self.home, *indexes, text=f"[short {number % 7}]", session=key))

    @rule(number=numbers, many=st.integers(2, 3))
    def merge(self, number: int, many: int) -> None:
        key = self._one_of(number)
        found = self._live(key)
        if len(found) >= many:
            start = number % (len(found) - many + 1)
            self._commit(
                plan_merge(self.home, found[start : start + many], summary_message(f"merged {number}"), session=key)
            )

    @rule(number=numbers)
    def begin_only(self, number: int) -> None:
        """One whose process is killed, or that is given up."""
        key = self._one_of(number)
        if live_messages(self.home, key):
            begun = self._begun(plan_compaction(self.home, 0, 0, session=key))
            if begun is not None and number % 3 == 0:
                self.home.conversation.abandon_compaction(begun, "given up")
                del self.started[key]

    @precondition(lambda self: any(known.before for known in self.sessions.values()))
    @rule(number=numbers, deep=st.integers(0, 3))
    def take_back(self, number: int, deep: int) -> None:
        keys = [key for key, known in self.sessions.items() if known.before]
        key = keys[number % len(keys)]
        known = self.sessions[key]
        back = known.before[-1 - deep % len(known.before) :]
        said = len(live_messages(self.home, key))
        told = self.home.conversation.plan_uncompact(key, back[0][0])
        after = self.home.conversation.undo_compaction(told, key, NOW)
        assert told.checkpoint_ids == tuple(one for one, _ in reversed(back))
        assert (told.tokens, told.bytes, told.images) == (after.tokens, after.bytes, after.images)
        before = [row for row in back[0][1] if self._is_shown(row, known)]
        assert list(self._rows(key)[: len(before)]) == before
        assert len(live_messages(self.home, key)) >= said
        del known.before[len(known.before) - len(back) :]

    # ---------------------------------------------------------------------------------------------- branches, crashes

    @precondition(lambda self: len(self.sessions) < 4)
    @rule(number=numbers)
    def branch(self, number: int) -> None:
        key = self._one_of(number)
        messages = self.home.conversation.load_view(key).messages
        ends = [at for at in (*block_starts(messages)[1:], len(messages)) if messages and messages[at - 1].id]
        if ends:
            at = ends[number % len(ends)]
            info = self.home.conversation.branch_session(key, messages[at - 1].id or 0, NOW)
            self.sessions[info.key] = SessionPast()
            assert self.home.view_contents(info.key)[:-1] == [message.content for message in messages[:at]]

    @rule()
    def crash(self) -> None:
        """The stores are opened anew beside those of a process that is no more; what it had begun has failed."""
        shown = {key: self.home.conversation.load_view(key) for key in self.sessions}
        self.dead += [self.home.db, self.home.log]
        self.home.open().conversation.recover_after_crash(NOW)
        self.started.clear()
        assert {key: self.home.conversation.load_view(key) for key in self.sessions} == shown
        assert not any(one.state == "started" for key in self.sessions for one in self._checkpoints(key))

    @rule(number=numbers)
    def read_for_the_journal(self, number: int) -> None:
        key = self._one_of(number)
        said = sorted(self._said(key).values())
        self.home.conversation.mark_extracted(key, 1, said[number % len(said)])

    @rule()
    def idle(self) -> None:
        self.home.conversation.run_maintenance()

    # ---------------------------------------------------------------------------------------------- what always holds

    @invariant()
    def the_home_is_whole(self) -> None:
        if hasattr(self, "home"):
            assert self.home.verify().problems == ()

    @invariant()
    def every_message_is_covered_or_shown_once(self) -> None:
        """I3, counted here in another way than the stores do."""
        for key in getattr(self, "sessions", {}):
            rows = self.home.db.rows("SELECT id, seq, hidden_by, kind FROM messages WHERE session = ?", (key,))
            shown = [row.id for row in live_messages(self.home, key)]
            covered = [
                seq
                for row in self.home.db.rows(
                    "SELECT from_seq, to_seq FROM checkpoints WHERE session_id = ? AND state = 'live'", (key,)
                )
                for seq in range(row["from_seq"], row["to_seq"] + 1)
            ]
            for row in rows:
                if row["kind"] != "undo" and row["hidden_by"] is None:
                    assert covered.count(row["seq"]) + shown.count(row["id"]) == 1
            assert covered == [] or sorted(covered) == list(range(1, max(covered) + 1))

    @invariant()
    def totals_and_sources_are_right(self) -> None:
        """Running totals (I4), and every summary names the checkpoints it stands for (I6)."""
        for key in getattr(self, "sessions", {}):
            view = self.home.conversation.load_view(key)
            assert [size[0] for size in view.sizes] == [count_tokens(message) for message in view.messages]
            assert tuple(map(sum, zip(*view.sizes, strict=True))) == (view.tokens, view.bytes, view.images) or (
                view.messages == () and (view.tokens, view.bytes, view.images) == (0, 0, 0)
            )
            named = [row for row in view.messages if row.is_summary and not row.metadata.get("inherited")]
            assert [row.metadata["checkpoints"] for row in named] == [[one.id for one in self._live(key)]] * len(named)

    @invariant()
    def what_is_sent_is_well_formed(self) -> None:
        """I5, by the rules of a provider: pairs whole, a request at the end, nothing empty."""
        for key in getattr(self, "sessions", {}):
            asked = Message("user", "and now?", id=1 << 40)
            view = self.home.conversation.load_view(key)
            request = build_request(replace(view, messages=(*view.messages, asked)), FRAME, LIMITS)
            assert validate_messages(anthropic_format.render_anthropic_request(request, MODEL)) == []
            assert request.messages[-1].content.endswith("and now?")

    # ------------------------------------------------------------------------------------------------------- helpers

    def _one_of(self, number: int) -> str:
        return list(self.sessions)[number % len(self.sessions)]

    def _checkpoints(self, key: str) -> list[Checkpoint]:
        return self.home.conversation.checkpoints(key)

    def _live(self, key: str) -> list[Checkpoint]:
        found = [one for one in self._checkpoints(key) if one.state == "live"]
        return sorted(found, key=lambda one: one.from_message_id)

    def _said(self, key: str) -> dict[int, int]:
        """The session's own messages that are not hidden, and their seqs."""
        rows = self.home.db.rows(
            "SELECT id, seq FROM messages WHERE session = ? AND kind = 'message' AND hidden_by IS NULL", (key,)
        )
        return {row["id"]: row["seq"] for row in rows} or {0: 0}

    def _begun(self, planned: Compaction) -> int | None:
        """None where one was begun before and was not given up."""
        ids = (planned.from_message_id, planned.to_message_id)
        rev, until = planned.prefix_rev, NOW + timedelta(minutes=5)
        begun = self.home.conversation.begin_compaction(planned.session, rev, "nap", ids, until, NOW)
        assert (begun is None) == (planned.session in self.started)
        if begun is not None:
            self.started[planned.session] = begun
        return begun

    def _commit(self, planned: Compaction) -> None:
        rows = self._rows(planned.session)
        done = self.home.conversation.commit_compaction(planned, NOW)
        known = self.sessions[planned.session]
        known.before = [*known.before, (done.id, rows)][-KEPT:]
        if planned.started_id is not None:
            del self.started[planned.session]

    def _rows(self, key: str) -> tuple[Row, ...]:
        view = self.home.conversation.load_view(key)
        return tuple(
            (row.content, repr((row.role, sorted(row.metadata.items()), row.tool_calls)), _origin(row), size)
            for row, size in zip(view.messages, view.sizes, strict=True)
        )

    def _is_shown(self, row: Row, known: SessionPast) -> bool:
        return row[2] not in known.hidden


def _origin(row: Message) -> int | None:
    origin: int | None = row.metadata.get("carried_from", row.id)
    return origin


TestCompactions: Callable[[], object] = CompactionMachine.TestCase
TestCompactions.settings = settings(  # type: ignore[attr-defined]
    deadline=None,
    max_examples=40,
    stateful_step_count=25,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
pytestmark = pytest.mark.timeout(600)
