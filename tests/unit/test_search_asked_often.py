"""Search: what was asked and answered often is no more common, and no more likely to be found, than what was told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from assistant.core.messages import LOOKUP_TOOLS
from tests.support.search_home import SearchHome, add_chatter


@pytest.fixture
def room(tmp_path: Path) -> Iterator[SearchHome]:
    room = SearchHome(tmp_path / "home")
    yield room
    room.close()


ASKED = ("What is zed-tau-417?", "what is zed-tau-417", "Tell me what zed-tau-417 is.", "zed-tau-417?")
ANSWERED = ("zed-tau-417 is the locker at the north dock.", 'You said: "zed-tau-417 is the locker at the north dock."')


@pytest.mark.parametrize("around", [0, 120])
def test_a_message_that_defines_an_identifier_stays_first_however_often_it_was_asked(
    room: SearchHome, around: int
) -> None:
    add_chatter(room, around)
    (defines,) = room.say("By the way, zed-tau-417 is the locker at the north dock, and Ragna has its key.")
    add_chatter(room, around, seed=4)
    for number in range(50):
        room.talk(ASKED[number % len(ASKED)], ANSWERED[number % len(ANSWERED)])
        assert room.search_ids("What is zed-tau-417?", limit=3)[0] == defines


def frequencies(room: SearchHome, word: str) -> tuple[list[int], int]:
    while room.finder.index_next_batch():
        pass
    return room.finder.frequencies([word])


def test_the_first_question_has_nothing_to_make_once_all_is_indexed(room: SearchHome) -> None:
    room.say("The ferry to Bergen leaves at nine.", "Anna brings the tent.")
    while room.finder.index_next_batch():
        pass
    index = room.finder._opened().index
    assert index._vectors._sketched == index.count == 2 and index.vocabulary._spelt is not None


def test_what_was_asked_often_is_as_rare_as_before(room: SearchHome) -> None:
    add_chatter(room, 60)
    room.say("Torvald sold the sauna.")
    assert frequencies(room, "sauna") == ([1], 61)
    for _ in range(30):
        room.talk("What did Torvald do with the sauna?", "He sold the sauna to a tobacconist.")
    assert frequencies(room, "sauna") == ([1], 61)
    assert frequencies(room, "tobacconist") == ([1], 61), "what stands in answers alone counts once"


def test_a_question_that_tells_something_as_well_counts_as_told(room: SearchHome) -> None:
    room.say("My locker has the number zt417 from today on, will you keep that in mind?")
    room.talk("Is it zt417?", "Yes, zt417.")
    assert frequencies(room, "zt417") == ([1], 1)


THINGS = ("boat", "piano", "tent", "shed", "printer", "locker")


@pytest.mark.parametrize("tool", sorted(LOOKUP_TOOLS))
def test_what_was_looked_up_a_hundred_times_is_found_as_on_the_first_day(room: SearchHome, tool: str) -> None:
    (told,) = room.say("The lender of Ludvig's garage is Memara.")
    others = room.say(*(f"The lender of {who}'s {what} is Pesava." for who in ("Anna", "Jonas") for what in THINGS))
    question = "Who is the lender of Ludvig's garage?"
    first = room.search_ids(question, limit=8)
    assert first[0] == told and set(first) <= {told, *others}
    for _ in range(100):
        room.say(f'{question}\n#{told} user: "The lender of Ludvig\'s garage is Memara."', role="tool", name=tool)
    assert room.search_ids(question, limit=8) == first


def test_what_other_tools_told_is_found(room: SearchHome) -> None:
    (told,) = room.say("Ludvig's garage: lender Memara, since 2019.", role="tool", name="look_up_contract")
    assert room.search_ids("Who is the lender of Ludvig's garage?") == [told]
