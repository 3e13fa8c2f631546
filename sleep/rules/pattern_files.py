"""Loads the patterns, words and weights of the rules from the TOML files in `sleep/rules/data`.

Files are read, and patterns compiled, at first use, so that start-up reads nothing. An error in a file (a duplicate
name, an unknown flag or fragment) is a `ValueError` that names the file and the entry.

In a pattern of several lines, line breaks and leading spaces are removed. `{name}` is replaced by the fragment of that
name; braces around anything else belong to the regular expression.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Any, cast

from assistant.core.dataclass import dataclass
from assistant.core.text import lazy_regex
from sleep.rules.word_index import indexed

DATA_FILES = Path(__file__).with_name("data")
_FLAGS = {"ignorecase": re.IGNORECASE, "multiline": re.MULTILINE, "dotall": re.DOTALL}
# A start asks each pattern a few times: too few for the time that the index of them takes.
_ASKED_OFTEN = 50
_INDEXED_METHODS = ("search", "match", "finditer", "sub")
# After one was taken up, none is for so many times as long, so that a busy loop gets most of the interpreter.
_RESTS = 4
_FRAGMENT = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True, slots=True)
class Sign:
    """A pattern that is a sign for or against durability.

    - `name`: used by the classifier and other signs.
    - `pattern`: searched in the lower-case clause.
    - `is_cased`: searched in the clause as written instead.
    - `cancelled_by`: signs that cancel this one.
    """

    name: str
    pattern: re.Pattern[str]
    is_cased: bool
    cancelled_by: frozenset[str]


@dataclass(frozen=True, slots=True)
class Classifier:
    """The content of `signs.toml`.

    - `threshold`: the score from which a clause is durable.
    - `weights`: above 0 for durable, below 0 for temporary: of signs by name, of a word class once per clause ("of
      <class>"), of having no link ("unlinked"), of family with a number ("so-many").
    - `word_classes`: classes with a weight.
    - `link_signs`, `link_classes`: what links a clause to someone's life.
    - `word_weight`: per word beyond `words_before`, up to `most_words`.
    """

    threshold: float
    signs: tuple[Sign, ...]
    weights: Mapping[str, float]
    word_classes: tuple[str, ...]
    link_signs: frozenset[str]
    link_classes: frozenset[str]
    word_weight: float
    words_before: int
    most_words: int


class _TakingUp:
    """Lets one thread at a time take up a pattern, with rests in between."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._lock = Lock()
        self._clock = clock
        self._next_at = 0.0

    def take_up(self, action: Callable[[], None]) -> bool:
        """Return whether `action` was called."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            if (begin := self._clock()) < self._next_at:
                return False
            action()
            end = self._clock()
            self._next_at = end + _RESTS * (end - begin)
            return True
        finally:
            self._lock.release()


_taking_up = _TakingUp()


class _CountedPattern:
    """A `re.Pattern`, loaded at first use. One that is asked often is looked up in the index of words first.

    To take one up in the index takes up to 30 ms of the interpreter, for which an event loop would stand still. What is
    asked there is searched for without the index until another thread has taken it up; and threads take up one at a
    time, with rests.
    """

    def __init__(self, read: Callable[[], re.Pattern[str]], *, indexed: bool = True) -> None:
        self._read = read
        self._asked = 0
        self._indexed_methods = _INDEXED_METHODS if indexed else ()

    def __getattr__(self, attribute: str) -> Any:
        pattern = self._read()
        value = getattr(pattern, attribute)
        if attribute in self._indexed_methods:
            self._asked += 1
            if self._asked < _ASKED_OFTEN:
                return value
            from assistant.core.pacing import is_in_event_loop  # a command that asks little needs no asyncio

            if is_in_event_loop() or not _taking_up.take_up(lambda: vars(self).update(indexed(pattern))):
                return value
            return vars(self)[attribute]
        setattr(self, attribute, value)
        return value


def load_pattern(file: str, name: str, *, indexed: bool = True) -> re.Pattern[str]:
    """Return the pattern `name` of `<file>.toml`; raises KeyError at first use if it does not exist. Without `indexed`
    it never looks at the words of a text first, which takes longer than to search a whole message once."""
    return cast(re.Pattern[str], _CountedPattern(lambda: read_patterns(file)[name], indexed=indexed))


def _counted_pattern(pattern: re.Pattern[str]) -> re.Pattern[str]:
    return cast(re.Pattern[str], _CountedPattern(lambda: pattern))


@cache
def read_patterns(file: str) -> Mapping[str, re.Pattern[str]]:
    """Return all patterns of `<file>.toml` by name."""
    return compile_patterns(file, _read(file))


def list_patterns() -> list[re.Pattern[str]]:
    """Return all patterns of the rules, of all files."""
    files = (path.stem for path in sorted(DATA_FILES.glob("*.toml")))
    signs = [sign.pattern for sign in read_classifier().signs]
    return [*(pattern for file in files for pattern in read_patterns(file).values()), *signs]


def compile_patterns(file: str, data: Mapping[str, Any]) -> Mapping[str, re.Pattern[str]]:
    """Return the patterns in a file's `[patterns]` by name. `[flags]` has the flags of single patterns, and `default`
    for the others; without either, case is ignored."""
    fragments, flags, patterns = _fragments(data), dict[str, list[str]](data.get("flags", {})), data.get("patterns", {})
    default: list[str] = flags.pop("default", ["ignorecase"])
    if unknown := flags.keys() - patterns.keys():
        raise ValueError(f"{file}.toml: flags for no pattern: {', '.join(sorted(unknown))}")
    return {
        name: lazy_regex(join_fragments(file, name, text, fragments), _flags(file, name, flags.get(name, default)))
        for name, text in patterns.items()
    }


@cache
def read_pattern_rows(file: str, table: str) -> tuple[tuple[Mapping[str, Any], re.Pattern[str]], ...]:
    """Return the rows of a table of `<file>.toml` in order, each with its `pattern`; case-sensitive."""
    data = _read(file)
    fragments = _fragments(data)
    return tuple((row, lazy_regex(join_fragments(file, table, row["pattern"], fragments))) for row in data[table])


@cache
def read_alternatives(file: str, name: str) -> frozenset[str]:
    """Return a word list in `[alternatives]` of `<file>.toml`."""
    return frozenset(_alternatives(_read(file)["alternatives"], name))


@cache
def read_words(table: str, file: str = "words") -> dict[str, str]:
    """Return a table of `words.toml`: space-separated word lists, or words mapped to words."""
    return cast(dict[str, str], _read(file)[table])


@cache
def read_word_set(name: str) -> frozenset[str]:
    """Return a word list of `words.toml`."""
    return frozenset(read_words("lists")[name].split())


@cache
def read_classifier() -> Classifier:
    """Return signs.toml. Raises `ValueError` if signs have the same name, or one that is referred to is missing."""
    data = _read("signs")
    fragments = _fragments(data)
    signs = tuple(
        Sign(
            row["name"],
            _counted_pattern(
                lazy_regex(
                    join_fragments("signs", row["name"], row["pattern"], fragments),
                    re.IGNORECASE * row.get("cased", False),
                )
            ),
            row.get("cased", False),
            frozenset(row.get("cancelled_by", ())),
        )
        for row in data["sign"]
    )
    names, links, length = {sign.name for sign in signs}, data["links"], data["length"]
    if len(names) < len(signs):
        raise ValueError("signs.toml: two signs have the same name")
    referred = frozenset(links["signs"]).union(*(sign.cancelled_by for sign in signs))
    if unknown := referred - names:
        raise ValueError(f"signs.toml: no such sign: {', '.join(sorted(unknown))}")
    classes = data["class_weights"]
    return Classifier(
        data["threshold"],
        signs,
        {
            **{row["name"]: row["weight"] for row in data["sign"]},
            **{f"of {name}": weight for name, weight in classes.items()},
            **{name: links[name] for name in ("unlinked", "so-many")},
        },
        tuple(classes),
        frozenset(links["signs"]),
        frozenset(links["classes"]),
        length["weight"],
        length["after"],
        length["most"],
    )


def _read(file: str) -> dict[str, Any]:
    return tomllib.loads((DATA_FILES / f"{file}.toml").read_text(encoding="utf-8"))


def _fragments(data: Mapping[str, Any]) -> dict[str, str]:
    """Return the fragments of a file, including those made of word lists: alternatives unchanged, and first- and
    third-person forms of the verbs in `[habits]`."""
    fragments = dict(data.get("fragments", {}))
    lists = data.get("alternatives", {})
    for name in lists:
        words = sorted(_alternatives(lists, name), key=lambda word: (-len(word), word))
        fragments[name] = "|".join(map(re.escape, words))
    for person, verbs in data.get("habits", {}).items():
        forms = {_third_person(verb) if person == "third_person" else verb for verb in verbs.split()} - {"has"}
        fragments[f"{person}_habits"] = "|".join(sorted(forms, key=lambda verb: (-len(verb), verb)))
    return fragments


def _alternatives(lists: Mapping[str, str], name: str) -> set[str]:
    words: set[str] = set()
    for word in lists[name].split():
        words |= _alternatives(lists, word[1:]) if word.startswith("@") else {word}
    return words


def _third_person(verb: str) -> str:
    if verb == "have":
        return "has"
    if verb.endswith(("s", "sh", "ch", "x", "z", "o")):
        return f"{verb}es"
    return f"{verb[:-1]}ies" if verb.endswith("y") and verb[-2] not in "aeiou" else f"{verb}s"


def join_fragments(file: str, name: str, text: str, fragments: Mapping[str, str]) -> str:
    """Return a pattern on one line, with its fragments inserted."""

    def fragment(match: re.Match[str]) -> str:
        if match[1] not in fragments:
            raise ValueError(f"{file}.toml, {name}: no fragment {match[1]}")
        return join_fragments(file, name, fragments[match[1]], fragments)

    joined = "".join(line.lstrip(" ") for line in text.split("\n")) if "\n" in text else text
    return _FRAGMENT.sub(fragment, joined)


def _flags(file: str, name: str, flags: list[str]) -> int:
    if unknown := set(flags) - _FLAGS.keys():
        raise ValueError(f"{file}.toml, {name}: no such flag: {', '.join(sorted(unknown))}")
    return sum(_FLAGS[flag] for flag in flags)
