"""A conversation of a file as a home: every turn a message of the master log, said at its time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from assistant.core.messages import Message
from assistant.core.sessions import MAIN_SESSION, OWNER_SCOPE
from assistant.store.search.history import StoredHistory
from assistant.wire.search import open_history
from tests.bench.homes import opened
from tests.recall_bench.dataset import DatasetConversation, DatasetTurn
from tests.support.imports import import_messages

SessionOf = Callable[[DatasetTurn], str]


def one_session(said: DatasetTurn) -> str:
    """As in a home in use: all of it in one session, with days between."""
    return MAIN_SESSION


def session_each(said: DatasetTurn) -> str:
    """A session of the home for each of the conversation, so that none has the end of another beside it."""
    return f"talk:{said.session}"


@dataclass(frozen=True, slots=True)
class DatasetHome:
    """`turns` maps message ids to turns; `indexed` are the seconds that each message took to index."""

    history: StoredHistory
    turns: dict[int, DatasetTurn]
    indexed: list[float]


@contextmanager
def make_dataset_home(
    talk: DatasetConversation, path: Path, session_of: SessionOf = one_session
) -> Iterator[DatasetHome]:
    """A home in `path` in which the conversation was held, message by message, each indexed once it was said; closed
    and opened again, as by a restart."""
    stores = opened(path, talk.said[0].at)
    history, finder = open_history(path)
    turns: dict[int, DatasetTurn] = {}
    indexed: list[float] = []
    try:
        for said in talk.said:
            message = Message(said.role, said.text, ts=said.at, name=said.speaker or None)
            (kept,) = import_messages(stores.conversation, session_of(said), OWNER_SCOPE, [message], said.at)
            turns[kept.id or 0] = said
            began = time.perf_counter()
            finder.index_next_batch()
            indexed.append(time.perf_counter() - began)
    finally:
        history.close()
        stores.close()
    history, _ = open_history(path)
    try:
        yield DatasetHome(history, turns, indexed)
    finally:
        history.close()
