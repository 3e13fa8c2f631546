"""F43: a turn that repeats itself is found by what it repeats; one that makes progress is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from assistant.core.messages import Message, ToolCall
from assistant.core.model_api import ModelRequest, SystemBlock, request_fingerprint
from assistant.models.offline.steps import INTRODUCTION
from assistant.runtime.turn_guard import TurnGuard, find_repetition

ASKED = Message("user", "do it")
NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def rounds(*steps: tuple[str, dict[str, Any], str] | list[tuple[str, dict[str, Any], str]]) -> list[Message]:
    """Rounds of (tool, arguments, outcome), one call each or several."""
    said: list[Message] = [ASKED]
    for number, step in enumerate(steps):
        calls = step if isinstance(step, list) else [step]
        ids = [f"{number}_{place}" for place in range(len(calls))]
        made = tuple(ToolCall(one, name, given) for one, (name, given, _) in zip(ids, calls, strict=True))
        said.append(Message("assistant", f"step {number}", tool_calls=made))
        said += [
            Message("tool", out, tool_call_id=one, name=name) for one, (name, _, out) in zip(ids, calls, strict=True)
        ]
    return said


def turn_guard(limit: Callable[[], int]) -> TurnGuard:
    return TurnGuard(UTC, limit, lambda name: False, lambda name, now: None)


SAME = ("look", {"a": 1, "b": [2]}, "nothing")


def test_the_same_call_with_the_same_outcome_is_a_circle_at_the_limit_and_not_before() -> None:
    assert find_repetition(rounds(*[SAME] * 4), 5) is None
    found = find_repetition(rounds(*[SAME] * 5), 5)
    assert found is not None and (found.name, found.times, found.is_idle_rounds) == ("look", 5, False)
    assert "`look` with {" in found.stop_message(owner=True) and "5 times" in found.stop_message(owner=True)


def test_arguments_are_the_same_in_any_order() -> None:
    other = ("look", {"b": [2], "a": 1}, "nothing")
    assert find_repetition(rounds(SAME, other, SAME), 3) is not None


@pytest.mark.parametrize(
    "other", [("look", {"a": 2}, "nothing"), ("see", SAME[1], "nothing"), ("look", SAME[1], "one")]
)
def test_another_tool_argument_or_outcome_is_something_new(other: tuple[str, dict[str, Any], str]) -> None:
    assert find_repetition(rounds(SAME, SAME, other), 3) is None


def test_a_poll_whose_outcome_changes_gets_on() -> None:
    assert find_repetition(rounds(*[("look", {}, f"{part}%") for part in range(50)]), 3) is None


def test_calls_of_one_round_count_as_those_of_many() -> None:
    assert find_repetition(rounds([SAME, SAME, SAME]), 3) is not None


def test_rounds_that_bring_nothing_new_are_a_circle_though_no_call_of_them_is_at_the_limit() -> None:
    kinds = [("look", {"page": page}, "nothing") for page in range(4)]
    turning = [*kinds, *kinds[:2], *kinds[2:]]
    found = find_repetition(rounds(*turning), 4)
    assert found is not None and found.is_idle_rounds and found.times == 4
    assert "4 rounds brought nothing new" in found.stop_message(owner=True)
    assert find_repetition(rounds(*kinds, *kinds[:3], ("look", {"page": 9}, "nothing")), 4) is None


def test_what_the_person_says_meanwhile_begins_anew() -> None:
    said = rounds(*[SAME] * 4)
    again = [replace(one, tool_call_id=f"x{one.tool_call_id}") if one.role == "tool" else one for one in said[1:]]
    calls = [
        replace(one, tool_calls=tuple(replace(call, id=f"x{call.id}") for call in one.tool_calls)) for one in again
    ]
    assert find_repetition([*said, Message("user", "go on"), *calls], 5) is None
    assert find_repetition([*said, *calls], 5) is not None


def test_a_call_that_was_not_answered_yet_is_no_round() -> None:
    assert find_repetition(rounds(*[SAME] * 2)[:-1], 2) is None


def test_a_guest_reads_neither_tools_nor_settings() -> None:
    found = find_repetition(rounds(*[SAME] * 3), 3)
    assert found is not None
    assert not {"look", "budget", "nothing"} & set(
        found.stop_message(owner=False).replace("`", " ").replace(".", " ").split()
    )
    guard = turn_guard(lambda: 3)
    assert "look" not in guard.stop_reason("peer:a:ann", rounds(*[SAME] * 3))
    assert "look" in guard.stop_reason("main", rounds(*[SAME] * 3))


def test_long_arguments_are_told_by_their_beginning() -> None:
    found = find_repetition(rounds(*[("look", {"text": "x" * 5000}, "no")] * 3), 3)
    assert found is not None and len(found.stop_message(owner=True)) < 600


def test_a_limit_that_is_changed_holds_at_once() -> None:
    most = [5]
    guard = turn_guard(lambda: most[0])
    said = rounds(*[SAME] * 3)
    assert guard.stop_reason("main", said) == ""
    most[0] = 3
    assert guard.stop_reason("main", said)


# ------------------------------------------------------------------------------------------------------------ requests


def test_a_request_is_the_same_where_purpose_model_and_prompt_are() -> None:
    request = ModelRequest((SystemBlock("Weigh."),), (ASKED,))
    one = request_fingerprint(request, "scoring", "m")
    assert one == request_fingerprint(
        ModelRequest((SystemBlock("Weigh."),), (Message("user", "do it"),)), "scoring", "m"
    )
    others = [
        request_fingerprint(request, "extraction", "m"),
        request_fingerprint(request, "scoring", "n"),
        request_fingerprint(replace(request, system=(SystemBlock("Weigh"), SystemBlock("."))), "scoring", "m"),
        request_fingerprint(replace(request, messages=(Message("user", "do it."),)), "scoring", "m"),
        request_fingerprint(replace(request, messages=(*rounds(SAME),)), "scoring", "m"),
        request_fingerprint(replace(request, messages=(Message("user", "\ud800"),)), "scoring", "m"),
    ]
    assert len({one, *others}) == len(others) + 1


# ----------------------------------------------------------------------------------------------------------- footnotes


def test_why_another_model_answers_is_said_once_a_day_and_whenever_it_ended_an_answer() -> None:
    shown: set[str] = set()
    guard = TurnGuard(UTC, lambda: 0, shown.__contains__, lambda name, _now: shown.add(name))
    begun = [ASKED, Message("assistant", "let me see", model="claude")]

    def under(session: str, said: list[Message], at: datetime) -> str:
        note = guard.footnote_for(session, "The daily budget is used up: $5.00 of $5.00.", said, "offline", at)
        guard.mark_footnote_shown(session, at)
        return note

    first = under("main", [ASKED], NOW)
    assert "$5.00 of $5.00" in first and "`/retry`" in first and first.startswith("\n\n*(") and first.endswith(")*")
    assert under("main", [ASKED], NOW) == ""
    assert "in the middle of this answer" in under("main", begun, NOW)
    assert under("main", [ASKED], NOW.replace(day=21)) != ""
    assert under("peer:a:ann", [ASKED], NOW) != ""


def test_an_answer_that_says_itself_that_it_is_of_offline_mode_is_not_told_so_twice() -> None:
    guard = TurnGuard(UTC, lambda: 0, lambda _name: False, lambda _name, _now: None)
    body = f"Noted.\n\n{INTRODUCTION}"
    whole = body + guard.footnote_for("main", "The daily budget is used up.", [ASKED], "offline", NOW, body=body)
    assert whole.lower().count("offline mode") == 1 and "`/retry`" in whole


def test_a_guest_is_told_in_words_without_sums() -> None:
    guard = turn_guard(lambda: 0)
    note = guard.footnote_for("peer:a:ann", "The daily budget is used up.", [ASKED], "offline", NOW)
    assert note and not any(letter in note for letter in "0123456789$`/")


@pytest.mark.parametrize(("model", "named"), [("offline", "offline mode (no language model)"), ("qwen3", "qwen3")])
def test_who_answers_instead_is_named_as_it_is(model: str, named: str) -> None:
    guard, begun = turn_guard(lambda: 0), [ASKED, Message("assistant", "let me see", model="claude")]
    assert f"So this is an answer of {named}." in guard.footnote_for("main", "Used up.", [ASKED], model, NOW)
    assert f"finished by {named}." in guard.footnote_for("main", "Used up.", begun, model, NOW)
