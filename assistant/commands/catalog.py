"""Every command that there is, by subject. Importing it imports all of them, which is left to whoever has a command to
run or to look up.
"""

from __future__ import annotations

from collections.abc import Mapping

import click

from assistant.commands import (
    approvals,
    archive,
    backups,
    bridges,
    calendars,
    compaction,
    context_parts,
    docs,
    erasure,
    files,
    general,
    imports,
    mcp,
    memory,
    notify,
    people,
    reminders,
    schedules,
    sessions,
    skills,
    sleep,
    tasks,
    todo,
    usage,
    web,
)
from assistant.commands import argv as argv_words
from assistant.commands import help as help_command
from assistant.commands.table import DEFAULT_MAX_SECONDS, leaf_commands

# By subject, in the order in which `/help` lists them.
COMMANDS: Mapping[str, tuple[click.Command, ...]] = {
    "Talk": (
        *(help_command.help, general.undo, general.retry, general.stop, sessions.session, sessions.sessions),
        *(sessions.reset, compaction.compact, context_parts.context, compaction.branch, compaction.pins),
        *(tasks.requests, approvals.approvals),
    ),
    "Remember": (
        *(memory.memory, files.add, files.files, erasure.forget, sleep.sleep, archive.archive),
        imports.imports,
    ),
    "Time": (
        *(todo.agenda, todo.brief, todo.todo, reminders.remind, schedules.schedule),
        *(calendars.calendar, calendars.contacts),
    ),
    "People and networks": (
        *(people.people, bridges.bridge, bridges.deliveries, web.web, notify.notify),
        *(mcp.mcp, skills.skills),
    ),
    "Look after it": (general.status, general.model, usage.usage, backups.backup, docs.docs),
}


def command_root() -> click.Group:
    """All commands of the table, as one group of click."""
    return click.Group("", {command.name or "": command for commands in COMMANDS.values() for command in commands})


def max_seconds_of(text: str) -> float:
    """How long the commands of a typed line's name may take, at most."""
    words = argv_words.expand_alias([argv_words.command_name(text)])
    leaves = [leaf for path, leaf in leaf_commands(command_root()) if path[0] == words[0]]
    return max((leaf.max_seconds for leaf in leaves), default=DEFAULT_MAX_SECONDS)
