"""Every command that there is, and running one: for a conversation, a shell or the API.

Who may use what is decided before anything of a command runs (`Permissions`).
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any, Protocol

import click

from assistant.commands import archive, compaction, reminders, requests, schedules, sessions, sleep
from assistant.commands import argv as argv_words
from assistant.commands.context import CommandContext, CommandServices, Surface
from assistant.commands.context import CommandStores as TableStores
from assistant.commands.erasure import parse_forget_target, render_forget_preview, render_forget_result
from assistant.commands.table import (
    CommandResult,
    ParsedCommand,
    command_help,
    leaf_commands,
    parse_command,
    short,
    usage_line,
)
from assistant.commands.usage import usage_markdown
from assistant.core.erasure import ErasurePreview, ErasureRequest, ErasureResult
from assistant.core.errors import UsageError
from assistant.core.messages import ABORTED_MARKER, Message, Trust
from assistant.core.people import ALL_ROLES, Permissions
from assistant.core.records import InboxReceipt, IncomingMessage, TodoItem
from assistant.core.sessions import session_role, session_scope
from assistant.core.slash_commands import Command, CommandInvocation, CommandProvider
from assistant.core.store_ports import Conversation, Outbox
from assistant.core.text import lazy_regex
from assistant.health import status_text as lines
from assistant.runtime.tool_registry import ToolRegistry
from assistant.store.character.todos import StoredTodos
from assistant.store.script.ledger import Ledger

# How `Forgetting.ask` writes its codes.
_CODE = lazy_regex(r"[0-9A-Fa-f]{6}")


# In the order in which `/help` lists them.
_COMMANDS: tuple[click.Command, ...] = (
    compaction.compact,
    compaction.branch,
    compaction.pins,
    requests.requests,
    sessions.session,
    sessions.sessions,
    sessions.reset,
    archive.archive,
    sleep.sleep,
    reminders.remind,
    schedules.schedule,
)


def command_root() -> click.Group:
    """All commands of the table, as one group of click."""
    return click.Group("", {command.name or "": command for command in _COMMANDS})


class AssistantControls(Protocol):
    """What commands need of the running process."""

    async def accept(self, incoming: IncomingMessage) -> InboxReceipt: ...
    async def stop_turn(self, session: str) -> bool: ...
    def is_running(self, session: str) -> bool: ...
    def status(self) -> Mapping[str, Any]: ...
    def describe_model(self) -> str: ...
    def choose_model(self, choice: str) -> str: ...


class ErasureRequests(Protocol):
    """What `assistant.erasure.service.Forgetting` offers a person who types."""

    async def request_code(self, wanted: ErasureRequest, now: datetime) -> tuple[ErasurePreview, str]: ...
    async def confirm(self, code: str, scope: str, now: datetime) -> ErasureResult: ...


@dataclass(frozen=True, slots=True)
class CommandStores:
    """The stores that commands read and change."""

    conversation: Conversation
    outbox: Outbox
    todos: StoredTodos
    ledger: Ledger


class CommandRegistry:
    """The table of slash commands over one runtime."""

    def __init__(
        self,
        live: AssistantControls,
        stores: CommandStores,
        toolbox: ToolRegistry,
        rooms: Iterable[CommandProvider],
        forgetting: ErasureRequests,
        authority: Permissions,
        clock: Callable[[], datetime],
        table_stores: TableStores,
        services: CommandServices,
        zone: tzinfo,
    ) -> None:
        """`rooms` answer commands of their own; `authority` decides who may type what."""
        self._root = command_root()
        self._table_stores = table_stores
        self._services = services
        self._zone = zone
        self._live = live
        self._stores = stores
        self._toolbox = toolbox
        self._forgetting = forgetting
        self._authority = authority
        self._clock = clock
        self._table = {
            "help": Command("/help", "what you can type", self._help, ALL_ROLES),
            "status": Command("/status", "how the assistant is", self._status),
            "model": Command("/model [PROVIDER[:NAME]]", "who answers; or choose, until a restart", self._model),
            "usage": Command("/usage [day|model|kind|session]", "what models have cost, and may", self._usage),
            "todo": Command("/todo [add TEXT | done N... | remove N...]", "your to-do list", self._todo, ALL_ROLES),
            "forget": Command(
                "/forget [--keep-backups] TEXT | #N | entry N | memory ID",
                "show what would vanish from every copy, with a code",
                self._forget,
            ),
            **{name: command for room in rooms for name, command in room.entries().items()},
            "undo": Command("/undo", "take the last exchange out of the conversation", self._undo, ALL_ROLES),
            "retry": Command("/retry", "take the last exchange back and ask the same again", self._retry, ALL_ROLES),
            "stop": Command("/stop", "stop the answer that is being written", self._stop, ALL_ROLES),
        }

    def names(self) -> list[str]:
        """With the slash: every command, and the short forms."""
        return [f"/{name}" for name in (*self._table, *self._root.commands, *argv_words.ALIASES)]

    def allowed_roles(self) -> dict[str, frozenset[str]]:
        """Who may use each command at most, by its words without the slash."""
        leaves = {" ".join(path): leaf.roles for path, leaf in leaf_commands(self._root)}
        return {**{name: command.roles for name, command in self._table.items()}, **leaves}

    def grantable_roles(self) -> dict[str, frozenset[str]]:
        """Who may be granted a command by the settings, which name whole groups and short forms."""
        leaves = {path: leaf.roles for path, leaf in leaf_commands(self._root)}
        groups: dict[str, frozenset[str]] = {name: command.roles for name, command in self._table.items()}
        for path, roles in leaves.items():
            groups[path[0]] = groups.get(path[0], frozenset()) | roles
        return groups | {name: leaves[path] for name, path in argv_words.ALIASES.items()}

    async def run(
        self, text: str, session: str, *, bridge: str = "terminal", target: str = "", sender: str = "owner"
    ) -> str:
        """Run `text` ("/name rest") as the role of the session may. Raises `UsageError` for anything else."""
        words = argv_words.split_line(text.strip().removeprefix("/"))
        if (expanded := argv_words.expand_alias(words)) and expanded[0] in self._root.commands:
            typed_as = str(words[0]).lower()
            context = self._context(session, bridge=bridge, target=target, sender=sender)
            parsed = self._parse(expanded, context, typed_as)
            result = await parsed.command.run(context, parsed.params)
            return json.dumps(result.value, ensure_ascii=False, indent=2) if parsed.as_json else result.text
        name, _, rest = text.strip().removeprefix("/").partition(" ")
        command, role = self._table.get(name.lower()), session_role(session)
        if command is None:
            raise UsageError(f"There is no command /{name}. Nothing was changed; /help lists them.")
        if not self._authority.may_run_command(role, name.lower(), command.roles):
            raise UsageError(_not_here(name))
        trust: Trust = "owner" if role == "owner" else "guest"
        return await command.run(CommandInvocation(rest.strip(), session, bridge, self._clock(), target, sender, trust))

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
            stores=self._table_stores,
            running=self._services,
            surface=surface,
            bridge=bridge,
            target=target,
            sender=sender,
            trust="owner" if session_role(session) == "owner" else "guest",
        )

    def _parse(self, argv: Sequence[str], context: CommandContext, typed_as: str) -> ParsedCommand:
        """A line that the session may run; `typed_as` is the short form, or the name, that was typed."""
        if context.surface == "chat":
            # Who may not use a group learns nothing of what is in it.
            self._require_granted(argv[0], typed_as, context.session)
        parsed = parse_command(self._root, argv)
        if context.surface == "chat":
            if parsed.session is not None:
                raise UsageError("--session is for a shell. Nothing was changed; type it in that conversation.")
            if session_role(context.session) not in parsed.command.roles:
                raise UsageError(_not_here(typed_as))
        return parsed

    def _require_granted(self, name: str, typed_as: str, session: str) -> None:
        role, admitted = session_role(session), self.grantable_roles()
        if not any(self._authority.may_run_command(role, one, admitted[one]) for one in {name, typed_as}):
            raise UsageError(_not_here(typed_as))

    async def _forget(self, call: CommandInvocation) -> str:
        scope = session_scope(call.session)
        if _CODE.fullmatch(call.arguments):
            return "\n".join(render_forget_result(await self._forgetting.confirm(call.arguments, scope, call.now)))
        found, code = await self._forgetting.request_code(parse_forget_target(call.arguments, scope), call.now)
        return "\n".join(render_forget_preview(found, code))

    # ---------------------------------------------------------------------------------------------------------- looking

    async def _help(self, call: CommandInvocation) -> str:
        if call.arguments:
            return command_help(self._root, call.arguments.removeprefix("/").split())
        role = session_role(call.session)
        rows = [
            f"- `{command.usage}` — {command.help_text}"
            for name, command in self._table.items()
            if self._authority.may_run_command(role, name, command.roles)
        ]
        admitted = self.grantable_roles()
        rows += [
            f"- `{usage_line(command, [name])}` — {short(command)}"
            for name, command in self._root.commands.items()
            if self._authority.may_run_command(role, name, admitted[name])
        ]
        leaving = "- `/quit` — leave this terminal; the assistant keeps what was said"
        return "\n".join([*rows, leaving] if role == "owner" else rows)

    async def _status(self, _: CommandInvocation) -> str:
        return "\n".join(f"- {line}" for line in lines.render_lines(self._live.status()))

    async def _model(self, call: CommandInvocation) -> str:
        return self._live.choose_model(call.arguments) if call.arguments else self._live.describe_model()

    async def _usage(self, call: CommandInvocation) -> str:
        return usage_markdown(self._stores.ledger, call.arguments or "model", call.now)

    # --------------------------------------------------------------------------------------------------------- changing

    async def _todo(self, call: CommandInvocation) -> str:
        todos, scope = self._stores.todos, session_scope(call.session)
        action, _, rest = call.arguments.partition(" ")
        key = f"command:{call.now.isoformat()}"
        match action:
            case "add" if rest.strip():
                todos.add(scope, [rest.strip()], key, call.now)
            case "done" if rest.strip():
                todos.complete(scope, _numbers(rest), key, call.now)
            case "remove" if rest.strip():
                todos.remove(scope, _numbers(rest), key, call.now)
            case "":
                pass
            case _:
                raise UsageError(f"Use {self._table['todo'].usage}. Nothing was changed.")
        return _todo_list(todos.list_todos(scope))

    async def _undo(self, call: CommandInvocation) -> str:
        exchange = self._last_exchange(call.session)
        self._stores.conversation.hide_messages(call.session, [m.id for m in exchange if m.id is not None], call.now)
        effects = self._effects(exchange)
        told = "\n".join(["These effects stay:", *effects]) if effects else "It had no effects beyond the conversation."
        return f"Took back: {_first_words(exchange[0].content)!r} and its answer. The master log keeps both. {told}"

    async def _retry(self, call: CommandInvocation) -> str:
        question = self._last_exchange(call.session)[0]
        await self._undo(call)
        again = IncomingMessage(
            call.bridge,
            f"retry:{question.id}:{call.now.isoformat()}",
            call.session,
            session_scope(call.session),
            call.sender,
            call.trust,
            question.content,
            question.media,
            question.name,
            call.target or call.session,
        )
        await self._live.accept(again)
        return f"Asking again: {_first_words(question.content)!r}"

    async def _stop(self, call: CommandInvocation) -> str:
        return "Stopped." if await self._live.stop_turn(call.session) else "Nothing is being answered right now."

    # -------------------------------------------------------------------------------------------------------- exchanges

    def _last_exchange(self, session: str) -> list[Message]:
        if self._live.is_running(session):
            raise UsageError("An answer is being written; /stop it first. Nothing was changed.")
        known = any(info.key == session for info in self._stores.conversation.list_sessions())
        messages = self._stores.conversation.load_view(session).messages if known else ()
        asked = [n for n, m in enumerate(messages) if m.role == "user" and "carried_from" not in m.metadata]
        if not asked:
            raise UsageError("There is nothing to take back in this conversation.")
        return list(messages[asked[-1] :])

    def _effects(self, exchange: list[Message]) -> list[str]:
        """What already left the conversation: replies that were sent, tools that changed something."""
        turns = dict.fromkeys(str(m.metadata["turn"]) for m in exchange if "turn" in m.metadata)
        sent = [item for turn in turns for item in self._stores.outbox.list_by_turn(turn) if item.state == "sent"]
        calls = [call for m in exchange for call in m.tool_calls if self._toolbox.effects(call.name) != "none"]
        return [f"- sent on {i.outgoing.bridge}: {_first_words(i.outgoing.body)!r}" for i in sent] + [
            f"- tool `{call.name}` ran with {dict(call.arguments)}" for call in calls
        ]


def _not_here(name: str) -> str:
    return f"/{name} cannot be used here. Nothing was changed; /help lists what can."


def _numbers(text: str) -> list[int]:
    try:
        return [int(word.lstrip("#")) for word in shlex.split(text.replace(",", " "))]
    except ValueError:
        raise UsageError(
            f"{text!r} is not a list of to-do numbers, as in `/todo done 2 3`. Nothing was changed."
        ) from None


def _todo_list(todos: list[TodoItem]) -> str:
    return "\n".join(f"- [{'x' if t.done else ' '}] #{t.id} {t.text}" for t in todos) or "Nothing on the list."


def _first_words(text: str, most: int = 60) -> str:
    line = " ".join(text.removeprefix(ABORTED_MARKER).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
