"""Sends messages to Telegram, each in a form that it accepts.

What always holds: what Telegram refused did not arrive, so it may be sent in another form at once: text without format,
a picture as a file, without a topic that is gone, to a group under its new number. Any other error is raised, and
nothing is tried again.

Telegram fetches no link previews: a model that was tricked into it could pass secrets to a stranger's server by writing
an address.
"""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Iterable

from telegram import Bot, InlineKeyboardButton, InlineKeyboardMarkup, LinkPreviewOptions, MessageEntity
from telegram.constants import InlineKeyboardButtonLimit, MessageLimit
from telegram.error import BadRequest, ChatMigrated

from assistant.bridges.telegram.render import render_markdown, replace_surrogates, utf16_length
from assistant.core.errors import BridgeError
from assistant.core.messages import Media
from assistant.core.records import Button

MAX_MESSAGE_UNITS = int(MessageLimit.MAX_TEXT_LENGTH)

_MAX_PHOTO_BYTES = 10_000_000
_PHOTO_TYPES = ("image/jpeg", "image/png", "image/webp")
_NO_PREVIEW = LinkPreviewOptions(is_disabled=True)

# To a chat and, where there is one, a topic.
SendToChat = Callable[[int, int | None], Awaitable[object]]


def parse_target(target: str) -> tuple[int, int | None]:
    """Chat and topic. Raises `BridgeError` for other texts."""
    chat, _, thread = target.partition(":")
    try:
        return int(chat), int(thread) if thread else None
    except ValueError:
        text = f'"{target}" is not a chat of Telegram: chats are numbers. The message is kept.'
        raise BridgeError(text, refused=True) from None


def inline_keyboard(buttons: Iterable[Button]) -> InlineKeyboardMarkup | None:
    """Buttons whose command is short enough for Telegram; the text has the commands of all others."""
    max_bytes = InlineKeyboardButtonLimit.MAX_CALLBACK_DATA
    visible = [button for button in buttons if button.label.strip() and 0 < len(button.command.encode()) <= max_bytes]
    rows = [[InlineKeyboardButton(button.label, callback_data=button.command)] for button in visible]
    return InlineKeyboardMarkup(rows) if rows else None


async def send_text(
    bot: Bot, markdown: str, chat: int, thread: int | None, buttons: InlineKeyboardMarkup | None = None
) -> None:
    """Raises `TelegramError`."""

    async def send(text: str, entities: tuple[MessageEntity, ...]) -> None:
        await _send_with_fallback(
            lambda chat, thread: bot.send_message(
                chat,
                text,
                entities=entities,
                message_thread_id=thread,
                reply_markup=buttons,
                link_preview_options=_NO_PREVIEW,
            ),
            chat,
            thread,
        )

    text, entities = render_markdown(markdown)
    if not text or utf16_length(text) > MAX_MESSAGE_UNITS:
        await send(replace_surrogates(markdown), ())
        return
    try:
        await send(text, entities)
    except BadRequest as error:
        if "entit" not in error.message.casefold():
            raise
        await send(replace_surrogates(markdown), ())


async def send_media(
    bot: Bot, media: Media, chat: int, thread: int | None, buttons: InlineKeyboardMarkup | None = None
) -> None:
    """Raises `TelegramError`."""
    if media.data is None:
        await send_text(bot, f"[{media.name or media.mime}]", chat, thread, buttons)
        return
    data, name = base64.b64decode(media.data), media.name or media.mime.replace("/", ".")

    async def document(chat: int, thread: int | None) -> None:
        await bot.send_document(chat, data, filename=name, message_thread_id=thread, reply_markup=buttons)

    async def photo(chat: int, thread: int | None) -> None:
        try:
            await bot.send_photo(chat, data, filename=name, message_thread_id=thread, reply_markup=buttons)
        except BadRequest:
            await document(chat, thread)

    is_photo = media.kind == "image" and media.mime in _PHOTO_TYPES and len(data) <= _MAX_PHOTO_BYTES
    await _send_with_fallback(photo if is_photo else document, chat, thread)


async def _send_with_fallback(send: SendToChat, chat: int, thread: int | None) -> None:
    try:
        await send(chat, thread)
    except ChatMigrated as error:
        await send(error.new_chat_id, thread)
    except BadRequest as error:
        if thread is None or "thread not found" not in error.message.casefold():
            raise
        await send(chat, None)
