"""Codes by which people are let in: `people_ports.Pairings` over script.db.

What always holds: of a code only its salted hash is kept; it holds until its time, is used once, and what using it
changes is written in the same transaction, as is the notice that tells of it. Codes that ended are deleted by and by.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from sqlite3 import Row

from assistant.core.people import AccessRequest, Identity, Pairing, PairingCode, PairingKind, PairingOffer
from assistant.core.records import OutgoingMessage
from assistant.store import outbox, people
from assistant.store.database import Database
from assistant.store.text import clean, moment, stamp

_PENDING = "SELECT * FROM pairings WHERE state IN ('pending', 'locked') AND expires_at > ?"


class Pairings:
    """Implements `people_ports.Pairings`."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def pending(self, now: datetime) -> list[Pairing]:
        return [_pairing(row) for row in self._db.rows(f"{_PENDING} ORDER BY id", (stamp(now),))]

    def knock(
        self,
        knock: AccessRequest,
        offer: PairingOffer,
        given: OutgoingMessage,
        asking: Callable[[int], OutgoingMessage],
    ) -> bool:
        bridge, sender, room = clean(knock.bridge), clean(knock.sender), knock.room and clean(knock.room)
        with self._db.write() as db:
            waiting = db.rows(f"{_PENDING} AND kind = 'knock'", (stamp(offer.at),))
            if any(_is_of(row, bridge, sender, room) for row in waiting):
                return True
            if len(waiting) >= offer.most:
                return False
            who = AccessRequest(bridge, sender, room, clean(knock.target), clean(knock.name))
            pairing = self._add("knock", who, offer)
            outbox.insert(db, [given, asking(pairing)], 1, None, offer.at)
        return True

    def offer_link(self, bridge: str, offer: PairingOffer) -> bool:
        with self._db.write() as db:
            waiting = db.rows(f"{_PENDING} AND kind = 'link'", (stamp(offer.at),))
            if len(waiting) >= offer.most:
                return False
            self._add("link", AccessRequest(clean(bridge), "", None, "", ""), offer)
        return True

    def wrong(self, pairings: Sequence[Pairing], most: int) -> bool:
        with self._db.write() as db:
            for pairing in pairings:
                db.execute(
                    "UPDATE pairings SET tries = tries + 1, state = iif(tries + 1 >= ?, 'locked', state)"
                    " WHERE id = ? AND state = 'pending'",
                    (most, pairing.id),
                )
            states = [
                row["state"]
                for one in pairings
                for row in db.rows("SELECT state FROM pairings WHERE id = ?", (one.id,))
            ]
        return "locked" in states

    def approve(self, pairing: Pairing, *, as_owner: bool, outgoing: OutgoingMessage, now: datetime) -> None:
        identity = Identity(pairing.bridge, pairing.sender)
        with self._db.write() as db:
            if not self._use(pairing):
                return
            if pairing.room is not None:
                people.decide_room(db, pairing.bridge, pairing.room, pairing.name, "allowed", now)
            elif as_owner:
                people.link_owner(db, identity, now)
            else:
                people.let_in(db, identity, pairing.name, "allowed", now)
            outbox.insert(db, [outgoing], 1, None, now)

    def redeem(self, pairing: Pairing, identity: Identity, outgoing: OutgoingMessage, now: datetime) -> None:
        with self._db.write() as db:
            if self._use(pairing):
                people.link_owner(db, identity, now)
                # Who mistyped their code before it fitted was met as a stranger.
                _drop(db, identity.bridge, identity.sender, None)
                outbox.insert(db, [outgoing], 1, None, now)

    def drop(self, bridge: str, sender: str, room: str | None) -> None:
        with self._db.write() as db:
            _drop(db, bridge, sender, room)

    def _use(self, pairing: Pairing) -> bool:
        """Whether nobody has used it before."""
        return bool(
            self._db.execute("UPDATE pairings SET state = 'used' WHERE id = ? AND state = 'pending'", (pairing.id,))
        )

    def _add(self, kind: PairingKind, who: AccessRequest, offer: PairingOffer) -> int:
        self._db.execute("DELETE FROM pairings WHERE expires_at <= ?", (stamp(offer.at),))
        return self._db.insert(
            "INSERT INTO pairings (kind, bridge, sender, room, target, name, salt, hash, state, created_at,"
            " expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'pending', ?, ?)",
            (
                kind, who.bridge, who.sender, who.room, who.target, who.name, offer.code.salt, offer.code.hash,
                stamp(offer.at), stamp(offer.until),
            ),
        )  # fmt: skip


def _drop(db: Database, bridge: str, sender: str, room: str | None) -> None:
    for row in db.rows("SELECT * FROM pairings WHERE state IN ('pending', 'locked') AND kind = 'knock'"):
        if _is_of(row, clean(bridge), clean(sender), room and clean(room)):
            db.execute("DELETE FROM pairings WHERE id = ?", (row["id"],))


def _is_of(row: Row, bridge: str, sender: str, room: str | None) -> bool:
    """A room knocks once, whoever speaks there."""
    who = row["sender"] == sender if room is None else True
    return row["bridge"] == bridge and row["room"] == room and who


def _pairing(row: Row) -> Pairing:
    return Pairing(
        row["id"], row["kind"], row["bridge"], row["sender"], row["room"], row["target"], row["name"],
        PairingCode(row["salt"], row["hash"]), row["tries"], moment(row["created_at"]), moment(row["expires_at"]),
        row["state"] == "locked",
    )  # fmt: skip
