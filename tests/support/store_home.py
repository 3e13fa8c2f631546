"""The stores of one home (a data folder) for tests: open, closed and opened again over one directory, with plain
stand-ins for what the composition root injects.

`SimulatedCrash` is the end of the process; `CrashingStore` and `CrashingMemories` stand before a store and raise it at
a chosen call, before or after the work is done.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from assistant.core.checkpoints import RequestKind
from assistant.core.memory_api import Memories
from assistant.core.messages import Message, ToolCall
from assistant.core.records import (
    InboxItem,
    InboxReceipt,
    IncomingMessage,
    IntegrityReport,
    LogLocation,
    OutgoingMessage,
    Turn,
)
from assistant.store.database import Database
from assistant.store.log.writer import MessageLog
from assistant.store.schema.migrations import script_migrations
from assistant.store.script.conversation import StoredConversation
from assistant.store.script.outbox import StoredOutbox
from assistant.store.script.turns import ClassifyRequest
from assistant.store.verify.verifier import Verifier

NOW = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
MAX_TOOL_CHARACTERS = 1000


def cut_tool_output(message: Message, place: LogLocation) -> Message:
    """Tool output over a thousand characters is cut, with its place."""
    if message.role != "tool" or len(message.content) <= MAX_TOOL_CHARACTERS:
        return message
    cut = f"{message.content[:MAX_TOOL_CHARACTERS]}... [{place.path} {place.span.start}-{place.span.end}]"
    return message.with_content(cut, truncated=True)


def never_a_task(text: str) -> RequestKind:
    return RequestKind.ANSWER


def count_tokens(message: Message) -> int:
    return len(message.content) // 4 + 3


@contextmanager
def memory_backed_directory() -> Iterator[Path]:
    """A directory in memory where there is one, for tests of many small writes that ask nothing of the medium."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as directory:
        yield Path(directory)


@dataclass
class StoreHome:
    """The stores of one home. `opened()` again after `close()` is a restart."""

    path: Path
    externals: itertools.count[int] = field(default_factory=itertools.count)
    asked: ClassifyRequest = never_a_task
    undo_kept: int = 10

    def open(self) -> StoreHome:
        self.db = Database.open(self.path / "script.db", script_migrations, NOW)
        self.log = MessageLog(self.path)
        self.conversation = StoredConversation(
            self.db,
            self.log,
            to_view_message=cut_tool_output,
            count_tokens=count_tokens,
            classify_request=self.asked,
            undo_kept=self.undo_kept,
        )
        self.outbox = StoredOutbox(self.db)
        return self

    def close(self) -> None:
        self.db.close()
        self.log.close()

    def restart(self) -> StoreHome:
        self.close()
        return self.open()

    def verify(self) -> IntegrityReport:
        return Verifier(self.path, self.db, self.log, self.conversation).verify()

    def repair(self) -> IntegrityReport:
        return Verifier(self.path, self.db, self.log, self.conversation).repair(NOW)

    # ------------------------------------------------------------------------------------------------------- acting

    def accept(self, text: str, session: str = "main", *, scope: str = "owner") -> InboxReceipt:
        external = f"e{next(self.externals)}"
        return self.conversation.accept(
            IncomingMessage("terminal", external, session, scope, "me", "owner", text, target="tty"), NOW
        )

    def inbox_item(self, text: str, session: str = "main") -> InboxItem:
        found = self.conversation.inbox_item(self.accept(text, session).inbox_id)
        assert found is not None
        return found

    def begin_turn(self, text: str, session: str = "main") -> Turn:
        return self.conversation.begin_turn(self.inbox_item(text, session), "it is ten o'clock", NOW)

    def say(self, text: str, answer: str, session: str = "main") -> Turn:
        """One whole turn."""
        turn = self.begin_turn(text, session)
        self.conversation.finish_turn(turn, "answered", Message("assistant", answer), [reply_item(turn, answer)], NOW)
        return turn

    def chat(self, turns: int, session: str = "main") -> None:
        for number in range(turns):
            self.say(f"question {number}", f"answer {number}", session)

    # ------------------------------------------------------------------------------------------------------ looking

    def view_contents(self, session: str = "main") -> list[str]:
        return [message.content for message in self.conversation.load_view(session).messages]

    def add_message(self, session: str = "main") -> list[str]:
        """The contents of all records in the log."""
        return [record.content for record in self.log.scan(session)]

    def log_bytes(self, session: str = "main") -> bytes:
        return self.log.path(session).read_bytes()


def reply_item(turn: Turn, body: str) -> OutgoingMessage:
    return OutgoingMessage(
        f"reply:{turn.id}", turn.session, turn.scope, "terminal", "tty", body, inbox_id=turn.items[0].id
    )


def blank_words(home: StoreHome, message_id: int, words: str) -> None:
    """What forgetting does to a line: words and salt overwritten, nothing moved."""
    lines = home.log_bytes().splitlines(True)
    at = next(n for n, line in enumerate(lines) if f'"id":{message_id},'.encode() in line)
    line = lines[at].replace(words.encode(), b" " * len(words.encode()))
    salt = line.index(b'"salt":"') + 8
    lines[at] = line[:salt] + b" " * 32 + line[salt + 32 :]
    home.log.path("main").write_bytes(b"".join(lines))


def tool_round(call: str = "c1", result: str = "done") -> Sequence[Message]:
    return (
        Message("assistant", "", tool_calls=(ToolCall(call, "look", {"where": "here"}),)),
        Message("tool", result, tool_call_id=call, name="look"),
    )


class SimulatedCrash(BaseException):
    """The process is gone."""


class CrashingStore:
    """Stands before a store and dies at a call of one of its methods, before or after its work is done."""

    def __init__(
        self, real: Any, method: str, *, call: int = 1, after: bool = False, error: BaseException | None = None
    ) -> None:
        assert hasattr(real, method), f"{type(real).__name__} has no {method}"
        self._real, self._method, self._left = real, method, call
        self._after, self._error = after, error or SimulatedCrash()

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._real, name)
        return partial(self._called, real) if name == self._method else real

    def _called(self, real: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        self._left -= 1
        if self._left > 0:
            return real(*arguments, **named)
        if self._after:
            real(*arguments, **named)
        raise self._error


class CrashingMemories:
    """Stands before semantic memory: a method dies at its first call, before or after its work."""

    def __init__(self, real: Memories, method: str, *, after: bool = False) -> None:
        assert hasattr(real, method), f"{type(real).__name__} has no {method}"
        self._real, self._method, self._after = real, method, after

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._real, name)
        return partial(self._die, real) if name == self._method else real

    async def _die(self, real: Any, *arguments: Any, **named: Any) -> None:
        if self._after:
            await real(*arguments, **named)
        raise SimulatedCrash
