"""Rooms that another one took the place of, on a real Synapse: what was said, and what waits, goes on there."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from assistant.bridges.matrix.bridge import MatrixBridge
from assistant.bridges.matrix.events import RoomUpgrade, SyncPosition
from assistant.core.bridge_api import InboundMessage
from assistant.core.errors import BridgeError
from tests.support.matrix_bot import (
    MatrixBot,
    MatrixInboundRecorder,
    has_joined,
    open_direct_room,
    outgoing_part,
    turn_event,
)
from tests.support.matrix_users import MatrixUser


async def upgraded(by: MatrixUser, room: str) -> str:
    made = await by.request("POST", f"/rooms/{room}/upgrade", {"new_version": "12"})
    return str(made["replacement_room"])


async def invite(by: MatrixUser, room: str, user: str) -> None:
    await by.request("POST", f"/rooms/{room}/invite", {"user_id": user})


async def noticed(door: MatrixInboundRecorder, bridge: MatrixBridge, room: str) -> None:
    await door.wait_until(lambda: room in bridge._moved_rooms)


async def test_a_talk_between_two_goes_on_in_the_room_that_replaces_it(bot: MatrixBot, erik: MatrixUser) -> None:
    door = MatrixInboundRecorder()
    room = await open_direct_room(bot, erik, door)
    async with bot.run_bridge(door) as bridge:
        bridge.show(turn_event("delta", text="what"), room)
        await erik.sync_until(lambda: erik.texts(room, bot.user) == ["what"])
        new = await upgraded(erik, room)
        await noticed(door, bridge, room)
        with pytest.raises(BridgeError, match="Invite the assistant") as waits:
            await bridge.send(outgoing_part(room, "what waited"))
        assert not waits.value.refused and not waits.value.ambiguous
        await invite(erik, new, bot.user)
        await erik.sync_until(lambda: has_joined(erik, new, bot.user))
        await erik.say(new, "here we are")
        (arrival,) = await door.wait_for_texts("here we are")
        assert (arrival.target, arrival.room) == (new, None)
        await bridge.send(outgoing_part(room, "what waited"))
        await bridge.send(outgoing_part(f"{room}|$thread", "in a thread"))
        await erik.sync_until(lambda: len(erik.texts(new, bot.user)) == 2)
        assert [one["content"].get("m.relates_to") for one in erik.messages(new, bot.user)] == [None, None]
    bridge = bot.bridge()
    running = asyncio.create_task(bridge.run(door))
    # It has begun, and has asked the server nothing yet.
    await asyncio.sleep(0)
    await bridge.send(outgoing_part(room, "after a restart"))
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await bridge.aclose()
    await erik.sync_until(lambda: erik.texts(new, bot.user) == ["what waited", "in a thread", "after a restart"])


async def test_i10_a_talk_between_two_does_not_go_on_where_anybody_may_enter(bot: MatrixBot, erik: MatrixUser) -> None:
    door = MatrixInboundRecorder()
    room = await open_direct_room(bot, erik, door)
    async with bot.run_bridge(door) as bridge:
        new = await upgraded(erik, room)
        await noticed(door, bridge, room)
        await erik.set_state(new, "m.room.join_rules", {"join_rule": "public"})
        await invite(erik, new, bot.user)
        await erik.sync_until(lambda: has_joined(erik, new, bot.user))
        await erik.say(new, f"{bot.user} hello")
        await door.wait_until(lambda: door.received)
        assert door.received[0].room == new
        with pytest.raises(BridgeError):
            await bridge.send(outgoing_part(room, "for Erik alone"))
        await erik.sync()
        assert erik.texts(new, bot.user) == []


async def test_a_room_goes_on_under_its_name_and_is_entered_where_an_invitation_would_be_followed(
    bot: MatrixBot, erik: MatrixUser, zoe: MatrixUser
) -> None:
    door = MatrixInboundRecorder()
    room = await erik.create_room(bot.user, zoe.user, preset="public_chat")
    await zoe.join(room)
    async with bot.run_bridge(door) as bridge:
        await erik.sync_until(lambda: has_joined(erik, room, bot.user))
        new = await upgraded(erik, room)
        await erik.sync_until(lambda: has_joined(erik, new, bot.user))
        # The others are still on the way: it is no talk between two for that.
        await erik.set_state(new, "m.room.join_rules", {"join_rule": "invite"})
        await erik.say(new, f"{bot.user} hello")
        await door.wait_until(lambda: any("hello" in one.content for one in door.received))
        (arrival,) = door.received
        assert isinstance(arrival, InboundMessage) and (arrival.room, arrival.target) == (room, new)
        await erik.edit(new, arrival.external_id, "bye")
        await door.wait_until(lambda: len(door.received) == 2)
        assert door.received[1].room == room
        await bridge.send(outgoing_part(room, "for all"))
        await erik.sync_until(lambda: erik.texts(new, bot.user) == ["for all"])
        newest = await upgraded(erik, new)
        await noticed(door, bridge, new)
        await invite(erik, newest, bot.user)
        await erik.sync_until(lambda: has_joined(erik, newest, bot.user))
        await erik.say(newest, f"{bot.user} again")
        await door.wait_until(lambda: len(door.received) == 3)
        assert door.received[2].room == room


async def test_nobody_brings_it_into_a_room_who_may_not_invite_it(
    bot: MatrixBot, erik: MatrixUser, zoe: MatrixUser
) -> None:
    door = MatrixInboundRecorder()
    room = await erik.create_room(bot.user, zoe.user, room_version="11")
    await zoe.join(room)
    await erik.set_state(room, "m.room.power_levels", {"users": {erik.user: 100, zoe.user: 100}})
    with capture_logs() as logs:
        async with bot.run_bridge(door) as bridge:
            await erik.sync_until(lambda: has_joined(erik, room, bot.user))
            public = {"preset": "public_chat", "creation_content": {"predecessor": {"room_id": room}}}
            new = str((await zoe.request("POST", "/createRoom", public))["room_id"])
            await zoe.set_state(room, "m.room.tombstone", {"body": "moved", "replacement_room": new})
            await noticed(door, bridge, room)
            await erik.say(await erik.create_room(bot.user), "elsewhere")
            assert bot.user not in await zoe.members(new)
    (told,) = [line for line in logs if "was replaced" in line["event"]]
    assert "invited" in told["event"] and told["new"] == new and "not allowed to invite" in told["why"]


@pytest.mark.parametrize("claim", ["the old room alone", "somebody else's new room"])
async def test_i10_no_room_is_passed_off_as_the_one_before(
    bot: MatrixBot, erik: MatrixUser, zoe: MatrixUser, claim: str
) -> None:
    """Where the assistant is in both, and one of them says alone that they belong together."""
    door = MatrixInboundRecorder()
    room = await erik.create_room(bot.user, zoe.user)
    content: dict[str, Any] = {"predecessor": {"room_id": room}} if claim.startswith("somebody") else {}
    async with bot.run_bridge(door) as bridge:
        other = str((await zoe.request("POST", "/createRoom", {"creation_content": content}))["room_id"])
        await invite(zoe, other, erik.user)
        await erik.join(other)
        await invite(erik, other, bot.user)
        await erik.sync_until(lambda: has_joined(erik, room, bot.user) and has_joined(erik, other, bot.user))
        await erik.set_state(room, "m.room.tombstone", {"body": "moved", "replacement_room": other})
        await erik.say(other, f"{bot.user} hello")
        await door.wait_until(lambda: door.received)
        assert door.received[0].room == other
        assert bridge._moved_rooms == {}


def test_where_a_room_goes_on_is_kept_with_the_position() -> None:
    position = SyncPosition(
        "s1", replaced=(RoomUpgrade("!a", "!b", False), RoomUpgrade("!x", "!y", True), RoomUpgrade("!b", "!c", False))
    )
    assert SyncPosition.parse(str(position)) == position
    assert position.moved_rooms() == {"!a": "!c", "!b": "!c", "!x": "!y"}
    assert [position.original_room(room) for room in ("!c", "!b", "!a", "!y")] == ["!a", "!a", "!a", "!x"]
    assert position.is_group_room("!c") and not position.is_group_room("!y")
    assert SyncPosition.parse('{"since": "s", "unread": [], "drafts": {}}') == SyncPosition("s")
