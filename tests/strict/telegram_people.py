"""The people of a Telegram that is played, what they wrote, and what they see; no network."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.strict.telegram_rules import units

BOT = {"id": 123456, "is_bot": True, "first_name": "Nocturne", "username": "nocturne_bot"}
OWNER = 1001
ROOM = -2002
NOON = 1_790_000_000


@dataclass
class SentMessage:
    """A message of the bot. `entities` are (type, the marked text)."""

    id: int
    chat: int
    thread: int | None
    text: str = ""
    entities: list[tuple[str, str]] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    buttons: list[tuple[str, str]] = field(default_factory=list)
    file: bytes | None = None
    file_name: str = ""
    kind: str = "text"
    raw: dict[str, Any] = field(default_factory=dict)


class TelegramPeople:
    def __init__(self) -> None:
        self.sent: list[SentMessage] = []
        # Chat, "message", "draft" or "typing", and its text, as people saw them.
        self.timeline: list[tuple[int, str, str]] = []
        self.answered: list[str] = []
        self.updates: list[dict[str, Any]] = []
        self.chats: dict[int, dict[str, Any]] = {
            OWNER: {"id": OWNER, "type": "private", "first_name": "Ann"},
            ROOM: {"id": ROOM, "type": "supergroup", "title": "The boat club"},
        }
        self.topics: set[tuple[int, int]] = set()
        self.blocked: set[int] = set()
        self.migrated: dict[int, int] = {}
        self.files: dict[str, bytes] = {}
        self.file_sizes: dict[str, int] = {}
        self.next_update = 500
        self._ids = itertools.count(1)
        self._looked = asyncio.Condition()
        self._notices: set[asyncio.Task[None]] = set()

    async def until(self, true: Callable[[], bool]) -> None:
        async with self._looked:
            await self._looked.wait_for(true)

    def notify(self) -> None:
        """Something changed."""
        task = asyncio.ensure_future(self._notify())
        self._notices.add(task)
        task.add_done_callback(self._notices.discard)

    async def _notify(self) -> None:
        async with self._looked:
            self._looked.notify_all()

    def person(self, user: int, name: str = "Ann") -> dict[str, Any]:
        return {"id": user, "is_bot": False, "first_name": name}

    def say(self, text: str | None = None, *, user: int = OWNER, chat: int | None = None, **fields: Any) -> int:
        """A message of a person, of `fields` as the Bot API names them; its id. Commands are marked as such."""
        message = self.written(text, user=user, chat=chat, **fields)
        self.put({"message": message})
        return int(message["message_id"])

    def written(
        self, text: str | None = None, *, user: int = OWNER, chat: int | None = None, **fields: Any
    ) -> dict[str, Any]:
        """A message that nobody was told of yet."""
        message: dict[str, Any] = {
            "message_id": self.new_id(),
            "date": NOON,
            "chat": self.chats[chat or user],
            "from": self.person(user),
            **fields,
        }
        if text is not None:
            message["text"] = text
            if text.startswith("/"):
                command = {"type": "bot_command", "offset": 0, "length": units(text.split()[0])}
                message["entities"] = [command, *message.get("entities", [])]
        return message

    def edit(self, message: int, text: str, *, user: int = OWNER, chat: int | None = None, **fields: Any) -> None:
        edited = self.written(text, user=user, chat=chat, edit_date=NOON + 60, **fields)
        self.put({"edited_message": {**edited, "message_id": message}})

    def press(self, sent: SentMessage, label: str, *, user: int = OWNER) -> None:
        data = dict(sent.buttons)[label]
        query = {"id": str(self.new_id()), "from": self.person(user), "chat_instance": "1", "data": data}
        self.put({"callback_query": {**query, "message": sent.raw}})

    def put(self, update: Mapping[str, Any], *, again: bool = False) -> None:
        """Any update; one with an `update_id` keeps it."""
        numbered = {"update_id": self.next_update, **update}
        self.next_update = max(self.next_update, numbered["update_id"]) + 1
        self.updates.append(numbered)
        self.notify()

    def new_id(self) -> int:
        return next(self._ids)

    def count_from(self, update: int) -> None:
        """Telegram counts on from anywhere after a quiet week."""
        self.next_update = update

    def keep_file(self, data: bytes, size: int | None = None) -> dict[str, Any]:
        """A file as messages name it; of `size`, if it says so."""
        file = f"file{self.new_id()}"
        self.files[file] = data
        self.file_sizes[file] = len(data) if size is None else size
        return {"file_id": file, "file_unique_id": f"u{file}", "file_size": self.file_sizes[file]}

    def texts(self, chat: int = OWNER) -> list[str]:
        return [one.text for one in self.sent if one.chat == chat]
