"""What people say to offline mode every day, and the first thing that it must do about it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from assistant.core.messages import Message, ToolCall
from assistant.core.model_api import ModelReply, ModelRequest, ToolSpec
from assistant.models.offline.model import OfflineModel
from assistant.models.offline.parse import parse_message, parse_sentence
from sleep.rules.sentences import split_sentences
from tests.support.sentence_tables import every_case

NOTHING = {"list_reminders": "No reminder is waiting.", "manage_todo_list": "To-do list: 0 open"}
Expectation = Callable[[Message], None]
TOOLS = tuple(
    ToolSpec(name, "", {"type": "object", "properties": {}})
    for name in (
        "search_history",
        "read_history",
        "manage_todo_list",
        "current_time",
        "list_files",
        "read_file",
        "set_reminder",
        "list_reminders",
        "cancel_reminder",
    )
)


def calls(name: str, **arguments: object) -> Expectation:
    """Exactly one call, with exactly these arguments."""

    def check(reply: Message) -> None:
        assert [(call.name, dict(call.arguments)) for call in reply.tool_calls] == [(name, arguments)]

    return check


def looks_up(name: str) -> Expectation:
    """Nothing is changed, and this is shown."""

    def check(reply: Message) -> None:
        assert not reply.tool_calls
        assert name in reply.metadata["looked_up"]

    return check


def todo(action: str, **arguments: object) -> Expectation:
    return calls("manage_todo_list", action=action, **arguments)


def remind(text: str, when: str) -> Expectation:
    return calls("set_reminder", text=text, when=when)


def asks(*words: str, role: str = "user") -> Expectation:
    """One search in what `role` said, for these words among others, and for none of the words questions are made of."""

    def check(reply: Message) -> None:
        call = only_call(reply)
        assert call.name == "search_history"
        assert call.arguments["role"] == role
        query = set(re.findall(r"\w+", str(call.arguments["query"]).casefold()))
        assert set(words) <= query
        assert not query & {
            "what",
            "who",
            "when",
            "where",
            "my",
            "is",
            "the",
            "tell",
            "remember",
            "did",
            "you",
            "about",
        }

    return check


def says(pattern: str) -> Expectation:
    def check(reply: Message) -> None:
        assert not reply.tool_calls
        assert re.search(pattern, reply.content, re.IGNORECASE), reply.content

    return check


def only_call(reply: Message) -> ToolCall:
    assert len(reply.tool_calls) == 1, reply
    return reply.tool_calls[0]


NOTED = says(r"^Noted\.|it is noted")
HELP = says(r"offline(.|\n)*remember(.|\n)*list")
HELLO = says(r"^(hello|good)\b")
CANNOT = says(r"(can't|cannot).*offline|offline.*(can't|cannot)")
TIME = calls("current_time")
LIST = looks_up("manage_todo_list")
FILES = calls("list_files")

TABLE: list[tuple[str, Expectation]] = [
    # told
    ("remember that my sister is called Anna", NOTED),
    ("note: the boiler was serviced on 3 March", NOTED),
    ("Please remember that I'm allergic to peanuts.", NOTED),
    ("I live in Bergen.", NOTED),
    ("My car is a blue Volvo.", NOTED),
    ("fyi the spare key is under the flowerpot", NOTED),
    ("Keep in mind that Tom doesn't drink coffee", NOTED),
    ("note to self: passport expires in June 2031", NOTED),
    ("My wifi password is tulip-42", NOTED),
    ("I was born in 1984", NOTED),
    ("We had dinner at Lola's yesterday, it was lovely.", NOTED),
    ("The plumber's number is 555 0134.", NOTED),
    ("Jeg bor i Oslo.", NOTED),
    ("Meine Schwester heißt Anna.", NOTED),
    ("Don't forget that Friday is a holiday", NOTED),
    ("I am tired", NOTED),
    ("Odio el cilantro", NOTED),
    ("prefiero el té", NOTED),
    ("https://example.org/article is worth reading", NOTED),
    ("Dr. Smith will see me on 4 May at 10:30.", NOTED),
    ("1234 5678", NOTED),
    ("Today was a long day. I met Tom and we talked about his boat. He sails to Shetland in June.", NOTED),
    # told, though it looks like something else
    ("I read notes on chess today", NOTED),
    ("My list of favourites is long", NOTED),
    ("The time is ripe", NOTED),
    ("I have two files to read tomorrow", NOTED),
    ("Add salt when the water boils", NOTED),
    ("Hi-fi repair shop: 555 7788", NOTED),
    ("Help arrived at noon", NOTED),
    ("What a day!", NOTED),
    # put right
    ("No, my sister is called Anna, not Hanna", asks("sister")),
    ("Actually, I live in Trondheim now", asks("live")),
    ("Correction: the meeting is at 10", asks("meeting")),
    ("I meant Tuesday, not Monday.", asks("monday")),
    ("That's wrong, the code is 9911", asks("code")),
    ("Not Bergen but Trondheim", asks("bergen")),
    # asked
    ("What is my sister called?", asks("sister")),
    ("what's my sister's name", asks("sister")),
    ("Where do I live?", asks("live")),
    ("when is my dentist appointment?", asks("dentist", "appointment")),
    ("Do you remember what car I have?", asks("car")),
    ("who is Anna", asks("anna")),
    ("tell me about Anna", asks("anna")),
    ("what did I say about the boat?", asks("boat")),
    ("What did I tell you about my sister?", asks("sister")),
    ("search for boiler", asks("boiler")),
    ("find what I said about the boiler", asks("boiler")),
    ("Wie heißt meine Schwester?", asks("schwester")),
    ("Hvor bor jeg?", asks("bor")),
    ("do I have any allergies?", asks("allergies")),
    ("How old is my car?", asks("car")),
    ("what is the wifi password again?", asks("wifi", "password")),
    ("Can you tell me where the spare key is?", asks("spare", "key")),
    ("have I ever mentioned Lola's?", asks("lola")),
    ("whats the weather tomorrow", asks("weather")),
    ("wie wird das Wetter morgen", asks("wetter")),
    ("what colour is my car", asks("colour", "car")),
    ("Did I say when the boiler was serviced?", asks("boiler", "serviced")),
    ("remind me what Tom drinks", asks("tom", "drinks")),
    ("What's the capital of France?", asks("capital", "france")),
    ("Où est-ce que j'habite ?", asks("habite")),
    ("is Friday a holiday?", asks("friday", "holiday")),
    ("hey, what's the code for the garage again please?", asks("code", "garage")),
    ("what did you tell me about the boiler?", asks("boiler", role="assistant")),
    ("What do you know about me?", says(r"ask")),
    # to-dos
    ("add milk to my list", todo("add", items=["milk"])),
    ("Add milk, eggs and bread to my list.", todo("add", items=["milk", "eggs", "bread"])),
    ("add tea to my shopping list", todo("add", items=["tea"], list="shopping")),
    ('put "renew passport" on my to-do list', todo("add", items=["renew passport"])),
    ("todo: call the bank", todo("add", items=["call the bank"])),
    ("todo call the bank", todo("add", items=["call the bank"])),
    ("à faire : peindre l'abri", todo("add", items=["peindre l'abri"])),
    ("apunta devolver el libro en mi lista para mañana", todo("add", items=["devolver el libro"], due="para mañana")),
    ("to-do: buy stamps; water plants", todo("add", items=["buy stamps", "water plants"])),
    ("please add calling mum to my todos", todo("add", items=["calling mum"])),
    ("remember to buy milk", todo("add", items=["buy milk"])),
    ("Don't forget to water the plants!", todo("add", items=["water the plants"])),
    ("remind me to call Anna", todo("add", items=["call Anna"])),
    # reminders
    ("remind me to call Anna tomorrow", remind("call Anna", "tomorrow")),
    ("Remind me to call mum tomorrow at 9, please.", remind("call mum", "tomorrow at 9")),
    ("remind me tomorrow at 9 to call mum", remind("call mum", "tomorrow at 9")),
    ("can you remind me in 20 minutes to feed the cat?", remind("feed the cat", "in 20 minutes")),
    ("remind me every weekday at 8:30 to stretch", remind("stretch", "every weekday at 8:30")),
    ("what reminders do I have?", looks_up("list_reminders")),
    ("show my reminders", looks_up("list_reminders")),
    ("reminders", looks_up("list_reminders")),
    ("cancel reminder 3", calls("cancel_reminder", id=3)),
    ("delete reminder #3", calls("cancel_reminder", id=3)),
    # the list again
    ("can you add oat milk to the list?", todo("add", items=["oat milk"])),
    ("add call Anna and Bob to my list", todo("add", items=["call Anna and Bob"])),
    ("add call Dr. Smith to my list", todo("add", items=["call Dr. Smith"])),
    ("add to my list:\n- milk\n- eggs", todo("add", items=["milk", "eggs"])),
    ("what's on my list?", LIST),
    ("show my to-dos", LIST),
    ("my list", LIST),
    ("todos", LIST),
    ("what do I have to do today?", LIST),
    ("list my tasks", LIST),
    ("what's left to do?", LIST),
    ("show me my shopping list", LIST),
    ("done with 3", todo("complete", ids=[3])),
    ("mark 2 as done", todo("complete", ids=[2])),
    ("finished 2 and 4", todo("complete", ids=[2, 4])),
    ("complete 1", todo("complete", ids=[1])),
    ("I've done #3", todo("complete", ids=[3])),
    ("tick off 5, please", todo("complete", ids=[5])),
    ("3 is done", todo("complete", ids=[3])),
    ("done with milk", LIST),
    ("check off bread", LIST),
    ("remove 2 from my list", todo("remove", ids=[2])),
    ("delete 3", todo("remove", ids=[3])),
    ("remove milk from my list", LIST),
    ("take eggs off my list", LIST),
    ("clear my list", todo("clear", list="to-do")),
    # it may be about a to-do
    ("I finished 2 books", LIST),
    # time
    ("what time is it?", TIME),
    ("what's the date today", TIME),
    ("What day is it today?", TIME),
    ("which week is it", TIME),
    ("wie spät ist es?", TIME),
    ("hva er klokka?", TIME),
    # files and messages
    ("list my files", FILES),
    ("what files do I have?", FILES),
    ("show the files in notes", calls("list_files", path="notes")),
    ("read todo.txt", calls("read_file", path="todo.txt")),
    ("open notes/plan.md please", calls("read_file", path="notes/plan.md")),
    ('show me "my plan.txt"', calls("read_file", path="my plan.txt")),
    ("what's in notes/plan.md?", calls("read_file", path="notes/plan.md")),
    ("show message 12", calls("read_history", message_id=12)),
    ("read #12", calls("read_history", message_id=12)),
    ("what was #7?", calls("read_history", message_id=7)),
    # talk
    ("hi", HELLO),
    ("Good morning!", HELLO),
    ("hello there", HELLO),
    ("thanks", says("welcome")),
    ("Thank you very much!", says("welcome")),
    ("ok", says(r"^(all right|fine|good)")),
    ("yes please", says(r"^(all right|fine|good)")),
    ("no", says(r"^(all right|fine|good)")),
    ("bye", says(r"^(goodbye|bye|until)")),
    ("good night", says(r"^(goodbye|good night|bye|until)")),
    ("how are you?", says("thank")),
    ("Coucou", HELLO),
    ("Buenas", HELLO),
    ("morning!", HELLO),
    ("super, danke dir!", says("welcome")),
    ("génial merci beaucoup", says("welcome")),
    ("cheers, that's great", says("welcome")),
    ("Buenas noches", says("^goodbye")),
    ("bonne nuit", says("^goodbye")),
    ("schon gut", says(r"^all right")),
    ("Ayuda", HELP),
    ("help", HELP),
    ("what can you do?", HELP),
    ("who are you?", HELP),
    ("are you online?", HELP),
    ("?", HELP),
    # beyond offline mode
    ("write a poem about autumn", CANNOT),
    ('translate "hello" to French', CANNOT),
    ("summarise my week", CANNOT),
    ("please send an email to Bob", CANNOT),
    ("tell me a joke", CANNOT),
    ("can you book a table for two?", CANNOT),
    ("help me write a letter", CANNOT),
    ("say good night to Alexa for me and lock the front door", CANNOT),
    ("busca en google el horario del museo", CANNOT),
    ("hazle un bizum de cincuenta euros a mi hermano", CANNOT),
    ("dis bonne nuit à Alexa et verrouille la porte d'entrée", CANNOT),
    ("sag Alexa gute Nacht und schließ die Haustür ab", CANNOT),
    ("was sind 17 Prozent von 240", says(r"^17% of 240 = 40\.8")),
    ("forget what I said about Anna", says(r"(can't|cannot) .*forget|forget.*(can't|cannot)")),
    # several at once
    ("My sister is Anna. What's on my list?", LIST),
    ("Thanks! Remember that the boiler code is 42.", NOTED),
]


def test_a_greeting_of_one_word_means_the_same_as_where_all_is_read() -> None:
    for word in ("hi", "Hello", "Bonjour!", "hola?", "thanks", "Danke.", "ok", "no", "bye"):
        assert parse_message(word) == (parse_sentence(split_sentences(word)[0]),), word


async def first_reply(text: str, *, tools: tuple[ToolSpec, ...] = TOOLS) -> Message:
    """What is done or said first for a person who has no reminders and no to-dos; what was looked up before is in
    `metadata["looked_up"]`."""
    messages = [Message("user", text, id=41)]
    looked_up: list[str] = []
    while True:
        events = [event async for event in OfflineModel().stream(ModelRequest((), tuple(messages), tools))]
        assert isinstance(events[-1], ModelReply)
        reply = events[-1].message
        looks = [call for call in reply.tool_calls if _is_look(call)]
        if not looks or len(looks) < len(reply.tool_calls):
            return replace(reply, metadata={"looked_up": tuple(looked_up)})
        looked_up += [call.name for call in looks]
        messages += [reply, *(Message("tool", NOTHING[call.name], tool_call_id=call.id) for call in looks)]


def _is_look(call: ToolCall) -> bool:
    return call.name == "list_reminders" or (call.name == "manage_todo_list" and call.arguments.get("action") == "list")


@every_case(TABLE)
async def test_an_everyday_utterance_is_understood(text: str, expectation: Expectation) -> None:
    reply = await first_reply(text)
    assert reply.role == "assistant"
    expectation(reply)


@every_case([text for text, _ in TABLE])
async def test_without_tools_every_utterance_gets_words_and_no_call(text: str) -> None:
    reply = await first_reply(text, tools=())
    assert reply.content.strip()
    assert not reply.tool_calls


async def test_several_requests_in_one_message_are_worked_on_side_by_side() -> None:
    reply = await first_reply("Hi! Add milk to my list. And what time is it?")
    assert [call.name for call in reply.tool_calls] == ["manage_todo_list", "current_time"]
    assert len({call.id for call in reply.tool_calls}) == 2


@every_case([" " * 60_000, "a " * 30_000, f"remind me {' ' * 60_000}x", "\n" * 60_000, "list " * 20_000])
async def test_a_text_of_any_length_is_answered_in_words(text: str) -> None:
    assert (await first_reply(text, tools=())).content.strip()
