"""What a model sees of a conversation: compacting it, pinning words in it, branching from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

import click

from assistant.commands.context import CommandContext
from assistant.commands.table import CommandGroup, TableCommand, numbers_argument, words_argument
from assistant.core.checkpoints import Checkpoint, Pin
from assistant.core.errors import UsageError
from assistant.core.messages import Message
from assistant.core.text import shorten_line

_NEWEST = "newest"
_MOST_SECONDS = 3700.0  # `compaction.summary_seconds` is an hour at most


@dataclass(frozen=True, slots=True)
class CompactionItem:
    """One compaction, as `aihistory` lists it too."""

    id: int
    session: str
    at: datetime
    trigger: str
    tier: str
    state: str
    compacted_count: int  # messages
    original_token_count: int
    summary_token_count: int
    ratio: float
    from_message_id: int
    to_message_id: int
    cost_usd: float | None
    depth: int  # how many compactions deep its sources are


def compaction_item(checkpoint: Checkpoint) -> CompactionItem:
    return CompactionItem(
        checkpoint.id,
        checkpoint.session,
        checkpoint.created_at,
        checkpoint.trigger,
        checkpoint.tier,
        checkpoint.state,
        checkpoint.messages_compressed,
        checkpoint.original_tokens,
        checkpoint.compressed_tokens,
        round(checkpoint.ratio, 4),
        checkpoint.from_message_id,
        checkpoint.to_message_id,
        checkpoint.cost_usd,
        checkpoint.depth,
    )


@dataclass(frozen=True, slots=True)
class CompactReport:
    """What was made, or undone, newest first."""

    compactions: list[CompactionItem]
    report: str  # Markdown


def _render_compact(report: CompactReport, _: tzinfo) -> str:
    return report.report


@click.command(
    cls=TableCommand,
    result=CompactReport,
    render=_render_compact,
    max_seconds=_MOST_SECONDS,
    context_settings={"ignore_unknown_options": False},
)
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

    \b
    Example:
      assistant compact --dry-run
      assistant compact "the move to Bergen"
      assistant compact --undo
    """
    services = context.services
    if (bool(focus) and undo is not None) or (dry_run and undo is not None):
        raise UsageError("Give one of FOCUS, --dry-run and --undo. Nothing was compacted.")
    before = {made.id: made.state for made in context.stores.conversation.checkpoints(context.session)}
    cached = services.cached_prompt(context.session, context.now)
    if dry_run:
        return CompactReport([], await services.compaction.preview(context.session, focus, cached))
    if undo is None:
        report = await services.compaction.compact_now(context.session, focus, cached)
    else:
        report = await services.compaction.undo(context.session, _checkpoint_id(undo))
    after = context.stores.conversation.checkpoints(context.session)
    changed = [made for made in after if before.get(made.id) != made.state and (made.state == "undone") == bool(undo)]
    return CompactReport([compaction_item(made) for made in sorted(changed, key=lambda made: -made.id)], report)


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


def _render_branch(branch: Branch, _: tzinfo) -> str:
    return (
        f"{branch.session} begins after message #{branch.message_id}; this conversation stays as it is. "
        f"`/session {branch.session}` goes there."
    )


@click.command(cls=TableCommand, result=Branch, render=_render_branch)
@numbers_argument("ids", required=False, metavar="ID")
def branch(context: CommandContext, ids: Sequence[int]) -> Branch:
    """Continue from an earlier message in a conversation of its own.

    The new conversation has everything up to message ID, without one up to the last thing you said.

    \b
    Example:
      assistant branch 12
    """
    if len(ids) > 1:
        raise UsageError("Give the number of one message. Nothing was changed.")
    message_id = ids[0] if ids else last_user_message(context).id
    assert message_id is not None
    made = context.stores.conversation.branch_session(context.session, message_id, context.now)
    return Branch(made.key, message_id)


# ----------------------------------------------------------------------------------------------------------------- pins


@dataclass(frozen=True, slots=True)
class PinItem:
    """Words that are sent with every request."""

    id: int
    session: str
    at: datetime
    role: str  # who said them
    message_id: int | None  # the message they were taken from
    text: str


@click.group(cls=CommandGroup)
def pins() -> None:
    """Words that no compaction removes: they are sent with every request.

    \b
    Example:
      assistant pins
      assistant pins add "The dog is allergic to chicken"
      assistant pins add 12
      assistant pins remove 3
    """


def _render_pins(items: Sequence[PinItem], _: tzinfo) -> str:
    lines = [
        f"- {item.id}: {shorten_line(item.text, 120)}"
        + (f" (message #{item.message_id}, {item.role})" if item.message_id is not None else "")
        for item in items
    ]
    return "\n".join(lines) or "Nothing is pinned. `/pins add TEXT` pins something."


def _render_added(item: PinItem, _: tzinfo) -> str:
    words = shorten_line(item.text, 60)
    return f"Pinned as {item.id}: {words!r}. It is sent with every request until `/pins remove {item.id}`."


def _render_removed(items: Sequence[PinItem], _: tzinfo) -> str:
    return "\n".join(f"Unpinned {item.id}: {shorten_line(item.text, 60)!r}" for item in items)


@pins.command("list", result=list[PinItem], render=_render_pins, reads=True)
def list_pins(context: CommandContext) -> list[PinItem]:
    """List what is pinned, oldest first.

    \b
    Example:
      assistant pins list
    """
    return [_pin_item(pin) for pin in context.stores.pins.list_pins(context.session)]


@pins.command("add", result=PinItem, render=_render_added, context_settings={"ignore_unknown_options": True})
@words_argument("words", required=False, metavar="TEXT|ID")
def add(context: CommandContext, words: str) -> PinItem:
    """Pin a text, the message with this ID, or the last thing you said.

    \b
    Example:
      assistant pins add "The dog is allergic to chicken"
      assistant pins add 12
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
    message_id = message.id if message else None
    return _pin_item(context.stores.pins.add(context.session, context.scope, text, role, message_id, context.now))


@pins.command("remove", result=list[PinItem], render=_render_removed)
@numbers_argument("ids")
def remove(context: CommandContext, ids: Sequence[int]) -> list[PinItem]:
    """Remove pins, by their own numbers as `assistant pins` lists them.

    \b
    Example:
      assistant pins remove 3
    """
    return [_pin_item(pin) for pin in context.stores.pins.remove(context.session, ids)]


def _pin_item(pin: Pin) -> PinItem:
    return PinItem(pin.id, pin.session, pin.created_at, pin.role, pin.message_id, pin.text)


def _message_to_pin(context: CommandContext, words: str) -> Message | None:
    """The message that is meant; None where words are to be pinned instead."""
    if not words:
        return last_user_message(context)
    number = words.removeprefix("#")
    if not number.isdecimal():
        return None
    shown = context.stores.conversation.load_view(context.session).messages
    message = next((m for m in shown if int(number) in (m.id, m.metadata.get("carried_from"))), None)
    if message is None:
        raise UsageError(
            f"Message #{number} is not in what the model currently sees. Nothing was changed; pin its words: /pin TEXT."
        )
    return message


def last_user_message(context: CommandContext) -> Message:
    messages = context.stores.conversation.load_view(context.session).messages
    message = next((m for m in reversed(messages) if m.role == "user" and m.id is not None), None)
    if message is None:
        raise UsageError("Nothing has been said here yet.")
    return message
