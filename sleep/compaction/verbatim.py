"""What stays word for word when the rows around it leave: copies, marked as history. Pure.

In this order, as far as there is room: the last result of each protected tool, requests that nobody has finished, marks
of turns that were stopped, and the person's other words, newest first. Summaries of earlier compactions are not
the person's words, whatever role they are sent in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from assistant.context.pressure import NOTHING, Size, size_of
from assistant.context.truncate import by_reference, without_pictures
from assistant.core.messages import ABORTED_MARKER, Message
from assistant.core.records import LogLocation
from sleep.compaction.record import carried, copy_of
from sleep.compaction.sheet import KEPT_OF_SPEECH, Sheet, total

# Marks of the last so many stopped turns stay.
_MARKS = 5


@dataclass(frozen=True, slots=True)
class Verbatim:
    """Copies in the order of the view: the person's words and marks as they were said, then protected results. `ids`
    are the messages they are copies of; `open_ids` those among them that are open requests."""

    copies: tuple[Message, ...] = ()
    size: Size = NOTHING
    ids: tuple[int, ...] = ()
    open_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Bounds:
    """Uncorrected tokens: the `room` that is left for copies, the most that the person's `words` take of it, and what
    open `requests` may take however little room there is."""

    room: int
    words: int
    requests: int


def protected_copies(sheet: Sheet, cut: int, now: datetime) -> tuple[Message, ...]:
    """The last result of each protected tool, with its call, where it stands before `cut`."""
    return carried(sheet.rows, cut, sheet.starts, sheet.terms.protected, now)


def kept(
    sheet: Sheet,
    cut: int,
    bounds: Bounds,
    requests: Sequence[int],
    order: Sequence[int],
    places: Mapping[int, LogLocation],
    now: datetime,
) -> Verbatim:
    """What stays of the rows before `cut` beside a summary. `requests` are the ids of open ones, newest first; `order`
    are the indexes of what else may be kept, most wanted first."""
    chooser = _Chooser(sheet, places, now)
    tools = protected_copies(sheet, cut, now)
    left = bounds.room - total([size_of(copy, sheet.terms.counter) for copy in tools]).tokens
    by_id = {_origin(sheet.rows[n]): n for n in said(sheet, cut)}
    wanted = [by_id[message_id] for message_id in requests if message_id in by_id]
    spent = chooser.take(wanted, min(max(bounds.requests, left), max(bounds.requests, bounds.words)))
    opened = tuple(_origin(sheet.rows[n]) for n in wanted if n in chooser.chosen)
    marks = [n for n in reversed(range(cut)) if _is_mark(sheet.rows[n])][:_MARKS]
    spent += chooser.take(marks, left - spent)
    chooser.take([n for n in order if n not in chooser.chosen], min(left, bounds.words) - spent)
    copies = (*chooser.copies(), *tools)
    ids = tuple(dict.fromkeys(copy.metadata["carried_from"] for copy in copies))
    return Verbatim(copies, total([size_of(copy, sheet.terms.counter) for copy in copies]), ids, opened)


def said(sheet: Sheet, cut: int) -> list[int]:
    """Indexes of the person's words before `cut`, newest first."""
    return [n for n in reversed(range(cut)) if _is_said(sheet.rows[n])]


class _Chooser:
    """Rows chosen to be copied, one list after the other."""

    def __init__(self, sheet: Sheet, places: Mapping[int, LogLocation], now: datetime) -> None:
        self._sheet = sheet
        self._places = places
        self._now = now
        self.chosen: dict[int, Message] = {}

    def take(self, indexes: Sequence[int], room: int) -> int:
        """Choose rows in this order until one does not fit: the tokens they take."""
        spent = 0
        for index in indexes:
            copy = self._copy(index)
            tokens = self._sheet.terms.counter.count_message(copy)
            if spent + tokens > room:
                break
            spent += tokens
            self.chosen[index] = copy
        return spent

    def copies(self) -> list[Message]:
        return [self.chosen[index] for index in sorted(self.chosen)]

    def _copy(self, index: int) -> Message:
        """Long words by reference with both their ends, pictures by name."""
        row = without_pictures(self._sheet.rows[index])
        place = self._places.get(row.id) if row.id is not None else None
        if place is not None and self._sheet.sizes[index].tokens > 2 * KEPT_OF_SPEECH:
            row = by_reference(row, place, KEPT_OF_SPEECH, self._sheet.terms.counter.count_text)
        return copy_of(row, self._now)


def _origin(row: Message) -> int:
    return int(row.metadata.get("carried_from") or row.id or 0)


def _is_mark(row: Message) -> bool:
    return row.role == "system" and row.content.startswith(ABORTED_MARKER)


def _is_said(row: Message) -> bool:
    """A person's own words: no note, no summary, whether still live or kept by an earlier compaction."""
    said = row.metadata
    return row.role == "user" and not (said and (said.get("note") or said.get("internal") or said.get("type")))
