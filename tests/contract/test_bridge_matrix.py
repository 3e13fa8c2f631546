"""The Matrix bridge against a real Synapse: what comes in, what goes out, and what a crash in between makes of it."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import pytest

from assistant.bridge_ports import Arrival, Change, Part, TurnEvent
from assistant.bridges.matrix import MatrixBridge, login
from assistant.errors import BridgeError, StoreError
from assistant.messages import Media
from assistant.records import Accepted, OutboxItem, Outgoing
from tests.matrix_person import Person
from tests.synapse import Synapse

NOW = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)


@dataclass
class KeptDoor:
    """A door whose house keeps everything, but for what `full` says."""

    kept: list[Arrival | Change] = field(default_factory=list)
    at: str = ""
    full: bool = False
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    async def receive(self, arrival: Arrival) -> Accepted | None:
        self._keep(arrival)
        return Accepted(len(self.kept), len(self.kept))

    async def change(self, change: Change) -> None:
        self._keep(change)

    def _keep(self, one: Arrival | Change) -> None:
        if self.full:
            self.news.set()
            raise StoreError()
        if one not in self.kept:
            self.kept.append(one)
        self.news.set()

    def position(self, bridge: str) -> str:
        return self.at

    def advance(self, bridge: str, position: str) -> None:
        self.at = position
        self.news.set()

    def connected(self, bridge: str) -> None:
        self.ready.set()

    async def until(self, true: Callable[[], Any]) -> None:
        async with asyncio.timeout(40):
            while not true():
                self.news.clear()
                await self.news.wait()

    async def has(self, *texts: str) -> list[Arrival]:
        """Wait until just these words have come, in this order."""
        await self.until(lambda: len(self.kept) >= len(texts))
        assert [one.content for one in self.kept] == list(texts)
        return [one for one in self.kept if isinstance(one, Arrival)]


@dataclass
class Bot:
    """The assistant's account, from which bridges are made."""

    server: Synapse
    user: str
    device: str
    token: str
    store: Path
    invites: tuple[str, ...] = ()
    encryption: bool = False

    def bridge(self, url: str = "") -> MatrixBridge:
        return MatrixBridge(
            url or self.server.url, self.user, self.device, self.token, store=self.store,
            encryption=self.encryption, invites=self.invites, is_owners=lambda account: "erik" in account,
            edit_seconds=0.0,
        )  # fmt: skip

    @asynccontextmanager
    async def running(self, door: KeptDoor, bridge: MatrixBridge | None = None) -> AsyncIterator[MatrixBridge]:
        bridge = bridge or self.bridge()
        door.ready.clear()
        task = asyncio.create_task(bridge.run(door))
        ready = asyncio.create_task(door.ready.wait())
        try:
            async with asyncio.timeout(40):
                await asyncio.wait({task, ready}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                task.result()
            yield bridge
        finally:
            ready.cancel()
            task.cancel()
            ended = (await asyncio.gather(task, return_exceptions=True))[0]
            await bridge.aclose()
            assert isinstance(ended, asyncio.CancelledError), ended


def part(target: str, text: str, key: str = "reply:1", *, number: int = 1, media: Media | None = None,
         kind: Literal["reply", "notice"] = "reply") -> Part:  # fmt: skip
    outgoing = Outgoing(key, "main", "owner", "matrix", target, text, kind)
    return Part(OutboxItem(1, outgoing, "sending", 1, NOW), number, text, media=media)


@pytest.fixture
async def bot(homeserver: Synapse, tmp_path: Path) -> Bot:
    return Bot(homeserver, *homeserver.device("nocturne"), tmp_path / "matrix")


@pytest.fixture
async def erik(homeserver: Synapse) -> AsyncIterator[Person]:
    person = await Person(homeserver, "erik").log_in()
    yield person
    await person.aclose()


@pytest.fixture
async def zoe(homeserver: Synapse) -> AsyncIterator[Person]:
    person = await Person(homeserver, "zoe").log_in()
    yield person
    await person.aclose()


async def met(bot: Bot, person: Person, door: KeptDoor) -> str:
    """A room between the two, into which the bridge came."""
    room = await person.room(bot.user, is_direct=True)
    async with bot.running(door):
        await person.until(lambda: joined(person, room, bot.user))
    return room


def joined(person: Person, room: str, user: str) -> bool:
    return any(
        one["type"] == "m.room.member" and one["state_key"] == user and one["content"]["membership"] == "join"
        for one in person.events.get(room, [])
    )


async def test_what_is_said_between_two_arrives(bot: Bot, erik: Person) -> None:
    door = KeptDoor()
    room = await met(bot, erik, door)
    async with bot.running(door):
        event = await erik.say(room, "Hello there.")
        (arrival,) = await door.has("Hello there.")
    assert (arrival.external_id, arrival.sender, arrival.target) == (event, erik.user, room)
    assert arrival.room is None and arrival.addressed and arrival.sender_name


async def test_what_was_said_while_it_was_away_arrives_once(bot: Bot, erik: Person) -> None:
    door = KeptDoor()
    room = await met(bot, erik, door)
    said = [f"line {number}" for number in range(130)]
    for text in said:
        await erik.say(room, text)
    async with bot.running(door):
        await door.has(*said)
    async with bot.running(door):
        await erik.say(room, "and more")
        await door.has(*said, "and more")


async def test_what_was_said_before_it_came_is_none_of_its_business(bot: Bot, erik: Person) -> None:
    door = KeptDoor()
    room = await erik.room()
    await erik.say(room, "about the surprise")
    async with bot.running(door):
        await erik.ask("POST", f"/rooms/{room}/invite", {"user_id": bot.user})
        await erik.until(lambda: joined(erik, room, bot.user))
        await erik.say(room, "welcome")
        await door.has("welcome")


async def test_f35_what_the_house_could_not_keep_comes_again(bot: Bot, erik: Person) -> None:
    door = KeptDoor()
    room = await met(bot, erik, door)
    bridge = bot.bridge()
    before, door.full = door.at, True
    await erik.say(room, "keep this")
    with pytest.raises(StoreError):
        await bridge.run(door)
    assert door.at == before
    door.full = False
    async with bot.running(door, bridge):
        await door.has("keep this")


async def test_edits_and_deletions_arrive_as_such(bot: Bot, erik: Person) -> None:
    door = KeptDoor()
    room = await met(bot, erik, door)
    async with bot.running(door):
        event = await erik.say(room, "Buy milk")
        edited = await erik.edit(room, event, "Buy oat milk")
        await erik.delete(room, event)
        await door.until(lambda: len(door.kept) == 3)
    _, edit, deletion = door.kept
    assert edit == Change("matrix", event, edited, "edit", erik.user, "Buy oat milk")
    assert isinstance(deletion, Change)
    assert (deletion.kind, deletion.external_id, deletion.sender) == ("delete", event, erik.user)


async def test_in_a_room_it_is_addressed_by_name_mention_or_reply(bot: Bot, erik: Person, zoe: Person) -> None:
    door = KeptDoor()
    room = await erik.room(bot.user, zoe.user, name="Kitchen")
    await zoe.join(room)
    async with bot.running(door) as bridge:
        await erik.until(lambda: joined(erik, room, bot.user))
        await bridge.send(part(room, "Here I am."))
        await erik.until(lambda: erik.messages(room, bot.user))
        own = erik.messages(room, bot.user)[0]["event_id"]
        reply = {"m.relates_to": {"m.in_reply_to": {"event_id": own}}}
        other = await zoe.say(room, "Nice weather")
        await erik.say(room, "hey", **{"m.mentions": {"user_ids": [bot.user]}})
        await erik.say(room, f"{bot.user[1:].partition(':')[0]}, what time is it?")
        await erik.say(room, f"> <{bot.user}> Here I am.\n\nGood", **reply)
        await erik.say(room, "Indeed", **{"m.relates_to": {"m.in_reply_to": {"event_id": other}}})
        arrivals = await door.has(
            "Nice weather", "hey", f"{bot.user[1:].partition(':')[0]}, what time is it?", "Good", "Indeed"
        )
    assert [one.addressed for one in arrivals] == [False, True, True, True, False]
    assert {(one.room, one.room_name, one.target) for one in arrivals} == {(room, "Kitchen", room)}


async def test_in_a_thread_it_takes_part_in_it_is_addressed(bot: Bot, erik: Person, zoe: Person) -> None:
    door = KeptDoor()
    room = await erik.room(bot.user, zoe.user)
    await zoe.join(room)
    async with bot.running(door) as bridge:
        await erik.until(lambda: joined(erik, room, bot.user))
        root, other = await zoe.say(room, "Plans"), await zoe.say(room, "Food")
        await bridge.send(part(f"{room}|{root}", "What about the lake?"))
        await zoe.say(room, "Yes!", **{"m.relates_to": {"rel_type": "m.thread", "event_id": root}})
        await zoe.say(room, "Soup", **{"m.relates_to": {"rel_type": "m.thread", "event_id": other}})
        arrivals = await door.has("Plans", "Food", "Yes!", "Soup")
        await erik.until(lambda: erik.messages(room, bot.user))
    assert [one.addressed for one in arrivals] == [False, False, True, False]
    assert [one.target for one in arrivals] == [room, room, f"{room}|{root}", f"{room}|{other}"]
    relation = erik.messages(room, bot.user)[0]["content"]["m.relates_to"]
    assert (relation["rel_type"], relation["event_id"]) == ("m.thread", root)


async def test_a_third_person_invited_makes_it_a_room(bot: Bot, erik: Person, zoe: Person) -> None:
    door = KeptDoor()
    room = await met(bot, erik, door)
    async with bot.running(door):
        await erik.ask("POST", f"/rooms/{room}/invite", {"user_id": zoe.user})
        await erik.say(room, "What did I tell you yesterday?")
        (arrival,) = await door.has("What did I tell you yesterday?")
    assert arrival.room == room and not arrival.addressed


async def test_where_anybody_may_enter_is_a_room(bot: Bot, erik: Person) -> None:
    door = KeptDoor()
    room = await erik.room(bot.user, preset="public_chat", is_direct=True)
    async with bot.running(door):
        await erik.until(lambda: joined(erik, room, bot.user))
        await erik.say(room, "Hello")
        (arrival,) = await door.has("Hello")
    assert arrival.room == room


async def test_a_bridges_account_counts_for_nobody_where_the_owner_named_it(
    bot: Bot, erik: Person, zoe: Person
) -> None:
    door = KeptDoor()
    room = await erik.room(bot.user, zoe.user)
    await zoe.join(room)
    await erik.set_state(room, "io.element.functional_members", {"service_members": [zoe.user]})
    async with bot.running(door):
        await erik.until(lambda: joined(erik, room, bot.user))
        await erik.say(room, "one")
        await door.has("one")
    bot.invites = (zoe.user,)
    async with bot.running(door):
        await erik.say(room, "two")
        first, second = await door.has("one", "two")
    assert (first.room, second.room) == (room, None)


async def test_other_bots_and_its_own_words_are_not_answered(bot: Bot, erik: Person) -> None:
    door = KeptDoor()
    room = await met(bot, erik, door)
    async with bot.running(door) as bridge:
        await bridge.send(part(room, "mine"))
        await erik.send(room, {"msgtype": "m.notice", "body": "I am a bot"})
        await erik.say(room, "a person")
        await door.has("a person")


async def test_invitations_are_accepted_from_those_allowed_alone(bot: Bot, erik: Person, zoe: Person) -> None:
    door = KeptDoor()
    private, theirs = await erik.room(bot.user), await zoe.room(bot.user)
    async with bot.running(door):
        await erik.until(lambda: joined(erik, private, bot.user))
        assert bot.user not in await zoe.members(theirs)
    bot.invites = (zoe.user,)
    async with bot.running(door):
        await zoe.until(lambda: joined(zoe, theirs, bot.user))


async def test_a_whole_server_may_be_allowed_to_invite(bot: Bot, zoe: Person) -> None:
    bot.invites = (zoe.user.partition(":")[2],)
    room = await zoe.room(bot.user)
    async with bot.running(KeptDoor()):
        await zoe.until(lambda: joined(zoe, room, bot.user))


async def test_pictures_and_files_come_along(bot: Bot, erik: Person) -> None:
    door, data = KeptDoor(), bytes(range(256))
    room = await met(bot, erik, door)
    url = await erik.upload(data, "image/png", "cat.png")
    info = {"mimetype": "image/png", "size": len(data)}
    async with bot.running(door):
        await erik.send(room, {"msgtype": "m.image", "body": "my cat", "filename": "cat.png", "url": url, "info": info})
        await erik.send(
            room, {"msgtype": "m.file", "body": "notes.txt", "url": url, "info": {"mimetype": "text/plain"}}
        )
        await erik.send(
            room, {"msgtype": "m.audio", "body": "voice.ogg", "url": url, "info": {"mimetype": "audio/ogg"}}
        )
        await erik.send(room, {"msgtype": "m.file", "body": "gone.txt", "url": "mxc://test.example/nothing"})
        arrivals = await door.has("my cat", "", "", "")
    encoded = base64.b64encode(data).decode()
    assert [one.media[0] for one in arrivals] == [
        Media("image", "image/png", "cat.png", 256, encoded),
        Media("file", "text/plain", "notes.txt", 256, encoded),
        Media("file", "audio/ogg", "voice.ogg", 0, None),
        Media("file", "application/octet-stream", "gone.txt", 0, None),
    ]


async def test_an_answer_is_formatted_and_calls_nobody(bot: Bot, erik: Person) -> None:
    room = await met(bot, erik, KeptDoor())
    bridge = bot.bridge()
    await bridge.send(part(room, "A **bold** <b>claim</b>\n\n- one", key="a"))
    await bridge.send(part(room, "plain", key="b"))
    await bridge.aclose()
    await erik.until(lambda: len(erik.messages(room, bot.user)) == 2)
    bold, plain = (one["content"] for one in erik.messages(room, bot.user))
    assert "<strong>bold</strong> &lt;b&gt;claim&lt;/b&gt;" in bold["formatted_body"]
    assert "formatted_body" not in plain and plain["m.mentions"] == {}


async def test_f36_a_resend_is_shown_once_after_a_restart_too(bot: Bot, erik: Person) -> None:
    room = await met(bot, erik, KeptDoor())
    for _ in range(2):
        bridge = bot.bridge()
        await bridge.send(part(room, "the answer"))
        await bridge.aclose()
    bridge = bot.bridge()
    await bridge.send(part(room, "the answer", key="reply:2"))
    await bridge.send(part(room, "another home's answer"))
    await bridge.aclose()
    await erik.until(lambda: "another home's answer" in erik.texts(room, bot.user))
    assert erik.texts(room, bot.user) == ["the answer", "the answer", "another home's answer"]


async def test_a_file_goes_out_once_under_its_name(bot: Bot, erik: Person) -> None:
    room = await met(bot, erik, KeptDoor())
    media = Media("file", "text/plain", "list.txt", 4, base64.b64encode(b"milk").decode())
    bridge = bot.bridge()
    for _ in range(2):
        await bridge.send(part(room, "", media=media))
    await bridge.aclose()
    await erik.until(lambda: erik.messages(room, bot.user))
    (sent,) = erik.messages(room, bot.user)
    assert (sent["content"]["msgtype"], sent["content"]["body"]) == ("m.file", "list.txt")
    server, media_id = sent["content"]["url"].removeprefix("mxc://").split("/")
    got = await erik.http.get(f"/_matrix/client/v1/media/download/{server}/{media_id}")
    assert got.content == b"milk"


def turn(kind: Any, name: str = "t1", **data: Any) -> TurnEvent:
    return TurnEvent(kind, "main", name, data)


async def test_live_text_becomes_the_answer(bot: Bot, erik: Person) -> None:
    door = KeptDoor()
    room = await met(bot, erik, door)
    async with bot.running(door) as bridge:
        bridge.show(turn("turn", state="started"), room)
        await erik.until(lambda: erik.typing.get(room))
        bridge.show(turn("delta", text="Let me"), room)
        await erik.until(lambda: erik.texts(room, bot.user) == ["Let me"])
        bridge.show(turn("discard"), room)
        await erik.until(lambda: erik.texts(room, bot.user) == ["…"])
        bridge.show(turn("delta", text="It is **nine**"), room)
        await erik.until(lambda: erik.texts(room, bot.user) == ["It is **nine**"])
        await bridge.send(part(room, "A reminder", key="n", kind="notice"))
        bridge.show(turn("turn", state="answered"), room)
        await bridge.send(part(room, "It is **nine** o'clock."))
        await bridge.send(part(room, "Second part", number=2))
        await erik.until(lambda: "Second part" in erik.texts(room, bot.user))
    assert erik.texts(room, bot.user) == ["It is **nine** o'clock.", "A reminder", "Second part"]


async def test_a_turn_that_was_stopped_leaves_no_text(bot: Bot, erik: Person) -> None:
    door = KeptDoor()
    room = await met(bot, erik, door)
    async with bot.running(door) as bridge:
        bridge.show(turn("turn", state="started"), room)
        bridge.show(turn("delta", text="Once upon"), room)
        await erik.until(lambda: erik.texts(room, bot.user) == ["Once upon"])
        bridge.show(turn("turn", state="aborted"), room)
        await erik.until(lambda: erik.texts(room, bot.user) == [])


@pytest.mark.parametrize("resumed", [True, False])
async def test_live_text_of_a_killed_process_is_replaced_by_the_answer(bot: Bot, erik: Person, resumed: bool) -> None:
    door = KeptDoor()
    room = await met(bot, erik, door)
    async with bot.running(door) as bridge:
        bridge.show(turn("delta", text="Once upon"), room)
        await erik.until(lambda: erik.texts(room, bot.user) == ["Once upon"])
        # Nothing is told to a process that is killed: its client is just gone.
    async with bot.running(door) as bridge:
        if resumed:
            bridge.show(turn("delta", text="Twice upon"), room)
            await erik.until(lambda: erik.texts(room, bot.user) == ["Twice upon"])
        await bridge.send(part(room, "The end."))
        await erik.until(lambda: "The end." in erik.texts(room, bot.user))
    assert erik.texts(room, bot.user) == ["The end."]
    async with bot.running(door) as bridge:
        await bridge.send(part(room, "More.", key="reply:2"))
    await erik.until(lambda: "More." in erik.texts(room, bot.user))
    assert erik.texts(room, bot.user) == ["The end.", "More."]


async def test_a_rate_limit_says_how_long_to_wait(bot: Bot, erik: Person) -> None:
    room = await met(bot, erik, KeptDoor())
    limit = {"messages_per_second": 1, "burst_count": 1}
    await erik.ask("POST", f"/v1/users/{bot.user}/override_ratelimit", limit, base="/_synapse/admin")
    bridge = bot.bridge()
    with pytest.raises(BridgeError) as refused:
        for number in range(10):
            await bridge.send(part(room, "quick", key=f"{number}"))
    await bridge.aclose()
    assert refused.value.retry_after and not refused.value.ambiguous


async def test_f39_a_token_that_is_gone_says_what_to_do(bot: Bot, homeserver: Synapse) -> None:
    bot.token = "syt_gone"
    for asked in (bot.bridge().check, lambda: bot.bridge().run(KeptDoor())):
        with pytest.raises(BridgeError, match="assistant bridge add matrix"):
            await asked()


async def test_the_account_tells_who_it_is(bot: Bot) -> None:
    assert await bot.bridge().check() == bot.user
    bot.device = "OTHER"
    with pytest.raises(BridgeError, match="belongs to"):
        await bot.bridge().check()


async def test_a_log_in_makes_a_device_or_says_that_the_password_is_wrong(homeserver: Synapse, bot: Bot) -> None:
    user, password = homeserver.register("nocturne")
    account, bot.device, bot.token = await login(homeserver.url, user, password)
    bot.user = user
    assert account == user == await bot.bridge().check()
    with pytest.raises(BridgeError, match="password"):
        await login(homeserver.url, bot.user, "wrong")


async def test_a_server_that_is_not_there_leaves_no_doubt_about_a_message(bot: Bot) -> None:
    bridge = bot.bridge("http://127.0.0.1:9")
    with pytest.raises(BridgeError) as refused:
        await bridge.send(part("!room:test.example", "hello"))
    await bridge.aclose()
    assert not refused.value.ambiguous
