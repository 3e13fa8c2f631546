"""The rows of the tables, made of what the child processes measured. Pure.

Recall is the share of a question's evidence that is found, its mean over the questions that have evidence; targets hold
for questions that the conversation answers (all but the adversarial ones).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean, median
from typing import Any

from tests.bench.figures import Row, percentile, spread
from tests.recall_bench.dataset import ADVERSARIAL
from tests.recall_bench.many import FACTS, MEMORIES
from tests.recall_bench.turns import BUDGET, DEPTHS

TURNS, TURNS_UNSEEN = (74.0, 82.0, None, 92.5), (74.0, 82.0, None, 92.0)
"""Least recall at each depth, in per cent: of all conversations, of those on which nothing was chosen."""

GENERATED = {
    "assistant-unseen": (55.0, None, None, 73.0),
    "friends-unseen": (41.0, None, None, 64.0),
    "months": (74.0, None, None, 92.0),
}
SESSIONS, WITHIN_BUDGET = 96.0, 90.0
UNRELATED = 5.0
P50_MS, P95_MS, ADDED_MB, APPEND_MS = 5.0, 12.0, 100.0, 2.0

Question = dict[str, Any]


def turns(part: str, found: Sequence[dict[str, Any]]) -> Iterator[Row]:
    every = [question for one in found for question in one["asked"]]
    if not every:
        yield Row(part, None, "questions with evidence", "none")
        return
    answerable = [question for question in every if question["kind"] != ADVERSARIAL]
    least = _least(part)
    for place, depth in enumerate(DEPTHS):
        yield _at_least(
            part, f"recall@{depth} of {len(answerable)} questions", _of(answerable, "turns", place), least[place]
        )
    aimed = bool(any(least)) and part not in GENERATED
    yield _at_least(part, "sessions@10", _of(answerable, "sessions"), SESSIONS if aimed else None)
    yield Row(part, None, "questions with one of their sessions@10", _per_cent(_of(answerable, "reached")))
    quoted, whole = _of(answerable, "quoted"), _of(answerable, "whole")
    yield _at_least(part, f"within {BUDGET:,} tokens, as excerpts", quoted, WITHIN_BUDGET if aimed else None)
    yield Row(part, None, f"within {BUDGET:,} tokens, messages whole", _per_cent(whole))
    if len(every) > len(answerable):
        yield Row(part, None, f"{_depths()} with adversarial ones ({len(every)})", _shares(every, "turns"))
    for kind in sorted({question["kind"] for question in every}):
        some = [question for question in every if question["kind"] == kind]
        yield Row(part, None, f"{_depths()} {kind} ({len(some)})", _shares(some, "turns"))
        lines = fmean(one["lines"] for one in some)
        yield Row(part, None, f"shown by the tool, {kind}", f"{_of(some, 'shown'):.1f} % in {lines:.1f} messages")
    yield Row(part, None, "a search with 50 excerpts, p50 / p95 / p99", spread([one["seconds"] for one in every]))
    indexed = [seconds for one in found for seconds in one["indexed"]]
    yield Row(part, None, "a message indexed, p50 / p95 / p99", spread(indexed))


def unasked(
    part: str,
    found: Sequence[dict[str, Any]],
    entries_of: str = "entries in a journal",
    most_chatter: float = UNRELATED,
) -> Iterator[Row]:
    def share(some: str, of: str) -> float:
        return 100 * sum(one[some] for one in found) / (sum(one[of] for one in found) or 1)

    entries = [one["entries"] for one in found]
    yield Row(part, None, entries_of, f"{min(entries)} to {max(entries)}")
    yield Row(part, None, "own questions that bring something to mind", _per_cent(share("brought", "own")))
    yield Row(part, None, "own questions that bring what answers them", _per_cent(share("right", "own")))
    for what, some, of, most in (
        (f"questions of other people, of {sum(one['strange'] for one in found)}", "unrelated", "strange", UNRELATED),
        ("lines about nothing", "chatter", "lines", most_chatter),
    ):
        value = share(some, of)
        yield Row(part, None, what, _per_cent(value), f"<= {most:.0f} %", value <= most)
    yield Row(part, None, "those questions with these people's names", _per_cent(share("renamed", "strange")))
    yield Row(part, None, "a look, p50 / p95 / p99", spread([one for each in found for one in each["seconds"]]))


def learned(part: str, found: Sequence[dict[str, Any]]) -> Iterator[Row]:
    answerable = [question for one in found for question in one["asked"] if question["kind"] != ADVERSARIAL]
    noted, entries, memories = (sum(one[key] for one in found) for key in ("noted", "entries", "memories"))
    yield Row(part, None, "observations / entries / memories", f"{noted} / {entries} / {memories}")
    if not answerable:
        return
    yield Row(part, None, "turns that a memory was made of: the most there is", _per_cent(_of(answerable, "most")))
    yield Row(part, None, f"{_depths()}, nearest in Mem0", _shares(answerable, "nearest"))
    yield Row(part, None, f"{_depths()}, search engine over memories", _shares(answerable, "engine"))
    seconds = sum(one["seconds"] for one in found)
    yield Row(part, None, "entries consolidated a second, start of Mem0 included", f"{entries / seconds:.0f}")


def many(built: dict[str, Any], found: dict[str, Any]) -> list[Row]:
    asked = found["asked"]
    p50, p95 = (1000 * percentile(asked, share) for share in (0.5, 0.95))
    append = 1000 * median(found["appended"])
    each, megabytes = 1000 * built["seconds"] / MEMORIES, built["bytes"] / 1e6
    rows = [
        ("a question, p50", f"{p50:.1f} ms", f"<= {P50_MS:.0f} ms", p50 <= P50_MS),
        ("a question, p95", f"{p95:.1f} ms", f"<= {P95_MS:.0f} ms", p95 <= P95_MS),
        ("of it processor time, p50 / p95 / p99", spread(found["processor"]), "", None),
        (
            "resident memory it adds",
            f"{found['added_mb']:.0f} MB",
            f"<= {ADDED_MB:.0f} MB",
            found["added_mb"] <= ADDED_MB,
        ),
        ("a new memory, median of the last", f"{append:.2f} ms", f"<= {APPEND_MS:.0f} ms", append <= APPEND_MS),
        ("a new memory, p50 / p95 / p99", spread(found["appended"]), "", None),
        ("a memory, indexed in batches", f"{each:.2f} ms", "", None),
        ("opened, the first question answered", f"{found['opened']:.2f} s", "", None),
        ("on disk", f"{megabytes:.0f} MB", "", None),
        (f"recall@10 of {FACTS} planted facts", _per_cent(100 * found["found"]), "", None),
    ]
    return [Row("memories", MEMORIES, *row) for row in rows]


def _least(part: str) -> tuple[float | None, ...]:
    """Targets of a part; none where parameters were chosen."""
    if part in GENERATED:
        return GENERATED[part]
    if part == "all":
        return TURNS
    return TURNS_UNSEEN if part[0].isdigit() and not part.startswith("1-") else (None,) * len(DEPTHS)


def _at_least(part: str, measure: str, value: float, least: float | None) -> Row:
    if least is None:
        return Row(part, None, measure, _per_cent(value))
    return Row(part, None, measure, _per_cent(value), f">= {least:g} %", value >= least)


def _of(questions: Sequence[Question], key: str, place: int | None = None) -> float:
    if not questions:
        return 0.0
    return 100 * fmean(one[key] if place is None else one[key][place] for one in questions)


def _shares(questions: Sequence[Question], key: str) -> str:
    return " / ".join(f"{_of(questions, key, place):.1f}" for place in range(len(DEPTHS))) + " %"


def _depths() -> str:
    return "recall@" + "/".join(map(str, DEPTHS))


def _per_cent(value: float) -> str:
    return f"{value:.1f} %"
