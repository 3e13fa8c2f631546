"""Edits the text of a config.toml key by key, preserving comments, order and everything else. Pure.

Only the one key changes, which is verified by parsing both texts.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AbstractTable

from assistant.core.dataclass import dataclass
from assistant.core.errors import UsageError

CONFIG_HEADER = """\
# Your settings. `assistant config show` lists every setting with what it is now; what is not set here is
# at its default.
"""
_MARK = "\ufeff"
_BY_HAND = (
    "is written in a way that cannot be changed by command. Nothing was changed; `assistant config edit` opens it."
)


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A key ("context.target") with its old and new value; None if it is not in the text."""

    key: str
    old: Any
    new: Any


def set_key(text: str, key: str, value: Any) -> str:
    """Return `text` with `key` set to a TOML value, a tuple as a list. Raises `UsageError` for invalid TOML, or if the
    key is written in a way that cannot be changed."""
    section, _, name = key.partition(".")
    document = _parsed(text)
    try:
        str(value).encode()
        table = document.get(section)
        if table is None:
            table = document[section] = tomlkit.table()
        table[name] = list(value) if isinstance(value, tuple) else value
    except UnicodeEncodeError:
        raise UsageError(f"What `{key}` is to be is not valid UTF-8 text. Nothing was changed.") from None
    except (TOMLKitError, TypeError, AttributeError) as error:
        raise UsageError(f"`{key}` {_BY_HAND}") from error
    return check_only_key_changed(text, _written(text, document), key, value)


def remove_key(text: str, key: str) -> str:
    """Return `text` without `key`; unchanged if it is not there. Raises `UsageError` like `set_key`."""
    section, _, name = key.partition(".")
    document = _parsed(text)
    if key not in flatten_keys(_meaning(text)):
        return text
    table = document.get(section)
    if not isinstance(table, AbstractTable):
        raise UsageError(f"`{key}` {_BY_HAND}")
    try:
        table.remove(name)
    except TOMLKitError as error:
        raise UsageError(f"`{key}` {_BY_HAND}") from error
    return check_only_key_changed(text, _written(text, document), key, None)


def check_only_key_changed(before: str, after: str, key: str, value: Any) -> str:
    """Return `after` if it only differs from `before` in `key`, which must be `value`, or missing for None. Raises
    `UsageError`, so that a bug cannot damage the file."""
    wanted = flatten_keys(_meaning(before))
    wanted.pop(key, None)
    wanted |= {} if value is None else {key: list(value) if isinstance(value, tuple) else value}
    if _as_text(flatten_keys(_meaning(after))) != _as_text(wanted):
        raise UsageError(f"`{key}` {_BY_HAND}")
    return after


def _as_text(values: Mapping[str, Any]) -> dict[str, str]:
    """Format for comparison: nan is not equal to itself."""
    return {name: repr(value) for name, value in values.items()}


def diff_keys(before: str, after: str) -> list[SettingChange]:
    """Return the keys that differ, in the order of `after`. Invalid TOML has none."""
    old, new = flatten_keys(_meaning(before)), flatten_keys(_meaning(after))
    keys = dict.fromkeys([*new, *old])
    return [SettingChange(key, old.get(key), new.get(key)) for key in keys if old.get(key) != new.get(key)]


def flatten_keys(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values by dotted key; top-level values by their own name."""
    values_by_key: dict[str, Any] = {}
    for section, content in document.items():
        if isinstance(content, dict):
            values_by_key |= {f"{section}.{name}": value for name, value in content.items()}
        else:
            values_by_key[section] = content
    return values_by_key


def _parsed(text: str) -> tomlkit.TOMLDocument:
    try:
        return tomlkit.parse(text.removeprefix(_MARK))
    except (TOMLKitError, ValueError, RecursionError):
        raise UsageError(
            "config.toml is not valid TOML. Nothing was changed; `assistant config edit` opens it."
        ) from None


def _written(text: str, document: tomlkit.TOMLDocument) -> str:
    mark = _MARK if text.startswith(_MARK) else ""
    return mark + tomlkit.dumps(document)


def _meaning(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.removeprefix(_MARK))
    except (ValueError, RecursionError):
        return {}
