"""Compactions taken back: the view is exactly what it was, and what happened since stays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from assistant.core.errors import CorruptStore, StaleView, UsageError
from assistant.core.messages import Media, Message, ToolCall
from assistant.core.records import ContextView
from assistant.core.sessions import GenerationEnd
from assistant.store.rows import FORGOTTEN_PLACEHOLDER
from assistant.store.script.generations import StoredGenerations
from tests.support.compactions import (
    kept_copy,
    live_messages,
    plan_compaction,
    plan_masking,
    plan_merge,
    summary_message,
)
from tests.support.imports import import_messages
from tests.support.store_home import NOW, StoreHome, blank_words, tool_round


@pytest.fixture
def home(tmp_path: Path) -> Iterator[StoreHome]:
    home = StoreHome(tmp_path).open()
    yield home
    assert home.verify().problems == ()
    home.close()


def undo(home: StoreHome, checkpoint_id: int | None = None) -> ContextView:
    return home.conversation.undo_compaction(home.conversation.plan_uncompact("main", checkpoint_id), "main", NOW)


def same(after: ContextView, before: ContextView) -> bool:
    """All but the revision, and what was reported for it."""
    return replace(after, prefix_rev=before.prefix_rev, reported=before.reported) == before


def rows(home: StoreHome) -> list[tuple[object, ...]]:
    """The rows of the view, byte for byte, with their positions."""
    found = home.db.rows(
        "SELECT h.* FROM conversation_history h JOIN sessions s ON s.key = h.session AND h.position > s.view_floor"
        " ORDER BY h.position"
    )
    return [tuple(row) for row in found]


def states(home: StoreHome) -> list[str]:
    return [one.state for one in home.conversation.checkpoints("main")]


def rich(home: StoreHome) -> None:
    """A view with everything that a row can hold."""
    home.chat(2)
    turn = home.begin_turn("look at this")
    call, result = tool_round(result="r" * 3000)
    signed = {"type": "thinking", "thinking": "hm", "signature": "s"}
    picture = Media("image", "image/png", "a.png", 12, "aGVsbG8gd29ybGQh")
    home.conversation.record_messages(turn, [replace(call, thinking=(signed,), model="m"), result], NOW)
    home.conversation.finish_turn(turn, "answered", Message("assistant", "sëen 日本", media=(picture,)), [], NOW)
    home.conversation.annotate("main", "edit", [1], "edited", NOW)
    home.chat(1)


def test_the_view_before_a_compaction_comes_back_byte_for_byte(home: StoreHome) -> None:
    rich(home)
    before, stored = home.conversation.load_view("main"), rows(home)
    first = live_messages(home)[0]
    home.conversation.commit_compaction(
        replace(
            plan_compaction(home, 0, 6, summary_message(), kept_copy(first)), shortened=plan_masking(home, 7).shortened
        ),
        NOW,
    )
    told = home.conversation.plan_uncompact("main")
    after = home.conversation.undo_compaction(told, "main", NOW)
    assert same(after, before)
    assert rows(home) == stored
    assert after.prefix_rev == before.prefix_rev + 2
    assert (told.tokens, told.bytes, told.images) == (before.tokens, before.bytes, before.images)
    assert told.messages == 8
    assert home.restart().conversation.load_view("main") == after
    assert states(home) == ["undone"]


def test_later_messages_stay(home: StoreHome) -> None:
    home.chat(3)
    home.conversation.commit_compaction(plan_compaction(home, 0, 3, summary_message()), NOW)
    home.chat(2)
    undo(home)
    said = [f"{what} {n}" for n in (0, 1, 2, 0, 1) for what in ("question", "answer")]
    assert home.view_contents() == said
    home.chat(1)
    assert home.view_contents() == [*said, "question 0", "answer 0"]


MADE = ("range", "mask", "range", "merge", "mask", "range")


def compacted_six_times(home: StoreHome) -> tuple[list[ContextView], list[int]]:
    """The views before each compaction, and their ids."""
    home.chat(8)
    views, ids = [], []
    for number, made in enumerate(MADE):
        views.append(home.conversation.load_view("main"))
        done = [one for one in home.conversation.checkpoints("main") if one.state == "live"]
        if made == "range":
            planned = plan_compaction(home, 0, 1, summary_message(f"s{number}"), kept_copy(live_messages(home)[0]))
        else:
            planned = (
                plan_masking(home, 0, 3, text="short")
                if made == "mask"
                else plan_merge(home, done, summary_message("merged"))
            )
        ids.append(home.conversation.commit_compaction(planned, NOW).id)
    return views, ids


def test_an_older_one_takes_the_later_ones_along_newest_first(home: StoreHome) -> None:
    views, ids = compacted_six_times(home)
    assert states(home) == ["absorbed", "masked", "absorbed", "live", "masked", "live"]
    for newest in (5, 4, 3):
        told = home.conversation.plan_uncompact("main", ids[newest])
        assert told.checkpoint_ids == (ids[newest],)
        assert same(home.conversation.undo_compaction(told, "main", NOW), views[newest])
    assert states(home) == ["live", "masked", "live", "undone", "undone", "undone"]
    told = home.conversation.plan_uncompact("main", ids[0])
    assert told.checkpoint_ids == (ids[2], ids[1], ids[0])
    assert (told.tokens, told.bytes) == (views[0].tokens, views[0].bytes)
    assert same(home.conversation.undo_compaction(told, "main", NOW), views[0])
    assert set(states(home)) == {"undone"}


@pytest.mark.parametrize("down_to", range(len(MADE)))
def test_what_is_told_before_is_what_comes(home: StoreHome, down_to: int) -> None:
    views, ids = compacted_six_times(home)
    home.chat(1)
    told = home.conversation.plan_uncompact("main", ids[down_to])
    after = home.conversation.undo_compaction(told, "main", NOW)
    assert (told.tokens, told.bytes, told.images) == (after.tokens, after.bytes, after.images)
    assert after.messages[:-2] == views[down_to].messages
    assert told.messages == [7, 5, 5, 3, 3, 2][down_to]


def test_what_was_taken_back_can_be_compacted_again(home: StoreHome) -> None:
    home.chat(4)
    for _ in range(3):
        before = home.conversation.load_view("main")
        home.conversation.commit_compaction(plan_compaction(home, 0, 5, summary_message()), NOW)
        assert same(undo(home), before)
    home.conversation.commit_compaction(plan_compaction(home, 0, 3, summary_message("kept")), NOW)
    assert states(home) == ["undone", "undone", "undone", "live"]
    assert home.view_contents()[0] == "kept"


def test_messages_hidden_since_stay_hidden(home: StoreHome) -> None:
    home.chat(4)
    first = live_messages(home)[0]
    home.conversation.commit_compaction(plan_compaction(home, 0, 3, summary_message(), kept_copy(first)), NOW)
    home.conversation.commit_compaction(plan_masking(home, 0, 1), NOW)
    home.conversation.hide_messages("main", [first.id or 0, 4, 5], NOW)
    told = home.conversation.plan_uncompact("main", 1)
    after = home.conversation.undo_compaction(told, "main", NOW)
    assert home.view_contents() == ["answer 0", "question 1", "answer 2", "question 3", "answer 3"]
    assert (told.tokens, told.messages) == (after.tokens, 3)


def test_words_that_were_forgotten_stay_forgotten(home: StoreHome) -> None:
    rich(home)
    said = live_messages(home)
    home.conversation.commit_compaction(plan_compaction(home, 0, 7, summary_message(), kept_copy(said[0])), NOW)
    home.conversation.commit_compaction(plan_masking(home, 0, text="short"), NOW)
    home.conversation.commit_compaction(plan_compaction(home, 0, 0, summary_message("more"), kept_copy(said[0])), NOW)
    forgotten = [said[0], said[5], said[7], said[8]]
    for message in forgotten:
        blank_words(home, message.id or 0, message.content[:8])
    home.conversation.annotate("main", "redaction", [message.id or 0 for message in forgotten], "", NOW)
    undo(home, 1)
    after = {message.id: message for message in home.conversation.load_view("main").messages}
    for message in forgotten:
        left = after[message.id]
        assert (left.content, left.media, left.thinking) == (FORGOTTEN_PLACEHOLDER, (), ())
        assert left.tool_calls == tuple(ToolCall(call.id, call.name) for call in message.tool_calls)
    assert all(after[message.id] == message for message in said if message not in forgotten)
    assert not any("question 0" in row for row in home.view_contents()[:2])


def test_a_form_that_comes_back_has_no_forgotten_words_either(home: StoreHome) -> None:
    home.chat(2)
    home.conversation.commit_compaction(plan_masking(home, 1, 3), NOW)
    blank_words(home, 2, "answer 0")
    home.conversation.annotate("main", "redaction", [2], "", NOW)
    undo(home)
    assert home.view_contents() == ["question 0", FORGOTTEN_PLACEHOLDER, "question 1", "answer 1"]


def test_only_so_many_can_be_taken_back(tmp_path: Path) -> None:
    home = StoreHome(tmp_path / "few", undo_kept=2).open()
    home.chat(8)
    ids = [
        home.conversation.commit_compaction(plan_compaction(home, 0, 1, summary_message()), NOW).id for _ in range(3)
    ]
    ids.append(home.conversation.commit_compaction(plan_masking(home, 0), NOW).id)
    with pytest.raises(UsageError, match=r"no longer kept.*aihistory recover"):
        home.conversation.plan_uncompact("main", ids[1])
    assert home.conversation.plan_uncompact("main", ids[2]).checkpoint_ids == (ids[3], ids[2])
    home.conversation.run_maintenance()
    left = home.db.rows("SELECT message_id FROM conversation_history WHERE message_id IS NOT NULL ORDER BY message_id")
    assert [row[0] for row in left] == list(range(5, 17))
    undo(home, ids[2])
    with pytest.raises(UsageError, match="no longer kept"):
        home.conversation.plan_uncompact("main")
    assert home.verify().ok
    home.close()


def test_rows_that_are_kept_no_longer_go_bit_by_bit(tmp_path: Path) -> None:
    home = StoreHome(tmp_path / "many", undo_kept=1).open()
    import_messages(home.conversation, "main", "owner", [Message("user", f"m{n}") for n in range(1_300)], NOW)
    home.conversation.commit_compaction(plan_compaction(home, 0, 1_199, summary_message()), NOW)
    home.conversation.commit_compaction(plan_compaction(home, 0, 9, summary_message()), NOW)
    left = [_stored(home)]
    for _ in range(3):
        home.conversation.run_maintenance()
        left.append(_stored(home))
    assert left == [1_300 + 2 - 500, 802 - 500, 102, 102]
    undo(home)
    assert home.verify().ok
    home.close()


def _stored(home: StoreHome) -> int:
    return int(home.db.rows("SELECT count(*) FROM conversation_history")[0][0])


def test_there_is_nothing_to_take_back(home: StoreHome) -> None:
    home.chat(3)
    home.chat(2, "peer:x")
    with pytest.raises(UsageError, match="Nothing in 'main' is compacted"):
        home.conversation.plan_uncompact("main")
    theirs = home.conversation.commit_compaction(plan_compaction(home, 0, 1, summary_message(), session="peer:x"), NOW)
    for wrong in (theirs.id, 99):
        with pytest.raises(UsageError, match="has no compaction"):
            home.conversation.plan_uncompact("main", wrong)
    done = home.conversation.commit_compaction(plan_compaction(home, 0, 1, summary_message()), NOW)
    undo(home)
    with pytest.raises(UsageError, match="was undone already"):
        home.conversation.plan_uncompact("main", done.id)


def test_what_changed_meanwhile_makes_it_stale(home: StoreHome) -> None:
    home.chat(4)
    home.conversation.commit_compaction(plan_compaction(home, 0, 3, summary_message()), NOW)
    told = home.conversation.plan_uncompact("main")
    home.conversation.commit_compaction(plan_masking(home, 0), NOW)
    before = home.conversation.load_view("main")
    for old in (told, replace(told, prefix_rev=before.prefix_rev)):
        with pytest.raises(StaleView):
            home.conversation.undo_compaction(old, "main", NOW)
    assert home.restart().conversation.load_view("main") == before


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM conversation_history WHERE message_id = 2",
        "UPDATE conversation_history SET bytes = bytes + 1 WHERE message_id = 2",
        "UPDATE earlier_rows SET tokens = 0",
        "DELETE FROM earlier_rows",
    ],
)
def test_what_is_not_as_it_was_is_not_put_back(home: StoreHome, damage: str) -> None:
    home.chat(4)
    home.conversation.commit_compaction(
        replace(plan_compaction(home, 0, 3, summary_message()), shortened=plan_masking(home, 5).shortened), NOW
    )
    told = home.conversation.plan_uncompact("main")
    with home.db.write() as db:
        db.execute(damage)
    before = home.conversation.load_view("main")
    with pytest.raises(CorruptStore, match="Nothing was changed"):
        home.conversation.undo_compaction(told, "main", NOW)
    assert home.conversation.load_view("main") == before
    (problem,) = home.verify().problems
    assert (problem.kind, problem.repairable) == ("compaction", True)
    assert home.repair().ok
    with pytest.raises(UsageError, match="no longer kept"):
        home.conversation.plan_uncompact("main")


def test_what_an_ended_conversation_kept_to_be_put_back_is_repaired_too(home: StoreHome) -> None:
    home.chat(4)
    home.conversation.commit_compaction(plan_compaction(home, 0, 3, summary_message()), NOW)
    seq = StoredGenerations(home.db, home.log).last_seq("main")
    home.conversation.begin_next_generation(GenerationEnd("main", 1, seq, "On we go.", "manual"), NOW)
    with home.db.write() as db:
        db.execute("UPDATE checkpoints SET view_hash = 'damaged'")
    assert [problem.kind for problem in home.verify().problems] == ["compaction"]
    assert home.repair().ok


def test_the_fingerprint_holds_no_words(tmp_path: Path) -> None:
    """It is the same whatever was said in as many bytes, and another for another size."""
    prints = [_fingerprint(tmp_path / words, words) for words in ("abcd", "wxyz", "longer")]
    assert len(prints[0]) == 64
    assert prints[0] == prints[1] != prints[2]


def _fingerprint(path: Path, words: str) -> str:
    home = StoreHome(path).open()
    home.say(words, words)
    home.conversation.commit_compaction(plan_masking(home, 1), NOW)
    home.conversation.commit_compaction(plan_compaction(home, 0, 0, summary_message()), NOW)
    row = home.db.row("SELECT group_concat(view_hash) FROM checkpoints WHERE checkpoint_num = 2")
    home.close()
    return str(row[0]) if row is not None else ""


def test_what_came_after_an_empty_view_stands_behind_what_comes_back(home: StoreHome) -> None:
    home.chat(2)
    first = live_messages(home)[0]
    home.conversation.commit_compaction(plan_compaction(home, 0, 3, kept_copy(first)), NOW)
    home.conversation.hide_messages("main", [first.id or 0], NOW)
    assert home.view_contents() == []
    home.say("new", "life")
    undo(home)
    assert home.view_contents() == ["answer 0", "question 1", "answer 1", "new", "life"]


def test_bulk_references_are_not_kept_to_be_put_back(home: StoreHome) -> None:
    home.chat(4)
    home.conversation.commit_compaction(plan_compaction(home, 0, 3, summary_message()), NOW)
    import_messages(home.conversation, "main", "owner", [Message("user", f"m{n}") for n in range(50)], NOW, keep=10)
    with pytest.raises(UsageError, match="no longer kept"):
        home.conversation.plan_uncompact("main")
    home.conversation.run_maintenance()
    assert _stored(home) == len(home.view_contents()) == 1 + 10


def test_an_index_made_anew_ends_what_can_be_put_back(home: StoreHome) -> None:
    """Where it refers to a long tail, earlier compactions can't be undone without that."""
    home.chat(2)
    import_messages(home.conversation, "main", "owner", [Message("user", f"m{n}") for n in range(2_100)], NOW)
    home.conversation.commit_compaction(plan_compaction(home, 0, 1, summary_message()), NOW)
    with home.db.write() as db:
        db.execute("DELETE FROM conversation_history WHERE message_id = 4")
    assert home.repair().ok
    assert len(home.view_contents()) < 2_000
    with pytest.raises(UsageError, match="no longer kept"):
        home.conversation.plan_uncompact("main", 1)
