"""How often somebody may show a wrong token: ten times a minute, then they wait, whatever they show."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable

_MOST_WRONG = 10
_WITHIN_SECONDS = 60.0
# More callers than this are not kept apart: the one heard of longest ago is let off.
_MOST_CALLERS = 1024


class Attempts:
    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` gives seconds that never go back."""
        self._clock = clock
        self._wrong: OrderedDict[str, list[float]] = OrderedDict()

    def wait(self, who: str) -> int:
        """Seconds until this caller may try again; 0 for now."""
        recent = self._recent(who)
        if len(recent) < _MOST_WRONG:
            return 0
        return max(1, math.ceil(recent[0] + _WITHIN_SECONDS - self._clock()))

    def wrong(self, who: str) -> None:
        self._wrong[who] = [*self._recent(who), self._clock()][-_MOST_WRONG:]
        self._wrong.move_to_end(who)
        while len(self._wrong) > _MOST_CALLERS:
            self._wrong.popitem(last=False)

    def _recent(self, who: str) -> list[float]:
        since = self._clock() - _WITHIN_SECONDS
        recent = [at for at in self._wrong.get(who, ()) if at > since]
        if not recent:
            self._wrong.pop(who, None)
        return recent
