"""Many people's sentences: what lasts is learned, and what passes is not. None of them is from a conversation."""

from __future__ import annotations

from sleep.rules.extract_statements import extract_statements
from tests.support.sentence_tables import every_case, read_sentences

MOST_MISSED = 0.2
MOST_TAKEN = 0.06


@every_case(read_sentences("lasting"))
def test_what_lasts_is_learned(line: str) -> None:
    assert extract_statements(line)


@every_case(read_sentences("passing"))
def test_f29_what_passes_is_not_learned(line: str) -> None:
    assert extract_statements(line) == []


def test_most_of_what_lasts_is_learned_where_no_pattern_was_written_for_it() -> None:
    lines = read_sentences("lasting_unseen")
    missed = [line for line in lines if not extract_statements(line)]
    assert len(lines) > 100 and len(missed) <= MOST_MISSED * len(lines), missed


def test_f29_hardly_anything_of_what_passes_is_learned_where_no_pattern_was_written_for_it() -> None:
    lines = read_sentences("passing_unseen")
    taken = [line for line in lines if extract_statements(line)]
    assert len(lines) > 100 and len(taken) <= MOST_TAKEN * len(lines), taken
