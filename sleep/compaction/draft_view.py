"""A draft of a view that can be changed and measured before anything is committed, and the choice of rows retained
verbatim (as copies marked as history) when their surroundings are removed. Pure.

Copied, as far as there is room, are: the last result of each protected tool, open requests, marks of stopped turns, and
the user's other messages, newest first; the first one that does not fit is truncated to both ends. The strategy
`selective` instead keeps the most informative messages, and no summary. Earlier summaries never count as the user's
messages.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import accumulate

from assistant.context.pressure import EMPTY_SIZE, Pressure, PromptSize, measure_pressure, message_size
from assistant.context.structure import block_starts, is_user_request, turn_start
from assistant.context.tokens import TOKENS_PER_MESSAGE
from assistant.context.truncate import truncate_to_reference, without_image_data
from assistant.core.dataclass import dataclass
from assistant.core.messages import ABORTED_MARKER, Message
from assistant.core.records import ContextView, LogLocation
from sleep.compaction.values import CompactionLimits, MinimumContext, scale_to_window

# Size of a truncated long message, in tokens of a full context.
KEPT_OUTPUT_TOKENS = 200
KEPT_MESSAGE_TOKENS = 400
# Minimum size of a reference to the log with some text, in the smallest window.
_LEAST_REFERENCE_TOKENS = 100
# A message is long if it exceeds its truncated size by this factor.
LONG = 2
MIN_REQUEST_TOKENS = 1000
# Number of marks of stopped turns to keep.
_MARKS = 5


class DraftView:
    """Rows of a view during planning, with their current and stored sizes.

    `newest_turn_start` is the index of the newest turn (of the last block if there is no request), `first_message` that
    of the first row that is not a summary or copy, `block_starts` the indexes where the rows may be cut. What a branch
    or a resumed conversation inherited are messages until its first compaction; `first_own` is the index after them.
    """

    def __init__(self, view: ContextView, limits: CompactionLimits) -> None:
        self.view = view
        self.limits = limits
        self.rows: list[Message] = list(view.messages)
        self.stored_sizes = (
            [PromptSize(*size) for size in view.sizes]
            if view.sizes
            else [message_size(message, limits.counter) for message in self.rows]
        )
        self.sizes = list(self.stored_sizes)
        self.total_size = sum_sizes(self.sizes)
        self.block_starts = block_starts(self.rows)
        request_start = turn_start(self.rows)
        self.newest_turn_start = request_start if request_start >= 0 else self.last_block_start
        self.first_own = next((n for n, row in enumerate(self.rows) if not is_compaction_prefix(row)), len(self.rows))
        inherited = [n for n in range(self.first_own) if is_inherited(self.rows[n]) and not self.rows[n].is_summary]
        was_compacted = any(row.is_summary and not is_inherited(row) for row in self.rows)
        self.first_message = inherited[0] if inherited and not was_compacted else self.first_own
        measured = measure_pressure(view, limits.budgets, limits.counter, limits.fixed, limits.adding)
        # If the provider counted more than our estimate, scale ours up proportionally; never down, since the resulting
        # view is estimated again.
        self._scale = max(1.0, measured.prompt_tokens / max(1, self._tokens(self.total_size)))
        self.initial_pressure = self.pressure()
        self.minimum_context = self._minimum_context()

    @property
    def last_block_start(self) -> int:
        """Start of the last block: in a tool loop, what the model has not seen yet."""
        return self.block_starts[-1] if self.block_starts else 0

    @property
    def request_indexes(self) -> list[int]:
        """Indexes of the newest turn's requests; several if it was steered."""
        return [n for n in range(self.newest_turn_start, len(self.rows)) if is_user_request(self.rows[n])]

    @property
    def reference_tokens(self) -> int:
        """Size of a truncated long text, in tokens."""
        return max(_LEAST_REFERENCE_TOKENS, scale_to_window(KEPT_MESSAGE_TOKENS, self.limits.budgets))

    def show_by_reference(self, index: int, places: Mapping[int, LogLocation], keep: int) -> bool:
        """Truncate a row to about `keep` tokens; returns whether it changed."""
        row = self.rows[index]
        place = places.get(original_id(row) or 0)
        if place is None:
            return False
        shorter = truncate_to_reference(row, place, keep, self.limits.counter.count_text)
        if shorter is not row:
            self.replace_row(index, shorter)
        return shorter is not row

    def long_texts(self, start: int, end: int) -> list[int]:
        """Return indexes of long assistant texts and tool results in the range."""
        spared, most = self.protected_results(), LONG * self.reference_tokens
        return [
            n
            for n in range(start, end)
            if self.sizes[n].tokens >= most
            and self.rows[n].role in ("assistant", "tool")
            and not self.rows[n].tool_calls
            and n not in spared
        ]

    def sizes_with_references(self) -> list[PromptSize]:
        """Return row sizes as if every long text before the newest turn were truncated."""
        sizes = list(self.sizes)
        for n in self.long_texts(self.first_message, self.newest_turn_start):
            saved = sizes[n].tokens - self.reference_tokens - TOKENS_PER_MESSAGE
            sizes[n] -= PromptSize(saved, min(sizes[n].bytes, 3 * saved))
        return sizes

    def protected_results(self) -> set[int]:
        """Return the index of the last result of each protected tool."""
        last = {row.name: index for index, row in enumerate(self.rows) if row.role == "tool"}
        return {index for name, index in last.items() if name in self.limits.protected_tools}

    def would_shrink(self, index: int, message: Message) -> bool:
        """Return whether the message is smaller than the row at the index."""
        size = message_size(message, self.limits.counter)
        return size.tokens < self.sizes[index].tokens or size.images < self.sizes[index].images

    def replace_row(self, index: int, message: Message) -> None:
        """Put a message in the place of another, and correct the sizes."""
        size = message_size(message, self.limits.counter)
        self.total_size = self.total_size - self.sizes[index] + size
        self.rows[index], self.sizes[index] = message, size

    def pressure(self, size: PromptSize | None = None) -> Pressure:
        """Return the pressure of the draft, or of a view with total `size`."""
        size = self.total_size if size is None else size
        around = self.limits.fixed + self.limits.adding
        return Pressure(
            round(self._tokens(size) * self._scale),
            size.bytes + around.bytes,
            size.images + around.images,
            self.limits.budgets,
        )

    def newest_requests_pressure(self) -> Pressure:
        """Return the pressure if only the newest turn's requests were left."""
        return self.pressure(sum_sizes([self.sizes[n] for n in self.request_indexes]))

    def free_tokens(self, size: PromptSize, share: float) -> int:
        """Return how many uncorrected tokens may be added to a view of a size until its pressure is `share`."""
        free = share * self.limits.budgets.tokens - self.limits.budgets.reserve - self._tokens(size) * self._scale
        return int(free / self._scale / self.limits.counter.corrected(1000) * 1000)

    def cut_boundaries(self) -> tuple[list[int], list[int], int]:
        """Return the indexes where the view may be cut, those of them before a request, and the last of these before
        the last exchange (or the last index if there is none)."""
        boundaries = [
            n
            for n in self.block_starts
            if self.first_message < n <= self.newest_turn_start and (n > self.first_own or self._begins_with_record)
        ]
        requests = [n for n in boundaries if self.rows[n].role == "user"]
        earlier = [n for n in requests if n < self.newest_turn_start]
        return boundaries, requests, (earlier or boundaries or [0])[-1]

    @property
    def _begins_with_record(self) -> bool:
        """Whether the first of its own rows tells where the inherited ones are from: a compaction of these covers it,
        since each covers a message of its own conversation."""
        return self.first_own < len(self.rows) and self.rows[self.first_own].role == "system"

    def own_cut(self, cut: int) -> int:
        """Return the index of the first own row that stays after a cut, which may be among inherited rows."""
        return self.first_own + 1 if self.first_message < cut <= self.first_own else cut

    def find_first_cut(
        self,
        candidates: Sequence[int],
        share: float,
        prefix: PromptSize,
        sizes: Sequence[PromptSize] = (),
        copies: Callable[[int], PromptSize] = lambda cut: EMPTY_SIZE,
    ) -> int | None:
        """Return the first of the ascending indexes for which the remaining rows (with `sizes`, if given), plus the
        prefix and copies, are at most `share`; None if there is none."""
        left = list(accumulate(reversed(sizes or self.sizes), PromptSize.__add__, initial=prefix))[::-1]
        place = bisect_left(candidates, True, key=lambda cut: self.pressure(left[cut] + copies(cut)).ratio <= share)
        return candidates[place] if place < len(candidates) else None

    def _minimum_context(self) -> MinimumContext:
        """Return the size of the context after everything possible was removed."""
        corrected, requests = self.limits.counter.corrected, set(self.request_indexes)
        request = sum(min(self.sizes[n].tokens, MIN_REQUEST_TOKENS) for n in requests)
        rounds = sum(
            min(self.sizes[n].tokens, KEPT_OUTPUT_TOKENS) if self.rows[n].role == "tool" else self.sizes[n].tokens
            for n in range(self.newest_turn_start, len(self.rows))
            if n not in requests
        )
        frame = self.limits.fixed.tokens + self.limits.adding.tokens
        budgets = self.limits.budgets
        return MinimumContext(corrected(frame), corrected(request), corrected(rounds), budgets.reserve, budgets.tokens)

    def _tokens(self, size: PromptSize) -> int:
        return self.limits.counter.corrected(size.tokens + self.limits.fixed.tokens + self.limits.adding.tokens)


def is_compaction_prefix(message: Message) -> bool:
    """Return whether an earlier compaction created this row: a summary or a copy."""
    metadata = message.metadata
    return bool(metadata) and (message.is_summary or "carried_from" in metadata)


def is_inherited(message: Message) -> bool:
    """Return whether a branch or a resumed conversation began with this row."""
    return bool(message.metadata) and bool(message.metadata.get("inherited"))


def original_id(message: Message) -> int | None:
    """Return the message's id in the log, or that of the original of a copy."""
    return message.id or message.metadata.get("carried_from")


def sum_sizes(sizes: Sequence[PromptSize]) -> PromptSize:
    return PromptSize(sum(s.tokens for s in sizes), sum(s.bytes for s in sizes), sum(s.images for s in sizes))


# ------------------------------------------------------------------------------------------------------- word for word


@dataclass(frozen=True, slots=True)
class RetainedRows:
    """Rows retained verbatim."""

    copies: tuple[Message, ...] = ()  # user's messages and marks in view order, then protected results
    size: PromptSize = EMPTY_SIZE
    message_ids: tuple[int, ...] = ()  # of the originals
    open_request_ids: tuple[int, ...] = ()  # of retained open requests


def choose_retained_rows(
    draft: DraftView,
    cut: int,
    requests: Sequence[int],
    order: Sequence[int],
    places: Mapping[int, LogLocation],
    now: datetime,
    *,
    room: int,
    user_messages: int,
    open_requests: int,
) -> RetainedRows:
    """Choose what to retain of the rows before `cut` besides a summary.

    - `requests`: ids of open requests, newest first.
    - `order`: indexes of other candidates, by priority.
    - `room`: limit for all copies, in uncorrected tokens like the following.
    - `user_messages`: limit for the user's messages.
    - `open_requests`: guaranteed room for open requests.
    """
    counter = draft.limits.counter
    chosen: dict[int, Message] = {}

    def take(indexes: Sequence[int], most: int) -> int:
        """Choose rows in this order until one does not fit; returns the tokens used."""
        spent = 0
        for index in indexes:
            copy = _copy_within(draft, index, places, now, most - spent)
            if copy is None:
                break
            spent += counter.count_message(copy)
            chosen[index] = copy
        return spent

    tools = carry_protected_results(draft, cut, now)
    left = room - sum_sizes([message_size(copy, counter) for copy in tools]).tokens
    by_id = {original_id(draft.rows[n]): n for n in find_user_messages(draft, cut)}
    wanted = [by_id[message_id] for message_id in requests if message_id in by_id]
    spent = take(wanted, min(max(open_requests, left), max(open_requests, user_messages)))
    opened = tuple(original_id(draft.rows[n]) or 0 for n in wanted if n in chosen)
    marks = [n for n in reversed(range(cut)) if _is_mark(draft.rows[n])][:_MARKS]
    spent += take(marks, left - spent)
    take([n for n in order if n not in chosen], min(left, user_messages) - spent)
    copies = (*(chosen[index] for index in sorted(chosen)), *tools)
    ids = tuple(dict.fromkeys(copy.metadata["carried_from"] for copy in copies))
    return RetainedRows(copies, sum_sizes([message_size(copy, counter) for copy in copies]), ids, opened)


def find_user_messages(draft: DraftView, cut: int) -> list[int]:
    """Return indexes of the user's messages before `cut`, newest first."""
    return [n for n in reversed(range(cut)) if is_said_by_person(draft.rows[n])]


def _copy_within(
    draft: DraftView, index: int, places: Mapping[int, LogLocation], now: datetime, room: int
) -> Message | None:
    """Return a copy of the row without picture data, truncated if it exceeds `room` tokens; None if there is no room
    for that."""
    row, counter = without_image_data(draft.rows[index]), draft.limits.counter
    over = counter.count_message(row) - room
    if over > 0:
        place, keep = places.get(original_id(row) or 0), counter.count_text(row.content) - over
        if place is None or keep < draft.reference_tokens:
            return None
        row = truncate_to_reference(row, place, keep, counter.count_text)
    return _copy_row(row, now)


def _is_mark(row: Message) -> bool:
    return row.role == "system" and row.content.startswith(ABORTED_MARKER)


def is_said_by_person(row: Message) -> bool:
    """Return whether these are a user's own words, not a note or summary; copies count."""
    return row.role == "user" and not any(map(row.metadata.get, ("note", "internal", "type")))


_ROLE_WEIGHTS = {"user": 2.0, "assistant": 1.0}


def rank_by_information(draft: DraftView, cut: int) -> list[int]:
    """Return indexes of messages before `cut`, most informative first: most names and values for their length, the
    user's before the assistant's, newer first."""
    spoken = [n for n in range(cut) if draft.rows[n].role in _ROLE_WEIGHTS and not draft.rows[n].tool_calls]
    return sorted(spoken, key=lambda n: (-_information_score(draft, n), -n))


def _information_score(draft: DraftView, index: int) -> float:
    row = draft.rows[index]
    words = row.content.split()
    marks = sum(
        any(c.isdigit() for c in word) or (place > 0 and word[:1].isupper()) for place, word in enumerate(words)
    )
    return round(_ROLE_WEIGHTS[row.role] * (1 + marks) / (20 + len(words)), 3)


def carry_protected_results(draft: DraftView, cut: int, now: datetime) -> tuple[Message, ...]:
    """Return copies of the last result of each protected tool, with its call, if it is before `cut`."""
    rows, starts = draft.rows, draft.block_starts
    copies: list[Message] = []
    for index in sorted(index for index in draft.protected_results() if index < cut):
        caller = rows[starts[bisect_right(starts, index) - 1]]
        call = next((call for call in caller.tool_calls if call.id == rows[index].tool_call_id), None)
        if call is not None:
            asking = replace(_copy_row(caller, now), content="", tool_calls=(call,), thinking=())
            copies += [asking, _copy_row(rows[index], now)]
    return tuple(copies)


def _copy_row(message: Message, now: datetime) -> Message:
    """Return a copy without an id, outside of coverage (I3); a copy of a copy refers to the original."""
    origin = message.metadata.get("carried_from", message.id)
    return replace(message, id=None, ts=message.ts or now, metadata={**message.metadata, "carried_from": origin})
