"""Who is who, and where the owner's places lead: `people_ports.People` and `Places` over script.db.

What always holds: an account belongs to one person at most; nobody becomes the owner but by `link_owner`, and the
owner's accounts are changed by it and by `unlink` alone.
"""

from __future__ import annotations

from datetime import datetime
from sqlite3 import Row

from assistant.core.people import AccessState, Identity, KnownRoom, Person
from assistant.core.records import OutgoingMessage
from assistant.core.sessions import MAIN_SESSION, peer_session_key, room_session_key
from assistant.store import outbox
from assistant.store.database import Database
from assistant.store.text import clean, moment, stamp

OWNERS_NAME = "owner"


class People:
    """Implements `people_ports.People`."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def all(self) -> list[Person]:
        rows = self._db.rows("SELECT * FROM people ORDER BY role <> 'owner', id")
        return [self._person(row) for row in rows]

    def person(self, person_id: int) -> Person | None:
        row = self._db.row("SELECT * FROM people WHERE id = ?", (person_id,))
        return None if row is None else self._person(row)

    def by(self, identity: Identity) -> Person | None:
        return by(self._db, identity)

    def _person(self, row: Row) -> Person:
        return _person(self._db, row)

    # --------------------------------------------------------------------------------------------------------- changing

    def link_owner(self, identity: Identity, now: datetime) -> Person:
        with self._db.write() as db:
            return link_owner(db, identity, now)

    def let_in(self, identity: Identity, name: str, state: AccessState, now: datetime) -> Person:
        with self._db.write() as db:
            return let_in(db, identity, name, state, now)

    def unlink(self, identity: Identity, now: datetime) -> bool:
        bridge, sender = clean(identity.bridge), clean(identity.sender)
        with self._db.write() as db:
            was = db.execute("DELETE FROM identities WHERE bridge = ? AND sender = ?", (bridge, sender))
            db.execute("DELETE FROM told WHERE session = ?", (peer_session_key(identity.bridge, identity.sender),))
            _cancel_jobs(db, peer_session_key(identity.bridge, identity.sender), now)
            _tidy(db)
        return bool(was)

    def set_state(self, person_id: int, state: AccessState, now: datetime) -> None:
        with self._db.write() as db:
            _set_state(db, _of(db, person_id), state, now)

    def rename(self, person_id: int, name: str) -> None:
        with self._db.write() as db:
            db.execute("UPDATE people SET name = ? WHERE id = ?", (clean(name), person_id))

    # ------------------------------------------------------------------------------------------------------------ rooms

    def room(self, bridge: str, room: str) -> KnownRoom | None:
        row = self._db.row("SELECT * FROM rooms WHERE bridge = ? AND room = ?", (clean(bridge), clean(room)))
        return None if row is None else _room(row)

    def rooms(self) -> list[KnownRoom]:
        return [_room(row) for row in self._db.rows("SELECT * FROM rooms ORDER BY bridge, room")]

    def decide_room(self, bridge: str, room: str, name: str, state: AccessState, now: datetime) -> None:
        with self._db.write() as db:
            decide_room(db, bridge, room, name, state, now)

    def tell_once(self, outgoing: OutgoingMessage, now: datetime) -> bool:
        with self._db.write() as db:
            fresh = db.execute(
                "INSERT OR IGNORE INTO told (session, told_at) VALUES (?, ?)", (outgoing.session, stamp(now))
            )
            if fresh:
                outbox.insert(db, [outgoing], 1, None, now)
        return bool(fresh)


class Places:
    """Implements `people_ports.Places`."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def session_at(self, bridge: str, target: str) -> str:
        row = self._db.row("SELECT session FROM places WHERE bridge = ? AND target = ?", (clean(bridge), clean(target)))
        return MAIN_SESSION if row is None else str(row["session"])

    def choose(self, bridge: str, target: str, session: str, now: datetime) -> None:
        with self._db.write() as db:
            db.execute(
                "INSERT INTO places (bridge, target, session, chosen_at) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (bridge, target) DO UPDATE SET session = excluded.session,"
                " chosen_at = excluded.chosen_at",
                (clean(bridge), clean(target), session, stamp(now)),
            )

    def account_at(self, bridge: str, target: str) -> str | None:
        row = self._db.row(
            "SELECT account FROM accounts_at WHERE bridge = ? AND target = ?", (clean(bridge), clean(target))
        )
        return None if row is None else str(row["account"])

    def written_from(self, bridge: str, target: str, account: str) -> None:
        if self.account_at(bridge, target) != clean(account):
            with self._db.write() as db:
                db.execute(
                    "INSERT INTO accounts_at (bridge, target, account) VALUES (?, ?, ?)"
                    " ON CONFLICT (bridge, target) DO UPDATE SET account = excluded.account",
                    (clean(bridge), clean(target), clean(account)),
                )

    def owners_at(self, bridge: str) -> str | None:
        row = self._db.row(
            "SELECT a.target FROM accounts_at a JOIN identities i ON i.bridge = a.bridge AND i.sender = a.account"
            " JOIN people p ON p.id = i.person_id WHERE a.bridge = ? AND p.role = 'owner'"
            " ORDER BY a.rowid DESC LIMIT 1",
            (clean(bridge),),
        )
        return None if row is None else str(row["target"])


# ------------------------------------------------------------------------------------------------ inside a transaction


def by(db: Database, identity: Identity) -> Person | None:
    row = db.row(
        "SELECT p.* FROM identities i JOIN people p ON p.id = i.person_id WHERE i.bridge = ? AND i.sender = ?",
        (clean(identity.bridge), clean(identity.sender)),
    )
    return None if row is None else _person(db, row)


def link_owner(db: Database, identity: Identity, now: datetime) -> Person:
    row = db.row("SELECT id FROM people WHERE role = 'owner'")
    owner = row["id"] if row is not None else _add(db, OWNERS_NAME, "owner", "allowed", now)
    return _give(db, identity, owner, now)


def let_in(db: Database, identity: Identity, name: str, state: AccessState, now: datetime) -> Person:
    known = by(db, identity)
    if known is None:
        return _give(db, identity, _add(db, name, "guest", state, now), now)
    _set_state(db, known, state, now)
    return _of(db, known.id)


def decide_room(db: Database, bridge: str, room: str, name: str, state: AccessState, now: datetime) -> None:
    db.execute(
        "INSERT INTO rooms (bridge, room, name, state, decided_at) VALUES (?, ?, ?, ?, ?) ON CONFLICT (bridge, room)"
        " DO UPDATE SET state = excluded.state, name = iif(excluded.name = '', name, excluded.name),"
        " decided_at = excluded.decided_at",
        (clean(bridge), clean(room), clean(name), state, stamp(now)),
    )
    if state == "denied":
        _cancel_jobs(db, room_session_key(bridge, room), now)


def _set_state(db: Database, person: Person, state: AccessState, now: datetime) -> None:
    db.execute("UPDATE people SET state = ? WHERE id = ? AND role = 'guest'", (state, person.id))
    if state == "denied" and person.role == "guest":
        for one in person.identities:
            _cancel_jobs(db, peer_session_key(one.bridge, one.sender), now)


def _cancel_jobs(db: Database, scope: str, now: datetime) -> None:
    """Whoever is not answered any more has nothing come due."""
    db.execute(
        "UPDATE jobs SET state = 'cancelled', ended_at = ? WHERE scope = ? AND state IN ('active', 'paused')",
        (stamp(now), scope),
    )


def _give(db: Database, identity: Identity, person_id: int, now: datetime) -> Person:
    db.execute(
        "INSERT INTO identities (bridge, sender, person_id, linked_at) VALUES (?, ?, ?, ?) ON CONFLICT (bridge, sender)"
        " DO UPDATE SET person_id = excluded.person_id, linked_at = excluded.linked_at",
        (clean(identity.bridge), clean(identity.sender), person_id, stamp(now)),
    )
    _tidy(db)
    return _of(db, person_id)


def _add(db: Database, name: str, role: str, state: AccessState, now: datetime) -> int:
    return db.insert(
        "INSERT INTO people (name, role, state, created_at) VALUES (?, ?, ?, ?)", (clean(name), role, state, stamp(now))
    )


def _tidy(db: Database) -> None:
    """A guest without an account is nobody any more."""
    db.execute(
        "DELETE FROM people WHERE role = 'guest' AND id NOT IN (SELECT person_id FROM identities)"
    )  # fmt: skip


def _of(db: Database, person_id: int) -> Person:
    return _person(db, db.rows("SELECT * FROM people WHERE id = ?", (person_id,))[0])


def _person(db: Database, row: Row) -> Person:
    accounts = db.rows(
        "SELECT bridge, sender FROM identities WHERE person_id = ? ORDER BY bridge, sender", (row["id"],)
    )  # fmt: skip
    identities = tuple(Identity(account["bridge"], account["sender"]) for account in accounts)
    return Person(row["id"], row["name"], row["role"], row["state"], moment(row["created_at"]), identities)


def _room(row: Row) -> KnownRoom:
    return KnownRoom(row["bridge"], row["room"], row["name"], row["state"], moment(row["decided_at"]))
