"""Commands of the table, run over some stores of a test."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import Any, cast
from zoneinfo import ZoneInfo

from assistant.commands.argv import expand_alias, split_line
from assistant.commands.context import CommandContext, CommandStores
from assistant.commands.registry import command_root
from assistant.commands.table import parse_command

BERLIN = ZoneInfo("Europe/Berlin")


async def run_with_stores(line: str, session: str, now: datetime, **stores: Any) -> str:
    """What a command that reads answers in a conversation; it gets these stores and no other."""
    given = {field.name: stores.get(field.name) for field in dataclasses.fields(CommandStores)}
    context = CommandContext(
        session=session, now=now, zone=BERLIN, stores=CommandStores(**cast(Any, given)), running=None
    )
    parsed = parse_command(command_root(), expand_alias(split_line(line)))
    return (await parsed.command.run(context, parsed.params)).text
