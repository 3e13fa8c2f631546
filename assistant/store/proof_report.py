"""What the byte search of a forgetting found, told so that a person knows whose it is and what to do.

What always holds: a guest is told of their own places alone, never whether somebody else said the same (I10).
"""

from __future__ import annotations

from pathlib import Path

from assistant.core.erasure import ErasureLeftover
from assistant.core.errors import StoreError
from assistant.core.sessions import OWNER_SCOPE
from assistant.store.backup_restore import ASIDE
from assistant.store.log.reader import LOG_NAME, session_folder_name
from assistant.store.marked import Marked
from assistant.store.marking import Marking
from assistant.store.memory_files import DAYS
from assistant.store.proof import copies_in, files, is_database, rightly_in

_THEIRS = "another person's: the same words stand there in their own right"
_NAMED = 8


def proved(home: Path, marking: Marking, marked: Marked) -> tuple[list[ErasureLeftover], int]:
    """What is left, by file, and how many files were read."""
    left, searched = [], 0
    own = _own_places(home, marking, marked)
    for path in files(home):
        searched += 1
        name = path.relative_to(home).as_posix()
        try:
            count = copies_in(path, marked.wording)
            found = _told(path, name, count, own, marking, marked) if count else None
        except StoreError as error:
            found = ErasureLeftover(name, 1, f"not searched: {error}")
        if found is not None and (marked.scope == OWNER_SCOPE or found.why != _THEIRS):
            left.append(found)
    return left, searched


def _own_places(home: Path, marking: Marking, marked: Marked) -> dict[str, str]:
    """Folders of the scope, relative to the home, with the session of each."""
    sessions = marking.sessions(marked.scope)
    places = {f"{kind}/{session_folder_name(session)}/": session for session in sessions for kind in ("log", "archive")}
    if marked.scope != OWNER_SCOPE:
        places[f"{DAYS}/{session_folder_name(marked.scope)}/"] = ""
    return places


def _told(
    path: Path, name: str, count: int, own: dict[str, str], marking: Marking, marked: Marked
) -> ErasureLeftover | None:
    session = next((key for folder, key in own.items() if name.startswith(folder)), None)
    if name.startswith(ASIDE):
        return ErasureLeftover(
            name, count, f"the home as it was before a restore: remove {name.partition('/')[0]} if you need it no more"
        )
    if is_database(path):
        theirs = rightly_in(path, marked)
        return (
            ErasureLeftover(name, count - theirs, _still(marked))
            if count > theirs
            else ErasureLeftover(name, count, _THEIRS)
        )
    if session is not None:
        return ErasureLeftover(
            name, count, _in_log(session, marking, marked) if path.name == LOG_NAME else _still(marked)
        )
    top, _, rest = name.partition("/")
    if marked.scope != OWNER_SCOPE or top in ("log", "archive") or (top == DAYS and "/" in rest):
        return ErasureLeftover(name, count, _THEIRS)
    if top in ("workspace", "PERSONA.md", "config.toml"):
        return ErasureLeftover(
            name, count, "your own file: change it, or remove it, if you want the words gone there too"
        )
    return ErasureLeftover(name, count, _still(marked))


def _still(marked: Marked) -> str:
    if marked.everywhere:
        return "not done: forget the same again, and see what is told of this file"
    return "the same words in something else that was said; forget the words themselves to have them gone there too"


def _in_log(session: str, marking: Marking, marked: Marked) -> str:
    also = [str(place.id) for place in marking.said(session, marked.wording)]
    if not also:
        return "not done: the words stand in what proves the log (a sender's name, say), which cannot be changed"
    more = f" and {len(also) - _NAMED} more" if len(also) > _NAMED else ""
    return f"messages {', '.join(also[:_NAMED])}{more} say the same; forget them, or the words themselves, too"
