"""Commands about the conversation that one is in, and about the assistant as a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo
from operator import attrgetter
from typing import Annotated, Any

import click
from pydantic import BeforeValidator, ConfigDict, Field

from assistant.commands.context import CommandContext
from assistant.commands.items import Item
from assistant.commands.table import TableCommand
from assistant.core.approvals import NOT_DONE
from assistant.core.dataclass import dataclass
from assistant.core.errors import NothingYet, UsageError
from assistant.core.messages import ABORTED_MARKER, Message, ToolCall
from assistant.core.permissions import ALL_ROLES
from assistant.core.ports import ToolContext
from assistant.core.records import IncomingMessage
from assistant.core.text import shorten_line
from assistant.store.script.notices import TERMINAL_BRIDGE


class StatusReport(Item):
    """How the assistant is. Every other field is about one part."""

    model_config = ConfigDict(extra="allow")

    ok: bool = Field(description="False when anything needs a person.")
    problems: list[str] = Field(description="A line each, ending with what to do.")
    next_sleep: datetime | None = Field(
        None, description="When the next nightly sleep starts. In the past if it is due; null if nights are off."
    )


@dataclass(frozen=True, slots=True)
class RenderedStatus:
    """How the assistant is."""

    report: Mapping[str, Any]
    text: str


@click.command(
    cls=TableCommand, result=Annotated[StatusReport, BeforeValidator(attrgetter("report"))], with_session=False
)
def status(context: CommandContext) -> RenderedStatus:
    """Show how the assistant is.

    > /status
    """
    report = context.services.status()
    return RenderedStatus(report, "\n".join(f"- {line}" for line in context.services.status_lines(report)))


@dataclass(frozen=True, slots=True)
class ModelOption:
    """A model that may answer, as `/model` takes it."""

    name: str
    about: str


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """Which model answers."""

    text: str
    choices: list[ModelOption]


@click.command(cls=TableCommand, with_session=False)
@click.argument("choice", metavar="[PROVIDER[:NAME]]", default="")
def model(context: CommandContext, choice: str) -> ModelAnswer:
    """Show which model answers, or choose one until a restart; `auto` is what the settings say.

    > assistant model
    > assistant model anthropic:claude-sonnet-5-5
    > assistant model auto
    """
    models = context.services.models
    text = models.choose(choice) if choice else models.describe()
    return ModelAnswer(text, [ModelOption(name, about) for name, about in models.list_choices().items()])


# --------------------------------------------------------------------------------------------------- the last exchange


@dataclass(frozen=True, slots=True)
class UndoneExchange:
    """What was removed from the conversation."""

    question: str
    message_ids: list[int]
    effects: list[str]  # what had left the conversation already, and stays


def _render_undone(undone: UndoneExchange, _: tzinfo) -> str:
    effects = "It had no effects beyond the conversation."
    if undone.effects:
        effects = "\n".join(["These effects stay:", *(f"- {line}" for line in undone.effects)])
    return f"Undone: {_words(undone.question)!r} and its answer. The message log keeps both. {effects}"


@click.command(cls=TableCommand, render=_render_undone, roles=ALL_ROLES)
def undo(context: CommandContext) -> UndoneExchange:
    """Remove the last exchange from the conversation.

    > assistant undo
    """
    exchange = _last_exchange(context)
    return UndoneExchange(exchange[0].content, _hide(context, exchange), _effects(context, exchange))


@dataclass(frozen=True, slots=True)
class QuestionAskedAgain:
    text: str
    inbox_id: int  # under which its answer comes
    message_id: int


@click.command(cls=TableCommand, render=lambda answer, _: f"Asking again: {_words(answer.text)!r}", roles=ALL_ROLES)
async def retry(context: CommandContext) -> QuestionAskedAgain:
    """Remove the last exchange and ask the same again.

    > /retry
    """
    exchange = _last_exchange(context)
    question = exchange[0]
    _hide(context, exchange)
    key = f"retry:{question.id}:{context.now.isoformat()}"
    accepted = await context.services.accept(
        IncomingMessage(
            context.bridge,
            key,
            context.session,
            context.scope,
            context.sender,
            context.trust,
            question.content,
            question.media,
            question.name,
            context.target or context.session,
        )
    )
    return QuestionAskedAgain(question.content, accepted.inbox_id, accepted.message_id)


@dataclass(frozen=True, slots=True)
class StoppedTurn:
    stopped: bool


@click.command(
    cls=TableCommand,
    render=lambda turn, _: "Stopped." if turn.stopped else "Nothing is being answered right now.",
    roles=ALL_ROLES,
)
async def stop(context: CommandContext) -> StoppedTurn:
    """Stop the answer that is being written.

    > /stop
    """
    return StoppedTurn(await context.services.stop_turn(context.session))


def _last_exchange(context: CommandContext) -> Sequence[Message]:
    if context.services.is_running(context.session):
        raise UsageError("An answer is being written; /stop it first. Nothing was changed.")
    was_used = any(info.key == context.session for info in context.stores.conversation.list_sessions())
    messages = context.stores.conversation.load_view(context.session).messages if was_used else ()
    questions = [n for n, m in enumerate(messages) if m.role == "user" and "carried_from" not in m.metadata]
    if not questions:
        raise NothingYet("Nothing was said here that could be undone, or asked again.")
    return messages[questions[-1] :]


def _hide(context: CommandContext, exchange: Sequence[Message]) -> list[int]:
    """The ids of the messages, which the model does not see any more."""
    ids = [message.id for message in exchange if message.id is not None]
    context.stores.conversation.hide_messages(context.session, ids, context.now)
    context.services.show_changed(context.session)
    return ids


def _effects(context: CommandContext, exchange: Sequence[Message]) -> list[str]:
    """What already left the conversation: replies that were sent, tools that changed something."""
    turns = dict.fromkeys(str(m.metadata["turn"]) for m in exchange if "turn" in m.metadata)
    replies = [item for turn in turns for item in context.stores.outbox.list_by_turn(turn) if item.state == "sent"]
    own = ToolContext(context.session, context.scope, "", "", context.now)
    not_done = {m.tool_call_id for m in exchange if m.role == "tool" and m.content.startswith(NOT_DONE)}
    calls = [
        call
        for message in exchange
        for call in message.tool_calls
        if call.id not in not_done and context.services.tool_changes(call, own)
    ]
    return [
        # What a terminal or the page has shown left nothing behind anywhere else.
        *(
            f"sent on {reply.outgoing.bridge}: {_words(reply.outgoing.body)!r}"
            for reply in replies
            if reply.outgoing.bridge != TERMINAL_BRIDGE
        ),
        *(f"{call.name.replace('_', ' ')}: {_arguments(call)}" for call in calls),
    ]


def _arguments(call: ToolCall) -> str:
    values = {name: value for name, value in call.arguments.items() if value not in (None, "", [], {})}
    texts = {name: ", ".join(map(str, it)) if isinstance(it, list) else str(it) for name, it in values.items()}
    return ", ".join(f"{name} {shorten_line(text, 60)}" for name, text in texts.items())


def _words(text: str) -> str:
    return shorten_line(text.removeprefix(ABORTED_MARKER), 60)
