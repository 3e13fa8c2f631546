"""What the rules found in a message, kept until it has left the conversation: a summary that is made without a model,
while a person waits, then only puts together what is known.

A message is gone through once, in the background after the reply (`assistant/runtime/background_compaction.py`); what
was not gone through then is when it is asked for. Only functions of the text itself are kept, so that both are the
same.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Any, Generic, ParamSpec, TypeVar, cast

# Of all texts whose results are kept, each counted once for each function: some 5 MiB.
_MOST_CHARACTERS = 4_000_000
# What an entry takes beside what was found in its text, as characters of one.
_ENTRY_CHARACTERS = 40
# A text that takes more than this part of it all is gone through each time.
_SHARE_OF_A_TEXT = 4

P = ParamSpec("P")
R = TypeVar("R")


class MessageCache:
    """Results of functions by the text that they were called with, those that were not asked for longest leave first.
    Usable from several threads."""

    def __init__(self, most_characters: int = _MOST_CHARACTERS) -> None:
        self._most = most_characters
        self._results: OrderedDict[int, tuple[int, Any]] = OrderedDict()  # with the characters they count for
        self._characters = 0
        self._lock = Lock()

    @property
    def characters(self) -> int:
        """How many characters count as kept."""
        return self._characters

    def cached(self, function: Callable[P, R]) -> CachedFunction[P, R]:
        """Remember the results of a function of a text and of what else it is given. Results are shared: they must not
        be changed."""
        return CachedFunction(self, function)

    def find(self, key: int) -> tuple[int, Any] | None:
        """Return a result with the characters it counts for, None if it is not kept."""
        with self._lock:
            if (found := self._results.get(key)) is not None:
                self._results.move_to_end(key)
            return found

    def keep(self, key: int, text: str, result: Any) -> None:
        if len(text) > self._most // _SHARE_OF_A_TEXT:
            return
        characters = len(text) + _ENTRY_CHARACTERS
        with self._lock:
            if key not in self._results:
                self._characters += characters
            self._results[key] = characters, result
            while self._characters > self._most:
                _, (given_back, _) = self._results.popitem(last=False)
                self._characters -= given_back

    def clear(self) -> None:
        with self._lock:
            self._results.clear()
            self._characters = 0


class CachedFunction(Generic[P, R]):
    """A function whose results are kept. Texts are told apart by their hash, so that none is kept for this."""

    def __init__(self, cache: MessageCache, function: Callable[P, R]) -> None:
        self._cache = cache
        self._function = function
        self._name = f"{function.__module__}.{function.__qualname__}"

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> R:
        key = self._key(arguments, named)
        if (found := self._cache.find(key)) is not None:
            return cast(R, found[1])
        result = self._function(*arguments, **named)
        self._cache.keep(key, str(arguments[0]), result)
        return result

    def is_known(self, *arguments: P.args, **named: P.kwargs) -> bool:
        """Return whether the result is kept, so that a call takes no time."""
        return self._cache.find(self._key(arguments, named)) is not None

    def _key(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> int:
        return hash((self._name, arguments, *named.items()))


FOUND_IN_MESSAGES = MessageCache()
