"""Where the Matrix bridge goes on receiving. Pure.

What always holds: it is one text, kept with the inbox in one transaction; nothing else of the bridge has to be durable
but its keys.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from assistant.bridges.matrix import events as form

_MOST_WAITING = 200


@dataclass(frozen=True, slots=True)
class UndecryptedEvent:
    """An encrypted event whose key has not come yet."""

    room: str
    event: str
    session: str


@dataclass(frozen=True, slots=True)
class RoomUpgrade:
    """A room that goes on in another. `private`: as a talk between two."""

    old: str
    new: str
    private: bool


@dataclass(frozen=True, slots=True)
class SyncPosition:
    """Where receiving goes on: `since` is the server's own token. `unread` waits for its keys; `drafts` are texts of
    turns that stand in rooms and were not replaced by an answer yet, by target; `replaced` are rooms in the order in
    which others took their place."""

    since: str = ""
    unread: tuple[UndecryptedEvent, ...] = ()
    drafts: Mapping[str, str] = field(default_factory=dict)
    replaced: tuple[RoomUpgrade, ...] = ()

    @classmethod
    def parse(cls, text: str) -> SyncPosition:
        """Of what `str` made of one; "" for where nothing was received yet."""
        if not text:
            return cls()
        raw = json.loads(text)
        replaced = tuple(RoomUpgrade(*one) for one in raw.get("replaced", ()))
        return cls(raw["since"], tuple(UndecryptedEvent(*one) for one in raw["unread"]), raw["drafts"], replaced)

    def __str__(self) -> str:
        unread = [[one.room, one.event, one.session] for one in self.unread]
        replaced = [[one.old, one.new, one.private] for one in self.replaced]
        return json.dumps({"since": self.since, "unread": unread, "drafts": dict(self.drafts), "replaced": replaced})

    def with_undecrypted(self, one: UndecryptedEvent) -> SyncPosition:
        """With one more that waits; the oldest is given up where too many do."""
        return self if one in self.unread else replace(self, unread=(*self.unread, one)[-_MOST_WAITING:])

    def without_undecrypted(self, one: UndecryptedEvent) -> SyncPosition:
        return replace(self, unread=tuple(other for other in self.unread if other != one))

    def after_own_event(self, event: form.JsonObject, target: str) -> SyncPosition:
        """After an own event: a draft stands there, or has got its answer, or is gone."""
        id_, drafts = str(event.get("event_id", "")), dict(self.drafts)
        if form.is_draft_event(event):
            drafts[target] = id_
        gone = form.redacted_event_id(event) or (form.replaced_event_id(event) if form.is_answer_event(event) else "")
        return replace(self, drafts={place: one for place, one in drafts.items() if one != gone})

    # ------------------------------------------------------------------------------------------------- replaced rooms

    def knows_upgrade(self, old: str, new: str) -> bool:
        return any((one.old, one.new) == (old, new) for one in self.replaced)

    def original_room(self, room: str) -> str:
        """The room that this one goes on from, by whose name it is known."""
        for one in reversed(self.replaced):
            room = one.old if one.new == room else room
        return room

    def is_group_room(self, room: str) -> bool:
        """Whether it took the place of one that was more than a talk between two: it stays so while those who were
        there are still on the way."""
        return any(one.new == room and not one.private for one in self.replaced)

    def moved_rooms(self) -> dict[str, str]:
        """Of each room that was replaced, where it goes on now."""
        found: dict[str, str] = {}
        for one in reversed(self.replaced):
            found.setdefault(one.old, found.get(one.new, one.new))
        return found
