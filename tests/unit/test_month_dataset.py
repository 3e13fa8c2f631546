"""The yardstick of what is learned of a month: its data is sound, and it calls right and wrong answers rightly."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.month.conversation import (
    MONTH,
    SECOND,
    MonthConversation,
    MonthFact,
    MonthMessage,
    RequiredPhrases,
    has_phrase,
    read_month,
)
from tests.month.judge import LearnedText, judge

# How people most often begin to tell of themselves: too easy for a yardstick to be made of.
EASY_FORM = re.compile(r"\b(i am|i'm|im|i have|i've|ive|i like|i love|i prefer)\b", re.IGNORECASE)

SMALL = """
starts = 2026-03-02
timezone = "Europe/London"
[[message]]
day = 1
time = "08:00"
role = "user"
text = "hello you"
noise = true
[[message]]
day = 1
time = "08:01"
role = "user"
text = "what's 7 times 8? the cello lesson is on mondays"
passing = ["7 times 8"]
[[message]]
day = 29
time = "08:00"
role = "user"
text = "cello is on fridays now. the cellar key hangs by the door"
[[fact]]
id = "cello"
says = "The cello lesson is on Mondays"
keys = [["cello"], ["monday*"]]
messages = [2]
[[fact]]
id = "key"
says = "The cellar key hangs by the door"
keys = [["key"], ["cellar"]]
messages = [3]
[[correction]]
id = "cello-fridays"
old_keys = [["cello"], ["monday*"]]
new_keys = [["cello"], ["friday*"]]
message = 3
fact = "cello"
"""


@pytest.fixture(scope="module")
def month() -> MonthConversation:
    return read_month()


@pytest.fixture(scope="module", params=[MONTH, SECOND], ids=["month", "second"])
def either(request: pytest.FixtureRequest) -> MonthConversation:
    return read_month(request.param)


@pytest.fixture
def small(tmp_path: Path) -> MonthConversation:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return read_month(path)


def sentences(text: str) -> list[str]:
    return [part for part in re.split(r"(?<=[.!?])\s+|\n+", text) if part]


def tellings(month: MonthConversation, fact: MonthFact) -> Iterator[str]:
    """The texts that tell a fact: sentences of the person's, and their answers behind the question they answer."""
    for number in fact.messages:
        said = month.message(number)
        if said.role == "user":
            own = sentences(said.text)
            yield from own
            if number - 1 in fact.messages and month.message(number - 1).role == "assistant":
                yield f"{month.message(number - 1).text} {own[0]}"


def persons(month: MonthConversation) -> list[MonthMessage]:
    return [said for said in month.said if said.role == "user"]


def test_month_has_thirty_days_sixty_facts_and_twelve_corrections(month: MonthConversation) -> None:
    assert {(said.at.date() - month.said[0].at.date()).days for said in month.said} == set(range(30))
    assert 420 <= len(month.said) <= 500
    assert (len(month.facts), len(month.corrections)) == (60, 12)


def test_each_month_has_sixty_facts_and_twelve_corrections(either: MonthConversation) -> None:
    assert (len(either.facts), len(either.corrections)) == (60, 12)


def test_messages_are_in_order_and_all_have_something_in_them(either: MonthConversation) -> None:
    assert [said.number for said in either.said] == list(range(1, len(either.said) + 1))
    assert all(one.at <= other.at for one, other in pairwise(either.said))
    assert all(said.text.strip() for said in either.said)
    assert all(bool(said.name) == (said.role == "tool") for said in either.said)


def test_ids_are_told_apart(either: MonthConversation) -> None:
    for ids in ([fact.id for fact in either.facts], [each.id for each in either.corrections]):
        assert [name for name, count in Counter(ids).items() if count > 1] == []


def test_every_number_and_every_corrected_fact_exists(either: MonthConversation) -> None:
    numbers = {said.number for said in either.said}
    assert all(fact.messages and set(fact.messages) <= numbers for fact in either.facts)
    assert {each.message for each in either.corrections} <= numbers
    assert {each.fact for each in either.corrections} <= {fact.id for fact in either.facts} | {""}


def test_what_tells_something_is_not_noise_and_most_of_the_rest_is(month: MonthConversation) -> None:
    telling = {number for fact in month.facts for number in fact.messages}
    telling |= {each.message for each in month.corrections}
    assert [number for number in sorted(telling) if month.message(number).noise] == []
    rest = [said for said in month.said if said.number not in telling]
    assert sum(said.noise for said in rest) > 0.98 * len(rest)


def test_every_fact_is_told_by_one_sentence_of_the_persons_own(month: MonthConversation) -> None:
    assert [fact.id for fact in month.facts if not any(map(fact.keys.held_by, tellings(month, fact)))] == []


def test_every_fact_as_it_is_put_shortly_holds_its_own_keys(either: MonthConversation) -> None:
    assert [fact.id for fact in either.facts if not fact.keys.held_by(fact.says)] == []


def test_half_of_the_facts_and_more_are_told_without_the_easy_forms(either: MonthConversation) -> None:
    plain = [
        fact.id
        for fact in either.facts
        if not any(EASY_FORM.search(told) for told in tellings(either, fact) if fact.keys.held_by(told))
    ]
    assert len(plain) >= 30
    assert len(plain) < len(either.facts), "people use the easy forms too"


def test_every_correction_is_one_sentence_and_comes_after_what_it_supersedes(month: MonthConversation) -> None:
    facts = {fact.id: fact for fact in month.facts}
    for each in month.corrections:
        assert any(map(each.new.held_by, sentences(month.message(each.message).text))), each.id
        before = [said for said in persons(month) if said.number < each.message]
        if each.fact:
            assert min(facts[each.fact].messages) < each.message, each.id
            assert any(map(each.old.held_by, tellings(month, facts[each.fact]))), each.id
        else:
            assert any(each.old.held_by(part) for said in before for part in sentences(said.text)), each.id
        assert not any(each.new.held_by(said.text) for said in before), each.id


def test_noise_of_people_and_tools_holds_nothing_asked_for(either: MonthConversation) -> None:
    asked: dict[str, RequiredPhrases] = {fact.id: fact.keys for fact in either.facts}
    asked |= {each.id: each.new for each in either.corrections}
    wrongly = [
        (said.number, name)
        for said in either.said
        if said.noise and said.role != "assistant"
        for name, keys in asked.items()
        if keys.held_by(said.text)
    ]
    assert wrongly == []


def test_a_sentence_that_tells_one_fact_holds_no_other(either: MonthConversation) -> None:
    crowded = [
        (fact.id, other.id)
        for fact in either.facts
        for other in either.facts
        if other is not fact
        and not set(other.messages) & set(fact.messages)
        and any(other.keys.held_by(told) for told in tellings(either, fact) if fact.keys.held_by(told))
    ]
    assert crowded == []


def test_passing_phrases_stand_in_their_messages_and_spare_what_is_told(either: MonthConversation) -> None:
    for said in either.said:
        assert all(has_phrase(said.text, phrase) for phrase in said.passing), said.number
        assert not (said.noise and said.passing), said.number
    short = [fact.says for fact in either.facts]
    marked = {phrase for said in either.said for phrase in said.passing}
    assert [(phrase, says) for phrase in marked for says in short if has_phrase(says, phrase)] == []


def test_month_has_the_noise_that_fools_a_memory(month: MonthConversation) -> None:
    noise = [said for said in month.said if said.noise]
    persons_own_looking = [said for said in noise if said.role != "assistant" and EASY_FORM.search(said.text)]
    assert len(persons_own_looking) >= 15
    assert len([said for said in noise if said.role == "tool"]) >= 10
    assert any("ignore all rules" in said.text for said in noise)
    assert any(said.role == "assistant" and said.text.startswith("You told me") for said in noise)
    assert any("Traceback" in said.text for said in noise)


def test_keeping_every_sentence_word_for_word_learns_all_and_is_mostly_junk(month: MonthConversation) -> None:
    learned = [LearnedText(part, (said.number,)) for said in persons(month) for part in sentences(said.text)]
    answers = [
        LearnedText(told, fact.messages)
        for fact in month.facts
        for told in tellings(month, fact)
        if len(fact.messages) > 1
    ]
    judged = judge(month, learned + answers)
    assert (judged.missed, judged.uncorrected) == ((), ())
    assert judged.precision < 0.5


def test_learning_exactly_what_was_asked_for_is_free_of_junk_and_duplicates(either: MonthConversation) -> None:
    judged = judge(either, [LearnedText(fact.says, fact.messages) for fact in either.facts])
    assert (judged.recall, judged.precision) == (1.0, 1.0)
    assert set(judged.verdicts) == {"held"}


def test_learning_the_noise_is_junk_and_learns_nothing(month: MonthConversation) -> None:
    noise = [said for said in month.said if said.noise and said.role != "assistant"]
    judged = judge(month, [LearnedText(said.text, (said.number,)) for said in noise])
    assert set(judged.verdicts) == {"junk"}
    assert (judged.facts, judged.recall, judged.precision) == ((), 0.0, 0.0)


def test_nothing_learned_misses_everything_and_holds_no_junk(small: MonthConversation) -> None:
    judged = judge(small, [])
    assert judged.missed == ("cello", "key")
    assert judged.uncorrected == ("cello-fridays",)
    assert (judged.recall, judged.precision) == (0.0, 1.0)


def test_other_words_with_the_same_keys_hold_the_fact(small: MonthConversation) -> None:
    judged = judge(small, [LearnedText("Cello lessons take place every Monday.", (2,))])
    assert (judged.facts, judged.verdicts) == (("cello",), ("held",))


@pytest.mark.parametrize("word", ["keyboard", "turnkey"])
def test_a_key_within_a_longer_word_is_no_key(small: MonthConversation, word: str) -> None:
    assert judge(small, [LearnedText(f"The {word} is in the cellar.", (3,))]).facts == ()


def test_a_text_of_noise_is_junk_and_one_of_a_telling_message_is_merely_unasked(small: MonthConversation) -> None:
    judged = judge(small, [LearnedText("They say hello.", (1,)), LearnedText("They play music.", (2,))])
    assert judged.verdicts == ("junk", "unasked")
    assert judged.precision == 0.5


def test_what_was_said_in_passing_is_junk_though_its_message_tells_something(small: MonthConversation) -> None:
    judged = judge(small, [LearnedText("Asked what 7 times 8 is", (2,)), LearnedText("7 times 8 is wanted", (1, 2))])
    assert judged.verdicts == ("junk", "junk")


def test_a_text_that_one_telling_message_stands_behind_is_not_junk_for_another_of_noise(
    small: MonthConversation,
) -> None:
    assert judge(small, [LearnedText("They play music.", (1, 2))]).verdicts == ("unasked",)


def test_a_text_that_comes_from_nowhere_is_junk(small: MonthConversation) -> None:
    assert judge(small, [LearnedText("They live on the moon.", ())]).verdicts == ("junk",)


def test_saying_again_what_is_held_is_a_duplicate_and_saying_more_is_not(small: MonthConversation) -> None:
    again = LearnedText("On Mondays there is cello", (2,))
    more = LearnedText("Cello is on Mondays, and the cellar key hangs by the door", (2, 3))
    judged = judge(small, [LearnedText("cello on monday", (2,)), again, more])
    assert judged.verdicts == ("held", "duplicate", "held")
    assert judged.texts("duplicate") == (again,)


def test_a_correction_is_held_beside_what_it_supersedes_and_is_no_duplicate(small: MonthConversation) -> None:
    judged = judge(
        small, [LearnedText("Cello is on Mondays", (2,), current=False), LearnedText("Cello is on Fridays", (3,))]
    )
    assert judged.verdicts == ("held", "held")
    assert (judged.corrections, judged.uncorrected, judged.stale) == (("cello-fridays",), (), ())


def test_what_was_true_until_a_correction_is_held_though_it_is_none_of_the_facts(month: MonthConversation) -> None:
    before = next(each for each in month.corrections if not each.fact)
    told = next(said for said in persons(month) if any(map(before.old.held_by, sentences(said.text))))
    text = next(part for part in sentences(told.text) if before.old.held_by(part))
    assert judge(month, [LearnedText(text, (told.number,))]).verdicts == ("held",)


def test_what_was_superseded_and_is_still_held_to_be_true_is_stale(small: MonthConversation) -> None:
    old, both = LearnedText("Cello is on Mondays", (2,)), LearnedText("Cello is on Fridays, no longer Mondays", (3,))
    assert judge(small, [old, both]).stale == (old,)


def test_a_source_that_the_month_does_not_have_is_refused(small: MonthConversation) -> None:
    with pytest.raises(KeyError):
        judge(small, [LearnedText("They play music.", (4,))])


def test_days_are_counted_in_the_persons_own_zone(small: MonthConversation) -> None:
    assert [said.at.isoformat() for said in small.said][::2] == [
        "2026-03-02T08:00:00+00:00",
        "2026-03-30T07:00:00+00:00",
    ]
