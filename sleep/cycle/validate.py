"""Filters for the journal and memory: which messages are read, which of a model's entries are accepted, which entries
do not become memories (F29), and whether anything could have been learned. Pure.

- A model's entry must be new, said by a person, certain, and lasting. Every rejection has a reason; wording alone is
  none, unless it expresses a guess or nothing at all.
- What a person, tool or import wrote deliberately is junk only if it is empty.
- Questions, orders, greetings, fragments and the assistant's statements are not learned.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from assistant.core.memories import JournalEntry
from assistant.core.records import LogRecord, is_from_schedule
from assistant.core.sessions import OWNER_SCOPE
from assistant.core.text import STOP_WORDS, WORD, fold_text, lazy_regex
from sleep.rules.classifier import asks_for_action, find_signs, is_small_talk, score_clause, score_importance
from sleep.rules.clauses import is_too_short
from sleep.rules.pattern_files import load_pattern
from sleep.rules.sentences import Sentence, blank_foreign_text, blank_quotations, split_sentences
from sleep.rules.supersede import ParsedStatement

# Below these, the model itself rates it useless, or the words are only about the current day.
_MIN_MODEL_IMPORTANCE = 0.15
_OVER_SOON = 0.2
_FEW_WORDS = 7
_OF_THE_MOMENT = frozenset({"of mood", "of weather", "moment"})
_LEAST_EVIDENCE = -0.75
_AS_FIRST = lazy_regex(r"^(?:the )?user(?:'s)?\b|^(?:he|she|they)\b", re.IGNORECASE)
_FEWEST_TAKEN_OVER = 2
_SHORT = 3
_STEM = 5
_NEGATED = frozenset({"no", "not", "don", "never", "isn", "doesn", "aren", "wasn", "won", "cannot", "now"})
_OF_NO_WEIGHT = (STOP_WORDS - _NEGATED) | {"user", "person", "told", "said", "says", "mentioned"}
_GUESS = load_pattern("journal", "guess")
_NAME = lazy_regex(r"(?<=[a-z,;:] )[A-ZÀ-Þ][a-zà-ÿ]{2,}|(?<![\d.,:-])\d{3,}(?![\d.,:-])")
_NO_NAMES = load_pattern("journal", "no_names")


class KnownTexts:
    """Known texts, for detecting duplicates."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts: list[list[str]] = []
        self._same: set[str] = set()
        self._by_word: dict[str, set[int]] = {}
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        self._same.add(normalise_text(text))
        words = _words(text)
        for word in words:
            self._by_word.setdefault(word, set()).add(len(self._texts))
        self._texts.append(words)

    def contains(self, text: str) -> bool:
        """Return whether a known text contains the same words in the same order."""
        if normalise_text(text) in self._same:
            return True
        words = _words(text)
        if len(words) < _FEWEST_TAKEN_OVER:
            return False
        holding = [self._by_word.get(word, set()) for word in words]
        return any(_in_order(words, self._texts[index]) for index in set.intersection(*holding))


def find_refusal_reason(
    content: str, kind: str, model_importance: float, sources: Sequence[LogRecord], shown: str, seen: KnownTexts
) -> str:
    """Return why an entry is rejected, or "". `shown` is everything that the model was shown."""
    if seen.contains(content):
        return "known already"
    if not any(record.role == "user" for record in sources):
        return "only the assistant said it"
    if model_importance < _MIN_MODEL_IMPORTANCE or score_importance(kind, content) <= _OVER_SOON:
        return "not important"
    if _is_over_soon(_AS_FIRST.sub("I", content)):
        return "true for a moment only"
    if _GUESS.search(content) and not _GUESS.search(" ".join(record.content for record in sources)):
        return "a guess"
    if _is_quoted(content, sources):
        return "quoted from somebody else"
    names = [name for name in _NAME.findall(content) if not _NO_NAMES.match(name)]
    folded = fold_text(shown)
    if any(fold_text(name) not in folded for name in names):
        return "it has a name that is in no message"
    return ""


def _is_over_soon(content: str) -> bool:
    """Return whether it is a short statement about a momentary state."""
    if len(content.split()) > _FEW_WORDS:
        return False
    return bool(_OF_THE_MOMENT.intersection(find_signs(content))) and score_clause(content) <= _LEAST_EVIDENCE


def normalise_text(text: str) -> str:
    """Return the text as texts are compared: in small letters, with single spaces."""
    return " ".join(text.casefold().split())


def _is_quoted(content: str, sources: Sequence[LogRecord]) -> bool:
    """Return whether it repeats quoted or pasted text rather than the person's own words."""
    stems = {word[:_STEM] for word in _words(content) if len(word) > _SHORT}
    whole: set[str] = set()
    own: set[str] = set()
    for record in sources:
        whole |= {word[:_STEM] for word in _words(record.content)}
        if record.role == "user":
            own |= {word[:_STEM] for word in _words(blank_quotations(blank_foreign_text(record.content)))}
    return len(stems & whole) >= _FEWEST_TAKEN_OVER and len(stems & own) * 3 < len(stems & whole)


def _words(text: str) -> list[str]:
    return [word for word in WORD.findall(fold_text(text)) if word not in _OF_NO_WEIGHT]


def _in_order(words: list[str], text: list[str]) -> bool:
    rest = iter(text)
    return all(word in rest for word in words)


MIN_MEMORY_IMPORTANCE = 0.25
_AUTOMATIC_SOURCES = frozenset({"extraction", "compaction", "reset"})


def find_junk_reason(entry: JournalEntry, reading: ParsedStatement) -> str:
    """Return why an entry does not become a memory, or ""."""
    if not any(char.isalnum() for char in entry.content):
        return "it has no words"
    if entry.source_type not in _AUTOMATIC_SOURCES:
        return ""
    if is_small_talk(entry.content):
        return "small talk"
    statement = reading.statement
    if not (statement.content_stems or statement.values or statement.replaced or reading.slots):
        return "it says nothing that can be looked up"
    return "of little importance" if entry.importance < MIN_MEMORY_IMPORTANCE else ""


_LONGEST = 4_000


def count_unlearned_statements(records: Sequence[LogRecord]) -> int:
    """Count the users' own sentences that state something."""
    spoken = [record.content[:_LONGEST] for record in records if record.role == "user" and is_readable(record)]
    return sum(_states(sentence) for text in spoken for sentence in split_sentences(blank_foreign_text(text)))


def _states(sentence: Sentence) -> bool:
    own = sentence.own_text
    return not (sentence.is_question or is_too_short(own) or asks_for_action(sentence) or is_small_talk(own))


def is_readable(record: LogRecord) -> bool:
    """Return whether a record is a person's or the assistant's own text. Guests in the owner's scope are excluded, and
    so are schedules, which repeat the same prompt."""
    if record.kind != "message" or record.role not in _SPOKEN or not record.content.strip() or is_from_schedule(record):
        return False
    return record.trust != "guest" or record.scope != OWNER_SCOPE


_SPOKEN = ("user", "assistant")
