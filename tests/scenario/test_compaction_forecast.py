"""`/compact --dry-run` says what `/compact` then does, on the same view and in the same numbers; a compaction and its
undo go by one number.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from assistant.core.errors import UsageError
from tests.support.compaction_app import LONG_MESSAGE, SMALL_CONTEXT, checkpoints_in, summary_writer
from tests.support.running_app import LiveApp, run_app
from tests.support.scripted import ScriptedModel

_SIZES = re.compile(r"[\d,]+ tokens become .*? of the context of [\d,]+ becomes .*?%\.")


async def _walk(it: LiveApp, walks: int, text: str = LONG_MESSAGE) -> None:
    for number in range(walks):
        await it.say(f"walk {number}: {text}")
        await it.wait_idle()


async def _sentences(it: LiveApp) -> tuple[str, str]:
    """What the dry run says of sizes, and what the compaction says then."""
    state = it.app.stores.conversation.load_view("main"), it.app.stores.conversation.checkpoints("main")
    forecast = await it.app.commands.run("/compact --dry-run", "main")
    assert (it.app.stores.conversation.load_view("main"), it.app.stores.conversation.checkpoints("main")) == state
    told = await it.app.commands.run("/compact", "main")
    compacted = re.search(r"\d+ messages \(.*?\)", told)
    assert compacted is not None and f"This would compact {compacted[0]}:" in forecast
    return _SIZES.findall(forecast)[0], _SIZES.findall(told)[0]


def _numbers(sentence: str) -> list[int]:
    return [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", sentence)]


@pytest.mark.parametrize("strategy", ["hybrid", "sliding_window", "deletion", "selective"])
async def test_without_a_model_the_forecast_is_the_result(tmp_path: Path, strategy: str) -> None:
    small = {**SMALL_CONTEXT, "ASSISTANT_COMPACTION__STRATEGY": strategy}
    async with run_app(tmp_path, model=ScriptedModel("A fine walk.", window=200_000), **small) as it:
        await _walk(it, 22)
        forecast, told = await _sentences(it)
        assert forecast == told


async def test_with_merges_of_summaries_the_forecast_is_the_result(tmp_path: Path) -> None:
    two = {**SMALL_CONTEXT, "ASSISTANT_COMPACTION__MAX_CHECKPOINTS": "2"}
    async with run_app(tmp_path, model=ScriptedModel("A fine walk.", window=200_000), **two) as it:
        for _ in range(3):
            await _walk(it, 16)
            forecast, told = await _sentences(it)
            assert forecast == told
        assert any(checkpoint.is_merge for checkpoint in it.app.stores.conversation.checkpoints("main"))


async def test_the_numbers_and_the_percent_of_a_forecast_agree(tmp_path: Path) -> None:
    async with run_app(tmp_path, model=ScriptedModel("A fine walk.", window=200_000), **SMALL_CONTEXT) as it:
        await _walk(it, 22)
        sentence, _ = await _sentences(it)
        before, after, saved, reserve, share_before, context, share_after = _numbers(sentence)
        assert (
            before - after,
            round(100 * (before + reserve) / context),
            round(100 * (after + reserve) / context),
        ) == (
            saved,
            share_before,
            share_after,
        )


async def test_a_summary_by_a_model_comes_to_no_more_than_the_forecast(tmp_path: Path) -> None:
    by, model = summary_writer(), ScriptedModel("A fine walk.", window=200_000)
    async with run_app(tmp_path, model=model, writer=by, **SMALL_CONTEXT) as it:
        await _walk(it, 22)
        forecast = await it.app.commands.run("/compact --dry-run", "main")
        assert "become at most" in forecast and "1 call of writer-1" in forecast and by.requests == []
        told = await it.app.commands.run("/compact", "main")
        (most,), (result,) = _SIZES.findall(forecast), _SIZES.findall(told)
        assert _numbers(most)[0] == _numbers(result)[0] and _numbers(result)[1] <= _numbers(most)[1]


async def test_a_compaction_names_one_number_which_shows_and_undoes_all_of_it(tmp_path: Path) -> None:
    two = {**SMALL_CONTEXT, "ASSISTANT_COMPACTION__MAX_CHECKPOINTS": "2"}
    async with run_app(tmp_path, model=ScriptedModel("A fine walk.", window=200_000), **two) as it:
        for _ in range(2):
            await _walk(it, 16)
            await it.app.commands.run("/compact", "main")
        await _walk(it, 16)
        before = it.app.stores.conversation.load_view("main").messages
        earlier = {checkpoint.id for checkpoint in checkpoints_in(it)}
        told = await it.app.commands.run("/compact", "main")
        made = [checkpoint for checkpoint in checkpoints_in(it) if checkpoint.id not in earlier]
        assert len(made) == 2 and sum(checkpoint.is_merge for checkpoint in made) == 1
        (shown,), (undone,) = re.findall(r"aihistory show (\d+)", told), re.findall(r"--undo (\d+)", told)
        assert shown == undone
        answer = await it.app.commands.run(f"/compact --undo {undone}", "main")
        assert answer.startswith(f"Undid compaction {undone}: ")
        assert it.app.stores.conversation.load_view("main").messages == before
        assert {checkpoint.id for checkpoint in checkpoints_in(it)} == earlier


async def test_every_undo_says_how_many_messages_come_back_until_there_is_nothing_to_undo(tmp_path: Path) -> None:
    two = {**SMALL_CONTEXT, "ASSISTANT_COMPACTION__MAX_CHECKPOINTS": "2"}
    async with run_app(tmp_path, model=ScriptedModel("Yes.", window=200_000), **two) as it:
        for _ in range(4):
            await _walk(it, 4)
            await it.app.commands.run("/compact", "main")
        answers = []
        with pytest.raises(UsageError, match="Nothing in 'main' is compacted"):
            while True:
                answers.append(await it.app.commands.run("/compact --undo", "main"))
        assert answers and all(re.match(r"Undid compaction \d+: [1-9]\d* messages are shown", it) for it in answers)
