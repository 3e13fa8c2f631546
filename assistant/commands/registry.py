"""Runs commands: for a conversation, a shell or the API.

Who may use what is decided before anything of a command runs (`Permissions`).
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Sequence
from datetime import datetime, tzinfo
from functools import cached_property, partial

import click

from assistant.commands import argv as argv_words
from assistant.commands.context import CommandContext, CommandEntry, CommandServices, CommandStores, Surface
from assistant.commands.paging import page_of, without_page
from assistant.commands.table import (
    CommandResult,
    ParsedCommand,
    leaf_commands,
    parse_command,
)
from assistant.core.errors import UsageError
from assistant.core.permissions import Permissions
from assistant.core.sessions import SessionRole, session_role


def grantable_roles(root: click.Group) -> dict[str, frozenset[str]]:
    """Who may be granted a command by the settings, which name whole groups and short forms."""
    leaves = {path: leaf.roles for path, leaf in leaf_commands(root)}
    groups: dict[str, frozenset[str]] = {}
    for path, roles in leaves.items():
        groups[path[0]] = groups.get(path[0], frozenset()) | roles
    return groups | {name: leaves[path] for name, path in argv_words.ALIASES.items()}


class CommandRegistry:
    """The table of slash commands over one runtime."""

    def __init__(
        self,
        authority: Permissions,
        clock: Callable[[], datetime],
        stores: CommandStores,
        services: CommandServices,
        zone: tzinfo,
        refresh_settings: Callable[[], None],
    ) -> None:
        """`authority` decides who may type what. `refresh_settings` takes over what was changed in the files, so that
        a command sees what the one before it set."""
        self._authority = authority
        self._clock = clock
        self._stores = stores
        self._services = services
        self._zone = zone
        self._refresh_settings = refresh_settings

    @cached_property
    def root(self) -> click.Group:
        """All commands; imported when somebody first asks for one."""
        from assistant.commands.catalog import command_root

        return command_root()

    def names(self) -> list[str]:
        """With the slash: every command, and the short forms."""
        return [f"/{name}" for name in (*self.root.commands, *argv_words.ALIASES)]

    def grantable_roles(self) -> dict[str, frozenset[str]]:
        """The roles that may be granted each command, by the name that settings use."""
        return grantable_roles(self.root)

    async def run(
        self, text: str, session: str, *, bridge: str = "terminal", target: str = "", sender: str = "owner"
    ) -> str:
        """Run `text` ("/name rest") as the role of the session may. Raises `UsageError` for anything else."""
        words, name = argv_words.split_line(text.strip().removeprefix("/")), argv_words.command_name(text)
        expanded = argv_words.expand_alias([name, *words[1:]])
        if expanded[1:] == ["help"] and isinstance(self.root.commands.get(expanded[0]), click.Group):
            expanded.reverse()  # "/todo help" is "/help todo"
        if expanded[0] not in self.root.commands:
            raise UsageError(self._unknown(name or "".join(words[:1]), session_role(session), bridge))
        context = self._context(session, bridge=bridge, target=target, sender=sender)
        parsed = self._parse(expanded, context, name)
        result = await parsed.command.run(context, parsed.params)
        if parsed.as_json:
            return json.dumps(result.value, ensure_ascii=False, indent=2)
        return page_of(result.text_and_remark, parsed.page, without_page([name, *words[1:]]))

    async def run_argv(self, argv: Sequence[str], session: str, *, bridge: str = "terminal") -> CommandResult:
        """Run what the owner typed in a shell. Raises `UsageError`, and whatever else the command raises."""
        context = self._context(session, surface="shell", bridge=bridge, target=session)
        parsed = self._parse(argv_words.expand_alias(argv), context, "")
        if parsed.session is not None:
            if session_role(parsed.session) != "owner":
                raise UsageError("Commands from here work only in the owner's conversations. Nothing was changed.")
            context = self._context(parsed.session, surface="shell", bridge=bridge, target=parsed.session)
            context.require_session()
        return await parsed.command.run(context, parsed.params)

    def _context(
        self, session: str, *, surface: Surface = "chat", bridge: str, target: str, sender: str = "owner"
    ) -> CommandContext:
        self._refresh_settings()
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
            list_commands=partial(self.list_commands, session_role(session)),
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

    def _unknown(self, name: str, role: SessionRole, bridge: str) -> str:
        """What is said of a command that there is not, with the one like it that the role may use."""
        usable, typed = self._usable(role), name.lower()
        if f"/{typed}" in argv_words.LEAVE_COMMANDS:
            return f"/{typed} leaves a conversation in a terminal; here there is nothing to leave. Nothing was changed."
        if role == "owner" and typed in argv_words.SHELL_ONLY_COMMANDS:
            return f"`assistant {typed}` is run in a shell, not in a conversation. Nothing was changed or sent."
        if role == "owner" and typed == "aihistory":
            return "`aihistory` is run in a shell, not in a conversation. Nothing was changed or sent."
        if bridge == "terminal":
            usable = [*usable, *(it.removeprefix("/") for it in argv_words.LEAVE_COMMANDS)]
        near = [it for it in usable if typed and it.startswith(typed)] or difflib.get_close_matches(typed, usable, 1)
        meant = f" Did you mean {' or '.join(f'`/{it}`' for it in near)}?" if len(near) in range(1, 4) else ""
        return f"There is no command /{name}.{meant} Nothing was changed or sent; /help lists the commands."

    def _usable(self, role: SessionRole) -> Sequence[str]:
        """The commands, and short forms, that a role may type."""
        grantable = self.grantable_roles().items()
        return [name for name, roles in grantable if self._authority.may_run_command(role, name, roles)]

    def list_commands(self, role: SessionRole) -> Sequence[CommandEntry]:
        """What a role can type. What it may not use is not described to it."""
        from assistant.commands.catalog import COMMANDS
        from assistant.commands.help import describe_commands

        return list(describe_commands(COMMANDS, self._usable(role), role))


def _not_here(name: str) -> str:
    return f"/{name} cannot be used here. Nothing was changed; /help lists what can."
