"""Texts that cost what reads them the most: each kind repeats something that programs trip over."""

from __future__ import annotations

import base64
import random
from collections.abc import Mapping

_CHANCE = random.Random(16)
_BYTES = base64.b64encode(_CHANCE.randbytes(60_000)).decode()

_PIECES: Mapping[str, str] = {
    "blanks": " ",
    "newlines": "\n",
    "brackets": "[(<{",
    "backticks": "``` ` ",
    "digits": "4111 1111-1111.",
    "emoji": "👩‍👩‍👧‍👦🏳️‍🌈",
    "combining marks": "é" + "̴̵̶" * 20,
    "base64": _BYTES,
    "Markdown tables": "| a | *b* | `c` |\n|---|---|---|\n",
    "links": "[here](https://example.org/a_(b)?c=d&e=f) <https://x.example> ",
    "HTML entities": "&amp;&#x41;&lt;b&gt;&nbsp;<b><!--",
    "one giant word": "Donaudampfschiff",
    "sentences": "My password is not hunter2, and on Friday at 5 I told Ann that the heron is grey. ",
}
KINDS = tuple(_PIECES)


def hostile_text(kind: str, size: int) -> str:
    """So many bytes of a kind, as UTF-8, between two words."""
    piece = _PIECES[kind]
    return "a" + (piece * (size // len(piece.encode()) + 1)).encode()[: size - 2].decode("utf-8", "ignore") + "b"
