"""Long texts that the thread of the loop is given: by which functions of the project, and what of them it parses."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from markdown_it import MarkdownIt

LONG = 50_000
_ROOT = Path(__file__).parents[2]


class LongTexts:
    """Functions of the project that were given a long text in this thread, and how often."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def note(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        path = Path(code.co_filename)
        if event != "call" or not path.is_relative_to(_ROOT) or path.is_relative_to(_ROOT / "tests"):
            return
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        if ".venv" not in path.parts and any(self._is_long(frame.f_locals.get(name)) for name in names):
            self.seen[f"{path.relative_to(_ROOT)} {code.co_qualname}"] += 1

    def _is_long(self, value: object) -> bool:
        return isinstance(value, str | bytes) and len(value) >= LONG


@contextmanager
def long_texts_on_the_loop() -> Iterator[LongTexts]:
    texts = LongTexts()
    sys.setprofile(texts.note)
    try:
        yield texts
    finally:
        sys.setprofile(None)


@contextmanager
def texts_parsed_on_the_loop(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The lengths of Markdown that this thread parses."""
    lengths: list[int] = []
    parse, thread = MarkdownIt.parse, threading.get_ident()

    def noted(self: MarkdownIt, text: str, env: Any = None) -> Any:
        if threading.get_ident() == thread:
            lengths.append(len(text))
        return parse(self, text, env)

    monkeypatch.setattr(MarkdownIt, "parse", noted)
    yield lengths
