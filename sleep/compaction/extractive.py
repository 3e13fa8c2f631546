"""Extractive summary without a model: the most informative sentences, verbatim and in order. Pure.

Sentences are selected, never generated, so they cannot be wrong. Score: names, numbers and identifiers relative to
length, rarity of words, and statements that users make about themselves. Greetings, tool output and repetition are
excluded.
"""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from heapq import heapify, heappop, heappush
from itertools import chain

from assistant.context.truncate import original_words
from assistant.core.dataclass import dataclass
from assistant.core.messages import Message, Role
from assistant.core.quoting import replace_unsendable
from assistant.core.text import lazy_regex, shorten
from sleep.compaction.answer import escape_boundaries, fit_to_tokens
from sleep.compaction.draft_view import original_id
from sleep.compaction.message_cache import FOUND_IN_MESSAGES
from sleep.compaction.prompts import describe_media
from sleep.compaction.validate import MAX_RESTS, RESTORED_HEADING, find_named_values
from sleep.compaction.values import SummaryInput, SummaryTier
from sleep.rules.extract_statements import extract_statements
from sleep.rules.pattern_files import load_pattern
from sleep.rules.sentences import is_within_sentence

Count = Callable[[str], int]

_SENTENCE = lazy_regex(r"(?:[^.!?。！？\n]|(?<=\S)[.!?](?=\S))+[.!?。！？]*")
# Scripts without spaces are tokenised as character pairs.
_UNSPACED = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff"
_WORD = lazy_regex(rf"(?=([{_UNSPACED}]{{2}}))|([^\W{_UNSPACED}]{{2,}})")
_SPACELESS = lazy_regex(rf"[{_UNSPACED}]")
_CODE = lazy_regex(r"```.*?(?:```|\Z)", re.DOTALL)
# A line added by the program: the introduction of offline mode, or why a model did not answer.
_REMARK = lazy_regex(r"^\*(?!\*)[^*\n]+\*$", re.MULTILINE)
_LISTED = lazy_regex(r"^[-*•]\s+")
_GREETING = load_pattern("summary", "greeting")
# Text that starts with a greeting and is hardly longer is a greeting.
_WORDS_OF_GREETING = 8
_CHARACTERS_OF_GREETING = 12
_LONGEST = 300
_SHORTEST_WORDS = 3
_SHORTEST_CHARACTERS = 6
_LOOKED_AT = 6_000
_LOOKED_BACK = 12  # characters: more than any abbreviation has
_OF_ROLE = {"user": 1.5, "assistant": 1.0}
_OF_NAME, _OF_STATEMENT, _OF_RARE_WORDS = 0.5, 1.5, 0.5
_MOST_NAMED = 6
_END_CHARACTERS = 2_000
_SHORTER_ENDS = (1_000, 500, 250)


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A sentence of a message that says something."""

    place: int
    text: str
    words: tuple[str, ...]  # each word once, in order of the alphabet
    word_count: int
    names: int  # how many names, numbers and identifiers it has


@dataclass(frozen=True, slots=True)
class _SentenceOfMessage:
    """A sentence with its message, and the index of that among the rows."""

    row: Message
    index: int
    sentence: _Sentence


@dataclass(frozen=True, slots=True)
class _ScoredSentence:
    """A sentence with its message (and index among the rows), and its score.

    `score_without_statement`: its score if it turns out that it states nothing; None where that does not matter, or is
    known."""

    row: Message
    index: int
    place: int
    text: str
    score: float
    score_without_statement: float | None = None


def select_sentences(material: SummaryInput, budget: int, count: Count, rest: Callable[[], None] | None = None) -> str:
    """Return the best sentences that fit into `budget` tokens, one per line with message id and date; "" if there are
    none. `rest` is called before each of the first 200 of which it is not known yet whether they state something."""
    lines = _scored(list(_sentences(material.rows)))
    best_first = [(-line.score, -line.index, line.place, line) for line in lines]
    heapify(best_first)
    chosen: list[_ScoredSentence] = []
    left, judged = budget, 0
    while best_first:
        *_, line = heappop(best_first)
        tokens = count(f"{_shown(line)}\n")
        if line.score_without_statement is not None and (tokens <= left or left < _SHORTEST_CHARACTERS):
            # Looked for only where it matters, since it takes longer than all else.
            if rest is not None and judged < MAX_RESTS and not _states_something.is_known(line.text):
                rest()
                judged += 1
            score = line.score if _states_something(line.text) else line.score_without_statement
            line = replace(line, score=score, score_without_statement=None)
            heappush(best_first, (-score, -line.index, line.place, line))
            continue
        if tokens <= left:
            left -= tokens
            chosen.append(line)
        if left < _SHORTEST_CHARACTERS:
            break
    return "\n".join(_shown(line) for line in sorted(chosen, key=lambda line: (line.index, line.place)))


def keep_both_ends(material: SummaryInput, chars_per_end: int = _END_CHARACTERS) -> str:
    """Return the first and last `chars_per_end` characters, and where the rest is."""
    text = "\n".join(_headed(row) for row in material.rows if row.content or row.media)
    if len(text) <= 2 * chars_per_end:
        return text
    ids = [row.id for row in material.rows if row.id is not None]
    where = f"; read_history(message_id={ids[0]}) reads on from the first, #{ids[-1]} is the last" if ids else ""
    left_out = len(text) - 2 * chars_per_end
    return f"{text[:chars_per_end]}\n[… {left_out} characters left out{where} …]\n{text[len(text) - chars_per_end :]}"


def summarise_without_model(
    material: SummaryInput, source: int, count: Count, rest: Callable[[], None] | None = None
) -> tuple[str, SummaryTier]:
    """Return the best summary without a model, smaller than the `source` tokens of the rows, and its tier. `rest` as in
    `select_sentences`."""
    text = escape_boundaries(select_sentences(material, min(material.budget, source // 2), count, rest))
    if text:
        return text, "extractive"
    room = max(1, min(material.budget, source - 1))
    tries = (escape_boundaries(keep_both_ends(material, chars)) for chars in (_END_CHARACTERS, *_SHORTER_ENDS))
    ends = next((ends for ends in tries if count(ends) <= room), "")
    return ends or fit_to_tokens(escape_boundaries(keep_both_ends(material, _SHORTER_ENDS[-1])), room, count), "ends"


def _headed(row: Message) -> str:
    number = original_id(row)
    words = f"{replace_unsendable(row.content)}{describe_media(row.media)}".strip()
    return f"#{number}: {words}" if number else words


def prepare_sentences(row: Message) -> None:
    """Find out what `select_sentences` asks about a message, which then only has to compare it with others."""
    for found in _sentences((row,)):
        if row.role == "user":
            _states_something(found.sentence.text)


def _sentences(rows: tuple[Message, ...]) -> Iterator[_SentenceOfMessage]:
    seen: set[str] = set()
    for index, row in enumerate(rows):
        if row.role not in _OF_ROLE or row.metadata.get("internal") or row.metadata.get("note"):
            continue
        for sentence in _sentences_of_text(original_words(row)[:_LOOKED_AT], row.role):
            if (folded := sentence.text.casefold()) not in seen:
                seen.add(folded)
                yield _SentenceOfMessage(row, index, sentence)


@FOUND_IN_MESSAGES.cached
def _sentences_of_text(words: str, role: Role) -> tuple[_Sentence, ...]:
    content = _CODE.sub("\n", replace_unsendable(words))
    if role == "assistant":
        content = _REMARK.sub("", content)
    sentences = []
    for place, sentence in enumerate(_split(content)):
        text = _LISTED.sub("", " ".join(sentence.split()))
        if _says_something(text) and text != RESTORED_HEADING:
            sentences.append(_analysed(place, shorten(text, _LONGEST)))
    return tuple(sentences)


def _analysed(place: int, text: str) -> _Sentence:
    # The same words are said again and again: each is kept once.
    words = [sys.intern(pair or word) for pair, word in _WORD.findall(text.casefold())]
    names = len({value for _, value in find_named_values(text)})
    return _Sentence(place, text, tuple(sorted({*words})), len(words), names)


@FOUND_IN_MESSAGES.cached
def _states_something(text: str) -> bool:
    return bool(extract_statements(text))


def _split(content: str) -> Iterator[str]:
    """Sentences as they were written; the full stop of "Dr." ends none."""
    begun, end = "", 0
    for match in _SENTENCE.finditer(content):
        if begun and not (match.start() == end and is_within_sentence(begun[-_LOOKED_BACK:], match[0].lstrip()[:3])):
            yield begun
            begun = ""
        begun, end = begun + match[0], match.end()
    if begun:
        yield begun


def _says_something(text: str) -> bool:
    words, spaceless = len(text.split()), bool(_SPACELESS.search(text))
    if len(text) < _SHORTEST_CHARACTERS or (words < _SHORTEST_WORDS and not spaceless):
        return False
    short = len(text) < _CHARACTERS_OF_GREETING if spaceless else words < _WORDS_OF_GREETING
    return not (short and _GREETING.match(text) and not any(find_named_values(text)))


def _scored(lines: list[_SentenceOfMessage]) -> list[_ScoredSentence]:
    seen = Counter(chain.from_iterable(line.sentence.words for line in lines))
    rarity = {word: math.log(len(lines) / times) for word, times in seen.items()}
    return [_with_score(line, sum(map(rarity.__getitem__, line.sentence.words))) for line in lines]


def _with_score(line: _SentenceOfMessage, rarity: float) -> _ScoredSentence:
    row, sentence = line.row, line.sentence
    weight = 1 + _OF_NAME * min(sentence.names, _MOST_NAMED) + _OF_RARE_WORDS * rarity / (sentence.word_count or 1)
    share = _OF_ROLE[row.role] / math.sqrt(8 + sentence.word_count)
    if row.role != "user":
        return _ScoredSentence(row, line.index, sentence.place, sentence.text, share * weight)
    stated = share * (weight + _OF_STATEMENT)
    return _ScoredSentence(row, line.index, sentence.place, sentence.text, stated, share * weight)


def _shown(line: _ScoredSentence) -> str:
    number = original_id(line.row)
    if number is None:
        # Lines of earlier summaries already have speaker and date.
        return f"- {line.text}"
    day = f" {line.row.ts:%Y-%m-%d}" if line.row.ts else ""
    return f"- #{number}{day} {line.row.role}: {line.text}"
