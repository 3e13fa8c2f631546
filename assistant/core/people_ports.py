"""The seams of people: who is known, who waits to be let in, where the owner's places lead, and what was typed on a
bridge. Rules as in `assistant.core.ports`; every change is one transaction, with the notice that tells of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol

from assistant.core.bridge_ports import Change
from assistant.core.persons import Identity, Knock, KnownRoom, Offer, Pairing, Person, Standing, TypedCommand
from assistant.core.records import Incoming, Outgoing


class People(Protocol):
    """Who is who. Nobody but the owner's process writes here."""

    def all(self) -> list[Person]:
        """The owner first, then the others, the longest known first."""
        ...

    def person(self, person_id: int) -> Person | None: ...

    def by(self, identity: Identity) -> Person | None:
        """Whose account this is."""
        ...

    def link_owner(self, identity: Identity, now: datetime) -> Person:
        """The account is the owner's from now on, whoever had it before."""
        ...

    def let_in(self, identity: Identity, name: str, state: Standing, now: datetime) -> Person:
        """The account belongs to a guest of this state, made where nobody had it. The owner's accounts stay as they
        are."""
        ...

    def unlink(self, identity: Identity, now: datetime) -> bool:
        """Nobody's account from now on; a guest without any account is known no longer, and what was set for later from
        it as a guest is cancelled. False where it was nobody's."""
        ...

    def set_state(self, person_id: int, state: Standing, now: datetime) -> None:
        """Of a guest. With a denial, here and in the others, what they had set for later is cancelled."""
        ...

    def rename(self, person_id: int, name: str) -> None: ...

    def room(self, bridge: str, room: str) -> KnownRoom | None: ...

    def rooms(self) -> list[KnownRoom]: ...

    def decide_room(self, bridge: str, room: str, name: str, state: Standing, now: datetime) -> None:
        """`name` "" keeps the name that it has."""
        ...

    def tell_once(self, outgoing: Outgoing, now: datetime) -> bool:
        """Store the notice, unless its session (that of a stranger, or of a room) was told before."""
        ...


class Pairings(Protocol):
    """Codes that were given out. What is past its time is as if it were not there."""

    def pending(self, now: datetime) -> list[Pairing]:
        """Codes that hold, locked ones too, oldest first."""
        ...

    def knock(self, knock: Knock, offer: Offer, given: Outgoing, asking: Callable[[int], Outgoing]) -> bool:
        """Keep the code of somebody who asks to be let in, with the notice that gives it to them and the one, made of
        the pairing's id, that asks the owner. False, and nothing kept, where too many wait already. Who has a code that
        holds gets no other: True, and nothing kept."""
        ...

    def offer_link(self, bridge: str, offer: Offer) -> bool:
        """Keep a code that the owner sends from that bridge. False where too many wait already."""
        ...

    def wrong(self, pairings: Sequence[Pairing], most: int) -> bool:
        """Note a wrong code on each of these; from `most` on they are locked. Whether they are now."""
        ...

    def approve(self, pairing: Pairing, *, as_owner: bool, outgoing: Outgoing, now: datetime) -> None:
        """The one who knocked is let in (as a guest, or as the owner; a room is allowed), told so, the code used."""
        ...

    def redeem(self, pairing: Pairing, identity: Identity, outgoing: Outgoing, now: datetime) -> None:
        """The account that sent the owner's code is the owner's, told so, the code used."""
        ...

    def drop(self, bridge: str, sender: str, room: str | None) -> None:
        """The codes of somebody on whom the owner decided otherwise."""
        ...


class Places(Protocol):
    """Which of the owner's conversations goes on where they write."""

    def session_at(self, bridge: str, target: str) -> str:
        """`main` where nothing else was chosen."""
        ...

    def choose(self, bridge: str, target: str, session: str, now: datetime) -> None:
        """From now on this place talks to that conversation of the owner's."""
        ...

    def account_at(self, bridge: str, target: str) -> str | None:
        """The account of whoever writes from there, and not in a room; None where nobody did who was let in."""
        ...

    def written_from(self, bridge: str, target: str, account: str) -> None:
        """Somebody who was let in writes from there."""
        ...

    def owners_at(self, bridge: str) -> str | None:
        """Where the owner is written to on that bridge: the place that one of their accounts wrote from, the last one
        that was new; None where none did."""
        ...


class Changes(Protocol):
    """What was edited or deleted on a network after it had arrived."""

    def record(self, change: Change, now: datetime) -> str | None:
        """The session whose conversation has it now; None where nothing was kept: the message is not known, another
        account sent it, or it says the same. A change that was kept before is not kept again. `change.position` is kept
        in every case. Raises `StoreError`."""
        ...

    def settle(self, now: datetime) -> None:
        """At start: what was accepted and is not in the log yet. Raises `StoreError`."""
        ...


class TypedCommands(Protocol):
    """Commands on their way: accepted, run once, answered once."""

    def accept(self, incoming: Incoming, text: str, now: datetime) -> TypedCommand | None:
        """Keep the command `text`, durably; None where it was kept before."""
        ...

    def begin(self, command: TypedCommand) -> None:
        """It is about to run."""
        ...

    def answer(self, command: TypedCommand, outgoing: Outgoing, now: datetime) -> None:
        """Store the answer and end the command, at once; what was typed is kept no longer."""
        ...

    def open(self) -> list[TypedCommand]:
        """What was not answered, oldest first."""
        ...
