"""What follows once a bridge is set up: it connects, the owner's account there becomes known, a test message goes out.

All of it is asked of whoever serves the home: the daemon, or, where none runs, this process for as long as it takes.
What was reached stays reached, whenever this ends.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from assistant.cli import attach
from assistant.cli.bridge_answers import Answers
from assistant.cli.commanding import opened_here
from assistant.cli.link import Link
from assistant.cli.logs import log_to_stderr
from assistant.cli.plain import say
from assistant.cli.stored import opened
from assistant.core.calendar import utc_now
from assistant.core.errors import AssistantError
from assistant.core.sessions import MAIN_SESSION
from assistant.settings.settings import Settings
from assistant.wire.stores import Stores

_CONNECTS_WITHIN = 60.0
_LOOK_EVERY = 0.25
# Of so many looks at what is known, one asks the daemon how the bridge is.
_ASKED_EVERY = 8
_TO_WRITE = {
    "telegram": "Write anything to {account} on Telegram, from your account there.",
    "matrix": "Invite {account} to a chat for two, from your account there, and write anything once it has come.",
}
# Where another account of the assistant's is written to at another place.
_ELSEWHERE = ("matrix",)
_GO_ON = "`assistant bridge add {name}` goes on from here"


async def follow(settings: Settings, name: str, account: str, answers: Answers) -> None:
    """Until a test message has arrived. Raises `AssistantError` with what hinders it."""
    inside: list[bool] = []
    async with attach.home_link(settings, _noting(attach.in_process, inside)) as link:
        if not inside:
            await link.command(f"/bridge reload {name}", MAIN_SESSION)
        await _claim(link, name, answers.owner)
        await connected(link, name)
        say(f"Connected, as {account}.")
        await _known(link, settings, name, account, anew=answers.anew)
        say(await link.command(f"/bridge test {name}", MAIN_SESSION))
    if inside:
        say(
            "Set up. This command served it meanwhile: `assistant run` or `assistant service install` keeps it running."
        )
    else:
        say("Set up. The assistant that runs serves it.")


async def tell_code(settings: Settings, name: str, account: str, answers: Answers) -> None:
    """For whoever does not wait: the code to send, and what connects."""
    inside: list[bool] = []
    async with attach.home_link(settings, _noting(opened_here, inside)) as link:
        await link.command(f"/bridge reload {name}", MAIN_SESSION)
        await _claim(link, name, answers.owner)
        with _reading(settings) as stores:
            if answers.anew or stores.places.owners_at(name) is None:
                say(await _what_to_send(link, stores, name, account))
    if inside:
        say(f"Set up. `assistant run` or `assistant service start` connects {name}.")
    else:
        say("Set up. The assistant that runs connects it.")


def _noting(how: attach.Inside, noted: list[bool]) -> attach.Inside:
    """Be the home's process in this way, and note that it was so."""

    @asynccontextmanager
    async def inside(settings: Settings) -> AsyncIterator[Link]:
        async with how(settings) as link:
            noted.append(True)
            yield link

    return inside


async def _claim(link: Link, name: str, owner: str) -> None:
    if owner:
        say(await link.command(shlex.join(["/people", "link", name, owner]), MAIN_SESSION))


async def connected(link: Link, name: str, within: float = _CONNECTS_WITHIN) -> None:
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
                        say(await link.command(f"/bridge resume {name}", MAIN_SESSION))
                if (error := found.get("error", "")) not in ("", told):
                    say(error)
                    told = error
                await asyncio.sleep(_LOOK_EVERY)
    except TimeoutError:
        raise AssistantError(
            f"{name} is set up, but not connected yet. It is tried again by itself; `assistant bridge list` tells how "
            f"it is, and {_GO_ON.format(name=name)}."
        ) from None


async def _known(link: Link, settings: Settings, name: str, account: str, *, anew: bool) -> None:
    """Wait until the owner has written there, from an account that is theirs; with `anew` to another one of ours."""
    with _reading(settings) as stores:
        before = stores.places.owners_at(name)
        if before is not None and not anew:
            return
        say(await _what_to_send(link, stores, name, account))
        if before is not None and name not in _ELSEWHERE:
            return
        say("Waiting for it ...")
        minutes = settings.values.people.pairing_minutes
        try:
            async with asyncio.timeout(minutes * 60):
                await until_known(link, stores, name, before)
        except TimeoutError:
            raise AssistantError(
                f"Nothing came from you within {minutes:g} minutes. {name} is set up; {_GO_ON.format(name=name)}."
            ) from None
    say(f"You are known on {name} now.")


async def _what_to_send(link: Link, stores: Stores, name: str, account: str) -> str:
    """A code, where nobody's account there is the owner's yet."""
    if any(one.bridge == name for person in stores.people.all() if person.role == "owner" for one in person.identities):
        return _TO_WRITE[name].format(account=account)
    where = f"On {name} the assistant is {account}; write to it from your own account there."
    return f"{where} {await link.command(f'/people link {name}', MAIN_SESSION)}"


async def until_known(link: Link, stores: Stores, name: str, before: str | None) -> None:
    """Wait until the owner has written there, from another place than `before`. Raises `AssistantError` where their
    code does not hold any more."""
    told, looks = "", 0
    while stores.places.owners_at(name) in (None, before):
        codes = [one for one in stores.pairings.pending(utc_now()) if (one.kind, one.bridge) == ("link", name)]
        if codes and all(one.locked for one in codes):
            raise AssistantError(
                f"Somebody sent wrong codes, so that yours is locked. {name} is set up; {_GO_ON.format(name=name)}."
            )
        looks += 1
        if looks % _ASKED_EVERY == 0:
            error = (await link.status())["bridges"].get(name, {}).get("error", "")
            if error not in ("", told):
                say(error)
                told = error
        await asyncio.sleep(_LOOK_EVERY)


@contextmanager
def _reading(settings: Settings) -> Iterator[Stores]:
    """The stores beside whoever serves the home, with the log as quiet as it was."""
    with opened(settings) as stores:
        log_to_stderr("error")
        yield stores
