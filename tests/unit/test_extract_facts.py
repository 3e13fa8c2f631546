"""What a person's own words tell about them, by rules alone."""

from __future__ import annotations

from sleep.rules.classifier import score_importance
from sleep.rules.extract_statements import extract_statements
from sleep.rules.sentences import split_sentences
from tests.support.sentence_tables import every_case

TOLD = (
    ("I work as a nurse at Haukeland hospital.", "fact"),
    ("My son Jonas has a peanut allergy.", "fact"),
    ("We moved to Trondheim in 2018.", "fact"),
    ("I was born on 4 July 1985.", "fact"),
    ("Our cat is called Mio.", "fact"),
    ("I'm getting married in June.", "fact"),
    ("My doctor is Dr. Hansen at St. Olav.", "fact"),
    ("The gate code is 4711.", "fact"),
    ("I've been learning Italian since spring.", "fact"),
    ("I never eat meat.", "preference"),
    ("I prefer tea to coffee.", "preference"),
    ("My favourite composer is Grieg.", "preference"),
    ("We've decided to sell the boat.", "decision"),
    ("Let's go with the blue tiles.", "decision"),
    ("Remind me to renew the passport in March.", "task"),
    ("Mein Bruder heißt Paul.", "fact"),
    ("Ich mag keinen Kaffee.", "preference"),
    ("Wir haben beschlossen umzuziehen.", "decision"),
    ("Ma fille s'appelle Léa.", "fact"),
    ("Je préfère le thé.", "preference"),
    ("Mi madre vive en Sevilla.", "fact"),
    ("Jeg jobber på sykehuset.", "fact"),
    ("Søsteren min heter Kari.", "fact"),
    ("Meine Tochter arbeitet in Graz.", "fact"),
    ("Montags singe ich im Chor.", "fact"),
    ("Mon frère habite à Lyon.", "fact"),
    ("No me gusta el cilantro.", "preference"),
    ("Vi flyttet til Tromsø i fjor.", "fact"),
    ("我们每周三上课。", "fact"),
    ("毎週火曜日に合唱があります。", "fact"),
    ("我住在上海。", "fact"),
    ("我喜欢绿茶。", "preference"),
    ("私は京都に住んでいます。", "fact"),
)
CHATTER = (
    "hi",
    "Good morning!",
    "thanks a lot",
    "That is great, thank you very much.",
    "ok sounds good",
    "haha very funny",
    "I see, that makes sense.",
    "What do you think about this?",
    "I don't understand the second paragraph.",
    "Can you say that again?",
    "The code does not compile, here is the error",
    "Yes please",
    "I'm sorry, the other",
    "Let me think about it",
    "I have a quick question about Python.",
    "I was just wondering how that works.",
    "How are you today?",
    "I think it is fine",
    "I'm not sure what you mean.",
    "You are right.",
    "I'm going to bed.",
    "It is 3 o'clock already",
    "Is my code right",
    "Do I live in Oslo",
    "maybe later",
    "If I was in Rome, I was ill.",
    "我不知道你是什么意思",
    "ありがとうございます",
    "Danke schön, bis morgen",
    "j'adore !",
    "Ich bin müde.",
    "Je suis fatiguée.",
    "Tengo hambre.",
    "Jeg er sulten nå.",
    "今天好累啊。",
    "私は今日疲れました。",
    "Wenn ich in Rom wohne, bin ich froh.",
)


@every_case(TOLD)
def test_what_people_say_of_themselves_is_kept_as_they_said_it(text: str, kind: str) -> None:
    assert [(found.kind, found.content) for found in extract_statements(text)] == [(kind, text)]


def test_f29_greetings_and_chat_are_not_kept() -> None:
    assert [(text, found) for text in CHATTER for found in extract_statements(text)] == []


@every_case(
    [
        'Anna says: "I live in Oslo and my dog is Rex."',
        "Anna wrote “I live in Oslo, and my dog is Rex”",
        "> I live in Oslo, my dog is Rex.",
        "```python\nmy_name = 'I live in Oslo'\n```",
        "    I live in Oslo as indented code",
        "The string is `I live in Oslo`",
        "彼は「私は大阪に住んでいます」と言った。",
    ]
)
def test_f29_what_others_said_and_code_are_nobodys_facts(text: str) -> None:
    assert extract_statements(text) == []


def test_what_stands_beside_a_quotation_is_read() -> None:
    text = "> where do you live?\nI live in Bergen.\n```\nx = 1\n```\nMy boat is called «Havørn», and I am 41."
    assert [found.content for found in extract_statements(text)] == [
        "I live in Bergen.",
        "My boat is called «Havørn», and I am 41.",
    ]


def test_a_sentence_is_kept_once_in_its_order_and_cut_at_400_characters() -> None:
    long = "I live in a house with " + "many rooms and " * 60 + "one door."
    found = extract_statements(f"I like sailing. I live in Oslo. I like sailing. {long}")
    assert [len(one.content) for one in found] == [15, 15, 400]
    assert found[2].content == long[:400]


def test_importance_grows_with_names_numbers_and_weighty_matters() -> None:
    weights = [score_importance("fact", text) for text in ("I am tall.", "I am 41.", "My passport is X1.")]
    assert weights == sorted(set(weights)) and all(0 <= weight <= 1 for weight in weights)
    assert score_importance("decision", "we go") > score_importance("fact", "we go")


@every_case(
    [
        ("Dr. Berg lives here. She is nice.", ["Dr. Berg lives here.", "She is nice."]),
        ("Am 3. Mai fahre ich. Dann nicht.", ["Am 3. Mai fahre ich.", "Dann nicht."]),
        ("It costs 3.50. It was 12. Cheap!", ["It costs 3.50.", "It was 12.", "Cheap!"]),
        ("我住在上海。我喜欢绿茶。", ["我住在上海。", "我喜欢绿茶。"]),
        ("- one thing\n2) two things\n[x] three", ["one thing", "two things", "three"]),
        ("one\n\n\n two ", ["one", "two"]),
        ("He said “no.” Then he left.", ["He said “no.”", "Then he left."]),
        ("... ?! 42", []),
    ]
)
def test_sentences_end_where_they_end(text: str, expected: list[str]) -> None:
    assert [sentence.text for sentence in split_sentences(text)] == expected
