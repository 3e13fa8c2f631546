"""The figures of a conversation that was held, beside their targets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.bench.figures import Row
from tests.study.baselines import SlidingWindow, replayed
from tests.study.conversation import StudyConversation
from tests.study.life import StudyRun
from tests.study.measure import MeasuredRequest, cached_share, fullest, usd, usd_per

MOST_PRESSURE, MOST_DEPTH = 0.80, 2
LEAST_ANSWERED, LEAST_CACHED = 0.99, 0.80
MOST_OF_SLIDING = 0.6
# Half of what the best other assistant billed for 400 turns at the same list prices.
MOST_USD, TURNS_OF_IT = 1.77, 400


def rows(figure: str, conversation: StudyConversation, held: StudyRun, window: int) -> Iterator[Row]:
    """All rows of one run. `figure` names it."""
    turns = len(conversation.turns)
    for measure, result, target, good in (
        *_safety(held, window),
        *_memory(conversation, held),
        *_compactions(held),
        *_money(conversation, held, window),
    ):
        yield Row(figure, 2 * turns, measure, result, target, good)


Line = tuple[str, str, str, bool | None]


def _safety(held: StudyRun, window: int) -> Iterator[Line]:
    most = fullest(held.seen, "chat", window, held.reserve)
    yield "fullest request", f"{most:.3f}", f"<= {MOST_PRESSURE:.2f}", most <= MOST_PRESSURE
    summaries = fullest(held.seen, "summary", window, held.reserve)
    yield "fullest request for a summary", f"{summaries:.3f}", "", None
    yield "refused by the strict server", _with_first(held.refused), "0", not held.refused
    yield "turns without an answer", _with_first(held.failed), "0", not held.failed


def _memory(conversation: StudyConversation, held: StudyRun) -> Iterator[Line]:
    places, facts = held.outcomes.places(), len(conversation.facts)
    answered = sum(places.values())
    share = answered / max(1, facts)
    yield "facts answered", f"{answered} of {facts}", f">= {LEAST_ANSWERED:.0%}", share >= LEAST_ANSWERED
    for place in ("summary", "view", "recalled", "searched"):
        yield f"of these, value was in: {place}", str(places.get(place, 0)), "", None
    tasks = sum(turn.kind == "done" for turn in conversation.turns)
    yield "finished tasks that the model knew of", f"{held.outcomes.closed} of {tasks}", "", None
    for fact in held.outcomes.missed[:12]:
        yield "missed", f"{fact.question} ({fact.value})", "", None


def _compactions(held: StudyRun) -> Iterator[Line]:
    made = [one for one in held.checkpoints if one.state in ("live", "absorbed", "masked", "undone")]
    for trigger in sorted({one.trigger for one in made}):
        tiers = sorted(one.tier for one in made if one.trigger == trigger)
        counted = ", ".join(f"{tiers.count(tier)} {tier}" for tier in dict.fromkeys(tiers))
        yield f"compactions, {trigger}", counted, "", None
    failed = sum(one.state == "failed" for one in held.checkpoints)
    yield "compactions that failed", str(failed), "", None
    depth = max((one.depth for one in made), default=0)
    yield "depth of summaries", str(depth), f"<= {MOST_DEPTH}", depth <= MOST_DEPTH


def _money(conversation: StudyConversation, held: StudyRun, window: int) -> Iterator[Line]:
    room = window - held.reserve
    halving = usd(replayed(conversation, held.outcomes, held.frame, SlidingWindow.halving(room)))
    creeping = usd(replayed(conversation, held.outcomes, held.frame, SlidingWindow.creeping(room)))
    total = usd(held.seen)
    yield "billed in all", f"${total:.2f}", f"<= {MOST_OF_SLIDING} of sliding", total <= MOST_OF_SLIDING * halving
    yield "sliding window that drops to half", f"${halving:.2f} ({total / halving:.2f} of it)", "", None
    yield "sliding window, message by message", f"${creeping:.2f} ({total / creeping:.2f} of it)", "", None
    yield "of all, conversation", _bill(held.seen, "chat"), "", None
    yield "of all, summaries", _bill(held.seen, "summary"), "", None
    yield "of all, extraction", _bill(held.seen, "extraction"), "", None
    share = cached_share(held.seen)
    yield "read from the cache, between compactions", f"{share:.1%}", f">= {LEAST_CACHED:.0%}", share >= LEAST_CACHED
    blocks = usd_per(held.seen, len(conversation.turns), TURNS_OF_IT)
    if blocks:
        mean = sum(blocks) / len(blocks)
        each = " ".join(f"{block:.2f}" for block in blocks)
        what = f"per {TURNS_OF_IT} turns, mean of {each}"
        yield what, f"${mean:.2f}", f"<= ${MOST_USD:.2f}", mean <= MOST_USD


def _bill(seen: Sequence[MeasuredRequest], purpose: str) -> str:
    of_it = [one for one in seen if one.purpose == purpose]
    read, written = (sum(getattr(one.usage, kind) for one in of_it) for kind in ("cache_read", "cache_write"))
    fresh, output = sum(one.usage.input for one in of_it), sum(one.usage.output for one in of_it)
    return (
        f"${usd(of_it):.2f}, {len(of_it):,} requests; thousands of tokens: {read // 1000:,} read, "
        f"{written // 1000:,} written, {fresh // 1000:,} fresh, {output // 1000:,} out"
    )


def _with_first(lines: Sequence[str]) -> str:
    return f"{len(lines)}: {lines[0]}" if lines else "0"
