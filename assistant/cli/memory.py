"""`assistant memory export`: everything that is remembered, as JSON."""

from __future__ import annotations

import asyncio
import json
from functools import partial

import click

from assistant.cli.home_stores import load_effective_settings, open_home_stores, scope_of_session
from assistant.cli.output import print_json, print_text
from assistant.cli.shell import with_commands
from assistant.commands import memory as memory_commands
from assistant.core.calendar import utc_now
from assistant.core.sessions import MAIN_SESSION, OWNER_SCOPE
from assistant.memory.service import MemoryService
from assistant.wire.stores import memory_deps, memory_storage_info


@click.command()
@click.option("--json/--jsonl", "whole", default=True, help="One JSON object, or JSON lines after a line about them.")
@click.option("--session", default=MAIN_SESSION, metavar="NAME", help="The conversation that is meant (main).")
def export(whole: bool, session: str) -> None:
    """Print everything remembered, as `assistant memory import` reads it.

    Former memories and the journal are included.

    \b
    Example:
      assistant memory export > memories.json
      assistant memory export --jsonl | grep Anna
    """
    settings = load_effective_settings(read_only=True)
    with open_home_stores(settings) as stores:
        scope = OWNER_SCOPE if session == MAIN_SESSION else scope_of_session(stores.conversation, session)
        service = MemoryService(memory_deps(stores), partial(memory_storage_info, settings))

        async def read() -> dict[str, object]:
            try:
                return await service.export(scope, utc_now())
            finally:
                await stores.memories.aclose()

        everything = asyncio.run(read())
    if whole:
        print_json(everything)
        return
    entries, memories = everything.pop("entries"), everything.pop("memories")
    assert isinstance(entries, list) and isinstance(memories, list)
    for row in (everything, *({"entry": entry} for entry in entries), *({"memory": memory} for memory in memories)):
        print_text(json.dumps(row, ensure_ascii=False))


memory = with_commands(memory_commands.memory, export)
