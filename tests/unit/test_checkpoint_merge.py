"""What two neighbouring checkpoints are merged from."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from assistant.core.checkpoints import Checkpoint
from assistant.core.messages import Media
from assistant.core.records import LogRecord
from sleep.compaction.plan import collect_originals, collect_summaries
from sleep.compaction.render import make_sections
from sleep.compaction.validate import RESTORED_HEADING
from sleep.compaction.values import SummaryInput
from tests.support.summaries import COUNTER, count_text_tokens

NOW = datetime(2026, 3, 4, 9, 0, tzinfo=UTC)
TALK = "They talked about the harbour and the weather there, and about who would come along to the cabin. "


def checkpoint(number: int, first: int, last: int, text: str = "", **more: Any) -> Checkpoint:
    given: dict[str, Any] = {"tier": "full", "state": "absorbed", **more}
    return Checkpoint(
        number,
        "main",
        number,
        1,
        first,
        last,
        last - first + 1,
        text or f"Record {number}.",
        {},
        400,
        20,
        0.0,
        NOW,
        "sleep",
        scope="owner",
        from_seq=first,
        to_seq=last,
        **given,
    )


def material(everything: list[Checkpoint], *pair: Checkpoint, most: int = 2_000) -> SummaryInput:
    return collect_summaries(pair, everything, COUNTER, most, budget=200, restored=100)


def texts(*given: Any, most: int = 2_000) -> list[str]:
    return [row.content for row in material(*given, most=most).rows]


def test_f25_records_are_merged_from_the_first_summaries_of_originals_oldest_first() -> None:
    first, second, third = checkpoint(1, 1, 9), checkpoint(2, 10, 19), checkpoint(4, 20, 29, state="live")
    deep = checkpoint(3, 1, 19, "A record of records.", state="live", depth=2)
    everything = [first, second, deep, third]
    made = material(everything, deep, third)
    assert [row.content for row in made.rows] == ["Record 1.", "Record 2.", "Record 4."]
    assert (made.depth, made.budget, made.restored_max_tokens) == (2, 200, 100)
    # Not the person's words, and no message that could be looked up.
    assert {(row.role, row.id) for row in made.rows} == {("assistant", None)}


def test_what_was_merged_from_originals_stands_for_what_it_took_over() -> None:
    first, second, third = checkpoint(1, 1, 9), checkpoint(2, 10, 19), checkpoint(4, 20, 29, state="live")
    whole = checkpoint(3, 1, 19, state="live", depth=1)
    assert texts([first, second, whole, third], whole, third) == ["Record 3.", "Record 4."]


def test_checkpoints_follow_one_another_as_in_the_log_whatever_the_numbers_of_their_messages() -> None:
    # A message has its number when it is accepted, and its place in the log when its turn begins: what was said
    # between has higher numbers and comes before it.
    between = replace(checkpoint(1, 32, 32, state="live"), from_seq=13, to_seq=15)
    later = replace(checkpoint(2, 6, 36, state="live"), from_seq=16, to_seq=17)
    assert [section.from_id for section in make_sections([later, between])] == [32, 6]
    assert texts([later, between], between, later) == ["Record 1.", "Record 2."]


def test_only_what_covers_a_part_of_the_pair_is_merged() -> None:
    first, second = checkpoint(1, 10, 19, state="live"), checkpoint(2, 20, 29, state="live")
    others = [
        checkpoint(3, 1, 9),
        checkpoint(4, 30, 39),
        checkpoint(5, 10, 29, state="undone"),
        checkpoint(6, 10, 29, state="failed"),
        checkpoint(7, 10, 29, tier="floor"),
        replace(checkpoint(8, 10, 29), generation=2),
    ]
    assert texts([first, second, *others], first, second) == ["Record 1.", "Record 2."]


def test_f25_of_records_that_do_not_all_fit_the_oldest_are_told_by_their_own_lines() -> None:
    told = f"- Ticket QX-%03d was for Ada Berg.\n{TALK * 8}{RESTORED_HEADING}\n- #%d: cabin %d7"
    long = [checkpoint(n, n * 10, n * 10 + 9, told % (n, n * 10 + 3, n)) for n in range(1, 41)]
    deep = checkpoint(50, 10, 399, "A record of records.", state="live", depth=2)
    made = material([*long, deep], deep, long[-1], most=2_000)
    older, *whole = made.rows
    assert sum(count_text_tokens(row.content) for row in made.rows) <= 2_000
    assert [row.content for row in whole] == [one.summary for one in long[-len(whole) :]] and 2 <= len(whole) < 39
    before = "\n".join(one.summary for one in long[: -len(whole)])
    assert len(set(re.findall(r"QX-\d+", older.content))) > 2
    assert all(line.removeprefix("- ") in before for line in older.content.splitlines())


def test_originals_are_the_words_of_the_range_and_nothing_else_of_the_log() -> None:
    pair = (checkpoint(1, 10, 19), checkpoint(2, 20, 29))
    records = [
        record(9, "before"),
        record(10, "first"),
        record(14, "", role="assistant"),
        record(15, "found", role="tool"),
        record(16, "note", kind="edit"),
        record(17, "stopped", role="system"),
        record(29, "last"),
        record(30, "after"),
        record(20, "", media=(Media("image", "image/png", "boat.png"),)),
    ]
    found = [(row.id, row.content, len(row.media)) for row in collect_originals(records, pair)]
    assert found == [(10, "first", 0), (15, "found", 0), (29, "last", 0), (20, "", 1)]


def record(number: int, content: str, *, role: str = "user", kind: str = "message", **more: Any) -> LogRecord:
    return LogRecord(number, number, NOW, "main", 1, "owner", kind, role, content, "", "", **more)  # type: ignore[arg-type]
