"""`assistant memory`: what is remembered, where it came from, and putting it right."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

import click

from assistant.cli.lazy import LazyGroup
from assistant.cli.stored import opened, scope_of_session
from assistant.core.sessions import MAIN_SESSION, OWNER_SCOPE
from assistant.memory.commands import MemoryCommands
from assistant.settings.settings import Settings
from assistant.wire.stores import memory_place, memory_stores

T = TypeVar("T")
Function = TypeVar("Function", bound=Callable[..., object])

_COMMANDS = {
    "search": "assistant.cli.memory_looking:search",
    "list": "assistant.cli.memory_looking:list_",
    "show": "assistant.cli.memory_looking:show",
    "why": "assistant.cli.memory_looking:why",
    "as-of": "assistant.cli.memory_looking:as_of",
    "stats": "assistant.cli.memory_looking:stats",
    "edit": "assistant.cli.memory_changing:edit",
    "forget": "assistant.cli.forget:forget",
    "export": "assistant.cli.memory_changing:export",
    "import": "assistant.cli.memory_changing:import_",
    "rebuild": "assistant.cli.memory_changing:rebuild",
}


@click.group(cls=LazyGroup, commands_at=_COMMANDS)
def memory() -> None:
    """What is remembered: look at it, see where it came from, put it right, forget it, take it along.

    A memory is named by the first digits of its id, four or more; what was noted and is no memory yet as e12, the
    number of its journal entry.

    \b
    Example:
      assistant memory search "where does Anna work"
      assistant memory why 1a2b3c4d
      assistant memory edit 1a2b3c4d "Anna works at the harbour"
    """


def of_session(function: Function) -> Function:
    """The option that says whose memories are meant."""
    option = click.option(
        "--session",
        default=MAIN_SESSION,
        show_default=True,
        metavar="NAME",
        help="The conversation whose memories are meant.",
    )
    return option(function)


def looked(settings: Settings, session: str, look: Callable[[MemoryCommands, str], Awaitable[T]]) -> T:
    """What `look` finds in the memories of a session, by its scope, beside whoever serves the home. Raises
    `UsageError`, `HomeError`, `StoreError`."""
    with opened(settings) as stores:
        scope = OWNER_SCOPE if session == MAIN_SESSION else scope_of_session(stores.conversation, session)
        commands = MemoryCommands(memory_stores(stores), partial(memory_place, settings))

        async def ended() -> T:
            try:
                return await look(commands, scope)
            finally:
                await stores.memories.aclose()

        return asyncio.run(ended())
