"""Searches messages or notes with the engine, and keeps the index of a source up to date.

Before each search, new texts are indexed, but not so many that they would delay it: the rest is indexed in the
background (`index_next_batch`). The index follows its source: if deleted or found damaged, it is rebuilt from it. A
text that is too long is indexed up to a limit, an unreadable one is skipped; both are recorded (`passed_over`) and do
not affect others. May be called from any thread, one call at a time; closing ends what is being indexed, even within a
text, which the next start indexes then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta, tzinfo
from threading import Event, RLock
from typing import TYPE_CHECKING, TypeVar

from assistant.core.errors import IndexDamaged, StoreError
from assistant.core.logger import get_logger
from assistant.search.index_values import (
    IndexingStopped,
    SearchExplanation,
    SearchFilter,
    SourceHit,
    SourceText,
    TextSource,
)
from assistant.search.query import FindStems

if TYPE_CHECKING:
    # A slow import, not needed before the first search.
    from assistant.search.engine import SearchEngine
    from assistant.search.index import SearchIndex

log = get_logger()
T = TypeVar("T")

# A search waits until the batch in progress is done.
_BATCH_RECORDS = 32
# How much a search indexes before it answers: about a second. Where more is new, it answers without the rest.
_MAX_RECORDS_PER_SEARCH = 256
_MAX_CHARACTERS_PER_SEARCH = 300_000
# Indexed and stored at once, unless one text alone is longer: about a second.
_PIECE_CHARACTERS = 300_000
# Maximum characters of one text to index: takes some seconds.
MAX_TEXT = 4_000_000


class SourceFinder:
    """Finds messages or journal entries of a source. All methods except for `close` raise `StoreError`."""

    def __init__(
        self,
        open_engine: Callable[[], SearchEngine],
        stems: FindStems,
        source: TextSource,
        zone: tzinfo,
        *,
        patient: bool = False,
        on_damage: Callable[[], None] = lambda: None,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        """The engine is opened at first use. `stems` may be called from any thread. `patient`: a search waits until
        everything is indexed. After `on_damage`, the engine opened next is intact."""
        self.stems = stems
        self._open_engine = open_engine
        self._source = source
        self._zone = zone
        self._is_patient = patient
        self._on_damage = on_damage
        self._on_close = on_close
        self._engine: SearchEngine | None = None
        self._lock = RLock()
        self._is_closing = Event()

    def find(self, question: str, where: SearchFilter, *, limit: int) -> list[SourceHit]:
        """Return hits, best first, including everything said until now, except while much is indexed in the
        background."""

        def search(engine: SearchEngine) -> list[SourceHit]:
            self._take_in_for_search(engine.index, where)
            hits = engine.search(question, where, limit=limit)
            engine.index.release()
            return hits

        return self._with_engine(search)

    def explain(self, question: str, where: SearchFilter, *, limit: int) -> SearchExplanation:
        """Return the hits of `find` with how they were found."""

        def explain(engine: SearchEngine) -> SearchExplanation:
            self._take_in_for_search(engine.index, where)
            explained = engine.explain(question, where, limit=limit)
            engine.index.release()
            return explained

        return self._with_engine(explain)

    def frequencies(self, words: Sequence[str]) -> tuple[list[int], int]:
        """Return how many sources have each word in any form, and the number of sources."""
        return self._with_engine(lambda engine: (engine.source_counts(words), engine.index.source_count))

    def index_next_batch(self, most: int | None = None) -> int:
        """Index `most` of the new texts; return the number of records, 0 when done: then the index is ready for a
        question. Raises `StoreError`."""

        most = most or _BATCH_RECORDS

        def take_in(engine: SearchEngine) -> int:
            taken = self._take_in(engine.index, self._source.streams_behind(engine.index.read_to), most)
            if not taken:
                engine.index.prepare()
            return taken

        # No search waits for this, which takes longer than all else.
        with suppress(IndexingStopped):
            index, records = self._with_engine(lambda engine: (engine.index, self._next_records(engine.index, most)))
            self._embed_in_advance(index, records)
        return self._with_engine(take_in)

    def _embed_in_advance(self, index: SearchIndex, records: Sequence[SourceText]) -> None:
        try:
            index.embed_in_advance(records, self._may_index)
        except (StoreError, IndexingStopped):
            raise
        except Exception:  # which of them it is, and that it cannot be searched, is found where it is indexed
            log.exception("texts are embedded when they are indexed")

    def _next_records(self, index: SearchIndex, most: int) -> list[SourceText]:
        """Return what is indexed next, at most so much as is indexed at once."""
        streams = self._source.streams_behind(index.read_to)
        unread = (self._source.records_after(stream, index.read_to.get(stream, 0), limit=most) for stream in streams)
        records = next(filter(None, unread), [])[:_BATCH_RECORDS]
        return next(_pieces([replace(record, text=record.text[:MAX_TEXT]) for record in records]), [])

    def forget(self, sources: Sequence[int], words_of: Callable[[int], str]) -> None:
        """Remove sources and all of their words; `words_of` returns what was indexed of each. Call it only once per
        source. Raises `StoreError`."""

        def remove(engine: SearchEngine) -> None:
            engine.index.remove_sources(sources, text_of=words_of)
            for source in engine.index.store.passed_over().keys() & set(sources):
                engine.index.store.pass_over(source, "")

        self._with_engine(remove)

    def clear(self) -> None:
        """Delete the index; it is rebuilt from its source. Raises `StoreError`."""
        self._with_engine(lambda engine: engine.index.clear())

    def passed_over(self) -> dict[int, str]:
        """Return sources that are indexed in part or not at all, with the reasons. Raises `StoreError`."""
        return self._with_engine(lambda engine: engine.index.store.passed_over())

    def stop_indexing(self) -> None:
        """Index nothing more. Returns at once; what another thread is indexing ends soon."""
        self._is_closing.set()

    def close(self) -> None:
        self.stop_indexing()
        with self._lock:
            self._on_close()

    def _with_engine(self, act: Callable[[SearchEngine], T]) -> T:
        with self._lock:
            try:
                return act(self._opened())
            except IndexDamaged:
                self._engine = None
                self._on_damage()
                return act(self._opened())

    def _opened(self) -> SearchEngine:
        if self._engine is None:
            engine = self._open_engine()
            last = self._source.streams_behind({})
            if any(seq > last.get(stream, 0) for stream, seq in engine.index.read_to.items()):
                # The index has more than the source: it belongs to another source, or the log was longer.
                engine.index.clear()
            self._engine = engine
        return self._engine

    def _take_in_for_search(self, index: SearchIndex, where: SearchFilter) -> None:
        streams = [
            stream for stream in self._source.streams_behind(index.read_to) if self._is_asked(stream, index, where)
        ]
        if self._is_patient:
            self._take_in(index, streams, None, is_search=True)
        else:
            self._take_in(index, streams, _MAX_RECORDS_PER_SEARCH, _MAX_CHARACTERS_PER_SEARCH, is_search=True)

    def _is_asked(self, stream: str, index: SearchIndex, where: SearchFilter) -> bool:
        """Return whether what is new in a stream is asked for: not where all of it is later. A turn asks for what was
        said before the context that it has, and what is new is mostly in that."""
        if where.before is None:
            return True
        return self._source.has_until(stream, index.read_to.get(stream, 0), where.before + timedelta(seconds=1))

    def _take_in(
        self,
        index: SearchIndex,
        streams: Iterable[str],
        max_records: int | None,
        max_characters: int | None = None,
        *,
        is_search: bool = False,
    ) -> int:
        """Index at most so much of these streams, and return the number of records."""
        taken = characters = 0
        for stream in streams:
            while max_records is None or taken < max_records:
                few = _BATCH_RECORDS if max_records is None else min(_BATCH_RECORDS, max_records - taken)
                records = self._source.records_after(stream, index.read_to.get(stream, 0), limit=few)
                if not records:
                    break
                for piece in _pieces(records):
                    characters += sum(len(record.text) for record in piece)
                    if not self._may_index() or (max_characters is not None and characters > max_characters):
                        return taken
                    try:
                        self._append(index, piece, stream, is_search=is_search)
                    except IndexingStopped:
                        return taken
                    hidden_ids = [hidden for record in piece for hidden in record.takes_back]
                    if hidden_ids:
                        index.remove_sources(hidden_ids)
                    taken += len(piece)
        return taken

    def _may_index(self) -> bool:
        return not self._is_closing.is_set()

    def _append(self, index: SearchIndex, records: Sequence[SourceText], stream: str, *, is_search: bool) -> None:
        read_to = {stream: records[-1].seq}
        for record in records:
            if len(record.text) > MAX_TEXT:
                index.store.pass_over(record.id, f"only its first {MAX_TEXT:,} characters can be searched")
        shown = [replace(record, text=record.text[:MAX_TEXT]) for record in records]
        try:
            index.append(shown, read_to, self._zone, is_search=is_search, is_wanted=self._may_index)
        except (StoreError, IndexingStopped):
            raise
        except Exception as error:  # an error of one text must not stop the others
            if len(records) > 1:
                for record in records:
                    self._append(index, [record], stream, is_search=is_search)
                return
            log.exception("a text cannot be indexed", source=records[0].id)
            index.store.pass_over(records[0].id, f"it cannot be searched ({type(error).__name__})")
            index.append([replace(records[0], text="")], read_to, self._zone)


def _pieces(records: Sequence[SourceText]) -> Iterator[list[SourceText]]:
    """Yield the records in order, so few at a time that they are indexed in about a second."""
    piece: list[SourceText] = []
    characters = 0
    for record in records:
        if piece and characters + len(record.text) > _PIECE_CHARACTERS:
            yield piece
            piece, characters = [], 0
        piece.append(record)
        characters += len(record.text)
    if piece:
        yield piece
