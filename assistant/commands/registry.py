"""Every command that there is, and running one: for a conversation, a shell or the API.

Who may use what is decided before anything of a command runs (`Permissions`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime, tzinfo
from functools import partial

import click

from assistant.commands import (
    archive,
    backups,
    bridges,
    compaction,
    erasure,
    general,
    memory,
    people,
    reminders,
    schedules,
    sessions,
    sleep,
    tasks,
    usage,
)
from assistant.commands import argv as argv_words
from assistant.commands.context import CommandContext, CommandServices, CommandStores, Surface
from assistant.commands.table import (
    CommandResult,
    ParsedCommand,
    command_help,
    leaf_commands,
    parse_command,
    short,
    usage_line,
)
from assistant.core.errors import UsageError
from assistant.core.permissions import Permissions
from assistant.core.sessions import SessionRole, session_role

# In the order in which `/help` lists them.
_COMMANDS: tuple[click.Command, ...] = (
    general.help,
    general.status,
    general.model,
    compaction.compact,
    compaction.branch,
    compaction.pins,
    tasks.requests,
    tasks.todo,
    sessions.session,
    sessions.sessions,
    sessions.reset,
    archive.archive,
    sleep.sleep,
    memory.memory,
    erasure.forget,
    reminders.remind,
    schedules.schedule,
    people.people,
    bridges.bridge,
    bridges.deliveries,
    backups.backup,
    usage.usage,
    general.undo,
    general.retry,
    general.stop,
)


def command_root() -> click.Group:
    """All commands of the table, as one group of click."""
    return click.Group("", {command.name or "": command for command in _COMMANDS})


class CommandRegistry:
    """The table of slash commands over one runtime."""

    def __init__(
        self,
        authority: Permissions,
        clock: Callable[[], datetime],
        stores: CommandStores,
        services: CommandServices,
        zone: tzinfo,
    ) -> None:
        """`authority` decides who may type what."""
        self.root = command_root()
        self._authority = authority
        self._clock = clock
        self._stores = stores
        self._services = services
        self._zone = zone

    def names(self) -> list[str]:
        """With the slash: every command, and the short forms."""
        return [f"/{name}" for name in (*self.root.commands, *argv_words.ALIASES)]

    def grantable_roles(self) -> dict[str, frozenset[str]]:
        """Who may be granted a command by the settings, which name whole groups and short forms."""
        leaves = {path: leaf.roles for path, leaf in leaf_commands(self.root)}
        groups: dict[str, frozenset[str]] = {}
        for path, roles in leaves.items():
            groups[path[0]] = groups.get(path[0], frozenset()) | roles
        return groups | {name: leaves[path] for name, path in argv_words.ALIASES.items()}

    async def run(
        self, text: str, session: str, *, bridge: str = "terminal", target: str = "", sender: str = "owner"
    ) -> str:
        """Run `text` ("/name rest") as the role of the session may. Raises `UsageError` for anything else."""
        words = argv_words.split_line(text.strip().removeprefix("/"))
        expanded = argv_words.expand_alias(words)
        if not expanded or expanded[0] not in self.root.commands:
            name = words[0] if words else ""
            raise UsageError(f"There is no command /{name}. Nothing was changed; /help lists them.")
        context = self._context(session, bridge=bridge, target=target, sender=sender)
        parsed = self._parse(expanded, context, str(words[0]).lower())
        result = await parsed.command.run(context, parsed.params)
        return json.dumps(result.value, ensure_ascii=False, indent=2) if parsed.as_json else result.text_and_remark

    async def run_argv(self, argv: Sequence[str], session: str, *, bridge: str = "terminal") -> CommandResult:
        """Run what the owner typed in a shell. Raises `UsageError`, and whatever else the command raises."""
        context = self._context(session, surface="shell", bridge=bridge, target=session)
        parsed = self._parse(argv_words.expand_alias(argv), context, "")
        if parsed.session is not None:
            if session_role(parsed.session) != "owner":
                raise UsageError("Commands from here act in the owner's conversations alone. Nothing was changed.")
            context = self._context(parsed.session, surface="shell", bridge=bridge, target=parsed.session)
            context.require_session()
        return await parsed.command.run(context, parsed.params)

    def _context(
        self, session: str, *, surface: Surface = "chat", bridge: str, target: str, sender: str = "owner"
    ) -> CommandContext:
        return CommandContext(
            session=session,
            now=self._clock(),
            zone=self._zone,
            stores=self._stores,
            running=self._services,
            surface=surface,
            bridge=bridge,
            target=target,
            sender=sender,
            trust="owner" if session_role(session) == "owner" else "guest",
            describe_commands=partial(self.describe, session_role(session)),
        )

    def _parse(self, argv: Sequence[str], context: CommandContext, typed_as: str) -> ParsedCommand:
        """A line that the session may run; `typed_as` is the short form, or the name, that was typed."""
        if context.surface == "chat":
            # Who may not use a group learns nothing of what is in it.
            self._require_granted(argv[0], typed_as, context.session)
        parsed = parse_command(self.root, argv)
        if context.surface == "chat":
            if parsed.session is not None:
                raise UsageError("--session is for a shell. Nothing was changed; type it in that conversation.")
            if session_role(context.session) not in parsed.command.roles:
                raise UsageError(_not_here(typed_as))
        return parsed

    def _require_granted(self, name: str, typed_as: str, session: str) -> None:
        role, admitted = session_role(session), self.grantable_roles()
        if not any(self._authority.may_run_command(role, typed, admitted[typed]) for typed in {name, typed_as}):
            raise UsageError(_not_here(typed_as))

    def describe(self, role: SessionRole, words: Sequence[str]) -> str:
        """What a role can type, or what one command does."""
        admitted = self.grantable_roles()
        if words:
            path = argv_words.expand_alias(words)
            # What a role may not use is not described to it.
            if path[0] in admitted and not self._authority.may_run_command(role, path[0], admitted[path[0]]):
                raise UsageError(_not_here(path[0]))
            return command_help(self.root, path)
        rows = [
            f"- `{usage_line(command, [name])}` — {short(command)}"
            for name, command in self.root.commands.items()
            if self._authority.may_run_command(role, name, admitted[name])
        ]
        leaving = "- `/quit` — leave this terminal; the assistant keeps what was said"
        return "\n".join([*rows, leaving] if role == "owner" else rows)


def _not_here(name: str) -> str:
    return f"/{name} cannot be used here. Nothing was changed; /help lists what can."
