"""Words found however they stand, and cut out of what stands around them."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.core.erasure_phrases import PREVIEW_LENGTHS, PhraseMatcher, identifying_phrases, is_searchable_phrase
from assistant.core.memories import JournalEntry
from assistant.store.erasure.own_words import find_said, remove_said
from sleep.cycle.curate import propose_memory_md
from sleep.cycle.notes import build_day_notes

NOW = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
PHRASE = 'copper heron "zan\\quux" 47'


@pytest.mark.parametrize(
    "text",
    [
        PHRASE,
        PHRASE.upper(),
        PHRASE.replace(" ", "\n"),
        PHRASE.replace(" ", " \t\u00a0 "),
        "> " + PHRASE.replace(" ", "\n> "),
        json.dumps(PHRASE),
        json.dumps(json.dumps(PHRASE)),
        json.dumps(PHRASE.replace(" ", "\n")),
    ],
)
def test_a_phrase_is_found_in_any_spacing_case_and_escape(text: str) -> None:
    assert PhraseMatcher([PHRASE]).matches(f"so {text} then")
    assert len(PhraseMatcher([PHRASE]).match_ends(f"so {text} then".encode())) == 1


@pytest.mark.parametrize("text", ["copper heron", "copperheron zan", 'copper heron "zan\\quux" 4', "heron copper"])
def test_other_words_are_not_found(text: str) -> None:
    assert not PhraseMatcher([PHRASE]).matches(text)
    assert not PhraseMatcher([]).matches(text)


@pytest.mark.parametrize(
    ("phrase", "text"),
    [
        ("青い鷺の合言葉", "これは青い鷺の\n合言葉です"),
        ("青い鷺の合言葉", json.dumps("青い鷺の合言葉")),
        ("Café Éclair", "CAFE\u0301 e\u0301clair"),
        ("CAFE\u0301", "café"),
        ("Café", json.dumps("CAFÉ")),
        ("Zoë in Zürich", "Zoe\u0308 in Zürich"),
        ("Q\u0301\u0316oe", "q\u0301\u0316oe"),
        ("🦩 flamingo", json.dumps("🦩  Flamingo")),
    ],
)
def test_other_scripts_forms_and_escapes_are_found(phrase: str, text: str) -> None:
    assert PhraseMatcher([phrase]).matches(text)
    assert PhraseMatcher([phrase]).match_ends(text.encode())


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("First. The word is tiger blue, he said. Last.", "First. Last."),
        ("The word is tiger blue.", ""),
        ("- one\n- word: tiger blue\n- two\n", "- one\n- two\n"),
        ("- The word is tiger blue. (2026-11-23)\n- two (2026-11-22)\n", "- two (2026-11-22)\n"),
        ("# Gate\n\n1. tiger\n   blue\n2. open\n", "# Gate\n\n2. open\n"),
        ("これは秘密です。tiger blueだ。次の文。", "これは秘密です。次の文。"),
        ("a\ntiger blue", "a"),
        ("Version 3.14 is tiger blue! Yes.", "Yes."),
        ("**Word**: tiger blue\nrest", "rest"),
        ("nothing here", "nothing here"),
    ],
)
def test_the_sentence_or_line_with_the_words_goes(text: str, left: str) -> None:
    assert PhraseMatcher(["tiger blue"]).remove_from_text(text).strip(" ") == left


def test_what_is_shown_of_a_text_begins_and_ends_with_whole_words() -> None:
    text = "- #5 2026-11-30 user: I am allergic. The wifi password is Hunter2. Our boat is called Havgasse, and moored."
    assert PhraseMatcher(["wifi password"]).excerpt(text) == (
        "user: I am allergic. The wifi password is Hunter2. Our boat is"
    )
    assert PhraseMatcher(["boat"]).excerpt("My boat.") == "My boat."


def test_texts_in_json_lose_them_and_keep_their_form() -> None:
    value = {
        "a": ["tiger blue", "x"],
        "b": "It is. tiger blue",
        "c": [7, "tiger blue"],
        "d": None,
        "arguments": {"tiger blue": {"tiger blue": 1, "e": 2}, "f": [4711]},
    }
    left = {
        "a": ["x"],
        "b": "It is.",
        "c": [7, "[gone]"],
        "d": None,
        "arguments": {"tiger blue": {"e": 2}, "f": [4711]},
    }
    assert remove_said(value, PhraseMatcher(["tiger blue"]), "[gone]") == left
    assert remove_said(value, PhraseMatcher(["4711"]), "[gone]")["arguments"]["f"] == ["[gone]"]


@pytest.mark.parametrize("word", ["read_file", "call-7", "user", "text/plain", "name", "arguments", "path", "true"])
def test_what_the_program_puts_into_json_stays(word: str) -> None:
    call = {"id": "call-7", "name": "read_file", "arguments": {"path": "notes.txt", "whole": True}}
    media = {"kind": "file", "mime": "text/plain", "name": "notes.txt"}
    value = {"role": "user", "tool_calls": [call], "media": [media], "name": "read_file"}
    assert remove_said(value, PhraseMatcher([word]), "[gone]") == value
    assert list(find_said(value)) == ["notes.txt", "notes.txt"]


def test_a_message_is_known_by_its_telling_sentences() -> None:
    said = "Good. My aunt lives in Ghent now! ok\n\n私の叔母はゲントに住んでいる。はい。"
    assert identifying_phrases(said) == ["My aunt lives in Ghent now", "私の叔母はゲントに住んでいる"]
    assert identifying_phrases("Yes, please.") == []
    assert sum(map(len, identifying_phrases("A sentence that is said. " * 9_000 + "word " * 9_000))) < 21_000


def test_short_words_are_not_looked_for() -> None:
    assert [is_searchable_phrase(text) for text in ("a b", "...", "4711", "鷺の", "word")] == [
        False,
        False,
        True,
        True,
        True,
    ]


@given(st.text(alphabet='ab \n\t"\\.é鷺の!-', max_size=40), st.text(alphabet='ab \n"\\.é鷺の!', max_size=40))
def test_nothing_that_was_cut_is_found_again(before: str, after: str) -> None:
    wording = PhraseMatcher(['ba "é" 鷺の'])
    text = f'{before}ba "é" 鷺の{after}'
    assert not wording.matches(wording.remove_from_text(text))
    assert not wording.match_ends(json.dumps(wording.remove_from_text(text)).encode())
    assert len(wording.blank_bytes(text.encode())) == len(text.encode())


@pytest.mark.parametrize("sentence", ["On day {} the heron stood by the water. ", "and heron {} stood by the water "])
def test_what_stands_elsewhere_of_a_long_text_is_known_again(sentence: str) -> None:
    said = "".join(sentence.format(number) for number in range(40))
    entry = JournalEntry("k", "owner", "main", 1, said, NOW, "tool", 0.9, ("fact",))
    [note] = build_day_notes([entry], UTC)
    page = propose_memory_md([entry], "", (), UTC, len, 10_000)
    wording = PhraseMatcher(identifying_phrases(said))
    for shown in (*note.lines, page, *(f"{said[: most - 1]}…" for most in PREVIEW_LENGTHS)):
        assert "heron" in shown and "heron" not in wording.remove_from_text(shown)
    assert any(f"{said[: most - 1]}…" in note.lines[0] for most in PREVIEW_LENGTHS)
