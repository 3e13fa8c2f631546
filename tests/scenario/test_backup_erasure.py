"""Words that are forgotten vanish from backups too, or the backup that keeps them is named, with what to do."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from assistant.core.erasure import ErasureRequest, ErasureResult
from assistant.core.errors import UsageError
from assistant.erasure.service import ErasureService
from assistant.settings.home import Home
from assistant.settings.settings import Settings, load_settings
from assistant.store.backup.folder import BackupFolder
from assistant.store.backup.make import BackupRequest, make_backup
from assistant.store.erasure.plan import ErasurePlan
from assistant.wire import restore as wire_restore
from assistant.wire.backup import BackupErasure
from tests.support.backup_home import fast_pace
from tests.support.erasure_home import DAY, GUEST, KEPT_FACT, SECRET, SECRET_BYTES, ErasureHome, say_as_guest
from tests.support.semantic_memory import make_memory
from tests.support.store_home import NOW


@pytest.fixture
def home(tmp_path: Path) -> Iterator[ErasureHome]:
    made = ErasureHome(tmp_path / "home").open()
    yield made
    made.close()


def settings_of(home: ErasureHome, **variables: str) -> Settings:
    return load_settings(
        Home(home.path), {"TIKTOKEN_CACHE_DIR": "", "ASSISTANT_HOME__TIMEZONE": "UTC", **variables}, ring=None
    )


def forgetting(home: ErasureHome, **variables: str) -> ErasureService[ErasurePlan]:
    backups = BackupErasure(settings_of(home, **variables))
    return ErasureService(home.erasure_store, home.memories, backups=backups)  # type: ignore[arg-type]


def fill(home: ErasureHome) -> int:
    """The words in every database, in the log and in files of their own; the id of the message that has them."""
    home.say("What is my boat called?", KEPT_FACT)
    turn = home.say(f"Please remember: {SECRET}", f"I will keep {SECRET}")
    home.todos.add("owner", [f"Paint the gate {SECRET}"], "todo", NOW)
    entry = home.add_entry("k1", f"The word for the gate is {SECRET}", [turn.items[0].message_id])
    home.add_memory(make_memory(f"Word of the gate: {SECRET}", "owner", entries=(entry,)))
    home.files.replace_memory_file(f"- {KEPT_FACT}\n- Gate: {SECRET}\n", home.files.read_memory_file(), "model", NOW)
    home.files.append_daily_note("owner", DAY, "10:00", [f"The word is {SECRET}", "It rained."], "n")
    return turn.items[0].message_id


def back_up(home: ErasureHome, chosen: str = "") -> Path:
    folder = BackupFolder(home.path, chosen)
    return folder.path / make_backup(folder, BackupRequest("manual", NOW), fast_pace()).backup.name


def has_words(path: Path) -> bool:
    return any(says(path, one) for one in SECRET_BYTES)


def says(path: Path, words: bytes) -> bool:
    return words in gzip.decompress(path.read_bytes()).lower()


def told(done: ErasureResult) -> list[str]:
    return [f"{one.where}: {one.why}" for one in done.leftovers]


async def forget(home: ErasureHome, wanted: ErasureRequest | None = None, **variables: str) -> ErasureResult:
    return await forgetting(home, **variables).erase(wanted or ErasureRequest("owner", text=SECRET), NOW)


@pytest.mark.parametrize("by_id", [False, True])
async def test_a_backup_loses_the_words_and_all_else_of_it_stays(home: ErasureHome, by_id: bool) -> None:
    message = fill(home)
    path = back_up(home)
    assert has_words(path)
    wanted = ErasureRequest("owner", messages=(message, message + 1)) if by_id else ErasureRequest("owner", text=SECRET)
    done = await forget(home, wanted)
    assert (done.complete, told(done)) == (True, [])
    assert [(one.kind, one.examples) for one in done.places][-1] == ("backups of the home", (path.name,))
    assert not (says(path, b"please remember: copper") if by_id else has_words(path))
    assert home.erasure_store.unfinished_plans() == []
    proved = wire_restore.verify_backup(settings_of(home), path, NOW)
    assert proved.manifest.rewritten_at == NOW and set(proved.report.redactions) >= {message, message + 1}
    assert KEPT_FACT.encode() in gzip.decompress(path.read_bytes())


async def test_a_backup_without_the_words_is_left_as_it_is(home: ErasureHome) -> None:
    home.say("What is my boat called?", KEPT_FACT)
    path = back_up(home)
    before = path.read_bytes()
    fill(home)
    done = await forget(home)
    assert done.complete and path.read_bytes() == before
    assert not any(one.kind == "backups of the home" for one in done.places)


async def test_words_that_stand_in_backups_alone_are_found_and_forgotten(home: ErasureHome) -> None:
    fill(home)
    path = back_up(home)
    await home.erasure.erase(ErasureRequest("owner", text=SECRET), NOW)
    assert has_words(path)
    found, code = await forgetting(home).request_code(ErasureRequest("owner", text=SECRET), NOW)
    assert [(one.kind, one.examples) for one in found.places] == [("backups of the home", (path.name,))] and code
    done = await forget(home)
    assert (done.complete, has_words(path)) == (True, False)
    assert not await forgetting(home).preview(ErasureRequest("owner", text=SECRET))


async def test_a_backup_that_a_restored_home_knows_nothing_of_loses_them_too(home: ErasureHome) -> None:
    home.say("What is my boat called?", KEPT_FACT)
    early, settings = back_up(home), settings_of(home)
    fill(home)
    late = back_up(home)
    home.close()
    restored = wire_restore.restore_backup(settings, early, home.path, NOW, force=True)
    home.open()
    done = await forget(home)
    assert not has_words(late) and restored.former_home is not None
    assert {one.where.split("/")[0] for one in done.leftovers} == {restored.former_home.name}
    assert all("remove before-restore-" in one.why for one in done.leftovers)


async def test_words_in_ones_own_files_are_told_with_what_to_do(home: ErasureHome) -> None:
    fill(home)
    (home.path / "workspace").mkdir()
    (home.path / "workspace" / "gate.txt").write_text(SECRET, encoding="utf-8")
    path = back_up(home)
    (home.path / "workspace" / "gate.txt").unlink()
    [left] = told(await forget(home))
    assert left.startswith(f"{path.name}: it has your own files as they were (workspace/gate.txt)")
    assert f"`assistant backup remove {path.name}`" in left and "`assistant backup create`" in left


async def test_a_damaged_backup_is_told_and_tried_again(home: ErasureHome) -> None:
    fill(home)
    path = back_up(home)
    whole = path.read_bytes()
    path.write_bytes(whole[:-100])
    done = await forget(home)
    [left] = [one for one in done.leftovers if one.where == path.name]
    assert left.why.startswith("not done") and "assistant backup remove" in left.why
    assert not done.complete and len(home.erasure_store.unfinished_plans()) == 1
    path.write_bytes(whole)
    [again] = await forgetting(home).finish_interrupted(NOW)
    assert (again.complete, has_words(path), home.erasure_store.unfinished_plans()) == (True, False, [])


async def test_a_folder_that_is_not_there_is_told_and_tried_again(home: ErasureHome, tmp_path: Path) -> None:
    fill(home)
    usb = tmp_path / "usb"
    usb.mkdir()
    chosen: dict[str, Any] = {"ASSISTANT_BACKUP__FOLDER": str(usb)}
    path = back_up(home, str(usb))
    usb.rename(tmp_path / "unplugged")
    done = await forget(home, **chosen)
    assert not done.complete and any(one.where == str(usb) and "not there" in one.why for one in done.leftovers)
    (tmp_path / "unplugged").rename(usb)
    [again] = await forgetting(home, **chosen).finish_interrupted(NOW)
    assert (again.complete, has_words(path)) == (True, False)


async def test_while_a_backup_is_made_nothing_is_forgotten(home: ErasureHome) -> None:
    fill(home)
    busy = ErasureService(home.erasure_store, home.memories, lambda: True)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="makes a backup"):
        await busy.erase(ErasureRequest("owner", text=SECRET), NOW)


async def test_what_a_guest_said_stays_in_a_backup_when_the_owner_forgets_the_same(home: ErasureHome) -> None:
    fill(home)
    said = say_as_guest(home, SECRET)
    path = back_up(home)
    done = await forget(home)
    assert done.complete and has_words(path)
    restored = wire_restore.restore_backup(settings_of(home), path, home.path.with_name("other"), NOW, force=False)
    with closing(ErasureHome(restored.home).open()) as other:
        assert any(SECRET in one for one in other.add_message(GUEST)) and not any(
            SECRET in one for one in other.add_message()
        )
        assert said not in restored.backup.report.redactions
