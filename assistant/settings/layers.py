"""Reads the layers of the settings (files and environment), and describes their problems.

The problems of all layers are collected before anything is refused, each with its file or variable. What looks like a
secret is never repeated in a problem.
"""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from assistant.core.checked_tables import InvalidTable, Problem, TableField, fields_of
from assistant.core.dataclass import dataclass
from assistant.core.errors import UsageError
from assistant.core.plain_files import FileRefused, read_plain_text
from assistant.core.secret_text import SecretStr
from assistant.core.text import lazy_regex, limit_lines, pluralize, shorten, strip_control_characters
from assistant.settings.secrets import FoundSecret
from assistant.settings.sections import (
    SETTING_FIELDS,
    SettingsValues,
    describe_allowed,
    fields_of_entry,
    is_text_setting,
)
from assistant.settings.validators import UnknownName, check_zone_name

ENV_PREFIX = "ASSISTANT_"
NOT_SHOWN = "a value that is not shown"
_LONGEST_SHOWN = 80
_MAX_BYTES = 1 << 20
# Lines about what is unknown in one file, or about the entries of one list: who reads them sees what is wrong.
_MOST_UNKNOWN, _MOST_WITHIN = 10, 5


@dataclass(frozen=True, slots=True)
class SettingsLayer:
    """The settings of one file, variable or secret."""

    origin: str
    values: Mapping[str, Any] = field(default_factory=dict)  # by dotted key ("model.name"), known keys only
    problems: tuple[str, ...] = ()  # invalid lines


def read_file_layer(path: Path, origin: str, *, required: bool = False) -> SettingsLayer:
    """Read a TOML file of the data folder, or the shipped one. A missing file is an empty layer unless required."""
    try:
        text = read_plain_text(path, _MAX_BYTES).removeprefix("\ufeff")
    except FileRefused as error:
        if not required and isinstance(error.__cause__, FileNotFoundError):
            return SettingsLayer(origin)
        return SettingsLayer(origin, problems=(f"{origin} {error}.",))
    return parse_text_layer(text, origin)


def parse_text_layer(text: str, origin: str) -> SettingsLayer:
    """Return the layer of a TOML text."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        end = f"at line {text.count(chr(10)) + 1}, the end of the file"
        return SettingsLayer(
            origin, problems=(f"{origin} is not valid TOML: {error}.".replace("at end of document", end),)
        )
    except (ValueError, RecursionError):
        return SettingsLayer(origin, problems=(f"{origin} is nested too deeply, or has a number that is too long.",))
    return _known_settings(origin, document)


def secret_layers(found: Iterable[FoundSecret]) -> Iterator[SettingsLayer]:
    """Return one layer for each secret that is a setting."""
    for secret in found:
        if secret.name in SETTING_FIELDS:
            yield SettingsLayer(secret.origin, {secret.name: secret.value.get_secret_value()})


def environment_layers(environ: Mapping[str, str], *, reserved: Iterable[str]) -> Iterator[SettingsLayer]:
    """Return one layer for each variable that sets something: ASSISTANT_<SECTION>__<KEY>."""
    for name in sorted(environ):
        if name.startswith(ENV_PREFIX) and name not in reserved:
            section, _, key = name.removeprefix(ENV_PREFIX).lower().partition("__")
            yield _known_settings(
                name, {section: {key: parse_setting_text(f"{section}.{key}", environ[name])}} if key else {section: {}}
            )


def environment_variable(key: str) -> str:
    """Return the environment variable that sets a dotted key."""
    return ENV_PREFIX + key.upper().replace(".", "__")


def _known_settings(origin: str, document: Mapping[str, Any]) -> SettingsLayer:
    values: dict[str, Any] = {}
    problems: list[str] = []
    unknown: list[str] = []
    for section, content in document.items():
        if section in fields_of(SettingsValues) and not isinstance(content, dict):
            problems.append(f"{origin}: `{section}` is a section; its keys belong below a line [{section}].")
        elif section not in fields_of(SettingsValues) and not (isinstance(content, dict) and content):
            unknown.append(section)
        else:
            for key, value in content.items():
                dotted = f"{section}.{key}"
                if dotted in SETTING_FIELDS:
                    values[dotted] = value
                else:
                    unknown.append(dotted)
    problems += [_unknown(origin, name) for name in unknown[:_MOST_UNKNOWN]]
    if (more := len(unknown) - _MOST_UNKNOWN) > 0:
        problems.append(f"{origin}: {more:,} more are not settings.")
    return SettingsLayer(origin, values, tuple(problems))


def _show_name(name: object) -> str:
    """Return a key as it is shown in a line; what stands in a file may be anything."""
    return shorten(strip_control_characters(str(name)), _LONGEST_SHOWN)


def _unknown(origin: str, name: str) -> str:
    from_environment = origin.startswith(ENV_PREFIX)
    place = origin if from_environment else f"{origin}: `{_show_name(name)}`"
    nearest = _nearest(name, from_environment)
    if nearest:
        meant = " or ".join(environment_variable(key) if from_environment else f"`{key}`" for key in nearest)
        return f"{place} is not a setting; did you mean {meant}?"
    section = name.partition(".")[0]
    known = ", ".join(key.partition(".")[2] for key in SETTING_FIELDS if key.startswith(f"{section}."))
    return f"{place} is not a setting; known " + (
        f"in [{section}]: {known}." if known else f"sections: {', '.join(fields_of(SettingsValues))}."
    )


def _nearest(name: str, from_environment: bool) -> list[str]:
    """Return the known keys most likely meant: the same word in other sections, or a similar spelling."""
    if from_environment:
        spellings = {key.replace(".", "_"): key for key in SETTING_FIELDS}
        near = difflib.get_close_matches(name.replace(".", "_"), spellings, n=1, cutoff=0.75)
        return [spellings[spelling] for spelling in near]
    elsewhere = [key for key in SETTING_FIELDS if key.partition(".")[2] == name.rpartition(".")[2]]
    return elsewhere or difflib.get_close_matches(name, SETTING_FIELDS, n=1, cutoff=0.75)


def unknown_setting_error(key: str) -> UsageError:
    """Return the error for a key typed in a command, which names the settings most likely meant."""
    near = _nearest(key, from_environment=False) or difflib.get_close_matches(key, SETTING_FIELDS, n=1)
    meant = f"did you mean {' or '.join(f'`{it}`' for it in near)}?" if near else "`assistant config show` lists all."
    return UsageError(f"`{key}` is not a setting; {meant} Nothing was changed.")


def parse_setting_text(key: str, text: str) -> Any:
    """Parse the value of a variable, or of shell input: TOML unless the setting is text ("16000", "0.5",
    '["offline"]')."""
    spec = SETTING_FIELDS.get(key)
    if key == "home.timezone":
        return _zone_as_spelled(text)
    if spec is None or is_text_setting(spec):
        return text
    try:
        document = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return document["value"] if len(document) == 1 else text


def _zone_as_spelled(text: str) -> str:
    """Return a zone name in the database's spelling; unknown names are reported with all other problems."""
    try:
        return check_zone_name(text)
    except UnknownName:
        return text


def explain_invalid_settings(error: InvalidTable, origins: Mapping[str, str]) -> list[str]:
    """Return one line for each refused setting: where it is, the value, and what is allowed; for one that is a list or
    a table a few, about what is within it."""
    lines: dict[str, dict[str, None]] = {}
    for problem in error.problems:
        section, *within = problem.path
        key = ".".join(map(str, (section, *within[:1])))
        spec = SETTING_FIELDS.get(key)
        if spec is None and not within:
            line = f"{_section_origin(key, origins)}: [{key}] {problem.reason}."
        elif spec is None or key not in origins:
            line = f"default.toml: `{key}` has no value."
        elif len(within) > 1:
            line = f"{origins[key]}: {_explain_within(key, spec, within[1:], problem)}"
        else:
            found = NOT_SHOWN if spec.kind is SecretStr else format_setting_value(problem.value)
            meant = _meant(problem.reason)
            line = f"{origins[key]}: `{key}` is {found}; allowed: {describe_allowed(spec)}.{meant}"
        lines.setdefault(key, {}).setdefault(line)
    return [line for told in lines.values() for line in limit_lines(list(told), _MOST_WITHIN)]


def _section_origin(section: str, origins: Mapping[str, str]) -> str:
    """Return where something of a section was set last."""
    places = [origin for key, origin in origins.items() if key.startswith(f"{section}.") and origin != "default.toml"]
    return places[-1] if places else "default.toml"


def _explain_within(key: str, spec: TableField, within: Sequence[str | int], problem: Problem) -> str:
    """Return a sentence about an entry of a list or table, or about a key of that entry. No value of it is repeated:
    it may be a secret."""
    entry, *names = within
    fields = fields_of_entry(spec)
    is_list = isinstance(entry, int)
    place = f"entry {entry + 1} of `{key}`" if isinstance(entry, int) else f"`{key}.{_show_name(entry)}`"
    field = fields.get(str(names[0])) if names else None
    if problem.reason and not names:
        return f"{place} {problem.reason}."
    if problem.kind == "unknown" and names:
        return f"{place} has `{_show_name(names[0])}`, which is not a setting; known: {', '.join(fields)}."
    if field is None:
        return f"{place} is wrong; allowed: {describe_allowed(spec)}."
    if problem.kind == "missing":
        return f"{place} has no `{names[0]}`; allowed: {describe_allowed(field)}."
    whose = f"`{names[0]}` of {place}" if is_list else f"{place[:-1]}.{names[0]}`"
    return f"{whose} is wrong; allowed: {describe_allowed(field)}."


def _meant(error: object) -> str:
    near = " or ".join(f'"{name}"' for name in error.near) if isinstance(error, UnknownName) else ""
    return f" Did you mean {near}?" if near else ""


def format_setting_value(value: Any) -> str:
    """Format a value as TOML, with secrets masked, shortened if it is long; a list by whole entries."""
    if not isinstance(value, (list, tuple)):
        return shorten(mask_secrets(value), _LONGEST_SHOWN)
    shown: list[str] = []
    for entry in value:
        text = shorten(mask_secrets(entry), _LONGEST_SHOWN)
        if shown and len(", ".join([*shown, text])) > _LONGEST_SHOWN:
            return f"[{', '.join(shown)}, … {len(value) - len(shown)} more]"
        shown.append(text)
    return f"[{', '.join(shown)}]"


def mask_secrets(value: Any) -> str:
    """Format a value as TOML completely, with secrets masked."""
    if isinstance(value, SecretStr):
        return "(set, not shown)" if value.get_secret_value() else '""'
    return mask_secrets_in_text(_as_toml(value))


def mask_secrets_in_text(text: str) -> str:
    """Mask secrets in an address or another text."""
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


def _as_printable(letter: str) -> str:
    """Return a letter as TOML spells it, where a terminal would act on it or show nothing."""
    return letter if letter.isprintable() else f"\\U{ord(letter):08x}"


def _as_toml(value: Any) -> str:
    if isinstance(value, str):
        return "".join(map(_as_printable, json.dumps(value, ensure_ascii=False)))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_as_toml(entry) for entry in value)}]"
    if isinstance(value, dict):
        return f"a table of {pluralize(len(value), 'key')}" if value else "{}"
    return str(value)


# A key in the wrong setting, a password in an address, a token among its parameters.
_SECRETS = (
    (lazy_regex(r"\b(?:sk-|pk-|gsk_|xai-|AIza)[\w-]{8,}"), "***"),
    (lazy_regex(r"(://)[^/@\s]+@"), r"\1***@"),
    (lazy_regex(r"([?&][\w-]*(?:key|token|secret|password)[\w-]*=)[^&\s\"]+", re.IGNORECASE), r"\1***"),
)
