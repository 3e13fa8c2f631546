"""A backup in the place of a home: only when it is proved, with what was there kept aside, and whatever is cut off."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from assistant.backup.restore import RestoredHome
from assistant.core.errors import CorruptStore, NewerSchema, StoreError, UsageError
from assistant.settings.home import Home
from assistant.settings.settings import Settings, load_settings
from assistant.store.backup.restore import (
    _mark,
    _RestoreMarker,
    finish_interrupted_restore,
    is_restore_interrupted,
    list_occupants,
    require_disk_space,
    staging_folder,
)
from assistant.wire.checks import build_restorer
from tests.support.backup_home import BACKED_UP_FILES, BackupHome, file_contents
from tests.support.command_line import one_line_error, run_in_process
from tests.support.store_home import NOW, blank_words

LATER = NOW + timedelta(hours=3)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[BackupHome]:
    made = BackupHome(tmp_path / "home").open().write_files()
    yield made
    made.close()


def settings_of(home: Path) -> Settings:
    return load_settings(Home(home), {"TIKTOKEN_CACHE_DIR": "", "ASSISTANT_HOME__TIMEZONE": "UTC"}, ring=None)


def restore(home: BackupHome, path: Path, *, to: Path | None = None, force: bool = False) -> RestoredHome:
    return build_restorer(settings_of(home.path)).restore(path, to or home.path, LATER, force=force)


def backed_up(home: BackupHome) -> Path:
    return home.folder.path / home.back_up().backup.name


def test_a_home_elsewhere_is_as_the_old_one_was(home: BackupHome, tmp_path: Path) -> None:
    home.chat(3)
    said = home.add_message()
    restored = restore(home, backed_up(home), to=tmp_path / "far" / "new")
    assert restored.former_home is None and restored.restored_erased_ids == () and restored.report.ok
    found = file_contents(tmp_path / "far" / "new")
    assert {name: found[name] for name in BACKED_UP_FILES} == {
        name: text.encode() for name, text in BACKED_UP_FILES.items()
    }
    other = BackupHome(tmp_path / "far" / "new", externals=home.externals).open()
    try:
        other.say("And now?", "On it goes.")
        assert other.add_message() == [*said, "And now?", "On it goes."] and other.verify().problems == ()
    finally:
        other.close()


def test_what_was_said_is_found_at_once(home: BackupHome, tmp_path: Path) -> None:
    home.say("The ferry leaves at seven.", "Noted.")
    restore(home, backed_up(home), to=tmp_path / "new")
    found = run_in_process(tmp_path / "new", "log")
    assert "ferry" in found.out and (tmp_path / "new" / "search.db").exists()


def test_a_home_that_is_not_empty_is_kept_aside_whole_and_only_with_force(home: BackupHome) -> None:
    path = backed_up(home)
    home.say("Later.", "Yes.")
    home.close()
    before = {
        name: data for name, data in file_contents(home.path).items() if not name.startswith(("backups/", "run/"))
    }
    with pytest.raises(UsageError, match=r"not empty .* --force") as told:
        restore(home, path)
    assert "\n" not in str(told.value)
    restored = restore(home, path, force=True)
    home.open()
    assert restored.former_home == home.path / "before-restore-20261120T130000Z"
    stayed = ("secrets.toml", "models/big.bin", "bridges/matrix/keys")
    aside = {
        name: data for name, data in file_contents(restored.former_home).items() if not name.endswith(("-shm", "-wal"))
    }
    assert aside == {name: data for name, data in before.items() if name not in stayed}
    assert all((home.path / name).exists() for name in (*stayed, f"backups/{path.name}", "backups/script-before.db"))
    assert home.add_message() == ["What is my boat called?", "Albatross."]


def test_settings_that_the_backup_has_not_are_gone_afterwards(home: BackupHome) -> None:
    (home.path / "config.toml").unlink()
    path = backed_up(home)
    (home.path / "config.toml").write_text("[log]\n", encoding="utf-8")
    home.close()
    restored = restore(home, path, force=True)
    assert not (home.path / "config.toml").exists()
    assert (
        restored.former_home is not None
        and (restored.former_home / "config.toml").read_text(encoding="utf-8") == "[log]\n"
    )
    home.open()


def test_messages_that_were_forgotten_since_are_named(home: BackupHome) -> None:
    home.say("The code is zanzibarquux.", "Noted.")
    path = backed_up(home)
    message = home.conversation.load_view("main").messages[-2].id or 0
    home.conversation.annotate("main", "redaction", [message], "", NOW)
    blank_words(home, message, "The code is zanzibarquux.")
    home.close()
    assert restore(home, path, force=True).restored_erased_ids == (message,)
    home.open()


def test_a_backup_whose_chain_is_broken_changes_nothing(home: BackupHome) -> None:
    log = home.log.path("main")
    log.write_bytes(log.read_bytes().replace(b"Albatross.", b"Albatros!!"))
    path = backed_up(home)
    home.close()
    before = file_contents(home.path)
    with pytest.raises(CorruptStore, match=r"is damaged: .*were changed"):
        restore(home, path, force=True)
    assert file_contents(home.path) == before
    with pytest.raises(CorruptStore, match="is damaged"):
        build_restorer(settings_of(home.path)).verify(path, LATER)
    home.open()


def test_one_of_a_newer_version_changes_nothing(home: BackupHome, tmp_path: Path) -> None:
    with home.db.write() as db:
        db.execute("INSERT INTO _sqlite_migrations VALUES (99, 'script', '9999_later', '')")
    with pytest.raises(NewerSchema, match="newer version"):
        restore(home, backed_up(home), to=tmp_path / "new")
    assert list_occupants(tmp_path / "new") == []


def test_a_disk_that_is_too_small_is_told_before_anything_is_unpacked(home: BackupHome) -> None:
    with pytest.raises(StoreError, match="Nothing was changed; make room"):
        require_disk_space(home.path / "not" / "there", 1 << 60)


# ------------------------------------------------------------------------------------------------------------ cut off


@pytest.mark.parametrize("moved", [0, 1, 3])
def test_a_restore_that_was_cut_off_is_told_and_finished(home: BackupHome, moved: int, tmp_path: Path) -> None:
    path = backed_up(home)
    home.close()
    _cut_off(home, path, moved, tmp_path)
    assert "A restore of" in one_line_error(run_in_process(home.path, "log"))
    done = run_in_process(home.path, "backup", "restore")
    assert done.returncode == 0 and "was finished" in done.err and "before-restore-" in done.err
    assert "Albatross." in run_in_process(home.path, "log").out
    assert not is_restore_interrupted(home.path) and not staging_folder(home.path).exists()
    assert run_in_process(home.path, "backup", "restore").returncode == 2
    home.open()


def _cut_off(home: BackupHome, path: Path, moved: int, tmp_path: Path) -> None:
    """As a kill leaves it: the marker stands, and some of the old home is aside."""
    restore(home, path, to=tmp_path / "new")
    shutil.move(tmp_path / "new", staging_folder(home.path))
    shutil.rmtree(staging_folder(home.path) / "run", ignore_errors=True)
    staying = (home.path / "script.db", home.path / "log", home.path / "memory")[:moved]
    _mark(home.path, _RestoreMarker("before-restore-1", (), settings=True, out=False))
    (home.path / "before-restore-1").mkdir()
    for one in staying:
        one.rename(home.path / "before-restore-1" / one.name)


def test_what_a_restore_left_that_had_changed_nothing_goes(home: BackupHome) -> None:
    staging_folder(home.path).mkdir()
    assert "changed nothing" in finish_interrupted_restore(home.path)
    assert not staging_folder(home.path).exists() and finish_interrupted_restore(home.path) == ""


@pytest.mark.parametrize("place", ["workspace/carried.tar.gz", "memory/carried.tar.gz"])
def test_a_backup_that_lies_where_the_restored_home_would_come_is_refused_before_anything_moves(
    home: BackupHome, place: str
) -> None:
    path = backed_up(home)
    shutil.copyfile(path, home.path / place)
    home.close()
    before = file_contents(home.path)
    with pytest.raises(UsageError, match="Nothing was changed; move it "):
        restore(home, home.path / place, force=True)
    assert file_contents(home.path) == before and not is_restore_interrupted(home.path)
    assert restore(home, path, force=True).former_home is not None
    home.open()
    assert (home.path / "workspace/plans/gate.txt").exists()
