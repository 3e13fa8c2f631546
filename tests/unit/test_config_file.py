"""The one writer of config.toml: closed to others, all of it or nothing, one at a time, links stay links."""

from __future__ import annotations

import stat
import threading
from pathlib import Path

import pytest

from assistant.core.errors import StoreError, UsageError
from assistant.settings.config_text import check_only_key_changed, set_key
from assistant.settings.layers import format_setting_value
from assistant.store.home.config_file import ConfigFile
from tests.support.faulty_disk import file_size_limit

TEXT = "# mine\n[turn]\nmax_steps = 3 # few\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "config.toml"


def written(path: Path, text: str = TEXT) -> ConfigFile:
    file = ConfigFile(path)
    file.change(lambda _: text)
    return file


def left_beside(path: Path) -> list[str]:
    return [one.name for one in path.parent.iterdir() if one.name != path.name]


def test_the_home_and_the_file_are_made_for_the_owner_alone(path: Path) -> None:
    assert ConfigFile(path).read() == ""
    assert not path.parent.exists()
    assert written(path).read() == TEXT
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert left_beside(path) == []


def test_a_file_that_was_open_to_others_is_closed_by_a_change(path: Path) -> None:
    file = written(path)
    path.chmod(0o644)
    file.change(lambda text: text + "# more\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_disk_that_takes_nothing_leaves_the_old_text_and_nothing_else(path: Path) -> None:
    file = written(path)
    with file_size_limit(path.parent) as disk:
        disk.fill()
        with pytest.raises(StoreError, match=r"was not written: .* What it said before is kept"):
            file.change(lambda text: set_key(text, "turn.max_steps", 4))
        disk.free()
    assert path.read_text() == TEXT
    assert left_beside(path) == []
    file.change(lambda text: set_key(text, "turn.max_steps", 4))
    assert path.read_text() == TEXT.replace("3 #", "4 #")


def test_what_a_crash_left_beside_the_file_is_written_over(path: Path) -> None:
    file = written(path)
    (path.parent / ".config.toml.new.partial").write_text("half of a")
    file.change(lambda text: text + "# more\n")
    assert (path.read_text(), left_beside(path)) == (TEXT + "# more\n", [])


def test_what_refuses_a_change_leaves_the_file_untouched(path: Path) -> None:
    file = written(path)
    before = path.stat()

    def refuses(_: str) -> str:
        raise UsageError("no")

    with pytest.raises(UsageError):
        file.change(refuses)
    file.change(lambda text: text)
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == (before.st_mtime_ns, before.st_ino)


def test_a_link_stays_and_the_file_that_it_leads_to_is_replaced(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "dotfiles" / "assistant.toml"
    target.parent.mkdir()
    target.write_text(TEXT)
    path.parent.mkdir()
    path.symlink_to(target)
    ConfigFile(path).change(lambda text: set_key(text, "turn.max_steps", 4))
    assert path.is_symlink()
    assert target.read_text() == TEXT.replace("3 #", "4 #")
    assert [one.name for one in target.parent.iterdir()] == [target.name]


def test_what_is_no_text_is_refused_and_left(path: Path) -> None:
    path.mkdir(parents=True)
    with pytest.raises(StoreError, match="is a directory"):
        ConfigFile(path).change(lambda _: TEXT)
    assert path.is_dir()


def test_changes_side_by_side_are_all_there(path: Path) -> None:
    written(path, "[turn]\n")
    names = [f"k{number}" for number in range(12)]

    def change(name: str) -> None:
        ConfigFile(path).change(lambda text: set_key(text, f"turn.{name}", 1))

    threads = [threading.Thread(target=change, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(f"{name} = 1\n" in path.read_text() for name in names)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("context = {target = 0.2}\n", "context.target"),
        ("context.target = 0.2 # dotted\n", "context.target"),
        ("[turn]\nmax_steps = 3\n[context]\n[turn2]\n", "context.target"),
    ],
)
def test_a_key_is_changed_however_it_stands(text: str, key: str) -> None:
    assert "0.25" in set_key(text, key, 0.25)


def test_a_text_in_which_anything_else_became_different_is_not_written() -> None:
    assert check_only_key_changed("[turn]\nx = nan\n", "[turn]\nx = nan\ny = 1\n", "turn.y", 1)
    for after in ("[turn]\ny = 1\n", "[turn]\nx = 3\ny = 1\n", "[turn]\nx = nan\n", "[turn\n"):
        with pytest.raises(UsageError, match="Nothing was changed"):
            check_only_key_changed("[turn]\nx = nan\n", after, "turn.y", 1)


@pytest.mark.parametrize("text", ["[context\n", "context = 3\n", "[[context]]\ntarget = 1\n"])
def test_a_text_that_cannot_be_changed_by_command_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="`assistant config edit` opens it"):
        set_key(text, "context.target", 0.25)


def test_a_long_list_is_shown_by_whole_entries() -> None:
    assert format_setting_value(["x" * 30, "y" * 30, "z" * 30]) == f'["{"x" * 30}", "{"y" * 30}", … 1 more]'
    assert [format_setting_value(value) for value in (["a", "b"], [], {})] == ['["a", "b"]', "[]", "{}"]
