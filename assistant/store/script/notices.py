"""Notices, each sent once, and models that do not answer.

A notice is stored in the transaction of its mark, so that a crash neither loses nor repeats it. The end of an outage is
reported, in the transaction that records it, wherever the outage was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from datetime import datetime
from itertools import chain

from assistant.core.jobs import DeliveryTarget
from assistant.core.model_api import ModelOutage
from assistant.core.notices import Notice, NoticeAddress, NoticeKind, NoticePlace
from assistant.core.records import SCHEDULE_SENDER_PREFIX
from assistant.core.sessions import MAIN_SESSION, OWNER_SCOPE
from assistant.store.database import Database, DatabaseStore
from assistant.store.rows import class_row
from assistant.store.script.outbox import insert_outgoing

TERMINAL_BRIDGE = "terminal"
_read_place = class_row(DeliveryTarget)
_read_outage = class_row(ModelOutage)


class StoredNotices(DatabaseStore):
    """Marks of notices that were sent."""

    def was_sent(self, name: str) -> bool:
        return self._db.value("SELECT 1 FROM notice_marks WHERE name = ?", (name,)) is not None

    def mark_sent(self, name: str, now: datetime) -> None:
        """Set a mark; idempotent."""
        with self._db.write():
            self.mark(name, now)

    def mark(self, name: str, now: datetime) -> None:
        """Set a mark, within a transaction."""
        self._db.insert_if_new("notice_marks", name=name, at=now)

    def unmark(self, pattern: str) -> None:
        """Remove the marks of which the names match, within a transaction."""
        if self._db.value("SELECT 1 FROM notice_marks WHERE name GLOB ? LIMIT 1", (pattern,)) is not None:
            self._db.execute("DELETE FROM notice_marks WHERE name GLOB ?", (pattern,))

    def clear(self, notice: Notice) -> None:
        """Clear the mark of a notice that no longer applies, so that it can be sent again."""
        if self.was_sent(notice.mark):
            with self._db.write() as db:
                db.execute("DELETE FROM notice_marks WHERE name = ?", (notice.mark,))

    def clear_ahead(self, kind: NoticeKind, after: datetime) -> None:
        """Clear marks of a kind dated after a moment: they were set by a clock that was ahead."""
        kinds = f"{kind.name.lower()}:*"
        if self._db.value("SELECT 1 FROM notice_marks WHERE name GLOB ? AND at > ?", (kinds, after)) is not None:
            with self._db.write() as db:
                db.execute("DELETE FROM notice_marks WHERE name GLOB ? AND at > ?", (kinds, after))

    def send_once(self, name: str, notice: Notice, now: datetime) -> None:
        """Send a budget notice to the owner once per name, within a transaction."""
        if self._db.insert_if_new("notice_marks", name=name, at=now):
            place = find_recent_place(self._db, OWNER_SCOPE)
            insert_outgoing(self._db, [notice.to_message(f"budget:{name}", **asdict(place))], now)

    def send(self, notices: Iterable[Notice], address: NoticeAddress, now: datetime) -> bool:
        """Send notices that were not sent yet, as one message per place; returns whether there were any."""
        new = [notice for notice in notices if address.may_see(notice) and not self.was_sent(notice.mark)]
        if not new:
            return False
        with self._db.write() as db:
            return send_in_transaction(db, new, address, now)

    def recent_place(self, scope: str, session: str = MAIN_SESSION) -> DeliveryTarget:
        """Return where the owner of the scope last wrote from, for a notice about one of their sessions."""
        place = find_recent_place(self._db, scope)
        if place.scope != OWNER_SCOPE:
            return place
        return replace(place, session=session, target=session if place.bridge == TERMINAL_BRIDGE else place.target)


def send_in_transaction(db: Database, notices: Iterable[Notice], address: NoticeAddress, now: datetime) -> bool:
    """Queue those notices that the place may see and that were not sent before, as one message for each place; returns
    whether there were any. Must be called within a transaction."""
    new = [
        notice
        for notice in notices
        if address.may_see(notice)
        if not (notice.kind.form.told_by_outage and _knows_of_outage(db, address))
        if db.insert_if_new("notice_marks", name=notice.mark, at=now)
    ]
    if not new:
        return False
    text, buttons = "\n\n".join(notice.text for notice in new), tuple(chain.from_iterable(n.buttons for n in new))
    combined = replace(new[0], text=text, buttons=buttons)
    key = combined.mark
    if db.value("SELECT 1 FROM outbox WHERE key = ?", (f"{key}#1",)) is not None:
        # Sent before, cleared, and true again.
        key = f"{key}@{now.isoformat()}"
    messages = [
        combined.to_message(f"{key}#{number}", **asdict(to.target), inbox_id=to.inbox_id)
        for number, to in enumerate(address.places, 1)
    ]
    insert_outgoing(db, messages, now, turn=address.turn)
    return True


def _knows_of_outage(db: Database, address: NoticeAddress) -> bool:
    """Return whether all places know of a current outage."""
    asked = "SELECT 1 FROM model_outage_places WHERE session = ? AND bridge = ? AND target = ?"
    targets = (place.target for place in address.places)
    return all(db.value(asked, (to.session, to.bridge, to.target)) is not None for to in targets)


def find_recent_place(db: Database, scope: str) -> DeliveryTarget:
    """Return where the owner of the scope last wrote from; the terminals if nowhere."""
    place = db.read_one(
        _read_place,
        "SELECT * FROM inbox INDEXED BY inbox_scope WHERE scope = ? AND sender NOT LIKE ? ORDER BY id DESC LIMIT 1",
        (scope, f"{SCHEDULE_SENDER_PREFIX}%"),
    )
    return place or DeliveryTarget(MAIN_SESSION, OWNER_SCOPE, TERMINAL_BRIDGE, MAIN_SESSION)


class StoredOutages(DatabaseStore):
    """Models that do not answer, and the places that were notified."""

    def record_failure(self, outage: ModelOutage) -> ModelOutage:
        """Record a failure, and return the outage with its start."""
        with self._db.write() as db:
            db.insert_if_new("model_outages", **asdict(outage))
            db.update_rows("model_outages", {"model": outage.model}, kind=outage.kind, reason=outage.reason)
        return self._get(outage.model) or outage

    def list_outages(self) -> list[ModelOutage]:
        """Return outages, oldest first."""
        return self._db.read_all(_read_outage, "SELECT * FROM model_outages ORDER BY began_at, model")

    def add_places(self, places: Iterable[DeliveryTarget], model: str = "") -> None:
        """Record that places were notified of the current outages, or that of one `model`."""
        outages = [outage for outage in self.list_outages() if model in ("", outage.model)]
        for place in places if outages else ():
            with self._db.write() as db:
                for outage in outages:
                    db.insert_if_new("model_outage_places", model=outage.model, **asdict(place))

    def end(self, model: str, render: Callable[[ModelOutage, DeliveryTarget], Notice], now: datetime) -> bool:
        """End a model's outage and notify its places; returns whether there was one."""
        outage = self._get(model)
        if outage is None:
            return False
        with self._db.write() as db:
            for place in db.read_all(_read_place, "SELECT * FROM model_outage_places WHERE model = ?", (model,)):
                send_in_transaction(db, [render(outage, place)], NoticeAddress((NoticePlace(place),)), now)
            _delete_outage(db, model)
        return True

    def drop(self, is_unasked: Callable[[str], bool]) -> None:
        """Delete outages of models that are not used any more."""
        for outage in self.list_outages():
            if is_unasked(outage.model):
                with self._db.write() as db:
                    _delete_outage(db, outage.model)

    def _get(self, model: str) -> ModelOutage | None:
        return self._db.read_one(_read_outage, "SELECT * FROM model_outages WHERE model = ?", (model,))


def _delete_outage(db: Database, model: str) -> None:
    db.execute("DELETE FROM model_outage_places WHERE model = ?", (model,))
    db.execute("DELETE FROM model_outages WHERE model = ?", (model,))
