"""Where the words of a question stand in a text, as the full-text index would have it: whole words by their stems,
pieces of spaceless runs anywhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from assistant.core.text import LETTER, WORD, fold_text
from assistant.store.excerpts import Spot
from assistant.store.stems import Stems
from assistant.store.terms import QueryWord

_LONGEST_WORD = 64


@dataclass(frozen=True, slots=True)
class _Wanted:
    word: int
    stem: str
    beginning: str
    anywhere: bool


class Matcher:
    """Finds the words of one question. A text's word counts when its stem is a wanted one; only words that begin as a
    wanted one does are looked at, which is what makes this fast."""

    def __init__(self, words: Sequence[QueryWord], stems: Stems) -> None:
        self._stems = stems
        made = stems.of(word.text for word in words)
        self._wanted = [
            _Wanted(i, word.text, word.text, True)
            if word.spaceless
            else _Wanted(i, made[word.text], _beginning(word.text, made[word.text]), False)
            for i, word in enumerate(words)
        ]

    def spots(self, text: str) -> list[Spot]:
        """Every place in `text`, in order."""
        folded = fold_text(text)
        spots: dict[tuple[int, int], Spot] = {}
        for wanted in self._wanted:
            for spot in self._places(folded, wanted):
                spots[spot.start, spot.word] = spot
        return [spots[place] for place in sorted(spots)]

    def words_in(self, text: str) -> frozenset[int]:
        return frozenset(spot.word for spot in self.spots(text))

    def _places(self, folded: str, wanted: _Wanted) -> Iterator[Spot]:
        begin = folded.find(wanted.beginning)
        while begin >= 0:
            end = begin + len(wanted.beginning)
            if wanted.anywhere:
                yield Spot(begin, end, wanted.word)
            elif begin == 0 or not LETTER.match(folded, begin - 1):
                match = WORD.match(folded, begin, begin + _LONGEST_WORD)
                end = match.end() if match else end
                if self._stems.one(folded[begin:end]) == wanted.stem:
                    yield Spot(begin, end, wanted.word)
            begin = folded.find(wanted.beginning, end)


def _beginning(word: str, stem: str) -> str:
    """What every word with this stem begins with: Porter's endings may put another last letter to the stem."""
    shared = 0
    while shared < min(len(word), len(stem)) and word[shared] == stem[shared]:
        shared += 1
    return word[: max(1, min(shared, max(2, len(stem) - 1)))]
