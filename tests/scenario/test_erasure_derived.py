"""Forgetting works on what was said: values of a forgotten message leave whatever was made of it, and the proof
searches for each in every form."""

from __future__ import annotations

import base64
import gzip
import io
import json
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from urllib.parse import quote

import pytest

from assistant.commands.erasure import render_forget_preview, render_forget_result
from assistant.core.erasure import ErasureRequest
from assistant.core.messages import Media, Message
from tests.support.compactions import live_messages, plan_compaction, summary_message
from tests.support.erasure_home import KEPT_FACT, ErasureHome
from tests.support.imports import import_messages
from tests.support.store_home import NOW, memory_backed_directory

TOLD = "My wifi password is Hunter2-blue"
BY_TEXT, BY_MESSAGE = ErasureRequest("owner", text="wifi password"), ErasureRequest("owner", messages=(1,))


@pytest.fixture
def home() -> Iterator[ErasureHome]:
    with memory_backed_directory() as path:
        opened = ErasureHome(path / "home").open()
        yield opened
        opened.close()


def _tell_and_compact(home: ErasureHome) -> None:
    home.say(TOLD, "All right.")
    home.say("What was it again?", "The secret is Hunter2-blue.")
    home.say("What is my boat called?", KEPT_FACT)
    text = f"[CONTEXT SUMMARY]\n- {KEPT_FACT}\n- The network opens with Hunter2-blue.\n- It rained."
    compaction = plan_compaction(home, 0, len(live_messages(home)) - 2, summary_message(text))
    facts = {"identifiers": ["A-1", "Hunter2-blue"], "restored": ["Hunter2-blue"]}
    home.conversation.commit_compaction(replace(compaction, summary=text, key_facts=facts), NOW)
    home.pins.add("main", "owner", "Guests need Hunter2-blue", "user", None, NOW)
    home.add_entry("k1", "The network opens with Hunter2-blue.", [1])
    home.add_entry("k2", "They met.\nThe network: Hunter2-blue\nThey left.", [1, 6], source_type="context_synthesis")


@pytest.mark.parametrize("request_", [BY_TEXT, BY_MESSAGE])
async def test_a_secret_leaves_summaries_key_facts_and_answers(home: ErasureHome, request_: ErasureRequest) -> None:
    _tell_and_compact(home)
    done = await home.erasure.erase(request_, NOW)
    assert done.messages == (1, 4), "the answer that repeated it, too"
    [compaction] = home.conversation.checkpoints("main")
    assert compaction.summary == f"[CONTEXT SUMMARY]\n- {KEPT_FACT}\n- It rained."
    assert compaction.key_facts == {"identifiers": ["A-1"], "restored": []}
    assert [entry.content for entry in home.journal.entries("owner")] == ["They met.\nThey left."]
    assert home.pins.list_pins("main") == []
    assert home.files_containing([b"hunter2"]) == []
    assert done.leftovers == () and done.complete
    assert home.verify().problems == ()
    assert home.view_contents() == [compaction.summary, KEPT_FACT]


async def test_what_another_message_said_too_stays(home: ErasureHome) -> None:
    home.say(f"{TOLD}. My sister is Marguerite Duval.", "All right.")
    home.say("Marguerite Duval calls at six.", "I noted that Marguerite Duval calls.")
    home.pins.add("main", "owner", "Marguerite Duval is a surgeon.", "user", None, NOW)
    done = await home.erasure.erase(BY_MESSAGE, NOW)
    assert done.messages == (1,)
    assert [pin.text for pin in home.pins.list_pins("main")] == ["Marguerite Duval is a surgeon."]
    assert home.view_contents()[-1] == "I noted that Marguerite Duval calls."
    assert done.leftovers == ()


async def test_an_entry_made_of_a_message_and_its_answer_goes_with_the_message(home: ErasureHome) -> None:
    home.say(TOLD, "All right.")
    home.add_entry("k1", "There is a network at home.", [1, 2])
    await home.erasure.erase(BY_MESSAGE, NOW)
    assert home.journal.entries("owner") == []


def _in_tar(data: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        member = tarfile.TarInfo("note.txt")
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def _in_zip(data: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("note.txt", data)
    return buffer.getvalue()


FORMS: dict[str, Callable[[str], bytes]] = {
    "plain": str.encode,
    "capitals": lambda text: text.upper().encode(),
    "json": lambda text: json.dumps(json.dumps(text)).encode(),
    "percent": lambda text: quote(text, safe="").encode(),
    "base64 at 0": lambda text: base64.b64encode(text.encode()),
    "base64 at 1": lambda text: base64.b64encode(f"x{text}".encode()),
    "base64 at 2": lambda text: base64.b64encode(f"xy{text}".encode()),
    "base64 in lines": lambda text: base64.encodebytes(b"z" * 52 + text.encode() + b"z" * 40),
    "utf-16 le": lambda text: text.encode("utf-16-le"),
    "utf-16 be": lambda text: text.encode("utf-16-be"),
    "gzip": lambda text: gzip.compress(text.encode()),
    "zlib": lambda text: zlib.compress(text.encode()),
    "zip": lambda text: _in_zip(text.encode()),
    "tar.gz": lambda text: _in_tar(text.encode()),
    "gzip in zip": lambda text: _in_zip(gzip.compress(text.encode())),
}


@pytest.mark.parametrize("value", ["Hunter2-blue", "Grüner Hering fliegt", "ana.ruiz@correo.es"])
@pytest.mark.parametrize("form", FORMS)
async def test_the_proof_finds_a_value_in_any_form(home: ErasureHome, form: str, value: str) -> None:
    home.say(f'My wifi password is "{value}"', "All right.")
    folder = home.path / "workspace"
    folder.mkdir(exist_ok=True)
    (folder / "own.bin").write_bytes(b"\x00before " + FORMS[form](value) + b" after")
    done = await home.erasure.erase(BY_TEXT, NOW)
    assert [leftover.where for leftover in done.leftovers] == ["workspace/own.bin"]
    assert "They are found nowhere any more." not in render_forget_result(done)


async def test_the_report_says_what_was_searched_for_and_not_the_words(home: ErasureHome) -> None:
    _tell_and_compact(home)
    preview = await home.erasure.preview(BY_TEXT)
    assert any("searched for: Hunter2-blue" in line for line in render_forget_preview(preview))
    report = "\n".join(render_forget_result(await home.erasure.erase(BY_TEXT, NOW)))
    assert "what else they carried (2 identifiers): plain, escaped (JSON, percent), UTF-16, base64 and comp" in report
    assert "hunter" not in report.lower()


async def test_words_in_a_file_of_ones_own_alone_are_not_called_nowhere(home: ErasureHome) -> None:
    home.say("Hello.", "Hi.")
    (home.path / "workspace").mkdir(exist_ok=True)
    (home.path / "workspace" / "own.txt").write_text("the wifi password")
    for lines in (
        render_forget_preview(await home.erasure.preview(BY_TEXT)),
        render_forget_result(await home.erasure.erase(BY_TEXT, NOW)),
    ):
        assert lines[0] == "There is nothing to forget. The words are in places that forgetting leaves as they are:"
        assert lines[1].startswith("- workspace/own.txt (1): your own file")


def _say_with_file(home: ErasureHome, text: str, name: str) -> int:
    media = Media("file", "text/plain", name, 3, path=f"received/{name}")
    [message] = import_messages(home.conversation, "main", "owner", [Message("user", text, media=(media,))], NOW)
    (home.path / "workspace" / "received").mkdir(parents=True, exist_ok=True)
    (home.path / "workspace" / "received" / name).write_text("The wifi password is Hunter2-blue")
    return message.id or 0


async def test_a_file_goes_with_the_only_message_that_brought_it(home: ErasureHome) -> None:
    first, second = _say_with_file(home, "Look.", "own.txt"), _say_with_file(home, "Look here.", "shared.txt")
    _say_with_file(home, "Look at it again.", "shared.txt")
    done = await home.erasure.erase(ErasureRequest("owner", messages=(first, second)), NOW)
    assert {place.kind: place.examples for place in done.places}[
        "files that you added, and that came with messages"
    ] == ("received/own.txt",)
    assert [path.name for path in (home.path / "workspace" / "received").iterdir()] == ["shared.txt"]


async def test_a_file_that_came_with_a_message_and_has_the_words_goes(home: ErasureHome) -> None:
    _say_with_file(home, "Look.", "own.txt")
    (home.path / "workspace" / "mine.txt").write_text("The wifi password is Hunter2-blue")
    done = await home.erasure.erase(BY_TEXT, NOW)
    assert [leftover.where for leftover in done.leftovers] == ["workspace/mine.txt"]
    assert list((home.path / "workspace" / "received").iterdir()) == []


async def test_what_was_made_in_another_spelling_goes_too(home: ErasureHome) -> None:
    home.say("Anna was born on 13 June 1987. The wedding is on 5 March 2027. Ring +49 151 2345 6789.", "All right.")
    home.say("When does the train go?", "At ten, on 2026-11-20.")
    told = ("Birthday: 1987-06-13", "Big feast: 2027-03-05", "Call 0151 23456789", "Train at ten on 2026-11-20")
    for number, text in enumerate(told):
        home.add_entry(f"k{number}", f"They talk.\n{text}", [1, 4], source_type="context_synthesis")
        home.pins.add("main", "owner", text, "user", None, NOW)
    await home.erasure.erase(BY_MESSAGE, NOW)
    assert [pin.text for pin in home.pins.list_pins("main")] == ["Train at ten on 2026-11-20"]
    assert home.files_containing([b"1987-06-13", b"2027-03-05", b"23456789"]) == []
    assert home.view_contents()[-1] == "At ten, on 2026-11-20."


@pytest.mark.parametrize("words", ["0151/23456789", "4711 0815 4711"])
async def test_a_number_that_is_asked_for_goes_in_every_spelling(home: ErasureHome, words: str) -> None:
    home.say("Ring +49 151 2345 6789, extension 471108154711.", "All right.")
    done = await home.erasure.erase(ErasureRequest("owner", text=words), NOW)
    assert done.messages == (1,)
