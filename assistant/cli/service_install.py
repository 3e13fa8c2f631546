"""Writing a service's file, and taking it away: nothing that a person wrote is overwritten without being asked for.

A file that was written by an earlier install is brought up to date, and the difference shown. One that a person changed
since is left alone unless forced, and then kept beside the new one.
"""

from __future__ import annotations

import difflib
import os
import pwd
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from assistant.cli.service_managers import Manager
from assistant.cli.service_place import Placed
from assistant.core.errors import AssistantError, UsageError
from assistant.service.unit_files import was_edited_by_hand

Tell = Callable[[str], None]
_EDITED = ".edited"


def install(placed: Placed, manager: Manager, *, force: bool, tell: Tell) -> bool:
    """Write the file and enable the service; whether the file is another one than before. Safe to repeat.

    Raises `UsageError` where a person changed the file."""
    changed = write(placed, force=force, tell=tell)
    manager.enable(placed.file)
    return changed


def write(placed: Placed, *, force: bool, tell: Tell) -> bool:
    file, known = placed.file, written(placed.file)
    if known == placed.text:
        tell(f"{file} is as it should be.")
        return False
    if known is not None:
        tell(difference(known, placed.text, file))
        if was_edited_by_hand(known):
            _refuse_or_keep(file, force, "overwritten", tell)
    _replace(file, placed.text)
    tell(f"Wrote {file}.")
    return True


def remove(placed: Placed, manager: Manager, *, force: bool, tell: Tell) -> None:
    """End the service and remove its file; what was said stays in the home."""
    known = written(placed.file)
    if known is None:
        tell(f"There is no {placed.file}; nothing was installed.")
        return
    if was_edited_by_hand(known):
        _refuse_or_keep(placed.file, force, "removed", tell)
    manager.disable(placed.file)
    tell(f"Removed {placed.file}. The home {placed.home.path} is as it was.")


def written(file: Path) -> str | None:
    """What a file holds; None where there is none."""
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None


def difference(known: str, wanted: str, file: Path) -> str:
    """From what is there to what would be written, line by line."""
    lines = difflib.unified_diff(known.splitlines(), wanted.splitlines(), f"{file}", f"{file} (as it would be)", "", "")
    return "\n".join(line.rstrip("\n") for line in lines)


def make_system_home(placed: Placed, tell: Tell) -> None:
    """The user that a system unit runs as, and its home, where they are missing. Needs root."""
    home = placed.home.path
    try:
        user = pwd.getpwnam(placed.user)
    except KeyError:
        words = ["useradd", "--system", "--no-create-home", "--home-dir", str(home), "--shell", "/usr/sbin/nologin"]
        done = subprocess.run([*words, placed.user], capture_output=True, text=True, check=False)
        if done.returncode:
            raise AssistantError(f"The user {placed.user} could not be made: {done.stderr.strip()}") from None
        user = pwd.getpwnam(placed.user)
        tell(f"Made the user {placed.user}.")
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    if home.stat().st_uid != user.pw_uid:
        if any(home.iterdir()):
            raise UsageError(
                f"{home} belongs to another user than {placed.user}. Nothing was done; give it to that one."
            )
        os.chown(home, user.pw_uid, user.pw_gid)
        tell(f"Its home is {home}.")


def _refuse_or_keep(file: Path, force: bool, done: str, tell: Tell) -> None:
    if not force:
        raise UsageError(
            f"{file} was changed by hand, and was not {done}. Move your changes to a drop-in (docs/service.md), or say "
            "--force: it is then kept beside."
        )
    kept = file.with_name(file.name + _EDITED)
    shutil.copy2(file, kept)
    tell(f"Kept what you wrote as {kept}.")


def _replace(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(f".{file.name}.new")
    new.write_text(text, encoding="utf-8")
    new.chmod(0o644)
    new.replace(file)
