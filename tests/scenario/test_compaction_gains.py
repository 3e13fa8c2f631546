"""A compaction that would not make the context smaller is not committed, whatever asked for it (I7)."""

from __future__ import annotations

import re
from pathlib import Path

from assistant.core.messages import Message, ToolCall
from sleep.compaction.deps import GAINED_NOTHING, SUMMARY_BREAKER
from sleep.compaction.values import CompactionRequest
from tests.support.compaction_app import LONG_MESSAGE, app_with_long_messages, checkpoints_in, summary_writer
from tests.support.imports import import_messages
from tests.support.running_app import LiveApp, run_app
from tests.support.scripted import ScriptedModel

# So many summaries may stand that none is merged.
_SMALL = {"ASSISTANT_CONTEXT__MAX_CONTEXT_TOKENS": "12000", "ASSISTANT_COMPACTION__MAX_CHECKPOINTS": "9"}
_REAL = {"ASSISTANT_CONTEXT__MAX_CONTEXT_TOKENS": "16000"}
_THANKS = Message("user", "Thank you."), Message("assistant", "With pleasure.")
_WALK = Message("user", "I went along the shore and back over the hill today. " * 27), Message("assistant", "Fine.")
_TODOS = "\n".join(
    f"#{number} open: carry the {number}th box of papers from the attic to the boat" for number in range(26)
)


def tell(it: LiveApp, *messages: Message) -> None:
    import_messages(it.app.stores.conversation, "main", "owner", list(messages), it.clock())


def look_at_list(number: int) -> tuple[Message, ...]:
    """An exchange of which a compaction keeps nearly all: the list as it was read last."""
    call = ToolCall(f"c{number}", "manage_todo_list", {})
    return (
        Message("user", f"What of box {number} is on my list?"),
        Message("assistant", "", tool_calls=(call,)),
        Message("tool", _TODOS, tool_call_id=call.id, name="manage_todo_list"),
        Message("assistant", f"Box {number} is on it."),
    )


async def test_a_summary_that_is_longer_than_what_it_stands_for_takes_the_place_of_nothing(tmp_path: Path) -> None:
    """While the person waits the summaries that stand are not merged, so that one more may cost more than it saves."""
    model = ScriptedModel("Fine.", window=200_000)
    async with run_app(tmp_path, model=model, writer=summary_writer(), **_SMALL) as it:
        for number in range(8):
            await it.app.commands.run(f"/todo add carry the {number}th box of papers from the attic", "main")
        await it.say("Hello there.")
        await it.wait_idle()
        terms = await it.app.contexts.meter.load_terms("main")
        compactor = it.app.contexts.compaction._compactor
        for number in range(9):
            for exchange in (look_at_list(number), _THANKS, _WALK, _WALK):
                tell(it, *exchange)
                await compactor.compact(CompactionRequest("main", "emergency", terms, urgent=True))
        made = it.app.stores.conversation.checkpoints("main")
        pressures = [one.key_facts["pressure"] for one in made if not one.is_merge]
        assert len(pressures) >= 9 and all(after < before for before, after in pressures), pressures
        view = it.app.stores.conversation.load_view("main")
        result = await compactor.compact(CompactionRequest("main", "emergency", terms, urgent=True))
        assert result.gains_nothing and not result.checkpoints
        assert it.app.stores.conversation.load_view("main") == view


async def test_what_a_summary_gained_nothing_for_is_not_summarised_again_until_twice_as_much_leaves(
    tmp_path: Path,
) -> None:
    by = summary_writer()
    async with app_with_long_messages(tmp_path, 12, by=by) as it:
        conversation = it.app.stores.conversation
        view = conversation.load_view("main")
        ids = [message.id or 0 for message in view.messages]
        begun = conversation.begin_compaction(
            "main", view.prefix_rev, "economy", (ids[0], ids[-8]), it.clock(), it.clock()
        )
        assert begun is not None
        conversation.abandon_compaction(begun, GAINED_NOTHING)
        for _ in range(2):
            answer = await it.app.commands.run("/compact", "main")
            assert "A summary would be no shorter than the messages that it stands for." in answer
        assert by.requests == [] and conversation.load_view("main") == view
        for number in range(12):
            await it.say(f"another walk {number}: {LONG_MESSAGE}")
            await it.wait_idle()
        assert (await it.app.commands.run("/compact", "main")).startswith("Compacted")
        assert len(by.requests) == 1


async def test_merges_of_imported_history_do_not_use_up_a_compaction_or_make_the_context_larger(tmp_path: Path) -> None:
    """An import leaves many checkpoints without words; the summary writer has nothing to say of them."""
    async with run_app(
        tmp_path, model=ScriptedModel("Fine.", window=200_000), writer=summary_writer("?"), **_REAL
    ) as it:
        for number in range(12):
            walks = [
                Message(role, f"{number}.{n}: {LONG_MESSAGE}") for n in range(40) for role in ("user", "assistant")
            ]
            import_messages(it.app.stores.conversation, "main", "owner", walks, it.clock(), keep=39)
        assert [one.tier for one in checkpoints_in(it)] == ["reference"] * 12
        await it.app.contexts.meter.load_model_limits()
        result = await it.app.contexts.compaction.compact_in_sleep("main", "sleep")
        assert result is not None and result.after.ratio < result.before.ratio
        # However many there are, one step takes all that follow one another.
        assert len(checkpoints_in(it, "absorbed")) >= 7
        assert sum(one.is_merge for one in it.app.stores.conversation.checkpoints("main")) <= 2
        *merges, made = result.checkpoints
        assert {one.tier for one in merges} <= {"floor"} and not made.is_merge and len(checkpoints_in(it)) <= 5


async def test_a_merge_of_two_short_summaries_leaves_them_as_they_are_where_one_of_both_would_be_longer(
    tmp_path: Path,
) -> None:
    short, lengthy = "They talked about this and that as they do.", "They walked along the shore and back. " * 6
    script = (f"<summary>\n{text}\n</summary>" for text in (short, short, lengthy, short))
    chosen = {**_REAL, "ASSISTANT_COMPACTION__MAX_CHECKPOINTS": "2"}
    model, by = ScriptedModel("Fine.", window=200_000), summary_writer(*script, window=400_000)
    async with run_app(tmp_path, model=model, writer=by, **chosen) as it:
        walks = [Message(role, LONG_MESSAGE) for _ in range(40) for role in ("user", "assistant")]
        for _ in range(3):
            import_messages(it.app.stores.conversation, "main", "owner", walks, it.clock())
            assert (await it.app.commands.run("/compact", "main")).startswith("Compacted")
        (merge,) = [one for one in it.app.stores.conversation.checkpoints("main") if one.is_merge]
        assert merge.summary.count(short) == 2 and lengthy not in merge.summary
        assert merge.compressed_tokens < merge.original_tokens
        assert merge.attempts == 1, "what the call cost is known"


async def test_a_context_of_which_the_provider_counts_less_than_we_do_is_compared_by_one_measure(
    tmp_path: Path,
) -> None:
    async with app_with_long_messages(tmp_path, 14) as it:
        conversation = it.app.stores.conversation
        view = conversation.load_view("main")
        conversation.report_usage("main", view.prefix_rev, 2_000, view.messages[-1].id or 0)
        answer = await it.app.commands.run("/compact", "main")
        before, after = map(int, re.findall(r"([\d,]+)(?= tokens become| saved)", answer.replace(",", "")))
        assert 0 < after < before, answer
        assert it.app.stores.breakers.get(SUMMARY_BREAKER).failures == 0
