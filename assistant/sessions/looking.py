"""Looking at sessions and their generations, as stored: for chats and for command lines."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from assistant.core.archive_ports import Archive
from assistant.core.errors import UsageError
from assistant.core.generations import Generation
from assistant.core.ports import Conversation
from assistant.core.records import SessionInfo
from assistant.core.reset_ports import Generations, Resets
from assistant.core.sessions import session_named
from assistant.sessions.listing import Listed
from assistant.sessions.policies import Policies


class Looking:
    """Reads alone, whether a daemon runs or not."""

    def __init__(
        self, conversation: Conversation, generations: Generations, resets: Resets, archive: Archive, policies: Policies
    ) -> None:
        self._conversation = conversation
        self.generations = generations
        self._resets = resets
        self._archive = archive
        self.policies = policies

    def listed(self, most: int) -> Iterator[Listed]:
        """The sessions, the latest spoken in first; of each at most so many generations, newest first."""
        for info in self._conversation.sessions():
            yield from islice(self._of(info), most)

    def listed_of(self, key: str) -> Iterator[Listed]:
        """The generations of one session, newest first."""
        for info in self._conversation.sessions():
            if info.key == key:
                yield from self._of(info)

    def one(self, session: str, number: int | None) -> Listed:
        """A generation, the current one unless named. Raises `UsageError`."""
        key = self.known(session)
        found = next((one for one in self.listed_of(key) if number in (None, one.generation.number)), None)
        if found is None:
            raise UsageError(f"{key} has no conversation number {number}. `/sessions` lists what there is.")
        return found

    def _of(self, info: SessionInfo) -> Iterator[Listed]:
        waiting = next((one for one in self._resets.unfinished() if one.session == info.key), None)
        for known in reversed(self.generations.all(info.key)):
            archived = self._archive.find(info.key, known.number)
            if known.number == info.generation:
                yield Listed(known, info, archived, waiting)
            else:
                yield Listed(known, None, archived)

    def known(self, name: str) -> str:
        """The key of a session that there is, as a person names it. Raises `UsageError`."""
        key = session_named(name)
        keys = [info.key for info in self._conversation.sessions()]
        if key not in keys:
            raise UsageError(f"There is no session {name!r}. Sessions: {', '.join(sorted(keys)) or 'none yet'}.")
        return key

    def note(self, known: Generation) -> str:
        """The words that handed over to a generation; "" where it is the first, or they were forgotten."""
        first = next(iter(self.generations.records(known.session, known.number)), None)
        return first.content if first is not None and first.kind in ("handover", "resume") else ""
