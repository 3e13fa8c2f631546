"""What offline mode takes for the name of the person, in four languages, and what it does not."""

from __future__ import annotations

import pytest

from assistant.models.offline.own_name import asks_own_name, told_name


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("Hi, I am Lena", "Lena"),
        ("I'm Lena", "Lena"),
        ("hello, my name is tom", "Tom"),
        ("call me Tom", "Tom"),
        ("You can call me Mary-Jane.", "Mary-Jane"),
        ("I'm called Ruth", "Ruth"),
        ("Hallo, ich bin die Lena", "Lena"),
        ("Mein Name ist Jonas Weber", "Jonas Weber"),
        ("ich heiße Jürgen", "Jürgen"),
        ("nenn mich Tom", "Tom"),
        ("du kannst mich Tom nennen", "Tom"),
        ("je m’appelle Zoé", "Zoé"),
        ("bonjour, je suis Paul", "Paul"),
        ("moi c'est Paul", "Paul"),
        ("appelle-moi Zoé", "Zoé"),
        ("me llamo Ana María", "Ana María"),
        ("hola, soy Marta", "Marta"),
        ("llámame Pepe", "Pepe"),
    ],
)
def test_a_name_that_is_told_is_known(said: str, name: str) -> None:
    assert told_name(said) == name


@pytest.mark.parametrize(
    "said",
    [
        *("I am tired", "Hi, I am hungry", "I'm Tired", "I am German", "i am lena's mother", "I'm back"),
        *("Ich bin müde", "Ich bin Lehrer", "Hallo, ich bin krank", "ich heiße nicht so"),
        *("je suis fatigué", "bonjour, je suis fatiguée", "je suis Français", "soy de Madrid", "soy médico"),
        *("call me back", "call me at five", "call me tomorrow", "call me a taxi", "my name is on the list"),
        *("appelle-moi demain", "appelle-moi un taxi", "llámame luego", "llámame mañana", "nenn mich nicht so"),
        *("am I called Lena?", "my sister is called Lena", "call mum", "call me when the plumber is here"),
    ],
)
def test_what_somebody_is_or_wants_is_no_name(said: str) -> None:
    assert told_name(said) == ""


@pytest.mark.parametrize("question", ["what's my name", "what am I called?", "wie heiße ich", "comment je m'appelle ?"])
def test_the_question_for_the_own_name_is_known(question: str) -> None:
    assert asks_own_name(question)


@pytest.mark.parametrize("question", ["what is my name tag number", "wie heißt mein Hund", "what's my sister's name"])
def test_a_question_for_another_name_is_another_question(question: str) -> None:
    assert not asks_own_name(question)
