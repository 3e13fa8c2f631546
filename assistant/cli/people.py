"""`assistant people`: who is known, on which bridge, who waits to be let in, and what the owner decides about them."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

import click

from assistant.cli.effective_settings import load_effective_settings
from assistant.cli.home_stores import open_home_stores
from assistant.cli.options import Function, ListingGroup, shared_option, shared_option_value
from assistant.cli.output import print_json, print_markdown, print_text
from assistant.cli.remote import run_slash_command
from assistant.cli.tables import format_local_time, print_table
from assistant.cli.text import require_utf8, shorten_line
from assistant.core.calendar import utc_now
from assistant.core.people import Pairing, Person
from assistant.core.sessions import MAIN_SESSION
from assistant.people.report import people_json, rooms_json
from assistant.settings.settings import Settings
from assistant.wire.stores import Stores

_json: Callable[[Function], Function] = shared_option("--json", "Print what is known, then, as JSON.", is_flag=True)
# What networks call accounts and rooms may begin with a hyphen.
_NAMES = {"ignore_unknown_options": True}


@click.group(cls=ListingGroup)
@_json
def people() -> None:
    """Who may talk to the assistant, and as whom.

    You are the owner at this home's terminal. On bridges people are strangers until you let them in: as guests, with
    conversations of their own, or as yourself. WHO is a number or a name of the list, or BRIDGE ID, or room BRIDGE ID.

    \b
    Example:
      assistant people
      assistant people link telegram
      assistant people pair ABCD2345
      assistant people deny telegram 1234567
    """


@people.command(name="list")
@_json
@click.pass_context
def listed(context: click.Context) -> None:
    """List the people that are known, their accounts, and who waits to be let in.

    \b
    Example:
      assistant people list
      assistant people list --json
    """
    _list(load_effective_settings(read_only=True), bool(shared_option_value(context, "json")))


@people.command()
@_json
@click.pass_context
def rooms(context: click.Context) -> None:
    """List the rooms that were let in, or denied.

    \b
    Example:
      assistant people rooms
    """
    _rooms(load_effective_settings(read_only=True), bool(shared_option_value(context, "json")))


@people.command(context_settings=_NAMES)
@click.argument("bridge")
@click.argument("account", metavar="[ID]", required=False)
@_json
@click.pass_context
def link(context: click.Context, bridge: str, account: str | None) -> None:
    """Make an account on a bridge yours. Without ID, print a code to send from there.

    \b
    Example:
      assistant people link telegram
      assistant people link telegram 1234567
    """
    _changed(context, "/people", "link", bridge, *([account] if account else []))


@people.command(context_settings=_NAMES)
@click.argument("bridge")
@click.argument("account", metavar="ID")
@_json
@click.pass_context
def unlink(context: click.Context, bridge: str, account: str) -> None:
    """Make an account nobody's: whoever writes from there is a stranger again.

    \b
    Example:
      assistant people unlink telegram 1234567
    """
    _changed(context, "/people", "unlink", bridge, account)


@people.command()
@click.argument("code")
@click.option("--owner", is_flag=True, help="It is you who has this code, on another bridge.")
@click.option("--name", default="", help="What you call them.")
@_json
@click.pass_context
def pair(context: click.Context, code: str, owner: bool, name: str) -> None:
    """Let in whoever was given this CODE, as a guest.

    \b
    Example:
      assistant people pair ABCD2345 --name Ann
      assistant people pair ABCD2345 --owner
    """
    _changed(context, "/pair", code, *(["--owner"] if owner else []), *([name] if name else []))


@people.command(context_settings=_NAMES)
@click.argument("who", nargs=-1, required=True)
@_json
@click.pass_context
def allow(context: click.Context, who: tuple[str, ...]) -> None:
    """Let somebody in as a guest, or a room, without a code.

    \b
    Example:
      assistant people allow Ann
      assistant people allow telegram 1234567
      assistant people allow room telegram 7654321
    """
    _changed(context, "/people", "allow", *who)


@people.command(context_settings=_NAMES)
@click.argument("who", nargs=-1, required=True)
@_json
@click.pass_context
def deny(context: click.Context, who: tuple[str, ...]) -> None:
    """Answer somebody no longer, and do not tell them. What was said before is kept.

    \b
    Example:
      assistant people deny Ann
      assistant people deny room telegram 7654321
    """
    _changed(context, "/people", "deny", *who)


@people.command(context_settings=_NAMES)
@click.argument("who", nargs=-1, required=True)
@click.argument("name")
@_json
@click.pass_context
def rename(context: click.Context, who: tuple[str, ...], name: str) -> None:
    """Call somebody, or a room, by another name.

    \b
    Example:
      assistant people rename 2 Ann
      assistant people rename room telegram 7654321 "The boat club"
    """
    _changed(context, "/people", "rename", *who, name)


def _changed(context: click.Context, *words: str) -> None:
    settings = load_effective_settings()
    text = shlex.join(require_utf8(word, "That") for word in words)
    answer = run_slash_command(settings, text, MAIN_SESSION, begins=True)
    if not shared_option_value(context, "json"):
        print_markdown(answer)
        return
    with open_home_stores(settings) as stores:
        print_json({"text": answer, **_known(stores), "rooms": rooms_json(stores.people.list_rooms())})


def _known(stores: Stores) -> dict[str, Any]:
    return people_json(stores.people.list_people(), _waiting(stores))


def _waiting(stores: Stores) -> list[Pairing]:
    return [one for one in stores.pairings.pending_pairings(utc_now()) if one.kind == "knock"]


def _list(settings: Settings, json_out: bool) -> None:
    with open_home_stores(settings) as stores:
        if json_out:
            print_json(_known(stores))
            return
        known, waiting = stores.people.list_people(), _waiting(stores)
    print_table(
        ("id", "name", "role", "state", "accounts"),
        [(str(one.id), shorten_line(one.name, 60), one.role, one.state, _accounts(one)) for one in known],
        right=("id",),
        empty="Nobody is known yet but you, at this terminal. `assistant people link BRIDGE` links your account.",
    )
    if waiting:
        print_text("")
        print_table(
            ("waiting since", "on", "who", "id", ""),
            [
                (
                    format_local_time(one.created_at, settings.zone),
                    one.bridge,
                    shorten_line(_called(one), 60),
                    shorten_line(one.room or one.sender, 100),
                    "locked" if one.locked else "",
                )
                for one in waiting
            ],
            empty="",
        )


def _rooms(settings: Settings, json_out: bool) -> None:
    with open_home_stores(settings) as stores:
        known = stores.people.list_rooms()
    if json_out:
        print_json(rooms_json(known))
        return
    print_table(
        ("bridge", "room", "name", "state", "since"),
        [
            (
                one.bridge,
                shorten_line(one.room, 100),
                shorten_line(one.name, 60),
                one.state,
                format_local_time(one.decided_at, settings.zone),
            )
            for one in known
        ],
        empty="No room is known. `assistant people allow room BRIDGE ID` lets one in.",
    )


def _accounts(person: Person) -> str:
    return ", ".join(f"{one.bridge} {shorten_line(one.sender, 100)}" for one in person.identities)


def _called(pairing: Pairing) -> str:
    return f"room {pairing.name}" if pairing.room is not None else pairing.name
