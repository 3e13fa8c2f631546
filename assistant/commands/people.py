"""`people`: who may talk to the assistant, and as whom; who waits; what the owner decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, tzinfo

import click
from pydantic import Field

from assistant.commands.context import CommandContext
from assistant.commands.items import Item
from assistant.commands.table import CommandGroup, phrase_option, words_argument
from assistant.core.bridge_api import NETWORK_NAMES
from assistant.core.dataclass import dataclass
from assistant.core.errors import UsageError
from assistant.core.people import AccessState, Identity, KnownRoom, Pairing, Person, PersonRole, clean_display_name
from assistant.people.pairing import as_verbatim, describe_applicant, strip_markdown, supersede_denied

# What networks call accounts and rooms may begin with a hyphen.
_NAMES = {"ignore_unknown_options": True}
_WHO = "WHO is a number or a name of the list, or BRIDGE ID, or room BRIDGE ID. Nothing was changed."


@dataclass(frozen=True, slots=True)
class KnownPeople:
    """Who is known, and who waits to be let in."""

    people: Sequence[Person]
    waiting: Sequence[Pairing]


@dataclass(frozen=True, slots=True)
class PeopleChange(KnownPeople):
    """What was decided, and who is known since."""

    text: str
    rooms: Sequence[KnownRoom]


def _render_list(known: KnownPeople, zone: tzinfo) -> str:
    """A code that somebody waits with is never shown; names that strangers chose stay on their line."""
    lines = [_person_line(person) for person in known.people]
    lines = lines or ["You are the only person so far. `/people link BRIDGE` links your account on a bridge."]
    if known.waiting:
        lines += ["", "Waiting for approval; ask them for their code, then `/pair CODE`, or `/pair allow NUMBER`:"]
    for pairing in known.waiting:
        locked = " (locked after wrong codes)" if pairing.locked else ""
        lines.append(f"- {pairing.id}: {describe_applicant(pairing)}, since {_local(pairing.created_at, zone)}{locked}")
    return "\n".join(lines)


def _person_line(person: Person) -> str:
    accounts = [f"{as_verbatim(identity.sender)} on {identity.bridge}" for identity in person.identities]
    denied = ", denied" if person.state == "denied" else ""
    known_as = f"#{person.id} {strip_markdown(person.name)} ({person.role}{denied})"
    return f"- {known_as}: {', '.join(accounts) or 'no account'}"


def _render_rooms(rooms: Sequence[KnownRoom], zone: tzinfo) -> str:
    lines = [
        f"- {strip_markdown(room.name) or '(no name)'}: {as_verbatim(room.room)} on {room.bridge}, {room.state} since "
        f"{_local(room.decided_at, zone)}"
        for room in rooms
    ]
    return "\n".join(lines) or "No room is known. `/people allow room BRIDGE ID` approves one."


def _local(moment: datetime, zone: tzinfo) -> str:
    return f"{moment.astimezone(zone):%Y-%m-%d %H:%M}"


# ----------------------------------------------------------------------------------------------------------------- JSON


class IdentityItem(Item):
    """One account of a person."""

    bridge: str
    id: str = Field(validation_alias="sender")


class PersonItem(Item):
    """Somebody who is known."""

    id: int
    name: str
    role: PersonRole
    state: AccessState
    since: datetime = Field(validation_alias="created_at")
    identities: list[IdentityItem]


class WaitingItem(Item):
    """Somebody, or a room, that waits to be let in: `assistant people pair allow NUMBER`."""

    number: int = Field(validation_alias="id")
    bridge: str
    id: str = Field(validation_alias="sender")
    room: str | None
    name: str
    since: datetime = Field(validation_alias="created_at")
    until: datetime = Field(validation_alias="expires_at")
    locked: bool  # after wrong codes


class RoomItem(Item):
    """A room that somebody decided on."""

    bridge: str
    room: str
    name: str
    state: AccessState
    since: datetime = Field(validation_alias="decided_at")


class PeopleItem(Item):
    """Who is known, and who waits to be let in."""

    people: list[PersonItem]
    waiting: list[WaitingItem]


class PeopleChangeItem(PeopleItem):
    """What was decided, and who is known since."""

    text: str
    rooms: list[RoomItem]


# -------------------------------------------------------------------------------------------------------------- looking


@click.group(cls=CommandGroup)
def people() -> None:
    """Say who may talk to the assistant, and as whom.

    You are the owner at the terminal of this machine. On bridges people are strangers until you let them in: as guests,
    with conversations of their own, or as yourself. WHO is a number or a name of the list, or BRIDGE ID, or room BRIDGE
    ID.

    > assistant people
    > assistant people link telegram
    > assistant people pair ABCD2345
    > assistant people deny telegram 1234567
    """


@people.command("list", result=PeopleItem, render=_render_list, reads=True, with_session=False)
def list_people(context: CommandContext) -> KnownPeople:
    """List people, their accounts, and who waits to be let in.

    > assistant people list --json
    """
    return KnownPeople(context.stores.people.list_people(), context.stores.pairing.list_requests(context.now))


@people.command("rooms", result=list[RoomItem], render=_render_rooms, reads=True, with_session=False)
def list_rooms(context: CommandContext) -> list[KnownRoom]:
    """List the rooms that were let in, or denied.

    > assistant people rooms
    """
    return context.stores.people.list_rooms()


def _command(name: str, *, names: bool = True) -> Callable[[Callable[..., PeopleChange]], click.Command]:
    """A command that changes who is known; `names`: it takes what networks call accounts and rooms."""
    return people.command(
        name,
        result=PeopleChangeItem,
        creates_home=True,
        with_session=False,
        context_settings=_NAMES if names else {},
    )


# ------------------------------------------------------------------------------------------------------------- accounts


@_command("link")
@click.argument("bridge")
@click.argument("account", metavar="[ID]", required=False)
def link(context: CommandContext, bridge: str, account: str | None) -> PeopleChange:
    """Make an account on a bridge yours. Without ID, print a code to send from there.

    > assistant people link telegram
    > assistant people link telegram 1234567
    """
    if account is None:
        return _change(context, context.stores.pairing.offer_link(_bridge(context, bridge), context.now))
    if not account or account.startswith("--"):
        raise UsageError(f"{account!r} is not the ID of an account. Nothing was changed.")
    context.stores.people.link_owner(Identity(_bridge(context, bridge), account), context.now)
    context.stores.pairing.remove_requests(bridge, account, None, context.now)
    return _change(context, f"{account} on {bridge} is you from now on.")


@_command("unlink")
@click.argument("bridge")
@click.argument("account", metavar="ID")
def unlink(context: CommandContext, bridge: str, account: str) -> PeopleChange:
    """Take an account away from its person. Who writes from there is a stranger again.

    > assistant people unlink telegram 1234567
    """
    if not context.stores.people.unlink(Identity(bridge, account), context.now):
        raise _no_account(bridge, account)
    return _change(context, f"{account} on {bridge} belongs to no one now. What was said from there is kept.")


@_command("pair", names=False)
@click.argument("code")
@words_argument("words", required=False, metavar="NAME")
@click.option("--owner", is_flag=True, help="This code is for your own account on another bridge.")
@phrase_option("--name", "name", metavar="NAME", help="What you call them.")
def pair(context: CommandContext, code: str, words: str, owner: bool, name: str | None) -> PeopleChange:
    """Let in the person who was given this CODE, as a guest.

    With `allow NUMBER` or `deny NUMBER` instead of a code, it decides on somebody who waits in the list.

    > assistant people pair ABCD2345 --name Ann
    > assistant people pair ABCD2345 --owner
    > assistant people pair allow 3
    """
    pairing = context.stores.pairing
    if code in ("allow", "deny") and words.isascii() and words.isdigit() and len(words) < 16:
        decided = pairing.decide_request(int(words), "allowed" if code == "allow" else "denied", context.now)
        return _change(context, decided)
    called = clean_display_name(name or words)
    return _change(context, pairing.approve(code, called, context.now, as_owner=owner))


# ------------------------------------------------------------------------------------------------------------- deciding


@_command("allow")
@click.argument("who", nargs=-1, required=True)
def allow(context: CommandContext, who: tuple[str, ...]) -> PeopleChange:
    """Let in a person as a guest, or a room, without a code.

    > assistant people allow Ann
    > assistant people allow telegram 1234567
    > assistant people allow room telegram 7654321
    """
    return _change(context, _decide(context, who, "allowed"))


@_command("deny")
@click.argument("who", nargs=-1, required=True)
def deny(context: CommandContext, who: tuple[str, ...]) -> PeopleChange:
    """Stop answering a person or a room, without telling them. What was said is kept.

    > assistant people deny Ann
    > assistant people deny room telegram 7654321
    """
    return _change(context, _decide(context, who, "denied"))


@_command("rename")
@click.argument("who", nargs=-1, required=True)
@click.argument("name")
def rename(context: CommandContext, who: tuple[str, ...], name: str) -> PeopleChange:
    """Call a person, or a room, by another name.

    > assistant people rename 2 Ann
    > assistant people rename room telegram 7654321 "The boat club"
    """
    store, name = context.stores.people, clean_display_name(name)
    if not name:
        raise UsageError("A name needs letters. Nothing was changed.")
    match _whom(context, who):
        case ["room", bridge, room]:
            known_room = store.get_room(bridge, room)
            if known_room is None:
                raise UsageError(f"There is no room {room!r} on {bridge}. Nothing was changed.")
            store.decide_room(bridge, room, name, known_room.state, context.now)
        case [bridge, sender]:
            person = store.find_by_identity(Identity(bridge, sender))
            if person is None:
                raise _no_account(bridge, sender)
            store.rename(person.id, name)
        case [word]:
            store.rename(_find_person(context, word).id, name)
        case _:
            raise UsageError(_WHO)
    return _change(context, f"{' '.join(who)} is called {name} from now on.")


def _decide(context: CommandContext, who: Sequence[str], state: AccessState) -> str:
    store, pairing, now = context.stores.people, context.stores.pairing, context.now
    done = "may talk to me" if state == "allowed" else "is not answered any more"
    if not all(who):
        raise UsageError(_WHO)
    match _whom(context, who):
        case ["room", bridge, room]:
            pairing.decide(_bridge(context, bridge), "", room, "", state, now)
            return f"The room {room} on {bridge} {done}."
        case [bridge, sender]:
            _require_guest(store.find_by_identity(Identity(_bridge(context, bridge), sender)))
            pairing.decide(bridge, sender, None, sender, state, now)
            return f"{sender} on {bridge} {done}."
        case [word]:
            person = _find_person(context, word)
            _require_guest(person)
            store.set_state(person.id, state, now)
            return f"{person.name} {done}."
    raise UsageError(_WHO)


def _change(context: CommandContext, text: str) -> PeopleChange:
    """Of somebody who is denied since, nothing waits any more."""
    stores = context.stores
    supersede_denied(stores.conversation, stores.people, context.now)
    waiting = stores.pairing.list_requests(context.now)
    return PeopleChange(stores.people.list_people(), waiting, text, stores.people.list_rooms())


def _bridge(context: CommandContext, name: str) -> str:
    """A bridge that is set up: nobody writes over another one, and a code sent there would not arrive."""
    names = context.services.bridge_names()
    if name in names:
        return name
    there = f"these are set up: {', '.join(names)}" if names else "none is set up yet"
    raise UsageError(
        f"There is no bridge {name!r}; {there}. `/bridge add` sets one up ({', '.join(NETWORK_NAMES)}). Nothing was "
        "changed."
    )


def _whom(context: CommandContext, who: Sequence[str]) -> Sequence[str]:
    """A name of several words is one, where somebody has it."""
    name = " ".join(who)
    known = any(person.name.casefold() == name.casefold() for person in context.stores.people.list_people())
    return [name] if known else who


def _find_person(context: CommandContext, word: str) -> Person:
    """By number, or by a name that only one has."""
    everybody = context.stores.people.list_people()
    number = word.removeprefix("#")
    matches = [person for person in everybody if str(person.id) == number]
    matches = matches or [person for person in everybody if person.name.casefold() == word.casefold()]
    if len(matches) == 1:
        return matches[0]
    if matches:
        numbers = ", ".join(f"#{person.id}" for person in matches)
        raise UsageError(f"Several are called {word!r}: {numbers}. Say which by number. Nothing was changed.")
    raise UsageError(f"Nobody is called {word!r}. Nothing was changed; `/people` lists everybody.")


def _require_guest(person: Person | None) -> None:
    if person is not None and person.role == "owner":
        raise UsageError(
            "That is you. Nothing was changed; `/people unlink BRIDGE ID` takes one of your accounts away."
        )


def _no_account(bridge: str, sender: str) -> UsageError:
    return UsageError(f"Nobody has the account {sender} on {bridge}. Nothing was changed.")
