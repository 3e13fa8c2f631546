"""Regular expressions that are compiled when they are first asked: a start needs few of the hundreds that the house
knows, and compiling them all would be a third of it."""

from __future__ import annotations

import re
from typing import Any, cast


class _Uncompiled:
    """Stands for the `re.Pattern`; what was asked once is found at once from then on."""

    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags
        self._compiled: re.Pattern[str] | None = None

    def __getattr__(self, name: str) -> Any:
        if self._compiled is None:
            self._compiled = re.compile(self.pattern, self._flags)
        found = getattr(self._compiled, name)
        setattr(self, name, found)
        return found


def expression(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """As `re.compile`, for its methods: the functions of `re` do not take it. A fault in it shows at its first use."""
    return cast(re.Pattern[str], _Uncompiled(pattern, flags))
