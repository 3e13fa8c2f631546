"""Which compactions a command of `aihistory` speaks of: `--since`, `--session` and `--json`, before or after the
subcommand's name; what stands last on the line counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

import click

from assistant.cli.in_force import settings_in_force
from assistant.cli.options import Function, given, shared
from assistant.cli.stored import scope_of_session
from assistant.core.checkpoints import Checkpoint
from assistant.core.errors import UsageError
from assistant.core.store_ports import Conversation
from assistant.settings.settings import Settings


@dataclass(frozen=True, slots=True)
class Selection:
    """`since` is the earliest moment of interest, `session` the only conversation of interest; None for any."""

    settings: Settings
    since: datetime | None
    session: str | None
    json_out: bool

    def of(self, conversation: Conversation) -> list[Checkpoint]:
        """The compactions that were selected, newest first. Raises `UsageError` for a session that is not there."""
        if self.session is not None:
            scope_of_session(conversation, self.session)
            keys = [self.session]
        else:
            keys = list(dict.fromkeys(info.key for info in conversation.sessions()))
        found = [
            c for key in keys for c in conversation.checkpoints(key) if not self.since or c.created_at >= self.since
        ]
        return sorted(found, key=lambda checkpoint: checkpoint.id, reverse=True)

    def one(self, conversation: Conversation, checkpoint_id: int) -> Checkpoint:
        """Raises `UsageError` where there is no such compaction among those selected."""
        for checkpoint in self.of(conversation):
            if checkpoint.id == checkpoint_id:
                return checkpoint
        where = f" of {self.session!r}" if self.session else ""
        since = f" since {self.since.astimezone(self.settings.zone):%Y-%m-%d %H:%M}" if self.since else ""
        raise UsageError(f"There is no compaction {checkpoint_id}{where}{since}. `aihistory` lists those there are.")


def selecting(json_help: str) -> Callable[[Function], Function]:
    """The three options, for a command that asks `selected` what they said."""

    def decorate(function: Function) -> Function:
        for option in (
            shared("--json", json_help, is_flag=True),
            shared("--session", "Only this conversation.", metavar="NAME"),
            shared("--since", "Only compactions since this day or moment (the home's time).", metavar="DATE"),
        ):
            function = option(function)
        return function

    return decorate


def selected(context: click.Context) -> Selection:
    """What the options said. Raises `UsageError` for a date that is none."""
    settings = settings_in_force(looks=True)
    since = given(context, "since")
    moment = None if since is None else _moment(since, settings.zone)
    return Selection(settings, moment, given(context, "session"), bool(given(context, "json")))


def _moment(text: str, zone: ZoneInfo) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text!r} is not a date. Write it as 2026-11-20, or as 2026-11-20T18:30.") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=zone)
