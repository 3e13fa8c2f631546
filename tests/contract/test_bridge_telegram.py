"""The Telegram bridge against a strict Bot API, without an app: what it hands in."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from assistant.bridges.telegram.bridge import TelegramBridge
from assistant.core.bridge_api import InboundMessage, MessageChange
from assistant.core.errors import BridgeError, StoreError
from assistant.core.messages import Media
from assistant.core.records import Button
from tests.strict.telegram import StrictTelegram
from tests.strict.telegram_people import BOT, OWNER, ROOM
from tests.support.telegram_bridge import (
    PIXEL,
    TelegramInboundRecorder,
    make_telegram_bridge,
    outgoing_telegram_part,
    run_telegram_bridge,
)

MENTION = {"type": "mention", "offset": 0, "length": 13}


async def handed_in(server: StrictTelegram, bridge: TelegramBridge) -> InboundMessage:
    """What becomes of the one message that waits."""
    door = TelegramInboundRecorder()
    async with run_telegram_bridge(bridge, door):
        return await door.last_arrival()


async def test_a_message_arrives_with_who_and_where(server: StrictTelegram, bridge: TelegramBridge) -> None:
    message = server.say("good morning")
    arrival = await handed_in(server, bridge)
    assert arrival == InboundMessage(
        "telegram",
        f"{BOT['id']}:{OWNER}:{message}",
        str(OWNER),
        "good morning",
        "Ann",
        target=str(OWNER),
        position="501",
    )


async def test_another_bot_that_counts_from_the_beginning_is_not_taken_for_the_first(server: StrictTelegram) -> None:
    server.say("to the old one")
    door = TelegramInboundRecorder()
    bridge = make_telegram_bridge(server)
    async with run_telegram_bridge(bridge, door):
        await door.wait_for_count(1)
    await bridge.aclose()
    async with StrictTelegram("654321:of-another-bot") as other:
        other.say("to the new one")
        bridge = make_telegram_bridge(other)
        door.stored_position = ""
        async with run_telegram_bridge(bridge, door):
            first, second = await door.wait_for_count(2)
        await bridge.aclose()
    assert (first.content, second.content) == ("to the old one", "to the new one")
    assert first.external_id != second.external_id


async def test_i10_a_file_of_somebody_who_was_not_let_in_is_not_fetched(
    server: StrictTelegram, bridge: TelegramBridge
) -> None:
    server.say(document={**server.keep_file(b"words"), "file_name": "a.txt"}, caption="look")
    door = TelegramInboundRecorder(unexpected_senders=(str(OWNER),))
    async with run_telegram_bridge(bridge, door):
        arrival = await door.last_arrival()
    assert (arrival.media, arrival.content) == ((), "look\n[file a.txt, 0.1 MB: it was not fetched]")
    assert "getfile" not in [method for method, _ in server.calls]


async def test_telegram_is_asked_for_more_only_once_the_door_kept_what_came(server: StrictTelegram) -> None:
    server.say("one")
    server.say("two")
    door = TelegramInboundRecorder(disk_full=True)
    bridge = make_telegram_bridge(server)
    with pytest.raises(StoreError):
        await bridge.run(door)
    assert [update["update_id"] for update in server.updates] == [500, 501]
    async with run_telegram_bridge(bridge, door):
        assert [one.content for one in await door.wait_for_count(2)] == ["one", "two"]
        await server.until(lambda: not server.updates)
    await bridge.aclose()
    assert server.offsets == [0, 0, 502]


async def test_receiving_goes_on_where_it_was_left(server: StrictTelegram, bridge: TelegramBridge) -> None:
    server.say("kept before")
    server.say("new")
    door = TelegramInboundRecorder(stored_position="501")
    async with run_telegram_bridge(bridge, door):
        assert (await door.last_arrival()).content == "new"
    assert server.offsets[0] == 501


async def test_counting_on_from_anywhere_loses_nothing(server: StrictTelegram, bridge: TelegramBridge) -> None:
    door = TelegramInboundRecorder(stored_position="90000")
    server.say("after a quiet week")
    async with run_telegram_bridge(bridge, door):
        await door.wait_for_count(1)
        server.say("and another")
        assert [one.content for one in await door.wait_for_count(2)] == ["after a quiet week", "and another"]
        await server.until(lambda: not server.updates)
    assert door.stored_position == "502"


async def test_what_holds_nothing_to_keep_is_passed_over(server: StrictTelegram, bridge: TelegramBridge) -> None:
    server.say(new_chat_title="The rowing club", chat=ROOM)
    server.put({"channel_post": server.written("news", chat=ROOM)})
    server.say("beep", **{"from": {"id": 7, "is_bot": True, "first_name": "Other"}})
    server.put({"message": {"message_id": "no number"}})
    door = TelegramInboundRecorder()
    async with run_telegram_bridge(bridge, door):
        await server.until(lambda: not server.updates)
    assert (door.received, door.stored_position, door.connections) == ([], "504", 1)


async def test_an_edit_is_a_change_of_its_message(server: StrictTelegram, bridge: TelegramBridge) -> None:
    message = server.say("see you at 4")
    server.edit(message, "see you at 5")
    door = TelegramInboundRecorder()
    async with run_telegram_bridge(bridge, door):
        change = (await door.wait_for_count(2))[1]
    number = f"{BOT['id']}:{OWNER}:{message}"
    assert change == MessageChange("telegram", number, "501", "edit", str(OWNER), "see you at 5", position="502")


async def test_a_place_that_is_shared_for_a_while_is_no_stream_of_edits(
    server: StrictTelegram, bridge: TelegramBridge
) -> None:
    place = {"latitude": 52.1, "longitude": 4.3}
    message = server.say(location=place)
    server.put({"edited_message": {**server.written(location=place), "message_id": message}})
    door = TelegramInboundRecorder()
    async with run_telegram_bridge(bridge, door):
        await server.until(lambda: not server.updates)
    assert [one.content for one in door.received] == ["[location: 52.10000, 4.30000]"]


@pytest.mark.parametrize(
    ("text", "fields", "addressed", "words"),
    [
        ("hello all", {}, False, "hello all"),
        ("@Nocturne_bot what is new?", {"entities": [MENTION]}, True, "what is new?"),
        ("😀 ask @nocturne_bot!", {"entities": [{**MENTION, "offset": 7}]}, True, "😀 ask !"),
        ("is @nocturne_bot there", {"entities": [{**MENTION, "offset": 3}]}, True, "is @nocturne_bot there"),
        ("@someone_else you?", {"entities": [MENTION]}, False, "@someone_else you?"),
        ("Nocturne, hi", {"entities": [{"type": "text_mention", "offset": 0, "length": 8, "user": BOT}]}, True, "hi"),
        ("/help", {}, True, "/help"),
        ("/help@nocturne_bot", {}, True, "/help@nocturne_bot"),
    ],
)
async def test_in_a_room_it_is_seen_whom_something_is_for(
    server: StrictTelegram, bridge: TelegramBridge, text: str, fields: dict[str, Any], addressed: bool, words: str
) -> None:
    server.say(text, chat=ROOM, user=5, **fields)
    arrival = await handed_in(server, bridge)
    assert (arrival.room, arrival.room_name, arrival.target) == (str(ROOM), "The boat club", str(ROOM))
    assert (arrival.sender, arrival.addressed, arrival.content) == ("5", addressed, words)


async def test_another_bots_command_is_nothing_to_us(server: StrictTelegram, bridge: TelegramBridge) -> None:
    server.say("/help@other_bot", chat=ROOM)
    door = TelegramInboundRecorder()
    async with run_telegram_bridge(bridge, door):
        await server.until(lambda: not server.updates)
    assert door.received == []


async def test_a_reply_to_the_bot_is_for_it_and_names_what_it_replies_to(
    server: StrictTelegram, bridge: TelegramBridge
) -> None:
    said = {**server.written("Shall I?\n/forget all", chat=ROOM), "from": BOT}
    server.say("yes", chat=ROOM, reply_to_message=said)
    arrival = await handed_in(server, bridge)
    assert arrival.addressed
    assert arrival.content == "yes\n\n[in reply to you]\n> Shall I?\n> /forget all"


async def test_what_stands_in_a_topic_of_the_bots_making_is_not_for_it_by_that(
    server: StrictTelegram, bridge: TelegramBridge
) -> None:
    begun = {**server.written(chat=ROOM, forum_topic_created={"name": "Sails", "icon_color": 1}), "from": BOT}
    server.say("hello", chat=ROOM, reply_to_message=begun, message_thread_id=9, is_topic_message=True)
    arrival = await handed_in(server, bridge)
    assert (arrival.addressed, arrival.content, arrival.target) == (False, "hello", f"{ROOM}:9")


async def test_what_was_forwarded_is_a_quotation_and_no_command(server: StrictTelegram, bridge: TelegramBridge) -> None:
    origin = {"type": "user", "date": 1, "sender_user": {"id": 9, "is_bot": False, "first_name": "Eve"}}
    server.say("/forget\nall of it", forward_origin=origin)
    assert (await handed_in(server, bridge)).content == "[forwarded from Eve]\n> /forget\n> all of it"


async def test_quotes_and_links_in_a_message_are_written_out(server: StrictTelegram, bridge: TelegramBridge) -> None:
    entities = [
        {"type": "blockquote", "offset": 0, "length": 10},
        {"type": "text_link", "offset": 17, "length": 4, "url": "https://a.example"},
    ]
    server.say("😀 a\nb c😀\nlook, this", entities=entities)
    assert (await handed_in(server, bridge)).content == "> 😀 a\n> b c😀\nlook, [this](https://a.example)"


@pytest.mark.parametrize("is_own", [True, False])
async def test_a_voice_message_comes_with_its_recording_and_a_forwarded_one_is_no_word_of_the_sender(
    server: StrictTelegram, bridge: TelegramBridge, is_own: bool
) -> None:
    server.files["v"], server.file_sizes["v"] = b"OggS sound", 10
    voice = {"file_id": "v", "file_unique_id": "v", "duration": 12, "mime_type": "audio/ogg", "file_size": 10}
    origin = {"type": "hidden_user", "date": 1_700_000_000, "sender_user_name": "Mo"}
    server.say("", voice=voice, **({} if is_own else {"forward_origin": origin}))
    arrival = await handed_in(server, bridge)
    (medium,) = arrival.media
    assert (medium.mime, medium.size, medium.voice) == ("audio/ogg", 10, is_own)
    assert "[voice message, 12 s]" in arrival.content


async def test_who_speaks_for_a_group_is_the_group(server: StrictTelegram, bridge: TelegramBridge) -> None:
    server.say("as the group", chat=ROOM, sender_chat=server.chats[ROOM])
    arrival = await handed_in(server, bridge)
    assert (arrival.sender, arrival.sender_name) == (str(ROOM), "The boat club")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (
            {
                "sticker": {
                    "file_id": "s",
                    "file_unique_id": "s",
                    "type": "regular",
                    "width": 1,
                    "height": 1,
                    "is_animated": False,
                    "is_video": False,
                    "emoji": "🦉",
                }
            },
            "[sticker 🦉]",
        ),
        ({"contact": {"first_name": "Bo", "phone_number": "+31 6"}}, "[contact: Bo, +31 6]"),
        (
            {"venue": {"title": "Quay", "address": "Main St", "location": {"latitude": 1.0, "longitude": 2.0}}},
            "[place: Quay, Main St (1.00000, 2.00000)]",
        ),
    ],
)
async def test_what_is_no_text_is_named(
    server: StrictTelegram, bridge: TelegramBridge, fields: dict[str, Any], words: str
) -> None:
    server.say(**fields)
    assert (await handed_in(server, bridge)).content == words


async def test_of_a_picture_the_largest_size_is_had(server: StrictTelegram, bridge: TelegramBridge) -> None:
    sizes = [{**server.keep_file(data), "width": 1, "height": 1} for data in (b"small", PIXEL)]
    message = server.say(photo=sizes, caption="look")
    arrival = await handed_in(server, bridge)
    data = base64.b64encode(PIXEL).decode()
    assert arrival.content == "look"
    assert arrival.media == (Media("image", "image/jpeg", f"photo {message}.jpg", len(PIXEL), data),)


async def test_a_document_is_a_file(server: StrictTelegram, bridge: TelegramBridge) -> None:
    server.say(document={**server.keep_file(b"words"), "file_name": "notes.txt", "mime_type": "text/plain"})
    arrival = await handed_in(server, bridge)
    assert arrival.media == (Media("file", "text/plain", "notes.txt", 5, base64.b64encode(b"words").decode()),)


async def test_a_file_that_is_too_large_is_named(server: StrictTelegram, bridge: TelegramBridge) -> None:
    server.say(document={**server.keep_file(b"x", size=34_000_000), "file_name": "film.mkv"}, caption="later")
    arrival = await handed_in(server, bridge)
    assert (arrival.media, arrival.content) == (
        (),
        "later\n[file film.mkv, 34.0 MB: bots get no files above 20 MB from Telegram]",
    )
    assert "getfile" not in [method for method, _ in server.calls]


async def test_a_file_that_telegram_refuses_is_named(server: StrictTelegram, bridge: TelegramBridge) -> None:
    server.say(document={"file_id": "gone", "file_unique_id": "gone", "file_name": "a.pdf"})
    assert (await handed_in(server, bridge)).content == "[file a.pdf: Telegram did not deliver it]"


async def test_a_file_that_fails_is_asked_for_again_and_then_named(server: StrictTelegram) -> None:
    server.say(document={**server.keep_file(b"words"), "file_name": "a.txt"})
    server.say("what came after")
    server.trouble("download", *["before"] * 3)
    door, bridge = TelegramInboundRecorder(), make_telegram_bridge(server)
    for _ in range(2):
        with pytest.raises(BridgeError):
            await bridge.run(door)
        assert door.received == []
    async with run_telegram_bridge(bridge, door):
        words = [one.content for one in await door.wait_for_count(2)]
    await bridge.aclose()
    assert words == ["[file a.txt, 0.1 MB: Telegram did not deliver it]", "what came after"]


async def test_a_button_comes_in_as_its_command_and_is_let_go(server: StrictTelegram, bridge: TelegramBridge) -> None:
    await bridge.send(
        outgoing_telegram_part("Let Bo in?", buttons=(Button("Yes", "/pair ABCD"), Button("Long", "/" + "x" * 64)))
    )
    assert server.sent[0].buttons == [("Yes", "/pair ABCD")]
    server.press(server.sent[0], "Yes")
    door = TelegramInboundRecorder()
    async with run_telegram_bridge(bridge, door):
        arrival = await door.last_arrival()
        await server.until(lambda: bool(server.answered))
    assert (arrival.content, arrival.sender, arrival.target) == ("/pair ABCD", str(OWNER), str(OWNER))
    assert arrival.external_id.startswith("press:")


async def test_f39_a_token_that_is_revoked_while_nothing_comes_is_found_by_the_next_poll(
    server: StrictTelegram, bridge: TelegramBridge
) -> None:
    async with run_telegram_bridge(bridge, TelegramInboundRecorder()) as receiving:
        await server.until(lambda: server.polling)
        server.token = "123456:another-one"
        server.end_poll()
        with pytest.raises(BridgeError, match="does not accept the bot's token"):
            await receiving
    # However long nothing comes, it is asked again within a minute.
    waits = [float(params["timeout"]) for method, params in server.calls if method == "getupdates"]
    assert waits[0] == 0 and 0 < waits[1] < 60
