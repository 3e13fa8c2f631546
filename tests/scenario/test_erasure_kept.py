"""Forgetting takes what was asked for and what was made of it, and no other words: a noun, a name or a word that was
said of something else stays there, in whatever case or language it stands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from assistant.core.erasure import ErasureRequest
from assistant.core.profiles import Profile, ProfileAttribute
from tests.support.compactions import live_messages, plan_compaction, summary_message
from tests.support.erasure_home import DAY, KEPT_FACT, ErasureHome
from tests.support.semantic_memory import make_memory
from tests.support.store_home import NOW, memory_backed_directory

# What is forgotten, and what was said of something else with a word of it.
PAIRS = {
    "a German noun and an English one": (
        'Das Motto von Kebalufo ist "zepo mira nilo".',
        'The motto of Bapozoti is "guvunado lemi".',
    ),
    "an English name and a word": ("I told Rose and Mark that the till is open.", "She leaves a mark on every rose."),
    "a German noun and a verb": ("Der Code liegt im Schrank neben dem Essen.", "Wir essen um acht, sagt Papa."),
    "a French noun": ("Le Portail de Clairefontaine est rouillé.", "le portail du jardin est bleu"),
    "a Spanish noun": ("La Notaria de Zubizarreta se llama Inés.", "mi notaria llama a las cinco"),
    "capitals": ("MY GARAGE OPENS WITH A BLUE KEY AT ERLENHOF", "My garage is full of bikes."),
    "a month and a day": ("Anna was born on 3 June 1961.", "In June 2024 Anna moved to Bergen."),
    "a number of its own": ("The safe of Kebalufo opens with 48213.", "We drove 148213 km, then 4821 more."),
    "a street and a name": ("Kebalufo lives at Lindenweg 12.", "The Lindenweg is closed on Monday."),
    "two people of one name": ("Anna Kebalufo owes me 300 euros.", "Anna Bapozoti is my dentist."),
}

ONE_MESSAGE = {"messages": 1, "what the model sees": 1, "messages as they arrived": 1}


@pytest.fixture
def home() -> Iterator[ErasureHome]:
    with memory_backed_directory() as path:
        opened = ErasureHome(path / "home").open()
        yield opened
        opened.close()


def _keep(home: ErasureHome, text: str) -> None:
    """Said, and stored in every place where what was said goes."""
    home.say(text, f"I keep in mind: {text}")
    home.todos.add("owner", [text], "kept", NOW)
    home.pins.add("main", "owner", text, "user", None, NOW)
    home.add_entry("kept", text, [1])
    home.add_entry("summary", f"They met.\n{text}", [1, 2], source_type="context_synthesis")
    home.add_memory(make_memory(text, "owner", entries=(1,)))
    home.files.replace_memory_file(f"- {text}\n", "", "model", NOW)
    home.files.append_daily_note("owner", DAY, "10:00", [text], "kept")
    about = ProfileAttribute("it is so", text, NOW, sources=(1,))
    home.profiles.save(Profile("owner", "thing", "Something", (), text, (about,)), "model", NOW)


async def _kept_texts(home: ErasureHome) -> list[object]:
    return [
        *home.view_contents()[:2],
        *(todo.text for todo in home.todos.list_todos("owner")),
        *(pin.text for pin in home.pins.list_pins("main")),
        *(entry.content for entry in home.journal.entries("owner")),
        *(memory.text for memory in await home.memories.all("owner")),
        home.files.read_memory_file(),
        home.files.read_daily_note("owner", DAY),
        *home.profiles.list_profiles("owner"),
    ]


@pytest.mark.parametrize("by_text", [False, True], ids=["by number", "by text"])
@pytest.mark.parametrize("name", PAIRS)
async def test_what_another_message_said_of_something_else_stays(home: ErasureHome, name: str, by_text: bool) -> None:
    told, kept = PAIRS[name]
    _keep(home, kept)
    before = await _kept_texts(home)
    home.say(told, "All right.")
    named = " ".join(told.split()[:4])
    request = ErasureRequest("owner", text=named) if by_text else ErasureRequest("owner", messages=(3,))
    preview = await home.erasure.preview(request)
    assert {place.kind: place.count for place in preview.places} == ONE_MESSAGE
    await home.erasure.erase(request, NOW)
    assert await _kept_texts(home) == before
    assert home.files_containing([told[:20].lower().encode()]) == []


async def test_how_a_model_words_what_it_learns_takes_no_other_entry_with_it(home: ErasureHome) -> None:
    """ "Told: the address of" is in no message, and in each entry."""
    texts = [
        f"Told: the address of {name} is {street}." for name, street in (("Kebalu", "Sare 81"), ("Bapo", "Tera 67"))
    ]
    for number, text in enumerate(texts):
        home.say(text.removeprefix("Told: "), "All right.")
        home.add_entry(f"k{number}", text, [1 + 2 * number])
    home.files.replace_memory_file("".join(f"- {text}\n" for text in texts), "", "model", NOW)
    await home.erasure.erase(ErasureRequest("owner", entries=(1,)), NOW)
    assert home.files.read_memory_file() == f"- {texts[1]}\n"
    assert [entry.content for entry in home.journal.entries("owner")] == texts[1:]


@pytest.mark.parametrize(
    ("text", "told", "others"),
    [
        (
            "Anna",
            ["Anna Kebalufo owes me 300.", "Annas Bruder ruft an.", "I met ANNA."],
            ["Joanna called.", "Susanna."],
        ),
        ("2024", ["We married in 2024.", "Code 2024-x"], ["My number is 12024567.", "It is 20245."]),
        ("rose", ["A rose for her.", "Two roses."], ["He wrote prose.", "Prices rise."]),
    ],
)
async def test_a_common_word_takes_what_has_it_as_a_word_and_the_preview_says_so(
    home: ErasureHome, text: str, told: list[str], others: list[str]
) -> None:
    for said in (*told, *others):
        home.say(said, "All right.")
    request = ErasureRequest("owner", text=text)
    preview = await home.erasure.preview(request)
    assert [message.excerpt for message in preview.first_messages] == told
    assert {place.kind: place.count for place in preview.places} == dict.fromkeys(ONE_MESSAGE, len(told))
    done = await home.erasure.erase(request, NOW)
    assert done.leftovers == () and done.complete
    kept = home.view_contents()
    assert [said for said in (*told, *others) if said in kept] == others


async def test_the_lines_of_a_summary_around_the_one_that_goes_stay(home: ErasureHome) -> None:
    home.say("My wifi password is Hunter2-blue", "Noted.")
    home.say("What is my boat called?", KEPT_FACT)
    lines = [f"- #{number} 2026-11-28 user: remind me to call number {number} tomorrow at 9" for number in range(1, 9)]
    lines[4:4] = ["- #13 2026-11-28 user: My wifi password is [password left out]"]
    text = "\n".join(lines)
    home.add_entry("summary", text, [1, 4], source_type="context_synthesis")
    compaction = plan_compaction(home, 0, len(live_messages(home)) - 2, summary_message(text))
    home.conversation.commit_compaction(replace(compaction, summary=text), NOW)
    await home.erasure.erase(ErasureRequest("owner", text="wifi password"), NOW)
    [compacted] = home.conversation.checkpoints("main")
    assert compacted.summary.splitlines() == lines[:4] + lines[5:]
    [entry] = home.journal.entries("owner")
    assert entry.content.splitlines() == lines[:4] + lines[5:]
