"""`assistant archive` as its owner types it, over homes with archives that are whole, broken, lost and far away."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from assistant.core.messages import Message
from assistant.service.home_lock import home_lock
from assistant.store.archive.archive import StoredArchive
from assistant.store.database import Database
from assistant.store.schema.migrations import character_migrations
from assistant.store.script import sessions as session_rows
from assistant.wire.search import open_history
from tests.support.archive_storage import IDENTITY_KEY, OTHER_IDENTITY_KEY, open_archive
from tests.support.command_line import one_line_error, run_in_process
from tests.support.imports import import_messages
from tests.support.store_home import NOW, StoreHome

GUEST = "peer:telegram:7"
OTHER = "the sea is calm"


class ArchivedHome(StoreHome):
    """Two generations of main, the first archived; one of a guest's, archived."""

    def open(self) -> ArchivedHome:
        super().open()
        self.archive: StoredArchive = open_archive(self)
        return self

    def fill(self) -> ArchivedHome:
        self.say("the booking number is QX-7781", "noted")
        self.say(OTHER, "I see")
        self._archive("main", "Open: the boat.")
        import_messages(self.conversation, GUEST, GUEST, [Message("user", "my booking number is GG-1", ts=NOW)], NOW)
        self._archive(GUEST, "")
        with self.db.write() as db:
            session_rows.insert_session(db, "main", 2, "owner", NOW)
        self.say("the booking number is not needed any more", "fine")
        Database.open(self.path / "character.db", character_migrations, NOW).close()
        history, finder = open_history(self.path, patient=True)
        while finder.index_next_batch():
            continue
        history.close()
        self.close()
        return self

    def _archive(self, session: str, note: str) -> None:
        self.archive.store(session, 1, NOW, handover=note, summary="", reason="manual")

    @property
    def object(self) -> Path:
        return self.path / "archive/main/1.jsonl.gz"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[ArchivedHome]:
    yield ArchivedHome(tmp_path / "home").open().fill()


def test_what_is_archived_is_listed(home: ArchivedHome) -> None:
    done = run_in_process(home.path, "archive", "list")
    assert done.returncode == 0, done.err
    assert [line.split("`")[1] for line in done.out.splitlines()] == ["main 1", f"{GUEST} 1"]
    (one,) = json.loads(run_in_process(home.path, "archive", "list", "main", "--json").out)
    assert (one["records"], one["where"], one["encrypted"]) == (4, "archive/main/1.jsonl.gz", False)
    assert one["bytes"] == home.object.stat().st_size


def test_what_was_said_is_shown_with_what_was_handed_over(home: ArchivedHome) -> None:
    done = run_in_process(home.path, "archive", "show", "main")
    assert done.returncode == 0, done.err
    assert "Handed over: Open: the boat." in done.out
    assert "user: the booking number is QX-7781" in done.out
    rows = json.loads(run_in_process(home.path, "archive", "show", "main", "1", "--json").out)["records"]
    assert [row["content"] for row in rows] == ["the booking number is QX-7781", "noted", OTHER, "I see"]


def test_what_was_undone_is_not_shown(home: ArchivedHome) -> None:
    home.open()
    home.say("never mind", "ok", "thread:boat")
    newest = home.conversation.load_view("thread:boat").messages
    home.conversation.hide_messages("thread:boat", [message.id or 0 for message in newest], NOW)
    home.archive.store("thread:boat", 1, NOW, handover="", summary="", reason="manual")
    home.close()
    assert "never mind" not in run_in_process(home.path, "archive", "show", "thread:boat").out


def test_only_archived_messages_of_the_scope_are_found(home: ArchivedHome) -> None:
    found = json.loads(run_in_process(home.path, "archive", "search", "booking number", "--json").out)
    assert found[0]["message_id"] == 1
    assert {(one["session"], one["generation"]) for one in found} == {("main", 1)}
    found = json.loads(
        run_in_process(home.path, "archive", "search", "booking number", "--session", GUEST, "--json").out
    )
    assert [one["session"] for one in found] == [GUEST]


def test_an_archive_is_read_where_the_home_lost_its_log(home: ArchivedHome) -> None:
    (home.path / "search.db").unlink()
    (home.path / "log/main/conversation.jsonl").unlink()
    (one,) = json.loads(run_in_process(home.path, "archive", "search", "qx-7781", "--json").out)
    assert (one["session"], one["message_id"]) == ("main", 1)


def test_archives_that_are_whole_verify(home: ArchivedHome) -> None:
    done = run_in_process(home.path, "archive", "verify")
    assert (done.returncode, done.out.splitlines()) == (0, ["main 1: complete", f"{GUEST} 1: complete", "All is well."])


def test_one_that_is_not_whole_fails_and_can_be_made_again(home: ArchivedHome) -> None:
    data = gzip.decompress(home.object.read_bytes())
    home.object.write_bytes(gzip.compress(data.replace(b"QX-7781", b"QX-7782")))
    done = run_in_process(home.path, "archive", "verify", "main")
    assert done.returncode == 1
    assert "the words of record 1 were changed" in done.out
    assert "archive verify --repair" in done.out
    assert "archive/main/1.jsonl.gz" in run_in_process(home.path, "verify").out
    assert run_in_process(home.path, "archive", "verify", "--repair").returncode == 0
    assert run_in_process(home.path, "verify").returncode == 0


def test_one_that_is_gone_fails_and_can_be_made_again(home: ArchivedHome) -> None:
    home.object.unlink()
    assert run_in_process(home.path, "verify").returncode == 1
    assert (
        json.loads(run_in_process(home.path, "archive", "verify", "--json").out)[0]["where"]
        == "archive/main/1.jsonl.gz"
    )
    assert run_in_process(home.path, "archive", "verify", "main", "1", "--repair").returncode == 0


def test_a_broken_archive_of_a_lost_log_is_not_made_again(home: ArchivedHome) -> None:
    home.object.write_bytes(b"")
    (home.path / "log/main/conversation.jsonl").write_bytes(b"")
    with home.open().db.write(references=False) as db:
        db.execute("DELETE FROM messages")
    home.close()
    error = one_line_error(run_in_process(home.path, "archive", "verify", "main", "--repair"))
    assert "does not have what was archived of 'main' 1" in error


def test_what_the_log_lost_is_brought_back(home: ArchivedHome) -> None:
    path = home.path / "log/main/conversation.jsonl"
    whole = path.read_bytes()
    done = run_in_process(home.path, "archive", "restore", "main", "1")
    assert (done.returncode, done.out.split(":")[0]) == (0, "Nothing is missing")
    path.write_bytes(whole.replace(b"QX-7781", b"\0" * 7))
    assert run_in_process(home.path, "verify").returncode == 1
    damaged = path.read_bytes()
    done = run_in_process(home.path, "archive", "restore", "main", "1")
    assert "Restored 1 record of main 1; already there: 3." in done.out
    assert path.read_bytes() == whole
    path.write_bytes(damaged)
    done = run_in_process(home.path, "archive", "restore", "main", "1", "--json")
    assert json.loads(done.out) == {"already_present": 3, "restored": 1}
    assert run_in_process(home.path, "verify").returncode == 0


def test_nothing_is_brought_back_while_somebody_serves_the_home(home: ArchivedHome) -> None:
    with home_lock(home.path):
        assert "Error" in run_in_process(home.path, "archive", "restore", "main", "1").err
        assert run_in_process(home.path, "archive", "list").returncode == 0
        assert run_in_process(home.path, "archive", "verify").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("show", "nobody"), "Nothing of 'nobody' is archived"),
        (("show", "main", "7"), "main 7 is not archived"),
        (("verify", "nobody"), "Nothing of 'nobody' is archived"),
        (("restore", "main", "7"), "main 7 is not archived"),
        (("search", " "), "nothing in that but blanks"),
        (("search", "x", "--session", "nobody"), "There is no conversation 'nobody'"),
    ],
)
def test_what_is_not_there_is_told_in_a_line(home: ArchivedHome, arguments: tuple[str, ...], says: str) -> None:
    done = run_in_process(home.path, "archive", *arguments)
    assert done.returncode == 2
    assert says in one_line_error(done)


def test_a_home_without_archives_says_so(tmp_path: Path) -> None:
    assert "Nothing is archived yet" in run_in_process(tmp_path / "home", "archive", "list").out
    StoreHome(tmp_path / "home").open().close()
    Database.open(tmp_path / "home" / "character.db", character_migrations, NOW).close()
    assert "Nothing is archived yet" in run_in_process(tmp_path / "home", "archive", "list").out
    assert run_in_process(tmp_path / "home", "archive", "verify").out == "Nothing is archived yet.\n"


def test_a_place_that_is_not_there_is_told_and_other_commands_go_on(home: ArchivedHome) -> None:
    elsewhere = {"ASSISTANT_ARCHIVE__URL": "nosuch://somewhere/x"}
    assert run_in_process(home.path, "archive", "list", **elsewhere).returncode == 0
    assert run_in_process(home.path, "archive", "show", "main", **elsewhere).returncode == 0
    assert "nosuch" in one_line_error(run_in_process(home.path, "archive", "verify", "main", "9", **elsewhere))


def test_an_encrypted_archive_is_shown_with_its_key_alone(tmp_path: Path) -> None:
    home = StoreHome(tmp_path / "home").open()
    home.say("far away", "yes")
    Database.open(home.path / "character.db", character_migrations, NOW).close()
    url = str(tmp_path / "away")
    open_archive(home, url, IDENTITY_KEY).store("main", 1, NOW, handover="", summary="", reason="manual")
    home.close()
    where = {"ASSISTANT_ARCHIVE__URL": url}
    assert (
        "far away"
        in run_in_process(home.path, "archive", "show", "main", **where, ASSISTANT_ARCHIVE__KEY=IDENTITY_KEY).out
    )
    error = one_line_error(
        run_in_process(home.path, "archive", "show", "main", **where, ASSISTANT_ARCHIVE__KEY=OTHER_IDENTITY_KEY)
    )
    assert "cannot be decrypted" in error
