"""Who is who, where the owner's conversations continue, and the codes by which people are let in.

What always holds: an account belongs to one person at most; nobody becomes the owner except by
`link_owner_account`, and the owner's accounts are changed by it and by `unlink` alone. Of a code only its salted
hash is kept; it is valid until its time, is used once, and what using it changes is written in the same transaction
as the notice of it. Expired codes are deleted when new ones are made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from sqlite3 import Row

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
from assistant.store.database import Database
from assistant.store.encoding import clean_text, format_time, parse_time
from assistant.store.script.outbox import insert_outgoing

OWNER_NAME = "owner"


class People:
    """Who is who. Nobody but the owner's process writes here."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def list_people(self) -> list[Person]:
        """The owner first, then the others, the longest known first."""
        rows = self._db.rows("SELECT * FROM people ORDER BY role <> 'owner', id")
        return [self._person(row) for row in rows]

    def get_person(self, person_id: int) -> Person | None:
        row = self._db.row("SELECT * FROM people WHERE id = ?", (person_id,))
        return None if row is None else self._person(row)

    def find_by_identity(self, identity: Identity) -> Person | None:
        """Whose account this is."""
        return find_person(self._db, identity)

    def _person(self, row: Row) -> Person:
        return _person_of_row(self._db, row)

    # --------------------------------------------------------------------------------------------------------- changing

    def link_owner(self, identity: Identity, now: datetime) -> Person:
        """The account is the owner's from now on, whoever had it before."""
        with self._db.write() as db:
            return link_owner_account(db, identity, now)

    def admit_guest(self, identity: Identity, name: str, state: AccessState, now: datetime) -> Person:
        """The account belongs to a guest of this state, made where nobody had it. The owner's accounts stay as they
        are."""
        with self._db.write() as db:
            return admit_guest(db, identity, name, state, now)

    def unlink(self, identity: Identity, now: datetime) -> bool:
        """Nobody's account from now on; a guest without any account is known no longer, and what was set for later from
        it as a guest is cancelled. False where it was nobody's."""
        bridge, sender = clean_text(identity.bridge), clean_text(identity.sender)
        with self._db.write() as db:
            was = db.execute("DELETE FROM identities WHERE bridge = ? AND sender = ?", (bridge, sender))
            db.execute("DELETE FROM told WHERE session = ?", (peer_session_key(identity.bridge, identity.sender),))
            _cancel_jobs(db, peer_session_key(identity.bridge, identity.sender), now)
            _delete_guests_without_account(db)
        return bool(was)

    def set_state(self, person_id: int, state: AccessState, now: datetime) -> None:
        """Of a guest. With a denial, here and in the others, what they had set for later is cancelled."""
        with self._db.write() as db:
            _set_person_state(db, _read_person(db, person_id), state, now)

    def rename(self, person_id: int, name: str) -> None:
        with self._db.write() as db:
            db.execute("UPDATE people SET name = ? WHERE id = ?", (clean_text(name), person_id))

    # ------------------------------------------------------------------------------------------------------------ rooms

    def get_room(self, bridge: str, room: str) -> KnownRoom | None:
        row = self._db.row("SELECT * FROM rooms WHERE bridge = ? AND room = ?", (clean_text(bridge), clean_text(room)))
        return None if row is None else _room_of_row(row)

    def list_rooms(self) -> list[KnownRoom]:
        return [_room_of_row(row) for row in self._db.rows("SELECT * FROM rooms ORDER BY bridge, room")]

    def decide_room(self, bridge: str, room: str, name: str, state: AccessState, now: datetime) -> None:
        """`name` "" keeps the name that it has."""
        with self._db.write() as db:
            set_room_state(db, bridge, room, name, state, now)

    def notify_once(self, outgoing: OutgoingMessage, now: datetime) -> bool:
        """Store the notice, unless its session (that of a stranger, or of a room) was told before."""
        with self._db.write() as db:
            fresh = db.execute(
                "INSERT OR IGNORE INTO told (session, told_at) VALUES (?, ?)", (outgoing.session, format_time(now))
            )
            if fresh:
                insert_outgoing(db, [outgoing], 1, None, now)
        return bool(fresh)


class ConversationRoutes:
    """Which of the owner's conversations goes on where they write."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def session_at(self, bridge: str, target: str) -> str:
        """`main` where nothing else was chosen."""
        row = self._db.row(
            "SELECT session FROM places WHERE bridge = ? AND target = ?", (clean_text(bridge), clean_text(target))
        )
        return MAIN_SESSION if row is None else str(row["session"])

    def choose_session(self, bridge: str, target: str, session: str, now: datetime) -> None:
        """From now on this place talks to that conversation of the owner's."""
        with self._db.write() as db:
            db.execute(
                "INSERT INTO places (bridge, target, session, chosen_at) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (bridge, target) DO UPDATE SET session = excluded.session,"
                " chosen_at = excluded.chosen_at",
                (clean_text(bridge), clean_text(target), session, format_time(now)),
            )

    def account_at(self, bridge: str, target: str) -> str | None:
        """The account of whoever writes from there, and not in a room; None where nobody did who was let in."""
        row = self._db.row(
            "SELECT account FROM accounts_at WHERE bridge = ? AND target = ?", (clean_text(bridge), clean_text(target))
        )
        return None if row is None else str(row["account"])

    def record_account(self, bridge: str, target: str, account: str) -> None:
        """Somebody who was let in writes from there."""
        if self.account_at(bridge, target) != clean_text(account):
            with self._db.write() as db:
                db.execute(
                    "INSERT INTO accounts_at (bridge, target, account) VALUES (?, ?, ?)"
                    " ON CONFLICT (bridge, target) DO UPDATE SET account = excluded.account",
                    (clean_text(bridge), clean_text(target), clean_text(account)),
                )

    def find_owner_target(self, bridge: str) -> str | None:
        """Where the owner is written to on that bridge: the place that one of their accounts wrote from, the last one
        that was new; None where none did."""
        row = self._db.row(
            "SELECT a.target FROM accounts_at a JOIN identities i ON i.bridge = a.bridge AND i.sender = a.account"
            " JOIN people p ON p.id = i.person_id WHERE a.bridge = ? AND p.role = 'owner'"
            " ORDER BY a.rowid DESC LIMIT 1",
            (clean_text(bridge),),
        )
        return None if row is None else str(row["target"])


# ------------------------------------------------------------------------------------------------ inside a transaction


def find_person(db: Database, identity: Identity) -> Person | None:
    row = db.row(
        "SELECT p.* FROM identities i JOIN people p ON p.id = i.person_id WHERE i.bridge = ? AND i.sender = ?",
        (clean_text(identity.bridge), clean_text(identity.sender)),
    )
    return None if row is None else _person_of_row(db, row)


def link_owner_account(db: Database, identity: Identity, now: datetime) -> Person:
    row = db.row("SELECT id FROM people WHERE role = 'owner'")
    owner = row["id"] if row is not None else _insert_person(db, OWNER_NAME, "owner", "allowed", now)
    return _link_account(db, identity, owner, now)


def admit_guest(db: Database, identity: Identity, name: str, state: AccessState, now: datetime) -> Person:
    known = find_person(db, identity)
    if known is None:
        return _link_account(db, identity, _insert_person(db, name, "guest", state, now), now)
    _set_person_state(db, known, state, now)
    return _read_person(db, known.id)


def set_room_state(db: Database, bridge: str, room: str, name: str, state: AccessState, now: datetime) -> None:
    db.execute(
        "INSERT INTO rooms (bridge, room, name, state, decided_at) VALUES (?, ?, ?, ?, ?) ON CONFLICT (bridge, room)"
        " DO UPDATE SET state = excluded.state, name = iif(excluded.name = '', name, excluded.name),"
        " decided_at = excluded.decided_at",
        (clean_text(bridge), clean_text(room), clean_text(name), state, format_time(now)),
    )
    if state == "denied":
        _cancel_jobs(db, room_session_key(bridge, room), now)


def _set_person_state(db: Database, person: Person, state: AccessState, now: datetime) -> None:
    db.execute("UPDATE people SET state = ? WHERE id = ? AND role = 'guest'", (state, person.id))
    if state == "denied" and person.role == "guest":
        for one in person.identities:
            _cancel_jobs(db, peer_session_key(one.bridge, one.sender), now)


def _cancel_jobs(db: Database, scope: str, now: datetime) -> None:
    """Whoever is not answered any more has nothing come due."""
    db.execute(
        "UPDATE jobs SET state = 'cancelled', ended_at = ? WHERE scope = ? AND state IN ('active', 'paused')",
        (format_time(now), scope),
    )


def _link_account(db: Database, identity: Identity, person_id: int, now: datetime) -> Person:
    db.execute(
        "INSERT INTO identities (bridge, sender, person_id, linked_at) VALUES (?, ?, ?, ?) ON CONFLICT (bridge, sender)"
        " DO UPDATE SET person_id = excluded.person_id, linked_at = excluded.linked_at",
        (clean_text(identity.bridge), clean_text(identity.sender), person_id, format_time(now)),
    )
    _delete_guests_without_account(db)
    return _read_person(db, person_id)


def _insert_person(db: Database, name: str, role: str, state: AccessState, now: datetime) -> int:
    return db.insert(
        "INSERT INTO people (name, role, state, created_at) VALUES (?, ?, ?, ?)",
        (clean_text(name), role, state, format_time(now)),
    )


def _delete_guests_without_account(db: Database) -> None:
    """A guest without an account is nobody any more."""
    db.execute("DELETE FROM people WHERE role = 'guest' AND id NOT IN (SELECT person_id FROM identities)")


def _read_person(db: Database, person_id: int) -> Person:
    return _person_of_row(db, db.rows("SELECT * FROM people WHERE id = ?", (person_id,))[0])


def _person_of_row(db: Database, row: Row) -> Person:
    accounts = db.rows(
        "SELECT bridge, sender FROM identities WHERE person_id = ? ORDER BY bridge, sender", (row["id"],)
    )
    identities = tuple(Identity(account["bridge"], account["sender"]) for account in accounts)
    return Person(row["id"], row["name"], row["role"], row["state"], parse_time(row["created_at"]), identities)


def _room_of_row(row: Row) -> KnownRoom:
    return KnownRoom(row["bridge"], row["room"], row["name"], row["state"], parse_time(row["decided_at"]))


_SELECT_PENDING = "SELECT * FROM pairings WHERE state IN ('pending', 'locked') AND expires_at > ?"


class Pairings:
    """Codes that were given out. What is past its time is as if it were not there."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def pending_pairings(self, now: datetime) -> list[Pairing]:
        """Codes that hold, locked ones too, oldest first."""
        return [_pairing_of_row(row) for row in self._db.rows(f"{_SELECT_PENDING} ORDER BY id", (format_time(now),))]

    def request_access(
        self,
        knock: AccessRequest,
        offer: PairingOffer,
        code_notice: OutgoingMessage,
        owner_notice: Callable[[int], OutgoingMessage],
    ) -> bool:
        """Keep the code of somebody who asks to be let in, with the notice that gives it to them and the one, made of
        the pairing's id, that asks the owner. False, and nothing kept, where too many wait already. Who has a code that
        holds gets no other: True, and nothing kept."""
        bridge, sender, room = clean_text(knock.bridge), clean_text(knock.sender), knock.room and clean_text(knock.room)
        with self._db.write() as db:
            waiting = db.rows(f"{_SELECT_PENDING} AND kind = 'knock'", (format_time(offer.valid_from),))
            if any(_matches_requester(row, bridge, sender, room) for row in waiting):
                return True
            if len(waiting) >= offer.max_pending:
                return False
            who = AccessRequest(bridge, sender, room, clean_text(knock.target), clean_text(knock.name))
            pairing = self._add("knock", who, offer)
            insert_outgoing(db, [code_notice, owner_notice(pairing)], 1, None, offer.valid_from)
        return True

    def offer_link(self, bridge: str, offer: PairingOffer) -> bool:
        """Keep a code that the owner sends from that bridge. False where too many wait already."""
        with self._db.write() as db:
            waiting = db.rows(f"{_SELECT_PENDING} AND kind = 'link'", (format_time(offer.valid_from),))
            if len(waiting) >= offer.max_pending:
                return False
            self._add("link", AccessRequest(clean_text(bridge), "", None, "", ""), offer)
        return True

    def record_wrong_code(self, pairings: Sequence[Pairing], limit: int) -> bool:
        """Note a wrong code on each of these; from `most` on they are locked. Whether they are now."""
        with self._db.write() as db:
            for pairing in pairings:
                db.execute(
                    "UPDATE pairings SET tries = tries + 1, state = iif(tries + 1 >= ?, 'locked', state)"
                    " WHERE id = ? AND state = 'pending'",
                    (limit, pairing.id),
                )
            states = [
                row["state"]
                for one in pairings
                for row in db.rows("SELECT state FROM pairings WHERE id = ?", (one.id,))
            ]
        return "locked" in states

    def approve(self, pairing: Pairing, *, as_owner: bool, outgoing: OutgoingMessage, now: datetime) -> None:
        """The one who knocked is let in (as a guest, or as the owner; a room is allowed), told so, the code used."""
        identity = Identity(pairing.bridge, pairing.sender)
        with self._db.write() as db:
            if not self._use(pairing):
                return
            if pairing.room is not None:
                set_room_state(db, pairing.bridge, pairing.room, pairing.name, "allowed", now)
            elif as_owner:
                link_owner_account(db, identity, now)
            else:
                admit_guest(db, identity, pairing.name, "allowed", now)
            insert_outgoing(db, [outgoing], 1, None, now)

    def redeem(self, pairing: Pairing, identity: Identity, outgoing: OutgoingMessage, now: datetime) -> None:
        """The account that sent the owner's code is the owner's, told so, the code used."""
        with self._db.write() as db:
            if self._use(pairing):
                link_owner_account(db, identity, now)
                # Who mistyped their code before it fitted was met as a stranger.
                _delete_requests(db, identity.bridge, identity.sender, None)
                insert_outgoing(db, [outgoing], 1, None, now)

    def remove_codes(self, bridge: str, sender: str, room: str | None) -> None:
        """The codes of somebody on whom the owner decided otherwise."""
        with self._db.write() as db:
            _delete_requests(db, bridge, sender, room)

    def _use(self, pairing: Pairing) -> bool:
        """Whether nobody has used it before."""
        return bool(
            self._db.execute("UPDATE pairings SET state = 'used' WHERE id = ? AND state = 'pending'", (pairing.id,))
        )

    def _add(self, kind: PairingKind, who: AccessRequest, offer: PairingOffer) -> int:
        self._db.execute("DELETE FROM pairings WHERE expires_at <= ?", (format_time(offer.valid_from),))
        return self._db.insert(
            "INSERT INTO pairings (kind, bridge, sender, room, target, name, salt, hash, state, created_at,"
            " expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'pending', ?, ?)",
            (
                kind,
                who.bridge,
                who.sender,
                who.room,
                who.target,
                who.name,
                offer.code.salt,
                offer.code.hash,
                format_time(offer.valid_from),
                format_time(offer.valid_until),
            ),
        )


def _delete_requests(db: Database, bridge: str, sender: str, room: str | None) -> None:
    for row in db.rows("SELECT * FROM pairings WHERE state IN ('pending', 'locked') AND kind = 'knock'"):
        if _matches_requester(row, clean_text(bridge), clean_text(sender), room and clean_text(room)):
            db.execute("DELETE FROM pairings WHERE id = ?", (row["id"],))


def _matches_requester(row: Row, bridge: str, sender: str, room: str | None) -> bool:
    """A room knocks once, whoever speaks there."""
    who = row["sender"] == sender if room is None else True
    return row["bridge"] == bridge and row["room"] == room and who


def _pairing_of_row(row: Row) -> Pairing:
    return Pairing(
        row["id"],
        row["kind"],
        row["bridge"],
        row["sender"],
        row["room"],
        row["target"],
        row["name"],
        PairingCode(row["salt"], row["hash"]),
        row["tries"],
        parse_time(row["created_at"]),
        parse_time(row["expires_at"]),
        row["state"] == "locked",
    )
