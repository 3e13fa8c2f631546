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
        assert [them["name"] for them in (await command(it, "memory", "profiles", "--limit", "1"))["value"]] == [
            ada["name"]
        ]
        assert (await command(it, "memory", "profiles", "--after", ada["name"]))["value"] == []
        assert (ada["kind"], ada["name"]) == ("person", "Ada")
        assert "Lisbon" in str(ada["attributes"]) and all(fact["since"] for fact in ada["attributes"])
        assert "no profile" in (await command(it, "memory", "profiles", "Ruth"))["error"]
        await command(it, "sleep", "--undo")
        assert (await command(it, "memory", "profiles"))["value"] == []
        assert "was undone" in (await command(it, "memory", "changes", "1"))["text"]


async def test_single_changes_of_a_sleep_are_accepted_and_undone_by_the_names_that_are_shown(tmp_path: Path) -> None:
    async with run_web_api(tmp_path, "Noted.") as it:
        for text in (SAID, "My blue coat is at the cleaner's."):
            await it.socket.say(text)
            await it.wait_idle()
        await command(it, "sleep")
        first, second = (await command(it, "memory", "changes"))["value"]["memories"]
        limited = await command(it, "memory", "changes", "--limit", "1")
        assert limited["value"]["memories"] == [first] and limited["value"]["more"]
        assert "at least" in limited["text"] and "There are more" in limited["text"]
        assert (await command(it, "memory", "accept", first["id"][:8]))["value"] == {"done": "accepted", "changes": 1}
        assert (await command(it, "memory", "undo", second["id"][:8]))["value"] == {"done": "undone", "changes": 1}
        changes = (await command(it, "memory", "changes"))["value"]
        assert [(one["id"], one["accepted"]) for one in changes["memories"]] == [(first["id"], True)]
        assert [one["text"] for one in (await command(it, "memory", "list"))["value"]] == [first["after"]]
        profile = next(text for text in changes["texts"] if text["name"] == "Profile of Ada")
        assert profile["lines"][0] == "+ also: my sister" and profile["lines"][-1].startswith(
            "+ lives in: Lisbon, since 2"
        )
        await command(it, "memory", "undo", f"c{profile['id']}")
        assert (await command(it, "memory", "profiles"))["value"] == []
        await command(it, "memory", "accept")
        changes = (await command(it, "memory", "changes"))["value"]
        assert all(one["accepted"] for one in [*changes["memories"], *changes["texts"]])
        assert "undone already" in (await command(it, "memory", "undo", f"c{profile['id']}"))["error"]


async def test_what_somebody_is_connected_with_leads_to_the_facts_and_memories_that_say_so(tmp_path: Path) -> None:
    async with run_web_api(tmp_path, "Noted.") as it:
        for text in (SAID, "Ada works at the aquarium in Lisbon.", "Ada plays the cello.", "It rains in Lisbon."):
            await it.socket.say(text)
            await it.wait_idle()
        await command(it, "sleep")
        shown = await command(it, "memory", "connections", "ada")
        lisbon = next(one for one in shown["value"]["connections"] if one["name"] == "Lisbon")
        assert [fact["name"] for fact in lisbon["facts"]] == ["lives in"] and lisbon["facts"][0]["since"]
        assert SAID in {memory["text"] for memory in lisbon["memories"]}
        assert all("Ada" in memory["text"] for one in shown["value"]["connections"] for memory in one["memories"])
        assert '"Lisbon": lives in since' in shown["text"]
        assert "no profile" in (await command(it, "memory", "connections", "Ruth"))["error"]


async def test_of_a_file_that_a_sleep_rewrote_the_first_lines_are_shown_and_how_many_more(tmp_path: Path) -> None:
    """After an import of years, a night writes thousands of lines."""
    async with run_web_api(tmp_path, *["Noted."] * 70) as it:
        for number in range(70):
            await it.socket.say(f"My friend Bo{number} lives in Ghent.")
        await it.wait_idle()
        await command(it, "sleep")
        changes = await command(it, "memory", "changes")
        notes = max(changes["value"]["texts"], key=lambda text: text["more"])
        assert len(notes["lines"]) == 60 and notes["more"] >= 10
        assert f"{notes['name']} (c{notes['id']}): {notes['more']} more lines" in changes["text"]
