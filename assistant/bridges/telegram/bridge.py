"""The Telegram bridge: a bot over long polling, using only the `Bot` class of python-telegram-bot.

- Telegram deletes an update when the next one is requested. That is done only after the gateway has stored the message
  (I1), with the position in the same transaction. The library's updater would request it earlier.
- A message is sent once. Telegram cannot recognize a resend: if a message may have arrived, that is reported, and it is
  not retried (I8).
- Telegram notifies bots of edits, but not of deletions.
"""

from __future__ import annotations

import asyncio
import base64
from functools import partial
from typing import Any

from telegram import CallbackQuery, Chat, MaybeInaccessibleMessage, Message, Update, User
from telegram.constants import ChatAction, ChatType
from telegram.error import BadRequest, Forbidden, InvalidToken

from assistant.bridges.telegram.api import (
    MAX_MESSAGE_UNITS,
    TelegramApi,
    inline_keyboard,
    parse_target,
    send_media,
    send_text,
)
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
from assistant.core.bridge_api import (
    BridgeCapabilities,
    InboundMessage,
    InboundPort,
    MessageChange,
    OutgoingPart,
    TurnEvent,
)
from assistant.core.errors import BridgeError
from assistant.core.logger import get_logger
from assistant.core.messages import Media
from assistant.core.text import lazy_regex

log = get_logger()

_TOKEN = lazy_regex(r"[0-9]+:[A-Za-z0-9_-]+")
_ROOMS = (ChatType.GROUP, ChatType.SUPERGROUP)
# Bullets and indentation make a text longer than its Markdown.
_MARGIN = 96
_POLL_SECONDS = 50.0
_TIMEOUT_SECONDS = 15.0
_TYPING_SECONDS = 4.5
_DRAFT_SECONDS = 1.0
_FILE_SECONDS = 90.0
_MAX_FILE_TRIES = 3


class TelegramBridge:
    """See `Bridge`. A target is a chat such as "123", with its topic such as "123:45"."""

    name = "telegram"
    capabilities = BridgeCapabilities(
        edit=True,
        typing=True,
        media=True,
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
        """`base_url` is your own Bot API server, "" for Telegram's. `poll_seconds` is how long Telegram may wait for an
        update, `timeout` how long each step of another request may take. Raises `BridgeError` for an invalid token."""
        if _TOKEN.fullmatch(token) is None:
            raise BridgeError(
                "This is not a bot's token. Use the one that @BotFather gave you: `assistant bridge add telegram`."
            )
        self._open = partial(TelegramApi, token, base_url, timeout)
        self._api_or_none: TelegramApi | None = None
        self._poll_seconds = poll_seconds
        self._running = False
        self._file_failures: dict[str, int] = {}
        self._live_text = TelegramLiveText(self._send_typing, self._send_draft, typing_seconds, draft_seconds)

    @property
    def _api(self) -> TelegramApi:
        if self._api_or_none is None:
            self._api_or_none = self._open()
        return self._api_or_none

    async def check(self) -> str:
        return f"@{(await self._whoami()).username}"

    async def aclose(self) -> None:
        await self._live_text.aclose()
        api, self._api_or_none = self._api_or_none, None
        if api is not None:
            await api.close()

    async def _whoami(self) -> User:
        with self._api.as_bridge_errors():
            return await self._api.bot.get_me()

    # ------------------------------------------------------------------------------------------------------- receiving

    async def run(self, inbound: InboundPort) -> None:
        """As the port says. The position is the offset of the next update; an update is acknowledged by asking for
        later ones, after it is stored."""
        me = await self._whoami()
        offset = _offset_of(inbound.load_position(self.name))
        # The first request does not wait for new updates.
        updates = await self._api.get_updates(offset, 0)
        inbound.mark_connected(self.name)
        # In groups Telegram may only show a bot some messages: the log says whether it does.
        log.info("telegram connected", bot=me.username, all_of_groups=bool(me.can_read_all_group_messages))
        self._running = True
        try:
            while True:
                for update in updates:
                    await self._receive_update(inbound, update, me)
                    # Not the highest so far: after a quiet week Telegram may continue with any number.
                    offset = update["update_id"] + 1
                updates = await self._api.get_updates(offset, self._poll_seconds)
        finally:
            self._running = False

    async def has_news(self, position: str) -> bool:
        """As the port says: updates stay until later ones are requested."""
        return bool(await self._api.get_updates(_offset_of(position), 0))

    async def _receive_update(self, inbound: InboundPort, raw: dict[str, Any], me: User) -> None:
        position = str(raw["update_id"] + 1)
        try:
            update = Update.de_json(raw)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            log.error("telegram update cannot be read", update=raw["update_id"], error=type(error).__name__)
            update = Update(raw["update_id"])
        read = await self._read_update(inbound, update, me, position)
        if isinstance(read, InboundMessage):
            await inbound.receive(read)
        elif isinstance(read, MessageChange):
            await inbound.receive_change(read)
        else:
            inbound.save_position(self.name, position)
        if update.callback_query is not None:
            await self._answer_button(update.callback_query)

    async def _read_update(
        self, inbound: InboundPort, update: Update, me: User, position: str
    ) -> InboundMessage | MessageChange | None:
        """Return what to store of an update; None for nothing."""
        if update.message is not None:
            return await self._read_message(inbound, update.message, me, position)
        if update.edited_message is not None:
            return self._read_edit(update.edited_message, update.update_id, me, position)
        if update.callback_query is not None:
            return self._read_button(update.callback_query, position)
        return None

    async def _read_message(
        self, inbound: InboundPort, message: Message, me: User, position: str
    ) -> InboundMessage | None:
        chat, sender = message.chat, sender_of(message)
        if sender is None or chat.type == ChatType.CHANNEL or is_command_for_other_bot(message, me):
            return None
        text = text_of_message(message, me)
        room, room_name = _room_of(chat)
        addressed = room is None or is_addressed_to_bot(message, me)
        media: tuple[Media, ...] = ()
        if (file := file_of(message)) is not None:
            expected = inbound.accepts_from(self.name, sender[0], room, addressed=addressed)
            media, missing = (
                await self._fetch_file(file) if expected else ((), file.missing_notice("it was not fetched"))
            )
            text = "\n".join(part for part in (text, missing) if part)
        if not text and not media:
            return None
        return InboundMessage(
            self.name,
            _message_id(message, me),
            sender[0],
            text,
            sender[1],
            media,
            _target_of(message),
            room,
            room_name,
            addressed,
            position,
        )

    def _read_edit(self, message: Message, update: int, me: User, position: str) -> MessageChange | None:
        """Handle an edit. A live location changes every few seconds and is ignored."""
        chat, sender = message.chat, sender_of(message)
        if sender is None or message.location is not None or chat.type == ChatType.CHANNEL:
            return None
        text = text_of_message(message, me)
        room, _ = _room_of(chat)
        return MessageChange(self.name, _message_id(message, me), str(update), "edit", sender[0], text, room, position)

    def _read_button(self, query: CallbackQuery, position: str) -> InboundMessage | None:
        """Handle a button like a typed command."""
        message, sender = query.message, query.from_user
        if message is None or message.chat.type == ChatType.CHANNEL or not query.data:
            return None
        room, room_name = _room_of(message.chat)
        return InboundMessage(
            self.name,
            f"press:{query.id}",
            str(sender.id),
            query.data,
            sender.full_name,
            (),
            _target_of(message),
            room,
            room_name,
            position=position,
        )

    async def _answer_button(self, query: CallbackQuery) -> None:
        """Acknowledge a button press. Errors are ignored."""
        try:
            with self._api.as_bridge_errors():
                await self._api.bot.answer_callback_query(query.id)
        except BridgeError as error:
            log.info("telegram button was not answered", error=str(error))

    async def _fetch_file(self, file: TelegramFile) -> tuple[tuple[Media, ...], str]:
        """Return the file, or a notice instead. Raises `BridgeError` if Telegram fails rather than refuses: the message
        is then requested again, a few times."""
        if file.size > MAX_DOWNLOAD_BYTES:
            return (), file.missing_notice("bots get no files above 20 MB from Telegram")
        self._file_failures[file.id] = self._file_failures.get(file.id, 0) + 1
        try:
            with self._api.as_bridge_errors():
                media = await self._download(file)
        except BridgeError:
            if self._file_failures[file.id] < _MAX_FILE_TRIES:
                raise
            media = None
        del self._file_failures[file.id]
        return ((), file.missing_notice("Telegram did not deliver it")) if media is None else ((media,), "")

    async def _download(self, file: TelegramFile) -> Media | None:
        try:
            async with asyncio.timeout(_FILE_SECONDS):
                remote = await self._api.bot.get_file(file.id)
                data = bytes(await remote.download_as_bytearray())
        except (BadRequest, Forbidden, InvalidToken):
            return None
        except TimeoutError:
            raise BridgeError(f"Telegram did not deliver a file within {_FILE_SECONDS:g} s.") from None
        encoded = base64.b64encode(data).decode("ascii")
        return Media(file.kind, file.mime, file.name, len(data), encoded, voice=file.voice)

    # --------------------------------------------------------------------------------------------------------- sending

    async def send(self, part: OutgoingPart) -> None:
        """As the port says. Telegram drops no repetitions. Drafts stop while a message is sent."""
        outgoing = part.item.outgoing
        chat, thread = parse_target(outgoing.target)
        buttons = inline_keyboard(outgoing.buttons) if part.last else None
        async with self._live_text.pause_while_sending(outgoing.target, final=outgoing.kind == "reply"):
            with self._api.as_bridge_errors():
                if part.media is None:
                    await send_text(self._api.bot, part.text, chat, thread, buttons)
                else:
                    await send_media(self._api.bot, part.media, chat, thread, buttons)

    def show(self, event: TurnEvent, target: str) -> None:
        """Show live text only in direct chats: Telegram has no drafts in groups."""
        if self._running:
            self._live_text.show(event, target, drafts=not target.startswith("-"))

    async def _send_typing(self, target: str) -> None:
        chat, thread = parse_target(target)
        with self._api.as_bridge_errors():
            await self._api.bot.send_chat_action(chat, ChatAction.TYPING, message_thread_id=thread)

    async def _send_draft(self, target: str, number: int, text: str) -> None:
        chat, thread = parse_target(target)
        with self._api.as_bridge_errors():
            await self._api.bot.send_message_draft(chat, number, replace_surrogates(text), message_thread_id=thread)


def _offset_of(position: str) -> int:
    return int(position) if position.isdecimal() else 0


def _room_of(chat: Chat) -> tuple[str | None, str]:
    return (str(chat.id), chat.title or "") if chat.type in _ROOMS else (None, "")


def _message_id(message: Message, me: User) -> str:
    """Return an id that includes the bot's: each bot numbers its direct messages from 1, so a new bot's ids would
    repeat old ones."""
    return f"{me.id}:{message.chat.id}:{message.message_id}"


def _target_of(message: MaybeInaccessibleMessage) -> str:
    thread = thread_of(message) if isinstance(message, Message) else None
    return str(message.chat.id) if thread is None else f"{message.chat.id}:{thread}"
