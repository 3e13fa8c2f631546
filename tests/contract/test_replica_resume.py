"""After a stop, a replica continues from its whole copy where everything that changed meanwhile is known."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pyrage

from assistant.replica.postgres import ReplicaState
from assistant.store.database import Database
from tests.support.replicated import contents, replica_database, replica_settings, replicated, restore


async def _say(home: Path, url: str, text: str, **more: str) -> ReplicaState:
    """The state of the replica after a start, a message and a stop."""
    async with replicated(home, url, **more) as running:
        await running.say(text, text)
        await running.wait_idle()
    async with replica_database(replica_settings(home, url)) as database:
        state = await database.read_state()
        assert state is not None
        return state


async def test_after_a_stop_it_continues_and_misses_no_change_of_in_between(tmp_path: Path, url: str) -> None:
    home, place = tmp_path / "home", tmp_path / "place"
    (home / "workspace").mkdir(parents=True)
    for name in ("kept", "removed", "changed"):
        (home / "workspace" / name).write_text("first")
    first = await _say(home, url, "one")
    (home / "workspace" / "removed").unlink()
    (home / "workspace" / "changed").write_text("second")
    second = await _say(home, url, "two")
    assert (second.base, second.base_after) == (first.base, first.base_after)
    assert (await _say(home, url, "three")).base == first.base
    # Somebody else wrote, and moved it into the database: what exactly is not known.
    script = home / "script.db"
    size = script.stat().st_size
    with closing(Database.open_unmigrated(script)) as database, database.write() as db:
        for change in (1, -1):
            db.execute("UPDATE messages SET tokens = tokens + ?", (change,))
    assert script.stat().st_size == size
    fourth = await _say(home, url, "four")
    assert fourth.base > first.base
    # A crash leaves nothing to continue from.
    (home / "run" / "replica-resume.json").unlink()
    fifth = await _say(home, url, "five")
    assert fifth.base > fourth.base
    # A key that is set meanwhile: what is there without it could not be read together with what follows.
    key = {"ASSISTANT_REPLICA__KEY": str(pyrage.x25519.Identity.generate())}
    encrypted = await _say(home, url, "with a key", **key)
    assert encrypted.base > fifth.base
    await restore(tmp_path / "decrypted", url, tmp_path / "decryption", **key)
    fifth = await _say(tmp_path / "decrypted", url, "without")
    assert fifth.base > encrypted.base
    home = tmp_path / "decrypted"
    # Another place for whole copies, and one that lost a file.
    there = {"ASSISTANT_REPLICA__BASES": str(place)}
    sixth = await _say(home, url, "six", **there)
    assert sixth.base > fifth.base
    (stored,) = (path for path in place.rglob("*") if path.is_file())
    assert (await _say(home, url, "seven", **there)).base == sixth.base
    stored.unlink()
    assert (await _say(home, url, "eight", **there)).base > sixth.base
    await restore(tmp_path / "restored", url, tmp_path / "download")
    assert {"one", "two", "three", "four", "five", "six", "seven", "eight"} <= {*contents(tmp_path / "restored")}
    files = {path.name: path.read_text() for path in (tmp_path / "restored" / "workspace").iterdir()}
    assert files == {"kept": "first", "changed": "second"}


async def test_after_a_restore_it_continues_from_the_whole_copy_that_was_restored(tmp_path: Path, url: str) -> None:
    home, second, third = tmp_path / "home", tmp_path / "second", tmp_path / "third"
    (home / "workspace").mkdir(parents=True)
    (home / "workspace" / "list").write_text("first")
    first = await _say(home, url, "one")
    async with replicated(home, url) as running:
        # Accepted only: the restore settles that, and what it writes is in the replica too.
        await running.say("two", "two")
        await restore(second, url, tmp_path / "a")
    (second / "workspace" / "list").write_text("second")
    state = await _say(second, url, "three")
    assert (state.base, state.base_after) == (first.base, first.base_after)
    await restore(third, url, tmp_path / "b")
    assert {"one", "two", "three"} <= {*contents(third)}
    assert (third / "workspace" / "list").read_text() == "second"
    # What was written between the restore and the start is not known.
    with closing(Database.open_unmigrated(third / "script.db")) as database, database.write() as db:
        db.execute("UPDATE messages SET tokens = tokens + 1")
    assert (await _say(third, url, "four")).base > first.base
