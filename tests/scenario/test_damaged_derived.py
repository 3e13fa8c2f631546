"""What is made of the log and the journal may be damaged in any way: it is set aside, made again and told, and nobody
waits for it."""

from __future__ import annotations

import os
import random
import resource
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from assistant.core.errors import StoreError
from assistant.core.memories import JournalEntry
from assistant.settings.settings import load_settings
from assistant.store.backup.restore import find_unredacted_messages
from assistant.store.derived import is_set_aside, set_aside
from assistant.store.home.inventory import discard_fingerprints
from assistant.store.schema.migrations import memory_migrations, script_migrations
from assistant.store.verify.salvage import find_damage
from assistant.wire.stores import Stores
from tests.support.running_app import LiveApp, run_app
from tests.support.store_home import NOW


def flip_bits(path: Path) -> None:
    """Bytes all over the file, behind its header."""
    data, chance = bytearray(path.read_bytes()), random.Random(7)
    for _ in range(30):
        data[chance.randrange(100, len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def write_text(path: Path) -> None:
    path.write_text("nothing that SQLite knows" * 1_000)


def change_words(path: Path) -> None:
    """Within a row, which SQLite finds well."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE fresh SET stems = replace(stems, 'albatross', 'albatrozz')")
        db.commit()


def lose_a_unit(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("DELETE FROM fresh WHERE number = 0")
        db.commit()


def make_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


DAMAGE = [flip_bits, cut, write_text, Path.unlink, make_pipe, change_words, lose_a_unit]


def closed_with(path: Path, damage: Callable[[Path], None]) -> None:
    for beside in path.parent.glob(f"{path.name}-*"):
        beside.unlink()
    damage(path)


async def talk(it: LiveApp) -> None:
    await it.say("My boat is called Albatross, and it lies in Bergen.")
    await it.wait_idle()
    entry = JournalEntry("k", "owner", "main", 1, "The boat is called Albatross.", NOW, "note")
    it.app.stores.journal.add([entry], NOW)
    await it.app.maintenance.index_new_messages()


def found(it: LiveApp) -> list[str]:
    return [hit.text for hit in it.app.stores.history.search("albatross boat", "owner")]


@pytest.mark.parametrize("damage", DAMAGE)
async def test_a_damaged_search_db_is_made_again_and_everything_is_found(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    path = tmp_path / "search.db"
    async with run_app(tmp_path, "Noted.") as it:
        await talk(it)
    closed_with(path, damage)
    async with run_app(tmp_path, "It is Albatross.") as it:
        assert any("Albatross" in text for text in found(it))
        assert it.app.stores.memory_search.search("albatross boat", "owner")
        told = [problem for problem in it.app.status()["problems"] if "search.db" in problem]
        assert len(told) == 1
        await it.wait_idle()
        assert any(told[0] in body for body in it.bridge.bodies)
        await it.app.maintenance.index_new_messages()
        assert not any("search.db" in problem for problem in it.app.status()["problems"])
        assert not is_set_aside(path)
        assert it.app.stores.verifier.verify().ok


async def test_a_search_db_that_is_set_aside_while_it_is_open_is_made_again(tmp_path: Path) -> None:
    async with run_app(tmp_path, "Noted.", "It is Albatross.") as it:
        await talk(it)
        assert found(it)
        # As one of the two that have it open does.
        set_aside(tmp_path / "search.db")
        await it.say("Its mast is 12 m high.")
        await it.wait_idle()
        assert any("12 m" in hit.text for hit in it.app.stores.history.search("mast high", "owner"))
        assert it.app.stores.memory_search.search("albatross boat", "owner")
        assert any("search.db" in problem for problem in it.app.status()["problems"])


async def test_an_index_that_read_further_than_the_log_goes_is_made_again(tmp_path: Path) -> None:
    async with run_app(tmp_path / "other", *["Noted."] * 3) as it:
        for _ in range(3):
            await talk(it)
    async with run_app(tmp_path / "home", "Noted.") as it:
        await talk(it)
    shutil.copy(tmp_path / "other" / "search.db", tmp_path / "home" / "search.db")
    async with run_app(tmp_path / "home", "Noted.") as it:
        assert len([text for text in found(it) if "Albatross" in text]) == 1
        await it.say("The albatross boat was sold.", "later")
        await it.wait_idle()
        assert any("sold" in hit.text for hit in it.app.stores.history.search("sold", "owner"))


@pytest.mark.parametrize("damage", [cut, write_text, make_pipe])
async def test_a_damaged_memory_db_is_made_again_from_the_journal(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    path = tmp_path / "memory.db"
    async with run_app(tmp_path, "Noted.") as it:
        await it.say("I live in Oslo.")
        await it.wait_idle()
        assert await it.app.sleep.scheduler.run_now("sleep")
        before = [memory.text for memory in await it.app.stores.memories.all("owner")]
        assert before == ["I live in Oslo."]
    closed_with(path, damage)
    async with run_app(tmp_path, "Noted.") as it:
        assert any("memory.db was damaged" in problem for problem in it.app.status()["problems"])
        await it.app.maintenance.remake_memories()
        assert [memory.text for memory in await it.app.stores.memories.all("owner")] == before
        assert not any("memory.db" in problem for problem in it.app.status()["problems"])
        assert not is_set_aside(path)


@pytest.mark.parametrize(
    "value",
    [
        "answering SET settings = char(9)",
        "memories SET payload = char(9)",
        "memories SET payload = '[]'",
        "memories SET payload = replace(payload, 'said_at', 'sai_at')",
        'memories SET payload = replace(payload, \'"entries":[\', \'"entries":7,"e":[\')',
        "memories SET said_at = 'soon', payload = json_set(payload, '$.said_at', 'soon')",
        "memories SET text = CAST(x'ff' AS TEXT)",
        "history SET created_at = 'soon', updated_at = NULL",
        "vectors SET vector = substr(vector, 3)",
    ],
)
async def test_a_memory_db_with_a_value_that_cannot_be_read_is_made_again_after_a_kill(
    tmp_path: Path, value: str
) -> None:
    """SQLite finds its pages well, and of a file that was open nothing else is known. One such row, and no memory could
    be read."""
    told = ["I live in Oslo.", "My cat is called Mio."]
    async with run_app(tmp_path, "Noted.") as it:
        for text in told:
            await it.say(text)
            await it.wait_idle()
        assert await it.app.sleep.scheduler.run_now("sleep")
    discard_fingerprints(tmp_path)
    with closing(sqlite3.connect(tmp_path / "memory.db")) as db:
        first = "WHERE rowid = (SELECT min(rowid) FROM {})" if not value.startswith("vectors") else "WHERE memory = 1"
        assert db.execute(f"UPDATE {value} {first.format(value.split()[0])}").rowcount == 1
        db.commit()
    async with run_app(tmp_path, "Noted.") as it:
        assert any("memory.db was damaged" in problem for problem in it.app.status()["problems"])
        await it.app.maintenance.remake_memories()
        assert [memory.text for memory in await it.app.stores.memories.all("owner")] == told


async def test_a_memory_md_that_is_no_text_any_more_is_set_aside_and_its_last_text_is_back(tmp_path: Path) -> None:
    async with run_app(tmp_path, "Noted.") as it:
        it.app.stores.files.replace_memory_file("- The boat is Albatross.\n", "", "owner", NOW)
    (tmp_path / "MEMORY.md").write_bytes(b"- The b\xffat\x00")
    async with run_app(tmp_path, "Noted.") as it:
        assert it.app.stores.files.read_memory_file() == "- The boat is Albatross.\n"
        assert any("MEMORY.md was damaged" in problem for problem in it.app.status()["problems"])
    assert (tmp_path / "MEMORY.md.damaged").read_bytes() == b"- The b\xffat\x00"


@pytest.mark.parametrize("name", ["search.db", "memory.db", "MEMORY.md"])
async def test_verify_looks_at_what_is_made_of_others(tmp_path: Path, name: str) -> None:
    async with run_app(tmp_path, "Noted.") as it:
        await talk(it)
    closed_with(tmp_path / name, lambda path: path.write_bytes(b"\xff nothing that anybody knows" * 500))
    with closing(Stores(load_settings(None, {"ASSISTANT_HOME": str(tmp_path)}), NOW, reading=True)) as stores:
        assert any(name in f"{one.where} {one.text}" for one in stores.verifier.verify().problems)


@contextmanager
def no_file_can_be_opened() -> Iterator[None]:
    open_files = {int(descriptor.name) for descriptor in Path("/dev/fd").iterdir()}
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(set(range(soft)) - open_files), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_a_database_that_the_machine_refuses_to_open_is_not_taken_for_a_damaged_one(tmp_path: Path) -> None:
    async with run_app(tmp_path, "Noted.") as it:
        await it.say("My aunt lives in Lund.")
        await it.wait_idle()
    databases = {"script.db": script_migrations, "memory.db": memory_migrations}
    with no_file_can_be_opened():
        for name, migrations in databases.items():
            with pytest.raises(StoreError, match="cannot be opened"):
                find_damage(tmp_path / name, migrations)
        with pytest.raises(StoreError, match="cannot be opened"):
            find_unredacted_messages(tmp_path, tmp_path)
    assert [find_damage(tmp_path / name, migrations) for name, migrations in databases.items()] == ["", ""]
