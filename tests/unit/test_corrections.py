"""Of what is known, what a statement of change puts right where no form of words tells: one thing, or nothing."""

from __future__ import annotations

from sleep.rules.corrections import correct_part, find_corrected
from sleep.rules.extract_statements import extract_statements
from sleep.rules.statements import parse_statement
from sleep.rules.supersede import compare_statements, parse_entry, restate_correction
from tests.support.sentence_tables import every_case

KNOWN = (
    "Choir is at half past seven on a Tuesday.",
    "My bridge partner is Gwilym Tudor.",
    "I take apixaban for my heart.",
    "The window cleaner wants twenty-two pounds.",
    "Nora has kindergarten until 2:45.",
    "Nora's library day is Friday.",
    "Nora wears size 6.",
    "Dad is in room 214 at Maple Court.",
    "Ada's swimming is on Sundays.",
)


def over(said: str, *, only_over: bool = False) -> list[str]:
    known = [(text, parse_statement(text)) for text in KNOWN]
    return find_corrected(parse_statement(said), known, only_ended=only_over)


@every_case(
    [
        ("Scratch what I told you about choir, it's moving to Thursdays.", KNOWN[0]),
        ("Gwilym has had a fall, so I'm playing with Beryl instead.", KNOWN[1]),
        ("They've taken me off the apixaban and put me on edoxaban.", KNOWN[2]),
        ("The window cleaner has gone up to twenty-five pounds.", KNOWN[3]),
        ("Mrs Okonkwo moved Nora's library day to Monday.", KNOWN[5]),
        ("Dad's room isn't 214, they gave me the wrong number, it's 241.", KNOWN[7]),
    ]
)
def test_what_shares_most_with_a_change_is_put_right(said: str, gone: str) -> None:
    assert over(said) == [gone]


@every_case(
    [
        "The window cleaner has three ladders.",  # nothing has changed
        "Our boiler was replaced in 2019.",  # nobody said anything of a boiler
        "Nora has given up violin.",  # of Nora much is known, and of a violin nothing
        "Ada's party is at the barn instead.",  # another thing of hers
        "There's another choir on Thursdays from now on.",  # beside the first
        "Scrap that.",
    ]
)
def test_what_says_nothing_against_it_puts_nothing_right(said: str) -> None:
    assert over(said) == []


@every_case(
    [
        ("The spare key is with Ines.", "My sister Ines moved to Bergen in March."),
        ("The ladder is with Otto.", "Otto moved to Oslo in May."),
        ("Anna is allergic to nuts.", "Anna moved to Oslo in May."),
        ("Anna's birthday is on May 3.", "Anna has moved to Oslo."),
        ("Otto is my brother.", "Otto moved to Oslo."),
        ("I lent Ines 200 euros.", "Ines has just moved to Bergen."),
        ("My flight to Bergen is on 3 May.", "My sister Ines moved to Bergen in March."),
        ("The keys are with Anna.", "Anna moved the bike to the cellar."),
    ]
)
def test_who_moves_ends_nothing_else_that_is_known_of_them(known: str, said: str) -> None:
    assert find_corrected(parse_statement(said), [("known", parse_statement(known))]) == []


@every_case(
    [
        "I changed the boiler filter on 3 May.",
        "We have changed the boiler filter.",
        "The boiler filter was replaced on 3 May.",
        "I changed our boiler's filter on 3 May.",
    ]
)
def test_things_that_share_only_the_thing_that_they_are_of_are_two(said: str) -> None:
    known = parse_statement("Remember that the boiler code is 4417.")
    assert find_corrected(parse_statement(said), [("known", known)]) == []


@every_case(
    [
        ("The boiler code is 4417.", "They changed the boiler code to 4418."),
        ("The boiler codes are 4417 and 12.", "The boiler code was changed to 4418."),
        ("Dad is in room 214 at Maple Court.", "Dad moved to room 12."),
        ("Choir sings in the church hall.", "Choir moved to the library hall."),
        ("Nora's library day is Friday.", "Mrs Okonkwo moved Nora's library day to Monday."),
    ]
)
def test_what_is_moved_is_put_right(known: str, said: str) -> None:
    assert find_corrected(parse_statement(said), [("known", parse_statement(known))]) == ["known"]


def test_where_something_was_found_already_only_what_is_said_to_be_over_goes() -> None:
    assert over("The window cleaner has gone up to twenty-five pounds.", only_over=True) == []
    assert over("The choir is on Thursdays, not on Tuesdays.", only_over=True) == [KNOWN[0]]


def test_how_somebody_is_names_nobody() -> None:
    earlier, later = parse_entry("Dad's on gabapentin, three a day."), parse_entry("Dad's room is 241.")
    assert compare_statements(later, earlier) == "separate"
    assert compare_statements(parse_entry("My boss is Helene now."), parse_entry("My boss is Raj.")) == "supersedes"


@every_case(
    [
        "I was wrong about the lab meeting, it is ten fifteen.",
        "Scrap what I said of Brunner, he retired.",
        "Not Limmatplatz, that was for a week.",
    ]
)
def test_what_is_plainly_put_right_is_learned_as_a_correction(said: str) -> None:
    assert [found.is_correction for found in extract_statements(said)] == [True]


# -------------------------------------------------------------------------------------------------- a part of it alone

DENTIST = "I have a dentist appointment on Tuesday at 10 with Dr. Weber."


@every_case(
    [
        (DENTIST, "no, it's Dr. Meyer", "I have a dentist appointment on Tuesday at 10 with Dr. Meyer, not Dr. Weber"),
        (
            DENTIST,
            "Sorry, it's Wednesday, not Tuesday.",
            DENTIST[:-1].replace("Tuesday", "Wednesday") + ", not Tuesday",
        ),
        (DENTIST, "Actually it's at 11", DENTIST[:-1].replace("10", "11") + ", not 10"),
        ("I see the dentist on Tuesday at 10.", "no, it's Dr. Meyer", "I see the dentist on Tuesday at 10 (Dr. Meyer)"),
        ("Choir is on Tuesday at 7 in Asker.", "it's in Sandvika", "Choir is on Tuesday at 7 in Sandvika, not Asker"),
        (
            "Mein Termin ist am Dienstag um 10 bei Dr. Weber.",
            "nein, es ist Dr. Meyer",
            "Mein Termin ist am Dienstag um 10 bei Dr. Meyer, nicht Dr. Weber",
        ),
        (DENTIST, "It's a nice day", ""),
        (DENTIST, "No, I do not want to", ""),
        ("Anna and Ben live in Oslo and Bergen.", "it's Lyon", ""),
        (DENTIST, "it's Tuesday", ""),
    ]
)
def test_a_part_is_put_right_and_the_rest_stays(earlier: str, message: str, whole: str) -> None:
    assert correct_part(earlier, message) == whole


@every_case(
    [
        (
            "The dentist is Dr. Meyer, not Dr. Weber.",
            "I see Dr. Weber, the dentist, on Tuesday at 10. (24 November 2026)",
            "The dentist is Dr. Meyer, not Dr. Weber (on Tuesday at 10, 24 November 2026)",
        ),
        ("Choir is on Friday now, not Tuesday.", "Choir is on Tuesday at 7.", "Choir is on Friday now, not Tuesday."),
        ("I live in Bergen now.", "I moved to Oslo on Tuesday at 10.", "I live in Bergen now."),
    ]
)
def test_what_puts_something_else_right_keeps_the_day(said: str, about: str, whole: str) -> None:
    assert restate_correction(said, about) == whole
