"""Commands of the table, run over some stores of a test."""

from __future__ import annotations

import dataclasses
import json
from datetime import datetime, tzinfo
from typing import Any, cast
from zoneinfo import ZoneInfo

from assistant.commands.argv import expand_alias, split_line
from assistant.commands.catalog import command_root
from assistant.commands.context import CommandContext, CommandServices, CommandStores
from assistant.commands.table import parse_command

BERLIN = ZoneInfo("Europe/Berlin")


async def run_line(line: str, session: str, now: datetime, zone: tzinfo = BERLIN, **parts: Any) -> str:
    """What a command answers in a conversation; of stores and services it gets these and no other."""
    stores = {field.name: parts.get(field.name) for field in dataclasses.fields(CommandStores)}
    services = {field.name: parts.get(field.name) for field in dataclasses.fields(CommandServices)}
    context = CommandContext(
        session=session,
        now=now,
        zone=zone,
        stores=CommandStores(**cast(Any, stores)),
        running=CommandServices(**cast(Any, services)),
    )
    parsed = parse_command(command_root(), expand_alias(split_line(line.removeprefix("/"))))
    result = await parsed.command.run(context, parsed.params)
    return json.dumps(result.value) if parsed.as_json else result.text
