"""What is remembered and bears on a new message: memories and journal entries, brought to the turn unasked.

What always holds:
- It is text for the volatile block and for nothing else, so that nothing recalled is learnt again as if it had been
  said again.
- It is of the scope alone (I10), quoted as data, dated, each with the reference by which it can be looked up, put right
  or forgotten.
- What the conversation or the standing memory shows anyhow is left out, as is whatever has too little to do with the
  message (`Recalled.good`).
- A question about a time ("last spring", "in March") is answered from that time where anything is known of it; one
  about nothing but a time ("what did I do yesterday?") by what was said then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, tzinfo

from assistant.context.asking import asked, asks
from assistant.context.periods import Period, period_of
from assistant.context.quote import RECORD, quoted
from assistant.core.memories import Memory, MemoryHit
from assistant.core.memory_api import MemorySearchPort
from assistant.core.records import ContextView
from assistant.core.text import STOP_WORDS, lazy_regex
from assistant.core.text import distinct_words as words_of
from assistant.core.tool_results import quote_text as string
from assistant.runtime.recollection import shown_whole

MARK = "Noted earlier; may bear on this."
_HEAD = f"{MARK} Data, may be out of date; search_memory finds more."

_LOOKED_AT = 12
_MOST = 6
_LONGEST = 400
# Of a question about what was said or done at a time, these ask for nothing in particular.
_GENERAL = """
talk talked talking say said saying tell told discuss discussed mention mentioned do did done doing happen happened
happening go went going know remember note noted learn learned learnt write wrote thing things something anything
everything new chat conversation topic topics speak spoke spoken summarise summarize list show remind find decide
decided plan planned day days time morning afternoon evening night week weekend month year
"""
_ANYTHING = frozenset(_GENERAL.split())
_SPACE = lazy_regex(r"\s+")


class Remembering:
    """Reads and holds nothing."""

    def __init__(
        self, search: MemorySearchPort, count: Callable[[str], int], zone: tzinfo, room: Callable[[], int]
    ) -> None:
        """`count` gives the tokens of a text, `room` how many may be taken now."""
        self._search = search
        self._count = count
        self._zone = zone
        self._room = room

    def recall(self, message: str, scope: str, view: ContextView, standing: str, now: datetime) -> str:
        """A block for the volatile block, best first; "" where nothing bears on the message. `standing` is what stands
        in the prompt of memory anyhow. Raises `StoreError`."""
        words, room = asked(message), self._room()
        if room <= 0 or not words:
            return ""
        shown, flat = shown_whole(view), _flat(standing)
        lines: list[str] = []
        for one in self._found(words, scope, now):
            known = one.sources and shown.issuperset(one.sources)
            if known or _flat(one.memory.text) in flat:
                continue
            if len(lines) == _MOST or self._count(_block([*lines, self._line(one.memory)])) > room:
                break
            lines.append(self._line(one.memory))
        return _block(lines) if lines else ""

    def _found(self, words: str, scope: str, now: datetime) -> Sequence[MemoryHit]:
        period = period_of(words, now, self._zone) if asks(words) else None
        if period is not None:
            rest = words.replace(period.words, " ")
            if not _asks_for_something(rest):
                return self._search.said(scope, period.after, period.before, limit=_MOST)
            found = self._good(rest, scope, period)
            if found:
                return found
        return self._good(words, scope, None)

    def _good(self, words: str, scope: str, period: Period | None) -> list[MemoryHit]:
        after, before = (period.after, period.before) if period is not None else (None, None)
        found = self._search.search(words, scope, limit=_LOOKED_AT, after=after, before=before)
        return [one for one in found if one.good]

    def _line(self, memory: Memory) -> str:
        text = _SPACE.sub(" ", memory.text).strip()
        text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
        until = f", until {self._day(memory.until)}" if memory.until is not None else ""
        return f"- [{memory.reference}] {self._day(memory.said_at)}{until}: {string(text)}"

    def _day(self, at: datetime) -> str:
        return at.astimezone(self._zone).date().isoformat()


def _block(lines: Sequence[str]) -> str:
    return quoted(RECORD, "\n".join([_HEAD, *lines]))


def _asks_for_something(words: str) -> bool:
    return any(word not in STOP_WORDS and word not in _ANYTHING for word in words_of(words))


def _flat(text: str) -> str:
    return _SPACE.sub(" ", text).strip().rstrip(".").casefold()
