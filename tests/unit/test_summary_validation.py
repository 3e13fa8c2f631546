"""What a summary left out is appended word for word, and a summary in another language is found out."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import FrameType
from typing import Any

import pytest

from assistant.core.messages import Message
from assistant.core.quoting import RECORD_TAG as TAG
from sleep.compaction.validate import (
    RESTORED_HEADING,
    CheckedSummary,
    find_missing_values,
    find_named_values,
    is_same_language,
    restore_missing_values,
)
from tests.support.sentence_tables import every_case
from tests.support.summaries import (
    START,
    SUMMARY_TEXT,
    TEXT_BY_LANGUAGE,
    alternating_messages,
    count_text_tokens,
    long_conversation,
    summary_material,
)

NOTHING = "They talked."
ADDRESS = "https://example.org/ferries?to=bergen"


def restored(*texts: str, summary: str = NOTHING, most: int = 800, tasks: tuple[str, ...] = ()) -> tuple[str, ...]:
    return restore_missing_values(
        summary, summary_material(alternating_messages(*texts), tasks=tasks), count_text_tokens, most
    ).restored


@every_case(
    [
        ("the ticket is TK-4471-Q.", "identifiers", "TK-4471-Q"),
        ("see https://example.org/a?b=1, it says", "identifiers", "https://example.org/a?b=1"),
        ("write to anna@example.org", "identifiers", "anna@example.org"),
        ("it lies in /var/lib/home.db", "identifiers", "/var/lib/home.db"),
        ("it costs 1,299.50 in all", "numbers", "1,299.50"),
        ("we leave on 2027-03-04", "numbers", "2027-03-04"),
        ("then ask Anna Berg about it", "names", "Anna Berg"),
        ("потом спроси Анну", "names", "Анну"),
        ("Please water the plants", "tasks", "Please water the plants"),
        ("- [ ] order boots", "tasks", "- [ ] order boots"),
    ]
)
def test_what_a_text_names_is_found_by_its_form(text: str, kind: str, value: str) -> None:
    assert find_missing_values([text, text], "Nothing of it.") == {kind: [value]}
    assert find_missing_values([text], f"It has {value.upper()} in it.") == {}


@every_case(["in 2012", "at 12:30", "for 12.50", "on 12-04", "0.12", "5/12"])
def test_a_number_within_another_one_is_missing(summary: str) -> None:
    assert find_missing_values(["it was 12 of them"], summary) == {"numbers": ["12"]}


@every_case(["12 of them", "all 12.", "€12", "12%", "12km", "(12)", "x=12, y", "１２"])
def test_a_number_by_itself_is_there(summary: str) -> None:
    assert find_missing_values(["it was 12 of them"], summary) == {}


def test_a_whole_summary_stays_as_it_is() -> None:
    rows = summary_material(alternating_messages("We met Anna Berg in Bergen.", "Yes."), tasks=("book the ferry",))
    assert restore_missing_values(
        "With Anna Berg in Bergen; open: Book the Ferry.", rows, count_text_tokens, 800
    ) == CheckedSummary("With Anna Berg in Bergen; open: Book the Ferry.")


def test_what_is_missing_stands_at_the_end_with_its_message_and_the_words_before_it() -> None:
    found = restore_missing_values(
        NOTHING,
        summary_material(alternating_messages("the booking code for the ferry is TK-4471.")),
        count_text_tokens,
        800,
    )
    assert found.text == f"{NOTHING}\n{RESTORED_HEADING}\n- #1: the booking code for the ferry is TK-4471"
    assert found.restored == ("- #1: the booking code for the ferry is TK-4471",)


def test_open_tasks_come_first_then_identifiers_and_of_a_kind_the_persons_words() -> None:
    lines = restored(
        "it was Room 7 of them with Anna, code AB-1",
        "so the code there is CD-2, for 35 of them",
        tasks=("call the bank", "call the bank"),
    )
    assert lines == (
        "- open: call the bank",
        "- #1: it was Room 7 of them with Anna, code AB-1",
        "- #2: so the code there is CD-2",
        "- #2: so the code there is CD-2, for 35",
    )


@every_case(
    [
        "From now on, please sign your answers with Ulvdor.",
        "Never suggest liver to me again.",
        "When you answer me, begin with the result.",
        "I would like your answers short.",
        "Bitte antworte mir immer auf Deutsch.",
    ]
)
def test_how_the_person_wants_to_be_answered_is_kept_word_for_word_before_all_else(wish: str) -> None:
    lines = restored(f"so the code is AB-1. {wish} The rest can wait.", most=60)
    assert lines[0] == f"- #1: {wish}"
    record = Message("assistant", f"They talked.\n{RESTORED_HEADING}\n{lines[0]}", ts=START, id=40)
    merged = replace(summary_material((record,)), depth=2)
    assert restore_missing_values(NOTHING, merged, count_text_tokens, 800).restored == lines[:1], "also in a merge"


def test_wishes_have_room_of_their_own_beside_what_else_is_missing() -> None:
    wishes = [f"Never suggest {food} to me again." for food in ("liver", "eel", "tripe", "swede", "oysters", "brawn")]
    rows = summary_material(
        alternating_messages(*[text for wish in wishes for text in (wish, "Fine.")], "so it is AB-1")
    )
    narrow = restore_missing_values(NOTHING, rows, count_text_tokens, 60)
    wide = restore_missing_values(NOTHING, rows, count_text_tokens, 60, 120)
    assert sum(wish in narrow.text for wish in wishes) < len(wishes)
    assert all(wish in wide.text for wish in wishes) and "AB-1" in wide.text
    assert count_text_tokens(wide.text) <= count_text_tokens(NOTHING) + 60 + 120


def test_what_the_assistant_or_the_way_of_the_world_always_does_is_no_wish() -> None:
    told = ("I always forget the keys, and dad never eats fish.", "Always begin with half of it, when you run again.")
    assert restored(*told) == ()


def test_the_newest_is_kept_where_not_all_fits_and_the_budget_holds() -> None:
    texts = [f"the code of day {'x' * (n % 5)} is ZZ-{n:04}" for n in range(400)]
    for most in (0, 20, 60, 200, 800):
        found = restore_missing_values(NOTHING, summary_material(alternating_messages(*texts)), count_text_tokens, most)
        assert count_text_tokens(found.text) - count_text_tokens(NOTHING) <= most
        assert len(found.restored) == 0 or "ZZ-0398" in found.restored[0]
    assert (
        len(
            restore_missing_values(
                NOTHING, summary_material(alternating_messages(*texts)), count_text_tokens, 800
            ).restored
        )
        > 20
    )


def test_what_is_too_long_for_the_room_does_not_keep_shorter_lines_out() -> None:
    lines = restored("so the code is AB-1", tasks=("do this " * 40, "pay"), most=30)
    assert lines == ("- open: pay", "- #1: so the code is AB-1")


def test_all_values_of_a_message_are_kept_in_lines_of_bearable_length() -> None:
    codes = [f"{'of this long passage ' * 4}K-{n:03}" for n in range(12)]
    lines = restored(" and ".join(codes))
    assert all(f"K-{n:03}" in " ".join(lines) for n in range(12))
    assert len(lines) > 1
    assert max(map(len, lines)) <= 300


def test_what_tools_returned_is_not_looked_at() -> None:
    came = Message("tool", "order 99812-B for Anna Berg on 2027-03-04", id=3, tool_call_id="c1", name="look")
    note = Message("system", "the job J-1 of 17 has ended", id=4)
    assert restore_missing_values(NOTHING, summary_material((came, note)), count_text_tokens, 800).restored == ()
    said = Message("user", "so that is 99812-B", id=5)
    assert restore_missing_values(NOTHING, summary_material((came, said)), count_text_tokens, 800).restored == (
        "- #5: so that is 99812-B",
    )


def test_each_thing_is_told_once() -> None:
    assert restored("so it is TK-4471", "yes it is tk-4471", "ok with TK-4471 then") == ("- #1: so it is TK-4471",)


def test_a_copy_is_named_by_its_original_and_a_record_has_no_number() -> None:
    copy = Message("user", "so it is AB-1", ts=START, metadata={"carried_from": 7})
    record = Message("assistant", "then it was CD-2", ts=START)
    assert restore_missing_values(NOTHING, summary_material((copy, record)), count_text_tokens, 800).restored == (
        "- #7: so it is AB-1",
        "- earlier: then it was CD-2",
    )


def test_f26_what_is_restored_cannot_close_a_boundary() -> None:
    (line,) = restored(f"so </{TAG}> it is TK-4471")
    assert f"</{TAG}" not in line
    assert "TK-4471" in line


@every_case(["说", "aB3", "a@"])
def test_a_text_without_spaces_takes_no_square_of_its_length(unspaced: str) -> None:
    text = f"{unspaced * 200_000} then, the code is TK-4471"
    assert "TK-4471" in " ".join(restored(text))


def test_it_is_the_same_every_time() -> None:
    rows = summary_material(long_conversation(), tasks=("one", "two"))
    assert len({restore_missing_values(SUMMARY_TEXT, rows, count_text_tokens, 400).text for _ in range(5)}) == 1


def test_f05_planted_details_of_sixty_messages_survive_a_summary_that_keeps_nothing() -> None:
    texts = [row.content for row in long_conversation(30)]
    planted = [f"TK-{4471 + n * 7}-Q" for n in range(10)] + [f"{n}9,{n}50.75" for n in range(1, 6)]
    planted += ["/srv/boat/plan.md", "anna@example.org", "https://example.org/x?y=2", "Ragnhild Sæther"]
    for n, value in enumerate(planted):
        texts[2 * n] += f" and keep in mind {value}"
    found = restore_missing_values(
        NOTHING, summary_material(alternating_messages(*texts), tasks=("renew the passport",)), count_text_tokens, 800
    )
    assert [value for value in (*planted, "renew the passport") if value not in found.text] == []


# ------------------------------------------------------------------------------------------------------------- language


@pytest.mark.parametrize("language", TEXT_BY_LANGUAGE)
@pytest.mark.parametrize("summary", TEXT_BY_LANGUAGE)
def test_f24_a_summary_in_another_language_is_told_from_one_in_the_same(language: str, summary: str) -> None:
    rows = summary_material(alternating_messages(TEXT_BY_LANGUAGE[language], TEXT_BY_LANGUAGE[language]))
    assert is_same_language(TEXT_BY_LANGUAGE[summary], rows) == (language == summary)


def test_f24_the_persons_language_holds_whatever_texts_they_show() -> None:
    rows = summary_material(
        alternating_messages(
            f"{TEXT_BY_LANGUAGE['no']} {TEXT_BY_LANGUAGE['no']}",
            TEXT_BY_LANGUAGE["no"],
            "Hva står det her?",
            f"{TEXT_BY_LANGUAGE['en']} " * 5,
        )
    )
    assert is_same_language(TEXT_BY_LANGUAGE["no"], rows)
    assert not is_same_language(TEXT_BY_LANGUAGE["fr"], rows)


@every_case(
    [
        (
            f"{TEXT_BY_LANGUAGE['zh']} `docker compose up` API",
            f"去卑尔根的计划：/srv/boat/plan.md, {f'{ADDRESS} ' * 9}, TK-4471",
        ),
        (TEXT_BY_LANGUAGE["en"], "Bergen, Anna Berg, TK-4471."),
        ("ok", TEXT_BY_LANGUAGE["fr"]),
        ("", TEXT_BY_LANGUAGE["zh"]),
        (TEXT_BY_LANGUAGE["en"], "12 / 13 / 14"),
        ("def f(x): return x\n" * 5, TEXT_BY_LANGUAGE["de"]),
        ("Vi må kjøpe billetter.", TEXT_BY_LANGUAGE["no"]),
    ]
)
def test_where_it_cannot_be_told_a_summary_is_taken(said: str, summary: str) -> None:
    assert is_same_language(summary, summary_material(alternating_messages(said)))


def test_danish_and_norwegian_are_not_told_apart() -> None:
    danish = "Vi vil rejse til Bergen i maj, og færgen er det bedste for os, men den er ikke billig for børnene."
    assert is_same_language(danish, summary_material(alternating_messages(TEXT_BY_LANGUAGE["no"])))


@every_case(
    [
        ("私の予約番号はAB-1234です。部屋は12号室、電話は090-1234-5678です。", ["AB-1234", "12", "090-1234-5678"]),
        ("我的订单号是XK47291,密码4711。", ["XK47291", "4711"]),
        ("예약번호는 AB-1234입니다", ["AB-1234"]),
        ("رقم الحجز هو 55-أب-77", ["55-أب-77"]),
        ("ירושלים דירה 17ב", ["17ב"]),
        ("Σύμβουλος 12Β", ["12Β"]),
        ("номер ЗК-4471-Ж", ["ЗК-4471-Ж"]),
    ]
)
def test_identifiers_and_numbers_are_found_in_any_script(text: str, found: list[str]) -> None:
    assert [value for kind, value in find_named_values(text) if kind in ("identifiers", "numbers")] == found


def test_a_long_text_with_many_values_is_taken_apart_a_few_times() -> None:
    text = "\n".join(f"{number}. the harbour has {number}-{number} boats" for number in range(1, 400))
    rows = summary_material(alternating_messages(text))
    splits = 0

    def count_split(frame: FrameType, event: str, called: Any) -> None:
        nonlocal splits
        it = getattr(called, "__self__", None)
        splits += event == "c_call" and called.__name__ == "split" and isinstance(it, str) and len(it) > len(text) / 2

    sys.setprofile(count_split)
    try:
        found = restore_missing_values(NOTHING, rows, count_text_tokens, 60)
    finally:
        sys.setprofile(None)
    assert found.restored
    assert 0 < splits <= 4
