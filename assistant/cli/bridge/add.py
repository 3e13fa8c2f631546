"""`assistant bridge add`: asks for what is needed, tries it, keeps it, and waits until a test message has arrived.

Following: the bridge connects, the owner's account there becomes known, a test message goes out. All of it is asked
of whoever serves the home: the daemon, or, where none runs, this process for as long as it takes. What was reached
stays reached, whenever this ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import click

from assistant.bridges import configured as bridge_setup
from assistant.cli.bridge.settings import BridgeAnswers, BridgeOptions, ask_bridge_answers, save_bridge_answers
from assistant.cli.home_stores import open_home_stores
from assistant.cli.link import (
    Link,
    LocalLinkFactory,
    open_home_locally,
    open_link,
    run_once,
    run_with_signals,
    serve_in_process,
)
from assistant.cli.logging_setup import configure_logging
from assistant.cli.output import print_text
from assistant.cli.prompts import StepSkipped, prompt_choice
from assistant.core.calendar import utc_now
from assistant.core.errors import AssistantError, BridgeError
from assistant.core.sessions import MAIN_SESSION
from assistant.settings.home import Home
from assistant.settings.settings import Settings, load_settings
from assistant.wire.stores import Stores

_AFTER = {
    "again": "answer again",
    "keep": "keep the answers; they are tried again automatically",
    "leave": "change nothing",
}


def add_bridge(home: Home, name: str, given: BridgeOptions, *, waits: bool) -> bool:
    """Set a bridge up. Returns False after Ctrl-C. Raises as `set_up_bridge` does."""
    kept: list[str] = []
    try:
        set_up_bridge(home, name, given, kept, waits=waits)
    except StepSkipped:
        print_text("Skipped. Nothing was changed.")
    except (click.Abort, KeyboardInterrupt):
        left = f"{name} is set up; `assistant bridge add {name}` continues from here."
        print_text(f"\nStopped. {left if kept else 'Nothing was changed.'}")
        return False
    return True


def set_up_bridge(home: Home, name: str, given: BridgeOptions, kept: list[str], *, waits: bool) -> None:
    """Ask, try, keep, and follow; `kept` is added to as soon as things are kept. Raises `StepSkipped`, `click.Abort`,
    `BridgeError`, `SettingsError`, `UsageError`, `StoreError`."""
    answers, account = _answered(home, name, given)
    kept += save_bridge_answers(home, name, answers, in_file=given.in_file)
    settings = load_settings(home)
    if answers.anew:
        run_once(settings, ["bridge", "anew", name], creates_home=True)
    if not account:
        print_text(f"{name} is set up, but not tested. `assistant bridge add {name}` continues from here.")
    elif waits:
        run_with_signals(follow_bridge_setup(settings, name, account, answers))
    else:
        run_with_signals(print_link_code(settings, name, account, answers))


def _answered(home: Home, name: str, given: BridgeOptions) -> tuple[BridgeAnswers, str]:
    """What was answered, and who we are there; "" where a person keeps what could not be tried."""
    while True:
        settings = load_settings(home)
        answers = None
        try:
            answers = ask_bridge_answers(name, home, settings, given)
            print_text(f"Asking {name} ...")
            trial = bridge_setup.settings_with_answers(settings, name, answers.keys, answers.token)
            return answers, asyncio.run(bridge_setup.check_account(trial, name))
        except BridgeError as error:
            if not given.is_interactive:
                raise
            print_text(str(error))
        possible = {word: means for word, means in _AFTER.items() if word != "keep" or answers is not None}
        match prompt_choice("What now?", possible, "again"):
            case "keep" if answers is not None:
                return answers, ""
            case "leave":
                raise StepSkipped


_MOST_SECONDS = 300.0
_CONNECTS_WITHIN = 60.0
_LOOK_EVERY = 0.25
# Every so many looks at the stores, the daemon is asked how the bridge is.
_ASKED_EVERY = 8
_TO_WRITE = {
    "telegram": "Write anything to {account} on Telegram, from your own account.",
    "matrix": "Invite {account} to a direct chat from your own account, and write anything when it has joined.",
}
# Where another account of the assistant's is written to at another place.
_ELSEWHERE = ("matrix",)
_GO_ON = "`assistant bridge add {name}` continues from here"


async def follow_bridge_setup(settings: Settings, name: str, account: str, answers: BridgeAnswers) -> None:
    """Until a test message has arrived. Raises `AssistantError` with what hinders it."""
    inside: list[bool] = []
    async with open_link(settings, _noting(serve_in_process, inside)) as link:
        if not inside:
            await _run(link, "bridge", "reload", name)
        await _claim(link, name, answers.owner)
        await wait_until_connected(link, name)
        print_text(f"Connected, as {account}.")
        await _known(link, settings, name, account, anew=answers.anew)
        print_text(await _run(link, "bridge", "test", name))
    if inside:
        print_text("Set up. Now start the assistant with `assistant run` or `assistant service install`.")
    else:
        print_text("Set up. The running assistant uses it.")


async def print_link_code(settings: Settings, name: str, account: str, answers: BridgeAnswers) -> None:
    """For whoever does not wait: the code to send, and what connects."""
    inside: list[bool] = []
    async with open_link(settings, _noting(open_home_locally, inside)) as link:
        await _run(link, "bridge", "reload", name)
        await _claim(link, name, answers.owner)
        with _reading(settings) as stores:
            if answers.anew or stores.places.find_owner_target(name) is None:
                print_text(await _what_to_send(link, stores, name, account))
    if inside:
        print_text(f"Set up. `assistant run` or `assistant service start` connects {name}.")
    else:
        print_text("Set up. The running assistant connects it.")


def _noting(how: LocalLinkFactory, noted: list[bool]) -> LocalLinkFactory:
    """Be the home's process in this way, and note that it was so."""

    @asynccontextmanager
    async def inside(settings: Settings) -> AsyncIterator[Link]:
        async with how(settings) as link:
            noted.append(True)
            yield link

    return inside


async def _run(link: Link, *argv: str) -> str:
    return (await link.run_argv(argv, MAIN_SESSION, _MOST_SECONDS)).text


async def _claim(link: Link, name: str, owner: str) -> None:
    if owner:
        print_text(await _run(link, "people", "link", name, owner))


async def wait_until_connected(link: Link, name: str, within: float = _CONNECTS_WITHIN) -> None:
    """Wait until the network answers, at most so many seconds, telling what hinders it. Raises `AssistantError`."""
    told = ""
    try:
        async with asyncio.timeout(within):
            while True:
                found = (await link.status())["bridges"].get(name, {})
                match found.get("state"):
                    case "connected":
                        return
                    case "paused":
                        print_text(await _run(link, "bridge", "resume", name))
                if (error := found.get("error", "")) not in ("", told):
                    print_text(error)
                    told = error
                await asyncio.sleep(_LOOK_EVERY)
    except TimeoutError:
        raise AssistantError(
            f"{name} is set up, but not connected yet. It is tried again automatically; `assistant bridge list` "
            f"shows its state, and {_GO_ON.format(name=name)}."
        ) from None


async def _known(link: Link, settings: Settings, name: str, account: str, *, anew: bool) -> None:
    """Wait until the owner has written there, from an account that is theirs; with `anew` to another one of ours."""
    with _reading(settings) as stores:
        before = stores.places.find_owner_target(name)
        if before is not None and not anew:
            return
        print_text(await _what_to_send(link, stores, name, account))
        if before is not None and name not in _ELSEWHERE:
            return
        print_text("Waiting for your message ...")
        minutes = settings.values.people.pairing_minutes
        try:
            async with asyncio.timeout(minutes * 60):
                await wait_until_owner_known(link, stores, name, before)
        except TimeoutError:
            raise AssistantError(
                f"No message from you arrived within {minutes:g} minutes. {name} is set up; {_GO_ON.format(name=name)}."
            ) from None
    print_text(f"Your account on {name} is linked.")


async def _what_to_send(link: Link, stores: Stores, name: str, account: str) -> str:
    """A code, where nobody's account there is the owner's yet."""
    if any(
        one.bridge == name
        for person in stores.people.list_people()
        if person.role == "owner"
        for one in person.identities
    ):
        return _TO_WRITE[name].format(account=account)
    where = f"On {name} the assistant is {account}; write to it from your own account there."
    return f"{where} {await _run(link, 'people', 'link', name)}"


async def wait_until_owner_known(link: Link, stores: Stores, name: str, before: str | None) -> None:
    """Wait until the owner has written there, from another place than `before`. Raises `AssistantError` where their
    code does not hold any more."""
    told, looks = "", 0
    while stores.places.find_owner_target(name) in (None, before):
        codes = [one for one in stores.pairings.pending_pairings(utc_now()) if (one.kind, one.bridge) == ("link", name)]
        if codes and all(one.locked for one in codes):
            raise AssistantError(
                f"Someone sent wrong codes, so your code is locked. {name} is set up; {_GO_ON.format(name=name)}."
            )
        looks += 1
        if looks % _ASKED_EVERY == 0:
            error = (await link.status())["bridges"].get(name, {}).get("error", "")
            if error not in ("", told):
                print_text(error)
                told = error
        await asyncio.sleep(_LOOK_EVERY)


@contextmanager
def _reading(settings: Settings) -> Iterator[Stores]:
    """The stores beside whoever serves the home, with the log as quiet as it was."""
    with open_home_stores(settings) as stores:
        configure_logging("error")
        yield stores
