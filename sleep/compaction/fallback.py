"""The deterministic fallback of compaction: shrinks the context without a model, or reports why it cannot (I7, F02).

Proceeds in large steps, so that the provider's cache is invalidated once and not with every message:

1. If the newest turn alone exceeds the threshold: truncate its requests to fit the threshold (the target once tools
   have run, which need room too), then the tool results of earlier rounds of its loop, then those of the last round,
   which the model has not seen, no more than needed.
2. Truncate old pictures, old tool results (largest first) and long old messages until the target is reached.
3. If still above it: remove the oldest messages with their tool pairs, up to the last exchange, and insert a record of
   their location in the log; the last exchange too if the threshold requires it.

Never removed: the newest request and what follows it, and the last result of each protected tool (complete, unless it
exceeds a tenth of the context). Never separated: a call and its results. The remainder is the minimum.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from assistant.context.pressure import EMPTY_SIZE, Pressure, PromptSize, message_size
from assistant.context.tokens import TOKENS_PER_MESSAGE
from assistant.context.truncate import (
    call_signature,
    calls_by_id,
    mask_tool_result,
    truncate_to_reference,
    without_image_data,
)
from assistant.core.checkpoints import Compaction
from assistant.core.notices import Notice, NoticeKind
from assistant.core.records import ContextView, LogLocation
from sleep.compaction.draft_view import (
    KEPT_MESSAGE_TOKENS,
    KEPT_OUTPUT_TOKENS,
    LONG,
    MIN_REQUEST_TOKENS,
    DraftView,
    carry_protected_results,
    is_compaction_prefix,
    sum_sizes,
)
from sleep.compaction.plan import CompactionPlan, PlannedChange, plan_of
from sleep.compaction.render import (
    FALLBACK_TIER,
    RECORD_TOKENS,
    RemovedRows,
    append_position_record,
    is_position_record,
)
from sleep.compaction.values import CompactionLimits

Places = Mapping[int, LogLocation]
# Divisor: the share of the context that a protected result may take.
_SHARE_OF_PROTECTED = 10


def plan_fallback(
    view: ContextView, places: Places, limits: CompactionLimits, now: datetime, *, trigger: str = "emergency"
) -> CompactionPlan:
    """Plan what to do to `view`; nothing if its pressure is at the target. `places` has the log locations of its
    messages; messages without one are never shortened."""
    draft = DraftView(view, limits)
    notices: list[Notice] = []
    after, cut, compaction = draft.initial_pressure, 0, None
    if draft.rows and draft.initial_pressure.ratio > limits.target_pressure:
        if _newest_turn_pressure(draft).ratio > limits.threshold:
            notices += _shorten_requests(draft, places)
        if _newest_turn_pressure(draft).ratio > limits.threshold:
            _shorten_rounds(draft, places)
        _shorten_old(draft, places)
        cut, compaction = _drop_oldest(draft, places, now, trigger)
        after = _pressure_after(draft, cut, compaction)
    stuck = ""
    if after.ratio > limits.threshold:
        smallest = draft.minimum_context.describe_parts()
        stuck = NoticeKind.CONTEXT_STAYS_FULL.fill(size=after.describe(), minimum=smallest).text
    pairs = zip(draft.rows[cut:], view.messages[cut:], strict=True)
    shorter = tuple(row for row, stored in pairs if row is not stored)
    changes = [PlannedChange(False, "long messages", "their beginning and end stay", len(shorter), 0)]
    if compaction is not None:
        why = "removed without a summary; a note says where the log has them"
        tokens = sum_sizes(draft.stored_sizes[draft.first_message : cut]).tokens
        changes.append(PlannedChange(True, "older messages", why, compaction.messages_compressed, tokens))
    return replace(
        plan_of(draft, trigger, FALLBACK_TIER, after),
        shorten=shorter,
        compaction=compaction,
        planned_changes=tuple(change for change in changes if change.messages),
        stuck_reason=stuck,
        notices=tuple(notices),
    )


# ------------------------------------------------------------------------------------------------------ shorter forms


def _newest_turn_pressure(draft: DraftView) -> Pressure:
    """Return the pressure if only the newest turn and the prefix were left."""
    return draft.pressure(_newest_turn_size(draft))


def _newest_turn_size(draft: DraftView) -> PromptSize:
    return _prefix_size(draft) + sum_sizes(draft.sizes[draft.newest_turn_start :])


def _shorten_requests(draft: DraftView, places: Places) -> list[Notice]:
    """Step 1 for requests that are too large by themselves: they fill the window at first, and make room in one step
    once the model has used tools. Returns notices for the user."""
    notices: list[Notice] = []
    hidden = _show_fewer_pictures(draft)
    if hidden:
        newest = max((draft.rows[index].id or 0 for index in draft.request_indexes), default=0)
        notices.append(NoticeKind.PICTURES_HIDDEN.fill(newest, count=hidden))
    requests = draft.request_indexes
    was_cut = any(draft.rows[n].metadata.get("truncated") for n in requests)
    has_rounds = draft.last_block_start > max(requests, default=0)
    share = draft.limits.target_pressure if was_cut and has_rounds else draft.limits.threshold
    for index in _largest(draft, requests):
        others = _prefix_size(draft) + sum_sizes([draft.sizes[n] for n in requests if n != index])
        if draft.pressure(others + draft.sizes[index]).ratio <= share:
            break
        whole = draft.sizes[index].tokens
        keep = draft.free_tokens(others, share) - TOKENS_PER_MESSAGE
        if draft.show_by_reference(index, places, max(MIN_REQUEST_TOKENS, keep)) and not was_cut:
            seen = f"{draft.sizes[index].tokens:,}"
            notices.append(NoticeKind.MESSAGE_SHORTENED.fill(draft.rows[index].id, tokens=f"{whole:,}", seen=seen))
    return notices


def _show_fewer_pictures(draft: DraftView) -> int:
    """Drop the data of the last pictures in the requests until the threshold is reached. Returns their number."""
    hidden = 0
    for index in reversed(draft.request_indexes):
        for place in reversed(range(len(draft.rows[index].media))):
            if draft.newest_requests_pressure().ratio <= draft.limits.threshold:
                return hidden
            media = list(draft.rows[index].media)
            if media[place].data and draft.newest_requests_pressure().fullest_budget != "tokens":
                media[place] = replace(media[place], data=None)
                draft.replace_row(index, replace(draft.rows[index], media=tuple(media)))
                hidden += 1
    return hidden


def _shorten_rounds(draft: DraftView, places: Places) -> None:
    """Step 1 for tool rounds: results the model has not seen yet are cut last, and no more than necessary."""
    protected = draft.protected_results()
    own = range(max(draft.first_own, draft.newest_turn_start), len(draft.rows))
    outputs = [n for n in own if draft.rows[n].role == "tool"]
    for until, indexes in (
        (draft.limits.target_pressure, [n for n in outputs if n < draft.last_block_start]),
        (draft.limits.threshold, [n for n in outputs if n >= draft.last_block_start]),
    ):
        for index in _largest(draft, indexes):
            if _newest_turn_pressure(draft).ratio <= until:
                break
            keep = _kept_whole(draft) if index in protected else KEPT_OUTPUT_TOKENS
            if index >= draft.last_block_start:
                others = _newest_turn_size(draft) - draft.sizes[index]
                keep = max(keep, draft.free_tokens(others, until) - TOKENS_PER_MESSAGE)
            draft.show_by_reference(index, places, keep)


def _shorten_old(draft: DraftView, places: Places) -> None:
    """Step 2: truncate old pictures, tool results and messages."""
    old = range(draft.first_own, draft.newest_turn_start)
    protected = draft.protected_results()
    for index in [n for n in old if draft.sizes[n].images]:
        if draft.pressure().ratio <= draft.limits.target_pressure:
            break
        draft.replace_row(index, without_image_data(draft.rows[index]))
    for roles, keep in ((("tool",), KEPT_OUTPUT_TOKENS), (("user", "assistant"), KEPT_MESSAGE_TOKENS)):
        long = [n for n in old if draft.sizes[n].tokens >= LONG * keep and draft.rows[n].role in roles]
        for index in _largest(draft, long):
            if draft.pressure().ratio <= draft.limits.target_pressure:
                break
            draft.show_by_reference(index, places, _kept_whole(draft) if index in protected else keep)


def _kept_whole(draft: DraftView) -> int:
    """Return up to how many tokens a protected result is kept whole; one that fills the context is not protected."""
    return max(KEPT_OUTPUT_TOKENS, draft.limits.budgets.tokens // _SHARE_OF_PROTECTED)


def _largest(draft: DraftView, indexes: Iterable[int]) -> list[int]:
    return sorted(indexes, key=lambda index: (-draft.sizes[index].tokens, index))


# ---------------------------------------------------------------------------------------------------------- dropping


def _drop_oldest(draft: DraftView, places: Places, now: datetime, trigger: str) -> tuple[int, Compaction | None]:
    """Step 3: return the index of the first row that stays, and the compaction; (0, None) if nothing has to be removed,
    can be, or would be gained."""
    cut, view, counter = _cut(draft), draft.view, draft.limits.counter
    own_cut = draft.own_cut(cut)
    rows = tuple(
        row.in_timezone(draft.limits.zone)
        for row in view.messages[draft.first_message : own_cut]
        if row.id is not None and not is_compaction_prefix(row)
    )
    if not cut or not rows:
        return 0, None
    removed = RemovedRows(rows, sum_sizes(draft.stored_sizes[draft.first_own : own_cut]).tokens, places)
    summaries = append_position_record([row for row in view.messages[:cut] if row.is_summary], removed, counter, now)
    prefix = (*summaries, *carry_protected_results(draft, cut, now), *draft.rows[cut : draft.first_own])
    size = sum_sizes([message_size(message, counter) for message in prefix])
    after = draft.pressure(size + sum_sizes(draft.sizes[own_cut:])).ratio
    if after >= draft.pressure().ratio:
        return 0, None
    return own_cut, Compaction(
        session=view.session,
        prefix_rev=view.prefix_rev,
        trigger=trigger,
        tier=FALLBACK_TIER,
        from_message_id=rows[0].id or 0,
        to_message_id=rows[-1].id or 0,
        messages_compressed=len(rows),
        prefix=prefix,
        summary=summaries[-1].content,
        original_tokens=sum_sizes(draft.stored_sizes[:own_cut]).tokens,
        compressed_tokens=size.tokens,
        key_facts={**removed.key_facts, "pressure": [round(draft.initial_pressure.ratio, 4), round(after, 4)]},
    )


def _cut(draft: DraftView) -> int:
    """Return the index of the first row that stays: the first boundary that reaches the target, preferably before a
    request, at the latest before the last exchange, or before the newest turn if the threshold requires it. 0 if
    nothing has to be or can be removed."""
    boundaries, requests, exchange = draft.cut_boundaries()
    if draft.pressure().ratio <= draft.limits.target_pressure or not boundaries:
        return 0
    prefix = _prefix_size(draft)
    for candidates in (requests, boundaries):
        cut = draft.find_first_cut([n for n in candidates if n <= exchange], draft.limits.target_pressure, prefix)
        if cut is not None:
            return cut
    enough = draft.find_first_cut([exchange], draft.limits.threshold, prefix)
    return boundaries[-1] if enough is None else exchange


def _prefix_size(draft: DraftView) -> PromptSize:
    """Return the approximate size of the prefix: remaining summaries, a record, copies of protected results."""
    summaries = [
        n for n in range(draft.first_message) if draft.rows[n].is_summary and not is_position_record(draft.rows[n])
    ]
    copies = [n for n in draft.protected_results() if n < draft.newest_turn_start]
    return sum_sizes([draft.sizes[n] for n in (*summaries, *copies)]) + PromptSize(RECORD_TOKENS, RECORD_TOKENS * 4)


def _pressure_after(draft: DraftView, cut: int, compaction: Compaction | None) -> Pressure:
    prefix = [message_size(message, draft.limits.counter) for message in compaction.prefix] if compaction else []
    return draft.pressure(sum_sizes([*prefix, *draft.sizes[cut:]]))


# Shorter results cost hardly more than their replacement.
_WORTH_MASKING = 160
# Approximate size of a masked row.
_LEFT_OF = {"tool": 40, "assistant": KEPT_MESSAGE_TOKENS}


def estimate_masking(draft: DraftView, until: int) -> Pressure:
    """Return an optimistic estimate of the pressure after masking the rows before `until`; cheap, since masking does
    not help most views."""
    saved = EMPTY_SIZE
    for index in range(draft.first_message, until):
        size, keep = draft.sizes[index], _LEFT_OF.get(draft.rows[index].role)
        if keep is not None and size.tokens > keep and draft.rows[index].id is not None:
            saved += PromptSize(size.tokens - keep, size.bytes, size.images)
    return draft.pressure(draft.total_size - saved)


def mask_rows(draft: DraftView, until: int, places: Mapping[int, LogLocation]) -> list[int]:
    """Mask the rows before index `until`; returns the indexes of changed rows."""
    calls = calls_by_id(draft.rows)
    # Number of identical calls, and the newest result of each (F03).
    signatures = {call.id: call_signature(call) for row in draft.rows for call in row.tool_calls}
    times = Counter(signatures.values())
    newest = {
        signatures[row.tool_call_id]: row.id
        for row in draft.rows
        if row.role == "tool" and row.id is not None and row.tool_call_id in signatures
    }
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
                call, signature = calls.get(row.tool_call_id or ""), signatures.get(row.tool_call_id or "", "")
                latest = newest.get(signature)
                shorter = mask_tool_result(
                    row.in_timezone(draft.limits.zone),
                    call,
                    place,
                    draft.sizes[index].tokens,
                    repeats=times.get(signature, 1),
                    latest=None if latest == row.id else latest,
                )
        elif row.role == "assistant" and draft.sizes[index].tokens >= LONG * KEPT_MESSAGE_TOKENS:
            shorter = truncate_to_reference(row, place, KEPT_MESSAGE_TOKENS, draft.limits.counter.count_text)
        if draft.sizes[index].images:
            shorter = without_image_data(shorter)
        if shorter is not row and draft.would_shrink(index, shorter):
            draft.replace_row(index, shorter)
            changed.append(index)
    return changed
