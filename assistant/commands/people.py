"""The slash commands about people: who is known, who waits, and what the owner decides about them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from assistant.core.errors import UsageError
from assistant.core.people import AccessState, Identity, Person, clean_display_name
from assistant.core.slash_commands import Command, CommandInvocation
from assistant.people.pairing import PairingService
from assistant.people.report import people_lines, room_lines
from assistant.store.script.people import People

PEOPLE_USAGE = (
    "/people [rooms | link BRIDGE [ID] | unlink BRIDGE ID | allow WHO | deny WHO | rename WHO NAME]; WHO is a number "
    "or name of the list, BRIDGE ID, or room BRIDGE ID"
)
PAIR_USAGE = "/pair CODE [--owner] [NAME] | /pair allow NUMBER | /pair deny NUMBER"


class PeopleCommands:
    def __init__(
        self,
        people: People,
        desk: PairingService,
        bridges: Callable[[], Sequence[str]],
        zone: ZoneInfo,
        denied: Callable[[datetime], None],
    ) -> None:
        """`bridges` are those that there are now: a link to any other one is a mistake, where there are any. `denied`
        sees to what waits of whoever was denied."""
        self._people = people
        self._desk = desk
        self._bridges = bridges
        self._zone = zone
        self._denied = denied

    def entries(self) -> Mapping[str, Command]:
        return {
            "people": Command(PEOPLE_USAGE, "who is known, on which bridge, and who waits to be let in", self._run),
            "pair": Command(PAIR_USAGE, "let in whoever was given this code, as a guest or as you", self._pair),
        }

    async def _pair(self, call: CommandInvocation) -> str:
        words = _words(call.arguments, PAIR_USAGE)
        match words:
            case ["allow" | "deny" as wanted, number] if number.isascii() and number.isdigit() and len(number) < 16:
                done = self._desk.decide_request(int(number), "allowed" if wanted == "allow" else "denied", call.now)
                self._denied(call.now)
                return done
        as_owner = "--owner" in words
        words = [word for word in words if word != "--owner"]
        if not words:
            raise UsageError(f"Use {PAIR_USAGE}. Nothing was changed.")
        return self._desk.approve(words[0], clean_display_name(" ".join(words[1:])), call.now, as_owner=as_owner)

    async def _run(self, call: CommandInvocation) -> str:
        match _words(call.arguments, PEOPLE_USAGE):
            case []:
                return "\n".join(
                    people_lines(self._people.list_people(), self._desk.list_requests(call.now), self._zone)
                )
            case ["rooms"]:
                return "\n".join(room_lines(self._people.list_rooms(), self._zone))
            case ["link", bridge]:
                return self._desk.offer_link(self._bridge(bridge), call.now)
            case ["link", bridge, sender] if sender:
                return self._link(Identity(self._bridge(bridge), sender), call.now)
            case ["unlink", bridge, sender]:
                return self._unlink(Identity(bridge, sender), call.now)
            case ["allow", *who] if who:
                return self._decide(who, "allowed", call.now)
            case ["deny", *who] if who:
                done = self._decide(who, "denied", call.now)
                self._denied(call.now)
                return done
            case ["rename", *who, name] if who:
                return self._rename(who, clean_display_name(name), call.now)
        raise UsageError(f"Use {PEOPLE_USAGE}. Nothing was changed.")

    # --------------------------------------------------------------------------------------------------------- accounts

    def _link(self, identity: Identity, now: datetime) -> str:
        self._people.link_owner(identity, now)
        self._desk.remove_requests(identity.bridge, identity.sender, None)
        return f"{identity.sender} on {identity.bridge} is you from now on."

    def _unlink(self, identity: Identity, now: datetime) -> str:
        if not self._people.unlink(identity, now):
            raise UsageError(f"Nobody has the account {identity.sender} on {identity.bridge}. Nothing was changed.")
        return f"{identity.sender} on {identity.bridge} is nobody's any more. What was said from there stays."

    def _bridge(self, name: str) -> str:
        there = self._bridges()
        if there and name not in there:
            raise UsageError(f"There is no bridge {name!r}; there are: {', '.join(there)}. Nothing was changed.")
        return name

    # --------------------------------------------------------------------------------------------------------- deciding

    def _decide(self, who: Sequence[str], state: AccessState, now: datetime) -> str:
        """`who` as typed: a number or name, BRIDGE ID, or room BRIDGE ID."""
        done = "may talk to me" if state == "allowed" else "is not answered any more"
        if not all(who):
            raise UsageError(f"Use {PEOPLE_USAGE}. Nothing was changed.")
        match self._whom(who):
            case ["room", bridge, room]:
                self._people.decide_room(self._bridge(bridge), room, "", state, now)
                self._desk.remove_requests(bridge, "", room)
                return f"The room {room} on {bridge} {done}."
            case [bridge, sender]:
                identity = Identity(self._bridge(bridge), sender)
                self._not_the_owner(self._people.find_by_identity(identity))
                self._people.admit_guest(identity, sender, state, now)
                self._desk.remove_requests(bridge, sender, None)
                return f"{sender} on {bridge} {done}."
            case [one]:
                person = self._named(one)
                self._not_the_owner(person)
                self._people.set_state(person.id, state, now)
                return f"{person.name} {done}."
        raise UsageError(f"Use {PEOPLE_USAGE}. Nothing was changed.")

    def _rename(self, who: Sequence[str], name: str, now: datetime) -> str:
        if not name:
            raise UsageError("A name needs letters. Nothing was changed.")
        match self._whom(who):
            case ["room", bridge, room]:
                known = self._people.get_room(bridge, room)
                if known is None:
                    raise UsageError(f"There is no room {room!r} on {bridge}. Nothing was changed.")
                self._people.decide_room(bridge, room, name, known.state, now)
            case [bridge, sender]:
                self._people.rename(self._person_by(Identity(bridge, sender)).id, name)
            case [one]:
                self._people.rename(self._named(one).id, name)
            case _:
                raise UsageError(f"Use {PEOPLE_USAGE}. Nothing was changed.")
        return f"{' '.join(who)} is called {name} from now on."

    def _whom(self, who: Sequence[str]) -> Sequence[str]:
        """A name of several words is one, where somebody has it."""
        name = " ".join(who)
        known = any(person.name.casefold() == name.casefold() for person in self._people.list_people())
        return [name] if known else who

    def _named(self, one: str) -> Person:
        """By number, or by a name that only one has."""
        everybody = self._people.list_people()
        number = one.removeprefix("#")
        found = [person for person in everybody if number.isascii() and number.isdigit() and person.id == int(number)]
        found = found or [person for person in everybody if person.name.casefold() == one.casefold()]
        if len(found) == 1:
            return found[0]
        if found:
            numbers = ", ".join(f"#{person.id}" for person in found)
            raise UsageError(f"Several are called {one!r}: {numbers}. Say which by number. Nothing was changed.")
        raise UsageError(f"Nobody is called {one!r}. Nothing was changed; /people lists everybody.")

    def _person_by(self, identity: Identity) -> Person:
        person = self._people.find_by_identity(identity)
        if person is None:
            raise UsageError(f"Nobody has the account {identity.sender} on {identity.bridge}. Nothing was changed.")
        return person

    @staticmethod
    def _not_the_owner(person: Person | None) -> None:
        if person is not None and person.role == "owner":
            raise UsageError("That is you. `/people unlink BRIDGE ID` takes one of your accounts away.")


def _words(text: str, usage: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        raise UsageError(f"A quotation mark is not closed. Use {usage}. Nothing was changed.") from None
