"""Tools that stand in no prompt: found by what they do, called through one that does, and recorded, asked about and
run as themselves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assistant.core.messages import Message, ToolCall
from assistant.core.permissions import ALL_ROLES
from assistant.core.ports import Tool, ToolContext
from assistant.runtime.tool_registry import ToolRegistry
from tests.support.in_memory import grant_others
from tests.unit.test_registry import CONTEXT
from tools.declaration import tool
from tools.tool_search import rank_tools, tool_search_tools


@tool(roles=ALL_ROLES)
def greet(context: ToolContext, name: str) -> str:
    """Say hello."""
    return f"hello {name}"


@tool(topic="calendar")
def add_event(context: ToolContext, title: str, day: str = "") -> str:
    """Put an appointment into a calendar."""
    return f"{title} is in the calendar"


@tool(topic="calendar", roles=ALL_ROLES)
def list_events(context: ToolContext) -> str:
    """Show what is in the calendars between two days."""
    return "nothing"


@tool(topic="mail")
def search_mail(context: ToolContext, words: str) -> str:
    """Find messages in the mailbox."""
    return "none"


def registry(*tools: Tool, granted: tuple[str, ...] = ()) -> ToolRegistry:
    box = ToolRegistry(tools, timeout_seconds=60.0, authority=grant_others(list(granted)))
    for finder in tool_search_tools(box.deferred):
        box.add(finder)
    return box


ALL = (greet, add_event, list_events, search_mail)


async def find(box: ToolRegistry, query: str, role: str = "owner") -> str:
    context = CONTEXT if role == "owner" else replace(CONTEXT, session="guest:1")
    text, ok = await box.run(ToolCall("c1", "find_tools", {"query": query}), context, role)
    assert ok, text
    return text


def direct(box: ToolRegistry, **arguments: object) -> ToolCall:
    return box.with_direct_calls(Message("assistant", tool_calls=(ToolCall("c1", "use_tool", arguments),))).tool_calls[
        0
    ]


def test_a_prompt_has_the_topics_of_the_other_tools_and_not_the_tools() -> None:
    specs = registry(*ALL).specs("owner")
    assert [spec.name for spec in specs] == ["greet", "find_tools", "use_tool"]
    assert specs[1].description.endswith("Topics: calendar, mail.")


def test_where_all_tools_are_in_the_prompt_nothing_finds_more() -> None:
    assert [spec.name for spec in registry(greet).specs("owner")] == ["greet"]


def test_a_guest_finds_only_what_was_granted() -> None:
    box = registry(*ALL, granted=("greet", "list_events"))
    specs = box.specs("guest")
    assert [spec.name for spec in specs] == ["greet", "find_tools", "use_tool"]
    assert specs[1].description.endswith("Topics: calendar.")
    nothing = registry(*ALL, granted=("greet",))
    assert [spec.name for spec in nothing.specs("guest")] == ["greet"]


async def test_what_a_guest_may_not_use_is_not_found_and_not_run() -> None:
    box = registry(*ALL, granted=("greet", "list_events"))
    assert "add_event" not in await find(box, "add an appointment to the calendar", "guest")
    text, ok = await box.run(direct(box, name="add_event", arguments={"title": "x"}), CONTEXT, "guest")
    assert not ok and "may not be used" in text


async def test_tools_are_found_by_other_forms_of_their_words_and_come_with_their_arguments() -> None:
    text = await find(registry(*ALL), "Calendars: add appointments")
    assert text.index("add_event") < text.index("list_events") and "search_mail" not in text
    assert '"required": ["title"]' in text and text.endswith("Call one with use_tool.")


async def test_a_query_that_matches_nothing_is_answered_with_all_there_is() -> None:
    text = await find(registry(*ALL), "teleport")
    assert all(line in text for line in ("- calendar: add_event", "- calendar: list_events", "- mail: search_mail"))


def test_the_words_of_a_name_weigh_more_than_those_of_a_description() -> None:
    assert rank_tools("mail", [add_event, search_mail]) == [search_mail]
    assert rank_tools("find events", [search_mail, list_events])[0] == list_events


def test_a_call_through_another_tool_is_one_of_the_tool_that_it_names() -> None:
    box = registry(*ALL)
    assert direct(box, name="add_event", arguments={"title": "Dentist"}) == ToolCall(
        "c1", "add_event", {"title": "Dentist"}
    )
    assert direct(box, name="add_event", arguments='{"title": "Dentist"}').arguments == {"title": "Dentist"}
    assert direct(box, name="greet", arguments={"name": "Ada"}).name == "greet"
    assert direct(box, name="list_events") == ToolCall("c1", "list_events", {})


@pytest.mark.parametrize(
    "arguments",
    [
        {"name": "dismantled", "arguments": {}},
        {"name": "use_tool", "arguments": {"name": "add_event"}},
        {"name": 7},
        {},
        {"name": "add_event", "arguments": "{"},
        {"name": "add_event", "arguments": [1]},
    ],
)
async def test_a_call_that_names_no_tool_is_answered_and_does_nothing(arguments: dict[str, object]) -> None:
    box = registry(*ALL)
    call = direct(box, **arguments)
    assert call.name == "use_tool"
    text, ok = await box.run(call, CONTEXT, "owner")
    assert not ok and text.startswith("Error: ")


async def test_a_tool_that_is_called_directly_though_it_is_not_in_the_prompt_runs() -> None:
    call = ToolCall("c1", "add_event", {"title": "Dentist"})
    assert await registry(*ALL).run(call, CONTEXT, "owner") == ("Dentist is in the calendar", True)
