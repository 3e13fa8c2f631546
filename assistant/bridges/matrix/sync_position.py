"""Where the Matrix bridge goes on receiving. Pure.

What always holds: it is one text, stored with the inbox in one transaction; nothing else of the bridge has to be
durable but its keys.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from assistant.bridges.matrix import events as form

_MAX_UNDECRYPTED = 200


@dataclass(frozen=True, slots=True)
class UndecryptedEvent:
    """An encrypted event whose key has not come yet."""

    room: str
    event: str
    session: str


@dataclass(frozen=True, slots=True)
class RoomUpgrade:
    """A room that was replaced by another. `private`: it is between two."""

    old: str
    new: str
    private: bool


@dataclass(frozen=True, slots=True)
class SyncPosition:
    """Where receiving goes on."""

    since: str = ""  # the server's own token
    unread: tuple[UndecryptedEvent, ...] = ()  # events that wait for their keys
    # Events with live text that no answer has replaced yet, by target.
    drafts: Mapping[str, str] = field(default_factory=dict)
    replaced: tuple[RoomUpgrade, ...] = ()  # in the order in which they were replaced

    @classmethod
    def parse(cls, text: str) -> SyncPosition:
        """The inverse of `str`; "" where nothing was received yet."""
        if not text:
            return cls()
        raw = json.loads(text)
        replaced = tuple(RoomUpgrade(*fields) for fields in raw.get("replaced", ()))
        return cls(raw["since"], tuple(UndecryptedEvent(*fields) for fields in raw["unread"]), raw["drafts"], replaced)

    def __str__(self) -> str:
        unread = [[entry.room, entry.event, entry.session] for entry in self.unread]
        replaced = [[entry.old, entry.new, entry.private] for entry in self.replaced]
        return json.dumps({"since": self.since, "unread": unread, "drafts": dict(self.drafts), "replaced": replaced})

    def with_undecrypted(self, event: UndecryptedEvent) -> SyncPosition:
        """With one more that waits; the oldest is dropped where there are too many."""
        return self if event in self.unread else replace(self, unread=(*self.unread, event)[-_MAX_UNDECRYPTED:])

    def without_undecrypted(self, event: UndecryptedEvent) -> SyncPosition:
        return replace(self, unread=tuple(other for other in self.unread if other != event))

    def after_own_event(self, event: form.JsonObject, target: str) -> SyncPosition:
        """After an own event: a draft was written, replaced by its answer, or deleted."""
        id_, drafts = str(event.get("event_id", "")), dict(self.drafts)
        if form.is_draft_event(event):
            drafts[target] = id_
        ended = form.redacted_event_id(event) or (form.replaced_event_id(event) if form.is_answer_event(event) else "")
        return replace(self, drafts={draft_target: draft for draft_target, draft in drafts.items() if draft != ended})

    # ------------------------------------------------------------------------------------------------- replaced rooms

    def knows_upgrade(self, old: str, new: str) -> bool:
        return any((upgrade.old, upgrade.new) == (old, new) for upgrade in self.replaced)

    def original_room(self, room: str) -> str:
        """The first of the rooms that this one replaces, by whose id it is known."""
        for upgrade in reversed(self.replaced):
            room = upgrade.old if upgrade.new == room else room
        return room

    def is_group_room(self, room: str) -> bool:
        """Whether it replaced a room of more than two: it stays one while the others have not entered it yet."""
        return any(upgrade.new == room and not upgrade.private for upgrade in self.replaced)

    def moved_rooms(self) -> dict[str, str]:
        """By each room that was replaced, the room that it is now."""
        moved: dict[str, str] = {}
        for upgrade in reversed(self.replaced):
            moved.setdefault(upgrade.old, moved.get(upgrade.new, upgrade.new))
        return moved
