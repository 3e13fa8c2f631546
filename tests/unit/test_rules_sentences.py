"""How a message is cut into sentences before rules read it: words without a verb stay with the sentence that they
belong to, and what people type for short is read as what it stands for.
"""

from __future__ import annotations

from sleep.rules.clauses import join_fragments
from sleep.rules.extract_statements import extract_statements
from sleep.rules.sentence_cache import IN_A_TEXT, cached_by_sentence, forget_sentences
from sleep.rules.sentences import expand_shorthand, split_sentences
from tests.support.sentence_tables import every_case


def texts(said: str) -> list[str]:
    return [one.text for one in join_fragments(split_sentences(said))]


@every_case(
    [
        "The clinic has moved me to a Friday. The 29th, half past nine.",
        "My sister had the baby! A girl. Aino.",
        "The dentist! That's Mr Sandhu in Corve Street.",
        "emacs. been on it since uni",
    ]
)
def test_a_fragment_belongs_to_the_sentence_beside_it(said: str) -> None:
    assert texts(said) == [said]


@every_case(
    [
        "We moved in May. The flat has two rooms.",
        "Can you find a train? Tuesday, before noon.",
        "We came last. Goodness me.",
        "I live in Bath. What a day!",
        "She lives in Bonn. Thanks!",
    ]
)
def test_a_sentence_a_question_and_an_outcry_stand_by_themselves(said: str) -> None:
    assert len(texts(said)) == 2


def test_no_end_of_fragments_makes_a_text_without_end() -> None:
    said = "We moved. " + "Blue door, brass bell. " * 100
    assert all(len(text) <= 400 for text in texts(said))
    assert " ".join(texts(said)) == said.strip()


def test_what_is_learned_has_its_fragment_with_it() -> None:
    (found,) = extract_statements("The hospital has moved my appointment to a Friday. The 29th, half past nine.")
    assert found.content.endswith("The 29th, half past nine.")


@every_case(
    [
        ("im w/ u til 5", "i'm with you until 5"),
        ("dont n cant", "don't and can't"),
        ("its a cat", "it's a cat"),
        ("its tail", "its tail"),
        ("were moving in may", "we're moving in may"),
        ("they were moving", "they were moving"),
        ("R2 and n+1 and x.r", "R2 and n+1 and x.r"),
        ("bday's the 9th", "birthday's the 9th"),
        ("they’re in", "they're in"),
    ]
)
def test_what_is_typed_for_short_is_spelled_out(typed: str, read: str) -> None:
    assert expand_shorthand(typed) == read


@every_case(
    [
        "im a vet n i work nights",
        "my sis n her bf live in ghent",
        "bday's 9 nov if u ever need it",
        "dont ping me after 6 unless prod is on fire",
        "havent been to the dentist in 3 yrs",
    ]
)
def test_what_is_told_for_short_is_kept_as_it_was_typed(told: str) -> None:
    assert [found.content for found in extract_statements(told)] == [told]


@every_case(["whats the diff between ssd n hdd", "can u fix this pls", "thx u r the best"])
def test_f29_what_is_asked_for_short_is_not_learned(asked: str) -> None:
    assert extract_statements(asked) == []


def test_what_was_found_in_a_sentence_is_kept_until_its_text_was_gone_through() -> None:
    read: list[str] = []

    @cached_by_sentence(IN_A_TEXT)
    def letters(sentence: str) -> int:
        read.append(sentence)
        return len(sentence)

    assert letters("Ja.") == letters("Ja.") == 3
    assert read == ["Ja."]
    forget_sentences()
    assert letters("Ja.") == 3
    assert read == ["Ja.", "Ja."]
