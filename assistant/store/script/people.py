"""Who is who, where the owner's conversations continue, and the codes by which people are let in.

What always holds: an account belongs to one person at most; no account becomes the owner's except by
`link_owner_account`, and the owner's accounts are changed by it and by `unlink` alone. Of a code only its salted
hash is kept; it is valid until its time, is used once, and what using it changes is written in the same transaction
as the notice of it. Expired codes are deleted when new ones are made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import datetime

from assistant.core.people import (
    AccessRequest,
    AccessState,
    Identity,
    KnownRoom,
    Pairing,
    PairingCode,
    PairingKind,
    PairingOffer,
    Person,
)
from assistant.core.records import OutgoingMessage
from assistant.core.sessions import MAIN_SESSION, peer_session_key, room_session_key
from assistant.store.database import Database, DatabaseStore
from assistant.store.rows import class_row, clean_text
from assistant.store.script.outbox import insert_outgoing

OWNER_NAME = "owner"


class People(DatabaseStore):
    """Who is who. Only the owner's process writes here."""

    def list_people(self) -> list[Person]:
        """The owner first, then the others, the longest known first."""
        return _read_people(self._db, "ORDER BY role <> 'owner', id")

    def find_by_identity(self, identity: Identity) -> Person | None:
        """Whose account this is."""
        return find_person(self._db, identity)

    # --------------------------------------------------------------------------------------------------------- changing

    def link_owner(self, identity: Identity, now: datetime) -> Person:
        """The account is the owner's from now on, also where another person had it."""
        with self._db.write() as db:
            return link_owner_account(db, identity, now)

    def admit_guest(self, identity: Identity, name: str, state: AccessState, now: datetime) -> Person:
        """The account belongs to a guest of this state, made where no person had it. The owner's accounts stay as they
        are."""
        with self._db.write() as db:
            return admit_guest(db, identity, name, state, now)

    def unlink(self, identity: Identity, now: datetime) -> bool:
        """The account belongs to no person from now on. A guest without any account is deleted, and what was set for
        later from it as a guest is cancelled. False where it belonged to no person."""
        session = peer_session_key(identity.bridge, identity.sender)
        with self._db.write() as db:
            deleted = db.execute("DELETE FROM identities WHERE bridge = ? AND sender = ?", _account(identity))
            db.execute("DELETE FROM told WHERE session = ?", (session,))
            _cancel_jobs(db, session, now)
            _delete_guests_without_account(db)
        return bool(deleted)

    def set_state(self, person_id: int, state: AccessState, now: datetime) -> None:
        """Of a guest. A denial, here and in the others, cancels what they had set for later."""
        with self._db.write() as db:
            _set_person_state(db, _read_person(db, person_id), state, now)

    def rename(self, person_id: int, name: str) -> None:
        with self._db.write() as db:
            db.update_rows("people", {"id": person_id}, name=name)

    # ------------------------------------------------------------------------------------------------------------ rooms

    def get_room(self, bridge: str, room: str) -> KnownRoom | None:
        return self._db.read_one(_read_room, "SELECT * FROM rooms WHERE bridge = ? AND room = ?", (bridge, room))

    def list_rooms(self) -> list[KnownRoom]:
        return self._db.read_all(_read_room, "SELECT * FROM rooms ORDER BY bridge, room")

    def decide_room(self, bridge: str, room: str, name: str, state: AccessState, now: datetime) -> None:
        """`name` "" keeps the name that it has."""
        with self._db.write() as db:
            set_room_state(db, bridge, room, name, state, now)

    def notify_once(self, outgoing: OutgoingMessage, now: datetime) -> bool:
        """Store the notice, unless its session (that of a stranger, or of a room) had one before."""
        with self._db.write() as db:
            is_new = db.insert_if_new("told", session=outgoing.session, told_at=now)
            if is_new:
                insert_outgoing(db, [outgoing], now)
        return is_new


class ConversationRoutes(DatabaseStore):
    """Which of the owner's conversations continues where they write."""

    def session_at(self, bridge: str, target: str) -> str:
        """`main` where nothing else was chosen."""
        sql = "SELECT session FROM places WHERE bridge = ? AND target = ?"
        return self._db.value(sql, (bridge, target)) or MAIN_SESSION

    def choose_session(self, bridge: str, target: str, session: str, now: datetime) -> None:
        """From now on this place talks to that conversation of the owner's."""
        with self._db.write() as db:
            db.upsert_row("places", ("bridge", "target"), bridge=bridge, target=target, session=session, chosen_at=now)

    def account_at(self, bridge: str, target: str) -> str | None:
        """The account that writes from there, and not in a room; None where no admitted account did."""
        account: str | None = self._db.value(
            "SELECT account FROM accounts_at WHERE bridge = ? AND target = ?", (bridge, target)
        )
        return account

    def record_account(self, bridge: str, target: str, account: str) -> None:
        """An account that was let in writes from there."""
        if self.account_at(bridge, target) != clean_text(account):
            with self._db.write() as db:
                db.upsert_row("accounts_at", ("bridge", "target"), bridge=bridge, target=target, account=account)

    def find_owner_target(self, bridge: str) -> str | None:
        """Where the owner is written to on that bridge: the place that one of their accounts wrote from, the newest
        one; None where none did."""
        target: str | None = self._db.value(
            "SELECT a.target FROM accounts_at a JOIN identities i ON i.bridge = a.bridge AND i.sender = a.account"
            " JOIN people p ON p.id = i.person_id WHERE a.bridge = ? AND p.role = 'owner'"
            " ORDER BY a.rowid DESC LIMIT 1",
            (bridge,),
        )
        return target


# ------------------------------------------------------------------------------------------------ inside a transaction


_read_person_row = class_row(Person, identities=lambda row: ())
_read_identity = class_row(Identity)
_read_room = class_row(KnownRoom)


def _read_people(db: Database, where: str, *values: str | int) -> list[Person]:
    accounts = "SELECT bridge, sender FROM identities WHERE person_id = ? ORDER BY bridge, sender"
    return [
        replace(person, identities=tuple(db.read_all(_read_identity, accounts, (person.id,))))
        for person in db.read_all(_read_person_row, f"SELECT * FROM people {where}", values)
    ]


def _read_person(db: Database, person_id: int) -> Person:
    return _read_people(db, "WHERE id = ?", person_id)[0]


def _account(identity: Identity) -> tuple[str, str]:
    return identity.bridge, identity.sender


def find_person(db: Database, identity: Identity) -> Person | None:
    by_account = "WHERE id = (SELECT person_id FROM identities WHERE bridge = ? AND sender = ?)"
    return next(iter(_read_people(db, by_account, *_account(identity))), None)


def link_owner_account(db: Database, identity: Identity, now: datetime) -> Person:
    owner = db.value("SELECT id FROM people WHERE role = 'owner'")
    return _link_account(db, identity, owner or _insert_person(db, OWNER_NAME, "owner", "allowed", now), now)


def admit_guest(db: Database, identity: Identity, name: str, state: AccessState, now: datetime) -> Person:
    person = find_person(db, identity)
    if person is None:
        return _link_account(db, identity, _insert_person(db, name, "guest", state, now), now)
    _set_person_state(db, person, state, now)
    return _read_person(db, person.id)


def set_room_state(db: Database, bridge: str, room: str, name: str, state: AccessState, now: datetime) -> None:
    db.execute(
        "INSERT INTO rooms (bridge, room, name, state, decided_at) VALUES (?, ?, ?, ?, ?) ON CONFLICT (bridge, room)"
        " DO UPDATE SET state = excluded.state, name = iif(excluded.name = '', name, excluded.name),"
        " decided_at = excluded.decided_at",
        (bridge, room, name, state, now),
    )
    if state == "denied":
        _cancel_jobs(db, room_session_key(bridge, room), now)


def _set_person_state(db: Database, person: Person, state: AccessState, now: datetime) -> None:
    db.update_rows("people", {"id": person.id, "role": "guest"}, state=state)
    if state == "denied" and person.role == "guest":
        for identity in person.identities:
            _cancel_jobs(db, peer_session_key(identity.bridge, identity.sender), now)


def _cancel_jobs(db: Database, scope: str, now: datetime) -> None:
    """Nothing comes due any more for a person or room that is not answered."""
    db.execute(
        "UPDATE jobs SET state = 'cancelled', ended_at = ? WHERE scope = ? AND state IN ('active', 'paused')",
        (now, scope),
    )


def _link_account(db: Database, identity: Identity, person_id: int, now: datetime) -> Person:
    account = {"bridge": identity.bridge, "sender": identity.sender}
    db.upsert_row("identities", ("bridge", "sender"), **account, person_id=person_id, linked_at=now)
    _delete_guests_without_account(db)
    return _read_person(db, person_id)


def _insert_person(db: Database, name: str, role: str, state: AccessState, now: datetime) -> int:
    return db.insert_row("people", name=name, role=role, state=state, created_at=now)


def _delete_guests_without_account(db: Database) -> None:
    db.execute("DELETE FROM people WHERE role = 'guest' AND id NOT IN (SELECT person_id FROM identities)")


_read_pairing = class_row(Pairing, code=class_row(PairingCode), locked=lambda row: row["state"] == "locked")
_SELECT_PENDING = "SELECT * FROM pairings WHERE state IN ('pending', 'locked') AND expires_at > ?"


class Pairings(DatabaseStore):
    """Codes that were given out. What is past its time is as if it were not there."""

    def pending_pairings(self, now: datetime) -> list[Pairing]:
        """Codes that are valid, locked ones too, oldest first."""
        return self._db.read_all(_read_pairing, f"{_SELECT_PENDING} ORDER BY id", (now,))

    def request_access(
        self,
        request: AccessRequest,
        offer: PairingOffer,
        notices: Callable[[int], Sequence[OutgoingMessage]],
    ) -> bool:
        """Keep the code of somebody who asks to be let in, with the notices, made of the pairing's id, that give it to
        them (`code_notice_key`) and ask the owner (`access_request_key`). False, and nothing kept, where too many wait
        already. A requester who has a valid code gets no other: True, and nothing kept."""
        with self._db.write() as db:
            pending = db.read_all(_read_pairing, f"{_SELECT_PENDING} AND kind = 'knock'", (offer.valid_from,))
            if any(_is_from(pairing, request.bridge, request.sender, request.room) for pairing in pending):
                return True
            if len(pending) >= offer.max_pending:
                return False
            pairing_id = self._insert("knock", request, offer)
            insert_outgoing(db, notices(pairing_id), offer.valid_from)
        return True

    def offer_link(self, bridge: str, offer: PairingOffer) -> bool:
        """Keep a code that the owner sends from that bridge. False where too many wait already."""
        with self._db.write() as db:
            if len(db.rows(f"{_SELECT_PENDING} AND kind = 'link'", (offer.valid_from,))) >= offer.max_pending:
                return False
            self._insert("link", AccessRequest(bridge, "", None, "", ""), offer)
        return True

    def record_wrong_code(self, pairings: Sequence[Pairing], limit: int) -> bool:
        """Note a wrong code on each of these; from `limit` on they are locked. Whether one of them is now."""
        with self._db.write() as db:
            db.execute_many(
                "UPDATE pairings SET tries = tries + 1, state = iif(tries + 1 >= ?, 'locked', state)"
                " WHERE id = ? AND state = 'pending'",
                [(limit, pairing.id) for pairing in pairings],
            )
            states = [db.value("SELECT state FROM pairings WHERE id = ?", (pairing.id,)) for pairing in pairings]
        return "locked" in states

    def approve(self, pairing: Pairing, *, as_owner: bool, outgoing: OutgoingMessage, now: datetime) -> None:
        """The requester is let in (as a guest, or as the owner; a room is allowed) and notified, the code used."""
        identity = Identity(pairing.bridge, pairing.sender)
        with self._db.write() as db:
            if not self._use(pairing):
                return
            _withdraw_notices(db, pairing.id, now)
            if pairing.room is not None:
                set_room_state(db, pairing.bridge, pairing.room, pairing.name, "allowed", now)
            elif as_owner:
                link_owner_account(db, identity, now)
            else:
                admit_guest(db, identity, pairing.name, "allowed", now)
            insert_outgoing(db, [outgoing], now)

    def redeem(self, pairing: Pairing, identity: Identity, outgoing: OutgoingMessage, now: datetime) -> None:
        """The account that sent the owner's code is the owner's, and notified, the code used."""
        with self._db.write() as db:
            if self._use(pairing):
                link_owner_account(db, identity, now)
                # An owner who mistyped the code first was taken for a stranger.
                _delete_requests(db, identity.bridge, identity.sender, None, now)
                insert_outgoing(db, [outgoing], now)

    def remove_codes(self, bridge: str, sender: str, room: str | None, now: datetime) -> None:
        """The codes of somebody on whom the owner decided otherwise."""
        with self._db.write() as db:
            _delete_requests(db, bridge, sender, room, now)

    def _use(self, pairing: Pairing) -> bool:
        """Whether the code was not used before."""
        return bool(self._db.update_rows("pairings", {"id": pairing.id, "state": "pending"}, state="used"))

    def _insert(self, kind: PairingKind, request: AccessRequest, offer: PairingOffer) -> int:
        self._db.execute("DELETE FROM pairings WHERE expires_at <= ?", (offer.valid_from,))
        return self._db.insert_row(
            "pairings",
            kind=kind,
            **asdict(request),
            **asdict(offer.code),
            state="pending",
            created_at=offer.valid_from,
            expires_at=offer.valid_until,
        )


def access_request_key(pairing_id: int) -> str:
    """The key of the message that asks the owner."""
    return f"knock:{pairing_id}"


def code_notice_key(pairing_id: int) -> str:
    """The key of the message that gives a stranger their code."""
    return f"pairing:{pairing_id}"


def _withdraw_notices(db: Database, pairing_id: int, now: datetime) -> None:
    """What waits to be sent of a request that was decided: the question, and the code, which nobody needs any more."""
    db.execute(
        "UPDATE outbox SET state = 'dropped', error = 'decided before it was sent', updated_at = ?"
        " WHERE key IN (?, ?) AND state = 'pending'",
        (now, access_request_key(pairing_id), code_notice_key(pairing_id)),
    )


def _delete_requests(db: Database, bridge: str, sender: str, room: str | None, now: datetime) -> None:
    sql = "SELECT * FROM pairings WHERE state IN ('pending', 'locked') AND kind = 'knock'"
    for pairing in db.read_all(_read_pairing, sql):
        if _is_from(pairing, bridge, sender, room):
            db.execute("DELETE FROM pairings WHERE id = ?", (pairing.id,))
            _withdraw_notices(db, pairing.id, now)


def _is_from(pairing: Pairing, bridge: str, sender: str, room: str | None) -> bool:
    """A room asks once, whichever person speaks there."""
    if (pairing.bridge, pairing.room) != (clean_text(bridge), room and clean_text(room)):
        return False
    return room is not None or pairing.sender == clean_text(sender)
