"""Plans compactions without a model. Pure.

Each step is tried only if the one before is not enough:
1. Mask: replace old tool output and long old answers by references, all at once (`sleep/compaction/fallback.py`).
2. Cut: everything before the preserve window is replaced by one summary. The target is binding: the user's own messages
   have priority in it, including those in the window. If they do not fit, the assistant's long texts in the window are
   truncated, oldest first; then the window shrinks, down to the last exchange.
3. Merge: if existing summaries leave no room for another, the two oldest are merged first.

Never cut: the newest request and what follows it, a call and its results. Never lost: the last result of each protected
tool, marks of stopped turns, open requests, the user's newest messages (`sleep/compaction/draft_view.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import accumulate

from assistant.context.pressure import Pressure, PromptSize, message_size
from assistant.context.structure import with_changes_described
from assistant.core.messages import Message
from assistant.core.records import ContextView, LogLocation
from sleep.compaction.draft_view import (
    DraftView,
    RetainedRows,
    carry_protected_results,
    choose_retained_rows,
    find_user_messages,
    is_inherited,
    is_said_by_person,
    original_id,
    rank_by_information,
    sum_sizes,
)
from sleep.compaction.fallback import estimate_masking, mask_rows
from sleep.compaction.plan import CompactionPlan, PendingSummary, PlannedChange, plan_of
from sleep.compaction.render import CLOSING_TOKENS, SECTION_TOKENS, RemovedRows, count_section_tokens, make_sections
from sleep.compaction.values import (
    STRATEGIES_WITHOUT_SUMMARY,
    CompactionInputs,
    CompactionLimits,
    CompactionPolicy,
    Summary,
    SummaryInput,
)

Places = Mapping[int, LogLocation]

# Below this many tokens a summary is hardly shorter than its source.
_LEAST_LEAVING = 400
# Share of the room below the target for all summaries.
_SHARE_OF_SUMMARIES = 0.5
# Share of the same room reserved for open requests.
_SHARE_OF_REQUESTS = 0.2
# Triggers for which masking is not enough: a requested summary, too many messages, an overflow.
_MORE_THAN_MASKS = frozenset({"manual", "messages", "overflow"})


def plan_compaction(
    view: ContextView,
    places: Places,
    limits: CompactionLimits,
    policy: CompactionPolicy,
    inputs: CompactionInputs,
    now: datetime,
    *,
    trigger: str,
) -> CompactionPlan:
    """Return the plan for `view`; without changes if nothing can be gained. `places` has the log locations of its
    messages; messages without one are never shortened."""
    draft = DraftView(view, limits)
    tail = _preserved(draft, policy, trigger)
    if policy.strategy == "mask":
        return _masked(draft, tail, places, trigger)
    enough = policy.masking_target(limits.target_pressure)
    may_mask = policy.strategy == "hybrid" and trigger not in _MORE_THAN_MASKS
    if may_mask and estimate_masking(draft, tail).ratio <= enough:
        masked = _masked(draft, tail, places, trigger)
        if masked.has_changes and masked.after.ratio <= enough:
            return masked
        draft = DraftView(view, limits)
    return _CutPlanner(draft, places, policy, inputs, now, trigger).plan(tail)


def _preserved(draft: DraftView, policy: CompactionPolicy, trigger: str) -> int:
    """Return the start of the preserve window: the last messages by count or by tokens, whichever is more (by count if
    there are too many), always including the newest turn, at a block boundary."""
    by_number = len(draft.rows) - policy.preserve_messages
    room = policy.preserve_share * draft.limits.budgets.tokens
    by_weight = len(draft.rows)
    for size in reversed(draft.sizes):
        room -= draft.limits.counter.corrected(size.tokens)
        if room < 0 or by_weight == 0:
            break
        by_weight -= 1
    wanted = max(
        draft.first_message, min(by_number, by_number if trigger == "messages" else by_weight, draft.newest_turn_start)
    )
    return max((start for start in draft.block_starts if start <= wanted), default=draft.first_message)


def _masked(draft: DraftView, tail: int, places: Places, trigger: str) -> CompactionPlan:
    changed = mask_rows(draft, tail, places)
    before = sum(draft.stored_sizes[n].tokens for n in changed)
    masked = PlannedChange(
        True,
        "tool output and long answers",
        "each becomes a line with what it was and where it is",
        len(changed),
        before,
    )
    rest = PlannedChange(
        False, "everything else", "masking is enough", len(draft.rows) - len(changed), draft.total_size.tokens
    )
    return replace(
        plan_of(draft, trigger, "mask", draft.pressure()),
        shorten=tuple(draft.rows[n] for n in changed),
        planned_changes=(masked, rest) if changed else (),
    )


class _CutPlanner:
    """Chooses where to cut a view, what to retain, and the length of the summary."""

    def __init__(
        self,
        draft: DraftView,
        places: Places,
        policy: CompactionPolicy,
        inputs: CompactionInputs,
        now: datetime,
        trigger: str,
    ) -> None:
        self.draft, self.places = draft, places
        self.policy, self.inputs, self.now, self.trigger = policy, inputs, now, trigger
        self.counter = draft.limits.counter
        budgets = draft.limits.budgets
        # Uncorrected tokens below the target, without the frame and the reserve.
        room = max(0, draft.free_tokens(PromptSize(), draft.limits.target_pressure))
        share = int(room * _SHARE_OF_SUMMARIES)
        self.sections = make_sections(inputs.checkpoints)
        self.sections_tokens = count_section_tokens(self.sections, self.counter)
        self.restored = policy.restored_budget(budgets)
        self.budget = max(200, min(policy.summary_budget(budgets), share - self.restored))
        self.new_section = 0 if self._recorded else self.budget + self.restored
        self.requests_room = int(room * _SHARE_OF_REQUESTS)
        self.user_budget = policy.user_budget(budgets)
        kinds = {"sliding_window": (), "deletion": (), "selective": ("user", "assistant")}.get(
            policy.strategy, ("user",)
        )
        # Cumulative tokens of retainable messages before each index.
        self.words_before = list(
            accumulate(
                (_word_tokens(row, size, kinds) for row, size in zip(draft.rows, draft.sizes, strict=True)), initial=0
            )
        )
        self.summaries_room = max(share, 2 * (self.new_section + SECTION_TOKENS))
        # Approximate tokens of all summaries after this plan, including merges.
        standing = min(self.sections_tokens, max(0, self.summaries_room - self.new_section))
        self.summaries_tokens = standing + self.new_section + SECTION_TOKENS + CLOSING_TOKENS

    @property
    def _recorded(self) -> bool:
        return self.policy.strategy in STRATEGIES_WITHOUT_SUMMARY

    def plan(self, tail: int) -> CompactionPlan:
        draft, cut = self.draft, self._cut(tail)
        nothing = plan_of(draft, self.trigger, "", draft.initial_pressure)
        own_cut = draft.own_cut(cut)
        leaving = [row for row in draft.view.messages[draft.first_message : own_cut] if row.id is not None]
        tokens = sum_sizes(draft.stored_sizes[draft.first_message : cut]).tokens
        if not leaving or (self.trigger != "messages" and tokens < _LEAST_LEAVING):
            return nothing
        self._shorten_window(cut)
        zone = draft.limits.zone
        own_tokens = sum_sizes(draft.stored_sizes[draft.first_own : own_cut]).tokens
        removed = RemovedRows(tuple(row.in_timezone(zone) for row in leaving), own_tokens, self.places)
        pending = self._pending(cut, removed, tokens)
        after = self._pressure_after(pending)
        if self.trigger != "messages" and after.ratio >= draft.initial_pressure.ratio:
            return nothing
        plan = replace(nothing, after=after, shorten=pending.shortened, planned_changes=self._changes(pending))
        if self._recorded:
            compaction = pending.complete(Summary("", self.policy.strategy, 0), self.now)
            return replace(plan, tier=self.policy.strategy, compaction=compaction)
        return replace(plan, tier="summary", pending_summary=pending, merge_ids=self._merge())

    # ---------------------------------------------------------------------------------------------------------- cutting

    def _cut(self, tail: int) -> int:
        """Return the index of the first row that stays: the preserve window's start, or a later boundary if needed for
        the target; at the latest before the last exchange, or before the newest turn if that exceeds the threshold."""
        draft, limits = self.draft, self.draft.limits
        boundaries, _, exchange = draft.cut_boundaries()
        if not boundaries:
            return draft.first_message
        prefix = self._prefix_size()
        if self.policy.strategy == "deletion":
            cut = draft.find_first_cut(boundaries, limits.target_pressure, prefix)
            return boundaries[-1] if cut is None else cut
        window = [n for n in boundaries if tail <= n <= exchange]
        least = draft.sizes_with_references()
        cut = draft.find_first_cut(window, limits.target_pressure, prefix, least, self._copied_words)
        if cut is not None:
            return cut
        if tail > exchange:
            return tail
        enough = draft.find_first_cut([exchange], limits.threshold, prefix)
        return boundaries[-1] if enough is None else exchange

    def _prefix_size(self) -> PromptSize:
        """Return the approximate minimum size of the prefix: summaries, protected results, and open requests within
        their reserved room."""
        draft = self.draft
        open_ids = {request.message_id for request in self.inputs.open_requests}
        requests = [
            draft.sizes[n].tokens
            for n in find_user_messages(draft, draft.newest_turn_start)
            if original_id(draft.rows[n]) in open_ids
        ]
        tools = [n for n in range(len(draft.rows)) if draft.rows[n].name in draft.limits.protected_tools]
        last = {draft.rows[n].name: draft.sizes[n] for n in tools}
        tokens = self.summaries_tokens + min(sum(requests), self.requests_room)
        return sum_sizes(list(last.values())) + PromptSize(tokens, 4 * tokens)

    def _copied_words(self, cut: int) -> PromptSize:
        """Return the size of the retained messages from before `cut`."""
        tokens = min(self.words_before[cut], self._words_room(cut))
        return PromptSize(tokens, 4 * tokens)

    def _words_room(self, cut: int) -> int:
        """Return the limit for retained messages from before `cut`: the newer ones after it come first."""
        behind = 0 if self.policy.strategy == "selective" else self.words_before[-1] - self.words_before[cut]
        return max(0, self.user_budget - behind)

    def _shorten_window(self, cut: int) -> None:
        """Truncate the assistant's long texts before the newest turn until the retained messages have room."""
        draft = self.draft
        prefix = self._prefix_size() + self._copied_words(cut)
        for index in draft.long_texts(cut, draft.newest_turn_start):
            if draft.pressure(prefix + sum_sizes(draft.sizes[cut:])).ratio <= draft.limits.target_pressure:
                return
            draft.show_by_reference(index, self.places, draft.reference_tokens)

    # -------------------------------------------------------------------------------------------------------- outlining

    def _pending(self, cut: int, removed: RemovedRows, tokens: int) -> PendingSummary:
        """`tokens` is the size of what leaves, with what was inherited."""
        draft, view = self.draft, self.draft.view
        retained = self._retained(cut)
        inherited = tuple(
            row.in_timezone(draft.limits.zone)
            for row in view.messages[: min(cut, draft.first_own)]
            if is_inherited(row)
        )
        in_view = {*retained.message_ids, *(row.id for row in draft.rows[cut:])}
        open_words = tuple(request.text for request in self.inputs.open_requests if request.message_id not in in_view)
        summary_input = SummaryInput(
            session=view.session,
            scope=view.scope,
            rows=with_changes_described((*inherited, *removed.rows)),
            places=self.places,
            budget=min(self.budget, max(100, tokens // 2)),
            tasks=(*open_words, *self.inputs.tasks),
            earlier_summaries="\n\n".join(section.text for section in self.sections if section.text),
            known_facts=self.inputs.known_facts,
            focus=self.inputs.focus,
            restored_max_tokens=self.restored,
        )
        stays = tuple(draft.rows[cut : draft.first_own])
        own_cut, sections = draft.own_cut(cut), tuple(self.sections)
        return PendingSummary(draft, self.trigger, own_cut, summary_input, removed, retained, sections, stays)

    def _retained(self, cut: int) -> RetainedRows:
        summaries = PromptSize(self.summaries_tokens, 4 * self.summaries_tokens)
        size, limits = sum_sizes(self.draft.sizes[cut:]) + summaries, self.draft.limits
        room = self.draft.free_tokens(size, limits.target_pressure)
        if room <= 0:
            # The last exchange alone exceeds the target: still keep some of the user's messages.
            room = self.draft.free_tokens(size, self.policy.sleep_threshold) // 2
        requests = [request.message_id for request in self.inputs.open_requests]
        newest = find_user_messages(self.draft, cut)
        if self.trigger == "messages":
            newest = newest[: self.policy.preserve_messages]
        order: Sequence[int] = newest
        if self.policy.strategy in ("sliding_window", "deletion"):
            order = ()
        elif self.policy.strategy == "selective":
            order = rank_by_information(self.draft, cut)
        return choose_retained_rows(
            self.draft,
            cut,
            requests,
            order,
            self.places,
            self.now,
            room=room,
            user_messages=self._words_room(cut),
            open_requests=self.requests_room,
        )

    def _merge(self) -> tuple[int, ...]:
        """Return the two oldest checkpoints if another one would be too many or find no room."""
        live = sorted(self.inputs.checkpoints, key=lambda checkpoint: checkpoint.from_seq)
        too_many = len(live) >= self.policy.max_checkpoints
        too_long = self.sections_tokens + self.new_section > self.summaries_room
        return (live[0].id, live[1].id) if len(live) >= 2 and (too_many or too_long) else ()

    # ---------------------------------------------------------------------------------------------------------- telling

    def _pressure_after(self, pending: PendingSummary) -> Pressure:
        tokens = self.summaries_tokens - (0 if self._recorded else self.budget - pending.summary_input.budget)
        stays = [message_size(row, self.counter) for row in pending.inherited]
        tail = sum_sizes([*stays, *self.draft.sizes[pending.cut :]])
        return self.draft.pressure(pending.retained.size + PromptSize(tokens, 4 * tokens) + tail)

    def _changes(self, pending: PendingSummary) -> tuple[PlannedChange, ...]:
        draft, cut, removed, retained = self.draft, pending.cut, pending.removed, pending.retained
        place = "a note of where the log has them" if self._recorded else f"a summary of at most {self.budget} tokens"
        pictures = sum(medium.kind == "image" for row in removed.rows for medium in row.media)
        requests, tools = len(retained.open_request_ids), len(carry_protected_results(draft, cut, self.now))
        words = len(retained.copies) - tools - requests
        standing = [section for section in self.sections if section.text]
        merges = self._merge() and not self._recorded
        until = "the two oldest become one first" if merges else "not summarised again"
        verbatim = "kept word for word, marked as history"
        ends = "their beginning and end stay, to leave room for your own words"
        first = cut - 1 - len(pending.inherited) if pending.inherited else cut
        tail = sum_sizes(draft.sizes[first:]).tokens
        leaving = sum_sizes(draft.stored_sizes[draft.first_message : first]).tokens
        changes = (
            PlannedChange(True, "older messages", f"replaced by {place}", len(pending.summary_input.rows), leaving),
            PlannedChange(True, "pictures", "named in the summary; the log keeps them", pictures, 0),
            PlannedChange(False, "open requests", "they are not done yet", requests, 0),
            PlannedChange(False, "your earlier words and marks of stopped turns", verbatim, words, 0),
            PlannedChange(False, "results of protected tools", "compaction.protected_tools", tools, 0),
            PlannedChange(False, "the newest messages", "not summarised", len(draft.rows) - first, tail),
            PlannedChange(False, "long answers among them", ends, len(pending.shortened), 0),
            PlannedChange(
                False, "earlier summaries", until, len(standing), count_section_tokens(standing, self.counter)
            ),
        )
        return tuple(change for change in changes if change.messages)


def _word_tokens(row: Message, size: PromptSize, kinds: Collection[str]) -> int:
    """Return the tokens of a row that may be retained, else 0. `kinds` are the roles to retain."""
    may_stay = row.role in kinds and (row.role != "user" or is_said_by_person(row)) and not row.tool_calls
    return size.tokens if may_stay else 0
