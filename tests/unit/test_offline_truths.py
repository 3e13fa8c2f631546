"""Offline mode says what is so: what was denied is no answer, a time that there is not is said, and a misspelt word is
read as the one that was told."""

from __future__ import annotations

import pytest

from assistant.models.offline.parse import as_statement, parse_message
from assistant.models.offline.requests import AboutMe, Note, Question, Say
from tests.support.offline_replies import answers, found, reply_to, user


@pytest.mark.parametrize(
    ("question", "true", "denial"),
    [
        ("where do I live?", "I live in Cologne", "I never lived in Bonn"),
        ("where do I live", "I live in Cologne", "I don't live in Bonn"),
        ("who is my dentist?", "My dentist is Dr Weiss", "My dentist is not Dr Braun"),
        ("wo wohne ich?", "Ich wohne in Köln", "Ich wohne nicht in Bonn"),
        ("où est-ce que j'habite ?", "J'habite à Cologne", "Je n'ai jamais habité à Bonn"),
        ("¿dónde vivo?", "Vivo en Colonia", "Nunca he vivido en Bonn"),
    ],
)
async def test_what_is_not_so_does_not_answer_what_is(question: str, true: str, denial: str) -> None:
    both = (await answers(user(question), found((1, true), (2, denial)))).content
    assert f"> {true}" in both
    assert denial not in both
    alone = (await answers(user(question), found((2, denial)))).content
    assert not alone.startswith(("You told me", "Noted"))


async def test_what_was_told_and_then_denied_is_answered_with_the_denial() -> None:
    told = found((1, "I live in Bonn"), (2, "I never lived in Bonn"))
    reply = (await answers(user("where do I live?"), told)).content
    assert "You told me on Fri 2026-11-20 09:00:\n\n> I never lived in Bonn" in reply
    assert "It replaces" in reply


async def test_a_question_whether_something_is_so_is_answered_by_its_denial() -> None:
    reply = (await answers(user("did I ever live in Bonn?"), found((1, "I never lived in Bonn")))).content
    assert "> I never lived in Bonn" in reply


@pytest.mark.parametrize(
    "told",
    [
        "I never lived in Bonn",
        "I've never been to Paris",
        "Ich habe nie in Bonn gewohnt",
        "je ne mange jamais de poisson",
        "Nunca viví en Bonn",
        "no como nunca pescado",
        "no vivo en Bonn",
    ],
)
def test_what_was_never_so_is_told_and_corrects_nothing(told: str) -> None:
    (request,) = parse_message(told)
    assert isinstance(as_statement(request), Note)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("remind me at 25:00 to call Bob", "There is no 25:00: a day has 24 hours."),
        ("erinnere mich um 25 Uhr an die Steuer", "There is no 25:00: a day has 24 hours."),
        ("rappelle-moi à 26h d'appeler Bob", "There is no 26:00: a day has 24 hours."),
        ("recuérdame a las 25:30 llamar a Bob", "There is no 25:30: a day has 24 hours."),
        ("wake me at 7:75", "There is no 7:75: an hour has 60 minutes."),
        ("wake me at 13 am", "There is no 13 am: the morning ends at 12."),
        ("remind me on February 30th to call Bob", "There is no 30 February: February has 28 or 29 days."),
        ("erinnere mich am 31. April an die Steuer", "There is no 31 April: April has 30 days."),
        ("todo: pay the rent by 31/04", "There is no 31 April: April has 30 days."),
        ("rappelle-moi le 31 avril d'appeler Bob", "There is no 31 April: April has 30 days."),
        ("el 30 de febrero dentista", "There is no 30 February: February has 28 or 29 days."),
        ("am 31. April zum Zahnarzt", "There is no 31 April: April has 30 days."),
        ("move it to 25:00", "There is no 25:00: a day has 24 hours."),
        ("remind me on 2026-02-30 to call Bob", "There is no 30 February: February has 28 or 29 days."),
        ("remind me on the 32nd to call Bob", "There is no day 32: a month has at most 31 days."),
    ],
)
async def test_a_time_that_there_is_not_is_said_and_asked_for_and_nothing_is_set(said: str, told: str) -> None:
    reply = (await reply_to(user(said), tools=())).message
    assert not reply.tool_calls
    assert reply.content.startswith(f"{told} Nothing was set or changed, and your message is kept. When do you mean?")


@pytest.mark.parametrize(
    "said",
    [
        "remind me in 26h to call Bob",
        "remind me on 29 February to call Bob",
        "The score was 25:30",
        "I have 45 may bugs",
        "he called me at 25:00 yesterday",
        "erinnere mich um 24 Uhr an Bob",
    ],
)
def test_a_length_a_score_and_the_leap_day_are_no_impossible_times(said: str) -> None:
    assert not any(isinstance(request, Say) for request in parse_message(said))


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("who is my dantist", "My dentist is Dr Weiss"),
        ("who is my dantiste?", "My dentist is Dr Weiss"),
        ("where is the kee", "The key is under the mat"),
        ("wo ist der Schlüsel", "Der Schlüssel liegt unter der Matte"),
        ("donde esta la lave", "La llave está debajo del felpudo"),
        ("what is my kat called", "My cat is called Mia"),
    ],
)
async def test_a_misspelt_word_that_nothing_else_answers_is_read_by_its_consonants(asked: str, told: str) -> None:
    reply = await answers(user(asked), found((1, told)))
    if reply.tool_calls:  # it has looked on the lists first
        reply = await answers(user(asked), "To-do list: 0 open", found((1, told)))
    assert f"> {told}" in reply.content


@pytest.mark.parametrize(("asked", "told"), [("where is my car", "The cat is ill"), ("the map?", "The mat is wet")])
async def test_another_word_is_no_slip(asked: str, told: str) -> None:
    assert f"> {told}" not in (await answers(user(asked), found((1, told)))).content


async def test_how_a_misspelt_word_was_read_is_said() -> None:
    reply = (await answers(user("where is the kee"), found((1, "The key is under the mat")))).content
    assert 'I read "kee" as "key".' in reply


@pytest.mark.parametrize(
    "asked",
    [
        "how many things did I tell you",
        "wie viele Sachen habe ich dir erzählt",
        "combien de choses je t'ai dit",
        "cuántas cosas te he dicho",
    ],
)
def test_how_many_things_were_told_asks_for_what_was_told(asked: str) -> None:
    assert parse_message(asked) == (AboutMe(counts=True),)


@pytest.mark.parametrize(
    ("asked", "topic"),
    [
        ("what did I tell you about the dentist", "the dentist"),
        ("was habe ich dir über den Zahnarzt erzählt", "den Zahnarzt"),
        ("qu'est-ce que je t'ai dit sur le dentiste", "le dentiste"),
        ("qué te he dicho del dentista", "dentista"),
    ],
)
def test_what_was_told_about_something_asks_for_no_reminder(asked: str, topic: str) -> None:
    assert parse_message(asked) == (Question(topic, topic=True),)
