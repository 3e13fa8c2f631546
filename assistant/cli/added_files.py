"""Files that a person adds at their own terminal: this process reads them, as the person may, and copies them into the
workspace. The process that runs the command then looks at the workspace alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from assistant.cli.output import print_remark
from assistant.commands.files import STORED_OPTION, is_address
from assistant.commands.table import ParsedCommand
from assistant.core.dataclass import dataclass
from assistant.core.errors import UsageError
from assistant.core.messages import Media
from assistant.core.plain_files import FileRefused, expand_home, read_plain_file
from assistant.core.text import pluralize
from assistant.documents.folders import FOLDER_MARK, FileFolders
from assistant.documents.reader import MAX_DOCUMENT_BYTES
from assistant.settings.home import Home
from assistant.store.home.workspace import ADDED_FOLDER, WorkspaceFiles, safe_file_name

MOST_FILES = 20_000
MOST_BYTES = 4 * 1024**3
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class _NamedFile:
    """A file to be copied into a folder of the workspace."""

    path: Path
    folder: str


def with_added_files(home: Home, parsed: ParsedCommand) -> list[str]:
    """The words of `add` with the files where they are in the workspace now, each once, and the addresses as they were
    typed. What cannot be read of a folder is left out and said. Raises `UsageError` where a file that was named cannot
    be read, or where it is too much: nothing was copied."""
    sources: Sequence[str] = parsed.params["sources"]
    addresses = [source for source in sources if is_address(source)]
    files = [file for source in sources if not is_address(source) for file in _files_of(source, home)]
    if len(files) > MOST_FILES or sum(file.path.stat().st_size for file in files) > MOST_BYTES:
        raise UsageError(
            f"That is more than {MOST_FILES:,} files, or than {MOST_BYTES // 1024**3} GB. Nothing was added; add "
            "parts of it, or name the folder in `files.folders`, where it is read without a copy."
        )
    workspace, stored, left_out = WorkspaceFiles(home.workspace), [], []
    for file in files:
        try:
            data = read_plain_file(file.path, MAX_DOCUMENT_BYTES)
        except FileRefused as error:
            left_out.append(f"{file.path} {error}")
            continue
        name = safe_file_name(Media("file", "", file.path.name, len(data)))
        stored.append(workspace.save(file.folder, (name,), data))
    if left_out:
        more = f"; and {len(left_out) - _MOST_NAMED} more" if len(left_out) > _MOST_NAMED else ""
        print_remark(f"{pluralize(len(left_out), 'file')} not added: {'; '.join(left_out[:_MOST_NAMED])}{more}.")
    return ["add", *(f"{STORED_OPTION}={path}" for path in dict.fromkeys(stored)), *addresses]


def _files_of(source: str, home: Home) -> Iterator[_NamedFile]:
    path = expand_home(source)
    if not path.is_dir():
        try:
            read_plain_file(path, MAX_DOCUMENT_BYTES)
        except FileRefused as error:
            raise UsageError(f"{source} {error}. Nothing was added.") from None
        yield _NamedFile(path, ADDED_FOLDER)
        return
    path = path.resolve()
    try:
        found, _ = FileFolders(path, home.path, {"it": path}).list_files(f"{FOLDER_MARK}it", MOST_FILES + 1)
    except FileRefused as error:
        raise UsageError(f"{source} {error}. Nothing was added.") from None
    if (left_out := _count_entries(path) - len(found)) > 0:
        print_remark(
            f"Not added of {source}: {left_out}, since hidden files, keys, passwords and links in a folder are left "
            "out."
        )
    for file in found:
        inside = Path(file.path).relative_to(f"{FOLDER_MARK}it")
        names = [safe_file_name(Media("file", "", part, 0)) for part in (path.name, *inside.parent.parts)]
        yield _NamedFile(path / inside, "/".join([ADDED_FOLDER, *names]))


def _count_entries(folder: Path) -> int:
    """Return how many files, hidden folders and links are in a folder and below, none of which is followed."""
    count = 0
    for root, folders, files in os.walk(folder):
        kept = [name for name in folders if not name.startswith(".") and not Path(root, name).is_symlink()]
        count += len(files) + len(folders) - len(kept)
        folders[:] = kept
    return count
