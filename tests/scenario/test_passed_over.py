"""A message that cannot be indexed, or not in full, is named in the status, and keeps nothing else from being found."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from assistant.core.erasure import ErasureRequest
from assistant.health.status_text import render_lines
from assistant.search import finder, index
from tests.support.running_app import LiveApp, run_app


def found(it: LiveApp, question: str) -> list[str]:
    return [hit.text for hit in it.app.stores.history.search(question, "owner", limit=8)]


async def test_a_message_that_cannot_be_indexed_is_named_and_everything_else_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    split = index.split_into_units

    def fails(text: str) -> list[str]:
        if "poison" in text:
            raise RecursionError("too deep")
        return split(text)

    monkeypatch.setattr(index, "split_into_units", fails)
    async with run_app(tmp_path, *["Noted."] * 4) as it:
        for text in ("The heron lives in Basel.", "The poison is in the cellar.", "The boat is called Vega."):
            await it.say(text)
            await it.wait_idle()
        await it.app.maintenance.index_new_messages()
        assert "The heron lives in Basel." in found(it, "heron Basel") and found(it, "poison cellar") == []
        assert "The boat is called Vega." in found(it, "boat Vega")
        (line,) = it.app.status()["passed_over"]
        assert line == "Message 3 is kept whole, but it cannot be searched (RecursionError)."
        assert f"Search: {line}" in render_lines(it.app.status()) and it.app.status()["problems"] == []
        await it.say("Where is the poison?")
        await it.wait_idle()
        assert it.bridge.bodies[-1] == "Noted."
    async with run_app(tmp_path, "Noted.") as it:
        await it.app.maintenance.index_new_messages()
        assert it.app.status()["passed_over"][0] == line
        assert "The boat is called Vega." in found(it, "boat Vega")


async def test_a_message_that_could_not_be_indexed_and_is_forgotten_is_named_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finder, "MAX_TEXT", 20)
    async with run_app(tmp_path, "Noted.") as it:
        await it.say("The heron lives in Basel, near the gate.")
        await it.wait_idle()
        await it.app.maintenance.index_new_messages()
        assert len(it.app.status()["passed_over"]) == 1
        assert (await it.app.erasure.erase(ErasureRequest("owner", text="heron"), it.clock())).complete
        await it.app.maintenance.index_new_messages()
        assert it.app.status()["passed_over"] == []


async def test_a_message_above_the_limit_is_found_by_its_beginning_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finder, "MAX_TEXT", 2_000)
    async with run_app(tmp_path, "Noted.") as it:
        await it.say("The heron lives in Basel. " + "It rained all day. " * 200 + "The boat is called Vega.")
        await it.wait_idle()
        await it.app.maintenance.index_new_messages()
        assert found(it, "heron Basel") and not any("Vega" in text for text in found(it, "boat called Vega"))
        (line,) = it.app.status()["passed_over"]
        assert line == "Message 1 is kept whole, but only its first 2,000 characters can be searched."


async def test_an_index_that_is_being_made_is_named_until_it_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finder, "_BATCH_RECORDS", 1)
    async with run_app(tmp_path, "Noted.") as it:
        for text in ("The heron lives in Basel.", "The boat is called Vega."):
            await it.say(text)
        await it.wait_idle()
        it.app.stores.message_index.clear()
        indexing, shown = asyncio.create_task(it.app.maintenance.index_new_messages()), set[str]()
        while not indexing.done():
            shown.update(it.app.maintenance.passed_over)
            await asyncio.sleep(0)
        assert shown == {"Message: the index is being made, and a search may not find everything until it is done."}
        assert it.app.maintenance.passed_over == ()
