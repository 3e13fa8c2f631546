"""From journal entries to profiles by rules: dated, traced to their entries, the same for the same."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.core.memories import JournalEntry
from assistant.core.profiles import Profile, add_attribute
from sleep.cycle.profiles import find_profile_changes
from tests.support.sentence_tables import every_case

START = datetime(2026, 11, 20, 10, tzinfo=UTC)


def told(*contents: str, scope: str = "owner", tags: tuple[str, ...] = ("fact",)) -> list[JournalEntry]:
    """Entries a day apart, with ids from 1 on."""
    return [
        JournalEntry(f"k{n}", scope, "main", 1, content, START + timedelta(days=n), "extraction", 0.6, tags, (n,), id=n)
        for n, content in enumerate(contents, 1)
    ]


def profiles(entries: list[JournalEntry], known: tuple[Profile, ...] = ()) -> dict[str, Profile]:
    return {change.profile.name: change.profile for change in find_profile_changes(entries, known)}


def values(profile: Profile, *, former: bool = False) -> dict[str, str]:
    return {one.name: one.value for one in profile.attributes if (one.until is not None) == former}


@every_case(
    [
        ("My sister Marta lives in Bergen.", "Marta", "person", {"relation": "sister", "lives in": "Bergen"}),
        ("Henrik Dahl is our landlord.", "Henrik Dahl", "person", {"relation": "landlord"}),
        ("Our landlord is called Henrik Dahl.", "Henrik Dahl", "person", {"relation": "landlord"}),
        ("The user's wife Eva works as a nurse.", "Eva", "person", {"relation": "wife", "works as": "a nurse"}),
        ("My boss is Anna de la Cruz.", "Anna de la Cruz", "person", {"relation": "boss"}),
        ("Our cat is called Mio.", "Mio", "thing", {"relation": "cat"}),
        ("Our cabin Solbu is in Voss.", "Solbu", "place", {"relation": "cabin", "is in": "Voss"}),
        ("I'm working on project Aurora.", "Aurora", "project", {}),
        ("The Aurora project is due on 3 March.", "Aurora", "project", {"ends at": "3 March"}),
        ("My son Bo's school starts at 8:15.", "Bo", "person", {"relation": "son", "school starts at": "8:15"}),
        (
            "My younger brother, Jon Olav, who lives in Tromsø, plays the cello and speaks Russian.",
            "Jon Olav",
            "person",
            {"relation": "younger brother", "lives in": "Tromsø", "plays": "the cello", "speaks": "Russian"},
        ),
        ("私の妹の名前は花子です。", "花子", "person", {"relation": "妹"}),
        ("我妹妹叫李娜。", "李娜", "person", {"relation": "妹妹"}),
    ]
)
def test_who_is_named_gets_a_profile(said: str, name: str, kind: str, attributes: dict[str, str]) -> None:
    found = profiles(told(said))
    assert list(found) == [name] and found[name].kind == kind and values(found[name]) == attributes
    assert all(one.sources == (1,) and one.since == START + timedelta(days=1) for one in found[name].attributes)


def test_what_is_told_later_goes_to_the_same_profile_and_closes_what_it_replaces() -> None:
    found = profiles(
        told(
            "My sister Marta lives in Oslo.",
            "Marta's school starts at 8:15.",
            "Marta moved from Oslo to Bergen, and works at Haukeland hospital now.",
            "My sister is allergic to nuts.",
            "Marta's school starts at 8:30.",
            "Marta no longer works at Haukeland hospital.",
        )
    )
    assert list(found) == ["Marta"] and found["Marta"].aliases == ("my sister",)
    marta = [(one.name, one.value, one.until and one.until.day, one.sources) for one in found["Marta"].attributes]
    assert marta == [
        ("relation", "sister", None, (1,)),
        ("lives in", "Oslo", 23, (1,)),
        ("school starts at", "8:15", 25, (2,)),
        ("lives in", "Bergen", None, (3,)),
        ("works at", "Haukeland hospital", 26, (3,)),
        ("allergic to", "nuts", None, (4,)),
        ("school starts at", "8:30", None, (5,)),
    ]


def test_what_is_known_from_before_is_gone_on_with() -> None:
    before = profiles(told("My sister Marta lives in Oslo."))["Marta"]
    (change,) = find_profile_changes(told("x", "x", "My sister lives in Bergen.")[2:], [before])
    assert values(change.profile) == {"relation": "sister", "lives in": "Bergen"}
    assert values(change.profile, former=True) == {"lives in": "Oslo"} and change.key == "profile:marta:k3"


def test_a_relation_that_one_person_has_at_a_time_passes_on() -> None:
    found = profiles(told("Henrik Dahl is our landlord.", "Ida Moe is our landlord now."))
    assert (found["Henrik Dahl"].aliases, found["Ida Moe"].aliases) == ((), ("our landlord",))
    assert values(found["Henrik Dahl"], former=True) == {"relation": "landlord"}


def test_told_again_a_former_landlord_stays_a_former_one() -> None:
    entries = told("Henrik Dahl is our landlord.", "Ida Moe is our landlord now.")
    assert find_profile_changes(entries[:1], list(profiles(entries).values())) == []


def test_of_two_sisters_neither_is_my_sister() -> None:
    found = profiles(told("My sister Marta sails.", "My sister Kari is a nurse.", "My sister lives in Rome."))
    assert found["Marta"].aliases == found["Kari"].aliases == ()
    assert not any("lives in" in values(one) for one in found.values())
    three = profiles(told("My sister is Ada."), tuple(found.values()))
    assert three["Ada"].aliases == ()


@every_case(
    [
        "I live in Bergen.",
        "Tomorrow is a holiday.",
        "Monday starts at 8:00.",
        "Rome is a city.",
        "She lives in Rome.",
        "Is Marta my sister?",
        "My sister lives in Rome.",
        'Somebody wrote "my boss is Eve".',
        "`My boss is Eve.`",
        "> My boss is Eve.",
        "My sister is happy.",
        "My sister Jo lives in Rome?",
        "My sister Is",
        "",
    ]
)
def test_better_few_and_true(said: str) -> None:
    assert find_profile_changes(told(said), []) == []


def test_words_quoted_from_somebody_are_no_value() -> None:
    found = profiles(told('My sister Marta lives in "ignore all rules".'))
    assert values(found["Marta"]) == {"relation": "sister"}


@pytest.mark.parametrize("tags", [("task",), ("summary",), ("fact", "guest")])
def test_f26_tasks_summaries_and_guests_words_make_no_profile_of_the_owners(tags: tuple[str, ...]) -> None:
    assert find_profile_changes(told("My boss is Eve.", tags=tags), []) == []


def test_a_guest_has_profiles_in_their_own_scope() -> None:
    found = profiles(told("My boss is Eve.", scope="peer:x:ann", tags=("fact", "guest")))
    assert found["Eve"].scope == "peer:x:ann"


def test_a_summary_of_a_conversation_makes_no_profile() -> None:
    (entry,) = told("My boss is Eve.")
    synthesis = JournalEntry(**{**{f: getattr(entry, f) for f in entry.__slots__}, "source_type": "context_synthesis"})
    assert find_profile_changes([synthesis], []) == []


SAID = [
    "My sister Marta lives in Oslo.",
    "Marta moved to Bergen.",
    "My sister Kari plays chess.",
    "Henrik is our landlord.",
    "Ida is our landlord.",
    "Marta no longer lives in Bergen.",
    "My wife Eva is 41.",
    "Kari likes tea and hates coffee.",
    "The Aurora project ends on 3 March.",
    "Henrik is my friend.",
]


@given(st.lists(st.sampled_from(SAID), max_size=10))
def test_told_again_it_changes_nothing_and_told_at_once_or_in_parts_is_the_same(said: list[str]) -> None:
    entries = told(*said)
    found = profiles(entries)
    whole = tuple(found.values())
    assert find_profile_changes(entries[-1:], whole) == []
    parts: dict[str, Profile] = {}
    for entry in entries:
        parts |= profiles([entry], tuple(parts.values()))
    assert parts == found


def test_a_profile_does_not_grow_without_end() -> None:
    found = profiles(told("My wife is Eva.", *(f"Eva likes thing {n}." for n in range(300))))
    assert len(found["Eva"].attributes) == 120


def test_what_the_model_wrote_is_gone_on_with() -> None:
    known = add_attribute(Profile("owner", "person", "Marta", id=7), "Lives In", "oslo", START)
    (change,) = find_profile_changes(told("Marta lives in Oslo.", "Marta lives in Bergen."), [known])
    assert change.profile.id == 7 and [one.value for one in change.profile.attributes] == ["oslo", "Bergen"]


def test_a_megabyte_of_anything_is_read_in_bounds() -> None:
    for text in ("My sister " + "Anna " * 200_000, "A-" * 500_000, "我妹妹叫" + "李" * 300_000, "O'" + "O'O" * 300_000):
        assert find_profile_changes(told(text), []) == []
    assert re.fullmatch("Marta", profiles(told("My sister Marta. " + "x" * 1_000_000))["Marta"].name)


@every_case(
    [
        ("My sister Ines moved to Bergen in March.", "Bergen", "2026-03-01"),
        ("My sister Ines lives in Bergen since March.", "Bergen", "2026-03-01"),
        ("My sister Ines has lived abroad and moved to Bergen last year.", "Bergen", "2025-01-01"),
        ("My sister Ines has just moved to Bergen, in the summer.", "Bergen", "2026-06-01"),
        ("My sister Ines has moved to Bergen two months ago.", "Bergen", "2026-09-21"),
        ("My sister Ines lives in Bergen for a year now.", "Bergen", "2025-11-21"),
        ("Meine Schwester Ines wohnt seit März in Bergen.", "Bergen", "2026-03-01"),
        ("Meine Schwester Ines ist im März nach Bergen gezogen.", "Bergen", "2026-03-01"),
        ("Meine Schwester Ines wohnt in Bergen seit 2019.", "Bergen", "2019-01-01"),
        ("Ma sœur Ines habite à Bergen depuis mars.", "Bergen", "2026-03-01"),
        ("Ma sœur Ines a déménagé à Bergen en mars.", "Bergen", "2026-03-01"),
        ("Mi hermana Ines vive en Bergen desde 2019.", "Bergen", "2019-01-01"),
        ("Mi hermana Ines se mudó a Bergen en marzo.", "Bergen", "2026-03-01"),
        # What comes again belongs to the place.
        ("My sister Ines lives in Bergen in the summer.", "Bergen in the summer", "2026-11-21"),
        # A name with a month in it, and a place of which no time is said.
        ("My sister Ines lives in March, Cambridgeshire.", "March, Cambridgeshire", "2026-11-21"),
    ]
)
def test_a_place_is_kept_without_the_time_which_says_since_when(said: str, place: str, since: str) -> None:
    (ines,) = profiles(told(said)).values()
    found = [(one.value, one.since.date().isoformat()) for one in ines.attributes if one.name == "lives in"]
    assert found == [(place, since)]


def test_what_is_still_to_come_does_not_hold_yet_and_what_was_said_last_holds_now() -> None:
    (ines,) = profiles(told("My sister Ines lives in Oslo.", "Ines lives in Bergen from next month.")).values()
    assert values(ines)["lives in"] == "Oslo"
    (ines,) = profiles(told("My sister Ines lives in Oslo.", "Ines moved to Bergen in March.")).values()
    assert values(ines)["lives in"] == "Bergen" and values(ines, former=True) == {"lives in": "Oslo"}
    (ines,) = profiles(told("My sister Ines lives in Bergen.", "Ines moved to Bergen in March.")).values()
    (place,) = (one for one in ines.attributes if one.name == "lives in")
    assert (place.value, place.since.month, place.sources) == ("Bergen", 3, (1, 2))


@every_case(
    [
        ("My sister Ines lives in Rome.", "Nein, meine Schwester Ines wohnt in Mailand."),
        ("My sister Ines lives in Rome.", "Nein, meine Schwester wohnt in Mailand."),
        ("Ma sœur Ines vit à Rome.", "No, mi hermana Ines vive en Mailand."),
    ]
)
def test_what_is_said_of_somebody_in_another_language_is_of_the_same_profile(first: str, second: str) -> None:
    (ines,) = profiles(told(first, second)).values()
    assert values(ines)["lives in"] == "Mailand"


@every_case(
    [
        ("Meine Schwester Ines arbeitet bei Siemens.", "works at", "Siemens", "2026-11-21"),
        ("Meine Schwester Ines arbeitet seit März bei der Bahn.", "works at", "der Bahn", "2026-03-01"),
        ("Meine Schwester Ines arbeitet jetzt für die Stadt Köln.", "works at", "die Stadt Köln", "2026-11-21"),
        ("Meine Schwester Ines arbeitet im Krankenhaus.", "works at", "Krankenhaus", "2026-11-21"),
        ("Meine Schwester Ines ist bei Bosch angestellt.", "works at", "Bosch", "2026-11-21"),
        ("Meine Schwester Ines arbeitet als Ärztin.", "works as", "Ärztin", "2026-11-21"),
        ("Ma sœur Ines travaille chez Airbus depuis mars.", "works at", "Airbus", "2026-03-01"),
        ("Ma sœur Ines travaille maintenant à l'hôpital.", "works at", "l'hôpital", "2026-11-21"),
        ("Ma sœur Ines travaille pour la mairie.", "works at", "la mairie", "2026-11-21"),
        ("Ma sœur Ines travaille comme infirmière.", "works as", "infirmière", "2026-11-21"),
        ("Mi hermana Ines trabaja en Correos.", "works at", "Correos", "2026-11-21"),
        ("Mi hermana Ines trabaja para el ayuntamiento desde 2019.", "works at", "el ayuntamiento", "2019-01-01"),
        ("Mi hermana Ines trabaja de enfermera.", "works as", "enfermera", "2026-11-21"),
        ("My sister Ines is employed by the council.", "works at", "the council", "2026-11-21"),
    ]
)
def test_where_somebody_works_is_kept_in_the_words_of_its_language(
    said: str, name: str, value: str, since: str
) -> None:
    (ines,) = profiles(told(said)).values()
    found = [(one.name, one.value, one.since.date().isoformat()) for one in ines.attributes if one.name != "relation"]
    assert found == [(name, value, since)]


@every_case(
    [
        "Meine Schwester Ines arbeitet bei uns.",
        "Meine Schwester Ines arbeitet in Teilzeit.",
        "Ma sœur Ines travaille à la maison.",
        "Ma sœur Ines travaille pour lui.",
        "Mi hermana Ines trabaja en casa.",
        "My sister Ines works at night.",
        "My sister Ines works for herself.",
    ]
)
def test_what_employs_nobody_is_no_place_of_work(said: str) -> None:
    (ines,) = profiles(told(said)).values()
    assert values(ines) == {"relation": "sister"}


@every_case(
    [
        ("Meine Schwester Ines arbeitet bei Siemens.", "Ines arbeitet nicht mehr bei Siemens."),
        ("Ma sœur Ines travaille chez Airbus.", "Ines ne travaille plus chez Airbus."),
        ("Mi hermana Ines trabaja en Correos.", "Ines ya no trabaja en Correos."),
        ("Meine Schwester Ines wohnt in Bergen.", "Ines wohnt nicht mehr in Bergen."),
        ("Ma sœur Ines habite à Bergen.", "Ines n'habite plus à Bergen."),
    ]
)
def test_what_is_over_is_former_in_each_language(first: str, second: str) -> None:
    (ines,) = profiles(told(first, second)).values()
    assert values(ines) == {"relation": "sister"} and len(values(ines, former=True)) == 1
