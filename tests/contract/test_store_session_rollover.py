"""Where one generation of a session ends and the next begins: one line of the log, then one transaction."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from assistant.core.errors import StaleView, StoreError, UsageError
from assistant.core.messages import Message
from assistant.core.records import SessionInfo
from assistant.core.sessions import GenerationEnd, SessionReset
from assistant.store.script.generations import StoredGenerations, StoredResets
from assistant.store.script.index import UnreadMessages
from tests.contract.test_store_crash import crash_after
from tests.support.compactions import kept_copy, live_messages, plan_compaction, plan_masking, summary_message
from tests.support.imports import import_messages
from tests.support.store_home import NOW, StoreHome, blank_words, reply_item

LATER = timedelta(hours=1)
WORDS = "The conversation before this one ended."


@pytest.fixture
def home(tmp_path: Path) -> Iterator[StoreHome]:
    home = StoreHome(tmp_path / "home").open()
    home.chat(3)
    yield home
    assert home.verify().problems == ()
    home.close()


def end(home: StoreHome, *, resumes: int | None = None, words: str = WORDS, reason: str = "manual") -> SessionInfo:
    known = StoredGenerations(home.db, home.log)
    spoken = known.current_activity("main")
    assert spoken is not None
    ending = GenerationEnd("main", spoken.generation, known.last_seq("main"), words, reason, resumes=resumes)
    return home.conversation.begin_next_generation(ending, NOW + LATER)


def test_the_next_generation_begins_with_the_note_and_counters_of_its_own(home: StoreHome) -> None:
    home.conversation.report_usage("main", 0, 900, 6)
    before = home.log_bytes()
    (was,) = home.conversation.list_sessions()
    info = end(home)
    assert (info.generation, info.messages, info.view_messages) == (2, 7, 1)
    assert (info.started_at, info.last_at) == (was.started_at, NOW + LATER)
    view = home.conversation.load_view("main")
    (note,) = view.messages
    assert (note.role, note.content, note.metadata) == ("system", WORDS, {"type": "handover", "refs": []})
    assert (view.tokens, view.reported) == (view.sizes[0][0], None)
    assert home.log_bytes().startswith(before)
    first, second = StoredGenerations(home.db, home.log).list_generations("main")
    assert (first.number, first.messages, first.ended_at, first.end_reason) == (1, 6, NOW + LATER, "manual")
    assert (second.number, second.messages, second.from_seq, second.ended_at) == (2, 0, 7, None)
    home.say("after", "yes")
    assert home.view_contents() == [WORDS, "after", "yes"]
    assert home.restart().view_contents() == [WORDS, "after", "yes"]


def test_what_was_planned_on_the_old_view_is_not_committed_to_the_new_one(home: StoreHome) -> None:
    planned = plan_compaction(home, 0, 3, summary_message())
    end(home)
    with pytest.raises(StaleView):
        home.conversation.commit_compaction(planned, NOW)
    home.say("after", "yes")
    done = home.conversation.commit_compaction(
        plan_compaction(home, 0, 1, summary_message("[CONTEXT SUMMARY] new")), NOW
    )
    assert done.generation == 2
    assert home.view_contents() == ["[CONTEXT SUMMARY] new", "yes"]


def test_what_was_written_since_the_archive_voids_the_ending(home: StoreHome) -> None:
    known = StoredGenerations(home.db, home.log)
    ending = GenerationEnd("main", 1, known.last_seq("main"), WORDS, "manual")
    home.say("late", "yes")
    with pytest.raises(StaleView):
        home.conversation.begin_next_generation(ending, NOW)
    home.conversation.begin_next_generation(GenerationEnd("main", 1, known.last_seq("main"), WORDS, "manual"), NOW)
    with pytest.raises(StaleView):
        home.conversation.begin_next_generation(GenerationEnd("main", 1, known.last_seq("main"), WORDS, "manual"), NOW)
    assert home.view_contents() == [WORDS]


def test_no_generation_ends_while_a_turn_of_it_is_open(home: StoreHome) -> None:
    turn = home.begin_turn("a question")
    with pytest.raises(UsageError, match="still being answered"):
        end(home)
    home.conversation.finish_turn(turn, "answered", Message("assistant", "so"), [reply_item(turn, "so")], NOW)
    assert end(home).generation == 2


def test_what_was_accepted_before_is_answered_in_the_next_generation(home: StoreHome) -> None:
    item = home.inbox_item("waits")
    end(home)
    turn = home.conversation.begin_turn(item, "", NOW)
    assert (turn.generation, home.view_contents()) == (2, [WORDS, "waits"])
    home.conversation.finish_turn(turn, "answered", Message("assistant", "so"), [reply_item(turn, "so")], NOW)


def test_what_the_journal_has_not_read_waits_to_be_read(home: StoreHome) -> None:
    home.conversation.mark_extracted("main", 1, 2)
    end(home)
    (info,) = home.conversation.list_unread_generations()
    assert (info.key, info.generation, info.unextracted) == ("main", 1, 4)
    assert [one.seq for one in UnreadMessages(home.db, home.log).read_after("main", 1, 2)] == [3, 4, 5, 6]
    home.conversation.mark_extracted("main", 1, 6)
    assert home.conversation.list_unread_generations() == []


def test_what_was_read_does_not_wait(home: StoreHome) -> None:
    home.conversation.mark_extracted("main", 1, 6)
    end(home)
    assert home.conversation.list_unread_generations() == []


@pytest.mark.parametrize("resumes", [None, 1])
def test_a_crash_after_the_line_is_logged_leaves_the_new_generation_whole(home: StoreHome, resumes: int | None) -> None:
    end(home)
    home.say("more", "so")
    resets = StoredResets(home.db)
    resets.begin(SessionReset("main", 2, "owner", "manual", "begun", NOW))
    crash_after(home, lambda: end(home, resumes=resumes))
    again = StoredGenerations(home.db, home.log).list_generations("main")
    assert [(one.number, one.end_reason, one.resumed) for one in again] == [
        (1, "manual", None),
        (2, "manual", None),
        (3, "", resumes),
    ]
    said = [] if resumes is None else ["question 0", "answer 0", "question 1", "answer 1", "question 2", "answer 2"]
    assert home.view_contents() == [*said, WORDS]
    ended = [StoredResets(home.db).find("main", number) for number in (1, 2, 3)]
    assert [reset.state for reset in ended if reset is not None] == ["done"]


def test_a_database_that_refuses_leaves_one_whole_generation_to_the_next_message(home: StoreHome) -> None:
    refuse = "CREATE TEMP TRIGGER full BEFORE INSERT ON messages BEGIN SELECT RAISE(FAIL, 'full'); END"
    home.db.rows(refuse)
    with pytest.raises(StoreError):
        end(home)
    home.db.rows("DROP TRIGGER full")
    assert home.view_contents()[0] == "question 0"
    home.say("after", "yes")
    assert home.view_contents() == [WORDS, "after", "yes"]
    assert [record.generation for record in home.log.scan("main")] == [1] * 6 + [2] * 3


def test_an_earlier_conversation_goes_on(home: StoreHome) -> None:
    first = live_messages(home)[0]
    home.conversation.commit_compaction(plan_compaction(home, 0, 3, summary_message(), kept_copy(first)), NOW)
    home.conversation.commit_compaction(plan_masking(home, 1), NOW)
    home.say("more", "so")
    home.conversation.hide_messages("main", [7], NOW)
    end(home)
    home.say("other", "things")
    for _ in range(3):
        home.conversation.run_maintenance()
    end(home, resumes=1, words="It goes on.")
    shown = ["[CONTEXT SUMMARY] earlier", "question 0", "question 2", "answer 2", "so", "It goes on."]
    assert home.view_contents() == shown
    rows = home.conversation.load_view("main").messages
    assert all(row.metadata["inherited"] and row.id is None for row in rows[:-1])
    assert [row.metadata.get("carried_from") for row in rows] == [None, 1, 5, 6, 8, None]
    view = home.conversation.load_view("main")
    assert view.tokens == sum(size[0] for size in view.sizes)
    assert home.restart().view_contents() == shown
    home.say("and", "on")
    home.conversation.commit_compaction(plan_compaction(home, 0, 1, summary_message("[CONTEXT SUMMARY] both")), NOW)
    assert home.view_contents()[-1] == "on"


def test_what_was_forgotten_does_not_come_back_with_an_earlier_conversation(tmp_path: Path) -> None:
    home = StoreHome(tmp_path / "home").open()
    home.chat(3)
    end(home)
    home.conversation.run_maintenance()
    blank_words(home, 1, "question 0")
    home.restart()
    end(home, resumes=1)
    assert home.view_contents()[:2] == ["[forgotten]", "answer 0"]
    home.close()


def test_only_an_earlier_conversation_can_be_resumed(home: StoreHome) -> None:
    for generation in (1, 2, 0):
        with pytest.raises(UsageError, match="no earlier conversation"):
            end(home, resumes=generation)
    assert home.view_contents()[0] == "question 0"


def test_an_ended_generation_is_cleared_in_small_steps(tmp_path: Path) -> None:
    home = StoreHome(tmp_path / "home").open()
    import_messages(home.conversation, "main", "owner", [Message("user", f"m{n}", ts=NOW) for n in range(1200)], NOW)
    home.conversation.commit_compaction(plan_compaction(home, 0, 99, summary_message()), NOW)
    end(home)
    left = []
    for _ in range(4):
        home.conversation.run_maintenance()
        rows = home.db.row("SELECT count(*) FROM conversation_history WHERE generation = 1")
        left.append(0 if rows is None else rows[0])
    assert left == [701, 201, 1, 1]
    assert home.view_contents() == [WORDS]
    assert home.verify().problems == ()
    home.close()


def test_the_index_is_made_again_with_its_generations(home: StoreHome) -> None:
    end(home)
    home.say("after", "yes")
    end(home, resumes=1, reason="resume")
    shown = home.view_contents()
    with home.db.write() as db:
        for table in ("conversation_history", "requests", "turns", "outbox", "inbox", "sessions"):
            db.execute("DELETE FROM sessions" if table == "sessions" else f"DELETE FROM {table}")
    assert home.repair().problems == ()
    again = StoredGenerations(home.db, home.log).list_generations("main")
    assert [(one.number, one.from_seq, one.end_reason, one.resumed) for one in again] == [
        (1, 1, "manual", None),
        (2, 7, "resume", None),
        (3, 10, "", 1),
    ]
    assert home.view_contents() == shown


def test_a_reset_that_waits_is_found_until_it_is_done_or_withdrawn(home: StoreHome) -> None:
    resets, later = StoredResets(home.db), NOW + timedelta(minutes=5)
    resets.begin(SessionReset("main", 1, "owner", "daily", "begun", NOW, pressure=0.25))
    waits = resets.postpone("main", 1, "no route", later)
    assert (waits.state, waits.attempts, waits.note, waits.retry_at) == ("waiting", 1, "no route", later)
    again = resets.begin(SessionReset("main", 1, "owner", "manual", "begun", later, pressure=0.5))
    assert (again.state, again.attempts, again.reason, again.begun_at) == ("begun", 1, "manual", NOW)
    assert resets.unfinished_resets() == [again]
    resets.mark_archived("main", 1)
    end(home)
    assert resets.unfinished_resets() == []
    assert StoredGenerations(home.db, home.log).list_generations("main")[0].pressure == 0.5
    resets.begin(SessionReset("main", 2, "owner", "daily", "begun", NOW))
    assert resets.withdraw("main", 2, NOW)
    assert not resets.withdraw("main", 2, NOW)
    assert resets.unfinished_resets() == []
