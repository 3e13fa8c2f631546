"""The one door to files that somebody names: plain files of bounded size, and nothing that could hold up or leak."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest

from assistant.core.plain_files import (
    FileRefused,
    open_below,
    open_plain_file,
    read_file_below,
    read_plain_file,
    read_plain_text,
)

ROOT = Path(__file__).parents[2]


def test_a_plain_file_is_read_whole_up_to_its_limit(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 100)
    assert read_plain_file(tmp_path / "a", 100) == read_file_below(tmp_path, "a", 100) == b"x" * 100
    for read in (lambda: read_plain_file(tmp_path / "a", 99), lambda: read_file_below(tmp_path, "./a", 99)):
        with pytest.raises(FileRefused, match="is larger than 0 KB"):
            read()


@pytest.mark.parametrize("path", ["/proc/self/environ", "/proc/self/cmdline", "/sys/kernel/hostname", "/dev/zero"])
def test_what_the_kernel_makes_is_refused(path: str, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(path)
    for name in (Path(path), tmp_path / "link"):
        with pytest.raises(FileRefused):
            read_plain_file(name, 1000)


def test_pipes_are_refused_without_being_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileRefused, match="is not a plain file"):
        read_plain_file(tmp_path / "pipe", 1000)
    with pytest.raises(FileRefused, match="is not a plain file"), open_below(tmp_path, "pipe", "plain file"):
        pass


@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_RDWR, os.O_RDWR | os.O_APPEND | os.O_CREAT])
def test_a_file_of_the_program_that_is_a_pipe_or_a_folder_is_refused(tmp_path: Path, flags: int) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(OSError, match=r"not a file; move it away|Is a directory"):
            open_plain_file(tmp_path / name, flags)


def test_text_that_is_not_utf8_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one\ntwo \xff\n")
    with pytest.raises(FileRefused, match=r"is not UTF-8 text \(line 2\)"):
        read_plain_text(tmp_path / "a", 1000)


# Files of the program itself, files that it alone makes, and the name of the machine's start.
_OWN_FILES = {
    "assistant/bridges/matrix/cross_signing.py",
    "assistant/cli/exports.py",
    "assistant/cli/service/install.py",
    "assistant/cli/setup/command.py",
    "assistant/commands/docs.py",
    "assistant/context/tokens.py",
    "assistant/mem0/embedders.py",
    "assistant/mem0/subwords.py",
    "assistant/models/errors.py",
    "assistant/models/offline/cues.py",
    "assistant/models/offline/intents.py",
    "assistant/models/offline/mood.py",
    "assistant/models/offline/order_spelling.py",
    "assistant/models/offline/parse.py",
    "assistant/models/prices.py",
    "assistant/replica/restore_changes.py",
    "assistant/replica/bases.py",
    "assistant/store/script/reserved_ahead.py",
    "assistant/replica/capture.py",
    "assistant/replica/holder.py",
    "assistant/replica/restore.py",
    "assistant/replica/service.py",
    "assistant/replica/shipment.py",
    "assistant/replica/wal.py",
    "assistant/sandbox/command.py",  # /proc
    "assistant/service/measure.py",  # /proc
    "assistant/service/presence.py",
    "assistant/settings/settings.py",
    "assistant/settings/validators.py",
    "assistant/store/archive/restore.py",
    "assistant/store/backup/make.py",
    "assistant/store/backup/restore.py",
    "assistant/store/backup/tarball.py",
    "assistant/store/erasure/byte_search.py",
    "assistant/store/erasure/store.py",
    "assistant/store/home/closed_file.py",
    "assistant/store/home/guard.py",
    "assistant/store/home/inventory.py",
    "assistant/store/home/repair_files.py",
    "assistant/store/log/rebuild.py",
    "assistant/store/schema/library.py",
    "assistant/store/verify/salvage.py",
    "assistant/store/home/workspace.py",
    "assistant/store/log/redact.py",
    "assistant/store/schema/migrations.py",
    "assistant/web/metrics.py",
    "assistant/web/page_files.py",
    "assistant/core/plain_files.py",
    "sleep/rules/pattern_files.py",
    "sleep/rules/word_index.py",
}


def test_whatever_a_person_may_name_goes_through_the_door() -> None:
    """A module that opens files by itself is listed here, with files that nobody names; a new one is not."""
    opening: set[str] = set()
    for package in ("assistant", "sleep", "tools"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    reads = node.func.attr in ("read_text", "read_bytes") and not _is_module(node.func)
                    opens = node.func.attr == "open" and node.args and isinstance(node.args[0], ast.Constant)
                    if reads or opens:
                        opening.add(str(path.relative_to(ROOT)))
    # Exports that a person names in their own terminal are read there, only what is a plain file, by their own rules.
    exports = {"assistant/imports/files.py", "assistant/cli/transfer.py"}
    allowed = {*_OWN_FILES, *exports, "assistant/bridges/matrix/receiver.py", "assistant/commands/context.py"}
    assert opening - allowed == set()


def _is_module(function: ast.Attribute) -> bool:
    return isinstance(function.value, ast.Name) and function.value.id == "form"
