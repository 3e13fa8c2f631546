"""The toolbox: schemas from signatures, arguments checked, every failure an answer that a model can act on."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

import pytest
from pydantic import Field

from assistant.core.errors import StoreError, ToolError
from assistant.core.messages import ToolCall
from assistant.core.permissions import ALL_ROLES
from assistant.core.ports import ToolContext
from assistant.runtime.tool_registry import ToolRegistry
from assistant.settings.home import Home
from assistant.settings.settings import load_settings
from assistant.wire.app import build_app
from tests.support.in_memory import InMemoryHistory, grant_others, new_todos
from tools.declaration import INVALID_JSON, FunctionTool, StorableInt, _schema_by_library, tool
from tools.toolbox import build_toolbox

CONTEXT = ToolContext("main", "owner", "t1", "t1:c1", datetime(2026, 11, 20, 13, 3, tzinfo=UTC))


@tool(roles=ALL_ROLES)
def greet(
    context: ToolContext,
    name: Annotated[str, Field(max_length=20)],
    times: Annotated[int, Field(ge=1, le=3)] = 1,
    tone: Literal["warm", "cool"] = "warm",
    after: StorableInt | None = None,
) -> str:
    """Say hello.
    Twice, if asked."""
    return f"{tone} hello {name}, " * times


@tool(effects="keyed", protected=True)
async def keep(context: ToolContext, text: str = "") -> str:
    """Keep something."""
    return f"{context.key} {text}"


def call(tool_name: str, /, **arguments: object) -> ToolCall:
    return ToolCall("c1", tool_name, arguments)


def registry(*tools: object, timeout_seconds: float = 60.0) -> ToolRegistry:
    authority = grant_others(["greet", "keep"])
    return ToolRegistry(tools or (greet, keep), timeout_seconds=timeout_seconds, authority=authority)  # type: ignore[arg-type]


def test_a_signature_becomes_a_schema_without_ballast() -> None:
    (spec, *_) = registry().specs("owner")
    assert (spec.name, spec.description) == ("greet", "Say hello. Twice, if asked.")
    assert spec.schema == {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "maxLength": 20},
            "times": {"type": "integer", "minimum": 1, "maximum": 3, "default": 1},
            "tone": {"type": "string", "enum": ["warm", "cool"], "default": "warm"},
            "after": {"type": "integer"},
        },
    }


def test_the_schema_of_each_tool_is_the_one_that_pydantic_writes(tmp_path: Path) -> None:
    switched_on = {
        "WEB_SEARCH__PROVIDER": "searxng",
        "WEB_SEARCH__URL": "https://search.example.org",
        "RUN_COMMAND__ENABLED": "true",
        "RUN_COMMAND__SANDBOX": "none",
        "MAIL_ACCOUNT__ADDRESS": "me@example.org",
        "CALENDAR__SOURCES": '[{name = "own", kind = "ics", url = "/own.ics"}]',
    }
    settings = load_settings(Home(tmp_path), {f"ASSISTANT_{name}": value for name, value in switched_on.items()})
    app = build_app(settings, lambda: CONTEXT.now)
    try:
        tools = [app.toolbox.find(name, "owner") for name in app.toolbox.allowed_roles]
    finally:
        app.close()
    declared = [one for one in tools if isinstance(one, FunctionTool)]
    assert {"search_web", "run_command", "find_events", "add_event"} <= {one.spec.name for one in declared}
    for one in declared:
        assert json.dumps(one.spec.schema) == json.dumps(_schema_by_library(one.arguments()))


def test_a_type_that_is_not_described_here_has_the_schema_of_pydantic() -> None:
    @tool()
    def pick(context: ToolContext, place: Annotated[str, Field(pattern="^a", description="where")]) -> str:
        return place

    about = {"type": "string", "pattern": "^a", "description": "where"}
    assert pick.spec.schema == {"type": "object", "required": ["place"], "properties": {"place": about}}


async def test_defaults_fill_in_and_numbers_in_quotes_are_numbers() -> None:
    assert await registry().run(call("greet", name="Bo", times="2"), CONTEXT, "guest") == (
        "warm hello Bo, warm hello Bo, ",
        True,
    )


async def test_null_means_left_out() -> None:
    text, ok = await registry().run(call("greet", name="Bo", after=None), CONTEXT, "owner")
    assert ok, text


async def test_an_async_tool_is_awaited_and_sees_its_key() -> None:
    assert await registry().run(call("keep", text="x"), CONTEXT, "owner") == ("t1:c1 x", True)


async def test_wrong_arguments_are_named_with_what_is_allowed() -> None:
    text, ok = await registry().run(call("greet", times=9, tone="loud", volume=11), CONTEXT, "owner")
    assert not ok
    assert text.startswith("Error: greet was not run: ")
    assert "name is missing" in text
    assert "times should be less than or equal to 3, not 9" in text
    assert "tone should be 'warm' or 'cool', not \"loud\"" in text
    assert '"volume" is not an argument' in text
    assert "String" not in text
    assert text.endswith("Its arguments: name (required), times, tone, after.")


async def test_a_huge_wrong_argument_is_not_repeated_whole() -> None:
    text, _ = await registry().run(call("greet", name="x" * 1_000_000), CONTEXT, "owner")
    assert len(text) < 400


async def test_numbers_beyond_what_a_database_takes_are_refused() -> None:
    text, ok = await registry().run(call("greet", name="Bo", after=2**63), CONTEXT, "owner")
    assert not ok
    assert "after must be 0 or more, and below 2^63" in text


async def test_broken_json_is_answered_with_where_it_broke_and_an_example() -> None:
    text, ok = await registry().run(call("greet", **{INVALID_JSON: '{"name": "Bo"'}), CONTEXT, "owner")
    assert not ok
    assert "not valid JSON" in text
    assert "char 13" in text
    assert '{"name": "…"}' in text


async def test_json_that_is_no_object_is_told_so() -> None:
    text, _ = await registry().run(call("greet", **{INVALID_JSON: "[1]"}), CONTEXT, "owner")
    assert "not one JSON object" in text


async def test_an_unknown_tool_gets_the_nearest_names() -> None:
    text, ok = await registry().run(call("greeet"), CONTEXT, "owner")
    assert not ok
    assert text == 'Error: there is no tool "greeet". Did you mean greet? Available: greet, keep.'


async def test_a_name_that_is_near_nothing_gets_the_list() -> None:
    text, _ = await registry().run(call("\n" * 500), CONTEXT, "guest")
    assert text.endswith("Available: greet.")
    assert len(text) < 300


async def test_a_role_is_offered_its_tools_and_refused_the_others() -> None:
    box = registry()
    assert [spec.name for spec in box.specs("owner")] == ["greet", "keep"]
    assert [spec.name for spec in box.specs("guest")] == ["greet"]
    assert box.specs("stranger") == ()
    text, ok = await box.run(call("keep", text="x"), CONTEXT, "guest")
    assert (text, ok) == ("Error: keep may not be used in this conversation. Available: greet.", False)


async def test_a_tool_that_takes_too_long_is_stopped_and_its_effect_left_in_doubt() -> None:
    stopped = asyncio.Event()

    @tool(effects="once", timeout_seconds=60.0)
    async def dawdle(context: ToolContext) -> str:
        """Wait for ever."""
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return ""

    text, ok = await registry(dawdle, timeout_seconds=0.01).run(call("dawdle"), CONTEXT, "owner")
    assert not ok
    assert stopped.is_set()
    assert "took longer than 0.01 s and was stopped. Whether it took effect is not known" in text


async def test_cancellation_passes_through() -> None:
    begun = asyncio.Event()

    @tool()
    async def dawdle(context: ToolContext) -> str:
        """Wait for ever."""
        begun.set()
        await asyncio.Event().wait()
        return ""

    running = asyncio.create_task(registry(dawdle).run(call("dawdle"), CONTEXT, "owner"))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ToolError("there is no such thing. Try another."), "Error: there is no such thing. Try another."),
        (StoreError("The disk is full."), "Error: The disk is full."),
        (PermissionError(13, "Permission denied"), "Error: fail failed: Permission denied."),
        (TimeoutError(), "Error: fail failed: TimeoutError."),
        (KeyError("secret words"), "Error: fail failed unexpectedly (KeyError); this is a fault of the tool."),
        (RecursionError(), "Error: fail failed unexpectedly (RecursionError); this is a fault of the tool."),
    ],
)
async def test_whatever_a_tool_raises_becomes_a_result(error: Exception, told: str) -> None:
    @tool()
    def fail(context: ToolContext) -> str:
        """Fail."""
        raise error

    assert await registry(fail).run(call("fail"), CONTEXT, "owner") == (told, False)


async def test_a_fault_is_recorded_without_the_words_it_worked_on(capsys: pytest.CaptureFixture[str]) -> None:
    @tool()
    def fail(context: ToolContext) -> str:
        """Fail."""
        raise KeyError("secret words")

    await registry(fail).run(call("fail"), CONTEXT, "owner")
    logged = "".join(capsys.readouterr())
    assert "KeyError" in logged
    assert "test_registry.py" in logged
    assert "secret words" not in logged


async def test_a_result_can_always_be_written_down() -> None:
    @tool()
    def odd(context: ToolContext) -> str:
        """Say something odd."""
        return "a\ud800b\0c"

    text, ok = await registry(odd).run(call("odd"), CONTEXT, "owner")
    assert ok
    assert text == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}c"


def test_what_a_tool_declares_is_known_by_its_name() -> None:
    box = registry()
    assert (box.effects("greet"), box.effects("keep")) == ("none", "keyed")
    assert box.protected == {"keep"}


def test_the_effect_of_a_tool_that_is_gone_counts_as_not_repeatable() -> None:
    assert registry().effects("dismantled") == "once"


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="two tools are called greet"):
        registry(greet, greet)


def test_the_app_offers_its_tools_in_one_order_and_within_700_tokens(tmp_path: Path) -> None:
    names = ["search_history", "read_history", "manage_todo_list", "current_time", "list_files", "read_file"]
    box = build_toolbox(
        InMemoryHistory(), new_todos(), workspace=tmp_path, zone=ZoneInfo("UTC"), authority=grant_others(names)
    )
    assert [spec.name for spec in box.specs("owner")] == names
    assert [spec.name for spec in box.specs("guest")] == names[:4]
    assert box.specs("room") == box.specs("guest")
    assert box.protected == {"manage_todo_list"}
    assert {name: box.effects(name) for name in names} == dict.fromkeys(names, "none") | {"manage_todo_list": "keyed"}
    sent = [{"name": s.name, "description": s.description, "input_schema": dict(s.schema)} for s in box.specs("owner")]
    assert len(json.dumps(sent)) / 4 <= 700
