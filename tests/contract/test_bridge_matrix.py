"""What comes in over the Matrix bridge, from a real Synapse."""

from __future__ import annotations

import base64

import pytest

from assistant.core.bridge_api import MessageChange
from assistant.core.errors import BridgeError, StoreError
from assistant.core.messages import Media
from tests.support.matrix_bot import MatrixBot, MatrixInboundRecorder, has_joined, open_direct_room, outgoing_part
from tests.support.matrix_proxy import FaultyMatrixProxy
from tests.support.matrix_users import MatrixUser
from tests.support.synapse import Synapse


async def test_what_is_said_between_two_arrives(bot: MatrixBot, erik: MatrixUser) -> None:
    door = MatrixInboundRecorder()
    room = await open_direct_room(bot, erik, door)
    async with bot.run_bridge(door):
        event = await erik.say(room, "Hello there.")
        (arrival,) = await door.wait_for_texts("Hello there.")
    assert (arrival.external_id, arrival.sender, arrival.target) == (event, erik.user, room)
    assert arrival.room is None and arrival.addressed and arrival.sender_name


async def test_what_was_said_while_it_was_away_arrives_once(bot: MatrixBot, erik: MatrixUser) -> None:
    door = MatrixInboundRecorder()
    room = await open_direct_room(bot, erik, door)
    said = [f"line {number}" for number in range(102)]
    for text in said:
        await erik.say(room, text)
    async with bot.run_bridge(door):
        await door.wait_for_texts(*said)
    async with bot.run_bridge(door):
        await erik.say(room, "and more")
        arrivals = await door.wait_for_texts(*said, "and more")
    assert len({one.external_id for one in arrivals}) == 103


async def test_what_was_said_meanwhile_is_there_once_it_is_connected(bot: MatrixBot, erik: MatrixUser) -> None:
    """A question that Synapse was asked minutes ago it answers as it did then."""
    door = MatrixInboundRecorder()
    room = await open_direct_room(bot, erik, door)
    for _ in range(2):
        async with bot.run_bridge(door):
            pass
    await erik.say(room, "are you there?")
    async with bot.run_bridge(door):
        assert [one.content for one in door.received] == ["are you there?"]


async def test_what_was_said_before_it_came_is_none_of_its_business(bot: MatrixBot, erik: MatrixUser) -> None:
    door = MatrixInboundRecorder()
    room = await erik.create_room()
    await erik.say(room, "about the surprise")
    async with bot.run_bridge(door):
        await erik.request("POST", f"/rooms/{room}/invite", {"user_id": bot.user})
        await erik.sync_until(lambda: has_joined(erik, room, bot.user))
        event = await erik.say(room, "welcome")
        (arrival,) = await door.wait_for_texts("welcome")
    assert arrival.external_id == event


async def test_f35_what_the_app_could_not_keep_comes_again(bot: MatrixBot, erik: MatrixUser) -> None:
    door = MatrixInboundRecorder()
    room = await open_direct_room(bot, erik, door)
    bridge = bot.bridge()
    before, door.disk_full = door.stored_position, True
    await erik.say(room, "keep this")
    with pytest.raises(StoreError):
        await bridge.run(door)
    assert door.stored_position == before
    door.disk_full = False
    async with bot.run_bridge(door, bridge):
        await door.wait_for_texts("keep this")


async def test_edits_and_deletions_arrive_as_such(bot: MatrixBot, erik: MatrixUser) -> None:
    door = MatrixInboundRecorder()
    room = await open_direct_room(bot, erik, door)
    async with bot.run_bridge(door):
        event = await erik.say(room, "Buy milk")
        edited = await erik.edit(room, event, "Buy oat milk")
        await erik.delete(room, event)
        await door.wait_until(lambda: len(door.received) == 3)
    _, edit, deletion = door.received
    assert edit == MessageChange("matrix", event, edited, "edit", erik.user, "Buy oat milk")
    assert isinstance(deletion, MessageChange)
    assert (deletion.kind, deletion.external_id, deletion.sender) == ("delete", event, erik.user)


async def test_in_a_room_it_is_addressed_by_name_mention_or_reply(
    bot: MatrixBot, erik: MatrixUser, zoe: MatrixUser
) -> None:
    door = MatrixInboundRecorder()
    room = await erik.create_room(bot.user, zoe.user, name="Kitchen")
    await zoe.join(room)
    async with bot.run_bridge(door) as bridge:
        await erik.sync_until(lambda: has_joined(erik, room, bot.user))
        await bridge.send(outgoing_part(room, "Here I am."))
        await erik.sync_until(lambda: erik.messages(room, bot.user))
        own = erik.messages(room, bot.user)[0]["event_id"]
        reply = {"m.relates_to": {"m.in_reply_to": {"event_id": own}}}
        other = await zoe.say(room, "Nice weather")
        await erik.say(room, "hey", **{"m.mentions": {"user_ids": [bot.user]}})
        await erik.say(room, f"{bot.user[1:].partition(':')[0]}, what time is it?")
        await erik.say(room, f"> <{bot.user}> Here I am.\n\nGood", **reply)
        await erik.say(room, "Indeed", **{"m.relates_to": {"m.in_reply_to": {"event_id": other}}})
        arrivals = await door.wait_for_texts(
            "Nice weather", "hey", f"{bot.user[1:].partition(':')[0]}, what time is it?", "Good", "Indeed"
        )
    assert [one.addressed for one in arrivals] == [False, True, True, True, False]
    assert {(one.room, one.room_name, one.target) for one in arrivals} == {(room, "Kitchen", room)}


async def test_in_a_thread_it_takes_part_in_it_is_addressed(bot: MatrixBot, erik: MatrixUser, zoe: MatrixUser) -> None:
    door = MatrixInboundRecorder()
    room = await erik.create_room(bot.user, zoe.user)
    await zoe.join(room)
    async with bot.run_bridge(door) as bridge:
        await erik.sync_until(lambda: has_joined(erik, room, bot.user))
        root, other = await zoe.say(room, "Plans"), await zoe.say(room, "Food")
        await bridge.send(outgoing_part(f"{room}|{root}", "What about the lake?"))
        await zoe.say(room, "Yes!", **{"m.relates_to": {"rel_type": "m.thread", "event_id": root}})
        await zoe.say(room, "Soup", **{"m.relates_to": {"rel_type": "m.thread", "event_id": other}})
        arrivals = await door.wait_for_texts("Plans", "Food", "Yes!", "Soup")
        await erik.sync_until(lambda: erik.messages(room, bot.user))
    assert [one.addressed for one in arrivals] == [False, False, True, False]
    assert [one.target for one in arrivals] == [room, room, f"{room}|{root}", f"{room}|{other}"]
    relation = erik.messages(room, bot.user)[0]["content"]["m.relates_to"]
    assert (relation["rel_type"], relation["event_id"]) == ("m.thread", root)


async def test_a_third_person_invited_makes_it_a_room(bot: MatrixBot, erik: MatrixUser, zoe: MatrixUser) -> None:
    door = MatrixInboundRecorder()
    room = await open_direct_room(bot, erik, door)
    async with bot.run_bridge(door):
        await erik.request("POST", f"/rooms/{room}/invite", {"user_id": zoe.user})
        await erik.say(room, "What did I tell you yesterday?")
        (arrival,) = await door.wait_for_texts("What did I tell you yesterday?")
    assert arrival.room == room and not arrival.addressed


async def test_where_anybody_may_enter_is_a_room(bot: MatrixBot, erik: MatrixUser) -> None:
    door = MatrixInboundRecorder()
    room = await erik.create_room(bot.user, preset="public_chat", is_direct=True)
    async with bot.run_bridge(door):
        await erik.sync_until(lambda: has_joined(erik, room, bot.user))
        await erik.say(room, "Hello")
        (arrival,) = await door.wait_for_texts("Hello")
    assert arrival.room == room


async def test_a_bridges_account_counts_for_nobody_where_the_owner_named_it(
    bot: MatrixBot, erik: MatrixUser, zoe: MatrixUser
) -> None:
    door = MatrixInboundRecorder()
    room = await erik.create_room(bot.user, zoe.user)
    await zoe.join(room)
    await erik.set_state(room, "io.element.functional_members", {"service_members": [zoe.user]})
    async with bot.run_bridge(door):
        await erik.sync_until(lambda: has_joined(erik, room, bot.user))
        await erik.say(room, "one")
        await door.wait_for_texts("one")
    bot.invites = (zoe.user,)
    async with bot.run_bridge(door):
        await erik.say(room, "two")
        first, second = await door.wait_for_texts("one", "two")
    assert (first.room, second.room) == (room, None)


async def test_other_bots_and_its_own_words_are_not_answered(bot: MatrixBot, erik: MatrixUser) -> None:
    door = MatrixInboundRecorder()
    room = await open_direct_room(bot, erik, door)
    async with bot.run_bridge(door) as bridge:
        await bridge.send(outgoing_part(room, "mine"))
        await erik.send(room, {"msgtype": "m.notice", "body": "I am a bot"})
        event = await erik.say(room, "a person")
        (arrival,) = await door.wait_for_texts("a person")
    assert arrival.external_id == event


async def test_invitations_are_accepted_from_those_allowed_alone(
    bot: MatrixBot, erik: MatrixUser, zoe: MatrixUser
) -> None:
    door = MatrixInboundRecorder()
    private, theirs = await erik.create_room(bot.user), await zoe.create_room(bot.user)
    async with bot.run_bridge(door):
        await erik.sync_until(lambda: has_joined(erik, private, bot.user))
        assert bot.user not in await zoe.members(theirs)
    bot.invites = (zoe.user,)
    async with bot.run_bridge(door):
        await zoe.sync_until(lambda: has_joined(zoe, theirs, bot.user))


async def test_a_whole_server_may_be_allowed_to_invite(bot: MatrixBot, zoe: MatrixUser) -> None:
    bot.invites = (zoe.user.partition(":")[2],)
    room = await zoe.create_room(bot.user)
    async with bot.run_bridge(MatrixInboundRecorder()):
        await zoe.sync_until(lambda: has_joined(zoe, room, bot.user))
    assert await zoe.members(room) == {zoe.user, bot.user}


async def test_pictures_and_files_come_along(bot: MatrixBot, erik: MatrixUser) -> None:
    door, data = MatrixInboundRecorder(), bytes(range(256))
    room = await open_direct_room(bot, erik, door)
    url = await erik.upload(data, "image/png", "cat.png")
    info = {"mimetype": "image/png", "size": len(data)}
    async with bot.run_bridge(door):
        await erik.send(room, {"msgtype": "m.image", "body": "my cat", "filename": "cat.png", "url": url, "info": info})
        await erik.send(
            room, {"msgtype": "m.file", "body": "notes.txt", "url": url, "info": {"mimetype": "text/plain"}}
        )
        await erik.send(
            room, {"msgtype": "m.audio", "body": "voice.ogg", "url": url, "info": {"mimetype": "audio/ogg"}}
        )
        voice = {"msgtype": "m.audio", "body": "note.ogg", "url": url, "info": {"mimetype": "audio/ogg"}}
        await erik.send(room, {**voice, "org.matrix.msc3245.voice": {}})
        await erik.send(room, {"msgtype": "m.file", "body": "gone.txt", "url": "mxc://test.example/nothing"})
        arrivals = await door.wait_for_texts("my cat", "", "", "", "")
    encoded = base64.b64encode(data).decode()
    assert [one.media[0] for one in arrivals] == [
        Media("image", "image/png", "cat.png", 256, encoded),
        Media("file", "text/plain", "notes.txt", 256, encoded),
        Media("file", "audio/ogg", "voice.ogg", 0, None),
        Media("file", "audio/ogg", "note.ogg", 256, encoded, voice=True),
        Media("file", "application/octet-stream", "gone.txt", 0, None),
    ]


async def test_a_file_that_the_server_never_hands_out_holds_nothing_up(
    bot: MatrixBot, erik: MatrixUser, homeserver: Synapse
) -> None:
    door = MatrixInboundRecorder()
    room = await open_direct_room(bot, erik, door)
    url = await erik.upload(b"cat", "image/png", "cat.png")
    await erik.send(room, {"msgtype": "m.image", "body": "cat.png", "url": url})
    await erik.say(room, "well?")
    proxy = FaultyMatrixProxy(homeserver.url)
    await proxy.start()
    proxy.cut_connections("before", calls=3, path="/media/download/")
    bridge = bot.bridge(proxy.url)
    for _ in range(2):
        with pytest.raises(BridgeError):
            await bridge.run(door)
    async with bot.run_bridge(door, bridge):
        picture, _ = await door.wait_for_texts("", "well?")
    await proxy.aclose()
    assert picture.media[0].data is None and picture.media[0].name == "cat.png"
