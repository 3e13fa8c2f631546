"""Backups that have words which are forgotten are replaced by one without them, or named with what to do."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from assistant.commands.erasure import render_forget_preview
from assistant.core.backups import BackupKind, BackupResult
from assistant.core.erasure import ErasureRequest, ErasureResult
from assistant.core.errors import AssistantError, StoreError, UsageError
from assistant.erasure.backups import BackupErasure, MakeBackup
from assistant.erasure.service import ErasureService
from assistant.settings.home import Home
from assistant.settings.settings import Settings, load_settings
from assistant.store.backup.folder import BackupFolder
from assistant.store.backup.make import BackupRequest, make_backup
from assistant.wire.checks import build_restorer
from tests.support.backup_home import fast_pace, make_backup_in_process
from tests.support.erasure_home import (
    DAY,
    GUEST,
    KEPT_FACT,
    SECRET,
    SECRET_BYTES,
    ErasureHome,
    UnreachableMemories,
    say_as_guest,
)
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


def forgetting(home: ErasureHome, make: MakeBackup | None = None, **variables: str) -> ErasureService:
    chosen = settings_of(home, **variables).values.backup.folder
    folder = BackupFolder(home.path, chosen)
    backups = BackupErasure(folder, make or make_backup_in_process(folder))
    return ErasureService(home.erasure_store, home.memories, backups=backups)  # type: ignore[arg-type]


def backups_of(home: ErasureHome, chosen: str = "") -> list[Path]:
    folder = BackupFolder(home.path, chosen)
    return [folder.path / backup.name for backup in folder.list_backups()]


def broken(error: AssistantError) -> MakeBackup:
    async def make(kind: BackupKind, now: datetime) -> BackupResult:
        raise error

    return make


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
async def test_backups_with_the_words_are_replaced_by_one_without_them(home: ErasureHome, by_id: bool) -> None:
    message = fill(home)
    olds = [back_up(home), back_up(home)]
    assert all(map(has_words, olds))
    wanted = ErasureRequest("owner", messages=(message, message + 1)) if by_id else ErasureRequest("owner", text=SECRET)
    found = await forgetting(home).preview(wanted)
    assert found.backups == tuple(path.name for path in olds)
    assert all(path.name in "\n".join(render_forget_preview(found)) for path in olds)
    assert backups_of(home) == olds, "nothing goes before it is confirmed"
    done = await forget(home, wanted)
    assert (done.complete, told(done)) == (True, [])
    names = tuple(path.name for path in olds)
    assert [(one.kind, one.count, one.examples) for one in done.places][-1] == ("backups of the data folder", 2, names)
    [new] = backups_of(home)
    assert new not in olds and not (says(new, b"please remember: copper") if by_id else has_words(new))
    assert home.erasure_store.unfinished_plans() == []
    proved = build_restorer(settings_of(home)).verify(new, NOW)
    assert set(proved.report.redactions) >= {message, message + 1}
    assert KEPT_FACT.encode() in gzip.decompress(new.read_bytes())


async def test_a_message_too_short_to_be_known_by_its_words_takes_its_backups_with_it(home: ErasureHome) -> None:
    turn = home.say("Rosebud", "Noted down.")
    path = back_up(home)
    await forget(home, ErasureRequest("owner", messages=(turn.items[0].message_id,)))
    [new] = backups_of(home)
    assert new != path and not says(new, b"rosebud")


async def test_backups_are_kept_and_named_where_the_request_says_so(home: ErasureHome) -> None:
    fill(home)
    home.db.backup(NOW, "before")
    path, [copy] = back_up(home), list((home.path / "backups").glob("*.db"))
    wanted = ErasureRequest("owner", text=SECRET, keep_backups=True)
    found = await forgetting(home).preview(wanted)
    assert found.backups == (f"backups/{copy.name}", path.name)
    assert any(line.startswith("Backups that have it stay") for line in render_forget_preview(found))
    done = await forget(home, wanted)
    assert {one.where: one.kind for one in done.leftovers} == dict.fromkeys(found.backups, "kept_backup")
    assert done.complete and home.erasure_store.unfinished_plans() == []
    assert backups_of(home) == [path] and has_words(path) and copy.exists()
    again, code = await forgetting(home).request_code(wanted, NOW)
    assert (again.backups, code) == (found.backups, "")
    assert "Only backups have it, and you keep them" in render_forget_preview(again)[0]
    assert (await forget(home)).complete
    assert not path.exists() and not copy.exists()


async def test_a_backup_that_cannot_be_made_keeps_the_old_ones_until_one_can(home: ErasureHome) -> None:
    fill(home)
    path = back_up(home)
    whole = path.read_bytes()
    full = forgetting(home, broken(StoreError("The disk is full.")))
    done = await full.erase(ErasureRequest("owner", text=SECRET), NOW)
    assert path.read_bytes() == whole and not done.complete
    [left] = done.leftovers
    assert (left.where, left.kind) == (path.name, "not_done") and "The disk is full" in left.why
    assert not any(one.kind == "backups of the data folder" for one in done.places)
    [again] = await forgetting(home).finish_interrupted(NOW)
    assert again.complete and not path.exists() and home.erasure_store.unfinished_plans() == []
    assert not any(map(has_words, backups_of(home)))


async def test_the_old_ones_stay_while_a_new_one_would_have_the_words_too(home: ErasureHome) -> None:
    fill(home)
    path = back_up(home)
    backups = BackupErasure(BackupFolder(home.path), make_backup_in_process(BackupFolder(home.path)))
    unreachable = ErasureService(home.erasure_store, UnreachableMemories(home), backups=backups)  # type: ignore[arg-type]
    done = await unreachable.erase(ErasureRequest("owner", text=SECRET), NOW)
    assert {one.where for one in done.leftovers} >= {"memories", path.name}
    assert backups_of(home) == [path], "and the new one is not kept"
    [again] = await forgetting(home).finish_interrupted(NOW)
    assert again.complete and not any(map(has_words, backups_of(home)))


async def test_one_that_went_by_itself_is_replaced_by_one_that_goes_by_itself(home: ErasureHome) -> None:
    fill(home)
    make_backup(BackupFolder(home.path), BackupRequest("daily", NOW), fast_pace())
    await forget(home)
    assert [backup.kind for backup in BackupFolder(home.path).list_backups()] == ["daily"]


async def test_a_backup_without_the_words_is_left_as_it_is(home: ErasureHome) -> None:
    home.say("What is my boat called?", KEPT_FACT)
    path = back_up(home)
    before = path.read_bytes()
    fill(home)
    done = await forget(home)
    assert done.complete and path.read_bytes() == before
    assert not any(one.kind == "backups of the data folder" for one in done.places)


async def test_words_that_only_backups_have_are_found_and_forgotten(home: ErasureHome) -> None:
    fill(home)
    path = back_up(home)
    await home.erasure.erase(ErasureRequest("owner", text=SECRET), NOW)
    assert has_words(path)
    found, code = await forgetting(home).request_code(ErasureRequest("owner", text=SECRET), NOW)
    assert (found.places, found.backups) == ((), (path.name,)) and code
    done = await forget(home)
    assert (done.complete, any(map(has_words, backups_of(home)))) == (True, False)
    assert not await forgetting(home).preview(ErasureRequest("owner", text=SECRET))


async def test_a_backup_that_a_restored_home_knows_nothing_of_is_replaced_too(home: ErasureHome) -> None:
    home.say("What is my boat called?", KEPT_FACT)
    early, settings = back_up(home), settings_of(home)
    fill(home)
    late = back_up(home)
    home.close()
    restored = build_restorer(settings).restore(early, home.path, NOW, force=True)
    home.open()
    done = await forget(home)
    assert not late.exists() and early.exists() and restored.former_home is not None
    assert {one.where.split("/")[0] for one in done.leftovers} == {restored.former_home.name}
    assert all("remove before-restore-" in one.why for one in done.leftovers)


async def test_a_backup_of_ones_own_files_goes_where_the_home_has_them_no_more(home: ErasureHome) -> None:
    home.say("What is my boat called?", KEPT_FACT)
    own = home.path / "workspace" / "gate.txt"
    own.parent.mkdir()
    own.write_text(SECRET, encoding="utf-8")
    path = back_up(home)
    assert not await forgetting(home).preview(ErasureRequest("owner", text=SECRET)), "a new one would have it as well"
    own.unlink()
    assert (await forget(home)).complete
    assert not path.exists() and not any(map(has_words, backups_of(home)))


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
    assert (again.complete, path.exists(), home.erasure_store.unfinished_plans()) == (True, False, [])


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
    assert (again.complete, path.exists()) == (True, False)
    assert not any(map(has_words, backups_of(home, str(usb))))


async def test_while_a_backup_is_made_nothing_is_forgotten(home: ErasureHome) -> None:
    fill(home)
    busy = ErasureService(home.erasure_store, home.memories, lambda: True)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="is making a backup"):
        await busy.erase(ErasureRequest("owner", text=SECRET), NOW)


async def test_what_a_guest_said_is_in_the_new_backup_when_the_owner_forgets_the_same(home: ErasureHome) -> None:
    fill(home)
    said = say_as_guest(home, SECRET)
    back_up(home)
    done = await forget(home)
    [path] = backups_of(home)
    assert done.complete and has_words(path)
    assert not await forgetting(home).preview(ErasureRequest("owner", text=SECRET))
    restored = build_restorer(settings_of(home)).restore(path, home.path.with_name("other"), NOW, force=False)
    with closing(ErasureHome(restored.home).open()) as other:
        assert any(SECRET in one for one in other.add_message(GUEST)) and not any(
            SECRET in one for one in other.add_message()
        )
        assert said not in restored.report.redactions


async def test_i10_a_guest_is_told_of_no_backup_in_which_the_owner_said_the_same(home: ErasureHome) -> None:
    fill(home)
    say_as_guest(home, "hello")
    path = back_up(home)
    wanted = ErasureRequest(GUEST, text=SECRET)
    assert (await forgetting(home).preview(wanted)).backups == ()
    assert (await forget(home, wanted)).leftovers == () and backups_of(home) == [path]
