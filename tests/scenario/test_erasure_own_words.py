"""Words that the program's own formats have too, as names of fields, tables and the like: forgetting one takes away
what said it and nothing else, and no file is reported for them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assistant.core.erasure import ErasureRequest
from assistant.core.messages import Message, ToolCall
from assistant.store.erasure.own_words import said_in_record, without_own_words
from assistant.store.log.format import decode_record
from tests.support.erasure_home import ErasureHome
from tests.support.imports import import_messages
from tests.support.store_home import NOW, memory_backed_directory

OWN_WORDS = (
    *("name", "content", "media", "thinking", "salt", "message", "session", "commit", "owner", "user", "assistant"),
    *("null", "true", "arguments", "tool_calls", "items", "manage_todo_list", "text", "plain", "sources"),
)


@pytest.fixture
def home() -> Iterator[ErasureHome]:
    with memory_backed_directory() as path:
        opened = ErasureHome(path / "home").open()
        yield opened
        opened.close()


def _contents(home: ErasureHome) -> list[str]:
    return [decode_record(line, offset).content for offset, line in home.log.iterate_lines("main")]


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
