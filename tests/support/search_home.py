"""A home being talked in, over the real store, and the history of what was said there."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

from assistant.core.checkpoints import RequestKind
from assistant.core.messages import Message, Role
from assistant.core.records import SearchHit
from assistant.search.query import SearchLimits
from assistant.store.database import Database
from assistant.store.log.writer import MessageLog
from assistant.store.schema.migrations import script_migrations
from assistant.store.script.conversation import StoredConversation
from assistant.wire.search import DEFAULT_SEARCH_LIMITS, open_history
from tests.bench.prose import Prose
from tests.support.imports import import_messages

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
OWNER, GUEST = "owner", "peer:telegram:7"


class SearchHome:
    """A home being talked in, and its history."""

    def __init__(self, path: Path, bounds: SearchLimits = DEFAULT_SEARCH_LIMITS) -> None:
        self.path = path
        self.db = Database.open(path / "script.db", script_migrations, NOW)
        self.log = MessageLog(path)
        self.conversation = StoredConversation(
            self.db,
            self.log,
            to_view_message=lambda message, place: message,
            count_tokens=lambda message: len(message.content),
            classify_request=lambda text: RequestKind.ANSWER,
            undo_kept=10,
        )
        self.history, self.finder = open_history(path, patient=True, bounds=bounds)
        self._minutes = 0

    def say(
        self, *texts: str, role: Role = "user", session: str = "main", scope: str = OWNER, name: str | None = None
    ) -> list[int]:
        messages = [Message(role, text, ts=self._tick(), name=name) for text in texts]
        return [message.id or 0 for message in import_messages(self.conversation, session, scope, messages, NOW)]

    def talk(self, *texts: str) -> list[int]:
        """User and assistant in turn."""
        roles: tuple[Role, Role] = ("user", "assistant")
        return [self.say(text, role=roles[i % 2])[0] for i, text in enumerate(texts)]

    def search_ids(self, query: str, scope: str = OWNER, **how: object) -> list[int]:
        return [hit.message_id for hit in self.search(query, scope, **how)]

    def search(self, query: str, scope: str = OWNER, **how: object) -> list[SearchHit]:
        return self.history.search(query, scope, **how)  # type: ignore[arg-type]

    def close(self) -> None:
        self.history.close()
        self.log.close()
        self.db.close()

    def _tick(self) -> datetime:
        self._minutes += 1
        return NOW + timedelta(minutes=self._minutes)


def add_chatter(room: SearchHome, count: int, seed: int = 3) -> None:
    """Ordinary talk: nothing that a test asks for, all the words that questions are made of."""
    chance, prose = random.Random(seed), Prose(seed)
    topic = prose.topic(chance)
    for begin in range(0, count, 100):
        room.say(*(prose.message(chance, topic, 20, 60) for _ in range(min(100, count - begin))))
