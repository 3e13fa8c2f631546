"""What a compaction is going to do to a view, decided without any model. Pure.

The order of what is tried, each step only where the one before it does not do:

1. Mask: old tool output and verbose old answers by reference, all at once (`sleep/compaction/fallback.py`).
2. Cut: everything before the preserve window leaves, and one summary takes its place. The target binds: where the
   window does not fit below it, kept words shrink first, then the window, down to the last exchange.
3. Merge: where the summaries that stand already leave no room for another, the two oldest become one first.

Never cut: the newest request and what follows it, a call and its results. Never lost: the last result of each protected
tool, marks of stopped turns, open requests, the person's newest words (`sleep/compaction/retained.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from assistant.context.pressure import Pressure, PromptSize
from assistant.context.structure import with_changes_described
from assistant.core.records import ContextView, LogLocation
from sleep.compaction.draft_view import DraftView, sum_sizes
from sleep.compaction.fallback import estimate_masking, mask_rows
from sleep.compaction.plan import CompactionPlan, PendingSummary, PlannedChange
from sleep.compaction.render import CLOSING_TOKENS, SECTION_TOKENS, RemovedRows, count_section_tokens, make_sections
from sleep.compaction.retained import (
    RetainedRows,
    RetentionLimits,
    carry_protected_results,
    choose_retained_rows,
    find_user_messages,
    rank_by_information,
)
from sleep.compaction.values import (
    STRATEGIES_WITHOUT_SUMMARY,
    CompactionInputs,
    CompactionLimits,
    CompactionPolicy,
    Summary,
    SummaryInput,
)

Places = Mapping[int, LogLocation]

# Below this many tokens a summary is hardly shorter than what it stands for.
_LEAST_LEAVING = 400
# Of the room below the target, what summaries may take together.
_SHARE_OF_SUMMARIES = 0.5
# Of the same room, what open requests have for themselves, before the preserve window.
_SHARE_OF_REQUESTS = 0.2
# Triggers that ask for more than masks: somebody wants a summary, there are too many messages, the provider refused.
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
    """The plan for `view`; one that changes nothing where nothing can be gained. `places` tells for the messages of the
    view where the log has them; a message that is not in it is never shortened."""
    draft = DraftView(view, limits)
    tail = _preserved(draft, policy, trigger)
    if policy.strategy == "mask":
        return _masked(view, draft, tail, places, trigger)
    enough = policy.masking_target(limits.target)
    if (
        policy.strategy == "hybrid"
        and trigger not in _MORE_THAN_MASKS
        and estimate_masking(draft, tail).ratio <= enough
    ):
        masked = _masked(view, draft, tail, places, trigger)
        if masked.has_changes and masked.after.ratio <= enough:
            return masked
        draft = DraftView(view, limits) if masked.has_changes else draft
    return _CutPlanner(view, draft, places, policy, inputs, now, trigger).plan(tail)


def _preserved(draft: DraftView, policy: CompactionPolicy, trigger: str) -> int:
    """Index at which the preserve window starts: the last messages by number or by weight, whichever is more (by number
    where there are too many), the newest turn always, whole blocks only."""
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


def _masked(view: ContextView, draft: DraftView, tail: int, places: Places, trigger: str) -> CompactionPlan:
    changed = mask_rows(draft, tail, places)
    before = sum(draft.stored_sizes[n].tokens for n in changed)
    what = PlannedChange(
        True,
        "tool output and long answers",
        "each becomes a line with what it was and where it is",
        len(changed),
        before,
    )
    rest = PlannedChange(
        False, "everything else", "masking is enough", len(draft.rows) - len(changed), draft.total_size.tokens
    )
    return CompactionPlan(
        view.session,
        view.prefix_rev,
        trigger,
        "mask",
        draft.initial_pressure,
        draft.pressure(),
        draft.minimum_context(),
        shorten=tuple(draft.rows[n] for n in changed),
        planned_changes=(what, rest) if changed else (),
    )


class _CutPlanner:
    """Where to cut a view, what to keep of what leaves, and how long the summary of the rest may be."""

    def __init__(
        self,
        view: ContextView,
        draft: DraftView,
        places: Places,
        policy: CompactionPolicy,
        inputs: CompactionInputs,
        now: datetime,
        trigger: str,
    ) -> None:
        self.view, self.draft, self.places = view, draft, places
        self.policy, self.inputs, self.now, self.trigger = policy, inputs, now, trigger
        self.counter = draft.limits.counter
        budgets = draft.limits.budgets
        # Uncorrected tokens below the target, the frame and the answer's room taken off.
        self.room = max(0, draft.free_tokens(PromptSize(), draft.limits.target))
        self.sections = make_sections(inputs.checkpoints)
        share = int(self.room * _SHARE_OF_SUMMARIES)
        self.restored = policy.restored_budget(budgets)
        self.budget = max(200, min(policy.summary_budget(budgets), share - self.restored))
        self.new_section = 0 if self._recorded else self.budget + self.restored
        self.requests_room = int(self.room * _SHARE_OF_REQUESTS)
        self.summaries_room = max(share, 2 * (self.new_section + SECTION_TOKENS))

    @property
    def _recorded(self) -> bool:
        return self.policy.strategy in STRATEGIES_WITHOUT_SUMMARY

    def plan(self, tail: int) -> CompactionPlan:
        cut = self._cut(tail)
        zone, left = self.draft.limits.zone, self.view.messages[self.draft.first_message : cut]
        leaving = tuple(row.in_timezone(zone) for row in left if row.id is not None)
        if not self._worth_it(leaving, cut):
            return self._nothing()
        pending = self._pending(
            cut,
            RemovedRows(
                leaving, sum_sizes(self.draft.stored_sizes[self.draft.first_message : cut]).tokens, self.places
            ),
        )
        after = self._after(pending, cut)
        if self.trigger != "messages" and after.ratio >= self.draft.initial_pressure.ratio:
            return self._nothing()
        compaction = pending.complete(Summary("", self.policy.strategy, 0), self.now) if self._recorded else None
        return CompactionPlan(
            self.view.session,
            self.view.prefix_rev,
            self.trigger,
            self.policy.strategy if self._recorded else "summary",
            self.draft.initial_pressure,
            after,
            self.draft.minimum_context(),
            compaction=compaction,
            pending_summary=None if self._recorded else pending,
            merge_ids=() if self._recorded else self._merge(),
            planned_changes=self._changes(pending, cut),
        )

    # ---------------------------------------------------------------------------------------------------------- cutting

    def _cut(self, tail: int) -> int:
        """Index of the first row that stays: the preserve window's, or a later boundary where the target would not
        hold; at the latest before the last exchange, or before the newest turn where that passes the threshold."""
        draft = self.draft
        boundaries = [n for n in draft.block_starts if draft.first_message < n <= draft.newest_turn_start]
        if not boundaries:
            return draft.first_message
        prefix = self._prefix_size()
        if self.policy.strategy == "deletion":
            found = draft.find_first_cut(boundaries, draft.limits.target, prefix)
            return boundaries[-1] if found is None else found
        asked = [n for n in boundaries if draft.rows[n].role == "user"]
        exchange = next((n for n in reversed(asked) if n < draft.newest_turn_start), boundaries[-1])
        later = [n for n in boundaries if tail <= n <= exchange]
        found = draft.find_first_cut(later, draft.limits.target, prefix) if later else None
        if found is not None:
            return found
        if tail > exchange:
            return tail
        return (
            exchange if draft.find_first_cut([exchange], draft.limits.threshold, prefix) is not None else boundaries[-1]
        )

    def _prefix_size(self) -> PromptSize:
        """About what stands before the tail at the least: summaries and protected results."""
        draft = self.draft
        tools = [n for n in range(len(draft.rows)) if draft.rows[n].name in draft.limits.protected_tools]
        last = {draft.rows[n].name: draft.sizes[n] for n in tools}
        tokens = self._summaries_tokens() + self._open_tokens()
        return sum_sizes(list(last.values())) + PromptSize(tokens, 4 * tokens)

    def _open_tokens(self) -> int:
        """What open requests will take, as far as they have room of their own."""
        wanted = {request.message_id for request in self.inputs.open_requests}
        size = sum_sizes(
            [
                self.draft.sizes[n]
                for n in find_user_messages(self.draft, self.draft.newest_turn_start)
                if self._origin(n) in wanted
            ]
        )
        return min(size.tokens, self.requests_room)

    def _origin(self, index: int) -> int:
        row = self.draft.rows[index]
        return int(row.metadata.get("carried_from") or row.id or 0)

    def _summaries_tokens(self) -> int:
        """About what all summaries take after this plan, merges included."""
        standing = min(
            count_section_tokens(self.sections, self.counter), max(0, self.summaries_room - self.new_section)
        )
        return standing + self.new_section + SECTION_TOKENS + CLOSING_TOKENS

    def _worth_it(self, leaving: tuple[object, ...], cut: int) -> bool:
        """Whether something leaves, and that is more than what takes its place."""
        gone = sum_sizes(self.draft.stored_sizes[self.draft.first_message : cut]).tokens
        return bool(leaving) and (self.trigger == "messages" or gone >= _LEAST_LEAVING)

    # -------------------------------------------------------------------------------------------------------- outlining

    def _pending(self, cut: int, leaving: RemovedRows) -> PendingSummary:
        draft = self.draft
        staying = sum_sizes(draft.sizes[cut:])
        copies = self._retained(cut, staying)
        before = [row for row in self.view.messages[: draft.first_message] if row.metadata.get("inherited")]
        inherited = tuple(row.in_timezone(draft.limits.zone) for row in before)
        in_view = {*copies.message_ids, *(row.id for row in draft.rows[cut:])}
        open_words = tuple(request.text for request in self.inputs.open_requests if request.message_id not in in_view)
        summary_input = SummaryInput(
            session=self.view.session,
            scope=self.view.scope,
            rows=with_changes_described((*inherited, *leaving.rows)),
            places=self.places,
            budget=min(self.budget, max(100, leaving.tokens // 2)),
            tasks=(*open_words, *self.inputs.tasks),
            earlier_summaries="\n\n".join(section.text for section in self.sections if section.text),
            known_facts=self.inputs.known_facts,
            focus=self.inputs.focus,
            restored_max_tokens=self.restored,
        )
        return PendingSummary(
            self.view.session,
            self.view.prefix_rev,
            self.trigger,
            summary_input,
            leaving,
            copies,
            tuple(self.sections),
            cut,
            sum_sizes(draft.stored_sizes[:cut]),
            draft,
            self.counter,
        )

    def _retained(self, cut: int, staying: PromptSize) -> RetainedRows:
        tokens = self._summaries_tokens()
        room = self.draft.free_tokens(staying + PromptSize(tokens, 4 * tokens), self.draft.limits.target)
        requests = [request.message_id for request in self.inputs.open_requests]
        newest = find_user_messages(self.draft, cut)
        if self.trigger == "messages":
            newest = newest[: self.policy.preserve_messages]
        most = self.policy.user_budget(self.draft.limits.budgets)
        order: Sequence[int] = newest
        if self.policy.strategy in ("sliding_window", "deletion"):
            order = ()
        elif self.policy.strategy == "selective":
            order = rank_by_information(self.draft, cut)
        bounds = RetentionLimits(room, most, self.requests_room)
        return choose_retained_rows(self.draft, cut, bounds, requests, order, self.places, self.now)

    def _merge(self) -> tuple[int, ...]:
        """The two oldest checkpoints, where another one would be too many or find no room."""
        live = sorted(self.inputs.checkpoints, key=lambda one: one.from_message_id)
        if len(live) < 2:
            return ()
        too_many = len(live) >= self.policy.max_checkpoints
        too_long = count_section_tokens(self.sections, self.counter) + self.new_section > self.summaries_room
        return (live[0].id, live[1].id) if too_many or too_long else ()

    # ---------------------------------------------------------------------------------------------------------- telling

    def _after(self, pending: PendingSummary, cut: int) -> Pressure:
        tokens = self._summaries_tokens() - (0 if self._recorded else self.budget - pending.summary_input.budget)
        size = pending.retained.size + PromptSize(tokens, 4 * tokens) + sum_sizes(self.draft.sizes[cut:])
        return self.draft.pressure(size)

    def _nothing(self) -> CompactionPlan:
        return CompactionPlan(
            self.view.session,
            self.view.prefix_rev,
            self.trigger,
            "",
            self.draft.initial_pressure,
            self.draft.initial_pressure,
            self.draft.minimum_context(),
        )

    def _changes(self, pending: PendingSummary, cut: int) -> tuple[PlannedChange, ...]:
        draft, copies = self.draft, pending.retained
        place = "a note of where the log has them" if self._recorded else f"a summary of at most {self.budget} tokens"
        changes = [
            PlannedChange(
                True, "older messages", f"replaced by {place}", len(pending.removed.rows), pending.removed.tokens
            )
        ]
        pictures = [medium for row in pending.removed.rows for medium in row.media if medium.kind == "image"]
        if pictures:
            changes.append(
                PlannedChange(True, "pictures", "named in the summary; the log keeps them", len(pictures), 0)
            )
        tools = len(carry_protected_results(draft, cut, self.now))
        words = len(copies.copies) - tools - len(copies.open_request_ids)
        for count, what, why in (
            (len(copies.open_request_ids), "open requests", "they are not done yet"),
            (words, "your earlier words and marks of stopped turns", "kept word for word, marked as history"),
            (tools, "results of protected tools", "compaction.protected_tools"),
        ):
            if count:
                changes.append(PlannedChange(False, what, why, count, 0))
        tail = sum_sizes(draft.sizes[cut:]).tokens
        changes.append(PlannedChange(False, "the newest messages", "not summarised", len(draft.rows) - cut, tail))
        standing = [section for section in self.sections if section.text]
        if standing:
            size = count_section_tokens(standing, self.counter)
            merges = self._merge() and not self._recorded
            why = "the two oldest become one first" if merges else "not summarised again"
            changes.append(PlannedChange(False, "earlier summaries", why, len(standing), size))
        return tuple(changes)
