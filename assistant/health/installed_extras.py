"""Which optional parts of the program are installed, as its own metadata names them."""

from __future__ import annotations

import importlib.metadata
import re

_PROGRAM = "nocturne-assistant"


def list_installed_extras() -> list[str]:
    """Return the extras of which every package is there, whoever brought it; empty where the program is not
    installed."""
    needed: dict[str, list[str]] = {}
    try:
        requirements = importlib.metadata.requires(_PROGRAM) or []
    except importlib.metadata.PackageNotFoundError:
        return []
    for requirement in requirements:
        name, _, condition = requirement.partition(";")
        _, _, extra = condition.partition("extra ==")
        if extra and (package := re.match(r"[\w.-]+", name)):
            needed.setdefault(extra.strip(" '\""), []).append(package[0])
    return [extra for extra, packages in needed.items() if all(map(_is_there, packages))]


def _is_there(package: str) -> bool:
    try:
        importlib.metadata.distribution(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True
