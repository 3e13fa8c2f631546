"""The model may show what would be forgotten; a person says it."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from assistant.commands.erasure import parse_forget_target, render_forget_preview, render_forget_result
from assistant.core.erasure import (
    ErasedMessage,
    ErasureLeftover,
    ErasureMatches,
    ErasurePreview,
    ErasureRequest,
    ErasureResult,
)
from assistant.core.errors import ToolError, UsageError
from assistant.core.ports import ToolContext
from tests.support.store_home import NOW
from tools.memory import forget_tool

CONTEXT = ToolContext("peer:x:1", "peer:x:1", "t1", "k1", NOW)
MEMORY = "0b8d5b1e-4a8c-5d53-9a53-0f1b3a5f5b5e"


class ErasureStub:
    """Somebody to ask, who finds three places."""

    def __init__(self) -> None:
        self.wanted: list[ErasureRequest] = []

    async def request_code(self, wanted: ErasureRequest, now: datetime) -> tuple[ErasurePreview, str]:
        self.wanted.append(wanted)
        places = (ErasureMatches("messages", 7), ErasureMatches("journal", 1, ("the\nzebra",)))
        first = (ErasedMessage(3, NOW, "the zebra said"),)
        return ErasurePreview(wanted, (3,), places, first, ("journal entry 5: a gate",)), "A1B2C3"


async def test_it_shows_what_would_go_and_how_a_person_confirms_it() -> None:
    kept = ErasureStub()
    told = await forget_tool(kept).run({"text": " the word "}, CONTEXT)
    assert kept.wanted == [ErasureRequest("peer:x:1", text="the word")]
    for part in ("Nothing was changed yet", "messages: 7", "journal: 1", "entry 5", "/forget A1B2C3"):
        assert part in told
    assert "zebra" not in told, "the answer is kept in the log"


def test_a_person_is_shown_the_words() -> None:
    found = ErasurePreview(ErasureRequest("owner", text="word"), (3,), (ErasureMatches("journal", 9, ("the\nword",)),))
    assert render_forget_preview(found)[1] == "- journal: 9 (the word; ...)"


def test_messages_are_shown_by_day_and_words_and_by_number_where_one_was_typed() -> None:
    first = (ErasedMessage(3, datetime(2026, 11, 20, 23, 30, tzinfo=UTC), "the word\nis zebra"),)
    for request, shown in (
        (ErasureRequest("owner", text="word"), "2026-11-21: the word is zebra"),
        (ErasureRequest("owner", messages=(3,)), "#3, 2026-11-21: the word is zebra"),
    ):
        found = ErasurePreview(request, (3, 4), (ErasureMatches("messages", 2),), first)
        assert render_forget_preview(found, zone=ZoneInfo("Europe/Berlin"))[1] == f"- messages: 2 ({shown}; ...)"


async def test_ids_are_of_the_scope_of_the_call() -> None:
    kept = ErasureStub()
    await forget_tool(kept).run({"messages": [3], "entries": [4], "memories": [MEMORY]}, CONTEXT)
    assert kept.wanted == [ErasureRequest("peer:x:1", (3,), (4,), (MEMORY,))]


@pytest.mark.parametrize("arguments", [{}, {"text": " "}, {"text": "a word", "messages": [1]}, {"text": "x" * 2001}])
async def test_nothing_or_both_is_refused(arguments: dict[str, object]) -> None:
    kept = ErasureStub()
    with pytest.raises(ToolError, match="Nothing was changed"):
        await forget_tool(kept).run(arguments, CONTEXT)
    assert kept.wanted == []


def test_it_is_offered_to_everybody_and_changes_nothing() -> None:
    tool = forget_tool(ErasureStub())
    assert (tool.effects, tool.roles) == ("none", {"owner", "guest", "room"})


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("17", ErasureRequest("owner", messages=(17,))),
        (" #17 ", ErasureRequest("owner", messages=(17,))),
        ("message 17", ErasureRequest("owner", messages=(17,))),
        ("entry 12", ErasureRequest("owner", entries=(12,))),
        ("e12", ErasureRequest("owner", entries=(12,))),
        (MEMORY.upper(), ErasureRequest("owner", memories=(MEMORY,))),
        (
            "13164122-4a8c-5d53-9a53-0f1b3a5f5b5e",
            ErasureRequest("owner", memories=("13164122-4a8c-5d53-9a53-0f1b3a5f5b5e",)),
        ),
        ("13164122", ErasureRequest("owner", digits="13164122")),
        ("4711", ErasureRequest("owner", digits="4711")),
        ("015123456789", ErasureRequest("owner", digits="015123456789")),
        ("#13164122", ErasureRequest("owner", messages=(13164122,))),
        ("memory 1316", ErasureRequest("owner", memories=("1316",))),
        ('"4711"', ErasureRequest("owner", text="4711")),
        ("「合言葉」", ErasureRequest("owner", text="合言葉")),
        ("the gate's word", ErasureRequest("owner", text="the gate's word")),
        ('"--keep-backups of it"', ErasureRequest("owner", text="--keep-backups of it")),
    ],
)
def test_what_a_person_types_is_understood(typed: str, meant: ErasureRequest) -> None:
    assert parse_forget_target(typed, "owner") == meant


def test_nothing_typed_is_refused() -> None:
    with pytest.raises(UsageError, match="Say what to forget"):
        parse_forget_target("  ", "owner")


def test_a_forgetting_that_was_cut_off_is_told_of_and_counts_for_nothing_else() -> None:
    done = ErasureResult((3,), (ErasureMatches("journal", 2),), (), complete=True, files_searched=9, was_resumed=True)
    lines = render_forget_preview(ErasurePreview(ErasureRequest("owner"), (), (), finished=(done,)))
    assert lines[0].startswith("An earlier forgetting that was cut off is finished now; what was left of it: journal 2")
    assert lines[-1] == "Nothing more of that is kept anywhere. Nothing was changed."
    assert render_forget_result(done) == lines[:1]
    left = ErasureResult(
        (3,), (), (ErasureLeftover("memory.db", 1, "not done: it is locked"),), False, 9, was_resumed=True
    )
    assert "is not finished yet" in render_forget_result(left)[0]
    assert render_forget_result(left)[1] == "Still there: memory.db (1): not done: it is locked"


def test_what_is_left_is_told() -> None:
    places = (ErasureMatches("messages", 1),)
    done = ErasureResult(
        (3,), places, (ErasureLeftover("PERSONA.md", 2, "your own file", "own_file"),), complete=True, files_searched=9
    )
    assert render_forget_result(done)[-2:] == ["Still there:", "- PERSONA.md (2): your own file"]
    whole = ErasureResult((3,), places, (), complete=True, files_searched=9)
    assert render_forget_result(whole)[-1] == "They are found nowhere any more."
    nothing = ErasureResult((), (), (), complete=True, files_searched=0)
    assert render_forget_result(nothing) == render_forget_preview(ErasurePreview(ErasureRequest("owner"), (), ()))
