"""Where the Matrix bridge goes on receiving. Pure.

What always holds: it is one text, kept with the inbox in one transaction; nothing else of the bridge has to be durable
but its keys.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from assistant.bridges.matrix import form

_MOST_WAITING = 200


@dataclass(frozen=True, slots=True)
class Unread:
    """An encrypted event whose key has not come yet."""

    room: str
    event: str
    session: str


@dataclass(frozen=True, slots=True)
class Position:
    """Where receiving goes on: `since` is the server's own token. `unread` waits for its keys; `drafts` are texts of
    turns that stand in rooms and were not replaced by an answer yet, by target."""

    since: str = ""
    unread: tuple[Unread, ...] = ()
    drafts: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, text: str) -> Position:
        """Of what `str` made of one; "" for where nothing was received yet."""
        if not text:
            return cls()
        raw = json.loads(text)
        return cls(raw["since"], tuple(Unread(*one) for one in raw["unread"]), raw["drafts"])

    def __str__(self) -> str:
        unread = [[one.room, one.event, one.session] for one in self.unread]
        return json.dumps({"since": self.since, "unread": unread, "drafts": dict(self.drafts)})

    def waiting_for(self, one: Unread) -> Position:
        """With one more that waits; the oldest is given up where too many do."""
        return self if one in self.unread else replace(self, unread=(*self.unread, one)[-_MOST_WAITING:])

    def having_read(self, one: Unread) -> Position:
        return replace(self, unread=tuple(other for other in self.unread if other != one))

    def seen_own(self, event: form.Json, target: str) -> Position:
        """After an own event: a draft stands there, or has got its answer, or is gone."""
        id_, drafts = str(event.get("event_id", "")), dict(self.drafts)
        if form.is_draft(event):
            drafts[target] = id_
        gone = form.redacted(event) or (form.replaced(event) if form.is_answer(event) else "")
        return replace(self, drafts={place: one for place, one in drafts.items() if one != gone})
