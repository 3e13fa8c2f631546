"""A message that is larger than the context: the model sees as much of it as fits, the person is told what was cut, and
nothing of it is lost.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from assistant.core.messages import ToolCall
from tests.support.running_app import LiveApp, run_app
from tests.support.scripted import ScriptedModel

LETTER = "BEGIN " + "a very long letter about the harbour " * 3_000 + " THE-END"


def shown_letter(it: LiveApp, request: int) -> str:
    """What the model was sent of the letter."""
    return next(row.content for row in it.model.requests[request].messages if "BEGIN" in row.content)


def notices_to_person(it: LiveApp) -> list[str]:
    return [body for body in it.bridge.bodies if "more than the model can take at once" in body]


@pytest.mark.parametrize("window", [16_000, 32_000])
async def test_f06_the_model_sees_what_fits_below_the_threshold_and_the_person_is_told_once(
    tmp_path: Path, window: int
) -> None:
    small = {"ASSISTANT_CONTEXT__MAX_CONTEXT_TOKENS": str(window)}
    async with run_app(tmp_path, model=ScriptedModel("I see.", window=200_000), **small) as it:
        await it.say("hello")
        await it.wait_idle()
        await it.say(LETTER)
        await it.wait_idle()
        shown = shown_letter(it, -1)
        assert "BEGIN" in shown and "THE-END" in shown and "tokens truncated" in shown
        pressure = it.app.contexts.window.pressure("main")
        # The model's own short answer came on top of it.
        assert pressure is not None and 0.75 < pressure < 0.82
        (notice,) = notices_to_person(it)
        whole, seen = (int(number.replace(",", "")) for number in re.findall(r"\d[\d,]+", notice))
        assert whole > 30_000 and 0.4 * window < seen < 0.68 * window
        assert it.app.stores.conversation.load_view("main").messages[-2].metadata["truncated"]


async def test_f06_what_the_model_looks_up_of_it_finds_room(tmp_path: Path) -> None:
    small = {"ASSISTANT_CONTEXT__MAX_CONTEXT_TOKENS": "16000"}
    look = [ToolCall("c1", "read_history", {"message_id": 1, "offset": 30_000})]
    model = ScriptedModel(look, "The middle is about the harbour, too.", window=200_000)
    async with run_app(tmp_path, model=model, **small) as it:
        await it.say(LETTER)
        await it.wait_idle()
        assert it.bridge.bodies[-1] == "The middle is about the harbour, too."
        found = it.model.requests[-1].messages[-1].content
        assert "harbour" in found and "Shortened to fit" not in found.splitlines()[-1]
        assert len(shown_letter(it, -1)) < len(shown_letter(it, 0)) / 1.5
        assert len(notices_to_person(it)) == 1
