"""What a conversation tells beyond single sentences: answers with their questions, corrections, days, games."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone

from assistant.core.messages import ToolCall
from assistant.core.records import LogRecord
from sleep.rules.corrections import is_correction
from sleep.rules.extract_statements import extract_from_conversation
from sleep.rules.resolve_dates import append_dates
from tests.support.sentence_tables import every_case
from tests.support.store_home import NOW

SAID = date(2026, 3, 5)  # a Thursday


def talk(*said: str, at: datetime = NOW) -> list[LogRecord]:
    """The person and the assistant in turn, the person first; "" is nothing said."""
    roles = ("user", "assistant")
    return [
        LogRecord(n, n, at, "main", 1, "owner", "message", roles[n % 2], text, "", "")  # type: ignore[arg-type]
        for n, text in enumerate(said)
        if text
    ]


def texts(*said: str) -> list[str]:
    return [one.statement.content for one in extract_from_conversation(talk(*said))]


# ------------------------------------------------------------------------------------------------------------- answers


@every_case(
    [
        ("Sure. What's your landlord called?", "Henrik Dahl.", "What's your landlord called? Henrik Dahl."),
        ("Noted! When is Ada's birthday?", "the 4th of june", "When is Ada's birthday? the 4th of june"),
        ("Any allergies I should know about?", "shellfish", "Any allergies I should know about? shellfish"),
        ("Do you have any pets?", "no", "Do you have any pets? no"),
        ("Which airport do you usually fly from?", "Leeds Bradford", "Which airport do you usually fly from? Leeds"),
        ("Good morning. What shall I call you?", "juha", "What shall I call you? juha"),
        ("Nice. Shall I watch flights?", "only direct ones", "Shall I watch flights? only direct ones"),
    ]
)
def test_an_answer_is_learned_behind_its_question_from_both_messages(question: str, answer: str, learned: str) -> None:
    (one,) = extract_from_conversation(talk("hi", question, answer))
    assert one.statement.content.startswith(learned)
    assert one.sources == (2, 1)


@every_case(
    [
        ("Would you like me to make it shorter?", "yes please"),
        ("Shall I book the dentist?", "go ahead"),
        ("What would you like to start with?", "the intro"),
        ("Which version do you prefer?", "the second one"),
        ("What's your landlord called?", "no idea"),
        ("What's your landlord called?", "can you look it up in the lease?"),
        ("Do you have his rota yet?", "not yet, it comes out friday"),
        ("What's your dog's name?", "haha why"),
        ("How was the interview?", "awful"),
        ("Your landlord is called Henrik.", "great"),
        ("What's the capital of Chad? It is N'Djamena.", "lovely"),
    ]
)
def test_f29_offers_and_empty_answers_are_not_learned(question: str, answer: str) -> None:
    assert texts("hi", question, answer) == []


def test_an_answer_that_comes_long_after_is_none() -> None:
    asked = talk("hi", "What's your landlord called?")
    late = talk("", "", "Henrik Dahl.", at=NOW + timedelta(days=1))
    assert extract_from_conversation([*asked, *late]) == []


def test_f29_what_the_assistant_says_is_never_learned() -> None:
    assert texts("hi", "You told me that you live in Oslo and that your sister is called Kari.", "thanks") == []


# --------------------------------------------------------------------------------------------------------- corrections


@every_case(
    [
        "scrap that, the budget is 900 not 750",
        "choir is on thursdays now",
        "we no longer bank with Nordea",
        "Actually the wedding is on the 12th of June, not the 5th",
        "my number's changed, it's 07700 900 123 now",
        "the rehearsal has been pushed to 7:30",
        "not vegan any more, I eat fish again",
        "rent is going up to 900 from june",
        "turns out Nils isn't coeliac after all",
        "yoga is on Thursdays instead of Mondays",
        "ich wohne nicht mehr in Bonn",
    ]
)
def test_what_changes_something_is_a_correction(text: str) -> None:
    found = extract_from_conversation(talk(text))
    assert found == [] or found[0].statement.is_correction
    assert is_correction(text)


@every_case(["I live in Oslo.", "choir is on thursdays", "Our cat is called Mio.", "the gate code is 4711"])
def test_what_is_merely_told_is_none(text: str) -> None:
    assert [one.statement.is_correction for one in extract_from_conversation(talk(text))] == [False]


def test_what_was_announced_as_a_correction_is_one() -> None:
    (one,) = extract_from_conversation(talk("I was wrong about the party. The party is at the scout hut on 3 May."))
    assert one.statement.is_correction and "scout hut" in one.statement.content


def test_a_correction_that_only_says_it_stands_with_what_it_corrects() -> None:
    (_, one) = extract_from_conversation(
        talk("choir is on mondays", "Choir on Mondays, noted.", "sorry, it's thursdays now")
    )
    assert one.statement.content == 'it\'s thursdays now (of: "Choir on Mondays, noted.")'
    assert (one.sources, one.statement.is_correction) == ((2, 1), True)


def test_what_is_asked_back_in_a_few_words_is_about_what_was_told() -> None:
    assert texts("we adopted a cat in May", "Linux or not?", "linux")[1:] == ["Linux or not? linux"]
    assert texts("haha", "Linux or not?", "linux") == []


def test_what_the_assistant_takes_note_of_needs_less_to_be_learned() -> None:
    said = "My GP says no more than two units a week"
    assert texts(said, "Sensible.") == []
    assert texts(said, "Noted, two units a week.") == [said]


def test_who_she_is_stands_in_the_sentence_before() -> None:
    assert texts("My sister is called Ann. She lives in Bonn.") == ["My sister is called Ann. She lives in Bonn."]


# ---------------------------------------------------------------------------------------------------------------- days


@every_case(
    [
        ("dad's operation is on the 14th", "14 March 2026"),
        ("the lease ends on the 2nd", "2 April 2026"),
        ("we move tomorrow", "6 March 2026"),
        ("the exam is on monday", "9 March 2026"),
        ("we signed on monday", "2 March 2026"),
        ("grandma passed away on monday", "2 March 2026"),
        ("the exam is next friday", "13 March 2026"),
        ("term starts on 9 january", "9 January 2027"),
        ("we moved on 9 january", "9 January 2026"),
        ("the flight is on march 20th", "20 March 2026"),
        ("I start next month", "April 2026"),
        ("she retires next year", "2027"),
        ("the baby is due in three weeks", "about 26 March 2026"),
        ("the wedding is next march", "March 2027"),
        ("we get the keys sat the 28th", "28 March 2026"),
        ("they have moved it, and it's on the 21st", "21 March 2026"),
        ("It's Friday the 29th now", "29 May 2026"),
    ]
)
def test_a_day_that_hangs_on_when_it_was_named_has_its_date_in_brackets(text: str, shown: str) -> None:
    assert append_dates(text, SAID) == f"{text} ({shown})"


@every_case(
    [
        "choir is on thursdays",
        "the boiler man comes every march",
        "her birthday is on 4 june",
        "we moved on 9 january 2019",
        "rent is due on the 1st of every month",
        "the 3rd floor is ours",
        "I like tea",
        "the 31st of february",
    ]
)
def test_a_day_that_comes_again_or_stands_by_itself_has_none(text: str) -> None:
    assert append_dates(text, SAID) == text


def test_days_begin_where_the_person_is() -> None:
    late = talk("the surgery is tomorrow at 9 for dad", at=datetime(2026, 3, 5, 23, 30, tzinfo=UTC))
    (there,) = extract_from_conversation(late, timezone(timedelta(hours=2)))
    (here,) = extract_from_conversation(late)
    assert here.statement.content.endswith("(6 March 2026)")
    assert there.statement.content.endswith("(7 March 2026)")


# --------------------------------------------------------------------------------------------------------------- games


def test_f29_what_is_said_in_a_game_is_true_of_nobody_until_it_ends() -> None:
    said = (
        "let's play, you be the detective and I'll be the butler",
        "Very well. Where were you?",
        "I live in the west wing and my sister poisoned the count",
        "Your sister!",
        "ok stop playing. my sister Ann lives in Bonn",
    )
    assert texts(*said) == ["my sister Ann lives in Bonn"]


def test_a_game_begins_in_what_is_read_of_a_giant_message_and_not_behind_it() -> None:
    pasted, game = "nothing much to tell. " * 1000, "let's pretend you are a pirate"
    fact = "my sister Ann lives in Bonn"

    assert texts(f"{game}. {pasted}", "Aye.", fact) == []
    assert texts(f"{pasted}{game}", "Fine.", fact) == [fact]


@every_case(
    [
        (
            "every sunday at 18:00 call mum",
            "set_reminder",
            {"text": "call mum", "when": "every sunday at 18:00"},
            False,
        ),
        ("Jeden Montag um 8 die Tonne", "set_reminder", {"text": "die Tonne", "when": "Jeden Montag um 8"}, False),
        ("My rent is due on the 1st of every month.", "set_reminder", {"text": "rent", "when": "every month"}, True),
        ("every sunday at 18:00 we call mum", "search_history", {"query": "every sunday at 18:00 call mum"}, True),
    ]
)
def test_an_order_that_became_a_reminder_is_no_memory(
    said: str, tool: str, arguments: dict[str, str], learned: bool
) -> None:
    user, answer = talk(said, "Done.")
    answer = replace(answer, tool_calls=(ToolCall("call", tool, arguments),))
    assert bool(extract_from_conversation([user, answer])) is learned
