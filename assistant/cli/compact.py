"""`assistant compact`: make room in a conversation's context now, see first what that would do, or take it back."""

from __future__ import annotations

import click

from assistant.cli.commanding import command, say_answer
from assistant.cli.compactions import compaction_json
from assistant.cli.in_force import settings_in_force
from assistant.cli.plain import as_json
from assistant.cli.stored import opened, scope_of_session
from assistant.cli.text import typed
from assistant.core.checkpoints import Checkpoint, CheckpointState
from assistant.core.errors import UsageError
from assistant.core.sessions import MAIN_SESSION
from assistant.settings.settings import Settings

_NEWEST = "newest"


@click.command()
@click.option("--session", default=MAIN_SESSION, show_default=True, metavar="NAME", help="The conversation to compact.")
@click.option("--focus", metavar="TEXT", help="What the summary should keep in mind above all.")
@click.option(
    "--dry-run", is_flag=True, help="Only tell what would go, what would stay and why, and what it would cost."
)
@click.option(
    "--undo", is_flag=False, flag_value=_NEWEST, metavar="[ID]",
    help="Restore the view from before the newest compaction; with an ID from before that one, later ones included.",
)  # fmt: skip
@click.option(
    "--json", "json_out", is_flag=True, help="Print a JSON array of what was made or undone, as `aihistory` does."
)
def compact(session: str, focus: str | None, dry_run: bool, undo: str | None, json_out: bool) -> None:
    """Summarise the older part of a conversation, so that its context has room again.

    Nothing is lost: the messages stay in the master log, and --undo brings them back into view.

    \b
    Example:
      assistant compact --dry-run
      assistant compact --focus "the move to Bergen"
      assistant compact --undo
    """
    if dry_run and json_out:
        raise UsageError("--dry-run prints its plan as text; there is no --json of it.")
    text = slash_command(focus, dry_run, undo)
    settings = settings_in_force()
    if not json_out:
        say_answer(settings, text, session)
        return
    before = _states(settings, session)
    command(settings, text, session)
    as_json([compaction_json(one) for one in _changed(settings, session, before, undone=undo is not None)])


def slash_command(focus: str | None, dry_run: bool, undo: str | None) -> str:
    """What the options say, as it is typed in a conversation. Raises `UsageError` where they contradict each other."""
    words = typed(focus or "", "The focus").strip()
    if (focus is not None) + dry_run + (undo is not None) > 1:
        raise UsageError("Give one of --focus, --dry-run and --undo. Nothing was compacted.")
    if words.startswith("-"):
        raise UsageError("The focus begins with a dash, so it would be read as an option. Nothing was compacted.")
    if dry_run:
        return "/compact --dry-run"
    if undo is None:
        return f"/compact {words}".strip()
    if undo == _NEWEST:
        return "/compact --undo"
    if not undo.isascii() or not undo.isdigit():
        raise UsageError(f"{undo!r} is not the number of a compaction; `aihistory` lists them. Nothing was undone.")
    return f"/compact --undo {int(undo)}"


def _states(settings: Settings, session: str) -> dict[int, CheckpointState]:
    with opened(settings) as stores:
        scope_of_session(stores.conversation, session)
        return {one.id: one.state for one in stores.conversation.checkpoints(session)}


def _changed(settings: Settings, session: str, before: dict[int, CheckpointState], *, undone: bool) -> list[Checkpoint]:
    """The compactions that were not there before, or that were undone since, newest first."""
    with opened(settings) as stores:
        found = stores.conversation.checkpoints(session)
    return [
        one
        for one in sorted(found, key=lambda one: one.id, reverse=True)
        if (one.state == "undone" and before.get(one.id) != "undone" if undone else one.id not in before)
    ]
