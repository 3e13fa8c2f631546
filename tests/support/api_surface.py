"""Everything through which words of a home can be reached or changed, found by looking: tools, slash commands, the
command lines, the routes of the control API, and the public methods of the stores and of the rooms of an app."""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import click

from assistant.cli.aihistory.main import aihistory
from assistant.cli.main import assistant
from assistant.core.checked_tables import CheckedTable
from assistant.web.app import build_web_app
from assistant.wire.app import App

PROJECT_PREFIXES = ("assistant.", "sleep.", "tools.")


def subcommands(name: str, command: click.Command) -> Iterator[str]:
    """Every command below one, by its words."""
    context = click.Context(command)
    if not isinstance(command, click.Group):
        yield name
        return
    if command.invoke_without_command:
        yield name
    for word in command.list_commands(context):
        found = command.get_command(context, word)
        assert found is not None
        yield from subcommands(f"{name} {word}", found)


def command_lines() -> set[str]:
    return {*subcommands("assistant", assistant), *subcommands("aihistory", aihistory)}


def api_routes(app: App) -> set[str]:
    """As in `POST /v1/messages`."""
    web_app = build_web_app(app.web.deps)
    return {f"{method.upper()} {path}" for path, item in web_app.openapi()["paths"].items() for method in item}


def all_routes(app: App) -> set[tuple[str, str]]:
    """Method and path of everything that is served, what no description tells included."""

    def found(router: Any, prefix: str) -> Iterator[tuple[str, str]]:
        for route in router.routes:
            inner = getattr(route, "original_router", None)
            if inner is not None:
                yield from found(inner, prefix + route.include_context.prefix)
            else:
                yield from ((method, prefix + route.path) for method in route.methods)

    return set(found(build_web_app(app.web.deps), ""))


def public_methods(thing: object) -> dict[str, Callable[..., Any]]:
    """Public methods, what its class inherits from ours included. Settings are values and have none."""
    if isinstance(thing, CheckedTable):
        return {}
    found: dict[str, Callable[..., Any]] = {}
    for name, member in inspect.getmembers(type(thing), callable):
        if not name.startswith("_") and (getattr(member, "__module__", "") or "").startswith(PROJECT_PREFIXES):
            found[name] = getattr(thing, name)
    return found


def app_stores(app: App) -> dict[str, object]:
    """By their names in `Stores`."""
    return dict(vars(app.stores))


def app_parts(app: App) -> dict[str, object]:
    """What of the app is ours, by name, the app itself included; rooms in rooms too."""
    found: dict[str, object] = {"app": app}
    for name, thing in vars(app).items():
        if type(thing).__module__.startswith(PROJECT_PREFIXES) and name not in ("settings", "stores"):
            found[name.lstrip("_")] = thing
            if dataclasses.is_dataclass(thing):
                for field in dataclasses.fields(thing):
                    inner = getattr(thing, field.name)
                    if type(inner).__module__.startswith(PROJECT_PREFIXES):
                        found[f"{name.lstrip('_')}.{field.name}"] = inner
    return found


def reachable_methods(app: App) -> dict[str, dict[str, Callable[..., Any]]]:
    """Methods of everything, by what they belong to."""
    things = {**{f"stores.{name}": thing for name, thing in app_stores(app).items()}, **app_parts(app)}
    once = {id(thing): name for name, thing in reversed(things.items())}
    found = {name: things[name] for name in things if name in once.values()}
    return {name: methods for name, thing in found.items() if (methods := public_methods(thing))}


# ------------------------------------------------------------------------------------------------------------- scoping


def parameter_names(method: Callable[..., Any]) -> set[str]:
    """What a method is told beside words: the names of its parameters, and the fields of the values it is given."""
    function = inspect.unwrap(getattr(method, "__func__", method))
    found: set[str] = set()
    for parameter in inspect.signature(function).parameters.values():
        found |= {parameter.name, *_fields(str(parameter.annotation), function.__globals__, 3)}
    return found


def _fields(annotation: str, known: dict[str, Any], depth: int) -> set[str]:
    found: set[str] = set()
    for word in re.findall(r"\w+", annotation):
        kind = known.get(word)
        if depth and inspect.isclass(kind) and dataclasses.is_dataclass(kind):
            around = vars(sys.modules[kind.__module__])
            for field in dataclasses.fields(kind):
                found |= {field.name, *_fields(str(field.type), around, depth - 1)}
    return found
