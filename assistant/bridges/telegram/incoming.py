"""Reads a Telegram message: its text, its sender, whether it is for the bot, and its file. Pure.

Text of others (forwarded, quoted or replied to) is quoted, with every line marked (I10). A forwarded message is never a
command, and its text addresses nobody.
"""

from __future__ import annotations

from collections.abc import Iterator

from telegram import Chat, Message, MessageEntity, MessageOrigin, User, VideoNote, Voice

from assistant.core.dataclass import dataclass
from assistant.core.messages import MediaKind
from assistant.core.people import clean_display_name
from assistant.core.quoting import quote_block
from assistant.core.text import shorten

# Telegram's limit for bots.
MAX_DOWNLOAD_BYTES = 20_000_000

_MAX_QUOTE = 500
_IMAGE_TYPES = ("image/jpeg", "image/png", "image/webp", "image/gif")


@dataclass(frozen=True, slots=True)
class TelegramFile:
    """A file on Telegram's servers. `size` is in bytes, 0 if unknown."""

    id: str
    kind: MediaKind
    mime: str
    name: str
    size: int
    voice: bool = False

    def missing_notice(self, why: str) -> str:
        """Return the text in place of a file."""
        what = "picture" if self.kind == "image" else "file"
        size = f", {max(self.size / 1e6, 0.1):.1f} MB" if self.size else ""
        return f"[{what} {clean_display_name(self.name)}{size}: {why}]"


def sender_of(message: Message) -> tuple[str, str] | None:
    """Return account and name. A message on behalf of a group or channel is from that, not the placeholder account
    Telegram uses. None for messages without a sender, and for other bots."""
    if message.sender_chat is not None:
        return str(message.sender_chat.id), message.sender_chat.effective_name or ""
    user = message.from_user
    return None if user is None or user.is_bot else (str(user.id), user.full_name)


def thread_of(message: Message) -> int | None:
    """Return the topic; in groups without topics, reply threads do not count, since one cannot write to them."""
    return message.message_thread_id if message.is_topic_message else None


def is_addressed_to_bot(message: Message, me: User) -> bool:
    """Return whether a message in a room is for the bot: a mention, a reply to it, or a command."""
    replied = message.reply_to_message
    if replied is not None and replied.from_user == me and replied.forum_topic_created is None:
        return True
    if message.forward_origin is not None:
        return False
    command = _command_recipient(message)
    if command is not None:
        return command.casefold() in ("", str(me.username).casefold())
    return any(_mentions(message, entity, me) for entity in _entities(message))


def is_command_for_other_bot(message: Message, me: User) -> bool:
    """Return whether it is a command that names another bot."""
    return _command_recipient(message) not in (None, "") and not is_addressed_to_bot(message, me)


def text_of_message(message: Message, me: User) -> str:
    """Return its text; "" for only a picture or file, and for service messages."""
    text = "\n".join(part for part in (_marked_text(message, me), *_describe_content(message)) if part)
    if message.forward_origin is not None:
        return f"[forwarded from {_origin_name(message.forward_origin)}]" + (f"\n{quote_block(text)}" if text else "")
    if _command_recipient(message) is not None:
        return text
    return "\n\n".join(part for part in (text, _describe_reply(message, me)) if part)


def file_of(message: Message) -> TelegramFile | None:
    """Return the picture or file of a message, the largest size of a picture."""
    if message.photo:
        photo = message.photo[-1]
        return TelegramFile(
            photo.file_id, "image", "image/jpeg", f"photo {message.message_id}.jpg", photo.file_size or 0
        )
    if (voice := message.voice) is not None:
        # A forwarded one is somebody else's.
        own, mime = message.forward_origin is None, voice.mime_type or "audio/ogg"
        name = f"voice message {message.message_id}.ogg"
        return TelegramFile(voice.file_id, "file", mime, name, voice.file_size or 0, own)
    file = message.document or message.video or message.audio
    if file is None:
        return None
    mime = file.mime_type or "application/octet-stream"
    name = file.file_name or f"{type(file).__name__.lower()} {message.message_id}"
    return TelegramFile(file.file_id, "image" if mime in _IMAGE_TYPES else "file", mime, name, file.file_size or 0)


# ---------------------------------------------------------------------------------------------------------------- words


def _marked_text(message: Message, me: User) -> str:
    """Return text or caption, without the bot's name at either end, with link addresses written out and quotes
    marked."""
    text = _as_units(message.text or message.caption or "")
    edits: list[tuple[int, int, str]] = []
    for entity in _entities(message):
        start, end = entity.offset, entity.offset + entity.length
        if entity.type == MessageEntity.TEXT_LINK and entity.url:
            edits += [(start, start, "["), (end, end, f"]({_as_units(entity.url)})")]
        elif entity.type in (MessageEntity.BLOCKQUOTE, MessageEntity.EXPANDABLE_BLOCKQUOTE):
            line_starts = [start, *(at + 1 for at in range(start, min(end, len(text)) - 1) if text[at] == "\n")]
            edits += [(at, at, "> ") for at in line_starts]
        elif _mentions(message, entity, me) and not (text[:start].strip() and text[end:].strip(" \n,.:;!?")):
            edits.append((start, end, ""))
    for start, end, instead in sorted(edits, reverse=True):
        text = text[:start] + instead + text[end:]
    return _from_units(text).strip().removeprefix(",").removeprefix(":").strip() if edits else _from_units(text)


def _describe_content(message: Message) -> Iterator[str]:
    """Describe content that is neither text nor a stored file."""
    if (venue := message.venue) is not None:
        where = f"{venue.location.latitude:.5f}, {venue.location.longitude:.5f}"
        yield f"[place: {clean_display_name(venue.title)}, {clean_display_name(venue.address)} ({where})]"
    elif message.location is not None:
        yield f"[location: {message.location.latitude:.5f}, {message.location.longitude:.5f}]"
    contact, poll, checklist = message.contact, message.poll, message.checklist
    for description in (
        f"sticker {message.sticker.emoji or ''}" if message.sticker else "",
        f"voice message, {_format_seconds(message.voice)}" if message.voice else "",
        f"video message, {_format_seconds(message.video_note)}" if message.video_note else "",
        f"contact: {contact.first_name} {contact.last_name or ''}".rstrip() + f", {contact.phone_number}"
        if contact
        else "",
        f"poll: {poll.question} ({' / '.join(option.text for option in poll.options)})" if poll else "",
        f"{message.dice.emoji} {message.dice.value}" if message.dice else "",
        "story" if message.story else "",
        f"game: {message.game.title}" if message.game else "",
        f"checklist: {checklist.title}: {' / '.join(task.text for task in checklist.tasks)}" if checklist else "",
        "paid media" if message.paid_media else "",
        f"invoice: {message.invoice.title}" if message.invoice else "",
    ):
        if description:
            yield f"[{' '.join(description.split())}]"


def _describe_reply(message: Message, me: User) -> str:
    """Quote the message that this one replies to; not the first of a topic, to which all others are replies."""
    replied = message.reply_to_message
    if replied is not None and replied.forum_topic_created is not None:
        return ""
    if message.quote is not None:
        text = message.quote.text
    elif replied is not None:
        text = "\n".join(part for part in (replied.text or replied.caption or "", *_describe_content(replied)) if part)
    else:
        return ""
    if replied is None:
        author = "a message elsewhere"
    elif replied.from_user == me:
        author = "you"
    else:
        author = clean_display_name((sender_of(replied) or ("", "somebody"))[1])
    return f"[in reply to {author}]" + (f"\n{quote_block(shorten(text, _MAX_QUOTE))}" if text else "")


def _origin_name(origin: MessageOrigin) -> str:
    name = getattr(origin, "sender_user_name", "")
    for attribute in ("sender_user", "sender_chat", "chat"):
        sender = getattr(origin, attribute, None)
        if isinstance(sender, User | Chat):
            name = (sender.full_name if isinstance(sender, User) else sender.effective_name) or ""
            break
    return clean_display_name(name) or "somebody"


# ------------------------------------------------------------------------------------------------------------- entities


def _entities(message: Message) -> tuple[MessageEntity, ...]:
    return tuple(message.entities or message.caption_entities)


def _command_recipient(message: Message) -> str | None:
    """Return the bot named by a command at the very start, "" for none; None without a command."""
    command = next(
        (entity for entity in _entities(message) if entity.type == MessageEntity.BOT_COMMAND and not entity.offset),
        None,
    )
    if command is None or message.forward_origin is not None:
        return None
    return _from_units(_as_units(message.text or message.caption or "")[: command.length]).partition("@")[2]


def _mentions(message: Message, entity: MessageEntity, me: User) -> bool:
    if entity.type == MessageEntity.TEXT_MENTION:
        return entity.user == me
    if entity.type != MessageEntity.MENTION:
        return False
    name = _as_units(message.text or message.caption or "")[entity.offset : entity.offset + entity.length]
    return _from_units(name).casefold() == f"@{me.username}".casefold()


def _as_units(text: str) -> str:
    """Return `text` with one character per UTF-16 unit, so that Telegram's offsets apply."""
    raw = text.encode("utf-16-be", "replace")
    return "".join(chr(high << 8 | low) for high, low in zip(raw[::2], raw[1::2], strict=True))


def _from_units(text: str) -> str:
    return text.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "replace")


def _format_seconds(played: Voice | VideoNote) -> str:
    return f"{played.to_dict()['duration']} s"
