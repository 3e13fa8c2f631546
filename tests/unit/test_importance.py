"""How much an entry weighs, on a table of examples."""

from __future__ import annotations

from sleep.rules.classifier import UNCERTAIN_BAND, is_small_talk, score_importance
from tests.support.sentence_tables import every_case


def is_uncertain(weight: float) -> bool:
    low, high = UNCERTAIN_BAND
    return low <= weight <= high


VITAL = (
    "My son Jonas has a peanut allergy.",
    "I'm allergic to penicillin.",
    "Mum died last night.",
    "Our daughter was born.",
    "I was diagnosed with coeliac disease.",
    "She's pregnant, due in March.",
    "My blood type is 0 negative.",
    "I take 100 mcg of levothyroxine.",
    "Dad's operation is on the 31st.",
    "The wedding is on 12 June.",
    "We are getting divorced.",
    "Grandpa had a stroke.",
    "Ich bin schwanger.",
    "Mi padre murió en abril.",
    "我对花生过敏。",
    "父は先月亡くなりました。",
)
GROUND = (
    "I live in Oslo.",
    "I was born in 1985.",
    "I work at Acme.",
    "My passport is X1234567.",
    "The door code is 4711.",
    "Our landlord is Mr Harris.",
    "My sister is called Anna.",
    "We moved to Trondheim in 2018.",
    "The rent is 950 a month.",
    "Everyone calls me Jo, that is my name.",
    "My salary is 52000.",
    "Ich wohne in Köln.",
    "Jeg jobber på skolen.",
    "Vivo en Sevilla.",
    "我住在上海。",
    "私は京都に住んでいます。",
)
MIDDLE = (
    ("preference", "I prefer tea to coffee."),
    ("preference", "I love sailing."),
    ("task", "Renew the library card."),
    ("fact", "We go to Lisbon in May."),
    ("fact", "The boat is painted blue."),
    ("fact", "I sing in a choir."),
)
TRIVIA = (
    "I'm so tired today.",
    "It is raining again.",
    "I had a sandwich for lunch.",
    "We were late.",
    "The traffic was bad.",
)
NOTHING = (
    "hi",
    "Good morning!",
    "thanks a lot",
    "Thank you very much, perfect!",
    "The user said hello.",
    "ok sounds good",
    "Danke schön",
    "谢谢",
    "ありがとうございます",
)


@every_case(VITAL)
def test_health_safety_and_what_happens_in_a_family_weigh_most(text: str) -> None:
    assert 0.8 <= score_importance("fact", text) <= 0.9


@every_case(GROUND)
def test_identity_home_and_work_weigh_much(text: str) -> None:
    assert 0.6 <= score_importance("fact", text) <= 0.7


@every_case(MIDDLE)
def test_preferences_and_plans_lie_in_the_uncertain_middle(kind: str, text: str) -> None:
    weight = score_importance(kind, text)
    assert 0.4 <= weight <= 0.5 and is_uncertain(weight)


@every_case(TRIVIA)
def test_f29_what_is_over_with_the_day_weighs_little(text: str) -> None:
    assert score_importance("fact", text) == 0.2


@every_case(NOTHING)
def test_f29_small_talk_weighs_nothing_whatever_its_kind(text: str) -> None:
    assert is_small_talk(text)
    assert score_importance("decision", text) == 0.1


def test_what_no_rule_knows_is_uncertain_and_what_is_plain_is_not() -> None:
    assert is_uncertain(score_importance("fact", "The hedge grows."))
    assert not any(is_uncertain(score_importance("fact", text)) for text in (*VITAL, *GROUND, *TRIVIA, *NOTHING))


def test_a_decision_weighs_more_than_a_fact() -> None:
    assert score_importance("decision", "we go") > score_importance("fact", "we go")


def test_a_text_of_a_megabyte_is_weighed_by_its_beginning() -> None:
    assert score_importance("fact", "I live in Oslo. " + "x" * 1_000_000) == 0.7
    assert score_importance("fact", "hi " * 300_000) == score_importance("fact", "hi " * 3_000)
