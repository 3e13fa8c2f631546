"""Search: whatever is asked, in whatever script, of messages however long."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assistant.core.messages import Media, Message
from assistant.search.dtypes import Floats
from assistant.search.match import WordMatcher, WordSpot, make_excerpt
from assistant.search.query import query_words
from assistant.store.search.index_store import Stemmer
from assistant.wire.search import open_history
from tests.support.imports import import_messages
from tests.support.search_home import GUEST, NOW, OWNER, SearchHome, add_chatter


@pytest.fixture
def room(tmp_path: Path) -> Iterator[SearchHome]:
    room = SearchHome(tmp_path / "home")
    yield room
    room.close()


# ---------------------------------------------------------------------------------------------------------- injections

INJECTIONS = [
    '"',
    '""',
    '"kayak',
    'kayak"',
    "kayak*",
    "^kayak",
    "kayak AND",
    "AND kayak",
    "NOT kayak",
    "kayak NOT harbour",
    "NEAR(kayak harbour, 2)",
    "NEAR(",
    "(kayak",
    "kayak)",
    "text:kayak",
    "{text}:kayak",
    "-text:kayak",
    "kayak + harbour",
    "'; DROP TABLE messages; --",
    "kayak' OR '1'='1",
    "kayak;kayak",
    "\\",
    "%kayak%",
    "_kayak_",
    "kayak\x00harbour",
    "kayak\ue000",
    "\ud800kayak",
    "kayak " * 2000,
    "?" * 300,
    "AND OR NOT NEAR",
    "NOT",
    "AND",
    "OR",
]


@pytest.mark.parametrize("query", INJECTIONS)
def test_no_query_is_read_as_syntax(room: SearchHome, query: str) -> None:
    (said,) = room.say("The kayak is in the harbour.")
    (other,) = room.say("Nothing to see here.", scope=GUEST, session=GUEST)
    found = room.search_ids(query)
    assert found == ([said] if "kayak" in query else [])
    assert room.db.row("SELECT count(*) FROM messages") is not None
    assert other not in found


@given(st.text(max_size=80))
@settings(max_examples=150, deadline=None)
def test_any_text_at_all_is_a_question(prepared: SearchHome, query: str) -> None:
    assert all(hit.session == "main" for hit in prepared.search(query))


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SearchHome]:
    room = SearchHome(tmp_path_factory.mktemp("prepared") / "home")
    room.say("The kayak is in the harbour, 0 1 2 a b c é 北京 ไทย.")
    room.say("The kayak is in the harbour, 0 1 2 a b c é 北京 ไทย.", session=GUEST, scope=GUEST)
    yield room
    room.close()


# -------------------------------------------------------------------------------------------------------------- scripts


@pytest.mark.parametrize(
    ("text", "queries"),
    [
        ("我把备用钥匙放在花园的红色花盆下面了。", ["钥匙", "备用钥匙放在哪里", "花盆", "匙"]),
        ("来週の火曜日に歯医者の予約があります。", ["歯医者", "予約", "歯医者はいつですか", "火曜"]),
        ("서울에서 할머니를 만났어요.", ["서울", "할머니", "할머니를"]),
        ("ฉันเก็บกุญแจสำรองไว้ใต้กระถางดอกไม้", ["กุญแจ", "กระถาง", "กุญแจสำรองอยู่ไหน"]),
        ("मैंने चाबी लाल गमले के नीचे रखी है।", ["चाबी", "गमले", "लाल"]),
        ("Ключ лежит под красным горшком.", ["ключ", "горшком"]),
        ("המפתח מתחת לעציץ האדום", ["המפתח", "לעציץ"]),
        ("Der Schlüssel liegt im Café.", ["schlüssel", "schlussel", "cafe", "CAFÉ"]),
        ("Ｆｕｌｌ ｗｉｄｔｈ ﾃｽﾄ", ["full", "width", "テスト"]),
        ("新しいiPhone15を買いました", ["iphone15", "iPhone15"]),
        ("The 🎹 piano 🎹 is sold", ["piano"]),
    ],
)
def test_words_of_every_script_are_found(room: SearchHome, text: str, queries: Sequence[str]) -> None:
    add_chatter(room, 10)
    room.say("今天天气很好，我们去公园散步吧。", "明日は雨でしょう。", "날씨가 좋네요.")
    (wanted,) = room.say(text)
    add_chatter(room, 10, seed=4)
    for query in queries:
        assert room.search_ids(query)[:1] == [wanted], query


def test_a_word_between_spaceless_characters_stands_by_itself() -> None:
    stems = Stemmer()
    matcher = WordMatcher(query_words("phones"), stems.stem_words)
    assert [(spot.start, spot.end) for spot in matcher.find_spots("新しいphoneを、smartphone phone買")] == [
        (3, 8),
        (21, 26),
    ]
    stems.close()


def test_the_words_of_many_texts_are_stemmed_at_once() -> None:
    stems, asked = Stemmer(), []

    def stem_words(words: Iterable[str]) -> dict[str, str]:
        asked.append(set(words))
        return stems.stem_words(asked[-1])

    matcher = WordMatcher(query_words("phones kayak"), stem_words)
    texts = ["a phone", "nothing", "phoned, phonetics and kayaks", "phone"]
    spots = matcher.find_spots_of(texts)
    assert [[(spot.start, spot.word) for spot in of_text] for of_text in spots] == [
        [(2, 0)],
        [],
        [(0, 0), (22, 1)],
        [(0, 0)],
    ]
    assert asked[1:] == [{"phone", "phoned", "phonetics", "kayaks"}]
    assert [matcher.find_spots(text) for text in texts] == spots
    stems.close()


def test_a_part_of_a_run_that_was_not_said_is_not_found(room: SearchHome) -> None:
    room.say("我今天去了北京。")
    assert room.search_ids("东京") == []


# ------------------------------------------------------------------------------------------------------------- excerpts


def test_an_excerpt_stands_around_the_best_words_in_whole_sentences(room: SearchHome) -> None:
    before = "Last week was quiet and we mostly slept. " * 12
    after = " Nothing else happened that day, as far as I remember." * 12
    room.say(f"{before}The vet's name is Dr Halvorsen, on the harbour street.{after}")
    (hit,) = room.search("what is the name of the vet on harbour street")
    assert "The vet's name is Dr Halvorsen, on the harbour street." in hit.text
    assert hit.text.startswith("… ") and hit.text.endswith(" …")
    assert len(hit.text) <= 410
    assert all(
        part.strip() in f"{before}{after} Dr Halvorsen" or "Halvorsen" in part
        for part in hit.text.strip("… ").split(". ")
    )


def test_a_short_message_is_quoted_whole(room: SearchHome) -> None:
    room.say("The vet is\n\n  Dr Halvorsen.")
    assert [hit.text for hit in room.search("vet")] == ["The vet is Dr Halvorsen."]


def test_an_excerpt_ends_with_the_sentence_of_the_words_rather_than_begin_earlier() -> None:
    before = (
        "On the whole, if I get up early on Monday I could finish the frame. The garden looks sad, but the bed has a "
        "few green tips. I spent the evening with the script, and it finally does what I meant. "
    )
    text = before + "The electrician in Stavanger who understood the cabin straight away is called Zimfen Kespelvar."
    spots = [
        WordSpot(text.index(word), text.index(word) + len(word), n) for n, word in enumerate(("Stavanger", "cabin"))
    ]
    assert make_excerpt(text, spots, [1.0, 1.0]).text.endswith("is called Zimfen Kespelvar.")


def test_an_excerpt_has_what_follows_a_colon_for_what_was_changed_stands_there() -> None:
    before = (
        "One more thing. My boss thinks that we should push the release to Friday, and I am not sure that I agree. "
    )
    before += "Had the call with the kids this morning, and it went better than I feared. "
    change = (
        "I have changed my mind about the studio of Matteo in Graz: not Ivo Kest any more, Savhol Rudpelost does it."
    )
    text = before + change
    spots = [
        WordSpot(text.index(word), text.index(word) + len(word), n)
        for n, word in enumerate(("studio", "Matteo", "Graz"))
    ]
    excerpt = make_excerpt(text, spots, [1.0, 1.0, 1.0]).text
    assert change in excerpt and len(excerpt) <= 330


@given(st.lists(st.sampled_from(["kayak", "walk. ", "\n", " ", "北京", "x" * 90, "! "]), min_size=1, max_size=120))
@settings(max_examples=100, deadline=None)
def test_every_excerpt_is_short_and_made_of_the_text(parts: list[str]) -> None:
    text = "".join(parts)
    spots = [WordSpot(at, at + 5, 0) for at in range(len(text)) if text.startswith("kayak", at)]
    piece = make_excerpt(text, spots, [1.0]).text
    assert len(piece) <= 410
    assert piece.removeprefix("… ").removesuffix(" …") in " ".join(text.split())
    assert not spots or "kayak" in piece


# ------------------------------------------------------------------------------------------------------ giant messages


def test_of_a_giant_message_only_pieces_are_held(room: SearchHome) -> None:
    add_chatter(room, 5)
    line = "nothing of note happened in this line of the report\n"
    (giant,) = room.say(line * 500_000, role="tool")
    add_chatter(room, 5, seed=4)
    room.search_ids("warm up")
    tracemalloc.start()
    try:
        hits = room.search("where was the report")
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert hits[0].message_id == giant
    assert "line of the report" in hits[0].text and len(hits[0].text) <= 410
    assert most < 8_000_000


@pytest.mark.parametrize("quote", ["", '"', "\\", "\n\t\x00", "é北🎹"])
def test_words_deep_inside_a_long_message_are_found_and_quoted(room: SearchHome, quote: str) -> None:
    filler = f"nothing {quote}of note{quote} happened in this line of the report. "
    (said,) = room.say(f"{filler * 10_000}The zither was found in the attic. {filler * 2_000}")
    (hit,) = room.search("where was the zither found")
    assert hit.message_id == said
    assert "The zither was found in the attic." in hit.text


def test_the_end_of_a_giant_tool_result_is_found_and_quoted(room: SearchHome) -> None:
    filler = "nothing of note happened in this line of the report. "
    (said,) = room.say(f"{filler * 300_000}The zither was found in the attic.", role="tool", name="read_file")
    (hit,) = room.search("where was the zither found")
    assert hit.message_id == said
    assert hit.text.endswith("The zither was found in the attic.")


def test_a_message_with_a_large_picture_is_found_by_its_words(room: SearchHome) -> None:
    picture = Media("image", "image/png", "p.png", 3_000_000, "A" * 4_000_000)
    (kept,) = import_messages(
        room.conversation, "main", OWNER, [Message("user", "the zither, see", media=(picture,))], NOW
    )
    (hit,) = room.search("zither")
    assert (hit.message_id, hit.text) == (kept.id, "the zither, see")


# ---------------------------------------------------------------------------------------------------------------- terms


_BEGINNINGS = "organis hop happ relat sensib cancel dy ti ag controll fl k x"
_ENDINGS = "e y ies ied ing ed s ness ational ation ible ibility ying ey"


@pytest.mark.parametrize("beginning", _BEGINNINGS.split())
def test_a_text_s_word_is_found_by_every_word_with_its_stem(beginning: str) -> None:
    stems = Stemmer()
    words = [beginning, *(beginning + ending for ending in _ENDINGS.split())]
    made = stems.stem_words(words)
    for word in words:
        matcher = WordMatcher(query_words(word), stems.stem_words)
        same = [other for other in words if made[other] == made[word]]
        assert [other for other in words if matcher.words_in(f"({other})")] == same
    stems.close()


# ------------------------------------------------------------------------------------------------------------ stopping


def test_a_program_that_stops_leaves_the_text_that_it_is_indexing_for_the_next_start(room: SearchHome) -> None:
    room.say("Good morning.")
    room.finder.index_next_batch()
    index = room.finder._opened().index
    embed = index._embedded_units._embed

    def stop_and_embed(texts: Sequence[str]) -> Floats:
        room.finder.stop_indexing()
        return embed(texts)

    index._embedded_units._embed = stop_and_embed
    (said,) = room.say("The zeppelin flies north. " * 100)
    assert room.finder.index_next_batch() == 0
    assert (index.read_to, index.count) == ({"main": 1}, 1)
    history, _ = open_history(room.path)
    assert history.search("zeppelin", OWNER)[0].message_id == said
    history.close()
