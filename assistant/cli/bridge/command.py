"""`assistant bridge`: the networks over which the assistant is reached, set up, looked at, tested and taken away. How
they are is asked of the daemon that runs them, else read from what is kept.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import click
from pydantic import TypeAdapter

from assistant.cli.bridge.settings import BridgeOptions, has_bridge_settings, remove_bridge
from assistant.cli.effective_settings import load_effective_settings
from assistant.cli.home_stores import open_home_stores
from assistant.cli.lazy import EXIT_INTERRUPTED
from assistant.cli.link import open_daemon_link, run_with_signals
from assistant.cli.logging_setup import configure_logging
from assistant.cli.output import print_json, print_markdown
from assistant.cli.prompts import confirm_or_report
from assistant.cli.shell import with_commands
from assistant.commands import bridges as bridge_commands
from assistant.commands.bridges import BridgeItem, bridge_item, render_bridges
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
    items = [bridge_item(status) for status in read_statuses_of_home(settings)]
    if json_out:
        print_json(TypeAdapter(list[BridgeItem]).dump_python(items, mode="json"))
    else:
        print_markdown(render_bridges(items, settings.zone))


@click.command()
@_name
@click.option("--token-stdin", is_flag=True, help="Read the token from standard input, and ask nothing.")
@click.option("--password-stdin", is_flag=True, help="Matrix: read the account's password from standard input instead.")
@click.option(
    "--user", default="", metavar="ACCOUNT", help="Matrix: the assistant's account, as in @nocturne:example.org."
)
@click.option("--homeserver", default="", metavar="URL", help="Matrix: where it is; found by the account without it.")
@click.option("--owner", default="", metavar="ACCOUNT", help="Your own account there, so that no code has to tell.")
@click.option("--file", "in_file", is_flag=True, help="Keep the token in secrets.toml of the home, not in the keyring.")
@click.option("--no-wait", is_flag=True, help="Set it up, print the code for your account, and do not wait for it.")
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
    """Set up the bridge NAME, make your account there yours, and send you a test message.

    What you answer is tried before anything is kept. It can be said again at any time: what is set already stands in
    brackets, and what is done already is not asked for again. A secret is never an argument: it is asked for without
    echo, or read from standard input.

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
    from assistant.cli.bridge.add import add_bridge

    adding = add_bridge
    context.exit(0 if adding(home_from_environment(), name, answers, waits=not no_wait) else EXIT_INTERRUPTED)


@click.command()
@_name
@click.option("--yes", is_flag=True, help="Do not ask.")
def remove(name: str, yes: bool) -> None:
    """Take NAME away: its token and its settings. What was said there stays, and what waits for you comes here.

    \b
    Example:
      assistant bridge remove telegram
      assistant bridge remove telegram --yes
    """
    settings = load_settings()
    there = has_bridge_settings(settings, name)
    if there and not yes and not confirm_or_report(f"Take {name} away, with its token? What was said there stays."):
        raise click.Abort
    configure_logging("error")
    remove_bridge(settings, name)


bridge = with_commands(bridge_commands.bridge, list_, add, remove)


def _read() -> str:
    """One secret of standard input. Raises `UsageError` where there is none."""
    text = sys.stdin.read().strip() if sys.stdin is not None else ""
    if not text or len(text.splitlines()) != 1:
        raise UsageError("Standard input has to be the secret, one line and nothing else. Nothing was changed.")
    return text


def read_statuses_of_home(settings: Settings) -> list[BridgeStatus]:
    """Those that are set up. Raises `HomeError`, `StoreError`, `LinkLost`."""
    if is_listening(settings.home.socket):
        return run_with_signals(_of_the_daemon(settings))
    return _as_kept(settings, is_home_served(settings.home))


async def _of_the_daemon(settings: Settings) -> list[BridgeStatus]:
    async with open_daemon_link(settings.home) as link:
        listed = await link.run_argv(["bridge", "list"], MAIN_SESSION, _MOST_SECONDS)
    items = TypeAdapter(list[BridgeItem]).validate_python(listed.value)
    return [BridgeStatus(it.name, it.state, it.account, it.since, it.waiting, it.error) for it in items]


def _as_kept(settings: Settings, starting: bool) -> list[BridgeStatus]:
    """Nobody runs them; `starting`: somebody is about to."""
    names = [name for name in NETWORK_NAMES if getattr(settings.values, name).enabled]
    found = [BridgeStatus(name, "connecting" if starting else "off", _account(settings, name)) for name in names]
    if not found or not (settings.home.path / "script.db").exists():
        return found
    with open_home_stores(settings) as stores:
        waiting = stores.deliveries.count_open_by_bridge()
        return [
            replace(
                one,
                state="paused" if stores.bridge_states.is_paused(one.name) else one.state,
                waiting=waiting.get(one.name, 0),
            )
            for one in found
        ]


def _account(settings: Settings, name: str) -> str:
    """Where the settings tell it."""
    return settings.values.matrix.user if name == "matrix" else ""
