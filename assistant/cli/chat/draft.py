"""An answer that is being written: the screen shows a moving tail of it.

What no longer fits is printed for good, in whole Markdown blocks, because a block that is closed does not change any
more. A short answer is therefore still free to be withdrawn without a trace.
"""

from __future__ import annotations

from collections.abc import Callable

from markdown_it import MarkdownIt

_PARSER = MarkdownIt("commonmark").enable("table")


class StreamingDraft:
    """`printed` characters of `text` stand on the screen for good."""

    def __init__(self) -> None:
        self.text = ""
        self.printed = 0

    def feed(self, text: str) -> None:
        self.text += text if self.text else text.lstrip()

    @property
    def tail(self) -> str:
        """Return what is not printed yet."""
        return self.text[self.printed :]

    def take_closed_blocks(self, fits: Callable[[str], bool]) -> str:
        """The closed blocks to print now so that the tail fits; empty when it does, or when nothing is closed."""
        tail = self.tail
        if not tail or fits(tail):
            return ""
        closed = tail[: _start_of_last_block(tail)]
        self.printed += len(closed)
        return closed

    def unprinted_part(self, body: str) -> str | None:
        """What of the final `body` is not on the screen yet; None when the screen shows something else."""
        return body[self.printed :] if body.startswith(self.text[: self.printed]) else None

    def clear(self) -> bool:
        """Forget all of it; True when some of it stands on the screen and has to be taken back in words."""
        stood = self.printed > 0
        self.text, self.printed = "", 0
        return stood


def _start_of_last_block(text: str) -> int:
    """Where the last top-level Markdown block of `text` begins, in characters."""
    starts = [token.map[0] for token in _PARSER.parse(text) if token.level == 0 and token.map and token.nesting >= 0]
    if not starts:
        return 0
    return sum(len(line) for line in text.split("\n")[: starts[-1]]) + starts[-1]
