"""Reads the settings at start-up: default.toml < config.toml of the data folder < secrets < environment, merged to one
frozen `Settings`.

Defaults are only in `config/default.toml`; the classes of `sections` have types and ranges; `secrets` says where
secrets are stored. Every value keeps its origin, so that errors, and `assistant config show`, can name the file or
variable it came from. Only this module and `home` read the environment.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal
from zoneinfo import ZoneInfo

import tzlocal

from assistant.core.checked_tables import InvalidTable, fields_of
from assistant.core.dataclass import dataclass
from assistant.core.errors import SettingsError, UsageError
from assistant.core.secret_text import SecretStr
from assistant.settings.consistency import context_contradictions, web_search_contradictions
from assistant.settings.home import FileStamps, Home, home_from_environment, settings_stamps
from assistant.settings.layers import (
    SettingsLayer,
    environment_layers,
    environment_variable,
    explain_invalid_settings,
    format_setting_value,
    mask_secrets_in_text,
    parse_text_layer,
    read_file_layer,
    secret_layers,
)
from assistant.settings.secrets import (
    MCP_SECRET,
    PROVIDER_KEYS,
    FoundSecret,
    SecretLookup,
    SystemKeyring,
    read_credentials,
    read_stored_secrets,
)
from assistant.settings.sections import (
    SETTING_FIELDS,
    ModelSettings,
    SettingsValues,
    describe_allowed,
    web_exposure_problems,
)

# Environment variables read in addition to ASSISTANT_<SECTION>__<KEY>, and their purpose.
ENVIRONMENT_VARIABLES: Mapping[str, str] = {
    "ASSISTANT_HOME": "Your data folder. The default is the platform's directory for user data.",
    "ANTHROPIC_API_KEY": "Anthropic's key. It is never printed.",
    "ANTHROPIC_BASE_URL": "Another address for Anthropic's API, such as a proxy.",
    "OPENAI_API_KEY": "The key for the OpenAI-compatible address. It is never printed.",
    "OPENAI_BASE_URL": "The OpenAI-compatible address, if model.base_url is empty.",
    "CREDENTIALS_DIRECTORY": "Where systemd puts secrets, one file each, named like the secret. Set by systemd.",
    "TIKTOKEN_CACHE_DIR": "Where tiktoken's vocabulary files are; empty for none.",
    "DATA_GYM_CACHE_DIR": "The same, if TIKTOKEN_CACHE_DIR is not set.",
    "NOTIFY_SOCKET": "Where `assistant run` reports its state to its service manager. Set by systemd.",
    "WATCHDOG_USEC": "Microseconds within which the service manager expects a report of progress. Set by systemd.",
    "WATCHDOG_PID": "The process that reports the progress. Set by systemd.",
}
SYSTEM_KEYRING = SystemKeyring()
_DESCRIBED = ("ASSISTANT_HOME", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL")


DEFAULTS_ORIGIN = "default.toml"


@dataclass(frozen=True, slots=True)
class Settings:
    """The validated settings, the data folder, and the origin of each value.

    `origins` maps "section.key" to "default.toml", the path of config.toml, the place of a secret, or the name of the
    variable; a set name of `VARIABLES` to itself, or to where a provider's key was found. `openai_url` is
    model.base_url or OPENAI_BASE_URL; "" means none, and in `anthropic_url` the provider's own address.
    `tiktoken_cache` is the directory of tiktoken's vocabularies; None means that it keeps none. `warnings` are lines
    about secrets that are unavailable, or readable by others. `marks` tell whether the files that were read have
    changed."""

    home: Home
    values: SettingsValues
    origins: Mapping[str, str]
    anthropic_key: SecretStr
    openai_key: SecretStr
    zone: ZoneInfo
    anthropic_url: str = ""
    openai_url: str = ""
    tiktoken_cache: Path | None = None
    warnings: tuple[str, ...] = ()
    mcp_secrets: Mapping[str, SecretStr] = field(default_factory=dict)  # by name, such as "mcp.github.TOKEN"
    file_stamps: FileStamps = (None, None)

    @property
    def provider(self) -> Literal["anthropic", "openai", "offline"]:
        """Return the first provider, with "auto" resolved."""
        chosen = self.values.model.provider
        if chosen != "auto":
            return chosen
        if self.anthropic_key.get_secret_value():
            return "anthropic"
        return "openai" if self.openai_url else "offline"

    @property
    def unused_address(self) -> str:
        """Return a warning with advice if model.base_url is set but not used by any model; else ""."""
        values = self.values
        chosen = (*values.model.fallback, values.compaction.summary_model)
        if not values.model.base_url or "openai" in (self.provider, *(name.partition(":")[0] for name in chosen)):
            return ""
        instead = "Another address of Anthropic's API is in ANTHROPIC_BASE_URL. " * (self.provider == "anthropic")
        address = mask_secrets_in_text(values.model.base_url)
        return (
            f"Nothing is sent to model.base_url ({address}), the address of an OpenAI-compatible API: "
            f"{self.provider} answers. {instead}`assistant config set model.provider openai` asks there."
        )

    def with_model(self, choice: str) -> Settings:
        """Return the settings with `provider` or `provider:name` answering; "auto" returns them unchanged. Raises
        `UsageError`."""
        provider, _, name = choice.partition(":")
        if choice == "auto":
            return self
        if provider not in ("anthropic", "openai", "offline"):
            raise UsageError(
                "Choose auto, offline, anthropic or openai, as in `/model openai:llama3`. Nothing was changed."
            )
        if provider == "anthropic" and not self.anthropic_key.get_secret_value():
            raise UsageError("ANTHROPIC_API_KEY is not set. Nothing was changed.")
        if provider == "openai" and not (self.openai_url or self.openai_key.get_secret_value()):
            raise UsageError(
                "There is no address and no key for openai: set model.base_url, or OPENAI_API_KEY. Nothing was changed."
            )
        model = self.values.model.changed(provider=provider, name=name)
        return replace(self, values=self.values.changed(model=model))


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One line of `assistant config show`. `value` is TOML text with secrets masked; `origin` as in `origins`, or "not
    set"; `variable` is the environment variable that sets it; `about` explains it; `allowed` describes what it may
    be; `section` says what its section is about."""

    key: str
    value: str
    origin: str
    variable: str
    about: str
    allowed: str
    section: str


def shipped_config_dir() -> Path:
    """Return the folder of shipped data (default.toml, prices, prompts): inside the package in a wheel, beside it in a
    checkout."""
    package = Path(__file__).parents[1]
    shipped = package / "config"
    return shipped if shipped.is_dir() else package.parent / "config"


def load_settings(
    home: Home | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    ring: SystemKeyring | None = SYSTEM_KEYRING,
    config: SettingsLayer | None = None,
) -> Settings:
    """Read all layers; without `ring`, secrets in the keyring are left out; `config` is read instead of config.toml.
    Raises `SettingsError` with one line for each problem: the file or variable, the key, the value and what is
    allowed."""
    environ = os.environ if environ is None else environ
    home = home or home_from_environment(environ)
    # Before reading: a file changed in between counts as changed.
    marks = settings_stamps(home)
    handed = environ.get("CREDENTIALS_DIRECTORY")
    secrets = (read_stored_secrets(home.secrets, ring), read_credentials(Path(handed) if handed else None))
    values, origins = _merge(_layers(home, config, environ, secrets))
    keys = {found.name: found for search in secrets for found in search.found}
    keys |= {
        name: FoundSecret(name, SecretStr(text), name)
        for name in PROVIDER_KEYS
        if (text := environ.get(name, "").strip())
    }
    url = values.model.base_url or environ.get("OPENAI_BASE_URL", "").strip()
    owner = _owner_of_key(values.model, url)
    return Settings(
        home=home,
        values=values,
        origins={
            **origins,
            **{name: name for name in ENVIRONMENT_VARIABLES if environ.get(name)},
            **{name: keys[name].origin for name in keys if name in PROVIDER_KEYS or MCP_SECRET.fullmatch(name)},
        },
        anthropic_key=_key(keys.get("ANTHROPIC_API_KEY"), values.model if owner == "anthropic" else None),
        openai_key=_key(keys.get("OPENAI_API_KEY"), values.model if owner == "openai" else None),
        zone=_zone(values.home.timezone),
        anthropic_url=environ.get("ANTHROPIC_BASE_URL", "").strip(),
        openai_url=url,
        tiktoken_cache=_tiktoken_cache(environ),
        warnings=tuple(warning for search in secrets for warning in search.warnings),
        mcp_secrets={name: found.value for name, found in keys.items() if MCP_SECRET.fullmatch(name)},
        file_stamps=marks,
    )


def settings_problems(home: Home, text: str) -> tuple[str, ...]:
    """Return the problems of config.toml if it contained `text`, as `load_settings` would report them, independent of
    the environment."""
    try:
        parse_settings_values(home, text)
    except SettingsError as error:
        return error.problems
    return ()


def parse_settings_values(home: Home, text: str) -> tuple[SettingsValues, Mapping[str, str]]:
    """Return the values of the defaults and a config.toml with `text`, and the origin of each. Raises
    `SettingsError`."""
    return _merge([_defaults(shipped_config_dir() / DEFAULTS_ORIGIN), parse_text_layer(text, str(home.config))])


def describe_settings(settings: Settings) -> list[SettingRow]:
    """Return every setting in the order of default.toml, then the other variables, for `assistant config show`.

    Values are printable text with secrets masked; group by the part of `key` before its dot. Variables outside the
    sections have their own name as key and no `allowed`."""
    comments = _comments()
    rows = []
    for key, spec in SETTING_FIELDS.items():
        value = format_setting_value(settings.values.value_of(key))
        rows.append(
            SettingRow(
                key,
                value,
                settings.origins[key],
                environment_variable(key),
                comments.get(key, ""),
                describe_allowed(spec),
                comments.get(key.partition(".")[0], ""),
            )
        )
    return rows + [_variable_row(settings, name) for name in _DESCRIBED]


def _variable_row(settings: Settings, name: str) -> SettingRow:
    in_force: dict[str, str | SecretStr] = {
        "ASSISTANT_HOME": str(settings.home.path),
        "ANTHROPIC_API_KEY": settings.anthropic_key,
        "ANTHROPIC_BASE_URL": settings.anthropic_url,
        "OPENAI_API_KEY": settings.openai_key,
        "OPENAI_BASE_URL": settings.openai_url,
    }
    unset = ("the platform's default", in_force[name]) if name == "ASSISTANT_HOME" else ("not set", "")
    origin, value = (settings.origins[name], in_force[name]) if name in settings.origins else unset
    return SettingRow(name, format_setting_value(value), origin, name, ENVIRONMENT_VARIABLES[name], "", "")


def _layers(
    home: Home, config: SettingsLayer | None, environ: Mapping[str, str], secrets: Iterable[SecretLookup]
) -> list[SettingsLayer]:
    from_secrets = [
        layer
        for search in secrets
        for layer in (SettingsLayer("secrets", problems=search.problems), *secret_layers(search.found))
    ]
    from_config = config or read_file_layer(home.config, str(home.config))
    defaults = _defaults(shipped_config_dir() / DEFAULTS_ORIGIN)
    return [defaults, from_config, *from_secrets, *environment_layers(environ, reserved=ENVIRONMENT_VARIABLES)]


@cache
def _defaults(path: Path) -> SettingsLayer:
    return read_file_layer(path, DEFAULTS_ORIGIN, required=True)


def _merge(layers: list[SettingsLayer]) -> tuple[SettingsValues, dict[str, str]]:
    """Merge the layers key by key, later ones first; all problems of all layers are reported together."""
    merged: dict[str, dict[str, Any]] = {section: {} for section in fields_of(SettingsValues)}
    origins: dict[str, str] = {}
    problems = [problem for layer in layers for problem in layer.problems]
    for layer in layers:
        for key, value in layer.values.items():
            section, _, name = key.partition(".")
            merged[section][name] = value
            origins[key] = layer.origin
    try:
        values = SettingsValues.from_values(merged)
        problems += web_exposure_problems(values.web, origins)
        problems += context_contradictions(values, origins)
        problems += web_search_contradictions(values, origins)
    except InvalidTable as error:
        problems += explain_invalid_settings(error, origins)
    if problems:
        these = "it" if len(problems) == 1 else f"these {len(problems)}"
        last = f"Nothing was started; correct {these} (`assistant config edit` opens config.toml) and start again."
        raise SettingsError("\n".join([*problems, last]), problems=problems)
    return values, origins


def _comments() -> dict[str, str]:
    """Return the comments of default.toml by key, and by section."""
    comments: dict[str, str] = {}
    section, words = "", []
    for line in (shipped_config_dir() / "default.toml").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            words.append(line.lstrip("# "))
            continue
        if header := re.fullmatch(r"\[(\w+)\]", line.strip()):
            section = header[1]
            comments[section] = " ".join(words)
        elif key := re.match(r"(\w+)\s*=", line):
            comments[f"{section}.{key[1]}"] = " ".join(words)
        words = []
    return comments


def _owner_of_key(model: ModelSettings, openai_url: str) -> str:
    """Return the provider of model.api_key."""
    if model.provider == "auto":
        return "openai" if openai_url else "anthropic"
    return model.provider


def _key(found: FoundSecret | None, model: ModelSettings | None) -> SecretStr:
    """Return a provider's key: the configured one, or the one under the usual name that other programs share."""
    configured = model.api_key.get_secret_value().strip() if model else ""
    return SecretStr(configured or (found.value.get_secret_value().strip() if found else ""))


def _tiktoken_cache(environ: Mapping[str, str]) -> Path | None:
    """Return tiktoken's cache directory: the same variables and default as tiktoken's."""
    for name in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        if name in environ:
            return Path(environ[name]) if environ[name] else None
    with suppress(FileNotFoundError):  # no folder for temporary files can be written
        return Path(tempfile.gettempdir()) / "data-gym-cache"
    return None


def _zone(name: str) -> ZoneInfo:
    """Return the time zone of the data folder; UTC if the system's is unknown."""
    try:
        return ZoneInfo(name or tzlocal.get_localzone_name() or "UTC")
    except (KeyError, ValueError, OSError):
        return ZoneInfo("UTC")


def read_machine_zone() -> ZoneInfo:
    """Return the time zone that the machine is set to now, not at the start; UTC if that is unknown. Takes 10 ms."""
    with suppress(KeyError, ValueError, OSError):
        tzlocal.reload_localzone()
    return _zone("")
