"""What the search knows of the form of a text: whether it asks more than it says, how often it speaks of its author."""

from __future__ import annotations

from pathlib import Path

from assistant.search.units import MOST_FIRST_PERSON, MOSTLY_ASKS, count_first_person, unit_flags
from tests.support.search_home import SearchHome, add_chatter
from tests.support.sentence_tables import every_case


@every_case(
    [
        ("Where did you put the spare key of the cabin, and who else has one?", True),
        ("Nice! How long did the walk from the harbour to the lighthouse take you?", True),
        ("What is it? A boat?", True),
        ("Wann fährt der Zug nach Bergen?", True),
        ("帽子はどこですか？", True),
        ("I walked from the harbour to the lighthouse with Tom. And you?", False),
        ("We moved to Bergen in March, into a flat by the water. Where do you live?", False),
        ("The boiler was serviced on 3 March.", False),
        ("", False),
    ]
)
def test_a_text_asks_mostly_where_half_of_its_words_are_in_questions(text: str, asks: bool) -> None:
    assert bool(unit_flags(text) & MOSTLY_ASKS) is asks


@every_case(
    [
        ("The boiler was serviced.", 0),
        ("My sister moved to Bergen.", 1),
        ("I'd say that we like it.", 2),
        ("Ich habe meinen Schlüssel verloren", 2),
        ("I took my bike and we rode to our cabin", MOST_FIRST_PERSON),
    ]
)
def test_words_in_the_first_person_are_counted(text: str, count: int) -> None:
    assert count_first_person(text) == count


def test_what_somebody_told_comes_before_what_was_asked_about_it(tmp_path: Path) -> None:
    room = SearchHome(tmp_path / "home")
    add_chatter(room, 20)
    told, asked = room.say(
        "I made my first bowl at the pottery class in Leeds, and I broke it on the way home to my flat.",
        "How was the pottery class in Leeds that you and Sue talked about for weeks, was the pottery class really fun?",
    )
    assert room.search_ids("the pottery class in Leeds")[:2] == [told, asked]
    room.close()
