"""Many compactions of one conversation: summaries stay few and shallow, and what they restored keeps its source."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from assistant.core.checkpoints import Checkpoint
from assistant.core.messages import Message
from assistant.core.model_api import ModelRequest
from sleep.compaction.deps import SUMMARY_BREAKER
from sleep.compaction.validate import RESTORED_HEADING
from tests.support.compaction_app import app_with_long_messages, checkpoints_in, summary_writer
from tests.support.imports import import_messages
from tests.support.running_app import LiveApp, run_app, use_model
from tests.support.scripted import ScriptedModel

WALK = "I went along the shore and back over the hill today. " * 60
# The home's own instructions for records of records, so that they can be told from others.
MERGING = "Answer in a <summary>. These are records. Make one of $budget tokens of them."
TWO = {"ASSISTANT_COMPACTION__MAX_CHECKPOINTS": "2"}
GJEVING = "The harbour is called Gjeving."
_LINE = re.compile(r"- #(\d+): ([^#]+)")


class DetailKeepingWriter:
    """Writes summaries that keep nothing but their own number, and of all that was said one name."""

    def __init__(self, window: int) -> None:
        self.model = summary_writer(self.write, window=window)

    def write(self, request: ModelRequest) -> str:
        number = len(self.model.requests)
        told = GJEVING if GJEVING in self.asked[-1] else ""
        return f"<summary>\nRecord {number:03d}: they talked about this and that as they do. {told}\n</summary>"

    @property
    def asked(self) -> list[str]:
        """The words of each call."""
        return ["\n".join(message.content for message in one.messages) for one in self.model.requests]

    @property
    def merging(self) -> list[str]:
        """The words of each call that made one record of several."""
        asked = zip(self.model.requests, self.asked, strict=True)
        return [words for one, words in asked if "These are records." in one.system[0].text]


@asynccontextmanager
async def years(
    home: Path, by: DetailKeepingWriter, rounds: int, context: int = 16_700, **environ: str
) -> AsyncIterator[LiveApp]:
    """A conversation of notes each of which names a ticket, through that many compactions at night."""
    (home / "prompts").mkdir()
    (home / "prompts" / "summary_merge.md").write_text(MERGING, "utf-8")
    small = {"ASSISTANT_CONTEXT__MAX_CONTEXT_TOKENS": str(context)}
    async with run_app(home, model=ScriptedModel("Fine.", window=200_000), writer=by.model, **small, **environ) as it:
        await it.say("Hello there.")
        await it.wait_idle()
        for number in range(rounds):
            await fill(it, number * 100, context)
        yield it


async def fill(it: LiveApp, first: int, context: int = 16_700, session: str = "main") -> None:
    """Notes until a sleep would compact, and that sleep."""
    for number in range(first, first + context // 1_000):
        note = Message("user", f"On day {number} the ticket was QX-{number:04d}, see #{number + 3}. {WALK}")
        import_messages(it.app.stores.conversation, session, "owner", [note, Message("assistant", "Fine.")], it.clock())
    outcome = await it.app.contexts.compaction.compact_in_sleep(session, "sleep")
    assert outcome is not None and outcome.checkpoints[-1].tier == "full" and not outcome.checkpoints[-1].is_merge


def kept(it: LiveApp, session: str = "main") -> list[Checkpoint]:
    """All that cover a range, in the order of their ranges."""
    found = [one for one in it.app.stores.conversation.checkpoints(session) if one.state in ("live", "absorbed")]
    return in_order(found)


def in_order(found: list[Checkpoint]) -> list[Checkpoint]:
    return sorted(found, key=lambda one: (one.from_message_id, one.to_message_id))


@pytest.mark.parametrize("context", [16_700, 32_000])
async def test_f25_summaries_stay_few_and_shallow_and_what_they_restored_keeps_its_number(
    tmp_path: Path, context: int
) -> None:
    async with years(tmp_path, DetailKeepingWriter(8_000), 12, context) as it:
        merges = [one for one in kept(it) if one.is_merge]
        assert len(kept(it)) - len(merges) == 12 and len(merges) >= 6
        assert 2 <= len(checkpoints_in(it)) <= 5 and {one.depth for one in merges} == {2}
        assert {one.depth for one in kept(it) if not one.is_merge} == {1}
        (summary,) = [row for row in it.app.stores.conversation.load_view("main").messages if row.is_summary]
        assert summary.metadata["from_message_id"] == 1
        said = {row.id: row.content for row in it.app.stores.history.recent("owner", limit=1_000)}
        for one in kept(it):
            restored = one.key_facts["restored"]
            assert restored and one.summary.count(RESTORED_HEADING) == 1
            for line in restored:
                told = _LINE.fullmatch(line)
                assert told is not None and RESTORED_HEADING not in line, line
                number = int(told[1])
                assert one.from_message_id <= number <= one.to_message_id and told[2] in said[number]


async def test_f25_a_merge_is_made_of_the_original_messages_where_they_fit_one_call(tmp_path: Path) -> None:
    by = DetailKeepingWriter(400_000)
    async with years(tmp_path, by, 5) as it:
        merges = [one for one in kept(it) if one.is_merge]
        assert merges and {one.depth for one in merges} == {1} and by.merging == []
        assert any("QX-0000" in words and "QX-0100" in words for words in by.asked)


async def test_who_summarises_reads_the_days_of_the_home(tmp_path: Path) -> None:
    """It is nine in the morning of 1 March in UTC."""
    by = DetailKeepingWriter(400_000)
    async with years(tmp_path, by, 5, ASSISTANT_HOME__TIMEZONE="Pacific/Honolulu") as it:
        assert [one for one in kept(it) if one.is_merge]
        dates = {date for words in by.asked for date in re.findall(r"^#\d+ ([\d-]+ \d\d):\d\d ", words, re.MULTILINE)}
        assert dates == {"2026-02-28 23"}
        assert {one.key_facts["since"] for one in kept(it)} == {"2026-02-28"}


async def test_f25_where_the_originals_are_too_long_only_records_of_originals_are_merged(tmp_path: Path) -> None:
    by = DetailKeepingWriter(8_000)
    async with years(tmp_path, by, 9) as it:
        deep = {number for one in kept(it) if one.depth == 2 for number in records(one)}
        first = [number for one in kept(it) if one.depth == 1 for number in records(one)]
        assert len(deep) >= 3 and len(by.merging) >= 3
        for words in by.merging:
            found = re.findall(r"Record (\d+)", words.partition("The records:")[2])
            assert found and found == first[: len(found)] and not deep & set(found)


def records(one: Checkpoint) -> list[str]:
    """The numbers by which its writer told its parts from the others."""
    return re.findall(r"Record (\d+)", one.summary)


async def test_what_was_taken_back_does_not_come_back_with_the_originals(tmp_path: Path) -> None:
    by = DetailKeepingWriter(400_000)
    async with years(tmp_path, by, 0) as it:
        await it.say("The wrong ticket is QX-9999.")
        await it.wait_idle()
        await it.app.commands.run("/undo", "main")
        for number in range(5):
            await fill(it, number * 100)
        assert any(one.is_merge and one.depth == 1 and one.from_message_id == 1 for one in kept(it))
        assert not any("QX-9999" in words for words in by.asked)


async def test_originals_are_read_to_their_end_however_many_they_are(tmp_path: Path) -> None:
    by = DetailKeepingWriter(400_000)
    async with years(tmp_path, by, 0, 100_000, ASSISTANT_CONTEXT__PRESERVE_SHARE="0", **TWO) as it:
        for first in (0, 1_000, 2_000):
            rows = [Message("user" if n % 2 else "assistant", f"ticket QX-{first + n:04d}") for n in range(700)]
            import_messages(it.app.stores.conversation, "main", "owner", rows, it.clock())
            await it.app.commands.run("/compact", "main")
        (merge,) = [one for one in kept(it) if one.is_merge]
        assert merge.messages_compressed > 1_300 and merge.depth == 1
        (asked,) = [words for words in by.asked if "QX-0000" in words and "QX-1001" in words]
        numbers = [int(one) for one in re.findall(r"^#(\d+) ", asked, re.MULTILINE)]
        assert numbers == list(range(merge.from_message_id, merge.to_message_id + 1))


async def test_what_a_branch_inherited_outlasts_merges(tmp_path: Path) -> None:
    """Its words are in the first summary of the branch, and in no message that this one covers."""
    by = DetailKeepingWriter(400_000)
    async with years(tmp_path, by, 0, **TWO) as it:
        await it.say(GJEVING)
        await it.wait_idle()
        await it.app.commands.run("/branch", "main")
        for first in (0, 100, 200):
            await fill(it, first, session="branch:1")
        first, merge, *_ = kept(it, "branch:1")
        assert (
            merge.is_merge
            and merge.depth == 2
            and all(f"Record {number}" in by.merging[0] for number in records(first))
        )
        assert GJEVING in first.summary and GJEVING in merge.summary


async def test_records_without_words_are_merged_without_a_model(tmp_path: Path) -> None:
    """What left at the floor has no summary to be merged, and its originals are too long for a call."""
    by = DetailKeepingWriter(4_000)
    async with years(tmp_path, by, 0) as it:
        large = it.app.models.answering
        use_model(it.app, ScriptedModel("Yes.", window=2_300, name="small-1"))
        for number in range(8):
            await it.say(f"Long ago, on day {number}. {WALK}")
            await it.wait_idle()
        assert [one.tier for one in checkpoints_in(it)] == ["floor"] * 5 and by.asked == []
        use_model(it.app, large)
        await it.say("Hello.")
        await it.wait_idle()
        for number in range(3):
            await fill(it, number * 100)
        first, *_ = in_order(checkpoints_in(it))
        told = next(one for one in in_order(checkpoints_in(it)) if one.tier == "full")
        assert (first.tier, first.is_merge, first.from_message_id) == ("floor", True, 1) and len(
            checkpoints_in(it)
        ) <= 5
        (row,) = [one for one in it.app.stores.conversation.load_view("main").messages if one.is_summary]
        assert f"messages, #1 to #{told.from_message_id - 1} " in row.content and "without a summary" in row.content

        await fill(it, 300)
        whole = in_order(checkpoints_in(it))[0]
        assert (whole.tier, whole.is_merge, whole.from_message_id) == ("full", True, 1)
        # Whatever was merged since, what has no words was given to no model.
        assert not any("Long ago" in asked or "without a summary" in asked for asked in by.merging)
        assert it.app.stores.breakers.get(SUMMARY_BREAKER).failures == 0


@pytest.mark.parametrize("strategy", ["sliding_window", "deletion"])
async def test_records_never_stand_in_greater_number_than_summaries_may(tmp_path: Path, strategy: str) -> None:
    chosen = {"ASSISTANT_COMPACTION__STRATEGY": strategy, "ASSISTANT_COMPACTION__MAX_CHECKPOINTS": "3"}
    async with app_with_long_messages(tmp_path, 240, **chosen) as it:
        every = it.app.stores.conversation.checkpoints("main")
        assert len([one for one in every if one.state == "absorbed"]) > 2
        assert 0 < len(checkpoints_in(it)) <= 3
        view = it.app.stores.conversation.load_view("main")
        assert sum(row.is_summary for row in view.messages) == 1
