"""Which conversation a request of an OpenAI-compatible client belongs to.

Such a client names no conversation: it sends all that was said in it, each time. What the person said, in its order,
tells one from another; what they said last is the new message. Each conversation of a client is a thread here. Where
the person changed an earlier message, or asks for another answer, the thread continues in a branch, so that what was
said first stays.

The words that are compared are those of the message log, read once and then kept as hashes in memory: nothing of them
is stored anywhere else, so what is forgotten is found in no thread.
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
# Of what was said before this program began to run, the newest so many messages are read.
_RECORDS_READ = 1000


@dataclass(frozen=True, slots=True)
class Place:
    """Where a message belongs. `asked_before`: the id of the message with which this was asked already."""

    session: str
    asked_before: int | None = None


@dataclass(slots=True)
class _Thread:
    """What the person said in one conversation: hashes of their texts and the ids of their messages."""

    session: str
    said: list[bytes] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)


class ClientThreads:
    """The threads of clients, over the stores of one home."""

    def __init__(self, reader: OwnerReadApi) -> None:
        self._reader = reader
        self._threads: dict[str, _Thread] | None = None

    async def find_place(self, texts: Sequence[str]) -> Place:
        """Where the last of what the person said belongs, with what they said before it. Makes a branch where the
        conversation went on differently. Raises `StoreError`."""
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
        """A conversation with everything that was said before a message of the person's: for another answer to it. A
        new thread, where that was the first."""
        assert self._threads is not None
        thread = next(thread for thread in self._threads.values() if message_id in thread.ids)
        count = thread.ids.index(message_id)
        return self._branch(thread, count) if count else self._new_name()

    def add(self, session: str, text: str, message_id: int) -> None:
        """A message was accepted there."""
        if self._threads is not None:
            _add(self._threads, session, text, message_id)

    def _find(self, before: Sequence[bytes]) -> tuple[_Thread, int] | None:
        """The newest thread in which this was said, with how much of it had been said then. Clients that leave out the
        beginning of long conversations, and threads of which not all was read, are compared by what both have."""
        assert self._threads is not None
        for thread in reversed(self._threads.values()):
            for count in range(len(thread.said), 0, -1):
                both = min(count, len(before))
                if thread.said[count - both : count] == list(before[-both:]):
                    return thread, count
        return None

    def _branch(self, thread: _Thread, count: int) -> str:
        """A branch from where the person had said so much, with the answer to that."""
        assert self._threads is not None
        until = self._reader.history.read(thread.ids[count], OWNER_SCOPE, neighbours=1)
        earlier = [record.id for record in until if record.id < thread.ids[count]]
        try:
            session = self._reader.conversation.branch_session(thread.session, earlier[-1], self._reader.clock()).key
        except (IndexError, UsageError):
            # What was said then was compacted or undone since: the conversation continues as it is.
            return thread.session
        self._threads[session] = _Thread(session, thread.said[:count], thread.ids[:count])
        return session

    def _new_name(self) -> str:
        """The time, for a name: words in it could not be forgotten."""
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
    """What the person said, where clients talk; the thread that was spoken in last is the last."""
    if session.startswith((_CLIENT_THREAD, BRANCH_PREFIX)):
        thread = threads[session] = threads.pop(session, _Thread(session))
        thread.said.append(_hash(text))
        thread.ids.append(message_id)


def _is_whole(thread: _Thread) -> bool:
    """Whether its first message is the first that was said in it; a branch has others before."""
    return thread.session.startswith(_CLIENT_THREAD)


def _hash(text: str) -> bytes:
    return hashlib.sha256(" ".join(text.split()).encode("utf-8", "surrogatepass")).digest()
