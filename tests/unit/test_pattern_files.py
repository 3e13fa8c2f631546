"""Patterns, words and weights of the rules in their files."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import BuiltinMethodType

import pytest

from sleep.rules import pattern_files
from sleep.rules.pattern_files import DATA_FILES, load_pattern, read_classifier, read_patterns, read_words

PATTERN_FILES = sorted(path.stem for path in DATA_FILES.glob("*.toml") if path.stem != "words")


@pytest.fixture
def own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    caches = (read_patterns, read_words, read_classifier)
    monkeypatch.setattr(pattern_files, "DATA_FILES", tmp_path)
    for cached in caches:
        cached.cache_clear()
    yield tmp_path
    for cached in caches:
        cached.cache_clear()


@pytest.mark.parametrize("file", PATTERN_FILES)
def test_every_pattern_of_the_files_compiles(file: str) -> None:
    patterns = read_patterns(file)
    assert patterns
    assert all(pattern.groups >= 0 for pattern in patterns.values())


def test_a_pattern_for_whole_messages_never_looks_at_their_words_first(own_files: Path) -> None:
    (own_files / "own.toml").write_text("[patterns]\nwhen = 'noon'\n")
    quick, plain = load_pattern("own", "when"), load_pattern("own", "when", indexed=False)
    for _ in range(200):
        assert quick.search("See you at noon") and plain.search("See you at noon")
    assert [isinstance(pattern.search, BuiltinMethodType) for pattern in (quick, plain)] == [False, True]


def test_every_sign_compiles_and_weighs_something_on_its_side() -> None:
    rules = read_classifier()
    assert all(sign.pattern.groups == 0 and rules.weights[sign.name] for sign in rules.signs)


def test_every_pattern_that_the_rules_name_is_in_its_file() -> None:
    named = [
        match
        for path in DATA_FILES.parents[1].glob("*/*.py")
        for match in re.findall(r'load_pattern\("(\w+)", "(\w+)"[,)]', path.read_text(encoding="utf-8"))
    ]
    assert len(named) > 50
    assert set(named) == {(file, name) for file in PATTERN_FILES for name in read_patterns(file)}


def test_a_pattern_is_joined_from_its_lines_and_its_fragments(own_files: Path) -> None:
    (own_files / "own.toml").write_text(
        "[fragments]\nday = '(?:monday|tuesday)'\n"
        "[patterns]\nwhen = '''\n    \\bon (?:the )?{day}s?\n    |noon{0,2}\n'''\n"
    )
    assert read_patterns("own")["when"].pattern == r"\bon (?:the )?(?:monday|tuesday)s?|noon{0,2}"
    assert load_pattern("own", "when").search("See you ON MONDAY")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[patterns]\na = 'x{nothing}'\n", "own.toml, a: no fragment nothing"),
        ("[patterns]\na = 'x'\n[flags]\na = ['loud']\n", "own.toml, a: no such flag: loud"),
        ("[patterns]\na = 'x'\n[flags]\nb = []\n", "own.toml: flags for no pattern: b"),
    ],
)
def test_what_a_file_says_wrongly_is_named(own_files: Path, text: str, reason: str) -> None:
    (own_files / "own.toml").write_text(text)
    with pytest.raises(ValueError, match=re.escape(reason)):
        read_patterns("own")


def test_importing_the_rules_reads_no_file() -> None:
    program = (
        "import tomllib, sys\n"
        "def refuse(text): raise AssertionError('read at import')\n"
        "tomllib.loads = refuse\n"
        "import sleep.cycle.extract, sleep.rules.supersede, sleep.rules.relations, sleep.rules.classifier\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
