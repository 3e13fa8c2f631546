"""Old tool output and verbose old answers by reference: the compaction that loses nothing but room. Pure.

All that can be masked is masked at once: every change of an early row costs the provider's cache of all that follows,
so it is made rarely and in large steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from assistant.context.mask import call_signature, calls_by_id, mask_tool_result
from assistant.context.pressure import EMPTY_SIZE, Pressure, PromptSize
from assistant.context.truncate import truncate_to_reference, without_image_data
from assistant.core.messages import Message
from assistant.core.records import LogLocation
from sleep.compaction.draft_view import KEPT_MESSAGE_TOKENS, DraftView

# A result shorter than this costs hardly more than the line that would stand for it.
_WORTH_MASKING = 160
# About what is left of a row.
_LEFT_OF = {"tool": 40, "assistant": KEPT_MESSAGE_TOKENS}
# An answer this many times longer than what would be left of it is verbose.
_VERBOSE = 2


def estimate_masking(draft: DraftView, until: int) -> Pressure:
    """What masking the rows before `until` can bring the pressure down to: quicker to tell than to do, since most views
    that are full of words are not helped by it."""
    saved = EMPTY_SIZE
    for index in range(draft.first_message, until):
        size, keep = draft.sizes[index], _LEFT_OF.get(draft.rows[index].role)
        if keep is not None and size.tokens > keep:
            saved += PromptSize(size.tokens - keep, size.bytes, size.images)
    return draft.pressure(draft.total_size - saved)


def mask_rows(draft: DraftView, until: int, places: Mapping[int, LogLocation]) -> list[int]:
    """Mask the rows before index `until`: the indexes of those that changed."""
    calls = calls_by_id(draft.rows)
    repeats = _RepeatedCalls(draft.rows)
    spared = draft.protected_results()
    changed: list[int] = []
    for index in range(draft.first_message, until):
        row = draft.rows[index]
        place = places.get(row.id) if row.id is not None else None
        if place is None or index in spared:
            continue
        shorter = row
        if row.role == "tool" and not row.metadata.get("archived"):
            if draft.sizes[index].tokens >= _WORTH_MASKING:
                call = calls.get(row.tool_call_id or "")
                times, latest = repeats.count_repeats(row)
                tokens = draft.sizes[index].tokens
                dated = row.in_timezone(draft.limits.zone)
                shorter = mask_tool_result(dated, call, place, tokens, repeats=times, latest=latest)
        elif row.role == "assistant" and draft.sizes[index].tokens >= _VERBOSE * KEPT_MESSAGE_TOKENS:
            shorter = truncate_to_reference(row, place, KEPT_MESSAGE_TOKENS, draft.limits.counter.count_text)
        if draft.sizes[index].images:
            shorter = without_image_data(shorter)
        if shorter is not row and draft.would_shrink(index, shorter):
            draft.replace_row(index, shorter)
            changed.append(index)
    return changed


class _RepeatedCalls:
    """How often the same call was made, and which result is its newest (F03)."""

    def __init__(self, rows: Sequence[Message]) -> None:
        self._asked = {call.id: call_signature(call) for row in rows for call in row.tool_calls}
        self._times = Counter(self._asked.values())
        self._newest: dict[str, int] = {}
        for row in rows:
            if row.role == "tool" and row.id is not None and row.tool_call_id in self._asked:
                self._newest[self._asked[row.tool_call_id]] = row.id

    def count_repeats(self, result: Message) -> tuple[int, int | None]:
        """(times, id of the newest result where that is another one)."""
        asked = self._asked.get(result.tool_call_id or "")
        if asked is None:
            return 1, None
        newest = self._newest.get(asked)
        return self._times[asked], newest if newest != result.id else None
