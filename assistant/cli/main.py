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
    "run": "assistant.cli.serve:run",
    "stop": "assistant.cli.serve:stop",
    "service": "assistant.cli.service:service",
    "chat": "assistant.cli.chat:chat",
    "setup": "assistant.cli.setup:setup",
    "status": "assistant.cli.status:status",
    "doctor": "assistant.cli.doctor:doctor",
    "sessions": "assistant.cli.sessions:sessions",
    "reset": "assistant.cli.reset:reset",
    "log": "assistant.cli.history:log",
    "compact": "assistant.cli.compact:compact",
    "sleep": "assistant.cli.sleep:sleep",
    "requests": "assistant.cli.requests:requests",
    "pins": "assistant.cli.pins:pins",
    "remind": "assistant.cli.remind:remind",
    "schedule": "assistant.cli.schedule:schedule",
    "memory": "assistant.cli.memory:memory",
    "forget": "assistant.cli.forget:forget",
    "people": "assistant.cli.people:people",
    "bridge": "assistant.cli.bridge:bridge",
    "deliveries": "assistant.cli.deliveries:deliveries",
    "web": "assistant.cli.web:web",
    "archive": "assistant.cli.archive:archive",
    "verify": "assistant.cli.verify:verify",
    "backup": "assistant.cli.backup:backup",
    "usage": "assistant.cli.usage:usage",
    "config": "assistant.cli.config:config",
}


@click.group(cls=LazyGroup, commands_at=_COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
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
