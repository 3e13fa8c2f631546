"""`assistant bridge list`, `add` and `remove`: setting bridges up. Their state comes from the daemon, else from the
stores.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import click
from pydantic import TypeAdapter

from assistant.cli.bridge.settings import BridgeOptions, has_bridge_settings, remove_bridge
from assistant.cli.home_stores import load_effective_settings, open_home_stores
from assistant.cli.lazy import EXIT_INTERRUPTED
from assistant.cli.link import open_daemon_link, run_with_signals
from assistant.cli.logging_setup import configure_logging
from assistant.cli.output import print_json, print_markdown
from assistant.cli.prompts import confirm_or_report
from assistant.cli.shell import with_commands
from assistant.commands import bridges as bridge_commands
from assistant.commands.bridges import BridgeItem, render_bridges
from assistant.commands.table import to_json
from assistant.core.bridge_api import NETWORK_NAMES, BridgeStatus
from assistant.core.errors import UsageError
from assistant.core.sessions import MAIN_SESSION
from assistant.service.home_lock import is_home_served, is_listening
from assistant.settings.home import home_from_environment
from assistant.settings.settings import Settings, load_settings

_MOST_SECONDS = 60.0
_name = click.argument("name", type=click.Choice(NETWORK_NAMES))


@click.command(name="list")
@click.option("--json", "json_out", is_flag=True, help="Print a JSON array of the bridges.")
def list_(json_out: bool) -> None:
    """List the bridges: how each is, who we are there, what waits, and what to do.

    \b
    Example:
      assistant bridge list
    """
    settings = load_effective_settings()
    statuses = read_statuses_of_home(settings)
    if json_out:
        print_json(to_json(TypeAdapter(list[BridgeItem]), statuses))
    else:
        print_markdown(render_bridges(statuses, settings.zone))


@click.command()
@_name
@click.option("--token-stdin", is_flag=True, help="Read the token from standard input; ask nothing.")
@click.option("--password-stdin", is_flag=True, help="Matrix: read the password from standard input instead.")
@click.option(
    "--user", default="", metavar="ACCOUNT", help="Matrix: the assistant's account, as in @nocturne:example.org."
)
@click.option(
    "--homeserver", default="", metavar="URL", help="Matrix: its homeserver; found by the account if left out."
)
@click.option("--owner", default="", metavar="ACCOUNT", help="Your own account there, instead of a code.")
@click.option("--file", "in_file", is_flag=True, help="Store the token in secrets.toml, not in the keyring.")
@click.option("--no-wait", is_flag=True, help="Print the code for your account, and do not wait for it.")
@click.pass_context
def add(
    context: click.Context,
    name: str,
    token_stdin: bool,
    password_stdin: bool,
    user: str,
    homeserver: str,
    owner: str,
    in_file: bool,
    no_wait: bool,
) -> None:
    """Set up the bridge NAME, link your account there, and send a test message.

    Your answers are tried before anything is saved. You can run it again at any time: current values are shown in
    brackets, and finished steps are skipped. A secret is never an argument: you type it without echo, or it is read
    from standard input.

    \b
    Example:
      assistant bridge add telegram
      assistant bridge add matrix
      pass show telegram | assistant bridge add telegram --token-stdin --no-wait
    """
    if token_stdin and password_stdin:
        raise UsageError("Give --token-stdin or --password-stdin, not both. Nothing was changed.")
    secret = _read() if token_stdin or password_stdin else ""
    answers = BridgeOptions(
        secret if token_stdin else "", secret if password_stdin else "", user, homeserver, owner, in_file
    )
    configure_logging("error")
    from assistant.cli.bridge.add import add_bridge  # the networks are loaded where one is set up

    context.exit(0 if add_bridge(home_from_environment(), name, answers, waits=not no_wait) else EXIT_INTERRUPTED)


@click.command()
@_name
@click.option("--yes", is_flag=True, help="Do not ask.")
def remove(name: str, yes: bool) -> None:
    """Remove a bridge, with its token and settings. Conversations stay.

    Messages to you that were not sent yet appear in the terminal.

    \b
    Example:
      assistant bridge remove telegram
      assistant bridge remove telegram --yes
    """
    settings = load_settings()
    there = has_bridge_settings(settings, name)
    if there and not yes and not confirm_or_report(f"Remove {name}, with its token? Conversations stay."):
        raise click.Abort
    configure_logging("error")
    remove_bridge(settings, name)


bridge = with_commands(bridge_commands.bridge, list_, add, remove)


def _read() -> str:
    """One secret of standard input. Raises `UsageError` where there is none."""
    text = sys.stdin.read().strip() if sys.stdin is not None else ""
    if not text or len(text.splitlines()) != 1:
        raise UsageError("Standard input must contain the secret, in one line. Nothing was changed.")
    return text


def read_statuses_of_home(settings: Settings) -> list[BridgeStatus]:
    """Those that are set up. Raises `HomeError`, `StoreError`, `LinkLost`."""
    if is_listening(settings.home.socket):
        return run_with_signals(_of_the_daemon(settings))
    return _as_kept(settings, is_home_served(settings.home.path))


async def _of_the_daemon(settings: Settings) -> list[BridgeStatus]:
    async with open_daemon_link(settings.home) as link:
        listed = await link.run_argv(["bridge", "list"], MAIN_SESSION, _MOST_SECONDS)
    return TypeAdapter(list[BridgeStatus]).validate_python(listed.value)


def _as_kept(settings: Settings, starting: bool) -> list[BridgeStatus]:
    """Nobody runs them; `starting`: somebody is about to."""
    names = [name for name in NETWORK_NAMES if getattr(settings.values, name).enabled]
    statuses = [BridgeStatus(name, "connecting" if starting else "off", _account(settings, name)) for name in names]
    if not statuses or not (settings.home.path / "script.db").exists():
        return statuses
    with open_home_stores(settings) as stores:
        waiting = stores.deliveries.count_open_by_bridge()
        return [
            replace(
                status,
                state="paused" if stores.bridge_states.is_paused(status.name) else status.state,
                waiting=waiting.get(status.name, 0),
            )
            for status in statuses
        ]


def _account(settings: Settings, name: str) -> str:
    """Where the settings tell it."""
    return settings.values.matrix.user if name == "matrix" else ""
