"""The Matrix bridge in encrypted rooms, against a real Synapse and another encrypting client."""

from __future__ import annotations

import base64
import io
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from nio.crypto.attachments import decrypt_attachment
from structlog.testing import capture_logs
from vodozemac import Account

from assistant.bridges.matrix.bridge import login
from assistant.bridges.matrix.cross_signing import SigningKeys
from assistant.core.errors import BridgeError
from assistant.core.messages import Media
from tests.support.matrix_bot import MatrixBot, MatrixInboundRecorder, outgoing_part, turn_event
from tests.support.matrix_proxy import FaultyMatrixProxy
from tests.support.matrix_users import EncryptedMatrixUser, MatrixUser
from tests.support.synapse import Synapse


@pytest.fixture
async def bot(homeserver: Synapse, tmp_path: Path) -> MatrixBot:
    return MatrixBot(homeserver, *homeserver.register_device("nocturne"), tmp_path / "matrix", encryption=True)


@pytest.fixture
async def erik(homeserver: Synapse, tmp_path: Path) -> AsyncIterator[EncryptedMatrixUser]:
    person = await EncryptedMatrixUser(homeserver, "erik", tmp_path / "erik").log_in()
    yield person
    await person.aclose()


async def met(bot: MatrixBot, erik: EncryptedMatrixUser, door: MatrixInboundRecorder) -> str:
    room = await erik.create_room(bot.user)
    async with bot.run_bridge(door):
        await erik.sync_until(lambda: erik.has_joined(room, bot.user))
    return room


async def test_encrypted_rooms_are_read_and_written(bot: MatrixBot, erik: EncryptedMatrixUser) -> None:
    door = MatrixInboundRecorder()
    room = await met(bot, erik, door)
    async with bot.run_bridge(door) as bridge:
        await erik.say(room, {"msgtype": "m.text", "body": "a secret"})
        (arrival,) = await door.wait_for_texts("a secret")
        bridge.show(turn_event("delta", text="I will"), room)
        await erik.sync_until(lambda: erik.texts(room, bot.user) == ["I will"])
        await bridge.send(outgoing_part(room, "I will keep it."))
        await erik.sync_until(lambda: erik.texts(room, bot.user) == ["I will keep it."])
    assert arrival.room is None
    said = [event for event in erik.events[room] if event.sender == bot.user and "body" in event.source["content"]]
    assert said and all(event.decrypted for event in said)


async def test_what_was_encrypted_while_it_was_away_is_read(bot: MatrixBot, erik: EncryptedMatrixUser) -> None:
    door = MatrixInboundRecorder()
    room = await met(bot, erik, door)
    said = [f"secret {number}" for number in range(102)]
    for text in said:
        await erik.say(room, {"msgtype": "m.text", "body": text})
    async with bot.run_bridge(door):
        arrivals = await door.wait_for_texts(*said)
    assert {one.sender for one in arrivals} == {erik.user}


async def test_a_message_whose_key_comes_late_is_read_late(bot: MatrixBot, erik: EncryptedMatrixUser) -> None:
    door = MatrixInboundRecorder()
    room = await met(bot, erik, door)
    async with bot.run_bridge(door):
        await erik.say(room, {"msgtype": "m.text", "body": "first"})
        give = await erik.say_withholding_key(room, "late")
        await erik.say(room, {"msgtype": "m.text", "body": "as dark"})
        for number in range(3):
            before = door.stored_position
            await erik.client.room_put_state(room, "m.room.topic", {"topic": f"{number}"})
            await door.wait_until(lambda before=before: door.stored_position != before)
        await erik.sync_until(lambda: any("its key has not reached me" in text for text in erik.texts(room, bot.user)))
    async with bot.run_bridge(door):
        await give()
        await door.wait_for_texts("first", "late", "as dark")
    assert '"unread": []' in door.stored_position


async def test_it_answers_before_it_has_heard_of_the_room(bot: MatrixBot, erik: EncryptedMatrixUser) -> None:
    """As after a restart, where what waits goes out first: never in the clear."""
    room = await met(bot, erik, MatrixInboundRecorder())
    bridge = bot.bridge()
    for _ in range(2):
        await bridge.send(outgoing_part(room, "still secret"))
    await bridge.aclose()
    await erik.sync_until(lambda: erik.texts(room, bot.user))
    assert erik.texts(room, bot.user) == ["still secret"]
    assert [event.decrypted for event in erik.events[room] if event.sender == bot.user][-1]


async def test_without_encryption_nothing_goes_into_an_encrypted_room(
    bot: MatrixBot, erik: EncryptedMatrixUser
) -> None:
    bot.encryption = False
    room = await met(bot, erik, MatrixInboundRecorder())
    bridge = bot.bridge()
    with pytest.raises(BridgeError, match="encryption"):
        await bridge.send(outgoing_part(room, "not for the server"))
    await bridge.aclose()
    await erik.sync()
    assert not erik.texts(room, bot.user)


async def test_a_key_that_did_not_reach_the_server_is_not_written_with(
    bot: MatrixBot, erik: EncryptedMatrixUser, homeserver: Synapse
) -> None:
    room = await met(bot, erik, MatrixInboundRecorder())
    proxy = FaultyMatrixProxy(homeserver.url)
    await proxy.start()
    bridge = bot.bridge(proxy.url)
    proxy.cut_connections("before", path="/keys/claim")
    proxy.cut_connections("before", path="/sendToDevice/")
    for _ in range(3):
        with pytest.raises(BridgeError):
            await bridge.send(outgoing_part(room, "can you read this?"))
    await bridge.send(outgoing_part(room, "can you read this?"))
    await bridge.aclose()
    await proxy.aclose()
    await erik.sync_until(lambda: erik.texts(room, bot.user) == ["can you read this?"])


async def test_files_are_encrypted_both_ways(bot: MatrixBot, erik: EncryptedMatrixUser) -> None:
    door, data = MatrixInboundRecorder(), bytes(range(256))
    room = await met(bot, erik, door)
    kept, keys = await erik.client.upload(io.BytesIO(data), "text/plain", "list.txt", encrypt=True, filesize=len(data))
    encoded = base64.b64encode(data).decode()
    async with bot.run_bridge(door) as bridge:
        info = {"mimetype": "text/plain", "size": len(data)}
        where = {**keys, "url": kept.content_uri}
        await erik.say(room, {"msgtype": "m.file", "body": "list.txt", "file": where, "info": info})
        (arrival,) = await door.wait_for_texts("")
        assert arrival.media == (Media("file", "text/plain", "list.txt", 256, encoded),)
        await bridge.send(outgoing_part(room, "", media=Media("file", "text/plain", "list.txt", 256, encoded)))
        await erik.sync_until(lambda: erik.texts(room, bot.user) == ["list.txt"])
    sent = next(
        event.source["content"]["file"]
        for event in erik.events[room]
        if event.sender == bot.user and "file" in event.source["content"]
    )
    got = await erik.client.download(sent["url"])
    assert got.body != data
    assert decrypt_attachment(got.body, sent["key"]["k"], sent["hashes"]["sha256"], sent["iv"]) == data


async def test_the_account_vouches_for_its_devices(bot: MatrixBot, homeserver: Synapse) -> None:
    user, password = homeserver.register("nocturne")
    first = await login(homeserver.url, user, password)
    bot.user, bot.device, bot.token = first.user, first.device, first.token
    person = await MatrixUser(homeserver, "erik").log_in()

    async def signed_by() -> tuple[str, str, set[str]]:
        found = await person.request("POST", "/keys/query", {"device_keys": {bot.user: []}})
        (master,) = found["master_keys"][bot.user]["keys"].values()
        (signing,) = found["self_signing_keys"][bot.user]["keys"]
        return master, signing, set(found["device_keys"][bot.user][bot.device]["signatures"][bot.user])

    async with bot.run_bridge(MatrixInboundRecorder()) as bridge:
        master, signing, signatures = await signed_by()
        assert await bridge.check() == bot.user
    assert signing in signatures
    second = await login(homeserver.url, user, password)
    bot.device, bot.token = second.device, second.token
    async with bot.run_bridge(MatrixInboundRecorder()):
        again, signing, signatures = await signed_by()
    assert again == master and signing in signatures
    await person.aclose()
    assert {one.stat().st_mode & 0o777 for one in (bot.store, bot.store / "signing-keys.json")} == {0o700, 0o600}


async def test_where_the_server_asks_for_a_password_the_device_stays_unverified_and_the_owner_is_told(
    bot: MatrixBot, erik: EncryptedMatrixUser, homeserver: Synapse
) -> None:
    """Another app gives the account its keys just then: Synapse asks who it is before others take their place."""
    others = SigningKeys(bot.user, {usage: Account() for usage in ("master", "self_signing", "user_signing")})
    path, headers = "/_matrix/client/v3/keys/device_signing/upload", {"Authorization": f"Bearer {bot.token}"}

    def first(_: str, asked: str) -> None:
        if asked == path:
            body = {f"{usage}_key": others.upload_payload(usage) for usage in others.keys}
            httpx2.post(homeserver.url + path, json=body, headers=headers).raise_for_status()

    proxy = FaultyMatrixProxy(homeserver.url)
    await proxy.start()
    proxy.on_request = first
    door = MatrixInboundRecorder()
    room = await erik.create_room(bot.user)
    with capture_logs() as logs:
        async with bot.run_bridge(door, bot.bridge(proxy.url)) as bridge:
            assert await bridge.check() == f"{bot.user} (device not verified)"
            await erik.sync_until(lambda: erik.has_joined(room, bot.user))
            await erik.say(room, {"msgtype": "m.text", "body": "still read"})
            await door.wait_for_texts("still read")
    await proxy.aclose()
    (told,) = [line for line in logs if "not verified" in line["event"]]
    assert told["why"] == "The Matrix server asks for the account's password, which is not kept."


@pytest.mark.parametrize(
    "payload",
    [
        {"type": "m.room.message", "content": {"msgtype": "m.text", "body": "x"}, "unsigned": 7},
        {"type": 7, "content": {}},
        {"type": "m.room.message", "content": {"msgtype": "m.text", "body": "", "m.relates_to": 7}},
    ],
)
async def test_what_is_encrypted_and_malformed_holds_up_nothing(
    bot: MatrixBot, erik: EncryptedMatrixUser, payload: dict[str, Any]
) -> None:
    door = MatrixInboundRecorder()
    room = await met(bot, erik, door)
    async with bot.run_bridge(door):
        await erik.say(room, {"msgtype": "m.text", "body": "before"})
        await erik.encrypt(room, payload)
        await erik.say(room, {"msgtype": "m.text", "body": "after"})
        await door.wait_until(lambda: [one.content for one in door.received][-1:] == ["after"])
    assert door.received[0].content == "before"


async def test_i10_who_is_in_a_room_is_not_what_somebody_encrypts(
    bot: MatrixBot, erik: EncryptedMatrixUser, homeserver: Synapse, tmp_path: Path
) -> None:
    """A room is taken for a talk between two once the others left: a guest may not say so of themselves."""
    guest = await EncryptedMatrixUser(homeserver, "gast", tmp_path / "gast").log_in()
    door = MatrixInboundRecorder()
    room = await met(bot, erik, door)
    await erik.client.room_invite(room, guest.user)
    await guest.client.join(room)
    await erik.sync_until(lambda: erik.has_joined(room, guest.user))
    await guest.sync_until(lambda: guest.has_joined(room, bot.user))
    async with bot.run_bridge(door):
        await guest.say(room, {"msgtype": "m.text", "body": "hello"})
        gone = {"type": "m.room.member", "state_key": guest.user, "content": {"membership": "leave"}}
        await guest.encrypt(room, gone)
        await guest.say(room, {"msgtype": "m.text", "body": "I am away"})
        await door.wait_for_texts("hello", "I am away")
        await erik.sync()
        await erik.say(room, {"msgtype": "m.text", "body": "my secret"})
        *_, last = await door.wait_for_texts("hello", "I am away", "my secret")
    await guest.aclose()
    assert last.room == room
