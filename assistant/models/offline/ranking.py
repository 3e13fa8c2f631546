"""Which of somebody's own words answer a question. Pure.

The search has found what shares words with the question; here each quotation is scored by how much of the question it
covers, whether it has the kind of thing asked for (a name, a number, a time, a place), and whether it is about the same
person. What always holds: statements come before questions, of several that fit about equally well the newest is the
answer, and what covers too little of the question is at most shown as the nearest, never as the answer. What replaces
what is decided by the rules of memory (`sleep/rules`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from itertools import takewhile

from assistant.core.dataclass import dataclass
from assistant.core.quoting import QuotedMessage
from assistant.core.text import STOP_WORDS, distinct_words, fold_text, lazy_regex
from assistant.core.time_pieces import find_times
from assistant.models.offline.denials import asks_which, denies
from assistant.models.offline.matching import is_same, subject_words, words_of
from assistant.models.offline.parse import as_statement, is_statement, parse_clause, read_phrases
from assistant.models.offline.requests import Correction, Note
from assistant.models.offline.undo import other_number
from assistant.search.query import base_form
from assistant.search.spelling import likely_word, nearest_word
from sleep.rules.classifier import classify_word
from sleep.rules.corrections import correct_part, is_correction
from sleep.rules.sentences import split_sentences
from sleep.rules.statements import is_same_stem, parse_statement, stem_word
from sleep.rules.supersede import compare_statements, parse_entry
from sleep.rules.translate import other_words, to_english

_ANSWERS = 0.55
_ANSWERS_TOPIC = 0.5
_NEAREST = 0.4
_ABOUT_EQUAL = 0.1
_ALSO_FITS = 0.25
# What is not so answers less well than what is so, and does not answer who, where, when or how many at all.
_DENIED = 0.15
_ASKS = 0.3  # by how much what is no statement counts less
_ATTRIBUTE_WEIGHT = 0.35
_MOST = 3
_MOST_ON_TOPIC = 5
_KINDS = ("colour", "number", "time", "name", "place")
_HEADLINE = 3
_GERMAN_ARTICLE = lazy_regex(r"\b(?:der|die|das|den|dem|des|(?:m|d|s)?eine?[nrms]?|unser\w*)\s$", re.IGNORECASE)
_NAME = lazy_regex(r"[^\W\d_]{2,}")


# What "no, number 7" may put right.
_SAYS_NUMBER = lazy_regex(r"\d|\b(?:number|nummer|num[eé]ro|n[uú]mero)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RankedAnswer:
    answers: tuple[QuotedMessage, ...] = ()  # the one to believe first
    corrects: bool = False  # that one was said to put an earlier one right
    replaced: tuple[QuotedMessage, ...] = ()  # what is no longer so by the first
    nearest: QuotedMessage | None = None  # without answers, what came closest
    guessed: Mapping[str, str] = field(default_factory=dict)  # words of the question, and as which they were read


@dataclass(frozen=True, slots=True)
class _Question:
    words: Sequence[str]
    weights: Sequence[float]
    kind: str  # one of `_KINDS`, or ""
    names_self: bool
    mine: frozenset[str]  # what the person calls "my"
    kin: Sequence[str]
    names: frozenset[str]


def content_words(text: str) -> list[str]:
    """The words of `text` that mean something, folded, each once, in order. A capital inside the sentence makes a name
    of a word that would mean nothing otherwise: Mia is somebody, "mia" is "my"."""
    later = _NAME.findall(text)[1:]
    names = {fold_text(word) for word in later if word[0].isupper()}
    # Where every word has one, a capital says nothing: "WHERE IS THE KEY", "Where Is The Key".
    if len(later) >= _HEADLINE and all(word[0].isupper() for word in later):
        names = set()
    small = (STOP_WORDS | read_phrases().small_words) - names
    return [word for word in distinct_words(text) if word not in small]


def query_words(words: Sequence[str]) -> list[str]:
    """What to search for: the words, and what else a statement may say for those that are more than attributes."""
    attributes = read_phrases().attributes
    subjects = [word for word in words if word not in attributes] or words
    related = [other for word in subjects for other in sorted(_related(word))]
    return list(dict.fromkeys([*words, *related, *(other for word in words for other in other_words(word))]))


def respell(question: str, texts: Iterable[str]) -> str:
    """The question with its misspelt words as `texts` have them. A capital inside the sentence is of a name, and names
    that are alike are of different people."""
    known = {word for text in texts for word in distinct_words(text)}
    for word in content_words(question):
        if word in known or _has(known, [word]):
            continue
        meant = nearest_word(word, known)
        written = re.search(rf"(?<!\w){re.escape(word)}(?!\w)", fold_text(question)) if meant else None
        if written and not _is_name(question, written.start()):
            question = f"{question[: written.start()]}{meant}{question[written.end() :]}"
    return question


def guess_words(question: str, texts: Iterable[str]) -> tuple[str, dict[str, str]]:
    """The question with words that nobody knows as the only ones of `texts` with the same consonants, and which are
    read as which."""
    known = {word for text in texts for word in content_words(text)}
    guessed: dict[str, str] = {}
    for word in content_words(question):
        if word in known or _has(known, [word]) or other_words(word) or classify_word(word):
            continue
        written = re.search(rf"(?<!\w){re.escape(word)}(?!\w)", fold_text(question))
        if written and not _is_name(question, written.start()) and (meant := likely_word(word, known)):
            question = f"{question[: written.start()]}{meant}{question[written.end() :]}"
            guessed[word] = meant
    return question, guessed


def _is_name(question: str, place: int) -> bool:
    """Whether the word at this place has a capital that makes it a name; behind an article it is a German noun."""
    if not place or question[place].islower() or question.isupper():
        return False
    return _GERMAN_ARTICLE.search(question[:place]) is None


def find_answer(question: str, quotes: Iterable[QuotedMessage], *, topic: bool = False) -> RankedAnswer:
    """The quotations that answer `question`, or all that belong to its topic."""
    known = list(quotes)
    known = [quote for quote in known if points_to(quote.text, known) is None]
    scored = sorted(((_score(question, quote), quote) for quote in known), key=lambda pair: pair[0], reverse=True)
    if not scored:
        return RankedAnswer()
    best = scored[0][0]
    if best < (_ANSWERS_TOPIC if topic else _ANSWERS):
        near = (quote for score, quote in scored if score >= _NEAREST)
        return RankedAnswer(nearest=next((quote for quote in near if _holds(quote, known)), None))
    least = _ANSWERS_TOPIC if topic else max(_ANSWERS, best - _ALSO_FITS)
    first = [quote for score, quote in scored if score >= max(least, best - _ABOUT_EQUAL)]
    rest = [quote for score, quote in scored if least <= score < best - _ABOUT_EQUAL]
    answers = _current_first(_distinct([*_newest_first(first), *_newest_first(rest)]))
    if denial := _denial_of(answers[0], known):
        return RankedAnswer((denial,), replaced=(answers[0],))
    if corrections := _corrections_of(answers[0], known):
        return RankedAnswer(tuple(corrections[-1:]), corrects=True, replaced=(answers[0], *corrections[:-1]))
    replaced = tuple(quote for quote in answers if _is_older(quote, answers[0]))
    answers = [quote for quote in answers if quote not in replaced]
    return RankedAnswer(tuple(answers[: _MOST_ON_TOPIC if topic else _MOST]), is_correction(answers[0].text), replaced)


def find_replaced_statement(message: str, correction: str, quotes: Iterable[QuotedMessage]) -> QuotedMessage | None:
    """The newest of the earlier statements that `correction`, a sentence of `message`, most likely puts right: what the
    rules of memory say it replaces, or what was said just before where it names nothing else, or what is about the same
    and has what it says is no longer so, or lacks some of what it says instead."""
    told = [quote for quote in _newest_first(quotes) if is_statement(quote.text)]
    replaced = next((quote for quote in told if _supersedes(correction, quote.text, corrects=True)), None)
    if replaced is not None or not told:
        return replaced
    if other_number(message) is not None:
        return next((quote for quote in told if _SAYS_NUMBER.search(quote.text)), None)
    if corrects_last(message, told[0].text):
        return told[0]
    parsed = _parse_question(to_english(correction))
    old = [word for part in parse_entry(correction).statement.replaced for word in content_words(part.text)]
    scored = []
    for quote in told if parsed.words else ():
        words = distinct_words(to_english(quote.text))
        contradicts = _has(words, old) if old else not all(_has(words, [word]) for word in parsed.words)
        if contradicts and (score := _score(correction, quote)) >= _NEAREST:
            scored.append((score, quote))
    best = max((score for score, _ in scored), default=0.0)
    return next((quote for score, quote in scored if score >= best - _ABOUT_EQUAL), None)


@lru_cache(maxsize=64)
def _parse_question(question: str) -> _Question:
    phrases, words = read_phrases(), content_words(question)
    category = phrases.patterns["category"].match(question)
    minor = phrases.attributes | {fold_text(category[1])} if category else phrases.attributes
    return _Question(
        words=words,
        weights=[_ATTRIBUTE_WEIGHT if word in minor else 1.0 for word in words],
        kind=next((kind for kind in _KINDS if phrases.patterns[f"asks_{kind}"].search(question)), ""),
        names_self=bool(phrases.patterns["self"].search(question) or phrases.patterns["mine"].search(question)),
        mine=_mine(question),
        kin=[word for word in words if _is_kin(word)],
        names=parse_statement(question).names,
    )


def _score(question: str, quote: QuotedMessage) -> float:
    """The better of how well the words fit as they are, and in English: of mistyped ones not all are put into it."""
    sentences = [sentence.text for sentence in split_sentences(quote.text)]
    readings = {
        (question, quote.text, tuple(sentences)),
        (to_english(question), to_english(quote.text), tuple(map(to_english, sentences))),
    }
    score = max(_score_sentences(_parse_question(asked), text, told) for asked, text, told in readings)
    if score >= _NEAREST and not is_statement(quote.text):
        score *= _ASKS  # its English need not look like a question
    if not asks_which(question) or not denies(quote.text) or denies(question):
        return score
    asks_kind = any(_parse_question(asked).kind for asked, _, _ in readings)
    return min(score, _ANSWERS_TOPIC - 0.01) if asks_kind else score - _DENIED


def _denial_of(answer: QuotedMessage, known: Sequence[QuotedMessage]) -> QuotedMessage | None:
    """The newest that was said after an answer and says, in the words of it, that it is not so."""
    words = content_words(to_english(answer.text))
    later = (quote for quote in _newest_first(known) if quote.message_id > answer.message_id)
    return next((q for q in later if denies(q.text) and _covers(q, words)), None) if not denies(answer.text) else None


def _covers(quote: QuotedMessage, words: Sequence[str]) -> bool:
    own = content_words(to_english(quote.text))
    return bool(words) and is_statement(quote.text) and all(_has(own, [word]) for word in words)


def _score_sentences(question: _Question, text: str, sentences: Sequence[str]) -> float:
    whole = distinct_words(text)
    if not any(_credit(word, whole, whole) or _slips(question, word, whole) for word in question.words):
        return 0.0
    clause_ends = read_phrases().patterns["clause"]
    clauses = [clause for sentence in sentences for clause in clause_ends.split(sentence)]
    return max((_score_clause(question, clause, whole) for clause in clauses), default=0.0)


def _score_clause(question: _Question, clause: str, whole: Sequence[str]) -> float:
    words = distinct_words(clause)
    covered = sum(
        w * (_credit(word, words, whole) or _slips(question, word, words))
        for word, w in zip(question.words, question.weights, strict=True)
    )
    score = covered / sum(question.weights) + _same_kind(question.kind, clause)
    score += _same_person(question, clause, words, whole)
    if score < _NEAREST:
        return score
    return score if isinstance(as_statement(parse_clause(clause)), Note | Correction) else score * _ASKS


def _credit(word: str, words: Sequence[str], whole: Sequence[str]) -> float:
    """How far a word of the question is covered: said so, said otherwise, or said elsewhere in the same message."""
    if _has(words, [word]):
        return 1.0
    related = _related(word)
    if _has(words, related):
        return 0.8
    if _has(whole, [word]):
        return 0.6
    return 0.5 if _has(whole, related) else 0.0


def _slips(question: _Question, word: str, words: Sequence[str]) -> float:
    """How far a mistyped word is covered. Names that are alike are of different people."""
    if stem_word(word) in question.names or word.isdigit():
        return 0.0
    return 0.8 if any(is_same(word, other) for other in words) else 0.0


def _same_kind(kind: str, clause: str) -> float:
    if not kind:
        return 0.0
    return 0.05 if read_phrases().patterns[f"has_{kind}"].search(clause) else -0.35


def _same_person(question: _Question, clause: str, words: Sequence[str], whole: Sequence[str]) -> float:
    """Whether question and statement are about the same person or thing: "where do I live" is not answered by where a
    brother lives."""
    score = 0.1 if question.names_self and read_phrases().patterns["self"].search(clause) else 0.0
    score += 0.1 if question.mine & _mine(clause) else 0.0
    if question.kin:
        score -= 0.0 if any(_has(whole, [kin, *_related(kin)]) for kin in question.kin) else 0.35
    elif question.names_self and any(map(_is_kin, content_words(clause)[:2])):
        score -= 0.35
    stems = frozenset(map(stem_word, whole))
    return score - 0.2 * len(question.names - stems)


def _mine(text: str) -> frozenset[str]:
    return frozenset(map(fold_text, read_phrases().patterns["mine"].findall(text)))


def _is_kin(word: str) -> bool:
    return "kin" in classify_word(word)


@lru_cache(maxsize=4096)
def _related(word: str) -> frozenset[str]:
    """Other words that a statement may use where a question says `word`."""
    families = (family for family in read_phrases().families if _has(family, [word]))
    return frozenset[str]().union(*families) - {word}


def has_words(text: str, wanted: Iterable[str]) -> bool:
    """Whether a text has all these words, in whatever form."""
    own = distinct_words(text)
    return all(_has(own, [word, *_related(word)]) for word in wanted)


def _has(words: Iterable[str], wanted: Iterable[str]) -> bool:
    return any(_is_same_word(word, other) for other in wanted for word in words)


@lru_cache(maxsize=16384)
def _is_same_word(word: str, other: str) -> bool:
    if word == other or any(map(str.isdigit, word + other)):
        return word == other
    return is_same_stem(stem_word(base_form(word)), stem_word(base_form(other)))


def _newest_first(quotes: Iterable[QuotedMessage]) -> list[QuotedMessage]:
    return sorted(quotes, key=lambda quote: quote.message_id, reverse=True)


def _distinct(quotes: Iterable[QuotedMessage]) -> list[QuotedMessage]:
    """Without those that say, word for word, what one before them says."""
    by_words: dict[str, QuotedMessage] = {}
    for quote in quotes:
        by_words.setdefault(" ".join(re.findall(r"\w+", quote.text.lower())), quote)
    return list(by_words.values())


def _current_first(answers: list[QuotedMessage]) -> list[QuotedMessage]:
    """A newer one that answers as well and replaces the first comes before it."""
    first = answers[0]
    newer = [quote for quote in answers if quote.message_id > first.message_id and _replaces(quote, first)]
    current = next(iter(_newest_first(newer)), first)
    return [current, *(quote for quote in answers if quote is not current)]


def _corrections_of(answer: QuotedMessage, known: Sequence[QuotedMessage]) -> list[QuotedMessage]:
    """What was said right after an answer to put it right, one after the other, without saying again what it is about:
    "no wait, it's the 13th", "non, c'est le 14"."""
    later = sorted((quote for quote in known if quote.message_id > answer.message_id), key=lambda q: q.message_id)
    told = (quote for quote in later if is_statement(quote.text))
    return list(takewhile(lambda quote: corrects_last(quote.text, answer.text), told))


def corrects_last(message: str, earlier: str) -> bool:
    """Whether a message puts right what was said just before it, which it names by a pronoun or not at all."""
    if correct_part(earlier, message):
        return True
    match = read_phrases().patterns["corrects_last"].match(fold_text(message))
    if match is None:
        return False
    rest, own = message[match.end() :], words_of(to_english(earlier))
    points_back = read_phrases().patterns["pronoun"].match(fold_text(rest))
    named = subject_words(to_english(rest))
    return bool(points_back) or all(any(is_same(word, other) for other in own) for word in named)


def points_to(message: str, quotes: Iterable[QuotedMessage]) -> QuotedMessage | None:
    """The newest earlier statement that a correction names ("no, I meant the dentist") without saying what is to hold
    of it instead."""
    match = read_phrases().patterns["means"].match(message.strip(" .!"))
    if match is None or find_times(match["thing"]).pieces or any(map(str.isdigit, message)):
        return None
    words = content_words(match["thing"])
    told = (quote for quote in _newest_first(quotes) if quote.text != message and is_statement(quote.text))
    named = (quote for quote in told if not read_phrases().patterns["means"].match(quote.text))
    return next((quote for quote in named if words and all(_slips_in(word, quote.text) for word in words)), None)


def _slips_in(word: str, text: str) -> bool:
    return any(is_same(word, other) for other in distinct_words(text))


def _is_older(quote: QuotedMessage, newest: QuotedMessage) -> bool:
    """Whether it was said before and is no longer so."""
    return quote.message_id < newest.message_id and _replaces(newest, quote)


def _replaces(newer: QuotedMessage, older: QuotedMessage) -> bool:
    return is_correction(newer.text) or _supersedes(newer.text, older.text)


def _supersedes(newer: str, older: str, *, corrects: bool = False) -> bool:
    return compare_statements(parse_entry(newer, corrects=corrects), parse_entry(older)) == "supersedes"


def _holds(quote: QuotedMessage, known: Sequence[QuotedMessage]) -> bool:
    """Whether nothing known that was said later took its place."""
    newer = (other for other in known if other.message_id > quote.message_id)
    return not _corrections_of(quote, known) and not any(_supersedes(other.text, quote.text) for other in newer)
