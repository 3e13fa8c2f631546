"""What stays word for word when the rows around it leave: copies, marked as history. Pure.

In this order, as far as there is room: the last result of each protected tool, requests that nobody has finished,
marks of turns that were stopped, and the person's other words, newest first. The strategy `selective` keeps the
messages that say most instead, and no summary. Summaries of earlier compactions are not the person's words, whatever
role they have.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from assistant.context.pressure import EMPTY_SIZE, PromptSize, message_size
from assistant.context.truncate import truncate_to_reference, without_image_data
from assistant.core.messages import ABORTED_MARKER, Message, ToolCall
from assistant.core.records import LogLocation
from sleep.compaction.draft_view import KEPT_MESSAGE_TOKENS, DraftView, sum_sizes

# Marks of the last so many stopped turns stay.
_MARKS = 5


@dataclass(frozen=True, slots=True)
class RetainedRows:
    """What stays word for word."""

    copies: tuple[Message, ...] = ()  # the person's words and marks in the order of the view, then protected results
    size: PromptSize = EMPTY_SIZE
    message_ids: tuple[int, ...] = ()  # of the messages that they are copies of
    open_request_ids: tuple[int, ...] = ()  # those of open requests among them


@dataclass(frozen=True, slots=True)
class RetentionLimits:
    """Uncorrected tokens."""

    room: int  # for all copies
    user_messages: int  # the most that the person's words take of it
    open_requests: int  # what these may take however little room there is


def choose_retained_rows(
    draft: DraftView,
    cut: int,
    bounds: RetentionLimits,
    requests: Sequence[int],
    order: Sequence[int],
    places: Mapping[int, LogLocation],
    now: datetime,
) -> RetainedRows:
    """What stays of the rows before `cut` beside a summary. `requests` are the ids of open ones, newest first; `order`
    are the indexes of what else may be kept, most wanted first."""
    chooser = _Chooser(draft, places, now)
    tools = carry_protected_results(draft, cut, now)
    left = bounds.room - sum_sizes([message_size(copy, draft.limits.counter) for copy in tools]).tokens
    by_id = {_origin(draft.rows[n]): n for n in find_user_messages(draft, cut)}
    wanted = [by_id[message_id] for message_id in requests if message_id in by_id]
    spent = chooser.take(wanted, min(max(bounds.open_requests, left), max(bounds.open_requests, bounds.user_messages)))
    opened = tuple(_origin(draft.rows[n]) for n in wanted if n in chooser.chosen)
    marks = [n for n in reversed(range(cut)) if _is_mark(draft.rows[n])][:_MARKS]
    spent += chooser.take(marks, left - spent)
    chooser.take([n for n in order if n not in chooser.chosen], min(left, bounds.user_messages) - spent)
    copies = (*chooser.copies(), *tools)
    ids = tuple(dict.fromkeys(copy.metadata["carried_from"] for copy in copies))
    return RetainedRows(copies, sum_sizes([message_size(copy, draft.limits.counter) for copy in copies]), ids, opened)


def find_user_messages(draft: DraftView, cut: int) -> list[int]:
    """Indexes of the person's words before `cut`, newest first."""
    return [n for n in reversed(range(cut)) if _is_said(draft.rows[n])]


class _Chooser:
    """Rows chosen to be copied, one list after the other."""

    def __init__(self, draft: DraftView, places: Mapping[int, LogLocation], now: datetime) -> None:
        self._sheet = draft
        self._places = places
        self._now = now
        self.chosen: dict[int, Message] = {}

    def take(self, indexes: Sequence[int], room: int) -> int:
        """Choose rows in this order until one does not fit: the tokens they take."""
        spent = 0
        for index in indexes:
            copy = self._copy(index)
            tokens = self._sheet.limits.counter.count_message(copy)
            if spent + tokens > room:
                break
            spent += tokens
            self.chosen[index] = copy
        return spent

    def copies(self) -> list[Message]:
        return [self.chosen[index] for index in sorted(self.chosen)]

    def _copy(self, index: int) -> Message:
        """Long words by reference with both their ends, pictures by name."""
        row = without_image_data(self._sheet.rows[index])
        place = self._places.get(row.id) if row.id is not None else None
        if place is not None and self._sheet.sizes[index].tokens > 2 * KEPT_MESSAGE_TOKENS:
            row = truncate_to_reference(row, place, KEPT_MESSAGE_TOKENS, self._sheet.limits.counter.count_text)
        return copy_row(row, self._now)


def _origin(row: Message) -> int:
    return int(row.metadata.get("carried_from") or row.id or 0)


def _is_mark(row: Message) -> bool:
    return row.role == "system" and row.content.startswith(ABORTED_MARKER)


def _is_said(row: Message) -> bool:
    """A person's own words: no note, no summary, whether still live or kept by an earlier compaction."""
    said = row.metadata
    return row.role == "user" and not (said and (said.get("note") or said.get("internal") or said.get("type")))


_ROLE_WEIGHTS = {"user": 2.0, "assistant": 1.0}


def rank_by_information(draft: DraftView, cut: int) -> list[int]:
    """Indexes of the words said before `cut`, the most telling first: those that name most for their length, a person's
    own before the assistant's, newer before older where they are alike."""
    said = [n for n in range(cut) if draft.rows[n].role in _ROLE_WEIGHTS and not draft.rows[n].tool_calls]
    return sorted(said, key=lambda n: (-_information_score(draft, n), -n))


def _information_score(draft: DraftView, index: int) -> float:
    row = draft.rows[index]
    words = row.content.split()
    marks = sum(
        any(c.isdigit() for c in word) or (place > 0 and word[:1].isupper()) for place, word in enumerate(words)
    )
    return round(_ROLE_WEIGHTS[row.role] * (1 + marks) / (20 + len(words)), 3)


def carry_protected_results(draft: DraftView, cut: int, now: datetime) -> tuple[Message, ...]:
    """Copies of the last result of each protected tool, with its call, where it stands before `cut`."""
    rows, starts = draft.rows, draft.block_starts
    wanted = sorted(index for index in draft.protected_results() if index < cut)
    copies: list[Message] = []
    for index in wanted:
        asked = starts[bisect_right(starts, index) - 1]
        call = next((call for call in rows[asked].tool_calls if call.id == rows[index].tool_call_id), None)
        if call is not None:
            copies += [_call_copy(rows[asked], call, now), copy_row(rows[index], now)]
    return tuple(copies)


def _call_copy(message: Message, call: ToolCall, now: datetime) -> Message:
    return replace(copy_row(message, now), content="", tool_calls=(call,), thinking=())


def copy_row(message: Message, now: datetime) -> Message:
    """The message outside of coverage (I3); a copy of a copy is one of the same original."""
    origin = message.metadata.get("carried_from", message.id)
    return replace(message, id=None, ts=message.ts or now, metadata={**message.metadata, "carried_from": origin})
