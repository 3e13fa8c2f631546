"""What goes out over every bridge: whole, once, in order, and shown while it is made."""

from __future__ import annotations

import asyncio
import base64
import re
from dataclasses import replace
from pathlib import Path

from assistant.core.messages import Media, ToolCall
from assistant.core.records import Button
from tests.support.networks.conformance_app import ConformanceApp, run_conformance_app
from tests.support.networks.network import Network

_CODE = "\n".join(f"line_{number:03} = {number}" for number in range(40))
_LONG = "\n\n".join(
    [
        "# Everything at length",
        *(f"Paragraph {number} says **something** and `more` of it. " * 4 for number in range(12)),
        f"```python\n{_CODE}\n```",
        "The end of it.",
    ]
)


def longer(it: ConformanceApp) -> tuple[str, int]:
    """A text that is longer than one message there, and how many times it has everything."""
    times = (it.capabilities.max_length or 0) // len(_LONG) + 1
    return "\n\n".join([_LONG] * times), times


async def test_a_long_answer_comes_in_parts_that_say_all_of_it_in_order(network: Network, home: Path) -> None:
    async with run_conformance_app(network, home, "ok") as it:
        await network.say("owner", "hello")
        await it.wait_for_answer("ok")
        text, times = longer(it)
        it.model.script = [text]
        await network.say("owner", "tell me everything")
        await it.wait_until(lambda: "".join(it.texts()).count("The end of it.") == times)
        await it.wait_idle()
        _, *seen = network.visible_messages("owner")
        most = it.capabilities.max_length
        assert all(0 < one.size <= most for one in seen) if most else len(seen) == 1
        whole = "\n".join(one.text for one in seen)
        paragraphs = [str(number) for _ in range(times) for number in range(12) for _ in range(4)]
        assert re.findall(r"Paragraph (\d+) says", whole) == paragraphs
        assert re.findall(r"line_\d{3} = (\d+)", whole) == [str(number) for _ in range(times) for number in range(40)]
        assert it.outbox()[-1].state == "sent" and it.outbox()[-1].parts_sent >= len(seen) - 1


async def test_parts_that_were_shown_are_not_sent_again(network: Network, home: Path) -> None:
    """The second part does not go out; after a restart the rest does."""
    async with run_conformance_app(network, home, "ok") as it:
        await network.say("owner", "hello")
        await it.wait_for_answer("ok")
        text, times = longer(it)
        sends, it.watch.send_fails_at = network.send_attempts, 2
        it.push_notice(text)
        await it.wait_idle()
        await it.restart()
        await it.advance_clock(600)
        await it.wait_until(lambda: "".join(it.texts()).count("The end of it.") == times)
        await it.wait_idle()
        assert network.send_attempts - sends == len(network.visible_messages("owner")) - 1
        assert "".join(it.texts()).count("Everything at length") == times


async def test_an_answer_of_more_than_ten_messages_comes_as_its_start_and_a_file_with_all_of_it(
    network: Network, home: Path
) -> None:
    """Each message rings, and none is read. A failed send repeats neither."""
    async with run_conformance_app(network, home, "ok") as it:
        most = it.capabilities.max_length
        if most is None or not it.capabilities.media:
            return
        await network.say("owner", "hello")
        await it.wait_for_answer("ok")
        text = f"{_LONG}\n\n" * (11 * most // len(_LONG) + 1) + "It ends so."
        key = it.push_notice(text)
        await it.wait_until(lambda: network.visible_messages("owner")[-1].file is not None)
        await it.wait_idle()
        _, start, file = network.visible_messages("owner")
        assert "Everything at length" in start.text and f"All {len(text):,} characters are in answer.md." in start.text
        assert 0.5 * most < start.size <= most
        assert (file.file, file.file_name) == (text.encode(), "answer.md")
        assert it.item(key).state == "sent"


async def test_it_is_shown_that_an_answer_is_being_typed(network: Network, home: Path) -> None:
    async with run_conformance_app(network, home) as it:
        it.model.gate = asyncio.Event()
        await network.say("owner", "apples")
        if it.capabilities.typing:
            await it.wait_until(lambda: network.typing_count("owner") > 0)
        else:
            await it.model.called.wait()
            assert network.typing_count("owner") == 0
        it.model.gate.set()
        await it.wait_for_answer("You said: apples")


async def test_live_text_becomes_the_answer_where_messages_can_be_changed(network: Network, home: Path) -> None:
    """The first words stand while a tool runs; then the answer is there once, with nothing left of them."""
    call = ToolCall("c1", "current_time", {})
    async with run_conformance_app(network, home, call, "The time is known.") as it:
        await network.say("owner", "what time is it")
        await it.wait_for_answer("The time is known.")
        assert it.texts() == ["The time is known."]


async def test_buttons_stand_below_or_their_command_is_in_the_text(network: Network, home: Path) -> None:
    async with run_conformance_app(network, home) as it:
        await network.say("owner", "hello")
        await it.wait_for_answer("hello")
        it.push_notice("Milk? Type `/todo add milk`.", buttons=(Button("Put it down", "/todo add milk"),))
        shown = await it.wait_for_answer("Milk?")
        assert "/todo add milk" in shown.text
        assert shown.buttons == (("Put it down",) if it.capabilities.buttons else ())
        if it.capabilities.buttons:
            before = len(it.texts())
            await network.press("owner", shown.id, "Put it down")
            await it.wait_until(lambda: len(it.texts()) > before)
            assert [todo.text for todo in it.app.stores.todos.list_todos("owner")] == ["milk"]


async def test_a_file_goes_out_after_the_text_or_is_named_in_it(network: Network, home: Path) -> None:
    call = ToolCall("c1", "send_file", {"path": "plan.txt"})
    async with run_conformance_app(network, home, "ok", call, "Here is the plan.") as it:
        await network.say("owner", "hello")
        await it.wait_for_answer("ok")
        it.app.settings.home.workspace.mkdir(parents=True, exist_ok=True)
        (it.app.settings.home.workspace / "plan.txt").write_bytes(b"marmalade")
        await network.say("owner", "send me the plan")
        text = await it.wait_for_answer("Here is the plan.")
        if it.capabilities.media:
            await it.wait_until(lambda: network.visible_messages("owner")[-1].file is not None)
            last = network.visible_messages("owner")[-1]
            assert (last.file, last.file_name) == (b"marmalade", "plan.txt")
        else:
            assert "plan.txt" in text.text


async def test_a_spoken_answer_goes_out_as_a_recording(network: Network, home: Path) -> None:
    sound = b"OggS" + bytes(100)
    media = Media("file", "audio/ogg", "answer.ogg", len(sound), base64.b64encode(sound).decode(), voice=True)
    async with run_conformance_app(network, home) as it:
        await network.say("owner", "hello")
        await it.wait_for_answer("hello")
        spoken = replace(it.outbox()[-1].outgoing, key="spoken:1", body="", media=(media,), buttons=())
        it.app.stores.outbox.push(spoken, it.clock())
        await it.app.runtime.tick(it.clock())
        if it.capabilities.media:
            await it.wait_until(lambda: network.visible_messages("owner")[-1].file is not None)
            assert network.visible_messages("owner")[-1].file == sound


async def test_the_same_key_shows_one_body_once(network: Network, home: Path) -> None:
    """What is sent again under its key is shown once inside the window (I8)."""
    async with run_conformance_app(network, home) as it:
        await network.say("owner", "hello")
        await it.wait_for_answer("hello")
        key = it.push_notice("marmalade")
        await it.wait_for_answer("marmalade")
        it.app.stores.outbox.set_state(it.item(key).id, "sending", it.clock())
        await it.restart()
        await it.wait_idle()
        assert it.texts().count("marmalade") == 1
        assert it.item(key).state == ("sent" if it.capabilities.dedupe_seconds else "ambiguous")
