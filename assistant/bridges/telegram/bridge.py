"""The Telegram bridge: a bot, over long polling, with python-telegram-bot's `Bot` alone.

What always holds:
- What Telegram hands out it forgets when it is asked for what comes after. It is asked so only once the door has kept
  what came before (I1); the door keeps the place in the same transaction. The library's updater would ask first.
- A message goes out once. Telegram has no key under which a resend would be known: where it may have arrived, that is
  said, and it is not tried again (I8).
- Telegram tells bots of edits, and nothing of deletions.
"""

from __future__ import annotations

import asyncio
import base64
from functools import partial
from typing import Any

import structlog
from telegram import CallbackQuery, Chat, MaybeInaccessibleMessage, Message, Update, User
from telegram.constants import ChatAction, ChatType
from telegram.error import BadRequest, Forbidden, InvalidToken

from assistant.bridges.telegram.api import TelegramApi
from assistant.bridges.telegram.incoming import (
    MAX_DOWNLOAD_BYTES,
    TelegramFile,
    file_of,
    is_addressed_to_bot,
    is_command_for_other_bot,
    sender_of,
    text_of_message,
    thread_of,
)
from assistant.bridges.telegram.live_text import TelegramLiveText
from assistant.bridges.telegram.render import replace_surrogates
from assistant.bridges.telegram.send import MAX_MESSAGE_UNITS, inline_keyboard, parse_target, send_media, send_text
from assistant.core.bridge_api import (
    BridgeCapabilities,
    InboundMessage,
    InboundPort,
    MessageChange,
    OutgoingPart,
    TurnEvent,
)
from assistant.core.errors import BridgeError
from assistant.core.messages import Media
from assistant.core.text import lazy_regex

log = structlog.get_logger()

_TOKEN = lazy_regex(r"[0-9]+:[A-Za-z0-9_-]+")
_ROOMS = (ChatType.GROUP, ChatType.SUPERGROUP)
# Bullets and indents make a text longer than its Markdown.
_MARGIN = 96
_POLL_SECONDS = 50.0
_TIMEOUT_SECONDS = 15.0
_TYPING_SECONDS = 4.5
_DRAFT_SECONDS = 1.0
_FILE_SECONDS = 90.0
_FILE_TRIES = 3


class TelegramBridge:
    """See `bridge_ports.Bridge`. A target is a chat as in "123", with its topic as in "123:45"."""

    name = "telegram"
    capabilities = BridgeCapabilities(
        edit=True,
        typing=True,
        media=True,
        threads=True,
        buttons=True,
        max_length=MAX_MESSAGE_UNITS - _MARGIN,
        length_unit="utf-16",
    )

    def __init__(
        self,
        token: str,
        base_url: str = "",
        *,
        poll_seconds: float = _POLL_SECONDS,
        timeout: float = _TIMEOUT_SECONDS,
        typing_seconds: float = _TYPING_SECONDS,
        draft_seconds: float = _DRAFT_SECONDS,
    ) -> None:
        """`base_url` is a Bot API of one's own, "" for Telegram's. `poll_seconds` is how long Telegram may wait for
        something to hand out, `timeout` how long each step of any other request may take. Raises `BridgeError` for
        what cannot be a token."""
        if _TOKEN.fullmatch(token) is None:
            raise BridgeError("That is no bot's token. `assistant bridge add telegram` takes the one of @BotFather.")
        self._open = partial(TelegramApi, token, base_url, timeout)
        self._opened: TelegramApi | None = None
        self._poll_seconds = poll_seconds
        self._running = False
        self._tries: dict[str, int] = {}
        self._live = TelegramLiveText(
            self._type, self._draft, typing_seconds=typing_seconds, draft_seconds=draft_seconds
        )

    @property
    def _calls(self) -> TelegramApi:
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    async def check(self) -> str:
        return f"@{(await self._whoami()).username}"

    async def aclose(self) -> None:
        await self._live.aclose()
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened.close()

    async def _whoami(self) -> User:
        with self._calls.as_bridge_errors():
            return await self._calls.bot.get_me()

    # ------------------------------------------------------------------------------------------------------- receiving

    async def run(self, inbound: InboundPort) -> None:
        me = await self._whoami()
        known = inbound.load_position(self.name)
        offset = int(known) if known.isdecimal() else 0
        # The first time it is only asked what is there already.
        updates = await self._calls.get_updates(offset, 0)
        inbound.mark_connected(self.name)
        # What Telegram keeps from a bot in groups, nobody sees missing.
        log.info("telegram connected", bot=me.username, all_of_groups=bool(me.can_read_all_group_messages))
        self._running = True
        try:
            while True:
                for update in updates:
                    await self._hand_in(inbound, update, me)
                    # Not the highest that ever was: after a quiet week Telegram counts on from anywhere.
                    offset = update["update_id"] + 1
                updates = await self._calls.get_updates(offset, self._poll_seconds)
        finally:
            self._running = False

    async def _hand_in(self, door: InboundPort, raw: dict[str, Any], me: User) -> None:
        position = str(raw["update_id"] + 1)
        try:
            update = Update.de_json(raw)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            log.error("telegram update cannot be read", update=raw["update_id"], error=type(error).__name__)
            update = Update(raw["update_id"])
        read = await self._read(door, update, me, position)
        if isinstance(read, InboundMessage):
            await door.receive(read)
        elif isinstance(read, MessageChange):
            await door.receive_change(read)
        else:
            door.save_position(self.name, position)
        if update.callback_query is not None:
            await self._let_go(update.callback_query)

    async def _read(
        self, door: InboundPort, update: Update, me: User, position: str
    ) -> InboundMessage | MessageChange | None:
        """What is to be kept of it."""
        if update.message is not None:
            return await self._message(door, update.message, me, position)
        if update.edited_message is not None:
            return self._edit(update.edited_message, update.update_id, me, position)
        if update.callback_query is not None:
            return self._press(update.callback_query, position)
        return None

    async def _message(self, door: InboundPort, message: Message, me: User, position: str) -> InboundMessage | None:
        chat, sender = message.chat, sender_of(message)
        if sender is None or chat.type == ChatType.CHANNEL or is_command_for_other_bot(message, me):
            return None
        words = text_of_message(message, me)
        room, room_name = _room(chat)
        addressed = room is None or is_addressed_to_bot(message, me)
        media: tuple[Media, ...] = ()
        if (file := file_of(message)) is not None:
            expected = door.accepts_from(self.name, sender[0], room, addressed=addressed)
            media, missing = await self._fetched(file) if expected else ((), file.missing_notice("nobody expects it"))
            words = "\n".join(part for part in (words, missing) if part)
        if not words and not media:
            return None
        return InboundMessage(
            self.name,
            _number(message, me),
            sender[0],
            words,
            sender[1],
            media,
            _target(message),
            room,
            room_name,
            addressed,
            position,
        )

    def _edit(self, message: Message, update: int, me: User, position: str) -> MessageChange | None:
        """A location that is shared for a while is edited every few seconds: that is no edit."""
        chat, sender = message.chat, sender_of(message)
        if sender is None or message.location is not None or chat.type == ChatType.CHANNEL:
            return None
        words = text_of_message(message, me)
        room, _ = _room(chat)
        return MessageChange(self.name, _number(message, me), str(update), "edit", sender[0], words, room, position)

    def _press(self, query: CallbackQuery, position: str) -> InboundMessage | None:
        """A button's command, as if it had been typed."""
        message, sender = query.message, query.from_user
        if message is None or message.chat.type == ChatType.CHANNEL or not query.data:
            return None
        room, room_name = _room(message.chat)
        return InboundMessage(
            self.name,
            f"press:{query.id}",
            str(sender.id),
            query.data,
            sender.full_name,
            (),
            _target(message),
            room,
            room_name,
            position=position,
        )

    async def _let_go(self, query: CallbackQuery) -> None:
        """The button stops turning. Where Telegram does not take that any more, nothing is lost."""
        try:
            with self._calls.as_bridge_errors():
                await self._calls.bot.answer_callback_query(query.id)
        except BridgeError as error:
            log.info("telegram button was not let go", error=str(error))

    async def _fetched(self, file: TelegramFile) -> tuple[tuple[Media, ...], str]:
        """The file, or what is said instead. Raises `BridgeError` where Telegram fails, rather than refuses: it is
        asked for the whole message again then, a few times."""
        if file.size > MAX_DOWNLOAD_BYTES:
            return (), file.missing_notice("Telegram hands bots nothing larger than 20 MB")
        self._tries[file.id] = self._tries.get(file.id, 0) + 1
        try:
            with self._calls.as_bridge_errors():
                media = await self._fetch(file)
        except BridgeError:
            if self._tries[file.id] < _FILE_TRIES:
                raise
            media = None
        del self._tries[file.id]
        return ((), file.missing_notice("Telegram does not hand it out")) if media is None else ((media,), "")

    async def _fetch(self, file: TelegramFile) -> Media | None:
        try:
            async with asyncio.timeout(_FILE_SECONDS):
                held = await self._calls.bot.get_file(file.id)
                data = bytes(await held.download_as_bytearray())
        except (BadRequest, Forbidden, InvalidToken):
            return None
        except TimeoutError:
            raise BridgeError(f"Telegram did not hand out a file within {_FILE_SECONDS:g} s.") from None
        return Media(file.kind, file.mime, file.name, len(data), base64.b64encode(data).decode("ascii"))

    # --------------------------------------------------------------------------------------------------------- sending

    async def send(self, part: OutgoingPart) -> None:
        outgoing = part.item.outgoing
        chat, thread = parse_target(outgoing.target)
        buttons = inline_keyboard(outgoing.buttons) if part.last else None
        async with self._live.pause_while_sending(outgoing.target, final=outgoing.kind == "reply"):
            with self._calls.as_bridge_errors():
                if part.media is None:
                    await send_text(self._calls.bot, part.text, chat, thread, buttons)
                else:
                    await send_media(self._calls.bot, part.media, chat, thread, buttons)

    def show(self, event: TurnEvent, target: str) -> None:
        """Live text between two only: Telegram has no drafts in groups."""
        if self._running:
            self._live.show(event, target, drafts=not target.startswith("-"))

    async def _type(self, target: str) -> None:
        chat, thread = parse_target(target)
        with self._calls.as_bridge_errors():
            await self._calls.bot.send_chat_action(chat, ChatAction.TYPING, message_thread_id=thread)

    async def _draft(self, target: str, number: int, text: str) -> None:
        chat, thread = parse_target(target)
        with self._calls.as_bridge_errors():
            await self._calls.bot.send_message_draft(chat, number, replace_surrogates(text), message_thread_id=thread)


def _room(chat: Chat) -> tuple[str | None, str]:
    return (str(chat.id), chat.title or "") if chat.type in _ROOMS else (None, "")


def _number(message: Message, me: User) -> str:
    """Each bot counts the messages of a talk between two from 1: one that takes the place of another would seem to
    bring what came long ago."""
    return f"{me.id}:{message.chat.id}:{message.message_id}"


def _target(message: MaybeInaccessibleMessage) -> str:
    thread = thread_of(message) if isinstance(message, Message) else None
    return str(message.chat.id) if thread is None else f"{message.chat.id}:{thread}"
