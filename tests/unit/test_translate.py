"""What the rules compare of German, French and Spanish, put into English."""

from __future__ import annotations

from sleep.rules.translate import other_words, to_english
from tests.support.sentence_tables import every_case


@every_case(
    [
        ("Nein, der Zahnarzt ist am Mittwoch.", "no, the dentist is on wednesday."),
        ("Der Geburtstag meines Bruders ist am 13. Juni.", "my brother's birthday is on 13. june."),
        ("L'anniversaire de ma sœur est le 3 mai.", "my sister's birthday is on 3 may."),
        ("No, el teléfono de mi hermano es 555 9988.", "No, my brother's phone is 555 9988."),
        ("Mein Zahnarzt ist um 10 Uhr.", "my dentist is at 10:00."),
        ("Wie heißt meine Katze?", "how is called my cat?"),
        ("Der Kellercode ist 4712.", "the cellar code is 4712."),
        ("Ich wohne jetzt in Bergen.", "i now live in Bergen."),
    ]
)
def test_everyday_words_are_put_into_english_and_the_rest_stays(said: str, english: str) -> None:
    assert to_english(said) == english


@every_case(
    [
        "My son has a gift for pain.",
        "The main code is in the chat.",
        "I was at the bank on Tuesday.",
        "Jeg bor i Bergen og har en hund.",
        "私の妹はベルゲンに住んでいます",
        "4711",
        "",
    ]
)
def test_what_is_english_or_in_no_language_known_stays_as_it_is(said: str) -> None:
    assert to_english(said) == said


def test_a_word_is_known_in_the_other_languages() -> None:
    assert {"zahnarzt", "dentiste", "dentista"} <= {*other_words("dentist")}
    assert other_words("Bergen") == ()
