"""A view on paper: rows with their sizes, changed and measured freely before anything is committed."""

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

    def __init__(self, view: ContextView, terms: CompactionLimits) -> None:
        self.terms = terms
        self.rows: list[Message] = list(view.messages)
        self.stored = (
            [PromptSize(*size) for size in view.sizes]
            if view.sizes
            else [message_size(message, terms.counter) for message in self.rows]
        )
        self.sizes = list(self.stored)
        self.total = sum_sizes(self.sizes)
        self.starts = block_starts(self.rows)
        asked = turn_start(self.rows)
        self.turn = asked if asked >= 0 else self.last_block
        self.old = next((n for n, message in enumerate(self.rows) if not is_compaction_prefix(message)), len(self.rows))
        measured = measure_pressure(view, terms.budgets, terms.counter, terms.fixed, terms.adding)
        # Where the provider counted more than we would, ours is raised in proportion; never lowered, since the view
        # that the plan leaves behind is estimated again.
        self._scale = max(1.0, measured.prompt_tokens / max(1, self._tokens(self.total)))
        self.before = self.pressure()

    @property
    def last_block(self) -> int:
        """Start of the last block: within a tool loop, what the model has not seen yet."""
        return self.starts[-1] if self.starts else 0

    @property
    def requests(self) -> list[int]:
        """Indexes of the requests of the newest turn; more than one where it was steered."""
        return [n for n in range(self.turn, len(self.rows)) if is_user_request(self.rows[n])]

    def would_shrink(self, index: int, message: Message) -> bool:
        """Whether the message takes less than the row that stands there."""
        size = message_size(message, self.terms.counter)
        return size.tokens < self.sizes[index].tokens or size.images < self.sizes[index].images

    def put(self, index: int, message: Message) -> None:
        size = message_size(message, self.terms.counter)
        self.total = self.total - self.sizes[index] + size
        self.rows[index], self.sizes[index] = message, size

    def pressure(self, size: PromptSize | None = None) -> Pressure:
        """The pressure of the sheet, or of a view that adds up to `size`."""
        size = self.total if size is None else size
        around = self.terms.fixed + self.terms.adding
        return Pressure(
            round(self._tokens(size) * self._scale),
            size.bytes + around.bytes,
            size.images + around.images,
            self.terms.budgets,
        )

    def core(self) -> Pressure:
        """The pressure if only the newest turn were left."""
        return self.pressure(sum_sizes(self.sizes[self.turn :]))

    def asked(self) -> Pressure:
        """The pressure if only the requests of the newest turn were left."""
        return self.pressure(sum_sizes([self.sizes[n] for n in self.requests]))

    def room_for(self, index: int, share: float) -> int:
        """Uncorrected tokens that a row of the newest turn may take, for that turn to come down to `share`."""
        others = sum_sizes(self.sizes[self.turn :]) - self.sizes[index]
        return self.free(others, share)

    def free(self, size: PromptSize, share: float) -> int:
        """Uncorrected tokens that may be added to a view of that size until its pressure is `share`."""
        free = share * self.terms.budgets.tokens - self.terms.budgets.reserve - self._tokens(size) * self._scale
        return int(free / self._scale / self.terms.counter.corrected(1000) * 1000)

    def first_cut(self, candidates: Sequence[int], share: float, prefix: PromptSize) -> int | None:
        """The first of the ascending indexes such that the rows from there on, behind a prefix of that size, come down
        to `share`."""
        left = list(accumulate(reversed(self.sizes), PromptSize.__add__, initial=prefix))[::-1]
        place = bisect_left(candidates, True, key=lambda cut: self.pressure(left[cut]).ratio <= share)
        return candidates[place] if place < len(candidates) else None

    def floor(self) -> MinimumContext:
        """What would be left after everything that can be done."""
        corrected, asked = self.terms.counter.corrected, set(self.requests)
        request = sum(min(self.sizes[n].tokens, MIN_REQUEST_TOKENS) for n in asked)
        rounds = sum(
            min(self.sizes[n].tokens, KEPT_OUTPUT_TOKENS) if self.rows[n].role == "tool" else self.sizes[n].tokens
            for n in range(self.turn, len(self.rows))
            if n not in asked
        )
        frame = self.terms.fixed.tokens + self.terms.adding.tokens
        budgets = self.terms.budgets
        return MinimumContext(corrected(frame), corrected(request), corrected(rounds), budgets.reserve, budgets.tokens)

    def _tokens(self, size: PromptSize) -> int:
        return self.terms.counter.corrected(size.tokens + self.terms.fixed.tokens + self.terms.adding.tokens)


def is_compaction_prefix(message: Message) -> bool:
    """Whether an earlier compaction put this row there: a summary or a carried copy."""
    return message.is_summary or "carried_from" in message.metadata


def sum_sizes(sizes: Sequence[PromptSize]) -> PromptSize:
    return PromptSize(sum(s.tokens for s in sizes), sum(s.bytes for s in sizes), sum(s.images for s in sizes))
