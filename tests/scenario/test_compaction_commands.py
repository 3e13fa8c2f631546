"""Commands about what stands in view: what each changes, and that what is refused changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from assistant.core.errors import UsageError
from tests.support.compaction_app import LONG_MESSAGE, ROOMY_CONTEXT
from tests.support.running_app import LiveApp, run_app

# No database has a number like this one.
HUGE = 10**30
NOT_SEEN = "Message #{} is not in what the model currently sees. Nothing was changed; pin its words: /pin TEXT."
NO_NUMBER = "Invalid value for 'ID...': {!r} is not a number. Use `{}`. Nothing was changed."
TOO_LARGE = "Invalid value for '{}': No number here is that large. Use `{}`. Nothing was changed."
NO_COMPACTION = "'{}' is not the number of a compaction; `aihistory` lists them. Nothing was undone."
SAID = ("I live in Gjeving", "Please book the ferry for May", "What is the time?")


async def talked(it: LiveApp) -> None:
    for text in SAID:
        await it.say(text)
        await it.wait_idle()


def everything(it: LiveApp) -> dict[str, Any]:
    stores = it.app.stores
    return {
        "view": stores.conversation.load_view("main"),
        "pins": stores.pins.list_pins("main"),
        "requests": stores.requests.list_requests("owner"),
        "sessions": stores.conversation.list_sessions(),
        "checkpoints": stores.conversation.checkpoints("main"),
    }


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("/pin 99", NOT_SEEN.format(99)),
        ("/pin #99", NOT_SEEN.format(99)),
        ("/unpin 7", "There is no pin 7 here. Nothing was changed; `/pins` lists them."),
        ("/unpin 1 7", "There is no pin 7 here. Nothing was changed; `/pins` lists them."),
        ("/unpin", "Missing argument 'ID...'. Use `/pins remove ID...`. Nothing was changed."),
        ("/unpin that one", NO_NUMBER.format("that", "/pins remove ID...")),
        ("/done 99", "There is no request #99 in main. Nothing was changed; `/requests` lists them."),
        ("/done 3 99", "There is no request #99 in main. Nothing was changed; `/requests` lists them."),
        ("/drop 4", "There is no request #4 in main. Nothing was changed; `/requests` lists them."),
        ("/done", "Missing argument 'ID...'. Use `/requests done ID...`. Nothing was changed."),
        ('/done "3', NO_NUMBER.format('"3', "/requests done ID...")),
        (
            "/branch 99",
            "Message #99 is not in what the model currently sees. Nothing was changed; choose one that is.",
        ),
        (
            "/branch 0",
            "Message #0 is not in what the model currently sees. Nothing was changed; choose one that is.",
        ),
        (f"/branch {HUGE}", TOO_LARGE.format("[ID]", "/branch [ID]")),
        (f"/done {HUGE}", TOO_LARGE.format("ID...", "/requests done ID...")),
        (f"/unpin {HUGE}", TOO_LARGE.format("ID...", "/pins remove ID...")),
        (f"/pin {HUGE}", NOT_SEEN.format(HUGE)),
        (f"/compact --undo {HUGE}", NO_COMPACTION.format(HUGE)),
        ("/branch soon", "Invalid value for '[ID]': 'soon' is not a number. Use `/branch [ID]`. Nothing was changed."),
        ("/compact --undo 5", "main has no compaction 5. Nothing was changed; `aihistory` lists them."),
        ("/compact --undo", "Nothing in 'main' is compacted. Nothing was changed."),
        ("/compact --undo it", NO_COMPACTION.format("it")),
        ("/pins --session trip", "--session is for a shell. Nothing was changed; type it in that conversation."),
        ("/pins add --session main x", "--session is for a shell. Nothing was changed; type it in that conversation."),
        ("/pins throw 1", "No such command 'throw'. Use `/pins [list | add | remove]`. Nothing was changed."),
    ],
)
async def test_what_is_refused_is_told_in_a_line_and_changes_nothing(tmp_path: Path, command: str, why: str) -> None:
    async with run_app(tmp_path, "Yes.") as it:
        await talked(it)
        await it.app.commands.run("/pin 1", "main")
        before = everything(it)
        with pytest.raises(UsageError) as refused:
            await it.app.commands.run(command, "main")
        told = str(refused.value)
        assert told == why
        assert len(told.splitlines()) == 1 and len(told) < 200
        assert everything(it) == before


async def test_a_message_is_pinned_by_its_number_once(tmp_path: Path) -> None:
    async with run_app(tmp_path, "Yes, Gjeving.") as it:
        await talked(it)
        told = await it.app.commands.run("/pin 2", "main")
        assert told == "Pinned as 1: 'Yes, Gjeving.'. It is sent with every request until `/pins remove 1`."
        (pin,) = it.app.stores.pins.list_pins("main")
        assert (pin.text, pin.role, pin.message_id) == ("Yes, Gjeving.", "assistant", 2)
        assert await it.app.commands.run("/pin #2", "main") == told
        assert it.app.stores.pins.list_pins("main") == [pin]
        assert await it.app.commands.run("/pins", "main") == "- 1: Yes, Gjeving. (said by the assistant)"
        await it.app.commands.run("/unpin 1", "main")
        assert it.app.stores.pins.list_pins("main") == []
        assert await it.app.commands.run("/pins", "main") == "Nothing is pinned. `/pins add TEXT` pins something."


async def test_pin_alone_keeps_the_last_thing_the_person_said(tmp_path: Path) -> None:
    async with run_app(tmp_path, "Yes.") as it:
        assert await it.app.commands.run("/pin", "main") == "Nothing has been said here yet."
        await talked(it)
        await it.app.commands.run("/pin", "main")
        (pin,) = it.app.stores.pins.list_pins("main")
        assert (pin.text, pin.role, pin.message_id) == ("What is the time?", "user", 5)


async def test_a_copy_in_view_is_pinned_by_the_number_of_its_original(tmp_path: Path) -> None:
    async with run_app(tmp_path, "Yes.", **ROOMY_CONTEXT) as it:
        await talked(it)
        for number in range(30):
            await it.say(f"walk {number}: {LONG_MESSAGE}")
            await it.wait_idle()
        await it.app.commands.run("/compact", "main")
        assert 3 not in {row.id for row in it.app.stores.conversation.load_view("main").messages}
        await it.app.commands.run("/pin 3", "main")
        (pin,) = it.app.stores.pins.list_pins("main")
        assert pin.text == "Please book the ferry for May"


async def test_requests_are_closed_by_their_numbers_and_stay_closed(tmp_path: Path) -> None:
    async with run_app(tmp_path, "Yes.") as it:
        await talked(it)
        assert await it.app.commands.run("/done #3", "main") == "- Done: #3 'Please book the ferry for May'"
        done = everything(it)["requests"]
        assert [(one.message_id, one.state, one.closed_by) for one in done] == [
            (5, "done", "answer"),
            (3, "done", "user"),
            (1, "done", "answer"),
        ]
        await it.app.commands.run("/done 3, 3", "main")
        assert everything(it)["requests"] == done


@pytest.mark.parametrize(("zone", "day"), [("UTC", "2026-03-01"), ("Pacific/Pago_Pago", "2026-02-28")])
async def test_requests_are_told_by_the_days_of_the_home(tmp_path: Path, zone: str, day: str) -> None:
    async with run_app(tmp_path, "Yes.", ASSISTANT_HOME__TIMEZONE=zone) as it:
        await talked(it)
        assert f"- #3 ({day}, answered" in await it.app.commands.run("/requests", "main")


async def test_a_branch_at_a_number_leaves_the_conversation_as_it_is(tmp_path: Path) -> None:
    async with run_app(tmp_path, "Yes.") as it:
        await talked(it)
        view = it.app.stores.conversation.load_view("main")
        told = await it.app.commands.run("/branch 4", "main")
        assert told.startswith("branch:1 has everything up to 'Yes.'; this conversation stays as it is.")
        assert it.app.stores.conversation.load_view("main") == view
        there = it.app.stores.conversation.load_view("branch:1").messages
        assert [row.metadata.get("carried_from") for row in there[:-1]] == [1, 2, 3, 4]
