"""The stems of words, computed by the tokenizer of the full-text indexes, in a database in memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

FTS_TOKENIZER = "porter unicode61 remove_diacritics 2"
"""What `messages_fts` is declared with."""

_MAX_KNOWN = 20_000


class Stemmer:
    """Word -> stem, remembered for the last 20,000 words or so. A word that `unicode61` takes apart has its pieces'
    stems joined by spaces. Not for several threads at once."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._scratch = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._scratch.execute(f"CREATE VIRTUAL TABLE words USING fts5 (word, content='', tokenize='{FTS_TOKENIZER}')")
        self._scratch.execute("CREATE VIRTUAL TABLE terms USING fts5vocab ('words', 'instance')")

    def of(self, words: Iterable[str]) -> dict[str, str]:
        """The stem of each word; "" for one that has no letter or digit."""
        distinct = list(dict.fromkeys(words))
        missing = [word for word in distinct if word not in self._known]
        if missing:
            if len(self._known) + len(missing) > _MAX_KNOWN:
                self._known.clear()
                missing = distinct
            self._known.update(self._made(missing))
        return {word: self._known[word] for word in distinct}

    def close(self) -> None:
        self._scratch.close()

    def _made(self, words: list[str]) -> dict[str, str]:
        pieces: list[list[str]] = [[] for _ in words]
        self._scratch.execute("BEGIN")
        self._scratch.executemany("INSERT INTO words (rowid, word) VALUES (?, ?)", enumerate(words))
        for term, row in self._scratch.execute("SELECT term, doc FROM terms ORDER BY doc, offset"):
            pieces[row].append(term)
        self._scratch.execute("ROLLBACK")
        return {word: " ".join(piece) for word, piece in zip(words, pieces, strict=True)}
