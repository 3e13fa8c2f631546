"""What docs/compaction.md promises of a compaction holds with the settings as they are shipped, in windows of 16,000 to
a million tokens: the window of newest messages, the person's own words, the target, the room for the answer.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assistant.context.economy import ContextState, EconomyMode, economic_size
from assistant.context.pressure import PromptSize, effective_budgets
from assistant.context.structure import block_starts
from assistant.core.messages import Message, ToolCall
from assistant.core.model_api import ModelLimits
from assistant.settings.home import Home
from assistant.settings.settings import load_settings
from assistant.wire.turns import compaction_policy
from sleep.compaction.draft_view import is_said_by_person
from sleep.compaction.planner import plan_compaction
from sleep.compaction.values import CompactionInputs, CompactionLimits, Summary
from tests.support.conversation_strategies import COUNTER, PROTECTED, apply_plan, numbered, places_of, view_of

NOW = datetime(2026, 11, 21, 3, 30, tzinfo=UTC)
SHIPPED = load_settings(Home(Path("/nonexistent")), {}).values
POLICY = compaction_policy(SHIPPED)
WINDOWS = (16_000, 32_000, 160_000, 1_000_000)
SENTENCES = (
    "The harbour office opens at nine and Anna has the keys. ",
    "Das Hafenamt öffnet um neun, und Anna hat die Schlüssel dafür. ",
    "Le bureau du port ouvre à neuf heures, Anna a les clés. ",
    "Контора порта открывается в девять, ключи лежат у Анны дома. ",
    "港の事務所は九時に開きます。鍵はアンナが持っています。",
    "يفتح مكتب الميناء في التاسعة والمفاتيح مع آنا. ",
)
# The same for each test, so that a conversation is compacted once.
many = settings(max_examples=30, deadline=None, database=None, derandomize=True)
seeds = st.integers(0, 40)


def terms_of(window: int, frame: int = 3_000) -> CompactionLimits:
    """As the runtime makes them of the shipped settings, for a model with this window; rules and tools take as much as
    they do, and memory more in a larger window."""
    context = SHIPPED.context
    budgets = effective_budgets(
        ModelLimits(window, 8_192, 32_000_000, 100),
        max_context_tokens=window,
        reserve_tokens=context.reserve_tokens,
        max_request_bytes=context.max_request_bytes,
        max_images=context.max_images,
    )
    return CompactionLimits(
        budgets,
        COUNTER,
        fixed=PromptSize(min(8_000, frame + window // 100), 20_000),
        target=context.target,
        threshold=context.emergency_threshold,
        protected_tools=frozenset({PROTECTED}),
    )


def conversation(window: int, seed: int) -> list[Message]:
    """A conversation that fills half to nine tenths of the window: talk, long answers, pasted texts, tools."""
    chance = random.Random(seed)
    total, used, rows = int(chance.uniform(0.5, 0.9) * window), 0, list[Message]()
    longest = window // chance.choice([25, 60])
    person, assistant, tool = (chance.choice([0.05, 0.2, 1.0]) for _ in range(3))

    def text(share: float) -> str:
        sentence = chance.choice(SENTENCES)
        return sentence * max(1, int(chance.random() * share * longest / COUNTER.count_text(sentence)))

    while used < total:
        number = len(rows)
        rows.append(Message("user", f"Request {number}. {text(person)}"))
        if chance.random() < 0.3:
            call = ToolCall(f"call_{number}", chance.choice(["read_file", PROTECTED]), {"n": number})
            rows.append(Message("assistant", "", tool_calls=(call,), model="m"))
            output = text(tool if call.name == "read_file" else 0.02)
            rows.append(Message("tool", output, tool_call_id=call.id, name=call.name))
        rows.append(Message("assistant", f"Answer {number}. {text(assistant)}", model="m"))
        used += sum(COUNTER.count_message(row) for row in rows[number:])
    return numbered([*rows, Message("user", "And now?"), Message("assistant", "Now we rest.", model="m")])


@dataclass(frozen=True)
class Compacted:
    """A view after a compaction at night, with a summary as long as it may be."""

    rows: list[Message]  # before
    left: tuple[Message, ...]
    terms: CompactionLimits

    @property
    def prompt_tokens(self) -> int:
        tokens = sum(COUNTER.count_message(row) for row in self.left)
        return COUNTER.corrected(tokens + self.terms.fixed.tokens)

    @property
    def tail(self) -> list[Message]:
        return [row for row in self.left if row.id is not None]

    @property
    def restored_room(self) -> int:
        """What is left free for what the check of a summary may append, and for rounding."""
        return POLICY.restored_budget(self.terms.budgets) + 200

    @property
    def window_start(self) -> int:
        """Index of the first message of the last 20, or the last fifth of the context, whichever are more."""
        room, by_weight = SHIPPED.context.preserve_share * self.terms.budgets.tokens, len(self.rows)
        for row in reversed(self.rows):
            room -= COUNTER.corrected(COUNTER.count_message(row))
            if room < 0:
                break
            by_weight -= 1
        first = max(0, min(by_weight, len(self.rows) - SHIPPED.context.preserve_messages))
        return max(start for start in block_starts(self.rows) if start <= first)


def compact(rows: list[Message], window: int, frame: int = 3_000) -> Compacted | None:
    """None where it gains nothing."""
    return compact_by(rows, terms_of(window, frame))


def compact_by(rows: list[Message], terms: CompactionLimits) -> Compacted | None:
    policy = replace(POLICY, strategy="summary")
    plan = plan_compaction(view_of(rows), places_of(rows), terms, policy, CompactionInputs(), NOW, trigger="sleep")
    if plan.pending_summary is None:
        return None
    text = "word " * (plan.pending_summary.summary_input.budget * 10 // 3 // 5)
    done = plan.pending_summary.complete(Summary(text, "full", COUNTER.count_text(text)), NOW)
    return Compacted(rows, apply_plan(replace(plan, compaction=done), rows), terms)


@cache
def compacted(window: int, seed: int) -> Compacted | None:
    return compact(conversation(window, seed), window)


def own_words(rows: Sequence[Message], left: Sequence[Message]) -> tuple[list[Message], list[Message]]:
    """What the person said, and what of it stands whole in what is left."""
    said = [row for row in rows if is_said_by_person(row)]
    words = {row.id or row.metadata["carried_from"]: row.content for row in left if is_said_by_person(row)}
    return said, [row for row in said if words.get(row.id or 0) == row.content]


@pytest.mark.parametrize("window", WINDOWS)
@many
@given(seed=seeds)
def test_the_target_holds_and_the_room_for_the_answer_is_free(window: int, seed: int) -> None:
    found = compacted(window, seed)
    if found is not None:
        assert found.prompt_tokens <= SHIPPED.context.target * window
        assert found.prompt_tokens + found.terms.budgets.reserve < SHIPPED.compaction.sleep_threshold * window


@pytest.mark.parametrize("window", WINDOWS)
@many
@given(seed=seeds)
def test_the_persons_own_words_stay_newest_first_up_to_their_limit(window: int, seed: int) -> None:
    found = compacted(window, seed)
    if found is None:
        return
    said, whole = own_words(found.rows, found.left)
    assert whole == said[len(said) - len(whole) :]
    if len(whole) < len(said):
        next_one = COUNTER.count_message(said[len(said) - len(whole) - 1])
        tokens = next_one + sum(map(COUNTER.count_message, whole))
        full = found.prompt_tokens + next_one + found.restored_room > SHIPPED.context.target * window
        # In the smallest window rules and tools leave less room below the target than the limit.
        assert tokens > POLICY.user_budget(found.terms.budgets) or (window == 16_000 and full)


@pytest.mark.parametrize("window", WINDOWS)
@many
@given(seed=seeds)
def test_the_window_of_newest_messages_is_kept_or_as_much_of_it_as_fits_beside_the_own_words(
    window: int, seed: int
) -> None:
    found = compacted(window, seed)
    if found is None:
        return
    assert [row.id for row in found.tail] == [row.id for row in found.rows[len(found.rows) - len(found.tail) :]]
    start = len(found.rows) - len(found.tail)
    block = [n for n in block_starts(found.rows) if n < start][-1]
    before = [row for row in found.rows[block:start] if row.role != "user"]
    if start <= found.window_start or not before:
        return
    # Some of the window had to leave: one block more would not fit, were all long texts references.
    reference = max(100, 400 * min(window, 160_000) // 160_000)
    rest = [row for row in found.tail[:-2] if row.role != "user" and not row.tool_calls and row.name != PROTECTED]
    longer = [COUNTER.count_text(row.content) - reference for row in rest]
    could_be_saved = sum(tokens for tokens in longer if tokens > reference)
    more = sum(min(COUNTER.count_message(row), 2 * reference) for row in before)
    assert found.prompt_tokens - could_be_saved + more + found.restored_room > SHIPPED.context.target * window


@pytest.mark.parametrize("window", WINDOWS)
def test_in_an_everyday_conversation_the_whole_window_and_the_own_words_stay_together(window: int) -> None:
    """Long answers to short questions: more than the target holds, but for their references. In the smallest window
    that takes few tools."""
    share = window // 160
    question, answer = (
        "Where is the key? " * max(1, share // 30),
        "It is with Anna at the harbour. " * max(1, share // 4),
    )
    exchange = [Message("user", question), Message("assistant", answer, model="m")]
    rows = numbered(exchange * (int(0.7 * window) // sum(COUNTER.count_message(row) for row in exchange)))
    found = compact(rows, window, frame=1_000 if window == 16_000 else 3_000)
    assert found is not None and found.prompt_tokens <= SHIPPED.context.target * window
    assert len(found.tail) >= 20 and len(found.rows) - len(found.tail) <= found.window_start
    own = sum(COUNTER.count_message(row) for row in found.left if is_said_by_person(row))
    total = sum(COUNTER.count_message(row) for row in found.rows if is_said_by_person(row))
    assert own >= min(total, POLICY.user_budget(found.terms.budgets)) - COUNTER.count_message(exchange[0])


def economy_terms(rows: list[Message], window: int, mode: EconomyMode) -> CompactionLimits:
    """As `ContextEconomy` makes them: those of the small context that economy plans for."""
    terms = terms_of(window)
    small = replace(terms.budgets, tokens=min(window, 20_000))
    state = ContextState(
        prompt=window,
        frame=COUNTER.corrected(terms.fixed.tokens),
        recent=COUNTER.corrected(sum(map(COUNTER.count_message, rows[-SHIPPED.context.preserve_messages :]))),
        window=terms.budgets.tokens,
        target=terms.target,
        summary=POLICY.summary_budget(small) + POLICY.restored_budget(small),
    )
    size = economic_size(state, mode)
    budgets = terms.budgets
    return replace(terms, budgets=replace(budgets, tokens=size, reserve=budgets.reserve * size // budgets.tokens))


@pytest.mark.parametrize("mode", ["balanced", "thrifty"])
@pytest.mark.parametrize("window", WINDOWS)
@many
@given(seed=seeds)
def test_under_economy_the_own_words_stand_as_in_a_window_of_the_size_that_it_plans_for(
    window: int, mode: EconomyMode, seed: int
) -> None:
    rows = conversation(min(window, 32_000), seed)
    terms = economy_terms(rows, window, mode)
    found = compact_by(rows, terms)
    if found is None:
        return
    size = terms.budgets.tokens
    assert [row.id for row in found.tail] == [row.id for row in rows[len(rows) - len(found.tail) :]]
    assert len(found.tail) >= 2
    said, whole = own_words(rows, found.left)
    assert whole == said[len(said) - len(whole) :]
    if len(whole) < len(said):
        next_one = COUNTER.count_message(said[len(said) - len(whole) - 1])
        tokens = next_one + sum(map(COUNTER.count_message, whole))
        full = found.prompt_tokens + next_one + found.restored_room > SHIPPED.context.target * size
        assert tokens > POLICY.user_budget(terms.budgets) or full
