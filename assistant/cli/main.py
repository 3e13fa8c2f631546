"""The `assistant` command. Each family of commands is its own module, loaded when it is asked for, so that a cold
`assistant chat -m` does not pay for the others.

Exit codes: 0 fine, 1 failed, 2 wrong use, 3 the model cannot be reached (the message is kept), 4 the budget is used up,
130 interrupted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from assistant import __version__
from assistant.cli.lazy import LazyGroup, run_and_exit

if TYPE_CHECKING:
    from assistant.commands.table import ParsedCommand

# Heading, command, where it stands, and its line in the menu.
_MENU = {
    "Talk": {
        "chat": ("assistant.cli.chat.command:chat", "Talk, or ask one thing with -m."),
        "log": ("assistant.cli.log:log", "What was said, from the master log."),
        "sessions": ("assistant.cli.sessions:sessions", "The conversations, the ended ones too."),
        "reset": ("assistant.commands.sessions:reset", "End a conversation and begin the next."),
        "compact": ("assistant.commands.compaction:compact", "Summarise older messages now, to make room."),
        "branch": ("assistant.commands.compaction:branch", "Continue from an earlier message."),
        "requests": ("assistant.commands.requests:requests", "What you asked for, and what became of it."),
        "pins": ("assistant.commands.compaction:pins", "Words that no compaction removes."),
    },
    "Remember": {
        "memory": ("assistant.cli.memory:memory", "What it remembers: look, ask why, put right."),
        "forget": ("assistant.cli.memory_changes:forget", "Forget for good, in every copy."),
        "sleep": ("assistant.commands.sleep:sleep", "Sleep now; what the last night did; take it back."),
        "archive": ("assistant.cli.archive:archive", "Conversations that ended, and where they lie."),
    },
    "Time": {
        "remind": ("assistant.commands.reminders:remind", "Reminders."),
        "schedule": ("assistant.commands.schedules:schedule", "Prompts that are asked for you at their time."),
    },
    "People and networks": {
        "people": ("assistant.cli.people:people", "Who may talk to it, and as whom."),
        "bridge": ("assistant.cli.bridge.command:bridge", "Telegram, Matrix: set up, test, pause."),
        "deliveries": ("assistant.commands.deliveries:deliveries", "What did not arrive, or may not have."),
        "web": ("assistant.cli.web:web", "The web API."),
    },
    "Set up and run": {
        "setup": ("assistant.cli.setup.command:setup", "Model, persona, time zone, budget, bridge, service."),
        "config": ("assistant.cli.config.command:config", "Settings and secrets."),
        "run": ("assistant.cli.serve:run", "Serve in the foreground."),
        "stop": ("assistant.cli.serve:stop", "End the one that runs."),
        "service": ("assistant.cli.service.command:service", "Run it for years, under systemd or launchd."),
    },
    "Look after it": {
        "status": ("assistant.cli.status:status", "How it is, in a few lines."),
        "doctor": ("assistant.cli.doctor:doctor", "Every part looked at, with what to do."),
        "usage": ("assistant.cli.usage:usage", "What models have cost, against your caps."),
        "verify": ("assistant.cli.verify:verify", "Prove that nothing is lost or changed."),
        "backup": ("assistant.cli.backup:backup", "Everything into one file, and back."),
    },
}


@click.group(
    cls=LazyGroup,
    commands_at={name: place for commands in _MENU.values() for name, (place, _) in commands.items()},
    menu={heading: {name: line for name, (_, line) in commands.items()} for heading, commands in _MENU.items()},
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="`aihistory` tells what was compacted, and what it said.",
)
@click.version_option(__version__, prog_name="assistant")
@click.option("--debug", is_flag=True, help="Show the traceback of an error, not only its line.")
@click.pass_context
def assistant(context: click.Context, debug: bool) -> None:
    """Nocturne: a personal assistant that keeps every message, and sleeps.

    Begin with `assistant chat`, or `assistant run` to keep it running.

    Exit codes: 0 fine, 1 failed, 2 wrong use, 3 the model cannot be reached (the message is kept), 4 the budget is
    used up.
    """
    context.obj = _run_in_shell


def _run_in_shell(parsed: ParsedCommand) -> None:
    from assistant.cli.shell import run_in_shell  # settings and stores are loaded where a command runs

    run_in_shell(parsed)


def main() -> None:
    run_and_exit(assistant)
