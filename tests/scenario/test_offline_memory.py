"""People tell offline mode things and ask for them later: through its tools, over days, in several languages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.in_memory import OfflineChat
from tests.support.offline_facts import QUESTIONS, STATEMENTS, UNSEEN_QUESTIONS, UNSEEN_STATEMENTS

NOTHING = "I found nothing"


@pytest.fixture
def home(tmp_path: Path) -> OfflineChat:
    return OfflineChat(tmp_path / "workspace")


def answer_of(reply: str) -> str:
    """The first quotation of a reply; "" when it says that there is none."""
    return reply.split("\n\n")[1] if reply.startswith("You told me") else ""


async def misses(home: OfflineChat, told: tuple[str, ...], asked: tuple[tuple[str, str], ...]) -> list[str]:
    for text in told:
        assert (await home.say(text)).startswith("Noted."), text
    wrong = []
    for question, value in asked:
        home.clear_view()
        reply = await home.say(question)
        right = value in answer_of(reply) if value else reply.startswith(NOTHING)
        wrong += [] if right else [f"{question} -> {reply}"]
    return wrong


async def test_what_was_told_is_found_and_what_was_not_is_not_made_up(home: OfflineChat) -> None:
    assert await misses(home, STATEMENTS, QUESTIONS) == []


async def test_another_persons_facts_are_found_as_well_nine_times_in_ten(home: OfflineChat) -> None:
    missed = await misses(home, UNSEEN_STATEMENTS, UNSEEN_QUESTIONS)
    assert len(missed) <= len(UNSEEN_QUESTIONS) // 10, "\n".join(missed)


async def test_facts_told_early_in_a_long_conversation_are_answered_late(home: OfflineChat) -> None:
    """Thirty turns; the model sees the last eight messages only, so that everything older comes through its tools."""
    home.window = 8
    (home.workspace).mkdir()
    (home.workspace / "packing.txt").write_text("rain coat\nsea boots\n")
    script: list[tuple[str, str]] = [
        ("hi", "Hello."),
        ("My sister is called Hanna and she lives in Tromsø.", "Noted."),
        ("remember that the boat is moored at berth 31", "Noted."),
        ("add paint to my list", "1: paint"),
        ("I'm allergic to peanuts", "Noted."),
        ("Our dog is called Bamse.", "Noted."),
        ("add brushes, sandpaper and tape to my list", "4: tape"),
        ("what time is it?", "Friday 2026-11-20 09:56"),
        ("No, my sister is called Anna, not Hanna", "> My sister is called Hanna"),
        ("The ferry to Kirkenes leaves on 3 June at 07:30.", "Noted."),
        ("thanks", "You're welcome."),
        ("what's on my list?", "3: sandpaper"),
        ("done with tape", "Completed: 4."),
        ("Jeg har bursdag den 9. mai.", "Noted."),
        ("list my files", '"packing.txt"'),
        ("read packing.txt", "> sea boots"),
        ("I moved the boat to berth 12 today.", "Noted."),
        ("write a poem about boats", "can't do that in offline mode"),
        ("Kari borrowed my drill.", "Noted."),
        ("how are you?", "Well, thank you."),
        ("what is my sister called?", "> No, my sister is called Anna, not Hanna"),
        ("where is the boat?", "> I moved the boat to berth 12 today."),
        ("what am I allergic to?", "> I'm allergic to peanuts"),
        ("what is the dog called?", "Bamse"),
        ("When does the ferry to Kirkenes leave?", "07:30"),
        ("Når har jeg bursdag?", "9. mai"),
        ("who has my drill?", "> Kari borrowed my drill."),
        ("what is my cat called?", NOTHING),
        ("remove 2 and 3 from my list", "- 1: paint"),
        ("what's on my list?", "- 1: paint"),
    ]
    assert len(script) == 30
    for text, expected in script:
        reply = await home.say(text)
        assert expected in reply, f"{text} -> {reply}"
    assert [todo.text for todo in home.todos.list_todos("owner")] == ["paint"]


async def test_the_newer_word_is_the_answer_and_says_that_it_replaces_an_older_one(home: OfflineChat) -> None:
    await home.say("the garage code is 4471")
    await home.say("the garage code is 9902")
    reply = await home.say("what's the garage code?")
    assert answer_of(reply) == "> the garage code is 9902"
    assert "It replaces what was said on Fri 2026-11-20" in reply
    assert "4471" not in reply


async def test_what_corrects_without_saying_what_it_is_about_is_the_answer(home: OfflineChat) -> None:
    await home.say("my sister's birthday is 3 may")
    await home.say("no wait, it's june 13th")
    reply = await home.say("when is my sisters bday?")
    assert answer_of(reply) == "> no wait, it's june 13th"
    assert "3 may" not in reply


async def test_a_correction_names_what_it_replaces_and_is_the_answer_from_then_on(home: OfflineChat) -> None:
    await home.say("My brother lives in Trondheim.")
    await home.say("I live in Bergen.")
    reply = await home.say("Actually, I live in Trondheim now")
    assert "It replaces what you told me on Fri 2026-11-20 09:14:\n\n> I live in Bergen." in reply
    reply = await home.say("where do I live?")
    assert answer_of(reply) == "> Actually, I live in Trondheim now"
    assert "It replaces what was said on Fri 2026-11-20 09:14." in reply


async def test_a_bare_correction_is_taken_to_mean_what_was_said_just_before(home: OfflineChat) -> None:
    await home.say("The meeting is on Monday.")
    assert "> The meeting is on Monday." in await home.say("Sorry, it's Tuesday")


async def test_a_correction_names_what_it_replaces_by_its_subject_too_and_what_was_replaced_is_offered_no_more(
    home: OfflineChat,
) -> None:
    await home.say("My dentist is on Tuesday.")
    assert "> My dentist is on Tuesday." in await home.say("no wait, the dentist is on Wednesday")
    for question in ("Which dentist chair is free?", "Where does the dentist park?"):
        assert "Tuesday" not in await home.say(question)


async def test_a_correction_of_nothing_known_is_kept_and_says_so(home: OfflineChat) -> None:
    reply = await home.say("No, the alarm code is 1234")
    assert reply.startswith("Noted. I found nothing earlier that it replaces")


async def test_its_own_answers_and_earlier_questions_are_no_evidence(home: OfflineChat) -> None:
    for _ in range(3):
        assert (await home.say("where is the zebra kept?")).startswith(NOTHING)


async def test_what_it_said_itself_is_found_when_asked_for(home: OfflineChat) -> None:
    await home.say("the boiler was serviced in March")
    await home.say("when was the boiler serviced?")
    reply = await home.say("what did you tell me about the boiler?")
    assert reply.startswith("I told you on ")
    assert "boiler was serviced in March" in reply


async def test_a_topic_gets_everything_that_belongs_to_it(home: OfflineChat) -> None:
    for fact in ("Bamse is seven", "Bamse eats salmon", "the vet saw Bamse in May", "Pelle is a cat"):
        await home.say(fact)
    reply = await home.say("tell me about Bamse")
    assert all(fact in reply for fact in ("seven", "salmon", "vet"))
    assert "Pelle" not in reply


async def test_a_recent_fact_is_found_in_view_where_the_search_cannot_find_it(home: OfflineChat) -> None:
    await home.say("我妹妹叫安娜")
    assert "> 我妹妹叫安娜" in await home.say("我妹妹叫什么名字？")


@pytest.mark.parametrize("role", ["guest", "room"])
async def test_another_person_has_a_memory_and_a_list_of_their_own(home: OfflineChat, role: str) -> None:
    await home.say("the safe code is 7788")
    await home.say("add champagne to my list")
    guest = OfflineChat(home.workspace, role, "peer:x:1", history=home.history, todos=home.todos)
    assert (await guest.say("what is the safe code?")).startswith(NOTHING)
    assert "empty" in await guest.say("what's on my list?")
    assert "can't get at files" in await guest.say("list my files")
    await guest.say("my flight lands at 9")
    assert "lands at 9" in await guest.say("when does my flight land?")


async def test_without_any_tool_it_answers_from_what_is_in_view(home: OfflineChat) -> None:
    home.role = "nobody"
    await home.say("the boat is moored at berth 31")
    assert "> the boat is moored at berth 31" in await home.say("where is the boat?")
    assert (await home.say("where is the car?")).startswith(
        "I found nothing in the messages that I still see that answers this."
    )
    assert "can't get at a to-do list" in await home.say("add milk to my list")
    assert home.todos.list_todos("owner") == []


async def test_a_reminder_goes_on_the_list_with_a_plain_word_that_it_will_not_ring(home: OfflineChat) -> None:
    reply = await home.say("remind me tomorrow to call Anna")
    assert "- 1: call Anna (tomorrow)" in reply
    assert "without an alarm" in reply


async def test_one_of_several_lists_is_shown_by_its_name(home: OfflineChat) -> None:
    await home.say("add milk to my shopping list")
    await home.say("add call the bank to my list")
    assert "bank" not in await home.say("what's on my shopping list?")
    assert "Your packing list is empty." in await home.say("show me my packing list")


async def test_words_that_fit_several_todos_change_none(home: OfflineChat) -> None:
    await home.say("todo: call Anna; call Bo")
    reply = await home.say("done with call")
    assert "say which number" in reply
    assert len(home.todos.list_todos("owner")) == 2


async def test_an_order_that_fits_no_todo_changes_nothing_and_says_so(home: OfflineChat) -> None:
    reply = await home.say("done with the dishes")
    assert "nothing is changed. Your message is kept." in reply
    assert "Noted" not in reply


async def test_asked_what_it_knows_it_shows_the_last_statements_and_no_questions(home: OfflineChat) -> None:
    for text in ("I like tea", "what is my name?", "add milk to my list", "My boat is blue"):
        await home.say(text)
    reply = await home.say("what do you know about me?")
    assert "> I like tea\n> My boat is blue" in reply
    assert "milk" not in reply


async def test_of_a_long_message_the_passage_that_answers_is_quoted(home: OfflineChat) -> None:
    home.role = "nobody"
    filler = "The weather was grey and the sea was calm. " * 60
    await home.say(f"{filler}The old router is in the attic. {filler}")
    reply = await home.say("where is the old router?")
    assert "The old router is in the attic." in reply
    assert len(reply) < 1200
