"""`assistant bridge list`, `add` and `remove`.

`add` asks for what is needed, tries it, keeps it, and waits until a test message has arrived: the bridge connects, the
owner's account there becomes known, a test message goes out. All of it is asked of the process that serves the home:
the daemon, or, where none runs, this process for as long as it takes. What was reached stays reached, whenever this
ends.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import click

from assistant.bridges import configured as networks
from assistant.cli.bridge.settings import (
    BridgeAnswers,
    BridgeOptions,
    ask_bridge_answers,
    has_bridge_settings,
    owner_accounts,
    remove_bridge,
    save_bridge_answers,
)
from assistant.cli.daemon_link import open_daemon_link
from assistant.cli.handover import HandoverLink, serve_in_process
from assistant.cli.home_stores import load_effective_settings, open_home_stores
from assistant.cli.lazy import EXIT_INTERRUPTED
from assistant.cli.link import InProcessLink, Link
from assistant.cli.logging_setup import log_to_file
from assistant.cli.open_link import open_home_locally, open_link, run_once, run_with_signals
from assistant.cli.output import json_result, print_markdown, print_remark, print_text
from assistant.cli.prompts import StepSkipped, prompt_choice
from assistant.cli.shell import print_result, with_commands
from assistant.commands import bridges as bridge_commands
from assistant.commands.bridges import BridgeItem, render_bridges
from assistant.commands.table import CommandResult
from assistant.core.bridge_api import NETWORK_NAMES, BridgeState, BridgeStatus
from assistant.core.calendar import utc_now
from assistant.core.dataclass import dataclass
from assistant.core.errors import AssistantError, BridgeError, UsageError
from assistant.core.sessions import MAIN_SESSION
from assistant.service.home_lock import is_home_served, is_listening
from assistant.settings.home import Home, home_from_environment
from assistant.settings.settings import Settings, load_settings
from assistant.wire.stores import Stores

_LIST_SECONDS = 60.0
_name = click.argument("name", type=click.Choice(NETWORK_NAMES))


@click.command(name="list")
@json_result(list[BridgeItem], "Print a JSON array of the bridges.")
def list_() -> Any:
    """List the bridges: how each is, who we are there, what waits. Also what to do about it.

    > assistant bridge list
    """
    settings = load_effective_settings()
    if is_listening(settings.home.socket):
        result = run_with_signals(_ask_daemon(settings))
        print_result(result, as_json=False)
        return result.value
    statuses = _read_statuses(settings)
    print_markdown(render_bridges(statuses, settings.zone))
    return statuses


@click.command()
@_name
@click.option("--token-stdin", is_flag=True, help="Read the token from standard input; ask nothing.")
@click.option("--password-stdin", is_flag=True, help="Matrix and mail: read the password from standard input instead.")
@click.option(
    "--user",
    default="",
    metavar="ACCOUNT",
    help="Matrix and mail: its own, as in @nocturne:example.org.",
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
    """Set up the bridge NAME, link your account, and send a test message.

    Your answers are tried before anything is saved. You can run it again at any time: current values are shown in
    brackets, and finished steps are skipped. A secret is never an argument: you type it without echo, or it is read
    from standard input.

    > assistant bridge add telegram
    > assistant bridge add matrix
    > assistant bridge add discord
    > assistant bridge add slack
    > assistant bridge add mail
    > pass show telegram | assistant bridge add telegram --token-stdin --no-wait
    """
    if token_stdin and password_stdin:
        raise UsageError("Give --token-stdin or --password-stdin, not both. Nothing was changed.")
    secret = _read_secret() if token_stdin or password_stdin else ""
    token, password = (secret, "") if token_stdin else ("", secret)
    options = BridgeOptions(token, password, user, homeserver, owner, in_file)
    home = home_from_environment()
    log_to_file(home.program_log)
    context.exit(0 if add_bridge(home, name, options, waits=not no_wait) else EXIT_INTERRUPTED)


@dataclass(frozen=True, slots=True)
class RemovedBridge:
    """Whether there was anything to remove of a bridge."""

    name: str
    removed: bool


@click.command()
@_name
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_result(RemovedBridge)
def remove(name: str, yes: bool) -> RemovedBridge:
    """Remove a bridge, with its token and settings. Conversations stay.

    Messages to you that were not sent yet appear in the terminal.

    > assistant bridge remove telegram
    > assistant bridge remove telegram --yes
    """
    settings = load_settings()
    if has_bridge_settings(settings, name) and not yes:
        _confirm(f"Remove {name}, with its token? Conversations stay.")
    log_to_file(settings.home.program_log)
    return RemovedBridge(name, remove_bridge(settings, name))


bridge = with_commands(bridge_commands.bridge, list_, add, remove)


def _read_secret() -> str:
    """One secret of standard input. Raises `UsageError` where there is none."""
    text = sys.stdin.read().strip() if sys.stdin is not None else ""
    if not text or len(text.splitlines()) != 1:
        raise UsageError("Standard input must contain the secret, in one line. Nothing was changed.")
    return text


def _confirm(question: str) -> None:
    """Raises `click.Abort` after anything but yes."""
    try:
        is_confirmed = click.confirm(question, err=True)
    except click.Abort:
        print_remark("\nNothing was changed.")
        raise
    if not is_confirmed:
        print_remark("Nothing was changed.")
        raise click.Abort


async def _ask_daemon(settings: Settings) -> CommandResult:
    async with open_daemon_link(settings.home) as link:
        return await link.run_argv(["bridge", "list"], MAIN_SESSION, _LIST_SECONDS)


def _read_statuses(settings: Settings) -> list[BridgeStatus]:
    """Those that are set up, which nobody runs, or somebody is about to. Raises `HomeError`, `StoreError`."""
    state: BridgeState = "connecting" if is_home_served(settings.home.path) else "off"
    accounts = {"matrix": settings.values.matrix.user, "mail": settings.values.mail.address}
    names = [name for name in NETWORK_NAMES if getattr(settings.values, name).enabled]
    statuses = [BridgeStatus(name, state, accounts.get(name, "")) for name in names]
    if not statuses or not (settings.home.path / "script.db").exists():
        return statuses
    with open_home_stores(settings) as stores:
        waiting = stores.deliveries.count_open_by_bridge()
        return [
            replace(
                status,
                state="paused" if stores.bridge_states.is_paused(status.name) else state,
                waiting=waiting.get(status.name, 0),
            )
            for status in statuses
        ]


# ------------------------------------------------------------------------------------------------------- setting one up

_AFTER_FAILURE = {
    "again": "answer again",
    "keep": "keep the answers; they are tried again automatically",
    "leave": "change nothing",
}


def add_bridge(home: Home, name: str, options: BridgeOptions, *, waits: bool) -> bool:
    """Set a bridge up. Returns False after Ctrl-C. Raises as `set_up_bridge` does."""
    saved: list[str] = []
    try:
        set_up_bridge(home, name, options, saved, waits=waits)
    except StepSkipped:
        print_text("Skipped. Nothing was changed.")
    except (click.Abort, KeyboardInterrupt):
        left = f"{name} is set up; `assistant bridge add {name}` continues from here."
        print_text(f"\nStopped. {left if saved else 'Nothing was changed.'}")
        return False
    return True


def set_up_bridge(home: Home, name: str, options: BridgeOptions, saved: list[str], *, waits: bool) -> None:
    """Ask, try, keep, and follow; `saved` is added to as soon as things are kept. Raises `StepSkipped`, `click.Abort`,
    `BridgeError`, `SettingsError`, `UsageError`, `StoreError`."""
    answers, account = _ask_and_try(home, name, options)
    saved += save_bridge_answers(home, name, answers, in_file=options.in_file)
    settings = load_settings(home)
    if answers.anew:
        run_once(settings, ["bridge", "anew", name], creates_home=True)
    if account:
        run_with_signals(_connect(settings, name, account, answers, waits=waits))
    else:
        print_text(f"{name} is set up, but not tested. `assistant bridge add {name}` continues from here.")


def _ask_and_try(home: Home, name: str, options: BridgeOptions) -> tuple[BridgeAnswers, str]:
    """The answers, and who we are there; "" where a person keeps what could not be tried."""
    while True:
        settings = load_settings(home)
        answers = None
        try:
            answers = ask_bridge_answers(home, name, settings, options)
            print_text(f"Asking {name} ...")
            trial = networks.settings_with_answers(settings, name, answers.keys, answers.token)
            return answers, asyncio.run(networks.check_account(trial, name))
        except BridgeError as error:
            if not options.is_interactive:
                raise
            print_text(str(error))
        choices = {word: means for word, means in _AFTER_FAILURE.items() if word != "keep" or answers is not None}
        match prompt_choice("What now?", choices, "again"):
            case "keep" if answers is not None:
                return answers, ""
            case "leave":
                raise StepSkipped


_MAX_SECONDS = 300.0
_CONNECTS_WITHIN = 60.0
_LOOK_EVERY = 0.25
# Every so many looks at the stores, the daemon is asked how the bridge is.
_ASKED_EVERY = 8
_TO_WRITE = {
    "telegram": "Write anything to {account} on Telegram, from your own account.",
    "discord": "Invite {account} to a server of yours, and write anything to it in a direct message.",
    "slack": "Write anything to {account} in Slack: find it under Apps.",
    "mail": "Write a mail to {account} from your own address.",
    "matrix": "Invite {account} to a direct chat from your own account, and write anything when it has joined.",
}
# Where another account of the assistant's is written to at another place.
_ELSEWHERE = ("matrix", "discord", "slack", "mail")
_CONTINUES = "`assistant bridge add {name}` continues from here"


async def _connect(settings: Settings, name: str, account: str, answers: BridgeAnswers, *, waits: bool) -> None:
    """Until a test message has arrived; for one who does not wait, the code to send, and what connects. Raises
    `AssistantError` with what hinders it."""
    async with open_link(settings, serve_in_process if waits else open_home_locally) as link:
        is_local = isinstance(link, (InProcessLink, HandoverLink))
        if not (waits and is_local):
            await _run(link, "bridge", "reload", name)
        if answers.owner:
            print_text(await _run(link, "people", "link", name, answers.owner))
        if waits:
            await wait_until_connected(link, name)
            print_text(f"Connected, as {account}.")
        with open_home_stores(settings) as stores:
            await _link_owner(link, settings, stores, name, account, anew=answers.anew, waits=waits)
        if waits:
            print_text(await _run(link, "bridge", "test", name))
    match is_local, waits:
        case True, True:
            print_text("Set up. Now start the assistant with `assistant run` or `assistant service install`.")
        case True, False:
            print_text(f"Set up. `assistant run` or `assistant service start` connects {name}.")
        case _:
            print_text(f"Set up. The running assistant {'uses' if waits else 'connects'} it.")


async def _run(link: Link, *argv: str) -> str:
    return (await link.run_argv(argv, MAIN_SESSION, _MAX_SECONDS)).text


async def wait_until_connected(link: Link, name: str, within: float = _CONNECTS_WITHIN) -> None:
    """Wait until the network answers, at most so many seconds, telling what hinders it. Raises `AssistantError`."""
    shown = ""
    try:
        async with asyncio.timeout(within):
            while True:
                status = (await link.status())["bridges"].get(name, {})
                match status.get("state"):
                    case "connected":
                        return
                    case "paused":
                        print_text(await _run(link, "bridge", "resume", name))
                shown = _show_error(status, shown)
                await asyncio.sleep(_LOOK_EVERY)
    except TimeoutError:
        raise AssistantError(
            f"{name} is set up, but not connected yet. It is tried again automatically; `assistant bridge list` "
            f"shows its state, and {_CONTINUES.format(name=name)}."
        ) from None


def _show_error(status: Mapping[str, Any], shown: str) -> str:
    """Print what hinders a bridge, unless that is `shown` already; what is shown now."""
    error: str = status.get("error", "")
    if error in ("", shown):
        return shown
    print_text(error)
    return error


async def _link_owner(
    link: Link, settings: Settings, stores: Stores, name: str, account: str, *, anew: bool, waits: bool
) -> None:
    """Say what to send, and wait until the owner has written there, from an account that is theirs; with `anew` to
    another one of ours."""
    before = stores.places.find_owner_target(name)
    if before is not None and not anew:
        return
    if owner_accounts(stores, name):
        print_text(_TO_WRITE[name].format(account=account))
    else:
        where = f"On {name} the assistant is {account}; write to it from your own account there."
        print_text(f"{where} {await _run(link, 'people', 'link', name)}")
    if not waits or (before is not None and name not in _ELSEWHERE):
        return
    print_text("Waiting for your message ...")
    minutes = settings.values.people.pairing_minutes
    try:
        async with asyncio.timeout(minutes * 60):
            await wait_until_owner_known(link, stores, name, before)
    except TimeoutError:
        raise AssistantError(
            f"No message from you arrived within {minutes:g} minutes. {name} is set up; {_CONTINUES.format(name=name)}."
        ) from None
    print_text(f"Your account on {name} is linked.")


async def wait_until_owner_known(link: Link, stores: Stores, name: str, before: str | None) -> None:
    """Wait until the owner has written there, from another place than `before`. Raises `AssistantError` where their
    code does not hold any more."""
    shown, looks = "", 0
    while stores.places.find_owner_target(name) in (None, before):
        codes = [it for it in stores.pairings.pending_pairings(utc_now()) if (it.kind, it.bridge) == ("link", name)]
        if codes and all(code.locked for code in codes):
            raise AssistantError(
                f"Someone sent wrong codes, so your code is locked. {name} is set up; {_CONTINUES.format(name=name)}."
            )
        looks += 1
        if looks % _ASKED_EVERY == 0:
            shown = _show_error((await link.status())["bridges"].get(name, {}), shown)
        await asyncio.sleep(_LOOK_EVERY)
