"""The index of words passes over no text in which a pattern of the rules has a match."""

from __future__ import annotations

import asyncio
import re

import pytest

from sleep.rules import pattern_files, word_index
from sleep.rules.pattern_files import DATA_FILES, list_patterns, load_pattern, read_classifier, read_patterns
from sleep.rules.required_words import Needs, find_needs, required_pieces, split_by_commonness
from sleep.rules.sentence_cache import forget_sentences
from sleep.rules.word_index import indexed, indexed_search
from tests.support.month_texts import month_texts

PATTERN_FILES = sorted(path.stem for path in DATA_FILES.glob("*.toml") if path.stem != "words")
ODD_TEXTS = (
    "",
    "?",
    "ſcrap that, İ waſ wrong; tHE KİTCHEN ıs now in 2͒0",
    "Ich ziehe nicht mehr um, sondern bleibe am 4. Mai – Straße 12b, ﬁnally.",
    "no,it's 5 not 6!   wait…\tsorry\nactually it's Dr. Ölander's",
    "我最喜欢的颜色不再是蓝色，改成绿色了。もう行きません",
    "always/never_call me:(from now on) don’t ask me'again'",
    "a" * 60 + " no longer " + "https://example.org/" + "b" * 60,
)


def said() -> list[str]:
    """What people say in the written months, some of it next to each other, as in long messages."""
    texts = [*ODD_TEXTS, *month_texts()][:250]
    return [*texts, *("\n".join(texts[at : at + 6]) for at in range(0, 240, 6))]


@pytest.mark.parametrize("file", PATTERN_FILES)
def test_patterns_find_the_same_with_the_index(file: str) -> None:
    patterns = list(read_patterns(file).values())
    if file == "signs":
        patterns += [sign.pattern for sign in read_classifier().signs]
    texts = [*said(), *(text.lower() for text in said())]
    for pattern in patterns:
        plain, quick = re.compile(pattern.pattern, pattern.flags), indexed(pattern)
        for text in texts:
            assert _span(quick["search"](text)) == _span(plain.search(text)), (pattern.pattern, text)
            assert _span(quick["match"](text)) == _span(plain.match(text)), (pattern.pattern, text)
    forget_sentences()


def test_all_matches_and_replacements_are_the_same_with_the_index() -> None:
    for pattern in (*read_patterns("sentences").values(), *read_patterns("clauses").values()):
        plain, quick = re.compile(pattern.pattern, pattern.flags), indexed(pattern)
        for text in said()[-60:]:
            assert list(map(_span, quick["finditer"](text))) == list(map(_span, plain.finditer(text)))
            assert quick["sub"]("-", text) == plain.sub("-", text)


def _span(match: re.Match[str] | None) -> tuple[int, int] | None:
    return None if match is None else match.span()


def test_a_search_that_ends_within_a_word_is_not_passed_over() -> None:
    pattern = re.compile(r"\bnow\b")
    assert _span(indexed_search(pattern)("I live in nowhere", 0, 13)) == (10, 13)
    assert indexed_search(pattern)("I live in nowhere") is None


def test_characters_that_are_the_same_without_case_are_the_same_for_the_index() -> None:
    for code in range(0x250):
        for variant in {chr(code).lower()[:1], chr(code).upper()[:1], *_lookalikes(chr(code))}:
            form = re.compile(re.escape(variant), re.IGNORECASE)
            assert _span(indexed_search(form)(chr(code))) == _span(form.search(chr(code))), (variant, chr(code))


def _lookalikes(letter: str) -> str:
    return {"s": "ſ", "k": "\u212a", "i": "ıİ", "å": "\u212b", "µ": "μΜ", "ß": "ẞ"}.get(letter.lower(), "")


@pytest.mark.parametrize(
    ("pattern", "needed"),
    [
        (r"\b(?:no longer|any ?more)\b", [{" any ", " anymore ", " longer "}, {"any ", "anymore", " longer"}]),
        (r"\bcall(?:ed|s)? me\b", [{" called ", " calls ", " call "}]),
        (r"(?:my|our)\s+dogs?", [{" dog", " dogs"}, {"my", "our"}]),
        (r"\d{1,2}:\d\d", [{" 00"}, {"0"}]),
        (r"no[,.!]+\sit", [{"no "}, {" , ", " . ", " ! "}]),
        (r"(?:really )?", []),
        (r"[a-z]+\W", []),
        (r"(a)\1", [{"a"}]),
    ],
)
def test_what_a_pattern_needs_is_read_from_it(pattern: str, needed: list[set[str]]) -> None:
    found = required_pieces(pattern)
    assert [*map(sorted, found)] == [*map(sorted, needed)] if needed else not found


def test_a_long_pattern_is_split_into_what_is_rare_and_what_is_common() -> None:
    pattern = r"\b(?:cancell?ed|no|(?:not|never) (?:a|the)|[]|)]x|postponed)\b|^\(rescheduled"
    rare, common = split_by_commonness(pattern, 0)
    assert rare == r"\b(?:cancell?ed)\b|\b(?:postponed)\b|^\(rescheduled"
    assert common == r"\b(?:no)\b|\b(?:(?:not|never) (?:a|the))\b|\b(?:[]|)]x)\b"
    for text in ("it is cancelled", "no", "never the", "x )x x", "(rescheduled", "nothing"):
        both = re.search(rare, text) or re.search(common, text)
        assert bool(both) == bool(re.search(pattern, text))


async def test_a_pattern_is_taken_up_in_the_index_by_no_thread_in_which_an_event_loop_would_wait_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken_up: list[str] = []

    def noted(pattern: re.Pattern[str]) -> dict[str, object]:
        taken_up.append(pattern.pattern)
        return indexed(pattern)

    monkeypatch.setattr(pattern_files, "indexed", noted)
    monkeypatch.setattr(pattern_files, "_taking_up", pattern_files._TakingUp(lambda: 0.0))
    pattern, signs = load_pattern("requests", "order"), read_classifier.__wrapped__().signs

    def ask() -> None:
        for _ in range(60):
            pattern.search("Water the plants.")
            for sign in signs:
                sign.pattern.search("Water the plants.")

    ask()
    assert taken_up == []
    await asyncio.to_thread(ask)
    assert len(taken_up) == 1 + len(signs) == len(set(taken_up))
    ask()
    assert len(taken_up) == 1 + len(signs)


def test_patterns_are_taken_up_one_at_a_time_with_rests_in_which_others_have_the_interpreter() -> None:
    now, taken_up = [10.0], list[str]()
    turns = pattern_files._TakingUp(lambda: now[0])

    def take_up(name: str, seconds: float) -> bool:
        def action() -> None:
            assert not turns.take_up(lambda: taken_up.append("beside it"))
            taken_up.append(name)
            now[0] += seconds

        return turns.take_up(action)

    assert take_up("first", 0.03)
    now[0] += 0.1
    assert not take_up("too early", 0.03)
    now[0] += 0.03
    assert take_up("second", 0.01)
    assert taken_up == ["first", "second"]


def test_what_a_pattern_of_the_rules_needs_is_stored_and_of_any_other_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found: list[str] = []

    def noted(pattern: re.Pattern[str]) -> Needs:
        found.append(pattern.pattern)
        return find_needs(pattern)

    monkeypatch.setattr(word_index, "find_needs", noted)
    for pattern in list_patterns()[::9]:
        assert word_index.needs_of(pattern) == find_needs(pattern)
    assert found == []
    other = re.compile("what nobody (?:wrote|said)")
    assert word_index.needs_of(other) == find_needs(other) and found == [other.pattern]
