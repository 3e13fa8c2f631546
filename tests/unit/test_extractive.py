"""Summaries without a model: the most telling lines, in their order, within their budget."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assistant.context.truncate import truncate_to_reference
from assistant.core.messages import LogByteRange, Media, Message, ToolCall
from assistant.core.records import LogLocation
from assistant.models.offline.steps import INTRODUCTION
from sleep.compaction import extractive
from sleep.compaction.extractive import keep_both_ends, select_sentences, summarise_without_model
from sleep.compaction.key_facts import collect_key_facts
from sleep.compaction.validate import restore_missing_values
from sleep.rules.extract_statements import extract_statements
from tests.support.month_texts import month_texts
from tests.support.sentence_tables import every_case
from tests.support.summaries import (
    COUNTER,
    START,
    alternating_messages,
    count_text_tokens,
    long_conversation,
    summary_material,
)

TOLD = "My passport number is P4471-88 and it ends in May 2027."
DECIDED = "We have decided to take the ferry to Bergen with Anna."


def lines_of(rows: tuple[Message, ...], budget: int = 300) -> list[str]:
    return select_sentences(summary_material(rows), budget, count_text_tokens).splitlines()


def test_each_line_is_word_for_word_with_the_message_and_its_day() -> None:
    assert lines_of(alternating_messages(f"Well now. {TOLD}", "I have noted that the passport ends in May 2027.")) == [
        f"- #1 2026-03-04 user: {TOLD}",
        "- #2 2026-03-04 assistant: I have noted that the passport ends in May 2027.",
    ]


def test_the_full_stop_of_an_abbreviation_ends_no_line() -> None:
    told = "Actually, my dentist is now Dr. Berg in Parkgata 4."
    rows = alternating_messages(f"Good morning to you. {told}", "Noted.", "Am 4. Mai kommt Frau Dr. Weiß.")
    assert lines_of(rows) == [
        f"- #1 2026-03-04 user: {told}",
        "- #3 2026-03-04 user: Am 4. Mai kommt Frau Dr. Weiß.",
    ]


def test_what_the_program_says_of_itself_in_an_answer_is_no_part_of_a_summary() -> None:
    answer = f"Noted.\n\n{INTRODUCTION}"
    assert lines_of(alternating_messages(TOLD, answer)) == [f"- #1 2026-03-04 user: {TOLD}"]
    # A person's own words in italics are theirs.
    assert lines_of(alternating_messages(f"*{TOLD}*", "Well.")) != []


def read_at_once(rows: tuple[Message, ...], budget: int) -> list[str]:
    """Choose as `select_sentences` says it does, but find out first of every line what it states."""
    lines = extractive._scored(list(extractive._sentences(rows)))
    known = [
        line
        if line.score_without_statement is None or extract_statements(line.text)
        else replace(line, score=line.score_without_statement)
        for line in lines
    ]
    chosen, left = [], budget
    for line in sorted(known, key=lambda line: (-line.score, -line.index, line.place)):
        tokens = count_text_tokens(f"{extractive._shown(line)}\n")
        if tokens <= left:
            left -= tokens
            chosen.append(line)
        if left < extractive._SHORTEST_CHARACTERS:
            break
    return [extractive._shown(line) for line in sorted(chosen, key=lambda line: (line.index, line.place))]


@pytest.mark.parametrize("budget", [3, 40, 300, 1_500])
def test_lines_are_chosen_as_if_it_were_known_of_each_what_it_states(budget: int) -> None:
    rows = (*long_conversation(24), *alternating_messages(*month_texts()[:160], first=49))
    assert lines_of(rows, budget) == read_at_once(rows, budget)


@pytest.mark.parametrize("told", [(TOLD, DECIDED), (DECIDED, TOLD)])
def test_what_tells_most_is_chosen_and_stands_in_the_order_it_was_said(told: tuple[str, str]) -> None:
    talk = long_conversation(20)
    rows = (*talk[:20], *alternating_messages(told[0], "Noted, I have it.", told[1], "Good, then it is so.", first=21))
    chosen = lines_of((*rows, *(replace(row, id=(row.id or 0) + 4) for row in talk[20:])), 60)
    assert chosen == [f"- #21 2026-03-04 user: {told[0]}", f"- #23 2026-03-04 user: {told[1]}"]


@every_case(
    [
        ("Somebody had left ferry code K4-99 by the quay.", "Somebody had left a bag of nuts by the quay."),
        ("My sister lives in that town by the water.", "Some people walk in that town by the water."),
    ]
)
def test_one_thing_makes_a_line_tell_more(more: str, less: str) -> None:
    assert lines_of((*alternating_messages(more), *alternating_messages(less, first=3)), 25) == [
        f"- #1 2026-03-04 user: {more}"
    ]


def test_a_persons_own_words_come_before_the_assistants() -> None:
    said = "The ferry to Bergen leaves at 21:30 from quay 4."
    alike = said.replace("21:30", "22:45")
    assert lines_of(alternating_messages(said, alike), 25) == [f"- #1 2026-03-04 user: {said}"]
    assert lines_of(alternating_messages(alike, said), 25) == [f"- #1 2026-03-04 user: {alike}"]


def test_rare_words_tell_more_than_common_ones() -> None:
    common = [f"The town was nice {when} again." for when in ("then", "now", "today", "there", "here", "later")]
    rare = "Quartz lamps ruin sourdough starter overnight, or so bakers grumble."
    rows = (Message("user", rare, id=1, ts=START), *(Message("user", one, id=n) for n, one in enumerate(common, 2)))
    assert lines_of(rows, count_text_tokens(rare) + 12) == [f"- #1 2026-03-04 user: {rare}"]


@every_case(
    [
        "Hello, how are you today?",
        "Thanks a lot for that!",
        "Good morning to you",
        "Vielen Dank",
        "Hei, takk for sist!",
        "你好，谢谢你！",
        "こんにちは。",
        "Привет, как дела?",
        "ok",
        "Merci beaucoup mon ami",
    ]
)
def test_greetings_are_never_chosen(greeting: str) -> None:
    assert lines_of(alternating_messages(greeting, greeting)) == []


def test_a_greeting_that_tells_something_is_chosen() -> None:
    assert lines_of(alternating_messages("Hello, my ticket is TK-4471.")) == [
        "- #1 2026-03-04 user: Hello, my ticket is TK-4471."
    ]


def test_what_tools_were_asked_and_returned_is_never_chosen() -> None:
    asked = Message("assistant", "", id=2, ts=START, tool_calls=(ToolCall("c1", "look", {"at": "order 99812-B"}),))
    came = Message("tool", "Order 99812-B was sent to Anna Berg on 2027-03-04.", id=3, tool_call_id="c1", name="look")
    note = Message("user", "Order 1 of 99812-B by the runtime itself.", id=4, metadata={"note": True})
    quoting = Message("assistant", "Here is the log:\n```\nERROR 99812-B at /var/lib/home.db\n```", id=5, ts=START)
    assert lines_of((*alternating_messages(TOLD), asked, came, note, quoting)) == [
        f"- #1 2026-03-04 user: {TOLD}",
        "- #5 2026-03-04 assistant: Here is the log:",
    ]


def test_what_is_said_again_is_told_once() -> None:
    assert lines_of(alternating_messages(TOLD, "Noted.", TOLD.upper())) == [f"- #1 2026-03-04 user: {TOLD}"]


@every_case(
    [
        "我的护照号码是P4471，五月到期。",
        "私は五月にベルゲンへ行くことに決めました。",
        "Моя сестра Анна живёт в Бергене.",
        "제 여권은 5월에 만료됩니다.",
    ]
)
def test_any_language_is_read(said: str) -> None:
    assert lines_of(alternating_messages(said, "好", said)) == [f"- #1 2026-03-04 user: {said}"]


def test_unspaced_scripts_are_scored_by_what_is_rare_too() -> None:
    same = [f"今天老城的天气又很好，我们去走了{n}。" for n in "一二三四五六"]
    rare = "妹妹对坚果过敏请牢记此事勿忘。"
    assert lines_of(alternating_messages(*same, rare), count_text_tokens(rare) + 20) == [
        f"- #7 2026-03-04 user: {rare}"
    ]


@every_case([0, 5, 40, 200, 5000])
def test_it_keeps_its_budget(budget: int) -> None:
    assert (
        count_text_tokens(select_sentences(summary_material(long_conversation()), budget, count_text_tokens)) <= budget
    )


def test_words_of_a_cut_are_nobody_s() -> None:
    said = Message("user", f"{TOLD} {'Waves went up and down along the long quay. ' * 400}{DECIDED}", id=1, ts=START)
    shown = truncate_to_reference(
        said, LogLocation("main", "log/main/conversation.jsonl", LogByteRange(0, 99)), 200, count_text_tokens
    )
    lines = "\n".join(lines_of((shown,)))
    assert TOLD in lines and "Anna" in lines
    assert not any(word in lines for word in ("Shortened", "output lines", "truncated", "read_history"))


def test_the_heading_of_a_scheduled_prompt_is_nobody_s() -> None:
    asked = "[Scheduled prompt 'news of Bergen', due Sunday 2026-03-01 10:00]\nWhat is on the list for the ferry?"
    rows = alternating_messages(asked, "Nothing new.")
    assert lines_of(rows)[0] == "- #1 2026-03-04 user: What is on the list for the ferry?"
    assert "Bergen" not in str(collect_key_facts(summary_material(rows)))
    assert restore_missing_values("What is on the list?", summary_material(rows), count_text_tokens, 800).restored == ()


def test_the_lines_of_an_earlier_summary_stay_as_they_are() -> None:
    line = "- #12 2026-01-02 user: We have decided to sell the boat to Anna."
    rows = (Message("assistant", line, ts=START),)
    assert lines_of(rows) == [line]


def test_a_copy_is_named_by_its_original() -> None:
    row = Message("user", TOLD, ts=START, metadata={"carried_from": 7})
    assert lines_of((row,)) == [f"- #7 2026-03-04 user: {TOLD}"]


# ----------------------------------------------------------------------------------------------------------- both ends


def test_both_ends_tell_how_much_is_between_and_where_it_is() -> None:
    said = keep_both_ends(summary_material(alternating_messages("a" * 3000, "b" * 3000)))
    assert said.startswith("#1: aaa")
    assert said.endswith("b" * 2000)
    assert "2009 characters left out" in said
    assert "read_history(message_id=1)" in said
    assert "#2 is the last" in said
    assert keep_both_ends(summary_material(alternating_messages("short", "talk")), 10) == "#1: short\n#2: talk"


def test_both_ends_never_fail_whatever_the_rows_are() -> None:
    broken = Message("user", "half \ud83d and \0 nothing", id=3)
    seen = Message("user", "", id=4, media=(Media("image", "image/png", "boat.png"),))
    assert keep_both_ends(summary_material(())) == ""
    assert keep_both_ends(summary_material((Message("assistant"),))) == ""
    assert (
        keep_both_ends(summary_material((broken, seen)))
        == "#3: half \ufffd and \ufffd nothing\n#4: [1 picture: boat.png]"
    )
    keep_both_ends(summary_material(alternating_messages("x" * 50)), 0)


def size(rows: tuple[Message, ...]) -> int:
    return sum(COUNTER.count_message(row) for row in rows)


@pytest.mark.parametrize(
    "rows",
    [
        alternating_messages("hi"),
        alternating_messages("hi", "hello"),
        alternating_messages("ok " * 3),
        alternating_messages("x" * 9000),
        alternating_messages("说" * 5000),
        alternating_messages(TOLD),
        alternating_messages("<context-record>" * 300),
        (Message("assistant", "", id=1, tool_calls=(ToolCall("c", "look"),)),),
        (Message("user", "", id=1, media=(Media("image", "image/png", "boat.png", data="aaaa"),)),),
        long_conversation(),
    ],
    ids=str,
)
@pytest.mark.parametrize("budget", [200, 2000])
def test_without_a_model_there_is_always_something_smaller(rows: tuple[Message, ...], budget: int) -> None:
    text, tier = summarise_without_model(summary_material(rows, budget), size(rows), count_text_tokens)
    assert count_text_tokens(text) < size(rows)
    assert count_text_tokens(text) <= budget
    assert tier in ("extractive", "ends")
    assert text or not any(row.content or row.media for row in rows)
