"""`memory changes` and `memory profiles`: what a sleep made of what was said, as people and programs read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.web_api import LiveApi, run_web_api

SAID = "My sister Ada lives in Lisbon."


async def command(it: LiveApi, *argv: str) -> dict[str, Any]:
    answer = await it.socket.request("POST", "/v1/commands", json={"argv": list(argv)}, timeout=60)
    found: dict[str, Any] = answer.json()
    return found


async def test_what_a_sleep_changed_is_shown_by_its_number_and_as_the_last_that_changed_anything(
    tmp_path: Path,
) -> None:
    async with run_web_api(tmp_path, "Noted.") as it:
        assert (await command(it, "memory", "changes"))["value"] is None
        await it.socket.say(SAID)
        await it.wait_idle()
        await command(it, "sleep")
        await command(it, "sleep")
        changes = await command(it, "memory", "changes")
        assert changes["value"]["id"] == 1 and changes["value"]["state"] == "done"
        (memory,) = changes["value"]["memories"]
        assert (memory["action"], memory["before"], memory["after"]) == ("add", "", SAID)
        assert f'is "{SAID}"' in changes["text"] and "Profile of Ada" in changes["text"]
        assert "MEMORY.md" in {text["name"] for text in changes["value"]["texts"]}
        assert (await command(it, "memory", "changes", "2"))["value"]["memories"] == []
        assert "no sleep 9" in (await command(it, "memory", "changes", "9"))["error"]


async def test_people_are_shown_with_dated_facts_and_nothing_of_them_after_their_sleep_was_undone(
    tmp_path: Path,
) -> None:
    async with run_web_api(tmp_path, "Noted.") as it:
        await it.socket.say(SAID)
        await it.wait_idle()
        await command(it, "sleep")
        (ada,) = (await command(it, "memory", "profiles", "ada"))["value"]
        assert (ada["kind"], ada["name"]) == ("person", "Ada")
        assert "Lisbon" in str(ada["attributes"]) and all(fact["since"] for fact in ada["attributes"])
        assert "no profile" in (await command(it, "memory", "profiles", "Ruth"))["error"]
        await command(it, "sleep", "--undo")
        assert (await command(it, "memory", "profiles"))["value"] == []
        assert "was undone" in (await command(it, "memory", "changes", "1"))["text"]
