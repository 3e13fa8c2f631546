"""How something learned closes what it replaces: both dates are kept, nothing is dropped."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from assistant.core.profiles import Profile, add_alias, add_attribute, end_attribute, fold_name, has_name, remove_alias

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(day: int) -> datetime:
    return START + timedelta(days=day)


def spans(profile: Profile) -> list[tuple[str, int, int | None]]:
    return [
        (one.value, (one.since - START).days, (one.until - START).days if one.until else None)
        for one in profile.attributes
    ]


MARTA = Profile("owner", "person", "Marta", ("my sister",))


def test_a_newer_value_closes_the_older_and_both_keep_their_dates() -> None:
    lived = add_attribute(add_attribute(MARTA, "lives in", "Oslo", at(1), (1,)), "Lives in", "Bergen", at(5), (2,))
    assert spans(lived) == [("Oslo", 1, 5), ("Bergen", 5, None)]
    assert [one.sources for one in lived.attributes] == [(1,), (2,)]


def test_the_same_again_adds_its_source_alone() -> None:
    lived = add_attribute(add_attribute(MARTA, "lives in", "Oslo", at(1), (1,)), "lives in", "OSLO", at(5), (2, 1))
    assert spans(lived) == [("Oslo", 1, None)] and lived.attributes[0].sources == (1, 2)


def test_something_older_that_is_told_later_ends_where_the_newer_begins() -> None:
    lived = add_attribute(add_attribute(MARTA, "lives in", "Bergen", at(5)), "lives in", "Oslo", at(1))
    assert spans(lived) == [("Oslo", 1, 5), ("Bergen", 5, None)]
    between = add_attribute(lived, "lives in", "Voss", at(3))
    assert spans(between) == [("Oslo", 1, 3), ("Voss", 3, 5), ("Bergen", 5, None)]


def test_moving_back_begins_anew() -> None:
    lived = MARTA
    for day, place in ((1, "Oslo"), (2, "Bergen"), (3, "Oslo")):
        lived = add_attribute(lived, "lives in", place, at(day))
    assert spans(lived) == [("Oslo", 1, 2), ("Bergen", 2, 3), ("Oslo", 3, None)]


def test_several_may_hold_at_once_and_one_may_end() -> None:
    plays = add_attribute(
        add_attribute(MARTA, "plays", "cello", at(1), allow_multiple=True), "plays", "chess", at(2), allow_multiple=True
    )
    assert spans(plays) == [("cello", 1, None), ("chess", 2, None)]
    assert spans(end_attribute(plays, "plays", "Cello", at(4))) == [("cello", 1, 4), ("chess", 2, None)]
    assert end_attribute(plays, "plays", "go", at(4)) == plays == end_attribute(plays, "speaks", "", at(4))
    assert spans(end_attribute(plays, "plays", "", at(4))) == [("cello", 1, 4), ("chess", 2, 4)]


def test_aliases_come_and_go_in_any_case() -> None:
    assert add_alias(MARTA, "My Sister") == MARTA and add_alias(MARTA, "MARTA") == MARTA
    two = add_alias(MARTA, "Marti")
    assert has_name(two, "márti") and remove_alias(two, "MY SISTER").aliases == ("Marti",)


def test_names_are_compared_without_case_accents_and_needless_space() -> None:
    assert fold_name("  ZOË\tDahl ") == fold_name("Zoe\u0308 dahl") == "zoe dahl"
    assert fold_name("STRASSE") == fold_name("Straße") and fold_name("が") != fold_name("か")


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 30)), max_size=12))
def test_of_one_attribute_one_value_holds_at_a_time_and_none_is_dropped(told: list[tuple[str, int]]) -> None:
    """In the order in which they were said, each day is as it was told last."""
    profile = MARTA
    told = sorted({day: (value, day) for value, day in told}.values(), key=lambda one: one[1])
    for value, day in told:
        profile = add_attribute(profile, "lives in", value, at(day), (day,))
        assert add_attribute(profile, "lives in", value, at(day), (day,)) == profile
    for day in range(31):
        holding = [
            one.value
            for one in profile.attributes
            if one.since <= at(day) and (one.until is None or one.until > at(day))
        ]
        assert holding == [value for value, since in told if since <= day][-1:]
    assert {source for one in profile.attributes for source in one.sources} == {day for _value, day in told}
