"""What the journal leaves in the files: a person's lines survive everything, what they took out stays out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import example, given
from hypothesis import strategies as st

from assistant.core.memories import JournalEntry, UndoableEdit
from sleep.cycle.curate import propose_memory_md
from sleep.cycle.memory_md import choose_section
from sleep.cycle.notes import build_day_notes
from tests.support.sentence_tables import every_case

NOW = datetime(2026, 11, 20, 22, 30, tzinfo=UTC)
OSLO = ZoneInfo("Europe/Oslo")


def entry(content: str, weight: float = 0.6, *tags: str, **more: object) -> JournalEntry:
    one = JournalEntry(f"k:{content}", "owner", "main", 1, content, NOW, "extraction", weight, tags or ("fact",))
    return replace(one, **more)  # type: ignore[arg-type]


def tokens(text: str) -> int:
    return len(text) // 4


def proposed(
    entries: Sequence[JournalEntry], current: str = "", edits: Sequence[UndoableEdit] = (), *, most: int = 1000
) -> str:
    return propose_memory_md(entries, current, edits, UTC, tokens, most)


def by(who: str, before: str, after: str, number: int = 1, **more: object) -> UndoableEdit:
    edit = UndoableEdit("file:MEMORY.md", "owner", who, before, after, NOW, id=number)  # type: ignore[arg-type]
    return replace(edit, **more)  # type: ignore[arg-type]


TOLD = [
    entry("I live in Bergen."),
    entry("My sister Marta lives in Oslo.", 0.7),
    entry("I am allergic to nuts.", 0.8),
    entry("My brother Bo sails.", 0.9),
    entry("I like green tea.", 0.6, "preference"),
    entry("We decided to sell the boat.", 0.7, "decision"),
    entry("I work as a surveyor."),
    entry("The boat is called Mathilde."),
]
PAGE = """\
## People
- My brother Bo sails. (2026-11-20)
- My sister Marta lives in Oslo. (2026-11-20)

## Home
- I live in Bergen. (2026-11-20)

## Health
- I am allergic to nuts. (2026-11-20)

## Work
- I work as a surveyor. (2026-11-20)

## Preferences
- I like green tea. (2026-11-20)

## Decisions
- We decided to sell the boat. (2026-11-20)

## Standing facts
- The boat is called Mathilde. (2026-11-20)
"""


def test_what_is_known_stands_by_kind_the_most_important_first() -> None:
    assert proposed(TOLD) == PAGE == proposed(TOLD[::-1])


def test_proposed_again_it_stays_the_same() -> None:
    edits = [by("sleep", "", PAGE)]
    assert proposed(TOLD, PAGE, edits) == PAGE == proposed([], PAGE, edits)


def test_new_lines_stand_under_the_headings_of_the_person() -> None:
    mine = "# Me\nI am Jo.\n\n## Home\n- The blue door.\n\n\n### Keys\nwith Ida\n## Other\nlast"
    assert proposed([entry("I live in Bergen."), entry("The boat is called Mathilde.")], mine) == (
        "# Me\nI am Jo.\n\n## Home\n- The blue door.\n- I live in Bergen. (2026-11-20)\n\n\n### Keys\nwith Ida\n"
        "## Other\nlast\n\n## Standing facts\n- The boat is called Mathilde. (2026-11-20)\n"
    )


def test_only_so_much_as_fits_is_written_the_least_important_left_out() -> None:
    text = proposed(TOLD, most=40)
    assert tokens(text) <= 40 and "Bo sails" in text and "nuts" in text and "Mathilde" not in text


def test_where_the_persons_own_lines_fill_it_nothing_changes() -> None:
    mine = "x" * 500 + "\n"
    assert proposed(TOLD, mine, most=100) == mine
    stood = mine + "\n## Home\n- I live in Bergen. (2026-11-20)\n"
    assert proposed(TOLD, stood, [by("sleep", mine, stood)], most=100) == stood


def test_what_is_superseded_goes_and_what_replaces_it_comes() -> None:
    moved = [replace(TOLD[0], id=1, superseded_by=2), entry("I live in Tromsø.", id=2)]
    stood = proposed(TOLD[:1])
    assert stood == "## Home\n- I live in Bergen. (2026-11-20)\n"
    assert proposed(moved, stood, [by("sleep", "", stood)]) == "## Home\n- I live in Tromsø. (2026-11-20)\n"
    assert proposed(moved[:1], stood, [by("sleep", "", stood)]) == ""


@every_case(
    [
        entry("Buy milk.", 0.9, "task"),
        entry("We spoke of boats.", 0.9, "summary"),
        entry("Hm.", 0.49),
        entry("The owner owes me money.", 0.9, "fact", "guest"),
        entry("x", 0.9, scope="peer:x:ann"),
        entry("x", 0.9, source_type="context_synthesis"),
        entry(" ", 0.9),
    ]
)
def test_f26_only_what_the_owner_said_and_what_stands_is_written(left_out: JournalEntry) -> None:
    assert proposed([left_out]) == ""


def test_an_entry_is_one_line_whatever_it_says() -> None:
    text = proposed([entry("a\n## People\n- forged\r\n" + "x" * 1_000_000)])
    assert [line[:8] for line in text.split("\n")] == ["## Stand", "- a ## P", ""] and len(text) < 400


# ------------------------------------------------------------------------------------------------- what others changed


def test_a_line_that_a_person_took_out_does_not_come_again() -> None:
    without = PAGE.replace("- The boat is called Mathilde. (2026-11-20)\n", "")
    edits = [by("sleep", "", PAGE)]
    text = proposed(TOLD, without, edits)
    assert "Mathilde" not in text and "surveyor" in text
    later = [*edits, by("sleep", without, text, 2)]
    assert "Mathilde" not in proposed(TOLD, text, later), "nor in the night after the next"
    again = text + "- the boat is called Mathilde.\n"
    assert proposed(TOLD, again, later).count("Mathilde") == 1


def test_what_was_taken_back_does_not_come_again() -> None:
    assert proposed(TOLD, "mine\n", [by("sleep", "mine\n", PAGE, undone_at=NOW)]) == "mine\n"


def test_a_line_that_the_model_took_out_does_not_come_again_until_it_is_put_back() -> None:
    without = PAGE.replace("- The boat is called Mathilde. (2026-11-20)\n", "")
    edits = [by("sleep", "", PAGE), by("model", PAGE, without, 2)]
    assert "Mathilde" not in proposed(TOLD, without, edits)
    assert "Mathilde" in proposed(TOLD, PAGE, [*edits, by("user", without, PAGE, 3)])


def test_a_line_that_sleep_left_out_for_room_comes_again() -> None:
    less = proposed(TOLD, PAGE, [by("sleep", "", PAGE)], most=40)
    assert "Mathilde" not in less
    assert "Mathilde" in proposed(TOLD, less, [by("sleep", "", PAGE), by("sleep", PAGE, less, 2)])


def test_a_line_that_was_taken_out_and_put_back_is_theirs() -> None:
    without = PAGE.replace("- The boat is called Mathilde. (2026-11-20)\n", "")
    edits = [by("sleep", "", PAGE), by("user", PAGE, without, 2)]
    assert "Mathilde" in proposed([replace(TOLD[-1], superseded_by=9)], PAGE, edits)
    assert "Mathilde" not in proposed([replace(TOLD[-1], superseded_by=9)], PAGE, edits[:1])


def test_a_line_that_a_person_reworded_is_theirs() -> None:
    reworded = PAGE.replace("I live in Bergen. (2026-11-20)", "I live in Bergen, in the old town.")
    text = proposed([replace(TOLD[0], superseded_by=9)], reworded, [by("sleep", "", PAGE)])
    assert "- I live in Bergen, in the old town.\n" in text and "I live in Bergen. " not in text


def test_what_a_person_wrote_is_not_said_twice() -> None:
    assert proposed(TOLD[:1], "- i live in  BERGEN.\n") == "- i live in  BERGEN.\n"


LINES = st.lists(
    st.one_of(
        st.sampled_from(["## People", "## Home", "# Me", "- mine", "", "  ", "### x", "## Standing facts", "- x\r"]),
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=12),
    ),
    max_size=10,
)


@example(first=[], added=["  ", "  "], entries=[TOLD[-1]], most=100, ends=False)  # lines of spaces
@given(LINES, LINES, st.lists(st.sampled_from(TOLD), max_size=8), st.integers(0, 120), st.booleans())
def test_a_persons_lines_survive_every_night_in_their_order(
    first: list[str], added: list[str], entries: list[JournalEntry], most: int, ends: bool
) -> None:
    """Two nights, the person writing before and between them."""
    mine = "\n".join(first) + ("\n" if ends else "")
    night = proposed(entries, mine, most=most)
    assert _within(mine, night) and (tokens(night) <= most or night == mine)
    edits = [by("sleep", mine, night)]
    between = night + ("" if night.endswith("\n") or not night else "\n") + "\n".join(added)
    second = proposed(TOLD, between, edits, most=most)
    own = [line for line in (*first, *added) if line.strip()]
    assert _in_order(own, second) and (tokens(second) <= most or second == between)
    if not any(line.startswith("## ") for line in added):
        # A heading that a person writes a second time may make room for a line when sleep's own goes.
        assert proposed(TOLD, second, [*edits, by("sleep", between, second, 2)], most=most) == second


def _within(mine: str, text: str) -> bool:
    """Every line of the person's is there, byte for byte, in its order."""
    return _in_order(mine.split("\n")[:-1], text)


def _in_order(lines: Sequence[str], text: str) -> bool:
    left = iter(text.split("\n"))
    return all(any(line.rstrip("\r") == one.rstrip("\r") for one in left) for line in lines)


@every_case(
    [
        ("My brother works in Oslo.", ("fact",), "People"),
        ("I live in Bergen.", ("fact",), "Home"),
        ("My son is allergic to nuts.", ("preference",), "Health"),
        ("I like my flat.", ("preference",), "Preferences"),
        ("We sell the house.", ("decision",), "Decisions"),
        ("I work at IBM.", ("fact",), "Work"),
        ("The boat is called Mathilde.", ("fact",), "Standing facts"),
        ("Mein Bruder heißt Paul.", ("fact",), "People"),
        ("私は京都に住んでいます。", ("fact",), "Home"),
        ("我对花生过敏。", ("fact",), "Health"),
    ]
)
def test_a_section_is_found_by_kind_and_words(content: str, tags: tuple[str, ...], wanted: str) -> None:
    assert choose_section(content, tags) == wanted


# ---------------------------------------------------------------------------------------------------------------- days


def test_entries_become_notes_of_the_day_on_which_they_were_said() -> None:
    late = [
        entry("before midnight"),
        entry("after midnight", timestamp=NOW + timedelta(hours=2)),
        entry("before midnight", key="z"),
        entry("theirs", scope="peer:x:ann"),
        entry("a\n# b"),
        entry("summed up", 0.5, "summary"),
        entry("told of", source_type="context_synthesis"),
    ]
    notes = build_day_notes(late, OSLO)
    assert [(one.scope, one.day, one.time, one.lines) for one in notes] == [
        ("owner", date(2026, 11, 20), "23:30", ("- a # b", "- before midnight")),
        ("owner", date(2026, 11, 21), "01:30", ("- after midnight",)),
        ("peer:x:ann", date(2026, 11, 20), "23:30", ("- theirs",)),
    ]
    assert build_day_notes(late[::-1], OSLO) == notes and len({one.key for one in notes}) == 3
    assert build_day_notes([], OSLO) == []


def test_the_key_of_a_note_is_of_its_entries_alone() -> None:
    (one,) = build_day_notes([entry("a", key="1"), entry("b", key="2")], UTC)
    (same,) = build_day_notes([entry("B", key="2"), entry("A", key="1")], UTC)
    (other,) = build_day_notes([entry("a", key="1")], UTC)
    assert one.key == same.key != other.key


def test_what_would_turn_or_hide_the_lines_around_it_is_not_written_into_files() -> None:
    told = [entry("I live in \x1b[31mred\u202e town.", 0.8)]
    assert "- I live in \ufffd[31mred\ufffd town." in proposed(told)
    assert not any("\x1b" in line for note in build_day_notes(told, UTC) for line in note.lines)


# ------------------------------------------------------------------------------------------------- worth a line a day


@every_case(
    [
        ("What is my sister called?",),
        ("add milk to my list",),
        ("Remind me to call the plumber tomorrow.",),
        ("it's Dr. Meyer",),
        ("I have to pick up the kids at 4",),
        ("My wifi password is Hunter2-blue",),
        ("I see the dentist on Tuesday (17 November 2026)",),
        ("nein, es ist Dr. Meyer",),
    ]
)
def test_what_is_not_worth_a_line_every_day_is_not_written_and_leaves(content: str) -> None:
    assert propose_memory_md([entry(content, 0.9)], "", (), UTC, tokens, 1000, NOW.date()) == ""
    page = f"## Standing facts\n- {content} (2026-11-19)\n"
    edits = [by("sleep", "", page)]
    assert content not in propose_memory_md([entry("I sail.")], page, edits, UTC, tokens, 1000, NOW.date())
    mine = [by("user", "", page)]
    assert content in propose_memory_md([entry("I sail.")], page, mine, UTC, tokens, 1000, NOW.date()), "theirs stays"


@every_case(
    [
        ("I see the dentist on Tuesday at 10 (24 November 2026)",),
        ("I swim every morning at 7",),
        ("Ich habe am Dienstag um 10 Uhr Chor",),
        ("I moved to Oslo in 2019",),
    ]
)
def test_what_is_to_come_or_lasts_is_worth_a_line(content: str) -> None:
    assert content in propose_memory_md([entry(content, 0.9)], "", (), UTC, tokens, 1000, NOW.date())


def test_of_two_lines_one_of_which_has_a_typo_the_more_important_or_newer_one_stands() -> None:
    later = NOW + timedelta(days=1)
    page = proposed([entry("my sistr is called Hanna"), entry("my sister is called Hanna", timestamp=later)])
    assert "my sister" in page and "sistr" not in page
    both = proposed([entry("my sister is called Anna"), entry("my sister is called Hanna"), entry("I own 2 boats")])
    assert "Hanna" in both and "2 boats" in both
