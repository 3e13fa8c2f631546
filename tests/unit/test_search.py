"""Search over the real store: what is found, and for whom."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from threading import Event

import pytest

from assistant.core.messages import Media, Message
from assistant.core.records import IncomingMessage, LogLocation
from assistant.search.query import SearchLimits
from assistant.wire.search import open_history
from tests.bench.prose import Prose
from tests.support.imports import import_messages
from tests.support.search_home import GUEST, NOW, OWNER, SearchHome, add_chatter


@pytest.fixture
def room(tmp_path: Path) -> Iterator[SearchHome]:
    room = SearchHome(tmp_path / "home")
    yield room
    room.close()


# ------------------------------------------------------------------------------------------------------------- finding


def test_a_natural_question_finds_what_was_said_in_other_forms_of_its_words(room: SearchHome) -> None:
    add_chatter(room, 100)
    (wanted,) = room.say("We are organising the boat repairs for April, Ragna cancelled hers.")
    add_chatter(room, 100, seed=4)
    assert room.search_ids("Did I organise that the boat is repaired?")[0] == wanted


def test_a_misspelt_question_finds_what_was_said(room: SearchHome) -> None:
    add_chatter(room, 100)
    (wanted,) = room.say("The spare umbrella is behind the piano.")
    add_chatter(room, 100, seed=4)
    assert room.search_ids("wher is the spair umbrela")[0] == wanted
    assert wanted in room.search_ids("spair")[:4]


def test_a_message_said_now_is_found_in_the_next_call(room: SearchHome) -> None:
    assert room.search_ids("zeppelin") == []
    for number in range(3):
        (said,) = room.say(f"The zeppelin has number {number}.")
        assert room.search_ids("zeppelin")[0] == said


def test_what_is_later_than_what_is_asked_for_is_not_taken_in_first(room: SearchHome) -> None:
    (old,) = room.say("The zeppelin flies north.")
    assert room.search_ids("zeppelin") == [old]
    before = NOW + timedelta(seconds=90)
    room.say("The zeppelin flies south.")
    assert room.search_ids("zeppelin", before=before) == [old]
    assert room.finder.index_next_batch() == 1
    # A change may concern what is asked for.
    room.say("The zeppelin is late.")
    room.conversation.annotate("main", "edit", [old], "The zeppelin flies west.", NOW)
    room.search("zeppelin", before=before)
    assert room.finder.index_next_batch() == 0


@pytest.mark.parametrize("said", [["The zeppelin flies north. " * 2_500], ["The zeppelin flies north."] * 70])
def test_much_that_was_said_is_taken_in_and_found_then(room: SearchHome, said: list[str]) -> None:
    room.say("Good morning.")
    assert room.search_ids("zeppelin") == []
    first, *_ = room.say(*said)
    assert room.search_ids("zeppelin", limit=len(said))[-1] == first


def test_a_search_answers_without_what_takes_much_longer_than_a_second_to_index(room: SearchHome) -> None:
    first, second = room.say("The zeppelin is in the barn.", "It flies north. " * 20_000)
    history, finder = open_history(room.path)
    assert [hit.message_id for hit in history.search("zeppelin", OWNER)] == [first]
    assert history.search("flies", OWNER) == []
    assert finder.index_next_batch() == 1
    assert history.search("flies", OWNER)[0].message_id == second
    history.close()


def test_few_messages_are_indexed_at_once_beside_turns(room: SearchHome) -> None:
    room.say(*[f"The zeppelin has number {number}." for number in range(5)])
    assert [room.finder.index_next_batch(2) for _ in range(4)] == [2, 2, 1, 0]


def test_of_all_words_of_a_message_the_stems_are_made_together(room: SearchHome) -> None:
    room.say("The zeppelins fly north, and zeppelins are late.", "A zeppelin.", "The north.")
    room.search("zeppelin")
    engine = room.finder._opened()
    stems, asked = engine._stems, list[list[str]]()

    def counted(words: Iterable[str]) -> dict[str, str]:
        asked.append([*words])
        return stems(asked[-1])

    engine._stems = counted
    assert room.finder.frequencies(["zeppelin", "northern", "north", "owl"]) == ([2, 0, 2, 0], 3)
    assert len(asked) == 1


def test_a_program_that_stops_indexes_nothing_more(room: SearchHome) -> None:
    room.say(*["The zeppelin flies north."] * 2)
    room.finder.stop_indexing()
    assert room.finder.index_next_batch() == 0
    assert room.search_ids("zeppelin") == []


async def test_whoever_takes_in_much_holds_up_nobody_who_reads(room: SearchHome) -> None:
    (said,) = room.say("Good morning.")
    held, let_go = Event(), Event()

    def hold() -> bool:
        with room.finder._lock:
            held.set()
            return let_go.wait(10)

    holding = asyncio.create_task(asyncio.to_thread(hold))
    await asyncio.to_thread(held.wait)
    searching = asyncio.create_task(asyncio.to_thread(room.search_ids, "morning"))
    for _ in range(10):
        await asyncio.sleep(0)
    assert [record.id for record in room.history.read(said, OWNER)] == [said]
    assert not searching.done()
    let_go.set()
    assert await searching == [said]
    assert await holding


def test_a_message_that_a_turn_has_begun_with_is_found_while_the_turn_runs(room: SearchHome) -> None:
    incoming = IncomingMessage("terminal", "1", "main", OWNER, "me", "owner", "my locker is number 4711")
    room.conversation.accept(incoming, NOW)
    assert room.search_ids("locker") == []
    room.conversation.begin_turn(room.conversation.list_accepted("main")[0], "", NOW)
    assert len(room.search_ids("locker")) == 1


def test_an_answer_without_the_question_s_words_is_found_beside_them(room: SearchHome) -> None:
    add_chatter(room, 50)
    asked, answered = room.talk("What is the code for the cellar in Porto?", "4711, as far as I know.")
    add_chatter(room, 50, seed=4)
    found = room.search_ids("What was the code for the cellar in Porto?")
    assert set(found[:2]) == {asked, answered}


def test_of_long_messages_the_one_with_the_words_close_together_comes_first(room: SearchHome) -> None:
    chance, prose = random.Random(1), Prose(1)
    filler = [prose.message(chance, ["walk"], 120, 130) for _ in range(8)]
    (scattered,) = room.say(f"The kayak. {filler[0]} {filler[1]} In the harbour. {filler[2]} A padlock.")
    add_chatter(room, 20)
    (close,) = room.say(f"{filler[3]} {filler[4]} The kayak in the harbour has a padlock. {filler[5]}")
    add_chatter(room, 20, seed=4)
    assert room.search_ids("kayak harbour padlock")[:2] == [close, scattered]


def test_among_equals_the_newer_one_comes_first(room: SearchHome) -> None:
    add_chatter(room, 5)
    room.say("The ferry leaves at nine.")
    add_chatter(room, 5)
    (newer,) = room.say("The ferry leaves at nine.")
    add_chatter(room, 5)
    assert room.search_ids("the ferry")[0] == newer


def test_who_is_asked_about_comes_first(room: SearchHome) -> None:
    add_chatter(room, 10, seed=5)
    room.say("I think that Bruno would take the coast road.", name="Ada")
    add_chatter(room, 10)
    (his,) = room.say("I would take the coast road.", name="Bruno")
    add_chatter(room, 10, seed=4)
    room.say("I think that Bruno would take the coast road.", name="Clara")
    add_chatter(room, 10, seed=6)
    assert room.search_ids("Which coast road would Bruno take?")[0] == his


def test_asked_for_what_it_recommended_the_assistant_s_words_come_first(room: SearchHome) -> None:
    add_chatter(room, 20)
    (mine,) = room.say("The harbour restaurant again, or the harbour restaurant's bar?")
    add_chatter(room, 20, seed=4)
    (its,) = room.say("The harbour restaurant is good, or the bar.", role="assistant")
    add_chatter(room, 20, seed=5)
    assert room.search_ids("Which harbour restaurant did you recommend?")[0] == its
    assert mine in room.search_ids("Which harbour restaurant did you recommend?")


def test_attachments_are_found_by_their_names(room: SearchHome) -> None:
    picture = Message("user", "look at this", ts=NOW, media=(Media("image", "image/png", "capybara.png", 3, "AAAA"),))
    (kept,) = import_messages(room.conversation, "main", OWNER, [picture], NOW)
    assert room.search_ids("the capybara picture") == [kept.id]


def test_a_question_finds_what_is_a_little_like_it_where_nobody_said_a_word_of_it(room: SearchHome) -> None:
    add_chatter(room, 10)
    (cats,) = room.say("My sister has three cats.")
    add_chatter(room, 10, seed=4)
    assert room.search_ids("Which pets do I keep?")[0] == cats


def test_nothing_is_found_for_words_nobody_said_and_for_none_at_all(room: SearchHome) -> None:
    add_chatter(room, 30)
    assert room.search_ids("qwzzkfj") == []
    assert room.search_ids("") == room.search_ids("?!") == room.search_ids("\x00") == []
    assert room.search_ids("walk", limit=0) == []


def test_a_question_of_stop_words_alone_still_finds_them(room: SearchHome) -> None:
    (said,) = room.say("To be or not to be.")
    assert room.search_ids("to be or not to be") == [said]


def test_a_hit_names_date_session_and_place_in_the_log(room: SearchHome) -> None:
    (said,) = room.say("The vaccination certificate is in the blue folder.", role="assistant")
    (hit,) = room.search("vaccination certificate")
    record = room.history.read(said, OWNER)[0]
    assert (hit.message_id, hit.session, hit.role, hit.generation) == (said, "main", "assistant", 1)
    assert hit.ts == record.ts
    assert hit.location == LogLocation("main", "log/main/conversation.jsonl", record.span)


# --------------------------------------------------------------------------------------------------------------- scopes


def scopes_apart(room: SearchHome, guest_messages: int, owner_messages: int) -> tuple[list[int], list[int]]:
    secret = "The combination of the safe is twelve."
    mine = room.say(*[secret] * owner_messages)
    theirs = room.say(*[secret] * guest_messages, session=GUEST, scope=GUEST)
    return mine, theirs


@pytest.mark.parametrize(("guest_messages", "owner_messages"), [(1, 60), (60, 1), (30, 30)])
def test_f33_search_returns_nothing_of_another_scope(
    room: SearchHome, guest_messages: int, owner_messages: int
) -> None:
    mine, theirs = scopes_apart(room, guest_messages, owner_messages)
    assert set(room.search_ids("combination of the safe", limit=1000)) <= set(mine)
    assert set(room.search_ids("combination of the safe", GUEST, limit=1000)) <= set(theirs)
    assert len(room.search_ids("combination", GUEST, limit=1000)) == len(theirs)
    assert room.search_ids("combination", "peer:telegram:8", limit=1000) == []
    assert room.search_ids("combination", GUEST, session="main") == []
    assert room.search_ids("combination", OWNER, session=GUEST) == []


def test_f33_reading_by_id_byte_range_or_recency_returns_nothing_of_another_scope(room: SearchHome) -> None:
    mine, theirs = scopes_apart(room, 3, 3)
    end = room.log.size("main")
    assert [room.history.read(one, GUEST, neighbours=5) for one in mine] == [[], [], []]
    assert [record.id for record in room.history.read(theirs[1], GUEST, neighbours=5)] == theirs
    assert room.history.read_byte_range("main", 0, end, GUEST) == []
    assert [record.id for record in room.history.read_byte_range("main", 0, end, OWNER)] == mine
    assert [record.id for record in room.history.recent(GUEST)] == theirs
    assert room.history.recent(GUEST, session="main") == []


def test_f33_a_record_of_another_scope_within_a_session_is_passed_over(room: SearchHome) -> None:
    """No session has two scopes; should one ever, each row is still judged by itself."""
    before, between, after = room.say("the first kayak", "the second kayak", "the third kayak")
    with room.db.write() as db:
        db.execute("UPDATE messages SET scope = ? WHERE id = ?", (GUEST, between))
    assert [record.id for record in room.history.read(before, OWNER, neighbours=2)] == [before, after]
    assert [record.id for record in room.history.read_byte_range("main", 0, 1 << 40, OWNER)] == [before, after]
    assert [record.id for record in room.history.recent(OWNER)] == [before, after]
    assert sorted(room.search_ids("kayak")) == [before, after]
    assert room.search_ids("second") == []


def test_a_guest_finds_common_words_among_a_large_owner_s_history(tmp_path: Path) -> None:
    room = SearchHome(tmp_path / "home", SearchLimits(small_collection=20))
    (early,) = room.say("We walk the dog in the garden.", session=GUEST, scope=GUEST)
    room.say("Only the weather.", session=GUEST, scope=GUEST)
    room.say(*["We walk the dog in the garden."] * 400)
    assert room.search_ids("walk the dog in the garden", GUEST)[0] == early
    room.close()


# -------------------------------------------------------------------------------------------------------------- filters


def test_dates_bound_what_is_found(room: SearchHome) -> None:
    days = [NOW + timedelta(days=day) for day in range(10)]
    messages = [Message("user", f"dentist visit {day}", ts=ts) for day, ts in enumerate(days)]
    ids = [message.id or 0 for message in import_messages(room.conversation, "main", OWNER, messages, NOW)]
    assert set(room.search_ids("dentist", after=days[7])) == set(ids[7:])
    assert set(room.search_ids("dentist", before=days[3])) == set(ids[:3])
    assert set(room.search_ids("dentist", after=days[4], before=days[6])) == set(ids[4:6])
    assert room.search_ids("dentist", after=NOW + timedelta(days=99)) == room.search_ids("dentist", before=NOW) == []


def test_dates_hold_where_the_clock_was_set_back(room: SearchHome) -> None:
    offsets = [*range(40), *range(20, 60)]
    moments = [NOW + timedelta(hours=hour / 2) for hour in offsets]
    messages = [Message("user", f"dentist visit {n}", ts=ts) for n, ts in enumerate(moments)]
    ids = [message.id or 0 for message in import_messages(room.conversation, "main", OWNER, messages, NOW)]
    after, before = NOW + timedelta(hours=11), NOW + timedelta(hours=18)
    wanted = {i for i, ts in zip(ids, moments, strict=True) if after <= ts < before}
    assert set(room.search_ids("dentist", after=after, before=before, limit=100)) == wanted


def test_a_date_range_is_searched_even_where_it_is_small_and_long_ago(tmp_path: Path) -> None:
    room = SearchHome(tmp_path / "home", SearchLimits(small_collection=20))
    old = [Message("user", "We walk the dog in the garden.", ts=NOW - timedelta(days=400))]
    (early,) = import_messages(room.conversation, "main", OWNER, old, NOW)
    room.say(*["We walk the dog in the garden."] * 400)
    assert room.search_ids("walk the dog", before=NOW - timedelta(days=300)) == [early.id]
    room.close()


def test_roles_bound_what_is_found_and_neighbours_too(room: SearchHome) -> None:
    user, assistant = room.talk("Where is the zither?", "The zither is upstairs.")
    (tool,) = room.say("zither: upstairs", role="tool")
    assert room.search_ids("zither", roles=("user",)) == [user]
    assert room.search_ids("zither", roles=("assistant",)) == [assistant]
    assert room.search_ids("zither", roles=("tool",)) == [tool]
    assert room.search_ids("zither", roles=()) == []


def test_one_session_can_be_searched(room: SearchHome) -> None:
    room.say("zither one")
    (other,) = room.say("zither two", session="room:matrix:1")
    assert room.search_ids("zither", session="room:matrix:1") == [other]


def test_what_was_undone_is_neither_found_nor_shown_beside_others(room: SearchHome) -> None:
    first, second, third = room.say("the zither is old", "the zither is broken", "the zither is sold")
    room.conversation.hide_messages("main", [second], NOW)
    assert sorted(room.search_ids("zither")) == [first, third]
    assert room.search_ids("broken") == []
    beside = [record.id for record in room.history.read(first, OWNER, neighbours=1)]
    assert beside == [first, third]
    assert second not in [record.id for record in room.history.recent(OWNER)]
    assert [record.id for record in room.history.read(second, OWNER)] == [second]


def test_what_was_blanked_in_the_log_is_not_found_even_while_the_index_still_names_it(room: SearchHome) -> None:
    add_chatter(room, 3)
    (forgotten,) = room.say("The zither belongs to Wanda.")
    add_chatter(room, 3, seed=4)
    path, span = room.log.path("main"), room.history.read(forgotten, OWNER)[0].span
    line = path.read_bytes()[span.start : span.end]
    words = b"The zither belongs to Wanda."
    with path.open("r+b") as file:
        file.seek(span.start + line.index(words))
        file.write(b" " * len(words))
    assert forgotten not in room.search_ids("zither Wanda")


ELSEWHERE = {"session": GUEST, "scope": GUEST}


@pytest.mark.parametrize("unseen", ["undone", "of another scope"])
def test_what_may_not_be_seen_does_not_lift_its_neighbours(room: SearchHome, unseen: str) -> None:
    room.say(*["yes"] * 10)
    (lifted,) = room.say("my zither is old")
    room.say("my accordion is older")
    room.say(*["yes"] * 10)
    (beside,) = room.say("my zither is old")
    (secret,) = room.say("my accordion is older", **({} if unseen == "undone" else ELSEWHERE))
    room.say(*["yes"] * 10)
    (alone,) = room.say("my zither is old")
    room.say("yes indeed it is", *["yes"] * 10)
    if unseen == "undone":
        assert secret in room.search_ids("zither accordion")
        room.conversation.hide_messages("main", [secret], NOW)
    hits = {hit.message_id: hit.score for hit in room.search("zither accordion")}
    assert secret not in hits
    assert hits[lifted] > hits[alone] + 0.3
    assert hits[beside] == pytest.approx(hits[alone], abs=0.2)


def test_a_row_that_points_at_another_record_is_not_found(room: SearchHome) -> None:
    moved, sound = room.say("the zither is old", "the zither is new")
    span = room.history.read(sound, OWNER)[0].span
    with room.db.write() as db:
        db.execute("UPDATE messages SET byte_start = ?, byte_end = ? WHERE id = ?", (span.start, span.end, moved))
    assert room.search_ids("zither") == [sound]


def test_edited_words_are_found(room: SearchHome) -> None:
    (said,) = room.say("Lunch at noon.")
    edit = room.conversation.annotate("main", "edit", [said], "Lunch at the zither museum.", NOW)
    assert room.search_ids("zither museum", roles=("user", "assistant", "tool", "system"))[0] == edit.id


# --------------------------------------------------------------------------------------------------- asked often
