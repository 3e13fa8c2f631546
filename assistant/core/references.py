"""How a person or a model names what is remembered: by the beginning of a memory's id, or "entry 12". Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from assistant.core.errors import UsageError
from assistant.core.expressions import expression

LEAST_DIGITS = 4
_ENTRY = expression(r"(?:entry[ :#]*|e)(\d{1,18})", re.IGNORECASE)
_MEMORY = expression(rf"(?:memory[ :#]*)?([0-9a-f][0-9a-f-]{{{LEAST_DIGITS - 1},35}})", re.IGNORECASE)
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Reference:
    """What a text may name: the memories whose ids have this `beginning` ("" for none), the journal entry of this
    number."""

    beginning: str = ""
    entry: int | None = None


def reference(text: str) -> Reference:
    """What a text names; brackets around it may be left. Raises `UsageError` for one that names nothing."""
    bare = text.strip().strip("[]").strip()
    memory, entry = _MEMORY.fullmatch(bare), _ENTRY.fullmatch(bare)
    if memory is None and entry is None:
        raise UsageError(
            f"{_short(bare)} names no memory: give {LEAST_DIGITS} or more of the first digits of its id, as in "
            "1a2b3c4d, or `entry 12`. Nothing was changed."
        )
    return Reference(memory[1].lower() if memory else "", int(entry[1]) if entry else None)


def one_of(beginning: str, ids: Iterable[str]) -> str:
    """The only one of the ids that begins so; "" where none does. Raises `UsageError` where several do, with them."""
    found = sorted(one for one in ids if one.startswith(beginning))
    if len(found) > 1:
        more = ", ..." if len(found) > _SHOWN else ""
        raise UsageError(
            f"{len(found)} memories begin with {beginning}: {', '.join(map(_told, found[:_SHOWN]))}{more}. Give more "
            "digits. Nothing was changed."
        )
    return found[0] if found else ""


def _told(memory_id: str) -> str:
    return memory_id[:13]


def _short(text: str, most: int = 40) -> str:
    line = " ".join(text.split())
    return repr(line if len(line) <= most else f"{line[: most - 1]}…")
