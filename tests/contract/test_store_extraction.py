"""Nothing leaves a view unread: what the journal has not read of it waits, and is read from the log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from assistant.core.messages import Message
from assistant.store.script.index import UnreadMessages
from tests.support.compactions import live_messages, plan_compaction, plan_masking, plan_merge, summary_message
from tests.support.imports import import_messages
from tests.support.store_home import NOW, StoreHome, tool_round


@pytest.fixture
def home(tmp_path: Path) -> Iterator[StoreHome]:
    home = StoreHome(tmp_path).open()
    yield home
    assert home.verify().problems == ()
    home.close()


def unextracted(home: StoreHome, session: str = "main") -> int:
    return next(info.unextracted for info in home.conversation.list_sessions() if info.key == session)


def read(home: StoreHome, seq: int = 0, limit: int = 200) -> list[str]:
    return [record.content for record in UnreadMessages(home.db, home.log).read_after("main", 1, seq, limit=limit)]


# ------------------------------------------------------------------------------------------------------------ waiting


def _compacted(home: StoreHome) -> None:
    home.conversation.commit_compaction(plan_compaction(home, 0, 5, summary_message()), NOW)


def _begun(home: StoreHome) -> None:
    started = home.conversation.begin_compaction("main", 0, "nap", (1, 6), NOW + timedelta(minutes=1), NOW)
    home.conversation.commit_compaction(
        replace(plan_compaction(home, 0, 5, summary_message()), started_id=started), NOW
    )


def _with_shorter_rows(home: StoreHome) -> None:
    home.conversation.commit_compaction(
        replace(plan_compaction(home, 0, 5, summary_message()), shortened=plan_masking(home, 7).shortened), NOW
    )


def _in_two(home: StoreHome) -> None:
    for _ in range(2):
        home.conversation.commit_compaction(plan_compaction(home, 0, 2, summary_message()), NOW)


def _taken_over(home: StoreHome) -> None:
    first = home.conversation.commit_compaction(plan_compaction(home, 0, 3, summary_message()), NOW)
    home.conversation.commit_compaction(
        replace(plan_compaction(home, 0, 1, summary_message()), absorbed_ids=(first.id,)), NOW
    )


def _undone_and_again(home: StoreHome) -> None:
    home.conversation.commit_compaction(plan_compaction(home, 0, 3, summary_message()), NOW)
    home.conversation.undo_compaction(home.conversation.plan_uncompact("main"), "main", NOW)
    home.conversation.commit_compaction(plan_compaction(home, 0, 5, summary_message()), NOW)


def _imported(home: StoreHome) -> None:
    import_messages(home.conversation, "main", "owner", [Message("user", "m"), Message("assistant", "n")], NOW, keep=4)


PATHS: list[Callable[[StoreHome], None]] = [
    _compacted,
    _begun,
    _with_shorter_rows,
    _in_two,
    _taken_over,
    _undone_and_again,
    _imported,
]


@pytest.mark.parametrize("path", PATHS)
def test_f28_whatever_covers_messages_has_them_wait(home: StoreHome, path: Callable[[StoreHome], None]) -> None:
    home.chat(4)
    path(home)
    assert unextracted(home) == 6
    assert home.conversation.checkpoints("main")[-1].state == "live"


def test_f28_in_a_lost_database_made_again_waits_what_it_refers_to(tmp_path: Path) -> None:
    home = StoreHome(tmp_path / "long").open()
    import_messages(home.conversation, "main", "owner", [Message("user", f"m{n}") for n in range(3_000)], NOW)
    home.close()
    for path in home.path.glob("script.db*"):
        path.unlink()
    assert home.open().repair().ok
    assert unextracted(home) + len(home.view_contents()) == 3_000
    home.close()


def test_f28_what_the_journal_has_read_does_not_wait_again(home: StoreHome) -> None:
    home.chat(4)
    home.conversation.mark_extracted("main", 1, 4)
    home.conversation.commit_compaction(plan_compaction(home, 0, 5, summary_message()), NOW)
    assert unextracted(home) == 2
    home.conversation.mark_extracted("main", 1, 8)
    home.conversation.commit_compaction(plan_compaction(home, 0, 1, summary_message()), NOW)
    assert unextracted(home) == 0


def test_f28_a_commit_that_is_refused_has_nothing_wait(home: StoreHome) -> None:
    home.chat(4)
    with home.db.write() as db:
        db.execute("DELETE FROM conversation_history WHERE message_id = 8")
    with pytest.raises(Exception, match="refused"):
        home.conversation.commit_compaction(plan_compaction(home, 0, 3, summary_message()), NOW)
    assert unextracted(home) == 0
    home.repair()


def test_masks_and_merges_have_nothing_new_to_read(home: StoreHome) -> None:
    home.chat(4)
    done = [home.conversation.commit_compaction(plan_compaction(home, 0, 1, summary_message()), NOW) for _ in range(2)]
    assert unextracted(home) == 4
    home.conversation.commit_compaction(plan_masking(home, 0, 1), NOW)
    home.conversation.commit_compaction(plan_merge(home, done, summary_message("merged")), NOW)
    assert unextracted(home) == 4


# --------------------------------------------------------------------------------------------------------------- read


def test_reading_only_goes_forward(home: StoreHome) -> None:
    home.chat(4)
    home.conversation.commit_compaction(plan_compaction(home, 0, 1, summary_message()), NOW)
    home.conversation.commit_compaction(plan_compaction(home, 0, 3, summary_message()), NOW)
    home.conversation.mark_extracted("main", 1, 3)
    assert unextracted(home) == 3
    home.conversation.mark_extracted("main", 1, 1)
    assert unextracted(home) == 3
    home.conversation.mark_extracted("main", 1, 6)
    assert unextracted(home) == 0


def test_nobody_can_have_read_what_was_not_said(home: StoreHome) -> None:
    home.chat(2)
    home.conversation.mark_extracted("main", 1, 500)
    home.chat(3)
    home.conversation.commit_compaction(plan_compaction(home, 0, 5, summary_message()), NOW)
    assert unextracted(home) == 2
    home.conversation.mark_extracted("main", 2, 9)
    home.conversation.mark_extracted("nowhere", 1, 9)
    assert unextracted(home) == 2


def test_what_has_no_message_left_to_read_waits_no_longer(home: StoreHome) -> None:
    """Notes are covered as messages are, and the journal does not read them."""
    home.chat(2)
    home.conversation.annotate("main", "edit", [1], "edited", NOW)
    home.chat(1)
    home.conversation.commit_compaction(plan_compaction(home, 0, 4, summary_message()), NOW)
    assert unextracted(home) == 4
    home.conversation.mark_extracted("main", 1, UnreadMessages(home.db, home.log).read_after("main", 1, 0)[3].seq)
    assert unextracted(home) == 0


def test_the_log_is_read_in_order_from_a_cursor(home: StoreHome) -> None:
    home.chat(3)
    home.chat(2, "peer:x")
    home.conversation.annotate("main", "edit", [1], "a note", NOW)
    home.conversation.hide_messages("main", [3], NOW)
    assert read(home) == ["question 0", "answer 0", "answer 1", "question 2", "answer 2"]
    assert read(home, 2, limit=2) == ["answer 1", "question 2"]
    assert read(home, 6) == []
    assert UnreadMessages(home.db, home.log).read_after("main", 2, 0) == []
    first = UnreadMessages(home.db, home.log).read_after("main", 1, 0)[0]
    assert (first.seq, first.role, first.trust, first.id) == (1, "user", "owner", live_messages(home)[0].id)


def test_a_turn_is_read_when_it_has_ended(home: StoreHome) -> None:
    home.chat(1)
    turn = home.begin_turn("look")
    home.conversation.record_messages(turn, tool_round(), NOW)
    home.conversation.join_turn(turn, home.inbox_item("and there"), NOW)
    home.conversation.annotate("main", "edit", [1], "a note", NOW)
    assert read(home) == ["question 0", "answer 0"]
    assert read(home, 3) == []
    home.conversation.finish_turn(turn, "answered", Message("assistant", "seen"), [], NOW)
    assert read(home, 2) == ["look", "", "done", "and there", "seen"]


def test_what_was_covered_is_read_as_it_was_said(home: StoreHome) -> None:
    home.chat(3)
    home.conversation.commit_compaction(plan_masking(home, 1), NOW)
    home.conversation.commit_compaction(plan_compaction(home, 0, 3, summary_message()), NOW)
    assert read(home)[:2] == ["question 0", "answer 0"]
