"""What a model sees of a conversation: compacting it, pinning words in it, branching from it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, tzinfo
from typing import Annotated

import click
from pydantic import AfterValidator, Field

from assistant.commands.context import CommandContext
from assistant.commands.items import Item
from assistant.commands.table import CommandGroup, TableCommand, numbers_argument, words_argument
from assistant.core.checkpoints import Pin
from assistant.core.dataclass import dataclass
from assistant.core.errors import NothingYet, UsageError
from assistant.core.messages import Message
from assistant.core.text import shorten_line

_NEWEST = "newest"
_MOST_SECONDS = 3700.0  # `compaction.summary_seconds` is an hour at most


class CompactionItem(Item):
    """One compaction, as `aihistory` lists it too."""

    id: int
    session: str
    at: datetime = Field(validation_alias="created_at")
    trigger: str
    tier: str
    state: str
    compacted_count: int = Field(validation_alias="messages_compressed")  # messages
    original_token_count: int = Field(validation_alias="original_tokens")
    summary_token_count: int = Field(validation_alias="compressed_tokens")
    ratio: Annotated[float, AfterValidator(lambda ratio: round(ratio, 4))]
    from_message_id: int
    to_message_id: int
    cost_usd: float | None
    depth: int  # how many compactions deep its sources are


class CompactReport(Item):
    """What was made, or undone, newest first."""

    compactions: list[CompactionItem]
    report: str  # Markdown


@click.command(cls=TableCommand, render=lambda report, _: report.report, max_seconds=_MOST_SECONDS)
@words_argument("focus", required=False, metavar="FOCUS")
@click.option("--dry-run", is_flag=True, help="Only show what would be removed, what would stay and why, and the cost.")
@click.option(
    "--undo",
    is_flag=False,
    flag_value=_NEWEST,
    metavar="[ID]",
    help="Undo the newest compaction, or with an ID that one and all later ones.",
)
async def compact(context: CommandContext, focus: str, dry_run: bool, undo: str | None) -> CompactReport:
    """Summarise the older part of a conversation, to make room.

    Nothing is lost: the messages stay in the message log, and --undo brings them back. FOCUS is what the summary
    should keep above all.

    > assistant compact --dry-run
    > assistant compact "the move to Bergen"
    > assistant compact --undo
    """
    services = context.services
    if undo is not None and (focus or dry_run):
        raise UsageError("Give one of FOCUS, --dry-run and --undo. Nothing was compacted.")
    list_checkpoints, compaction = context.stores.conversation.checkpoints, services.compaction
    before = {checkpoint.id: checkpoint.state for checkpoint in list_checkpoints(context.session)}
    cached = services.cached_prompt(context.session, context.now)
    if dry_run:
        return CompactReport(compactions=[], report=await compaction.preview(context.session, focus, cached))
    if undo is None:
        report = await compaction.compact_now(context.session, focus, cached)
    else:
        chosen = _checkpoint_id(undo)
        context.require_session("" if chosen is None else f"compaction {chosen}")
        report = await compaction.undo(context.session, chosen)
    changed = [
        checkpoint
        for checkpoint in list_checkpoints(context.session)
        if before.get(checkpoint.id) != checkpoint.state and (checkpoint.state == "undone") == bool(undo)
    ]
    newest_first = sorted(changed, key=lambda checkpoint: -checkpoint.id)
    return CompactReport.model_validate({"compactions": newest_first, "report": report})


def _checkpoint_id(word: str) -> int | None:
    if word == _NEWEST:
        return None
    number = word.removeprefix("#")
    if not (number.isascii() and number.isdigit()) or len(number) > 18:
        raise UsageError(f"{word!r} is not the number of a compaction; `aihistory` lists them. Nothing was undone.")
    return int(number)


# ------------------------------------------------------------------------------------------------------------- branches


@dataclass(frozen=True, slots=True)
class Branch:
    """A conversation that was made of another one."""

    session: str
    message_id: int  # the last message that both have
    text: str  # how that begins


@click.command(
    cls=TableCommand,
    render=lambda branch, _: (
        f"{branch.session} has everything up to {branch.text!r}; this conversation stays as it is. "
        f"`/session {branch.session}` goes there."
    ),
)
@numbers_argument("ids", required=False, metavar="ID")
def branch(context: CommandContext, ids: Sequence[int]) -> Branch:
    """Continue from an earlier message in a conversation of its own.

    The new conversation has everything up to message ID, without one up to the last thing you said.

    > assistant branch 12
    """
    if len(ids) > 1:
        raise UsageError("Give the number of one message. Nothing was changed.")
    context.require_session(f"message {ids[0]}" if ids else "")
    message_id = ids[0] if ids else _last_user_message(context).id
    assert message_id is not None
    made = context.stores.conversation.branch_session(context.session, message_id, context.now)
    messages = context.stores.conversation.load_view(context.session).messages
    last = next(message for message in messages if message.id == message_id)
    return Branch(made.key, message_id, shorten_line(last.content, 60))


# ----------------------------------------------------------------------------------------------------------------- pins


class PinItem(Item):
    """Words that are sent with every request."""

    id: int
    session: str
    at: datetime = Field(validation_alias="created_at")
    role: str  # who said them
    message_id: int | None  # the message they were taken from
    text: str


@click.group(cls=CommandGroup)
def pins() -> None:
    """Words that no compaction removes: they are sent with every request.

    > assistant pins
    > assistant pins add "The dog is allergic to chicken"
    > assistant pins add 12
    > assistant pins remove 3
    """


def _render_pins(pins: Sequence[Pin], _: tzinfo) -> str:
    lines = [
        f"- {pin.id}: {shorten_line(pin.text, 120)}"
        + (f" (said by {'you' if pin.role == 'user' else 'the assistant'})" if pin.message_id is not None else "")
        for pin in pins
    ]
    return "\n".join(lines) or "Nothing is pinned. `/pins add TEXT` pins something."


def _render_added(pin: Pin, _: tzinfo) -> str:
    words = shorten_line(pin.text, 60)
    return f"Pinned as {pin.id}: {words!r}. It is sent with every request until `/pins remove {pin.id}`."


@pins.command("list", result=list[PinItem], render=_render_pins, reads=True)
def list_pins(context: CommandContext) -> list[Pin]:
    """List what is pinned, oldest first.

    > assistant pins list
    """
    return context.stores.pins.list_pins(context.session)


@pins.command("add", result=PinItem, render=_render_added, context_settings={"ignore_unknown_options": True})
@words_argument("words", required=False, metavar="TEXT|ID")
def add(context: CommandContext, words: str) -> Pin:
    """Pin a text, the message with this ID, or the last thing you said.

    > assistant pins add "The dog is allergic to chicken"
    > assistant pins add 12
    """
    message = _message_to_pin(context, words)
    text, role = (message.content, message.role) if message is not None else (words, "user")
    if not text.strip():
        raise UsageError("There is nothing to pin in that. Nothing was changed.")
    services, pinned = context.services, context.stores.pins.list_pins(context.session)
    if sum(services.count_tokens(pin.text) for pin in pinned) + services.count_tokens(text) > services.pins_max_tokens:
        raise UsageError(
            f"Pins may take {services.pins_max_tokens} tokens together (compaction.pins_max_tokens), and this would be "
            "more. Nothing was changed; `/pins remove` makes room."
        )
    message_id = _id_of_said(message) if message else None
    return context.stores.pins.add(context.session, context.scope, text, role, message_id, context.now)


@pins.command(
    "remove",
    result=list[PinItem],
    render=lambda pins, _: "\n".join(f"Unpinned {pin.id}: {shorten_line(pin.text, 60)!r}" for pin in pins),
)
@numbers_argument("ids")
def remove(context: CommandContext, ids: Sequence[int]) -> list[Pin]:
    """Remove pins, by their own numbers as `assistant pins` lists them.

    > assistant pins remove 3
    """
    return context.stores.pins.remove(context.session, ids)


def _message_to_pin(context: CommandContext, words: str) -> Message | None:
    """The message that is meant; None where words are to be pinned instead."""
    if not words:
        return _last_user_message(context)
    number = words.removeprefix("#")
    if not number.isdecimal():
        return None
    shown = context.stores.conversation.load_view(context.session).messages
    message = next((m for m in shown if int(number) == _id_of_said(m)), None)
    if message is None:
        raise UsageError(
            f"Message #{number} is not in what the model currently sees. Nothing was changed; pin its words: /pin TEXT."
        )
    return message


def _id_of_said(message: Message) -> int | None:
    carried: int | None = message.metadata.get("carried_from", message.id)
    return carried


def _last_user_message(context: CommandContext) -> Message:
    messages = context.stores.conversation.load_view(context.session).messages
    # A summary was said by nobody; what it kept word for word, and what a conversation took over, was.
    message = next((m for m in reversed(messages) if m.role == "user" and _id_of_said(m) is not None), None)
    if message is None:
        raise NothingYet("Nothing has been said here yet.")
    return message
