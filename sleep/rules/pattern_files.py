"""The patterns, words and weights of the rules, read from the TOML files in `sleep/rules/data`.

What always holds: a file is read when something of it is first used, and a pattern is compiled when it is first used,
so a start reads nothing. What a file says wrongly (a doubled name, a flag or fragment that does not exist) is a
`ValueError` that names the file and the entry.

Of a pattern of several lines, the line breaks and the spaces that begin each line are dropped. `{name}` is replaced by
the fragment of that name; braces around anything else are the regular expression's own.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

from assistant.core.dataclass import dataclass
from assistant.core.text import lazy_regex

DATA_FILES = Path(__file__).with_name("data")
_FLAGS = {"ignorecase": re.IGNORECASE, "multiline": re.MULTILINE, "dotall": re.DOTALL}
_FRAGMENT = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True, slots=True)
class Sign:
    """One form that speaks for a clause to last, or against it.

    - `name`: as the classifier and the other signs refer to it.
    - `pattern`: searched in the clause in lower case.
    - `is_cased`: searched in the clause as it was written instead.
    - `cancelled_by`: signs beside which this one tells nothing.
    """

    name: str
    pattern: re.Pattern[str]
    is_cased: bool
    cancelled_by: frozenset[str]


@dataclass(frozen=True, slots=True)
class Classifier:
    """What `signs.toml` holds.

    - `threshold`: the weight from which a clause lasts.
    - `weights`: above 0 for lasting, below 0 for passing: of the signs by their names, of a class of words once a
      clause ("of <class>"), of having no link ("unlinked"), of family with a number ("so-many").
    - `word_classes`: those that weigh something.
    - `link_signs`, `link_classes`: what links a clause to somebody's life.
    - `word_weight`: for each word beyond `words_before`, for `most_words` at most.
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


class _NamedPattern:
    """The `re.Pattern` of that name, looked up at its first use."""

    def __init__(self, file: str, name: str) -> None:
        self._file, self._name = file, name

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(read_patterns(self._file)[self._name], attribute)
        setattr(self, attribute, value)
        return value


def load_pattern(file: str, name: str) -> re.Pattern[str]:
    """The pattern `name` of `<file>.toml`; KeyError at its first use where there is none."""
    return cast(re.Pattern[str], _NamedPattern(file, name))


@cache
def read_patterns(file: str) -> Mapping[str, re.Pattern[str]]:
    """Every pattern of `<file>.toml` by its name."""
    return compile_patterns(file, _read(file))


def compile_patterns(file: str, data: Mapping[str, Any]) -> Mapping[str, re.Pattern[str]]:
    """Every pattern of a file's `[patterns]` by its name. `[flags]` has the flags of a pattern, or of all others as
    `default`; without either, case is ignored."""
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
    """The rows of a table of `<file>.toml`, each with its `pattern`, in their order; case counts."""
    data = _read(file)
    fragments = _fragments(data)
    return tuple((row, lazy_regex(join_fragments(file, table, row["pattern"], fragments))) for row in data[table])


@cache
def read_alternatives(file: str, name: str) -> frozenset[str]:
    """The words of a list in `[alternatives]` of `<file>.toml`."""
    return frozenset(_alternatives(_read(file)["alternatives"], name))


@cache
def read_words(table: str, file: str = "words") -> dict[str, str]:
    """A table of `words.toml`: word lists with spaces between the words, or words for words."""
    return cast(dict[str, str], _read(file)[table])


@cache
def read_word_set(name: str) -> frozenset[str]:
    """A list of `words.toml`."""
    return frozenset(read_words("lists")[name].split())


@cache
def read_classifier() -> Classifier:
    data = _read("signs")
    fragments = _fragments(data)
    signs = tuple(
        Sign(
            row["name"],
            lazy_regex(
                join_fragments("signs", row["name"], row["pattern"], fragments), re.IGNORECASE * row.get("cased", False)
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
    """The fragments of a file, with those of its lists of words: alternatives as they are, and of verbs in `[habits]`
    the form for oneself and for others."""
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
    """A pattern on one line, with its fragments in their places."""

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
