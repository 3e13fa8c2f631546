"""How a text matches a question: where the question's words are in it, the best excerpt, and whether it has the words
more often than by chance.

Words match as in the full-text index: whole words by their stems, pieces of spaceless runs anywhere.

Chance is measured because a search always returns something, even for a question about nothing that was ever said.
Scores rank the hits of a search, but do not show whether any is relevant. If words were distributed independently, a
certain number of passages as long as an excerpt would have these words together; if that number is small, they are
together for a reason. Since common words are not independent ("talk to you tomorrow"), only words in at most one
passage in twenty are counted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence, Set

from assistant.core.dataclass import dataclass
from assistant.core.records import MatchQuality
from assistant.core.text import LETTER, WORD, fold_text, lazy_regex
from assistant.search.finder import SourceFinder
from assistant.search.query import FindStems, QueryWord

EXCERPT_CHARACTERS = 240
"""About how many characters an excerpt has; never more than a third above."""

_SLACK = EXCERPT_CHARACTERS // 3
# They begin with the blank, so that `re` looks no further at other characters, which takes a third of the time.
_SENTENCE = lazy_regex(r"\s(?:(?<=[.!?…]\s)\s*+|(?<!\s\s)(?:(?<=\n)\s*+|[^\S\n]*+\n\s*+))")
_SENTENCE_WITHOUT_BLANKS = lazy_regex(rf"{_SENTENCE.pattern}|(?<=[。！？])")
_WITHOUT_BLANKS = lazy_regex(r"[。！？]")
# In a sentence that is too long, its parts are used.
_CLAUSE = lazy_regex(r"\s(?<=[:;]\s)\s*+")


@dataclass(frozen=True, slots=True)
class WordSpot:
    """A word of the question at characters [start, end) of a text."""

    start: int
    end: int
    word: int


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A part of a text."""

    text: str
    words: frozenset[int]  # which of the question's words it has


def best_passage(spots: Sequence[WordSpot], idf: Sequence[float], width: int) -> tuple[float, int, int]:
    """Return (value, first, last) of the run of spots within `width` characters that has the most of the question."""
    best = (0.0, 0, -1)
    counts: dict[int, int] = {}
    worth = 0.0
    first = 0
    for last, spot in enumerate(spots):
        seen = counts.get(spot.word, 0)
        counts[spot.word] = seen + 1
        worth += idf[spot.word] * (1.0 if not seen else 0.1)
        while spot.end - spots[first].start > width and first < last:
            out = spots[first].word
            counts[out] -= 1
            worth -= idf[out] * (1.0 if not counts[out] else 0.1)
            first += 1
        if worth > best[0]:
            best = (worth, first, last)
    return best


def make_excerpt(text: str, spots: Sequence[WordSpot], idf: Sequence[float], *, keep_lines: bool = False) -> Excerpt:
    """Return about 300 characters of `text` around the passage with the most of the question's words, from the start to
    the end of a sentence if possible; white space is collapsed, but for the ends of lines with `keep_lines`. "…" marks
    omissions. A text without any of the words returns its beginning."""
    _, first, last = best_passage(spots, idf, EXCERPT_CHARACTERS)
    core = (spots[first].start, spots[last].end) if last >= first else (0, 0)
    start, end = _widened(text, *core)
    lines = text[start:end].splitlines() if keep_lines else [text[start:end]]
    piece = "\n".join(filter(None, map(join_words, lines)))
    before = "… " if start and text[:start].strip() else ""
    after = " …" if end < len(text) and text[end:].strip() else ""
    words = frozenset(spot.word for spot in spots if start <= spot.start and spot.end <= end)
    return Excerpt(f"{before}{piece}{after}", words)


def join_words(text: str) -> str:
    """Return the words of a text with single blanks between them."""
    # All other white space is not printable; most texts have none, which is seen in a tenth of the time.
    if text.isprintable() and "  " not in text and text[:1] != " " and text[-1:] != " ":
        return text
    return " ".join(text.split())


def _widened(text: str, start: int, end: int) -> tuple[int, int]:
    """Extend a passage to whole sentences, as far as it fits."""
    sentence = _SENTENCE if text.isascii() or not _WITHOUT_BLANKS.search(text) else _SENTENCE_WITHOUT_BLANKS
    end = min(end, start + EXCERPT_CHARACTERS + _SLACK)
    room = max(0, EXCERPT_CHARACTERS - (end - start))
    # The answer tends to follow the words of the question, so the rest of their sentence comes first.
    closing = sentence.search(text, end, min(len(text), end + room))
    rest = (closing.start() if closing else min(len(text), end + room)) - end
    begin = _sentence_start(text, start, room - rest + _SLACK // 2, sentence)
    finish = _sentence_end(text, end, max(0, EXCERPT_CHARACTERS - (end - begin)) + _SLACK // 2, sentence)
    return begin, max(finish, closing.start()) if closing else finish


def _sentence_start(text: str, at: int, room: int, sentence: re.Pattern[str]) -> int:
    """Return the earliest start of a sentence within `room` characters before `at` that leaves space for what follows;
    else the start of a word."""
    low = max(0, at - room)
    if low == 0:
        return 0
    for parts in (sentence, _CLAUSE):
        starts = [match.end() for match in parts.finditer(text, low, at) if match.end() <= at]
        if starts:
            # The answer tends to follow the words of the question: of the sentences before, only the nearest is
            # included.
            return starts[-1]
    space = text.find(" ", max(low, at - _SLACK // 2), at)
    return space + 1 if space >= 0 else max(low, at - _SLACK // 2)


def _sentence_end(text: str, at: int, room: int, sentence: re.Pattern[str]) -> int:
    """Return the last end of a sentence within `room` characters after `at`, else the end of a word."""
    high = min(len(text), at + room)
    if high == len(text):
        return high
    for parts in (sentence, _CLAUSE):
        ends = [match.start() for match in parts.finditer(text, at, high)]
        if ends:
            return ends[-1]
    space = text.rfind(" ", at, high)
    return space if space > at else high


_LONGEST_WORD = 64
# No word of a question has it, and none of a text goes on beyond it.
_BETWEEN = "\n"


@dataclass(frozen=True, slots=True)
class _WantedWord:
    stem: str
    beginning: str
    anywhere: bool


class WordMatcher:
    """Finds the words of one question. A word of a text matches if its stem does; for speed, only words that begin like
    a wanted one are stemmed."""

    def __init__(self, words: Sequence[QueryWord], stems: FindStems) -> None:
        self._stems = stems
        self._known: dict[str, str] = {}
        made = stems(word.text for word in words)
        self._wanted = [
            _WantedWord(word.text, word.text, True)
            if word.spaceless
            else _WantedWord(made[word.text], _beginning(word.text, made[word.text]), False)
            for word in words
        ]

    def find_spots(self, text: str) -> list[WordSpot]:
        """Return every match in `text`, in order."""
        return self.find_spots_of([text])[0]

    def find_spots_of(self, texts: Sequence[str]) -> list[list[WordSpot]]:
        """Return the matches in each text. All of them are looked through at once, and their words stemmed together,
        which takes much less time than one by one."""
        places = self._places(_BETWEEN.join(map(fold_text, texts)))
        new = {word for *_, word in places if word} - self._known.keys()
        if new:
            self._known.update(self._stems(new))
        spots: list[list[WordSpot]] = []
        begin = at = 0
        for text in texts:
            end_of_text = begin + len(text)
            of_text = []
            while at < len(places) and places[at][0] < end_of_text:
                start, number, end, word = places[at]
                if not word or self._known[word] == self._wanted[number].stem:
                    of_text.append(WordSpot(start - begin, end - begin, number))
                at += 1
            spots.append(of_text)
            begin = end_of_text + len(_BETWEEN)
        return spots

    def words_in(self, text: str) -> frozenset[int]:
        """Return which of the question's words the text has, by their numbers."""
        return frozenset(spot.word for spot in self.find_spots(text))

    def _places(self, folded: str) -> list[tuple[int, int, int, str]]:
        """Return (start, number of the question's word, end, word) of what begins like one, in order; no word for
        pieces of a run without spaces, which need not be stemmed."""
        places = []
        for number, wanted in enumerate(self._wanted):
            start = folded.find(wanted.beginning)
            while start >= 0:
                end = start + len(wanted.beginning)
                if wanted.anywhere:
                    places.append((start, number, end, ""))
                elif start == 0 or not LETTER.match(folded, start - 1):
                    match = WORD.match(folded, start, start + _LONGEST_WORD)
                    end = match.end() if match else end
                    places.append((start, number, end, folded[start:end]))
                start = folded.find(wanted.beginning, end)
        places.sort()
        return places


def _beginning(word: str, stem: str) -> str:
    """Return the common beginning of all words with this stem: Porter's rules may change the last letter of the
    stem."""
    shared = 0
    while shared < min(len(word), len(stem)) and word[shared] == stem[shared]:
        shared += 1
    return word[: max(1, min(shared, max(2, len(stem) - 1)))]


_TELLING = math.log(20)
_MOST_SURPRISE = 2.0


@dataclass(frozen=True, slots=True)
class Significance:
    """The matches expected by chance for one question."""

    words: Sequence[QueryWord]
    idf: Sequence[float]  # of the words; 0 for unknown ones
    passage_count: int

    def measure_fit(self, word_indexes: Set[int]) -> MatchQuality:
        """Return how well an excerpt with the words `word_indexes` fits."""
        unheard = math.log(2 * (self.passage_count + 1))
        whole = sum(worth or unheard for worth in self.idf)
        telling = [i for i in self._apart(sorted(word_indexes)) if self.idf[i] >= _TELLING]
        rarity, by_chance = sum(self.idf[i] for i in telling), math.log(self.passage_count + 1)
        chance = math.exp(by_chance - rarity)
        surprise = min(_MOST_SURPRISE, rarity / by_chance) if by_chance else 0.0
        share = sum(self.idf[i] for i in word_indexes) / whole if whole else 0.0
        return MatchQuality(len(telling), chance, share, rarity, surprise)

    def _apart(self, word_indexes: Sequence[int]) -> list[int]:
        """Return the words that are independent: of overlapping pairs in a spaceless run, every other one."""
        apart: list[int] = []
        for i in word_indexes:
            word, before = self.words[i], self.words[apart[-1]] if apart and apart[-1] == i - 1 else None
            if not (before and word.spaceless and before.spaceless and before.text[-1] == word.text[0]):
                apart.append(i)
        return apart


@dataclass(frozen=True, slots=True)
class PreparedQuery:
    matcher: WordMatcher
    significance: Significance


def prepare_query(finder: SourceFinder, words: Sequence[QueryWord]) -> PreparedQuery:
    """Prepare a query of these words for the source of `finder`. Raises `StoreError`."""
    counts, sources = finder.frequencies([word.text for word in words])
    idf = [math.log(1 + (sources - count + 0.5) / (count + 0.5)) if count else 0.0 for count in counts]
    return PreparedQuery(WordMatcher(words, finder.stems), Significance(words, idf, sources))
