"""Key facts of a summary made without a model: the user's statements, and names and identifiers. Pure.

A fact must be useful years later. Excluded are secrets, days and months; capitalised words that also occur
uncapitalised, after an article (German capitalises all nouns), in all caps, or only once and by the assistant; and
identifiers contained in longer ones.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache

from assistant.context.truncate import original_words
from assistant.core.messages import Message
from assistant.core.text import lazy_regex
from sleep.compaction.answer import escape_boundaries
from sleep.compaction.message_cache import FOUND_IN_MESSAGES
from sleep.compaction.validate import find_named_values
from sleep.compaction.values import SummaryInput
from sleep.rules.extract_statements import extract_statements
from sleep.rules.pattern_files import read_words
from sleep.rules.secrets import find_secrets, has_secret

_SPOKEN = ("user", "assistant")
_STATED = {"decision": "decisions", "preference": "preferences", "fact": "facts"}
_LOOKED_AT = 6_000
_MOST_FACTS = 12
_SHORTEST_NAME = 3
_SHOUTED = 0.6
_LOWER_WORD = lazy_regex(r"(?<![\w'’-])[^\W\d_A-ZÀ-ÞА-ЯΑ-Ω][\w'’-]+")
_ARTICLE = lazy_regex(
    r"(?i)\b(?:d(?:er|ie|as|en|em|es)|(?:k?ein|mein|dein|sein|ihr|unser|euer)(?:e[nmrs]?)?|im|am|zum|zur|vom|beim|viel"
    r"|mehr|etwas|the|an?|my|your|his|her|our|their|this|that)\s$"
)


def collect_key_facts(material: SummaryInput) -> dict[str, tuple[str, ...]]:
    """Return facts by kind: the most frequent, or the newest statements."""
    spoken = [(row.role, original_words(row)[:_LOOKED_AT]) for row in material.rows if row.role in _SPOKEN]
    stated: dict[str, dict[str, None]] = {kind: {} for kind in _STATED.values()}
    for role, words in spoken:
        for kind, content in _stated_in(words) if role == "user" else ():
            stated[kind].setdefault(content)
    facts = {kind: tuple(values)[-_MOST_FACTS:] for kind, values in stated.items()}
    names, identifiers = _ValueCounter(), _ValueCounter()
    for role, words in spoken:
        for kind, value in _values_in(words):
            (identifiers if kind == "identifiers" else names).add(value, role)
    uncapitalised = {word for _, words in spoken for word in _uncapitalised_in(words)}
    facts["entities"] = tuple(
        escape_boundaries(name)
        for name in names.most_common()
        if len(name) >= _SHORTEST_NAME and name.lower() not in uncapitalised
    )[:_MOST_FACTS]
    every = list(identifiers.most_common())
    longest = [value for value in every if not any(value in other for other in every if other != value)]
    facts["identifiers"] = tuple(map(escape_boundaries, longest[:_MOST_FACTS]))
    return {kind: values for kind, values in facts.items() if values}


def prepare_key_facts(row: Message) -> None:
    """Find out what `collect_key_facts` asks about a message."""
    if row.role in _SPOKEN:
        words = original_words(row)[:_LOOKED_AT]
        _uncapitalised_in(words)
        _values_in(words)
        if row.role == "user":
            _stated_in(words)


@FOUND_IN_MESSAGES.cached
def _stated_in(words: str) -> tuple[tuple[str, str], ...]:
    """Return the statements with their kind, as key facts name it."""
    return tuple(
        (_STATED[statement.kind], escape_boundaries(statement.content))
        for statement in extract_statements(words)
        if statement.kind in _STATED and not has_secret(statement.content)
    )


@FOUND_IN_MESSAGES.cached
def _uncapitalised_in(words: str) -> tuple[str, ...]:
    return tuple({sys.intern(word) for word in _LOWER_WORD.findall(words)})


@FOUND_IN_MESSAGES.cached
def _values_in(words: str) -> tuple[tuple[str, str], ...]:
    """Return names and identifiers with their kind, once for each time that they are said."""
    secrets = [words[secret.start : secret.end] for secret in find_secrets(words)]
    shouted = _is_shouted(words)
    values = []
    for kind, value in find_named_values(words):
        if any(value in secret or secret in value for secret in secrets):
            continue
        if kind == "identifiers":
            values.append((kind, value))
        elif kind == "names" and not shouted and not _follows_article(words, value):
            values.append((kind, _without_days(value)))
    return tuple(values)


class _ValueCounter:
    """Counts values; those said only by the assistant count from the second time."""

    def __init__(self) -> None:
        self._times: Counter[str] = Counter()
        self._by_person: set[str] = set()

    def add(self, value: str, role: str) -> None:
        self._times[value] += 1
        if role == "user":
            self._by_person.add(value)

    def most_common(self) -> Iterator[str]:
        for value, times in self._times.most_common():
            if times > 1 or value in self._by_person:
                yield value


def _is_shouted(words: str) -> bool:
    capitals = sum(map(str.isalpha, filter(str.isupper, words)))
    return capitals > _SHOUTED * sum(map(str.isalpha, words))


def _follows_article(words: str, value: str) -> bool:
    """Return whether it is a single word that follows an article wherever it is in the text."""
    if " " in value:
        return False
    places = [match.start() for match in re.finditer(rf"(?<!\w){re.escape(value)}(?!\w)", words)]
    return bool(places) and all(_ARTICLE.search(words, max(0, at - 10), at) for at in places)


def _without_days(name: str) -> str:
    return " ".join(word for word in name.split() if word.lower() not in _days_and_months())


@cache
def _days_and_months() -> frozenset[str]:
    return frozenset(
        word for kind in ("days", "months") for words in read_words(kind).values() for word in words.split()
    )
