"""What was noted comes to mind in a turn: in the volatile block alone, of its scope, forgotten when it is forgotten."""

from __future__ import annotations

from pathlib import Path

from assistant.core.erasure import ErasureRequest
from assistant.core.memories import JournalEntry
from assistant.core.quoting import MEMORY_MARK
from assistant.core.records import IncomingMessage
from tests.support.running_app import LiveApp, run_app

BOILER = "The boiler is serviced every March by Nils."
ASKED = "When is the boiler serviced?"
GUEST = "peer:matrix:@eve:example.org"


def note(it: LiveApp, text: str = BOILER, scope: str = "owner") -> None:
    it.app.stores.journal.add(
        [JournalEntry(f"noted {text}", scope, "main", 1, text, it.clock(), "tool", 0.7, ("fact",))], it.clock()
    )


def volatile(it: LiveApp, request: int = -1) -> str:
    return "\n".join(str(one.metadata.get("volatile", "")) for one in it.model.requests[request].messages)


async def test_what_was_noted_comes_to_mind_and_never_into_the_history(tmp_path: Path) -> None:
    async with run_app(tmp_path, "In March.", "You are welcome.") as it:
        note(it)
        await it.say(ASKED)
        await it.wait_idle()
        assert MEMORY_MARK in volatile(it) and BOILER in volatile(it)
        assert it.view_contents() == [("user", ASKED), ("assistant", "In March.")]
        assert BOILER not in (it.app.settings.home.path / "log" / "main" / "conversation.jsonl").read_text("utf-8")
        await it.say("Thanks!")
        await it.wait_idle()
        assert MEMORY_MARK not in volatile(it)


async def test_nothing_comes_to_mind_where_that_is_switched_off(tmp_path: Path) -> None:
    async with run_app(tmp_path, "In March.", ASSISTANT_MEMORY__RECALL_MAX_TOKENS="0") as it:
        note(it)
        await it.say(ASKED)
        await it.wait_idle()
        assert MEMORY_MARK not in volatile(it)


async def test_f33_a_guest_is_reminded_of_nothing_of_the_owner(tmp_path: Path) -> None:
    async with run_app(tmp_path, "I do not know.") as it:
        note(it)
        await it.app.runtime.accept(
            IncomingMessage("kept", "g1", GUEST, GUEST, "@eve", "guest", ASKED, (), target=GUEST)
        )
        await it.wait_idle()
        assert len(it.model.requests) == 1 and "Nils" not in str(it.model.requests[0])


async def test_what_is_forgotten_comes_to_mind_no_longer(tmp_path: Path) -> None:
    async with run_app(tmp_path, "In March.", "I do not know.") as it:
        note(it)
        note(it, "The bicycle was serviced in May.")
        await it.say(ASKED)
        await it.wait_idle()
        done = await it.app.erasure.erase(ErasureRequest("owner", text="boiler"), it.clock())
        assert done.complete and done.leftovers == ()
        await it.say("When was the bicycle serviced?")
        await it.wait_idle()
        assert "May" in volatile(it) and "boiler" not in volatile(it)


async def test_a_message_is_answered_where_nothing_can_be_recalled(tmp_path: Path) -> None:
    async with run_app(tmp_path, "In March.") as it:
        note(it)
        (tmp_path / "search.db").unlink(missing_ok=True)
        (tmp_path / "search.db").mkdir()
        await it.say(ASKED)
        await it.wait_idle()
        assert it.bridge.bodies == ["In March."]
        (tmp_path / "search.db").rmdir()
