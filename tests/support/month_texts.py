"""All that is said in the written months (`tests/month`), one text after the other."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parents[1] / "month"


def month_texts() -> list[str]:
    return [
        text
        for name in ("month", "second")
        for text in _strings(tomllib.loads((_FOLDER / f"{name}.toml").read_text(encoding="utf-8")))
    ]


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner)
