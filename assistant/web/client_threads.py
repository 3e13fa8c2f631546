"""Finds the conversation a request of an OpenAI-compatible client belongs to.

Such a client names no conversation, but sends all earlier messages each time. The person's messages, in order, identify
it; the last one is new. Each conversation of a client is a thread here. If the person changed an earlier message, or
asks for another answer, the thread continues in a branch, so that the original stays.

The compared texts are those of the message log, read once and kept as hashes in memory only, so that erased text is
found in no thread.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import field

from assistant.core.dataclass import dataclass
from assistant.core.errors import UsageError
from assistant.core.records import LogRecord
from assistant.core.sessions import BRANCH_PREFIX, OWNER_SCOPE, THREAD_PREFIX
from assistant.web.deps import OwnerReadApi

_CLIENT_THREAD = f"{THREAD_PREFIX}api-"
# Of messages from before this process started, only the newest so many are read.
_RECORDS_READ = 1000


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a message. `asked_before`: id of the identical message that was accepted before."""

    session: str
    asked_before: int | None = None


@dataclass(slots=True)
class _Thread:
    """A person's messages in one conversation: hashes of their texts, and their ids."""

    session: str
    said: list[bytes] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)


class ClientThreads:
    """The threads of clients, over the stores of a data folder."""

    def __init__(self, reader: OwnerReadApi) -> None:
        self._reader = reader
        self._threads: dict[str, _Thread] | None = None

    async def find_place(self, texts: Sequence[str]) -> Place:
        """Return the place of the last of the person's texts, given those before it. Creates a branch if the
        conversation diverged. Raises `StoreError`."""
        if self._threads is None:
            records = await asyncio.to_thread(self._reader.history.recent, OWNER_SCOPE, limit=_RECORDS_READ)
            self._threads = _read_threads(records)
        *before, new = [_hash(text) for text in texts]
        if not before:
            asked = [thread for thread in self._threads.values() if thread.said == [new] and _is_whole(thread)]
            return Place(self._new_name(), asked[-1].ids[0] if asked else None)
        found = self._find(before)
        if found is None:
            return Place(self._new_name())
        thread, count = found
        if count == len(thread.said):
            return Place(thread.session)
        asked_before = thread.ids[count] if thread.said[count] == new else None
        return Place(thread.session, asked_before) if asked_before else Place(self._branch(thread, count))

    def branch_before(self, message_id: int) -> str:
        """Return a conversation with everything before a message of the person, for another answer to it: a new thread
        if that was the first message."""
        assert self._threads is not None
        thread = next(thread for thread in self._threads.values() if message_id in thread.ids)
        count = thread.ids.index(message_id)
        return self._branch(thread, count) if count else self._new_name()

    def add(self, session: str, text: str, message_id: int) -> None:
        """Record that a message was accepted there."""
        if self._threads is not None:
            _add(self._threads, session, text, message_id)

    def _find(self, before: Sequence[bytes]) -> tuple[_Thread, int] | None:
        """Return the newest thread with these messages, and the position in it. Clients that omit the beginning of long
        conversations, and incompletely read threads, are compared by what both have."""
        assert self._threads is not None
        for thread in reversed(self._threads.values()):
            for count in range(len(thread.said), 0, -1):
                both = min(count, len(before))
                if thread.said[count - both : count] == list(before[-both:]):
                    return thread, count
        return None

    def _branch(self, thread: _Thread, count: int) -> str:
        """Return a branch after so many messages of the person, and the answer."""
        assert self._threads is not None
        until = self._reader.history.read(thread.ids[count], OWNER_SCOPE, neighbours=1)
        earlier = [record.id for record in until if record.id < thread.ids[count]]
        try:
            session = self._reader.conversation.branch_session(thread.session, earlier[-1], self._reader.clock()).key
        except (IndexError, UsageError):
            # The messages were compacted or undone since: the conversation continues as it is.
            return thread.session
        self._threads[session] = _Thread(session, thread.said[:count], thread.ids[:count])
        return session

    def _new_name(self) -> str:
        """Return a name made of the time: text in it could not be erased."""
        assert self._threads is not None
        time = f"{self._reader.clock():%Y%m%d-%H%M%S}"
        names = (f"{_CLIENT_THREAD}{time}{extra}" for extra in ("", *(f"-{number}" for number in range(2, 10**6))))
        return next(name for name in names if name not in self._threads)


def _read_threads(records: Sequence[LogRecord]) -> dict[str, _Thread]:
    threads: dict[str, _Thread] = {}
    for record in records:
        if record.role == "user" and record.kind == "message":
            _add(threads, record.session, record.content, record.id)
    return threads


def _add(threads: dict[str, _Thread], session: str, text: str, message_id: int) -> None:
    """Add a message of the person; the most recently used thread is last."""
    if session.startswith((_CLIENT_THREAD, BRANCH_PREFIX)):
        thread = threads[session] = threads.pop(session, _Thread(session))
        thread.said.append(_hash(text))
        thread.ids.append(message_id)


def _is_whole(thread: _Thread) -> bool:
    """Return whether its first message is the first of the conversation; a branch has others before."""
    return thread.session.startswith(_CLIENT_THREAD)


def _hash(text: str) -> bytes:
    return hashlib.sha256(" ".join(text.split()).encode("utf-8", "surrogatepass")).digest()
