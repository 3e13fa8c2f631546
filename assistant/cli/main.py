"""The `assistant` command. Each family of commands is its own module, loaded when it is asked for, so that a cold
`assistant chat -m` does not pay for the others.

Exit codes: 0 fine, 1 failed, 2 wrong use, 3 the model cannot be reached (the message is kept), 4 the budget is used up,
130 interrupted.
"""

from __future__ import annotations

import click

from assistant import __version__
from assistant.cli.lazy import LazyGroup, start

_COMMANDS = {
    "chat": "assistant.cli.chat:chat",
    "log": "assistant.cli.history:log",
    "sessions": "assistant.cli.sessions:sessions",
    "reset": "assistant.cli.reset:reset",
    "compact": "assistant.cli.compact:compact",
    "requests": "assistant.cli.requests:requests",
    "pins": "assistant.cli.pins:pins",
    "memory": "assistant.cli.memory:memory",
    "forget": "assistant.cli.forget:forget",
    "sleep": "assistant.cli.sleep:sleep",
    "archive": "assistant.cli.archive:archive",
    "remind": "assistant.cli.remind:remind",
    "schedule": "assistant.cli.schedule:schedule",
    "people": "assistant.cli.people:people",
    "bridge": "assistant.cli.bridge:bridge",
    "deliveries": "assistant.cli.deliveries:deliveries",
    "web": "assistant.cli.web:web",
    "setup": "assistant.cli.setup:setup",
    "config": "assistant.cli.config:config",
    "run": "assistant.cli.serve:run",
    "stop": "assistant.cli.serve:stop",
    "service": "assistant.cli.service:service",
    "status": "assistant.cli.status:status",
    "doctor": "assistant.cli.doctor:doctor",
    "usage": "assistant.cli.usage:usage",
    "verify": "assistant.cli.verify:verify",
    "backup": "assistant.cli.backup:backup",
}
_MENU = {
    "Talk": {
        "chat": "Talk, or ask one thing with -m.",
        "log": "What was said, from the master log.",
        "sessions": "The conversations, the ended ones too.",
        "reset": "End a conversation and begin the next.",
        "compact": "Make room in a conversation now.",
        "requests": "What you asked for, and what became of it.",
        "pins": "Words that no compaction touches.",
    },
    "Remember": {
        "memory": "What it remembers: look, ask why, put right.",
        "forget": "Forget for good, in every copy.",
        "sleep": "Sleep now; what the last night did; take it back.",
        "archive": "Conversations that ended, and where they lie.",
    },
    "Time": {
        "remind": "Reminders.",
        "schedule": "Prompts that are asked for you at their time.",
    },
    "People and networks": {
        "people": "Who may talk to it, and as whom.",
        "bridge": "Telegram, Matrix: set up, test, pause.",
        "deliveries": "What did not arrive, or may not have.",
        "web": "The web API.",
    },
    "Set up and run": {
        "setup": "Model, persona, time zone, budget, bridge, service.",
        "config": "Settings and secrets.",
        "run": "Serve in the foreground.",
        "stop": "End the one that runs.",
        "service": "Run it for years, under systemd or launchd.",
    },
    "Look after it": {
        "status": "How it is, in a few lines.",
        "doctor": "Every part looked at, with what to do.",
        "usage": "What models have cost, against your caps.",
        "verify": "Prove that nothing is lost or changed.",
        "backup": "Everything into one file, and back.",
    },
}


@click.group(
    cls=LazyGroup,
    commands_at=_COMMANDS,
    menu=_MENU,
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
    context.obj = debug


def main() -> None:
    start(assistant)
