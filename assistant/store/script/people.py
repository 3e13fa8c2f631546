"""People and their accounts, the routing of the owner's sessions, and pairing codes.

An account belongs to at most one person; only `link_owner_account` gives an account to the owner, and only it and
`unlink` change the owner's accounts. Codes are stored as salted hashes, expire, and are used once; using one and the
notice about it are one transaction. Expired codes are deleted when new ones are created.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import datetime

from assistant.core.calendar import CLOCK_TOLERANCE
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
    """Known people and rooms. Written only by the daemon."""

    def list_people(self) -> list[Person]:
        """Return the owner, then others by age."""
        return _read_people(self._db, "ORDER BY role <> 'owner', id")

    def find_by_identity(self, identity: Identity) -> Person | None:
        """Return whose account this is."""
        return find_person(self._db, identity)

    # --------------------------------------------------------------------------------------------------------- changing

    def link_owner(self, identity: Identity, now: datetime) -> Person:
        """Give an account to the owner, even if it was another person's."""
        with self._db.write() as db:
            return link_owner_account(db, identity, now)

    def admit_guest(self, identity: Identity, name: str, state: AccessState, now: datetime) -> Person:
        """Give an account to a guest, created if necessary, with this state. The owner's accounts are unchanged."""
        with self._db.write() as db:
            return admit_guest(db, identity, name, state, now)

    def unlink(self, identity: Identity, now: datetime) -> bool:
        """Detach an account. A guest without accounts is deleted, and their scheduled jobs are cancelled. Returns False
        if it belonged to nobody."""
        session = peer_session_key(identity.bridge, identity.sender)
        with self._db.write() as db:
            deleted = db.execute("DELETE FROM identities WHERE bridge = ? AND sender = ?", _account(identity))
            db.execute("DELETE FROM told WHERE session = ?", (session,))
            _cancel_jobs(db, session, now)
            _delete_guests_without_account(db)
        return bool(deleted)

    def set_state(self, person_id: int, state: AccessState, now: datetime) -> None:
        """Set a guest's state. Here and elsewhere, a denial cancels their scheduled jobs."""
        with self._db.write() as db:
            _set_person_state(db, _read_person(db, person_id), state, now)

    def rename(self, person_id: int, name: str) -> None:
        with self._db.write() as db:
            db.update_rows("people", {"id": person_id}, name=name)

    # ------------------------------------------------------------------------------------------------------------ rooms

    def get_room(self, bridge: str, room: str) -> KnownRoom | None:
        """Return what was decided about a room, None if nothing was."""
        return self._db.read_one(_read_room, "SELECT * FROM rooms WHERE bridge = ? AND room = ?", (bridge, room))

    def list_rooms(self) -> list[KnownRoom]:
        """Return the rooms about which something was decided."""
        return self._db.read_all(_read_room, "SELECT * FROM rooms ORDER BY bridge, room")

    def decide_room(self, bridge: str, room: str, name: str, state: AccessState, now: datetime) -> None:
        """Set a room's state; `name` "" keeps the current name."""
        with self._db.write() as db:
            set_room_state(db, bridge, room, name, state, now)

    def notify_once(self, outgoing: OutgoingMessage, now: datetime) -> bool:
        """Store a notice unless its session had one before."""
        with self._db.write() as db:
            is_new = db.insert_if_new("told", session=outgoing.session, told_at=now)
            if is_new:
                insert_outgoing(db, [outgoing], now)
        return is_new


class ConversationRoutes(DatabaseStore):
    """Which of the owner's sessions a reply target uses."""

    def session_at(self, bridge: str, target: str) -> str:
        """Return the session of a target; `main` by default."""
        sql = "SELECT session FROM places WHERE bridge = ? AND target = ?"
        return self._db.value(sql, (bridge, target)) or MAIN_SESSION

    def choose_session(self, bridge: str, target: str, session: str, now: datetime) -> None:
        """Let a target use another session of the owner."""
        with self._db.write() as db:
            db.upsert_row("places", ("bridge", "target"), bridge=bridge, target=target, session=session, chosen_at=now)

    def account_at(self, bridge: str, target: str) -> str | None:
        """Return the admitted account that writes from a target (not in a room), or None."""
        sql = "SELECT account FROM accounts_at WHERE bridge = ? AND target = ?"
        rows = self._db.remembered.rows("accounts_at", sql, (bridge, target))
        return rows[0]["account"] if rows else None

    def record_account(self, bridge: str, target: str, account: str) -> None:
        """Record which admitted account writes from a target."""
        if self.account_at(bridge, target) != clean_text(account):
            with self._db.write() as db:
                db.upsert_row("accounts_at", ("bridge", "target"), bridge=bridge, target=target, account=account)

    def find_owner_target(self, bridge: str) -> str | None:
        """Return the target from which the owner last wrote on a bridge, or None."""
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
    """Make the account the owner's, who is created with the first one. A guest left without an account is deleted."""
    owner = db.value("SELECT id FROM people WHERE role = 'owner'")
    return _link_account(db, identity, owner or _insert_person(db, OWNER_NAME, "owner", "allowed", now), now)


def admit_guest(db: Database, identity: Identity, name: str, state: AccessState, now: datetime) -> Person:
    """Set the access of the guest with this account, created with this name if it is unknown; the owner's stays.
    Denying also cancels the guest's reminders and schedules."""
    person = find_person(db, identity)
    if person is None:
        return _link_account(db, identity, _insert_person(db, name, "guest", state, now), now)
    _set_person_state(db, person, state, now)
    return _read_person(db, person.id)


def set_room_state(db: Database, bridge: str, room: str, name: str, state: AccessState, now: datetime) -> None:
    """Store the decision. "" keeps the room's name; a denied room's reminders and schedules are cancelled."""
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
    """Cancel the scheduled jobs of a person or room that is not answered any more."""
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
# Nothing was made later than now: a clock that was ahead has been set back since.
_SELECT_PENDING = "SELECT * FROM pairings WHERE state IN ('pending', 'locked') AND expires_at > ? AND created_at <= ?"


def _pending_at(now: datetime) -> tuple[datetime, datetime]:
    return now, now + CLOCK_TOLERANCE


class Pairings(DatabaseStore):
    """Issued codes; expired ones are ignored."""

    def pending_pairings(self, now: datetime) -> list[Pairing]:
        """Return valid codes, including locked ones, oldest first."""
        return self._db.read_all(_read_pairing, f"{_SELECT_PENDING} ORDER BY id", _pending_at(now))

    def request_access(
        self,
        request: AccessRequest,
        offer: PairingOffer,
        notices: Callable[[int], Sequence[OutgoingMessage]],
    ) -> bool:
        """Store a requester's code with the notices (built from the pairing's id) to them (`code_notice_key`) and to
        the owner (`access_request_key`). Returns False, storing nothing, if too many are pending; True, storing
        nothing, if the requester already has a valid code."""
        with self._db.write() as db:
            knocks = f"{_SELECT_PENDING} AND kind = 'knock'"
            pending = db.read_all(_read_pairing, knocks, _pending_at(offer.valid_from))
            if any(_is_from(pairing, request.bridge, request.sender, request.room) for pairing in pending):
                return True
            if len(pending) >= offer.max_pending:
                return False
            pairing_id = self._insert("knock", request, offer)
            insert_outgoing(db, notices(pairing_id), offer.valid_from)
        return True

    def offer_link(self, bridge: str, offer: PairingOffer) -> bool:
        """Store a code for the owner to send from a bridge. Returns False if too many are pending."""
        with self._db.write() as db:
            links = f"{_SELECT_PENDING} AND kind = 'link'"
            if len(db.rows(links, _pending_at(offer.valid_from))) >= offer.max_pending:
                return False
            self._insert("link", AccessRequest(bridge, "", None, "", ""), offer)
        return True

    def record_wrong_code(self, pairings: Sequence[Pairing], limit: int) -> bool:
        """Count a wrong code for each of these; locks them at `limit`. Returns whether one is locked now."""
        with self._db.write() as db:
            db.execute_many(
                "UPDATE pairings SET tries = tries + 1, state = iif(tries + 1 >= ?, 'locked', state)"
                " WHERE id = ? AND state = 'pending'",
                [(limit, pairing.id) for pairing in pairings],
            )
            states = [db.value("SELECT state FROM pairings WHERE id = ?", (pairing.id,)) for pairing in pairings]
        return "locked" in states

    def approve(self, pairing: Pairing, *, as_owner: bool, outgoing: OutgoingMessage, now: datetime) -> None:
        """Admit the requester (as guest or owner; a room is allowed), notify them, and mark the code used."""
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
        """Give the account that sent the owner's code to the owner, notify them, and mark the code used."""
        with self._db.write() as db:
            if self._use(pairing):
                link_owner_account(db, identity, now)
                # An owner who first mistyped the code was treated as a stranger.
                _delete_requests(db, identity.bridge, identity.sender, None, now)
                insert_outgoing(db, [outgoing], now)

    def remove_codes(self, bridge: str, sender: str, room: str | None, now: datetime) -> None:
        """Delete the codes of someone on whom the owner decided otherwise."""
        with self._db.write() as db:
            _delete_requests(db, bridge, sender, room, now)

    def _use(self, pairing: Pairing) -> bool:
        """Mark a code used; returns whether it was unused."""
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
    """Return the key of the question to the owner."""
    return f"knock:{pairing_id}"


def code_notice_key(pairing_id: int) -> str:
    """Return the key of the message with a stranger's code."""
    return f"pairing:{pairing_id}"


def _withdraw_notices(db: Database, pairing_id: int, now: datetime) -> None:
    """Drop undelivered messages about a decided request: the question and the code."""
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
    """Return whether a pairing is this requester's; a room counts as one, whoever speaks."""
    if (pairing.bridge, pairing.room) != (clean_text(bridge), room and clean_text(room)):
        return False
    return room is not None or pairing.sender == clean_text(sender)
