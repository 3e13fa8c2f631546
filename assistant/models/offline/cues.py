"""The words by which offline mode reads orders, in English, German, French and Spanish: what `cues.toml` holds.

A cue is a pattern over a folded sentence (`fold`): small letters, no accents. Alone it decides nothing: `intents`
weighs all of them together, and the plans ask for single ones.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from pathlib import Path

from assistant.core.dataclass import dataclass
from assistant.core.text import fold_text, lazy_regex
from sleep.rules.pattern_files import compile_patterns, join_fragments

_CLAUSES = lazy_regex(
    r"\s*[,;.!:]+\s+|\s+(?:and|und|et|y|but|aber|mais|pero|because|cause|cos|since|weil|denn|da|parce que?"
    r"|puisque|car|comme"
    r"|porque|que ya|ya que|so|also|donc|asi que|dass)\s+",
    re.IGNORECASE,
)
# "Thé", "té" and "maïs" are things; without their accents they are small words.
TEA = lazy_regex(r"\b(?:th?é|maïs)\b", re.IGNORECASE)
CUES_FILE = Path(__file__).with_name("cues.toml")


@dataclass(frozen=True, slots=True)
class Cues:
    """What `cues.toml` holds."""

    patterns: Mapping[str, re.Pattern[str]]
    subject: Mapping[str, re.Pattern[str]]
    order_words: frozenset[str]
    articles: frozenset[str]
    ordinary_lists: frozenset[str]
    groceries: Mapping[str, frozenset[str]]  # by language


@cache
def read_cues() -> Cues:
    """Return cues.toml, whose words and patterns are read as folded."""
    data = tomllib.loads(CUES_FILE.read_text(encoding="utf-8"))
    # What one fragment is part of another.
    fragments: dict[str, str] = data["fragments"]
    subject = {
        name: lazy_regex(join_fragments("cues", name, text, fragments), re.IGNORECASE)
        for name, text in data["subject"].items()
    }
    words = {name: frozenset(re.findall(r"\w+", fold_text(text))) for name, text in data["words"].items()}
    ordinary = frozenset(data["words"]["ordinary_lists"].split())
    groceries = {
        language: frozenset(re.findall(r"\w+", fold_text(text))) for language, text in data["groceries"].items()
    }
    # "Pospónlo", "apúntamelo": an order with its pronouns is one word in Spanish.
    joined = {f"{verb}{pronoun}" for verb in words["orders_es"] for pronoun in words["pronouns_es"]}
    order = words["order"] | joined
    return Cues(compile_patterns("cues", data), subject, order, words["articles"], ordinary, groceries)


@lru_cache(maxsize=2048)
def says(name: str, text: str) -> bool:
    """Whether the folded `text` has the pattern `name` of `cues.toml`."""
    return read_cues().patterns[name].search(text) is not None


def says_any(names: Iterable[str], text: str) -> bool:
    """Return whether a folded text has one of these cues."""
    return any(says(name, text) for name in names)


def fold(text: str) -> str:
    """Return the text in small letters, without accents, with straight apostrophes and single spaces."""
    return fold_text(" ".join(text.split())).replace("’", "'")


def spell_things(text: str) -> str:
    """The text with words for things that are small words without their accents written otherwise: "thé", "maïs"."""
    return TEA.sub(lambda match: "maiz" if match[0][0] in "mM" else "tee", text)


def mark_things(text: str) -> str:
    """The folded text, of the same length, in which such a thing is no small word: tea is no article."""
    return fold(TEA.sub(lambda match: f"{match[0][:-1]}~", text))


def clauses(text: str) -> list[str]:
    """The parts of a sentence between marks and joining words."""
    return [part for part in _CLAUSES.split(text) if part.strip()]
