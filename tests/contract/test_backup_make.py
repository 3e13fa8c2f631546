"""What a backup holds, that it is of one moment, and that one that is not whole never appears."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from assistant.core.backups import MANIFEST_NAME
from assistant.core.errors import CorruptStore, StoreError, UsageError
from assistant.store.backup.folder import BackupFolder
from tests.support.backup_home import BACKED_UP_FILES, EXCLUDED_FILES, BackupHome, file_contents
from tests.support.faulty_disk import unlistable
from tests.support.store_home import NOW, StoreHome


@pytest.fixture
def home(tmp_path: Path) -> Iterator[BackupHome]:
    made = BackupHome(tmp_path / "home").open().write_files()
    yield made
    made.close()


def restored(folder: Path) -> StoreHome:
    return StoreHome(folder).open()


# -------------------------------------------------------------------------------------------------------- what is in it


def test_everything_of_a_home_is_in_it_and_nothing_else(home: BackupHome, tmp_path: Path) -> None:
    manifest = home.unpack(home.back_up(), tmp_path / "out")
    found = file_contents(tmp_path / "out")
    assert set(found) == {*BACKED_UP_FILES, "script.db", "character.db", "memory.db", "log/main/conversation.jsonl"}
    assert {name: found[name] for name in BACKED_UP_FILES} == {
        name: text.encode() for name, text in BACKED_UP_FILES.items()
    }
    assert found["log/main/conversation.jsonl"] == home.log_bytes()
    assert not {*EXCLUDED_FILES} & set(found)
    assert list(manifest.left_out) == ["secrets.toml"]


def test_the_manifest_tells_versions_sizes_hashes_and_log_lengths(home: BackupHome, tmp_path: Path) -> None:
    made = home.back_up()
    manifest = home.unpack(made, tmp_path / "out")
    assert manifest.made_at == NOW and manifest.kind == "manual"
    assert manifest.logs == {"log/main/conversation.jsonl": len(home.log_bytes())}
    assert manifest.schemas["script.db"][0] == "0009_made_by" and set(manifest.schemas) == {
        "script.db",
        "character.db",
        "memory.db",
    }
    assert (made.files, made.unpacked_bytes) == (len(manifest.files), sum(one.bytes for one in manifest.files))


def test_any_tar_opens_it(home: BackupHome, tmp_path: Path) -> None:
    path = home.folder.path / home.back_up().backup.name
    subprocess.run(["tar", "xzf", path], cwd=tmp_path, check=True)
    told = json.loads((tmp_path / MANIFEST_NAME).read_text(encoding="utf-8"))
    assert {one["path"] for one in told["files"]} <= set(file_contents(tmp_path))
    assert "made again from the logs" in told["note"]


def test_nobody_else_may_read_it_or_what_is_unpacked(home: BackupHome, tmp_path: Path) -> None:
    made = home.back_up()
    (home.path / "workspace" / "run.sh").touch(0o755)
    again = home.back_up(hours=1)
    home.unpack(again, tmp_path / "out")
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "out").rglob("*")}
    assert modes.pop("run.sh") == 0o700 and modes["log"] == 0o700
    assert {modes[name] for name in ("script.db", "gate.txt", "conversation.jsonl")} == {0o600}
    assert (home.folder.path / made.backup.name).stat().st_mode & 0o777 == 0o600


def test_what_is_no_plain_file_is_left_out_and_told(home: BackupHome, tmp_path: Path) -> None:
    (home.path / "workspace" / "way").symlink_to("/")
    os.mkfifo(home.path / "workspace" / "pipe")
    for name in ("MEMORY.md", "PERSONA.md", "chat_history"):
        (home.path / name).unlink()
    os.mkfifo(home.path / "MEMORY.md")
    (home.path / "PERSONA.md").mkdir()
    (home.path / "chat_history").symlink_to("nowhere")
    made = home.back_up()
    home.unpack(made, tmp_path / "out")
    assert (
        made.left_out.items()
        >= {
            "workspace/way": "a link",
            "workspace/pipe": "no plain file",
            "MEMORY.md": "no plain file",
            "PERSONA.md": "no plain file",
            "chat_history": "a link",
        }.items()
    )
    assert (tmp_path / "out" / "workspace" / "empty").is_dir()


@pytest.mark.parametrize("take", [os.mkfifo, Path.mkdir])
def test_what_took_the_place_of_a_database_is_told(home: BackupHome, take: Callable[[Path], None]) -> None:
    for name in ("memory.db", "script.db"):
        path = home.path / name
        path.rename(path.with_name(f"{name}.aside"))
        take(path)
        if name == "memory.db":
            assert "memory rebuild" in home.back_up().left_out[name]
        else:
            with pytest.raises(StoreError, match=r"script\.db"):
                home.back_up()


def test_without_the_workspace_it_says_so(home: BackupHome, tmp_path: Path) -> None:
    made = home.back_up(workspace=False)
    home.unpack(made, tmp_path / "out")
    assert not (tmp_path / "out" / "workspace").exists() and "workspace" in made.left_out


def test_backups_in_the_workspace_are_not_backed_up(tmp_path: Path) -> None:
    chosen = tmp_path / "home" / "workspace" / "kept"
    home = BackupHome(tmp_path / "home", backup_path=str(chosen)).open().write_files()
    try:
        chosen.mkdir()
        home.back_up()
        home.unpack(home.back_up(hours=1), tmp_path / "out")
        assert not (tmp_path / "out" / "workspace" / "kept").exists()
    finally:
        home.close()


# ------------------------------------------------------------------------------------------------------- of one moment


def test_what_is_said_while_it_is_made_is_not_in_it(home: BackupHome, tmp_path: Path) -> None:
    home.say("x" * 3_000_000, "A long one.")
    said: list[int] = []

    def go_on() -> bool:
        home.say(f"meanwhile {len(said)}", "Yes.")
        (home.path / "MEMORY.md").write_text("- changed meanwhile\n", encoding="utf-8")
        said.append(1)
        return True

    made = home.back_up(alive=go_on)
    assert said
    home.unpack(made, tmp_path / "out")
    copy = restored(tmp_path / "out")
    try:
        assert copy.conversation.recover_after_crash(NOW).adopted_records == 0
        assert copy.add_message()[-1] == "A long one." and copy.verify().problems == ()
        assert (tmp_path / "out" / "MEMORY.md").read_text(encoding="utf-8") == BACKED_UP_FILES["MEMORY.md"]
    finally:
        copy.close()
    assert home.verify().problems == ()


def test_a_record_that_is_logged_and_not_indexed_yet_is_adopted(home: BackupHome, tmp_path: Path) -> None:
    home.chat(1)
    with home.db.write() as db:
        db.execute("DELETE FROM conversation_history WHERE message_id = (SELECT max(id) FROM messages)")
        db.execute("DELETE FROM messages WHERE id = (SELECT max(id) FROM messages)")
    with home.log.path("main").open("ab") as log:
        log.write(b'{"torn')
    home.unpack(home.back_up(), tmp_path / "out")
    copy = restored(tmp_path / "out")
    try:
        found = copy.conversation.recover_after_crash(NOW)
        assert (found.adopted_records, found.torn_files) == (1, ())
        assert copy.add_message()[-1] == "answer 0"
    finally:
        copy.close()


def test_a_home_that_was_backed_up_keeps_its_locks(home: BackupHome) -> None:
    home.back_up()
    with home.db.write() as db, closing(sqlite3.connect(home.path / "script.db", timeout=0)) as other:
        db.execute("DELETE FROM requests")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")


# ------------------------------------------------------------------------------------------------------- whole or not


def test_a_damaged_database_is_not_backed_up_and_the_earlier_backup_stays(home: BackupHome) -> None:
    kept = home.back_up()
    home.close()
    _damage(home.path / "script.db")
    with pytest.raises(CorruptStore, match="script"):
        home.back_up(hours=1)
    assert home.backup_files() == [kept.backup.name]
    home.open = lambda: home  # type: ignore[method-assign]
    home.close = lambda: None  # type: ignore[method-assign]


def test_damaged_memories_are_left_out_because_the_journal_has_them(home: BackupHome, tmp_path: Path) -> None:
    home.memory_db.close()
    _damage(home.path / "memory.db")
    made = home.back_up()
    manifest = home.unpack(made, tmp_path / "out")
    assert "memory rebuild" in made.left_out["memory.db"] and "memory.db" not in manifest.schemas
    assert not (tmp_path / "out" / "memory.db").exists()


def _damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for start in range(4096, len(data), 4096):
        data[start : start + 64] = b"\xff" * 64
    path.write_bytes(data)


def test_a_disk_that_is_too_small_is_refused_before_anything_is_written(home: BackupHome) -> None:
    with (home.path / "workspace" / "huge").open("wb") as huge:
        huge.truncate(1 << 42)
    with pytest.raises(StoreError, match=r"MB are free. Nothing was written") as told:
        home.back_up()
    assert "\n" not in str(told.value)
    assert home.backup_files() == []


def test_a_folder_that_the_disk_cannot_list_is_not_left_out_in_silence(home: BackupHome) -> None:
    with unlistable(home.path / "workspace"), pytest.raises(StoreError, match=r"workspace cannot be listed: Input/out"):
        home.back_up()
    assert BackupFolder(home.path).list_backups() == []


def test_what_nobody_wants_any_more_is_given_up(home: BackupHome) -> None:
    home.say("x" * 3_000_000, "Yes.")
    with pytest.raises(StoreError, match="stopped meanwhile"):
        home.back_up(alive=lambda: False)
    assert home.backup_files() == []


def test_what_a_crash_left_goes_and_two_of_a_second_are_told_apart(home: BackupHome) -> None:
    home.folder.ensure_exists()
    home.folder.partial_path("databases").mkdir()
    (home.folder.partial_path("databases") / "script.db").touch()
    home.folder.partial_path("nocturne-20261120T100000Z-daily.tar.gz").touch()
    names = [home.back_up().backup.name for _ in range(2)]
    assert home.backup_files() == sorted(names) and len({*names}) == 2
    assert [one.name for one in home.folder.list_backups()] == names


def test_one_is_made_at_a_time(home: BackupHome) -> None:
    with BackupFolder(home.path).lock(), pytest.raises(UsageError, match="just now"):
        home.back_up()
    home.back_up()


def test_a_folder_elsewhere_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    home = BackupHome(tmp_path / "home", backup_path=str(tmp_path / "usb")).open()
    try:
        for attempt in (home.back_up, home.folder.list_backups):
            with pytest.raises(StoreError, match="usb is not there"):
                attempt()
        assert not (tmp_path / "usb").exists()
        (tmp_path / "usb").mkdir()
        assert home.folder.list_backups() == []
        assert home.back_up().backup == home.folder.list_backups()[0]
    finally:
        home.close()
