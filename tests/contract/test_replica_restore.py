"""What a restore from the replica puts in place, and what it does with a folder that was there before."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pyrage

from tests.support.command_line import run_in_process
from tests.support.replicated import contents, replica_environ, replicated, restore


def test_a_folder_that_was_there_is_set_aside_whole_and_nothing_of_it_is_mixed_in(tmp_path: Path, url: str) -> None:
    home, old = tmp_path / "home", tmp_path / "old"
    _put(home, {"bridges/matrix/keys": "new keys", "bridges/nonce": "new", "secrets.toml": ""})
    asyncio.run(_say(home, url, "the newest word"))
    before = {
        "bridges/matrix/keys": "old keys",
        "bridges/matrix/other": "of an old device",
        "secrets.toml": "",
        "MEMORY.md": "An old memory.",
        "backups/nocturne-20260101T000000Z-daily.tar.gz": "an old backup",
    }
    _put(old, {**before, "models/large.bin": "a model"})
    refused = run_in_process(old, "replica", "restore", **replica_environ(url))
    assert refused.returncode == 2 and "--force restores into it" in refused.err
    done = run_in_process(old, "replica", "restore", "--force", **replica_environ(url))
    assert done.returncode == 0, done.err
    (aside,) = old.glob("before-restore-*")
    assert f"What was there before is kept in {aside}" in done.out
    assert f"The copy has no secrets: what you had set is in {aside / 'secrets.toml'}" in done.out
    assert {name: (aside / name).read_text() for name in before} == before
    assert (old / "bridges/matrix/keys").read_text() == "new keys" and (old / "bridges/nonce").exists()
    assert not (old / "bridges/matrix/other").exists() and not (old / "secrets.toml").exists()
    assert not (old / "MEMORY.md").exists() and not list(old.glob("backups/*"))
    assert (old / "models/large.bin").exists()
    assert "the newest word" in contents(old)


async def test_secrets_of_a_new_machine_stay_unless_the_replica_has_others(tmp_path: Path, url: str) -> None:
    key = {"ASSISTANT_REPLICA__KEY": str(pyrage.x25519.Identity.generate())}
    home, first, second = tmp_path / "home", tmp_path / "first", tmp_path / "second"
    _put(home, {"secrets.toml": ""})
    _put(first, {"secrets.toml": "# set here"})
    await _say(home, url, "hello")
    assert (await restore(first, url, tmp_path / "a")).former_home is None
    assert (first / "secrets.toml").read_text() == "# set here"
    await _say(first, url, "with a key", **key)
    _put(second, {"secrets.toml": "# another"})
    restored = await restore(second, url, tmp_path / "b", **key)
    assert restored.former_home is not None
    assert (restored.former_home / "secrets.toml").read_text() == "# another"
    assert (second / "secrets.toml").read_text() == "# set here"


async def _say(home: Path, url: str, text: str, **more: str) -> None:
    async with replicated(home, url, **more) as running:
        await running.say(text)
        await running.wait_idle()


def _put(home: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
        (home / name).chmod(0o600)
