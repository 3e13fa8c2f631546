"""What a reset works with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any

from assistant.core.archive_ports import Archive
from assistant.core.ports import Conversation, Todos
from assistant.core.reset_ports import Generations, Resets
from assistant.core.sleep_ports import Delegations, Requests


@dataclass(frozen=True, slots=True)
class Stores:
    """Where sessions, what was open in them and their archives are kept."""

    conversation: Conversation
    generations: Generations
    resets: Resets
    archive: Archive
    requests: Requests
    todos: Todos
    delegations: Delegations


@dataclass(frozen=True, slots=True)
class Around:
    """The running house, as far as a reset needs it.

    `extract` reads a session for the journal, to its end or until a time, and tells how it went; `read_on` has what is
    left read soon, beside everything else. While `holding` a session no turn of it begins, and while `awake` nobody
    sleeps (each raises `UsageError` where that cannot be). `pressure` is how full a context is. `tell`
    tells the person with their next turn, `show` whoever looks on now."""

    extract: Callable[[str, datetime, datetime], Awaitable[Mapping[str, Any]]]
    read_on: Callable[[str], None]
    holding: Callable[[str], AbstractContextManager[None]]
    awake: Callable[[], AbstractAsyncContextManager[None]]
    is_compacting: Callable[[str], bool]
    night_is_due: Callable[[datetime], bool]
    pressure: Callable[[str], Awaitable[float]]
    count: Callable[[str], int]
    tell: Callable[[str, str], None]
    show: Callable[[str, str], None]
    clock: Callable[[], datetime]
    zone: tzinfo
