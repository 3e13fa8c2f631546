"""Words taken out of archives, wherever they are kept.

What always holds: an archive is made anew of what it holds itself, its records blanked as those of the log, so that it
proves as before; the new object is proved before it takes the place of the old one. Which archives are concerned is
marked in the index in the transaction that takes the words out of it (`archives.outdate`), and stays so until the
object is rewritten: a place that cannot be reached now is come back to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from sqlite3 import Row

from assistant.core.erasure import ErasureLeftover
from assistant.core.errors import ArchiveMissing, ArchiveUnavailable
from assistant.store import archives
from assistant.store.archive_form import Damaged, Header, Walk, archive, compressed, header_of, lines_of
from assistant.store.archiving import StoredArchive, prove
from assistant.store.forget_files import archived_line
from assistant.store.marked import Marked

_AGAIN = "It is tried again at the next start, and when something is forgotten."


def forget_in_archives(archive_of_home: StoredArchive, marked: Marked) -> list[ErasureLeftover]:
    """Rewrite what is marked in the index; what could not be done. A place that does not answer is asked once.
    Raises `StoreError`. Slow: for a worker thread."""
    left: list[ErasureLeftover] = []
    silent = ""
    with archive_of_home.lock:
        archive_of_home.tidy()
        for row in archive_of_home.outdated(marked.scope):
            if silent and not archive_of_home.shelf.is_local(row["url"]):
                left.append(ErasureLeftover(row["url"], 1, f"not done: {silent}"))
                continue
            try:
                _rewrite(archive_of_home, row, marked)
            except ArchiveUnavailable as error:
                silent = silent or ("" if archive_of_home.shelf.is_local(row["url"]) else f"{error} {_AGAIN}")
                left.append(ErasureLeftover(row["url"], 1, f"not done: {error} {_AGAIN}"))
            except Damaged as error:
                left.append(ErasureLeftover(row["url"], 1, f"not done: {error}. Remove it, or put it right. {_AGAIN}"))
    return left


def _rewrite(archive_of_home: StoredArchive, row: Row, marked: Marked) -> None:
    session, generation = row["session"], row["generation"]
    shelf = archive_of_home.shelf
    try:
        data = shelf.get(row["url"]).data
    except ArchiveMissing:
        # Words that are nowhere need not be taken out; `archive verify` says that it is gone.
        with archive_of_home.writing() as db:
            archives.settle(db, session, generation)
        return
    header, again = _without(data, marked)
    if again == data:
        with archive_of_home.writing() as db:
            archives.settle(db, session, generation)
        return
    name, _ = archive_of_home.place_for(header, again, row["url"])
    kept = shelf.put(name, again, lambda back: prove(back, header))
    if row["url"] != kept.url:
        shelf.remove(row["url"])
    with archive_of_home.writing() as db:
        archives.put(db, header, kept)


def _without(data: bytes, marked: Marked) -> tuple[Header, bytes]:
    """The same archive without the words. Raises `Damaged`."""
    before = header_of(data)
    walk = Walk(before.session, before.generation)
    member = compressed(_blanked(data, walk, marked))
    header = replace(
        before,
        lines_sha256=walk.lines_sha256,
        handover=_left_of(before.handover, marked),
        summary=_left_of(before.summary, marked),
    )
    return header, data if header == before else archive(header, member)


def _left_of(text: str, marked: Marked) -> str:
    return marked.wording.without(text) if marked.wording.found(text) else text


def _blanked(data: bytes, walk: Walk, marked: Marked) -> Iterator[bytes]:
    for line in lines_of(data):
        left = archived_line(line, marked)
        walk.take(left)
        yield left
