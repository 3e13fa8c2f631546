"""Reading the past by id, by byte range and by recency."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from assistant.core.errors import CorruptStore
from assistant.store.search.history import MAX_BYTES_PER_READ, MAX_RECORDS_PER_READ
from tests.support.search_home import OWNER, SearchHome


@pytest.fixture
def room(tmp_path: Path) -> Iterator[SearchHome]:
    room = SearchHome(tmp_path / "home")
    yield room
    room.close()


# -------------------------------------------------------------------------------------------------------------- reading


def test_reading_by_id_gives_the_message_whole_and_its_neighbours_in_order(room: SearchHome) -> None:
    ids = room.talk(*(f"line {number}" for number in range(9)))
    room.say("elsewhere", session="room:matrix:1")
    records = room.history.read(ids[4], OWNER, neighbours=2)
    assert [record.id for record in records] == ids[2:7]
    assert [record.content for record in records] == [f"line {number}" for number in range(2, 7)]
    assert [record.id for record in room.history.read(ids[0], OWNER, neighbours=1)] == ids[:2]
    assert room.history.read(10**9, OWNER) == []


def test_reading_a_byte_range_gives_whole_records_only(room: SearchHome) -> None:
    ids = room.say(*(f"line {number}" for number in range(50)))
    spans = [room.history.read(one, OWNER)[0].span for one in ids]
    exact = room.history.read_byte_range("main", spans[20].start, spans[29].end, OWNER)
    assert [record.id for record in exact] == ids[20:30]
    inner = room.history.read_byte_range("main", spans[20].start + 1, spans[29].end - 1, OWNER)
    assert [record.id for record in inner] == ids[21:29]
    assert room.history.read_byte_range("main", 5, 6, OWNER) == []
    assert room.history.read_byte_range("nowhere", 0, 10**9, OWNER) == []


def test_recent_pages_backwards_oldest_first(room: SearchHome) -> None:
    ids = room.say(*(f"line {number}" for number in range(9)))
    assert [record.id for record in room.history.recent(OWNER, limit=4)] == ids[5:]
    assert [record.id for record in room.history.recent(OWNER, limit=4, before_id=ids[5])] == ids[1:5]
    assert room.history.recent(OWNER, limit=0) == []


def test_a_read_is_bounded_and_the_last_span_tells_where_to_go_on(room: SearchHome) -> None:
    ids = room.say(*(f"line {number}" for number in range(MAX_RECORDS_PER_READ + 5)))
    records = room.history.read_byte_range("main", 0, 1 << 40, OWNER)
    assert len(records) == MAX_RECORDS_PER_READ
    rest = room.history.read_byte_range("main", records[-1].span.end, 1 << 40, OWNER)
    assert [record.id for record in (*records, *rest)] == ids


def test_a_read_takes_few_giant_records_at_once_but_always_one(room: SearchHome) -> None:
    giant = room.say("a" * (MAX_BYTES_PER_READ + 1), role="tool")
    small = room.say("first", "second")
    assert [record.id for record in room.history.read_byte_range("main", 0, 1 << 40, OWNER)] == giant
    assert [record.id for record in room.history.recent(OWNER)] == small


def test_a_damaged_record_is_left_out_of_results_and_named_when_it_is_read(room: SearchHome) -> None:
    damaged, sound = room.say("the zither is old", "the zither is new")
    path, span = room.log.path("main"), room.history.read(damaged, OWNER)[0].span
    with path.open("r+b") as file:
        file.seek(span.start)
        file.write(b"#" * 10)
    assert room.search_ids("zither") == [sound]
    with pytest.raises(CorruptStore, match="verify"):
        room.history.read(damaged, OWNER)


def test_a_missing_log_is_told_when_it_is_read(room: SearchHome) -> None:
    (said,) = room.say("the zither is old")
    room.log.path("main").unlink()
    assert room.search_ids("zither") == []
    with pytest.raises(CorruptStore, match="missing"):
        room.history.read(said, OWNER)
