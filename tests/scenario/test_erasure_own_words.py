"""Words that the program's own formats have too, as names of fields and tables, and short text that could be
hexadecimal, as in the digests and salts of records: forgetting one takes away what said it and nothing else, and no
file is reported for it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from assistant.core.erasure import ErasureRequest
from assistant.core.erasure_phrases import PhraseMatcher
from assistant.core.messages import Message, ToolCall
from assistant.core.records import LogRecord
from assistant.store.erasure.own_words import said_in_record, without_own_words
from assistant.store.log.format import decode_record
from tests.support.erasure_home import ErasureHome
from tests.support.imports import import_messages
from tests.support.store_home import NOW, memory_backed_directory

OWN_WORDS = (
    *("name", "content", "media", "thinking", "salt", "message", "session", "commit", "owner", "user", "assistant"),
    *("null", "true", "arguments", "tool_calls", "items", "manage_todo_list", "text", "plain", "sources"),
)
SALT = "0cafe1b2c3d4e5f60718293a4b5cafe9"
_CODE = re.compile(r"[a-f]{3}\d\d")
_WORD = re.compile(r"(?<=\d)[a-f]{4}(?![a-f])")


@pytest.fixture
def home() -> Iterator[ErasureHome]:
    with memory_backed_directory() as path:
        opened = ErasureHome(path / "home").open()
        yield opened
        opened.close()


def _read(home: ErasureHome) -> list[LogRecord]:
    return [decode_record(line, offset) for offset, line in home.log.iterate_lines("main")]


def _contents(home: ErasureHome) -> list[str]:
    return [record.content for record in _read(home)]


@pytest.mark.parametrize("word", OWN_WORDS)
async def test_only_what_said_it_goes(home: ErasureHome, word: str) -> None:
    call = ToolCall("c1", "manage_todo_list", {"action": "add", "items": ["Bread"]})
    answered = Message("tool", "Added: 1", name="manage_todo_list", tool_call_id="c1")
    others = [Message("user", "Bread, please."), Message("assistant", "", tool_calls=(call,)), answered]
    import_messages(home.conversation, "main", "owner", others, NOW)
    home.add_entry("bread", "Bread is needed.", [1])
    home.todos.add("owner", ["Bread"], "t1", NOW)
    home.say(f"We need {word} too.", "All right.")
    before = _contents(home)
    done = await home.erasure.erase(ErasureRequest("owner", text=word), NOW)
    assert _contents(home) == [*before[:3], "", "All right.", ""]
    assert [entry.content for entry in home.journal.entries("owner")] == ["Bread is needed."]
    assert done.leftovers == ()


def test_what_a_person_wrote_as_json_is_theirs() -> None:
    line = rb'{"kind":"message","salt":"%b","content":"{\"name\":null}","name":"read_file","tool_calls":[]}' % (
        32 * b"0"
    )
    assert said_in_record(line + b"\n") == b'{"name":null}'
    assert said_in_record(b"torn " + line[:90]) == b"torn " + line[:90]
    assert without_own_words(rb'{"content":"half \ud83d of it","name":null}') == b"half ? of it"


def _tell_until_a_salt_has(pattern: re.Pattern[str], home: ErasureHome) -> tuple[LogRecord, str]:
    """The record with such a salt, and what is in it."""
    for number in range(1000):
        home.say(f"Day {number} was a quiet one.", "Good.")
        record = _read(home)[-1]
        if word := pattern.search(record.salt):
            return record, word[0]
    raise AssertionError("no such salt")


async def test_a_message_whose_salt_has_the_forgotten_word_stays(home: ErasureHome) -> None:
    other, word = _tell_until_a_salt_has(_WORD, home)
    home.say(f"The dog is called {word}.", "A fine name.")
    done = await home.erasure.erase(ErasureRequest("owner", text=word), NOW)
    assert done.leftovers == () and other in _read(home)
    assert [record.content for record in _read(home) if record.id > other.id] == ["", "A fine name.", ""]


async def test_a_code_that_a_salt_has_is_found_nowhere_once_it_is_forgotten(home: ErasureHome) -> None:
    other, code = _tell_until_a_salt_has(_CODE, home)
    home.say(f"The order code is VI-8279-{code.upper()}.", f"I keep VI-8279-{code.upper()} in mind.")
    said = _read(home)[-2].id
    home.add_entry("order", f"The code that ends with {code.upper()} is for the sofa.")
    done = await home.erasure.erase(ErasureRequest("owner", messages=(said,)), NOW)
    assert done.leftovers == () and other in _read(home)
    assert [entry.content for entry in home.journal.entries("owner")] == []


@pytest.mark.parametrize("text", ["cafe", "Cafe", "5caf", "e1b2c3", "12-34", "9a4b5cafe9"])
def test_a_part_of_a_digest_or_uuid_is_no_copy(text: str) -> None:
    uuid = "e49c37f9-4ca8-5caf-9fcc-7c7770e1b2c3"
    data = f'"commit":"{2 * SALT}","salt":"{SALT}","id":"{uuid}","at":"71{SALT[:10]}12-34-{SALT[:20]}"'.encode()
    for matcher in (PhraseMatcher((text,)), PhraseMatcher((), (text,))):
        assert matcher.match_ends(data) == []
        assert matcher.matched(data) == matcher.matched_in_any_case(data) == set()
        assert matcher.blank_bytes(data) == data
        assert matcher.match_ends(f"{data.decode()} says {text}.".encode()) == [len(data) + len(text) + 6]


@pytest.mark.parametrize("text", [SALT, f"{SALT[:16]}", "0cafe-g1b2"])
def test_a_key_that_was_told_is_found_whole_and_by_a_long_part(text: str) -> None:
    told = f"The key is {SALT} or 0cafe-g1b2."
    assert PhraseMatcher((text,)).match_ends(told.encode()) == [told.index(text) + len(text)]
