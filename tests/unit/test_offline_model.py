"""Offline mode as a model: deterministic, streamed, honest about what it is and about what no result shows."""

from __future__ import annotations

import subprocess
import sys

import pytest

from assistant.context.normalise import ABORTED_RESULT, normalise
from assistant.context.tokens import estimate_tokens
from assistant.context.truncate import truncate_to_reference
from assistant.core.errors import ModelError
from assistant.core.messages import ABORTED_MARKER, LogByteRange, Media, Message, ToolCall
from assistant.core.model_api import ModelReply, ModelRequest, SystemBlock, TextDelta
from assistant.core.quoting import QuotedMessage, format_quote
from assistant.core.records import LogLocation
from assistant.core.time_pieces import find_times
from assistant.models.offline.model import LIMITS, OfflineModel
from assistant.models.offline.parse import parse_message
from assistant.models.offline.ranking import content_words
from tests.support.offline_replies import TOOLS, answers, found, reply_to, user

INTRODUCTION = "This is offline mode (no language model)"


async def test_the_same_request_gives_the_same_calls_with_the_same_ids() -> None:
    first = (await reply_to(user("What time is it? And what's on my list?"))).message
    again = (await reply_to(user("What time is it? And what's on my list?"))).message
    assert first == again
    assert [call.id for call in first.tool_calls] == ["offline_41_0_0", "offline_41_1_0"]
    other = (await reply_to(user("What time is it?", id=42))).message
    assert not {call.id for call in other.tool_calls} & {call.id for call in first.tool_calls}


async def test_a_turn_taken_up_after_a_crash_asks_only_for_what_is_missing() -> None:
    question = user("What time is it? And what's on my list?")
    asked = (await reply_to(question)).message
    half = Message("tool", "Friday 2026-11-20 09:00", tool_call_id=asked.tool_calls[0].id, name="current_time")
    again = (await reply_to(question, asked, half)).message
    assert [call.name for call in again.tool_calls] == ["manage_todo_list"]
    assert again.tool_calls[0].id == asked.tool_calls[1].id


async def test_calls_that_another_model_made_in_this_turn_are_not_taken_for_its_own() -> None:
    theirs = Message("assistant", tool_calls=(ToolCall("toolu_1", "current_time"),), model="claude")
    result = Message("tool", "Friday", tool_call_id="toolu_1", name="current_time")
    reply = (await reply_to(user("what time is it?"), theirs, result)).message
    assert [call.id for call in reply.tool_calls] == ["offline_41_0_0"]


async def test_it_streams_in_words_and_says_what_it_estimated() -> None:
    request = ModelRequest((SystemBlock("x" * 400),), (user("hi"),), TOOLS)
    *deltas, last = [event async for event in OfflineModel().stream(request)]
    assert isinstance(last, ModelReply)
    pieces = [event.text for event in deltas if isinstance(event, TextDelta)]
    assert "".join(pieces) == last.message.content
    assert len(pieces) == len(last.message.content.split())
    assert (last.estimated, last.stop, last.usage.cost_usd) == (True, "end", 0.0)
    assert last.usage.input > 100
    assert last.message.model == OfflineModel().name == "offline"


async def test_an_answer_longer_than_allowed_is_cut_and_says_so() -> None:
    reply = await reply_to(user("help"), max_output_tokens=20)
    assert reply.stop == "max_tokens"
    assert len(reply.message.content) == 80


async def test_a_request_past_its_window_is_an_overflow() -> None:
    limits = await OfflineModel().limits()
    assert limits == LIMITS
    assert limits.window == 32_000
    with pytest.raises(ModelError) as caught:
        await reply_to(user("x" * (limits.window * 4 + 100)))
    assert caught.value.kind == "overflow"
    await reply_to(user("x" * (limits.window * 4 - 4000)))


async def test_the_volatile_block_counts_towards_the_window() -> None:
    with pytest.raises(ModelError):
        await reply_to(user("hi", metadata={"volatile": "x" * 130_000}))


@pytest.mark.parametrize("purpose", ["summary", "extraction", "sleep_summary", "scoring", "consolidation", "embedding"])
async def test_it_makes_nothing_but_conversation(purpose: str) -> None:
    with pytest.raises(ModelError) as caught:
        async for _ in OfflineModel().stream(ModelRequest((), (user("hi"),)), purpose):  # type: ignore[arg-type]
            pass
    assert caught.value.kind == "bad_request"


async def test_it_says_that_it_is_offline_at_first_contact_and_not_again() -> None:
    first = (await reply_to(user("hi", id=1))).message
    assert INTRODUCTION in first.content
    second = (await reply_to(user("hi", id=1), first, user("I like tea", id=3))).message
    assert "offline" not in second.content


async def test_it_introduces_itself_when_it_takes_over_from_another_model() -> None:
    before = (user("hi", id=1), Message("assistant", "Hello!", model="claude-sonnet"))
    assert INTRODUCTION in (await reply_to(*before, user("I like tea", id=3))).message.content


def test_it_needs_no_network_no_provider_and_no_web_framework() -> None:
    code = """
import asyncio, sys
from assistant.core.messages import Message
from assistant.models.offline.model import OfflineModel
from assistant.core.model_api import ModelRequest

connected = []
network = ("socket.connect", "socket.getaddrinfo")
sys.addaudithook(lambda event, args: connected.append(event) if event in network else None)

async def converse():
    for text in ("hi", "where is the key?", "help"):
        async for _ in OfflineModel().stream(ModelRequest((), (Message("user", text),))):
            pass

asyncio.run(converse())
heavy = {"anthropic", "openai", "httpx", "fastapi", "numpy", "tiktoken", "rich"}
print(connected, sorted(heavy & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] []"


async def test_notes_of_the_runtime_are_not_taken_for_the_persons_words() -> None:
    view = (
        user("what is on my list?", id=1),
        Message("system", f"{ABORTED_MARKER} Stopped. Where is the key? Add milk to my list.", id=2),
        user("what time is it?", id=3),
    )
    reply = (await reply_to(*normalise(view))).message
    assert [call.name for call in reply.tool_calls] == ["current_time"]


async def first_search(*view: Message) -> ToolCall:
    """The first search, for a person who has no reminders and no to-dos."""
    messages = list(view)
    while True:
        reply = (await reply_to(*messages)).message
        searches = [call for call in reply.tool_calls if call.name == "search_history"]
        if searches:
            return searches[0]
        assert reply.tool_calls
        results = {"list_reminders": "No reminder is waiting.", "manage_todo_list": "To-do list: 0 open"}
        messages += [reply, *(Message("tool", results[call.name], tool_call_id=call.id) for call in reply.tool_calls)]


async def test_a_person_cannot_hide_words_behind_the_runtimes_boundary() -> None:
    view = normalise((user("<runtime-note>x</runtime-note> what time is it?"),))
    call = await first_search(*view)
    assert {"runtime", "note", "x", "time"} <= set(str(call.arguments["query"]).split())


async def test_a_change_that_no_result_shows_is_not_claimed() -> None:
    for result in (
        ABORTED_RESULT,
        "[interrupted] manage_todo_list was running",
        "Error: The disk is full.",
        "something else",
    ):
        reply = await answers(user("add milk to my list"), result)
        assert "Added" not in reply.content
        assert not reply.tool_calls
    listed = 'To-do list: 1 open\n- [ ] 3: "milk"'
    reply = await answers(user("done with 3"), "No reminder is waiting.", listed, listed)
    assert "Completed" not in reply.content
    assert "can't say what happened" in reply.content


async def test_a_failed_search_is_told_and_what_is_in_view_still_serves() -> None:
    before = (user("the key is under the mat", id=3), Message("assistant", "Noted.", model="offline"))
    reply = await answers(user("where is the key?"), "Error: The disk cannot be read.", before=before)
    assert "> the key is under the mat" in reply.content
    assert "The search failed" in reply.content


async def test_a_failed_tool_passes_its_reason_on() -> None:
    reply = await answers(user("add milk to my list"), "Error: The disk is full. Nothing was changed.")
    assert reply.content.startswith("That did not work: The disk is full. Nothing was changed.")
    reply = await answers(user("read a.txt"), 'Error: "a.txt" is not there. list_files shows what is.')
    assert reply.content.startswith('That did not work: "a.txt" is not there.')


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        ('manage_todo_list was not run: items.0 should have at least 1 character, not "". Its arguments: items.', ""),
        ("manage_todo_list took longer than 5 s and was stopped.", "it took longer than 5 s and was stopped."),
        ("The disk is full. list_reminders shows what is.", "The disk is full."),
    ],
)
async def test_a_failed_tool_is_told_without_names_of_tools_and_arguments(result: str, shown: str) -> None:
    told = shown or "I did not understand what it is about. Nothing was changed; say it in other words."
    reply = await answers(user("add milk to my list"), f"Error: {result}")
    assert reply.content.split("\n")[0] == f"That did not work: {told}"


async def test_in_a_room_the_answer_names_who_said_it() -> None:
    line = format_quote(QuotedMessage(7, "Fri 2026-11-20 09:00", "user", "the key is under the mat", "Bo"))
    reply = await answers(user("where is the key?"), f"1 found\n{line}")
    assert reply.content.startswith("Bo told me on Fri 2026-11-20 09:00:")


async def test_quoted_words_stay_inside_their_quotation() -> None:
    reply = await answers(user("where is the key?"), found((7, "the key is here\n\nNoted, as #1.\x1b[2J")))
    assert "\n> the key is here\n> \n> Noted, as #1.\N{REPLACEMENT CHARACTER}[2J" in reply.content


async def test_questions_are_no_answers_and_the_newest_statement_wins() -> None:
    lines = found((9, "where is the key?"), (3, "the key is on the hook"), (5, "the key is under the mat"))
    reply = await answers(user("where is the key?"), lines)
    assert reply.content.index("under the mat") < reply.content.index("on the hook")
    assert "> where is the key?" not in reply.content


async def test_what_was_said_to_put_something_right_is_the_answer_though_it_fits_less_well() -> None:
    lines = found((3, "I live in Oslo."), (9, "Actually we moved to Bergen last week."))
    reply = await answers(user("where do I live?"), lines)
    assert reply.content.index("Bergen") < reply.content.index("It replaces what was said on")
    assert "Oslo" not in reply.content


async def test_what_names_what_it_takes_the_place_of_is_the_answer() -> None:
    lines = found((3, "We live in Kreuzberg, third floor."), (9, "We moved from Kreuzberg to Pankow last weekend."))
    reply = await answers(user("where do I live?"), lines)
    assert "to Pankow" in reply.content
    assert "third floor" not in reply.content


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ("Delete everything about my locker", "locker"),
        ("please forget everything I said about the dentist", "dentist"),
        ("Lösch alles über meine Katze", "katze"),
        ("oublie tout sur le code", "code"),
        ("borra todo sobre mi gato", "gato"),
    ],
)
async def test_who_wants_all_of_something_erased_is_told_how_and_that_nothing_is_yet(said: str, what: str) -> None:
    reply = await answers(user(said))
    assert reply.content.startswith(f"Nothing is erased yet. `/forget {what}` shows")


@pytest.mark.parametrize("said", ["delete everything about milk from my list", "forget everything about the reminder"])
async def test_who_wants_something_off_a_list_is_not_told_to_erase(said: str) -> None:
    assert (
        "Nothing is erased yet" not in (await answers(user(said), "No reminder is set.", "To-do list: 0 open")).content
    )


async def test_another_word_for_the_same_thing_answers() -> None:
    reply = await answers(
        user("when do I take out the trash?"), "To-do list: 0 open", found((3, "The bins go out on Thursday."))
    )
    assert "on Thursday" in reply.content


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("whats pedros number", "the boiler guy is called Pedro, his number is 0171 5553321"),
        ("and whens lenas first day of school", "Lena's first day of school is September 7th"),
        ("cest quoi le numéro de pedro", "le chauffagiste s'appelle Pedro, son numéro est le 0171 5553321"),
    ],
)
async def test_a_question_without_its_apostrophe_is_answered(asked: str, said: str) -> None:
    reply = await answers(user(asked, id=41), found((3, said)))
    assert f"> {said}" in reply.content


async def test_how_long_something_takes_is_asked_of_what_it_is_called_by() -> None:
    told = "ich hab ab montag nachtschicht, immer von 22 bis 6"
    for asked in ("wie lang geht die nachtschicht", "wie lange dauert die nachtschicht?"):
        reply = await answers(user(asked, id=41), found((3, told)))
        assert f"> {told}" in reply.content and "found nothing" not in reply.content
    reply = await answers(user("how long is my night shift?", id=41), found((3, "my night shift is 8 hours")))
    assert "> my night shift is 8 hours" in reply.content and "Nothing is planned" not in reply.content


async def test_a_question_of_one_language_is_no_answer_in_another() -> None:
    told = "ich hab ab montag nachtschicht, immer von 22 bis 6"
    asked = found((3, told), (5, "bis wann geht die nachtschicht"))
    reply = await answers(user("was ist mit der nachtschicht", id=41), asked, asked)
    assert f"> {told}" in reply.content and "> bis wann" not in reply.content


async def test_the_question_itself_is_never_its_answer() -> None:
    reply = await answers(user("key key key. the key?", id=41), found((41, "the key. the key?")))
    assert reply.content.count("> the key.") == 0


async def test_a_question_without_a_single_word_to_search_by_is_asked_back() -> None:
    reply = (await reply_to(user("what is it?"))).message
    assert not reply.tool_calls
    assert "a word that was in it" in reply.content


async def test_a_long_text_is_kept_and_only_its_ends_are_read_as_requests() -> None:
    page = "Add milk to my list. " * 200
    reply = (await reply_to(user(f"For the record. {page}\n\nSo: fine. What time is it?"))).message
    assert [call.name for call in reply.tool_calls] == ["current_time"]
    reply = (await reply_to(user("For the record:\n" + page + "\nThat was all."))).message
    assert reply.content.startswith("Noted.")
    assert not reply.tool_calls


async def test_of_a_message_that_was_cut_its_ends_are_read_and_not_the_words_of_the_cut() -> None:
    book = "The sea was calm, and nobody spoke. " * 3_000
    place = LogLocation("main", "log/main/conversation.jsonl", LogByteRange(0, 99))
    shown = truncate_to_reference(
        user(f"Keep this book. {book}\n\nWhere is the spare key?"), place, 1_000, estimate_tokens
    )
    call = await first_search(shown)
    assert set(call.arguments["query"].split()) >= {"spare", "key"}
    assert not {"message", "left", "bytes"} & set(call.arguments["query"].split())


@pytest.mark.parametrize(
    "text",
    [
        "," * 2000,
        "?" * 2000,
        "a " * 1000,
        "no no no " * 200,
        "add " * 400,
        "#" * 2000,
        "> \n" * 600,
        "'" * 2000,
        "not " * 90,
    ],
)
async def test_odd_texts_get_an_answer(text: str) -> None:
    assert await reply_to(user(text))


async def test_a_picture_is_kept_and_its_limits_are_said() -> None:
    reply = (await reply_to(user("", media=(Media("image", "image/png", "cat.png"),)))).message
    assert "can't look at cat.png offline" in reply.content


async def test_a_request_without_a_person_in_it_gets_words() -> None:
    assert (await reply_to(Message("user", "<runtime-note>x</runtime-note>", metadata={"note": True}))).message.content


def test_a_name_inside_a_sentence_is_no_stop_word() -> None:
    assert content_words("Where does Will live?") == ["will", "live"]
    assert content_words("where will we live") == ["live"]


@pytest.mark.parametrize("name", ["brief", "it's [Ada's], due ]"])
async def test_a_scheduled_prompt_is_answered_by_what_it_asks(name: str) -> None:
    asked = user(f"[Scheduled prompt {name!r}, due Sunday 2026-03-01 10:00, late]\nWhat is on my list?")
    reply = await answers(asked, "To-do list: 0 open")
    assert reply.content.startswith("Your to-do list is empty.") and "Noted" not in reply.content


def test_a_greeting_needs_none_of_the_patterns_of_times() -> None:
    """Compiling them was a fifth of `assistant chat -m hi`."""
    before = find_times.cache_info()
    assert parse_message("Hi!")
    assert find_times.cache_info() == before
    assert parse_message("On Thursday my son comes. Wake me at six.")
    assert find_times.cache_info() != before
