"""A draft of a view: rows with their sizes, changed and measured freely before anything is committed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

from assistant.context.pressure import Pressure, PromptSize, measure_pressure, message_size
from assistant.context.structure import block_starts, is_user_request, turn_start
from assistant.core.messages import Message
from assistant.core.records import ContextView
from sleep.compaction.values import CompactionLimits, MinimumContext

# What is left of a long message that is shown by reference, in tokens.
KEPT_OUTPUT_TOKENS = 200
KEPT_MESSAGE_TOKENS = 400
MIN_REQUEST_TOKENS = 1000


class DraftView:
    """Rows of a view while a plan is made, with their `sizes` now and as `stored`.

    `turn` is the index at which the newest turn starts (the last block where nobody asks anything), `old` that of the
    first row which is not a summary or a carried copy, `starts` the indexes at which the rows may be cut."""

    def __init__(self, view: ContextView, limits: CompactionLimits) -> None:
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
        self.first_message = next(
            (n for n, message in enumerate(self.rows) if not is_compaction_prefix(message)), len(self.rows)
        )
        measured = measure_pressure(view, limits.budgets, limits.counter, limits.fixed, limits.adding)
        # Where the provider counted more than we would, ours is raised in proportion; never lowered, since the view
        # that the plan leaves behind is estimated again.
        self._scale = max(1.0, measured.prompt_tokens / max(1, self._tokens(self.total_size)))
        self.initial_pressure = self.pressure()

    @property
    def last_block_start(self) -> int:
        """Start of the last block: within a tool loop, what the model has not seen yet."""
        return self.block_starts[-1] if self.block_starts else 0

    @property
    def request_indexes(self) -> list[int]:
        """Indexes of the requests of the newest turn; more than one where it was steered."""
        return [n for n in range(self.newest_turn_start, len(self.rows)) if is_user_request(self.rows[n])]

    def protected_results(self) -> set[int]:
        """Indexes of the last result of each protected tool."""
        last = {row.name: index for index, row in enumerate(self.rows) if row.role == "tool"}
        return {index for name, index in last.items() if name in self.limits.protected_tools}

    def would_shrink(self, index: int, message: Message) -> bool:
        """Whether the message takes less than the row that stands there."""
        size = message_size(message, self.limits.counter)
        return size.tokens < self.sizes[index].tokens or size.images < self.sizes[index].images

    def replace_row(self, index: int, message: Message) -> None:
        size = message_size(message, self.limits.counter)
        self.total_size = self.total_size - self.sizes[index] + size
        self.rows[index], self.sizes[index] = message, size

    def pressure(self, size: PromptSize | None = None) -> Pressure:
        """The pressure of the draft, or of a view that adds up to `size`."""
        size = self.total_size if size is None else size
        around = self.limits.fixed + self.limits.adding
        return Pressure(
            round(self._tokens(size) * self._scale),
            size.bytes + around.bytes,
            size.images + around.images,
            self.limits.budgets,
        )

    def newest_turn_pressure(self) -> Pressure:
        """The pressure if only the newest turn were left."""
        return self.pressure(sum_sizes(self.sizes[self.newest_turn_start :]))

    def newest_requests_pressure(self) -> Pressure:
        """The pressure if only the requests of the newest turn were left."""
        return self.pressure(sum_sizes([self.sizes[n] for n in self.request_indexes]))

    def tokens_for_row(self, index: int, share: float) -> int:
        """Uncorrected tokens that a row of the newest turn may take, for that turn to come down to `share`."""
        others = sum_sizes(self.sizes[self.newest_turn_start :]) - self.sizes[index]
        return self.free_tokens(others, share)

    def free_tokens(self, size: PromptSize, share: float) -> int:
        """Uncorrected tokens that may be added to a view of that size until its pressure is `share`."""
        free = share * self.limits.budgets.tokens - self.limits.budgets.reserve - self._tokens(size) * self._scale
        return int(free / self._scale / self.limits.counter.corrected(1000) * 1000)

    def find_first_cut(self, candidates: Sequence[int], share: float, prefix: PromptSize) -> int | None:
        """The first of the ascending indexes such that the rows from there on, behind a prefix of that size, come down
        to `share`."""
        left = list(accumulate(reversed(self.sizes), PromptSize.__add__, initial=prefix))[::-1]
        place = bisect_left(candidates, True, key=lambda cut: self.pressure(left[cut]).ratio <= share)
        return candidates[place] if place < len(candidates) else None

    def minimum_context(self) -> MinimumContext:
        """What would be left after everything that can be done."""
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
    """Whether an earlier compaction put this row there: a summary or a carried copy."""
    return message.is_summary or "carried_from" in message.metadata


def sum_sizes(sizes: Sequence[PromptSize]) -> PromptSize:
    return PromptSize(sum(s.tokens for s in sizes), sum(s.bytes for s in sizes), sum(s.images for s in sizes))
