"""What was there and is gone is said: a store that is missing, empty, damaged or older than it was stops the start, and
a repair brings back what can be had, from what is left, the log and the newest backup together, and names the rest."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from assistant.core.errors import StoreError, StoreLost
from assistant.core.records import IntegrityReport
from assistant.settings.settings import Settings, load_settings
from assistant.store.backup.folder import BackupFolder
from assistant.store.backup.make import BackupRequest, make_backup
from assistant.store.files import WriteThrottle
from assistant.store.home.inventory import (
    CHARACTER_DB,
    INVENTORY_FILE,
    SCRIPT_DB,
)
from assistant.store.log.rebuild import is_padding
from assistant.store.rows import LOST_PLACEHOLDER
from assistant.wire.checks import build_repairer
from assistant.wire.stores import Stores
from tests.support.command_line import one_line_error, run_in_process
from tests.support.running_app import LiveApp, run_app
from tests.support.store_home import NOW

LATER = NOW + timedelta(hours=1)
LOG = Path("log/main/conversation.jsonl")


def settings_of(home: Path) -> Settings:
    return load_settings(None, {"ASSISTANT_HOME": str(home), "TIKTOKEN_CACHE_DIR": ""})


async def live(home: Path, *said: str, todo: str = "", reset: bool = False) -> None:
    async with run_app(home, *["Noted."] * len(said)) as it:
        for text in said:
            await it.say(text, text)
            await it.wait_idle()
        if todo:
            await it.app.commands.run(f"/todo add {todo}", "main")
            await it.app.commands.run(f"/remind {todo} --at 'in 40 days'", "main")
        if reset:
            await it.app.commands.run("/reset", "main")
            await it.wait_idle()


def logged(home: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (home / LOG).read_bytes().splitlines() if line.strip()]


def back_up(home: Path, at: datetime = LATER) -> None:
    make_backup(BackupFolder(home), BackupRequest("manual", at), WriteThrottle(throttled=False))


def repair(home: Path) -> IntegrityReport:
    return build_repairer(settings_of(home)).repair(LATER)


def gone(report: IntegrityReport) -> list[str]:
    return [f"{problem.where}: {problem.text}" for problem in report.problems if problem.kind == "gone"]


def kept_log(home: Path) -> bytes:
    (kept,) = home.glob("before-repair-*")
    return (kept / LOG).read_bytes()


def said_in(it: LiveApp) -> list[str]:
    return [record.content for record in it.app.stores.history.recent("owner", limit=50)]


def todos(it: LiveApp) -> list[str]:
    return [item.text for item in it.app.stores.todos.list_todos("owner")]


def cut_rows(path: Path) -> None:
    """The end of a database, as a failing disk takes it."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2 // 4096 * 4096])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def write_text(path: Path) -> None:
    path.write_text("nothing that SQLite knows\n" * 400)


def break_schema(path: Path) -> None:
    """What SQLite says of it quotes what is no UTF-8."""
    data = path.read_bytes()
    for table in (b"inbox", b"todos"):
        name = table[:1] + b"\xce" + table[2:]
        data = data.replace(b"table" + table + table, b"table" + name + table)
        data = data.replace(b"CREATE TABLE " + table + b" (", b"CREATE T_BLE " + table + b" (")
    path.write_bytes(data)


@pytest.mark.parametrize("damage", [Path.unlink, empty, cut_rows, write_text, break_schema])
@pytest.mark.parametrize("name", ["script.db", "character.db"])
async def test_a_store_that_is_gone_stops_the_start_and_is_repaired_without_going_back(
    tmp_path: Path, name: str, damage: Callable[[Path], None]
) -> None:
    await live(tmp_path, "The boat is called Albatross.", todo="oil the mast")
    back_up(tmp_path)
    await live(tmp_path, "The boat was sold to Ines.")
    damage(tmp_path / name)
    with pytest.raises(StoreLost, match=rf"{name} is .* verify --repair"):
        Stores(settings_of(tmp_path), LATER)
    report = repair(tmp_path)
    assert all(problem.kind == "gone" for problem in report.problems)
    assert any(name in line for line in report.repaired)
    async with run_app(tmp_path) as it:
        assert {"The boat is called Albatross.", "The boat was sold to Ines."} <= set(said_in(it))
        assert todos(it) == ["oil the mast"]
        assert len(it.app.stores.jobs.list_waiting("owner", "reminder")) == 1


@pytest.mark.parametrize("name", ["script.db", "script.db-wal", "script.db-journal", "character.db", "stores.json"])
async def test_a_pipe_in_the_place_of_a_file_is_told_and_nothing_waits_for_it(tmp_path: Path, name: str) -> None:
    await live(tmp_path, "The boat is called Albatross.")
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)
    with pytest.raises(StoreError, match=rf"{name} .*(not a plain file|a pipe)"):
        Stores(settings_of(tmp_path), LATER)
    if name in (SCRIPT_DB, CHARACTER_DB):
        assert any("not a plain file. It was made again" in line for line in repair(tmp_path).repaired)
    else:
        with pytest.raises(StoreError, match="move it away"):
            repair(tmp_path)


@pytest.mark.parametrize("name", ["script.db", "character.db"])
async def test_the_write_ahead_log_of_a_missing_store_is_not_applied_to_the_one_made_again(
    tmp_path: Path, name: str
) -> None:
    await live(tmp_path, "The boat is called Albatross.", todo="oil the mast")
    back_up(tmp_path)
    with closing(sqlite3.connect(tmp_path / name)) as open_one:
        open_one.execute("CREATE TABLE later AS SELECT 1 AS one")
        for _ in range(9):
            open_one.execute("INSERT INTO later SELECT one FROM later")
        open_one.commit()
        shutil.copyfile(tmp_path / f"{name}-wal", tmp_path / "kept-wal")
    (tmp_path / name).unlink()
    (tmp_path / "kept-wal").replace(tmp_path / f"{name}-wal")
    report = repair(tmp_path)
    assert all(problem.kind == "gone" for problem in report.problems)
    with closing(sqlite3.connect(tmp_path / name)) as made:
        assert not made.execute("SELECT 1 FROM sqlite_master WHERE name = 'later'").fetchall()
    async with run_app(tmp_path) as it:
        assert "The boat is called Albatross." in said_in(it) and todos(it) == ["oil the mast"]


@pytest.mark.parametrize(
    "damage",
    [
        "SET migration_set = 'charactes' WHERE name LIKE '0004%'",
        "SET migration_set = 'charactes' WHERE name LIKE '0010%'",
        "SET name = '0004_as_oe' WHERE name LIKE '0004%'",
        "SET name = '0007_todo_lisus' WHERE name LIKE '0007%'",
        "SET name = '00:7_todo_lists' WHERE name LIKE '0007%'",
        "SET name = '1007_todo_lists' WHERE name LIKE '0007%'",
    ],
)
async def test_a_damaged_list_of_migrations_is_said_and_repaired(tmp_path: Path, damage: str) -> None:
    await live(tmp_path, "Hello.", todo="oil the mast")
    with closing(sqlite3.connect(tmp_path / "character.db")) as db, db:
        db.execute(f"UPDATE _sqlite_migrations {damage}")
    with pytest.raises(StoreLost, match=r"character\.db is damaged.*verify --repair"):
        Stores(settings_of(tmp_path), LATER)
    repair(tmp_path)
    async with run_app(tmp_path) as it:
        assert todos(it) == ["oil the mast"]


async def test_rows_that_name_another_conversation_by_mistake_log_nothing_twice(tmp_path: Path) -> None:
    await live(tmp_path, "The boat is called Albatross.", "The boat was sold to Ines.")
    with closing(sqlite3.connect(tmp_path / "script.db")) as db, db:
        db.execute("UPDATE messages SET session = 'maif' WHERE session = 'main'")
        db.execute("UPDATE inbox SET session = 'maif' WHERE session = 'main'")
    report = repair(tmp_path)
    assert {one.kind for one in report.problems} == {"store"} and not (tmp_path / "log" / "maif").exists()
    async with run_app(tmp_path) as it:
        assert said_in(it).count("The boat is called Albatross.") == 1


async def test_a_store_that_is_gone_is_described_with_what_it_had(tmp_path: Path) -> None:
    await live(tmp_path, "Hello.", todo="oil the mast")
    (tmp_path / "character.db").unlink()
    assert "character.db is missing" in one_line_error(run_in_process(tmp_path, "status"))
    with pytest.raises(StoreLost, match=r"is missing\. On .* it had .*1 to-do"):
        Stores(settings_of(tmp_path), LATER)
    assert any("1 to-do of 1" in line for line in gone(repair(tmp_path)))


@pytest.mark.parametrize("name", ["script.db", "character.db"])
async def test_an_older_copy_in_the_place_of_a_store_stops_the_start(tmp_path: Path, name: str) -> None:
    await live(tmp_path, "Hello.")
    shutil.copyfile(tmp_path / name, tmp_path.parent / name)
    await live(tmp_path, "The boat was sold.", todo="oil the mast")
    shutil.copyfile(tmp_path.parent / name, tmp_path / name)
    with pytest.raises(StoreLost, match=f"{name} is older than it was"):
        Stores(settings_of(tmp_path), LATER)
    lost = "1 reminder of 1" if name == "script.db" else "1 to-do of 1"
    assert any(lost in line for line in gone(repair(tmp_path)))
    async with run_app(tmp_path) as it:
        assert "The boat was sold." in said_in(it)


async def test_what_is_forgotten_or_deleted_is_no_loss(tmp_path: Path) -> None:
    await live(tmp_path, "Hello.", todo="oil the mast")
    with closing(Stores(settings_of(tmp_path), LATER)) as stores, stores.todos._db.write() as db:
        db.execute("DELETE FROM todos")
    async with run_app(tmp_path) as it:
        assert it.app.stores.remarks == ()


async def test_a_value_that_the_disk_changed_is_told(tmp_path: Path) -> None:
    await live(tmp_path, "Hello.", todo="oil the mast")
    data = (tmp_path / "character.db").read_bytes()
    (tmp_path / "character.db").write_bytes(data.replace(b"oil the mast", b"oil the mask"))
    async with run_app(tmp_path) as it:
        assert any("character.db was changed" in problem for problem in it.app.status()["problems"])


async def test_a_time_that_the_disk_changed_is_repaired(tmp_path: Path) -> None:
    await live(tmp_path, "Hello.", todo="oil the mast")
    with closing(sqlite3.connect(tmp_path / "character.db")) as character, character:
        character.execute("UPDATE todos SET created_at = '20:6' || substr(created_at, 5)")
        character.execute("UPDATE journal SET timestamp = '20:6' || substr(timestamp, 5)")
    report = repair(tmp_path)
    assert any("character.db is damaged" in line for line in report.repaired)
    async with run_app(tmp_path) as it:
        assert todos(it) == ["oil the mast"]
        it.app.stores.memory_search.search("boat", "owner")


@pytest.mark.parametrize("content", [b"", b"nothing\n{}"])
async def test_without_an_inventory_it_starts_and_says_so(tmp_path: Path, content: bytes) -> None:
    await live(tmp_path, "Hello.")
    (tmp_path / INVENTORY_FILE).write_bytes(content)
    async with run_app(tmp_path) as it:
        assert any(INVENTORY_FILE in problem for problem in it.app.status()["problems"])
    async with run_app(tmp_path) as it:
        assert not any(INVENTORY_FILE in problem for problem in it.app.status()["problems"])


# ------------------------------------------------------------------------------------------------------- the log's tail

SAID = [f"Sentence number {number} of the day." for number in range(9)]


@pytest.mark.parametrize("left", [1, 5])
async def test_one_repair_brings_back_the_whole_tail_of_a_log(tmp_path: Path, left: int) -> None:
    await live(tmp_path, *SAID)
    lines = (tmp_path / LOG).read_bytes().splitlines(True)
    (tmp_path / LOG).write_bytes(b"".join(lines[:left]) + lines[left][:20])
    report = repair(tmp_path)
    assert report.ok and any("logged again" in line for line in report.repaired)
    again = (tmp_path / LOG).read_bytes().splitlines(True)
    assert len(again) == len(lines) == report.records
    async with run_app(tmp_path) as it:
        assert set(SAID) <= set(said_in(it))


async def test_a_tail_that_a_backup_has_comes_back_byte_for_byte(tmp_path: Path) -> None:
    await live(tmp_path, *SAID)
    back_up(tmp_path)
    before = (tmp_path / LOG).read_bytes()
    (tmp_path / LOG).write_bytes(before[:300])
    report = repair(tmp_path)
    assert report.ok and any("came back from the backup of" in line for line in report.repaired)
    assert (tmp_path / LOG).read_bytes() == before


async def test_a_tail_that_an_archive_has_comes_back_byte_for_byte(tmp_path: Path) -> None:
    await live(tmp_path, *SAID, reset=True)
    before = (tmp_path / LOG).read_bytes()
    (tmp_path / LOG).write_bytes(before[:300])
    report = repair(tmp_path)
    assert report.ok and any("came back from archives" in line for line in report.repaired)
    after = (tmp_path / LOG).read_bytes()
    archived = before[: before.index(b'"generation":2')]
    assert len(archived) > 2000 and after.startswith(archived[: archived.rindex(b"\n") + 1])


async def test_an_archive_that_cannot_be_read_is_named_and_the_rest_is_repaired(tmp_path: Path) -> None:
    await live(tmp_path, *SAID, reset=True)
    (tmp_path / LOG).write_bytes((tmp_path / LOG).read_bytes()[:300])
    (archive,) = (tmp_path / "archive").rglob("*.jsonl.gz")
    archive.write_bytes(archive.read_bytes()[:100])
    report = repair(tmp_path)
    assert [problem.text.partition(":")[0] for problem in report.problems if problem.kind == "archive"]
    assert set(SAID) <= {record["content"] for record in logged(tmp_path)}


async def test_words_that_the_newest_backup_has_damaged_come_back_from_an_older_one(tmp_path: Path) -> None:
    await live(tmp_path, *SAID)
    back_up(tmp_path)
    before = (tmp_path / LOG).read_bytes()
    (tmp_path / LOG).write_bytes(before.replace(b"number 3", b"number 7"))
    make_backup(
        BackupFolder(tmp_path), BackupRequest("manual", LATER + timedelta(hours=1)), WriteThrottle(throttled=False)
    )
    report = repair(tmp_path)
    assert report.ok and (tmp_path / LOG).read_bytes() == before
    assert any(f"came back from the backup of {LATER:%Y-%m-%d %H:%M} UTC" in line for line in report.repaired)


async def test_a_record_that_nothing_has_is_named_and_the_repair_exits_with_1(tmp_path: Path) -> None:
    await live(tmp_path, *SAID)
    with closing(sqlite3.connect(tmp_path / "script.db")) as script:
        (lost,) = script.execute("SELECT max(message_id) FROM inbox").fetchone()
        script.execute("DELETE FROM inbox WHERE message_id = ?", (lost,))
        script.execute("DELETE FROM conversation_history WHERE message_id = ?", (lost,))
        script.commit()
    lines = (tmp_path / LOG).read_bytes().splitlines(True)
    (tmp_path / LOG).write_bytes(b"".join(lines[:4]))
    done = run_in_process(tmp_path, "verify", "--repair")
    assert done.returncode == 1 and f"message {lost} (message, user" in done.out
    assert len(re.findall(r"is gone", done.out)) == 1
    assert LOST_PLACEHOLDER in (tmp_path / LOG).read_text(encoding="utf-8")
    assert run_in_process(tmp_path, "verify").returncode == 0


async def test_a_broken_line_in_the_middle_is_blank_and_its_words_stand_at_the_end(tmp_path: Path) -> None:
    await live(tmp_path, *SAID)
    lines = (tmp_path / LOG).read_bytes().splitlines(True)
    (tmp_path / LOG).write_bytes(b"".join([*lines[:4], b"?" * (len(lines[4]) - 1) + b"\n", *lines[5:]]))
    report = repair(tmp_path)
    assert report.ok
    again = (tmp_path / LOG).read_bytes().splitlines(True)
    assert is_padding(again[4]) and again[:4] == lines[:4] and again[5 : len(lines)] == lines[5:]
    assert SAID[2].encode() in again[-1] or SAID[2].encode() in lines[4]
    assert b"?????" in kept_log(tmp_path)


@pytest.mark.parametrize(
    ("key", "place"), [(b'"prev":"', 9), (b'"prev":"', 50), (b'"tool_call_id"', -3), (b'"ts":"', 0), (b'"trust":', -3)]
)
async def test_a_record_whose_header_was_changed_is_logged_again(tmp_path: Path, key: bytes, place: int) -> None:
    """Nothing that follows it tells that it was changed."""
    await live(tmp_path, *SAID)
    lines = (tmp_path / LOG).read_bytes().splitlines(True)
    at = lines[6].index(key) + len(key) + place
    lines[6] = lines[6][:at] + bytes([lines[6][at] ^ 1]) + lines[6][at + 1 :]
    lines[7] = b"?" * (len(lines[7]) - 1) + b"\n"
    (tmp_path / LOG).write_bytes(b"".join(lines))
    assert repair(tmp_path).ok


def test_what_was_forgotten_does_not_come_back_from_a_backup(tmp_path: Path) -> None:
    asyncio.run(live(tmp_path, "The code is kestrel-4711.", "Good night."))
    back_up(tmp_path)
    before = (tmp_path / LOG).read_bytes()
    assert run_in_process(tmp_path, "forget", "kestrel-4711", "--keep-backups", "--yes").returncode in (0, 1)
    assert b"kestrel-4711" not in (tmp_path / LOG).read_bytes() and b"kestrel-4711" in before
    (tmp_path / LOG).write_bytes(b"?" + (tmp_path / LOG).read_bytes()[1:])
    repair(tmp_path)
    assert b"kestrel-4711" not in (tmp_path / LOG).read_bytes()
