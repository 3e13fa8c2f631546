"""What goes out to Telegram, each in a form that it takes.

What always holds: what Telegram refused did not arrive, so another form of it may be sent at once: words that it could
not format as they stand, a picture that it does not like as a file, to a topic that is gone without it, to a group
under the new number that it got. Anything else that goes wrong is raised, and nothing is tried again.

Telegram fetches no previews of addresses in it: a model that was talked into it could hand secrets to a stranger's
server by writing an address.
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

_LARGEST_PHOTO = 10_000_000
_PHOTOS = ("image/jpeg", "image/png", "image/webp")
_NO_PREVIEW = LinkPreviewOptions(is_disabled=True)

# To a chat and, where there is one, a topic.
SendToChat = Callable[[int, int | None], Awaitable[object]]


def parse_target(target: str) -> tuple[int, int | None]:
    """Chat and topic. Raises `BridgeError` for what names none."""
    chat, _, thread = target.partition(":")
    try:
        return int(chat), int(thread) if thread else None
    except ValueError:
        text = f'"{target}" is no chat of Telegram: those are numbers. It is kept.'
        raise BridgeError(text, refused=True) from None


def inline_keyboard(buttons: Iterable[Button]) -> InlineKeyboardMarkup | None:
    """Those whose command Telegram can carry; what it can't stands in the text."""
    most = InlineKeyboardButtonLimit.MAX_CALLBACK_DATA
    shown = [one for one in buttons if one.label.strip() and 0 < len(one.command.encode()) <= most]
    rows = [[InlineKeyboardButton(one.label, callback_data=one.command)] for one in shown]
    return InlineKeyboardMarkup(rows) if rows else None


async def send_text(
    bot: Bot, markdown: str, chat: int, thread: int | None, buttons: InlineKeyboardMarkup | None = None
) -> None:
    """Raises `TelegramError`."""

    async def send(text: str, entities: tuple[MessageEntity, ...]) -> None:
        await _reaching(
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

    shown = media.kind == "image" and media.mime in _PHOTOS and len(data) <= _LARGEST_PHOTO
    await _reaching(photo if shown else document, chat, thread)


async def _reaching(send: SendToChat, chat: int, thread: int | None) -> None:
    try:
        await send(chat, thread)
    except ChatMigrated as error:
        await send(error.new_chat_id, thread)
    except BadRequest as error:
        if thread is None or "thread not found" not in error.message.casefold():
            raise
        await send(chat, None)
