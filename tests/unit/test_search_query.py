"""What a search question asks for beside its words."""

from __future__ import annotations

import pytest

from assistant.search.query import asks_about_assistant, parse_question
from assistant.store.search.index_store import Stemmer

ABOUT_ASSISTANT = """
What did you tell me about the boiler?
did you suggest a hotel in Lund
Which book did you recommend for the flight?
Why didn't you mention the toll?
Have you ever told me a joke about cats?
Remind me what you said about sourdough
You once recommended a stretch for the back
What was the hotel you'd suggested?
what have you already explained about mortgages
What did we decide about the kitchen floor?
we agreed on a budget for the trip, how much was it?
What was your advice on the visa?
your second suggestion for the garden
Was hast du mir zum Sauerteig gesagt?
Welches Hotel hattest du damals vorgeschlagen?
du hast mir ein Buch empfohlen, welches war das
Was haben Sie mir geraten?
Quel livre m'as-tu conseillé ?
Tu m'as dit quoi pour le pain ?
Qu'avez-vous recommandé pour le dos ?
¿Qué me recomendaste para la espalda?
lo que me dijiste del pan
¿Qué hotel me habías sugerido?
"""

REQUESTS = """
Can you list the order in which I visited the cities?
What would you suggest for dinner with Anna?
Can you recommend a book like the ones I enjoyed?
Could you tell me when my dentist appointment is?
Do you know where I said the key was?
What do you recommend for my back?
how would you explain my job to a child
When did I tell you about the boat?
What did Anna say to you about the plumber?
Can you tell me what I had for lunch on Monday?
Would you list all the places I mentioned?
Who told me that the bridge was closed?
Please suggest a present for my sister
Where have you been told that I was born?
What did she recommend to me?
Kannst du mir sagen, wann ich beim Zahnarzt war?
Was würdest du mir für heute empfehlen?
Was hat Anna gesagt?
Peux-tu me dire où j'ai mis la clé ?
Que me recommandes-tu pour ce soir ?
¿Puedes decirme dónde dejé la llave?
¿Qué me recomiendas para cenar?
"""


def lines(table: str) -> list[str]:
    return table.strip().splitlines()


@pytest.mark.parametrize("question", lines(ABOUT_ASSISTANT))
def test_a_question_about_the_assistant_s_words_speaks_of_the_past(question: str) -> None:
    assert asks_about_assistant(question)


@pytest.mark.parametrize("question", lines(REQUESTS))
def test_a_request_is_no_question_about_the_assistant(question: str) -> None:
    assert not asks_about_assistant(question)


def test_an_ordering_question_is_searched_by_its_subject() -> None:
    stems = Stemmer()
    asked = "Can you list the order in which I brought up aspects of the vegetable garden across our conversations?"
    assert set(parse_question(asked, stems.stem_words).words.values()) == {"vegetable", "garden"}
    assert "order" in parse_question("What did I order at the harbour?", stems.stem_words).words.values()
    assert parse_question("In what order did we talk?", stems.stem_words).words
    stems.close()


def test_what_a_question_asks_for_is_told_by_its_form() -> None:
    stems = Stemmer()

    def asked(question: str) -> tuple[bool, bool]:
        parsed = parse_question(question, stems.stem_words)
        return parsed.asks_number, parsed.asks_name

    assert asked("How many bikes do I own?") == (True, False)
    assert asked("Where did we eat?") == (False, True)
    assert asked("Did we eat?") == (False, False)
    stems.close()
