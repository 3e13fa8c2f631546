"""Skills: folders of the workspace with a SKILL.md, in the open Agent Skills format.

A skill is only read as text. Nothing in it is run, and what it says about itself (name, description, tools it would
like) grants nothing. Links are not followed, and nothing larger than the limits is read or copied. An invalid skill is
listed with its problem, and not offered.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from assistant.core.dataclass import dataclass
from assistant.core.errors import StoreError, UsageError
from assistant.core.plain_files import FileRefused, decode_text, open_below, read_file_below
from assistant.core.text import lazy_regex
from assistant.store.files import make_directory, sync_directory, write_file

SKILLS_FOLDER = "skills"
SKILL_FILE = "SKILL.md"
MOST_SKILLS = 200
_MAX_SKILL_BYTES = 256 * 1024
_MAX_HEAD_LINES = 200
_MAX_DESCRIPTION = 1024
_MAX_FILES, _MAX_DEPTH = 500, 6
_MAX_BYTES = 20 * 1024 * 1024
_PARTIAL = ".partial-"
_NAME = lazy_regex(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
_KEY = lazy_regex(r"([A-Za-z][\w-]*):(.*)")


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill. `problem` says why it is not offered; it completes a sentence that begins with the name."""

    name: str
    description: str = ""
    problem: str = ""


class Skills:
    """The skills of one workspace, read from its folders at each call."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self.folder = workspace / SKILLS_FOLDER

    def list_all(self) -> list[Skill]:
        """Return all skills by name, including those not offered."""
        return [self._read(name) for name in self._names()]

    def list_offered(self) -> list[Skill]:
        return [skill for skill in self.list_all() if not skill.problem]

    def has_any(self) -> bool:
        return bool(self._names())

    def require(self, name: str) -> Skill:
        """Return a skill. Raises `FileRefused` if it is not offered."""
        if not _NAME.fullmatch(name):
            raise FileRefused("is not the name of a skill")
        skill = self._read(name)
        if skill.problem:
            raise FileRefused(skill.problem)
        return skill

    def list_files(self, name: str) -> list[str]:
        """Return the plain files of a skill except for SKILL.md, by their path within it."""
        paths = (path for path, state in _walk(self.folder / name) if stat.S_ISREG(state.st_mode))
        return sorted(path for path in paths if path != SKILL_FILE)

    def add(self, source: Path) -> Skill:
        """Copy a folder here. Raises `UsageError` if it is not a skill, too large, or already exists."""
        try:
            skill = parse_skill(decode_text(read_file_below(source, SKILL_FILE, _MAX_SKILL_BYTES)))
            if (self.folder / skill.name).exists():
                raise FileRefused(f"is there already; `assistant skills remove {skill.name}` makes room")
            contents = list(_contents(source))
        except FileRefused as error:
            raise UsageError(f"{source} {error}. Nothing was added.") from None
        partial = self.folder / f"{_PARTIAL}{skill.name}"
        try:
            shutil.rmtree(partial, ignore_errors=True)
            make_directory(partial)
            for path, data in contents:
                make_directory((partial / path).parent)
                write_file(partial / path, data)
            partial.rename(self.folder / skill.name)
            sync_directory(self.folder)
        except OSError as error:
            raise StoreError(f"{self.folder} cannot be written: {error.strerror}. Nothing was added.") from error
        return skill

    def remove(self, name: str) -> None:
        """Delete a skill. Raises `UsageError` if it does not exist."""
        if name not in self._names():
            raise UsageError(f"There is no skill {name[:64]!r}. Nothing was changed; `/skills` lists them.")
        try:
            shutil.rmtree(self.folder / name)
        except OSError as error:
            raise StoreError(f"{self.folder / name} cannot be removed: {error.strerror}.") from error

    def _names(self) -> list[str]:
        try:
            with os.scandir(self.folder) as entries:
                folders = [it.name for it in entries if it.is_dir(follow_symlinks=False) and it.name[:1] != "."]
        except OSError:
            return []
        return sorted(folders)[:MOST_SKILLS]

    def _read(self, name: str) -> Skill:
        try:
            data = read_file_below(self._workspace, f"{SKILLS_FOLDER}/{name}/{SKILL_FILE}", _MAX_SKILL_BYTES)
            skill = parse_skill(decode_text(data))
        except FileRefused as error:
            return Skill(name, problem=f"has a {SKILL_FILE} that {error}")
        if skill.name != name:
            return Skill(name, problem="has another name in its SKILL.md than its folder")
        return skill


def parse_skill(text: str) -> Skill:
    """Return the name and description in a SKILL.md. Raises `FileRefused`, whose text completes a sentence with the
    file name."""
    lines = text.removeprefix("\ufeff").splitlines()
    end = next((n for n, line in enumerate(lines[1 : _MAX_HEAD_LINES + 1], 1) if line.rstrip() == "---"), 0)
    if not lines or lines[0].rstrip() != "---" or not end:
        raise FileRefused("does not begin with a head between two lines of ---")
    head = _read_head(lines[1:end])
    name, description = head.get("name", ""), " ".join(head.get("description", "").split())
    if not _NAME.fullmatch(name) or "--" in name:
        raise FileRefused("has no valid name: 1 to 64 letters a-z, digits and single hyphens")
    if not 0 < len(description) <= _MAX_DESCRIPTION:
        raise FileRefused(f"has no description of 1 to {_MAX_DESCRIPTION:,} characters")
    return Skill(name, description)


def _read_head(lines: list[str]) -> dict[str, str]:
    """Return the top-level strings of the YAML header: plain, quoted, or as a block. Anchors, tags and collections are
    not interpreted."""
    head: dict[str, str] = {}
    key = ""
    for line in lines:
        match = _KEY.fullmatch(line)
        if match is not None:
            key = match[1]
            head[key] = "" if match[2].strip()[:1] in ("|", ">") else match[2].strip()
        elif key and (not line.strip() or line[:1] in " \t"):
            head[key] += "\n" + line.strip()
    return {name: _unquoted(value.strip()) for name, value in head.items()}


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] == "'":
        return value[1:-1].replace("''", "'")
    if len(value) > 1 and value[0] == value[-1] == '"':
        try:
            return str(json.loads(value.replace("\n", " ")))
        except ValueError:
            return value[1:-1]
    return value


def _contents(source: Path) -> Iterator[tuple[str, bytes]]:
    """Return every file of a folder. Raises `FileRefused`."""
    room = _MAX_BYTES
    for number, (path, state) in enumerate(_walk(source), 1):
        if not stat.S_ISREG(state.st_mode):
            raise FileRefused(f"has {path}, which is no plain file; links are not followed")
        room -= state.st_size
        if number > _MAX_FILES or room < 0:
            raise FileRefused(f"has more than {_MAX_FILES} files or {_MAX_BYTES // 2**20} MB")
        yield path, read_file_below(source, path, _MAX_BYTES)


def _walk(folder: Path, below: str = "", depth: int = _MAX_DEPTH) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the files of a folder with their paths within it. Links are not followed."""
    with open_below(folder, below, "folder") as descriptor, os.scandir(descriptor) as entries:
        found = sorted((entry.name, entry.stat(follow_symlinks=False)) for entry in entries)
    for name, state in found[: _MAX_FILES + 1]:
        path = f"{below}/{name}" if below else name
        if not stat.S_ISDIR(state.st_mode):
            yield path, state
        elif depth:
            yield from _walk(folder, path, depth - 1)
