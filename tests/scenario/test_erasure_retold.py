"""Forgetting what was told again in other words: a summary, a note of the day, a memory or an answer of the model loses
what has the words that only the forgotten message said."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from assistant.core.bridge_api import MessageChange
from assistant.core.memories import JournalEntry
from assistant.core.sessions import MAIN_SESSION
from sleep.compaction.message_cache import FOUND_IN_MESSAGES
from sleep.compaction.prepared_messages import prepare_message
from tests.support.running_app import OWNER, BridgePeople, LiveApp, run_app
from tests.support.scripted import ScriptedModel
from tests.support.secrets import HomeBytes
from tests.support.store_home import memory_backed_directory
from tests.support.summaries import summary_answer

_CODE = re.compile(r"/forget ([0-9A-F]{6})")
_KEPT = "They like long walks by the lake."
# What was told, what was answered, how a model tells it in a summary, and what has to be gone.
TOLD = {
    "an illness": (
        "the doctor says i have gout and need to stop drinking burgundy",
        "I am sorry to hear that.",
        "The user suffers from gout and must give up burgundy wine.",
        ("gout", "burgundy"),
    ),
    "a name in small letters": (
        "my therapist is quillfeather, tuesdays",
        "Noted, quillfeather on tuesdays.",
        "They see a therapist called Quillfeather every Tuesday.",
        ("quillfeather",),
    ),
    "a story": (
        "My brother stole money from the till at the bakery",
        "Oh.",
        "The user's brother took cash from the bakery's till.",
        ("bakery",),
    ),
    "an amount": ("I earn 84,500 euros a year", "That is good.", "Salary: EUR 84500 a year.", ("84500", "84,500")),
    "a short number": ("i hid it in cupboard 402", "OK, 402.", "It was put away (402).", ("(402)",)),
    "a list of words": (
        "My recovery phrase is ocean tiger velvet lamp",
        "I see.",
        "Recovery phrase: ocean, tiger, velvet, lamp.",
        ("ocean, tiger", "velvet"),
    ),
    "in German": (
        "meine schwiegermutter ist heimlich pleite",
        "Oh je.",
        "Die Schwiegermutter sei pleite, was keiner erfahren solle.",
        ("schwiegermutter",),
    ),
    "in French": (
        "je suis au chômage depuis lundi",
        "Courage.",
        "La personne se trouve au chômage.",
        ("chômage",),
    ),
    "in Spanish": (
        "mi cuñado bebe aguardiente a escondidas",
        "Vaya.",
        "Su cuñado bebería aguardiente.",
        ("aguardiente", "cuñado"),
    ),
    "in Chinese": ("我的门禁密码是青山绿水八八", "好的。", "门禁密码：青山绿水八八。", ("青山绿水",)),
}


@asynccontextmanager
async def _compacted(told: str, answer: str, retold: str) -> AsyncIterator[tuple[LiveApp, BridgePeople, int]]:
    """A conversation that was compacted by a model, which retold the first message; and its number."""
    writer = ScriptedModel(summary_answer(f"{retold} {_KEPT}", memories=[retold]))
    answers = (answer, *(f"Fine, number {number}. " + "rain " * 900 for number in range(20)))
    with memory_backed_directory() as path:
        async with run_app(path / "home", *answers, writer=writer) as it:
            people = BridgePeople(it)
            await people.allow_everybody()
            accepted = await people.write(told, OWNER)
            assert accepted is not None
            for number in range(10):
                await people.write(f"I walked {number} times around the lake " + "and it rained " * 600, OWNER)
            assert "Compacted" in await people.command("/compact")
            [made] = it.app.stores.conversation.checkpoints(MAIN_SESSION)
            assert retold in made.summary
            yield it, people, it.inbox_item(accepted.inbox_id).message_id


async def _forget(people: BridgePeople, target: str) -> str:
    code = _CODE.search(await people.command(f"/forget {target}"))
    assert code is not None
    return await people.command(f"/forget {code[1]}")


@pytest.mark.parametrize("by_text", [False, True], ids=["by number", "by text"])
@pytest.mark.parametrize("name", TOLD)
async def test_what_a_model_made_of_a_message_goes_in_other_words_too(name: str, by_text: bool) -> None:
    told, answer, retold, gone = TOLD[name]
    async with _compacted(told, answer, retold) as (it, people, number):
        words = told[:8] if name == "in Chinese" else " ".join(told.split()[:3])
        report = await _forget(people, f'"{words}"' if by_text else f"#{number}")
        held = HomeBytes(it.app.settings.home.path)
        assert {text: held.places(text) for text in gone if held.places(text)} == {}
        assert "They are found nowhere any more." in report
        [made] = it.app.stores.conversation.checkpoints(MAIN_SESSION)
        assert _KEPT in made.summary


async def test_a_later_answer_that_shares_a_sentence_goes_and_one_that_shares_a_word_is_named() -> None:
    told, _, retold, _ = TOLD["an illness"]
    async with _compacted(told, "I am sorry.", retold) as (it, people, number):
        it.model.script = ["Avoid beer with gout, and burgundy too.", "With gout I would drink water.", "Fine."]
        for _ in range(2):
            await people.write("What shall I drink at the party?", OWNER)
        shown = await people.command(f"/forget #{number}")
        assert "answers that have a word of it" in shown and "With gout I would drink water." in shown
        report = await _forget(people, f"#{number}")
        assert "found nowhere" not in report
        [named] = re.findall(r"- message log \(1\): #(\d+), a later answer, has a word that only this said", report)
        assert it.app.stores.conversation.load_view(MAIN_SESSION).messages[-1].id == int(named)
        assert f"answer #{named} of " in shown
        said = "\n".join(text for _, text in it.view_contents())
        assert "burgundy" not in said and "With gout I would drink water." in said
        assert "They are found nowhere any more." in await _forget(people, '"gout"')
        assert HomeBytes(it.app.settings.home.path).places("gout") == []


async def test_what_a_person_changed_another_message_to_stays_and_is_no_doubt() -> None:
    """An edit is a person's own words, as a message is: the value is said by both, and so is a word of it."""
    with memory_backed_directory() as path:
        async with run_app(path / "home", "Fine.") as it:
            people = BridgePeople(it)
            await people.allow_everybody()
            accepted = await people.write("The code of the shed is zed-tau-417.", OWNER)
            await people.write("The account is DE13 0348 0143 6998 1166 39.", OWNER)
            for name, text in (("a", "The boat has zed-tau-417, too."), ("b", "Ours is DE13 7373 0634 7425 4769 04.")):
                await people.write("Something", OWNER, name)
                await it.app.inbound.receive_change(MessageChange("kept", name, f"edit {name}", "edit", OWNER, text))
            assert accepted is not None
            number = it.inbox_item(accepted.inbox_id).message_id
            for target in (f"#{number}", '"The account is DE13 0348"'):
                assert "They are found nowhere any more." in await _forget(people, target)
            log = (it.app.settings.home.path / "log" / "main" / "conversation.jsonl").read_text()
            assert "The boat has zed-tau-417, too." in log and "DE13 7373" in log
            assert "The code of the shed" not in log and "1166 39" not in log


async def test_words_that_another_message_said_too_stay_in_what_was_made_of_it() -> None:
    told, answer, retold, _ = TOLD["an illness"]
    async with _compacted(told, answer, retold) as (it, people, number):
        await people.write("My gout is better, and burgundy is a colour.", OWNER)
        await _forget(people, f"#{number}")
        [made] = it.app.stores.conversation.checkpoints(MAIN_SESSION)
        assert retold in made.summary


async def test_a_line_of_memory_md_that_was_made_of_an_entry_goes_with_it() -> None:
    async with _compacted("i feel low since august, the pills are called sertralo", "Oh.", "It rains.") as (
        it,
        people,
        n,
    ):
        stores, now = it.app.stores, it.clock.now
        line = "Takes antidepressants."
        entry = JournalEntry("k1", "owner", MAIN_SESSION, 1, line, now, "extraction", 0.9, ("fact",), (n,))
        stores.journal.add([entry], now)
        stores.files.replace_memory_file(
            f"# Me\n\n- {line}\n- Owns a boat.\n", stores.files.read_memory_file(), "model", now
        )
        stores.files.append_daily_note("owner", now.date(), "12:00", [line, "It rained."], "note")
        await _forget(people, f"#{n}")
        assert HomeBytes(it.app.settings.home.path).places("antidepressants") == []
        assert "- Owns a boat." in stores.files.read_memory_file()


async def test_words_that_are_names_of_fields_change_no_record() -> None:
    told = "memories, identifiers, restored, metadata, arguments, content"
    async with _compacted(told, "Oh.", "It rains.") as (it, people, number):
        before = it.app.stores.conversation.checkpoints(MAIN_SESSION)
        assert "They are found nowhere any more." in await _forget(people, f"#{number}")
        after = it.app.stores.conversation.checkpoints(MAIN_SESSION)
        assert after[0].key_facts.keys() == before[0].key_facts.keys()
        assert after[0].summary == before[0].summary


@pytest.mark.parametrize("name", ["Hunter2-blue.txt", "old/Hunter2-blue/note.txt"])
async def test_a_file_of_ones_own_with_the_words_in_its_name_is_named(name: str) -> None:
    async with _compacted("My wifi password is Hunter2-blue", "Fine.", "It rains.") as (it, people, number):
        path = it.app.settings.home.path / "workspace" / name
        path.parent.mkdir(parents=True)
        path.write_text("nothing")
        report = await _forget(people, f"#{number}")
        assert f"- workspace/{name} (1): your own file has it in its name" in report and path.exists()


async def test_what_was_found_in_messages_leaves_the_memory_of_the_process() -> None:
    told, answer, retold, _ = TOLD["an illness"]
    async with _compacted(told, answer, retold) as (it, people, number):
        for row in it.app.stores.conversation.load_view(MAIN_SESSION).messages:
            prepare_message(row)
        assert FOUND_IN_MESSAGES.characters
        await _forget(people, f"#{number}")
        assert not FOUND_IN_MESSAGES.characters
