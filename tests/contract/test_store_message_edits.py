"""Messages that were edited or deleted on their network after they had arrived: who may, what the log has of it, what
the model sees, and what a crash in between leaves."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from assistant.core.bridge_api import MessageChange
from assistant.core.errors import StoreError
from assistant.core.messages import Media, Message
from assistant.core.records import InboxItem, IncomingMessage
from assistant.store.script.edits import MessageEdits
from assistant.store.script.inbox import BridgeStates
from assistant.store.script.index import UnreadMessages
from assistant.wire.search import open_history
from sleep.cycle.extract import CORRECTION_TAG, extract_by_rules
from tests.support.store_home import NOW, StoreHome, reply_item

LATER = NOW + timedelta(minutes=3)


class EditedHome(StoreHome):
    """A home whose messages come from a network on which they can be changed."""

    def open(self) -> EditedHome:
        super().open()
        self.changes = MessageEdits(self.db, self.log, self.conversation.appender)
        return self

    def arrive(self, text: str, name: str = "1", sender: str = "me", session: str = "main") -> InboxItem:
        incoming = IncomingMessage(
            "net", name, session, "owner" if session == "main" else session, sender, "owner", text
        )
        item = self.conversation.inbox_item(self.conversation.accept(incoming, NOW).inbox_id)
        assert item is not None
        return item

    def answer(self, text: str = "answer") -> None:
        """The oldest message that waits, from its turn's beginning to its end."""
        turn = self.conversation.begin_turn(self.conversation.list_accepted("main")[0], "", NOW)
        self.conversation.finish_turn(turn, "answered", Message("assistant", text), [reply_item(turn, text)], NOW)

    def edit(
        self, words: str, change: str = "c1", *, name: str = "1", sender: str = "me", position: str = ""
    ) -> str | None:
        return self.changes.record_change(
            MessageChange("net", name, change, "edit", sender, words, position=position), LATER
        )

    def delete(self, change: str = "d1", *, name: str = "1", sender: str = "me", position: str = "") -> str | None:
        return self.changes.record_change(
            MessageChange("net", name, change, "delete", sender, position=position), LATER
        )

    def logged(self) -> list[tuple[str, str]]:
        return [(record.kind, record.content) for record in self.log.scan("main")]

    def state(self, name: str = "1") -> str:
        row = self.db.row("SELECT state FROM inbox WHERE external_id = ?", (name,))
        assert row is not None
        return str(row["state"])

    def words_kept(self) -> list[str]:
        return [row["content"] for row in self.db.rows("SELECT content FROM changes ORDER BY id")]


@pytest.fixture
def home(tmp_path: Path) -> EditedHome:
    return EditedHome(tmp_path).open()


# ------------------------------------------------------------------------------------------------------- while it waits


def test_what_is_edited_while_it_waits_is_answered_as_it_is_now_and_the_log_has_both(home: EditedHome) -> None:
    item = home.arrive("at five")
    assert home.edit("at six", "c1") == home.edit("at seven", "c2") == "main"
    assert home.logged() == []
    home.answer("see you at seven")
    assert home.logged() == [
        ("edit", "at five"),
        ("edit", "at six"),
        ("message", "at seven"),
        ("message", "see you at seven"),
    ]
    edits = list(home.log.scan("main"))[:2]
    assert {(edit.refs, edit.turn, edit.sender) for edit in edits} == {((item.message_id,), "t00000001", "me")}
    assert home.words_kept() == ["", ""] and home.verify().ok
    assert home.repair().ok and home.view_contents()[-2:] == ["at seven", "see you at seven"]


def test_what_is_deleted_while_it_waits_is_logged_and_neither_answered_nor_shown(home: EditedHome) -> None:
    home.arrive("my secret")
    home.edit("my other secret")
    assert home.delete() == "main"
    assert home.conversation.sessions_waiting() == [] and home.state() == "superseded"
    assert home.logged() == [("message", "my secret"), ("edit", "my other secret"), ("delete", "")]
    assert home.view_contents() == [""] and home.words_kept() == ["", ""]
    assert UnreadMessages(home.db, home.log).read_after("main", 1, 0) == []
    assert home.verify().ok and home.repair().ok
    assert home.view_contents() == [""]


def test_what_is_superseded_stands_as_it_was_said_with_its_edit_behind(home: EditedHome) -> None:
    item = home.arrive("at five")
    home.edit("at six")
    home.conversation.supersede_items([item], [], NOW)
    assert home.logged() == [("message", "at five"), ("edit", "at six")]
    assert home.verify().ok


def test_a_message_that_steers_a_turn_comes_as_it_is_now(home: EditedHome) -> None:
    home.arrive("first", "0")
    turn = home.conversation.begin_turn(home.conversation.list_accepted("main")[0], "", NOW)
    home.arrive("and at five")
    home.edit("and at six")
    home.conversation.join_turn(turn, home.conversation.list_accepted("main")[0], NOW)
    assert home.logged() == [("message", "first"), ("edit", "and at five"), ("message", "and at six")]


# ------------------------------------------------------------------------------------------------ when a turn has it


@pytest.mark.parametrize("ended", [True, False])
def test_what_is_changed_once_a_turn_has_it_is_a_fact_beside_it(home: EditedHome, ended: bool) -> None:
    item = home.arrive("at five")
    turn = home.conversation.begin_turn(item, "", NOW)
    if ended:
        home.conversation.finish_turn(turn, "answered", Message("assistant", "fine"), [], NOW)
    before = home.state()
    assert home.edit("at six") == "main" and home.delete() == "main"
    assert home.state() == before and home.conversation.sessions_waiting() == []
    said = [("message", "at five"), *([("message", "fine")] if ended else [])]
    assert home.logged() == [*said, ("edit", "at six"), ("delete", "")]
    notes = home.conversation.load_view("main").messages[-2:]
    assert [(note.role, note.content, note.metadata["refs"]) for note in notes] == [
        ("system", "at six", [item.message_id]),
        ("system", "", [item.message_id]),
    ]
    assert home.view_contents()[0] == "at five" and home.verify().ok
    if not ended:
        home.conversation.finish_turn(turn, "answered", Message("assistant", "fine"), [], NOW)
    assert home.verify().ok and home.repair().ok


def test_what_says_the_same_is_no_change(home: EditedHome) -> None:
    home.arrive("at five")
    assert home.edit("at five") is None
    home.answer()
    assert home.edit("at five", "c2") is None
    assert home.edit("at six", "c3") == "main" and home.edit("at six", "c4") is None
    assert len(home.logged()) == 3


def test_a_change_counts_once_across_a_restart(home: EditedHome) -> None:
    home.arrive("at five")
    home.answer()
    for _ in range(2):
        assert home.edit("at six", position="8") == "main"
        home.restart()
        home.changes.recover_after_crash(LATER)
    home.delete("d1")
    assert home.edit("at nine", "c2") is None and home.delete("d2") is None
    assert [kind for kind, _ in home.logged()] == ["message", "message", "edit", "delete"]
    assert BridgeStates(home.db).load_position("net") == "8"


def test_only_the_account_that_sent_it_changes_it_and_of_what_is_unknown_nothing_is_kept(home: EditedHome) -> None:
    home.arrive("at five")
    home.answer()
    assert home.edit("at six", sender="666", position="7") is None
    assert home.delete(sender="", position="8") is None
    assert home.edit("hello", name="unknown", position="9") is None
    assert len(home.logged()) == 2 and home.words_kept() == []
    assert BridgeStates(home.db).load_position("net") == "9"


# ------------------------------------------------------------------------------------------------------ learning, ids


def test_what_is_not_learned_yet_is_learned_as_corrected_and_not_at_all_where_taken_back(
    home: EditedHome,
) -> None:
    for number, words in enumerate(("I live in Bergen", "my pin is 4711", "I have a cat")):
        home.arrive(words, str(number))
        home.answer()
    home.edit("I live in Oslo", name="0")
    home.delete(name="1")
    read = [
        record.content for record in UnreadMessages(home.db, home.log).read_after("main", 1, 0) if record.role == "user"
    ]
    assert read == ["I live in Oslo", "", "I have a cat"]


def test_what_is_edited_after_it_was_learned_is_read_once_more_as_it_is_now(home: EditedHome) -> None:
    for number, words in enumerate(("I live in Bergen", "I have a cat")):
        home.arrive(words, str(number))
        home.answer()
    reader = UnreadMessages(home.db, home.log)
    read = reader.read_after("main", 1, 0)
    home.edit("I live in Rome", "c1", name="0")
    home.edit("I live in Oslo", "c2", name="0")
    (edit,) = reader.read_after("main", 1, read[-1].seq)
    assert (edit.content, edit.role, edit.id, edit.ts) == ("I live in Oslo", "user", read[0].id, LATER)
    assert [entry.tags for entry in extract_by_rules([edit])] == [("fact", CORRECTION_TAG)]
    assert reader.read_after("main", 1, edit.seq) == []
    # What was not read before its edit says it itself.
    said = [record.content for record in reader.read_after("main", 1, 0) if record.role == "user"]
    assert said == ["I live in Oslo", "I have a cat"]


def test_a_number_that_a_change_was_given_is_given_to_nothing_else(home: EditedHome) -> None:
    home.arrive("at five")
    home.edit("at six")
    home.restart()
    fresh = home.arrive("another", "2")
    reserved = home.db.row("SELECT record_id FROM changes")
    assert reserved is not None and fresh.message_id > reserved["record_id"]


# ------------------------------------------------------------------------------------------------------------- crashes


@pytest.mark.parametrize("where", ["before the log", "after the log"])
@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("kind", ["edit", "delete"])
def test_f35_a_change_that_was_cut_off_is_in_the_log_once_after_the_restart(
    home: EditedHome, kind: str, waits: bool, where: str
) -> None:
    home.arrive("first", "0")
    home.answer()
    home.arrive("at five")
    home.edit("at half past", "c0")
    if not waits:
        home.answer()
    whole = kind == "edit" and waits  # Logged when its message is.
    if where == "before the log":
        with home.log.path("main").open("ab") as file:
            file.write(b"x")
    else:
        home.db.connection.execute(
            "CREATE TRIGGER fault BEFORE INSERT ON messages BEGIN SELECT raise(ABORT, 'full'); END"
        )
        home.db.connection.commit()
    with pytest.raises(StoreError) if not whole else nullcontext():
        _ = home.edit("at six", "c1") if kind == "edit" else home.delete("c1")
    home.db.connection.execute("DROP TRIGGER IF EXISTS fault")
    home.db.connection.commit()
    home.restart().conversation.recover_after_crash(LATER)
    for _ in range(2):
        home.changes.recover_after_crash(LATER)
        assert home.edit("at six", "c1") == "main" if kind == "edit" else home.delete("c1") == "main"
    if whole:
        home.answer()
    told = {
        ("edit", True): [("edit", "at five"), ("edit", "at half past")],
        ("edit", False): [("edit", "at five"), ("edit", "at six")],
        ("delete", True): [("edit", "at half past"), ("delete", "")],
        ("delete", False): [("edit", "at five"), ("delete", "")],
    }
    assert [said for said in home.logged() if said[0] != "message"] == told[kind, waits]
    assert home.state() == ("superseded" if waits and kind == "delete" else "answered")
    assert set(home.words_kept()) == {""} and home.verify().ok


# ------------------------------------------------------------------------------------------------------------ pictures


def test_pictures_stand_in_the_log_and_not_in_the_inbox_once_it_has_them(home: EditedHome) -> None:
    picture = Media("image", "image/png", "boat.png", 3, "UE5H")
    said = IncomingMessage("net", "1", "main", "owner", "me", "owner", "look", (picture,))
    taken_back = replace(said, external_id="2", content="not this one")
    for incoming in (said, taken_back):
        home.conversation.accept(incoming, NOW)
    home.delete(name="2")
    home.answer()
    kept = [json.loads(row["body"])["media"] for row in home.db.rows("SELECT body FROM inbox_messages ORDER BY id")]
    assert kept == [[{"kind": "image", "mime": "image/png", "name": "boat.png", "size": 3}]] * 2
    assert [record.media for record in home.log.scan("main") if record.media] == [(picture,)] * 2
    assert home.conversation.load_view("main").messages[1].media == (picture,)


# ---------------------------------------------------------------------------------------------------------- searching


@pytest.fixture
def found(home: EditedHome) -> Iterator[Callable[[str], list[tuple[int, str]]]]:
    """Search what people said in the home: number and words of each hit."""
    history, _ = open_history(home.path, patient=True)
    yield lambda query: [(hit.message_id, hit.text) for hit in history.search(query, "owner", roles=("user",))]
    history.close()


@pytest.mark.parametrize("answered_first", [True, False])
@pytest.mark.parametrize("indexed_first", [True, False])
def test_an_edited_message_is_found_by_its_newest_words_and_not_by_those_that_they_replaced(
    home: EditedHome, found: Callable[[str], list[tuple[int, str]]], indexed_first: bool, answered_first: bool
) -> None:
    item = home.arrive("The zither plays at five")
    if answered_first:
        home.answer("Noted.")
    if indexed_first:
        found("zither")
    home.edit("The bassoon plays at six", "c1")
    home.edit("The oboe plays at seven", "c2")
    if not answered_first:
        home.answer("Noted.")
    assert found("oboe") == [(item.message_id, "The oboe plays at seven")]
    assert found("zither") == found("bassoon") == []


def test_a_deleted_message_is_not_found_and_one_that_was_undone_is_not_found_by_its_edit(
    home: EditedHome, found: Callable[[str], list[tuple[int, str]]]
) -> None:
    for name, words in (("1", "The zither is sold"), ("2", "The oboe is sold")):
        item = home.arrive(words, name)
        home.answer("Noted.")
    home.edit("The bassoon is sold", "c1", name="2")
    assert {words for _, words in found("sold")} == {"The zither is sold", "The bassoon is sold"}
    home.delete()
    home.conversation.hide_messages("main", [item.message_id], LATER)
    assert found("sold") == []


def test_whoever_reads_a_message_by_its_number_sees_what_it_was_edited_to(home: EditedHome) -> None:
    item = home.arrive("at five")
    home.answer("fine")
    home.edit("at six")
    history, _ = open_history(home.path, patient=True)
    said = [(record.kind, record.content) for record in history.read(item.message_id, "owner")]
    around = [(record.kind, record.content) for record in history.read(item.message_id, "owner", neighbours=1)]
    history.close()
    assert said == [("message", "at five"), ("edit", "at six")]
    assert around == [("message", "at five"), ("message", "fine"), ("edit", "at six")]
