"""F33: what reaches words of a home is known, all of it, and how it is scoped stands in `scopes.toml`. Whatever is new
has to be put there; whatever is there has to be so."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from operator import eq
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from assistant.commands.table import leaf_commands
from assistant.core.permissions import ALL_ROLES, OWNER_ONLY
from assistant.settings.settings import load_settings
from assistant.web.app import build_web_app
from assistant.web.page_files import PAGE_FOLDER
from assistant.wire.app import App, build_app
from tests.support import api_surface as reach
from tests.support.scripted import RecordingBridge, ScriptedModel, SteppingClock

TABLE: dict[str, Any] = tomllib.loads((Path(__file__).parent / "scopes.toml").read_text(encoding="utf-8"))
ROLES = {"everybody": ALL_ROLES, "owner": OWNER_ONLY}


# With one there are the tools over it.
CALENDAR = '[{ name = "Own", kind = "ics", url = "/own.ics" }]'


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    environment = {"ASSISTANT_HOME": str(tmp_path_factory.mktemp("home")), "ASSISTANT_CALENDAR__SOURCES": CALENDAR}
    settings = load_settings(None, environment)
    made = build_app(settings, SteppingClock(), bridges={"kept": RecordingBridge()}, model=ScriptedModel())
    yield made
    made.close()


def listed(table: dict[str, list[str]]) -> dict[str, str]:
    """The kind of each name; none is listed twice."""
    names = [(name, kind) for kind, group in table.items() for name in group]
    assert len(dict(names)) == len(names)
    return dict(names)


def test_f33_every_tool_is_listed_with_the_roles_that_it_admits(app: App) -> None:
    assert {name: ROLES[kind] for name, kind in listed(TABLE["tools"]).items()} == app.toolbox.allowed_roles


def test_f33_every_slash_command_is_listed_with_the_roles_that_it_admits(app: App) -> None:
    assert {name: ROLES[kind] for name, kind in listed(TABLE["slash"]).items()} == {
        " ".join(path): leaf.roles for path, leaf in leaf_commands(app.commands.root)
    }


def test_f33_every_command_line_is_listed() -> None:
    assert listed(TABLE["lines"]).keys() == reach.command_lines()


def test_every_command_that_the_page_runs_is_one_of_the_command_line() -> None:
    lines = [line.removeprefix("assistant ").split() for line in reach.command_lines()]
    lines.append(["help"])  # there it is an option, --help
    scripts = "".join(path.read_text(encoding="utf-8") for path in PAGE_FOLDER.glob("*.js"))
    # What stands in it word for word: an option, or what is computed, ends it.
    found = re.findall(
        r'(?:(?:run|read|runAsked)\(|argv=\$\{)\[((?:"[a-z-]+"[,\]] ?)+)|act\(((?:"[a-z-]+", )+)', scripts
    )
    runs = {tuple(re.findall(r'"([a-z][a-z-]*)"', "".join(words))) for words in found}
    assert len(runs) > 40
    unknown = [run for run in runs if not any(all(map(eq, run, line)) for line in lines)]
    assert unknown == []


def test_f33_every_route_is_listed(app: App) -> None:
    assert listed(TABLE["routes"]).keys() == reach.api_routes(app)


def test_f33_every_method_of_stores_and_rooms_is_listed(app: App) -> None:
    there = {f"{thing}.{name}" for thing, methods in reach.reachable_methods(app).items() for name in methods}
    table = {f"{thing}.{name}" for thing, kinds in TABLE["methods"].items() for name in listed(kinds)}
    assert there - table == set(), "not in scopes.toml"
    assert table - there == set(), "gone, and still in scopes.toml"


def test_f33_what_is_listed_as_scoped_is_told_a_scope_or_a_session(app: App) -> None:
    things = reach.reachable_methods(app)
    untold = [
        f"{thing}.{name} is told no {kind}"
        for thing, kinds in TABLE["methods"].items()
        for name, kind in listed(kinds).items()
        if kind in ("scope", "session") and kind not in reach.parameter_names(things[thing][name])
    ]
    assert untold == []


@pytest.mark.parametrize("session", ["peer:kept:7", "room:kept:-200", "peer:", "room:", "guest", "", "main:x"])
def test_f33_a_route_that_takes_a_session_takes_the_owners_alone(app: App, session: str) -> None:
    client = TestClient(build_web_app(app.web.deps))
    bodies = {
        "POST /v1/messages": {"text": "hi", "external_id": "1", "session": session},
        "POST /v1/commands": {"text": "/status", "session": session},
        "POST /v1/stop": {"session": session},
    }
    for route in TABLE["routes"]["session"]:
        method, path = route.split()
        body, named = bodies.get(route), "{session}" in path
        params = {} if body or named else {"session": session, "q": "hi"}
        answer = client.request(method, path.replace("{session}", session), json=body, params=params)
        assert answer.status_code == (400 if session or not named else 404), route
    assert app.stores.conversation.list_sessions() == []
