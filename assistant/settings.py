"""Settings: default.toml < config.toml of the home < environment -> one frozen `Settings`, read once at start.

The TOML file `config/default.toml` is the only place where defaults stand; the classes below hold types and ranges.
Every value keeps its origin, so that an error, and `assistant config show`, can name the file or variable it came
from. This is the only module that reads the environment.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

import tzlocal
from platformdirs import user_data_path
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator

from assistant.errors import SettingsError

ENV_PREFIX = "ASSISTANT_"
_RESERVED_ENV = {"ASSISTANT_HOME"}


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class HomeSettings(_Section):
    timezone: str

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, value: str) -> str:
        if value:
            try:
                ZoneInfo(value)
            except (KeyError, ValueError, OSError):
                raise ValueError("an IANA time zone such as 'Europe/Oslo', or ''") from None
        return value


class ModelSettings(_Section):
    provider: Literal["auto", "anthropic", "openai", "offline"]
    name: str
    base_url: str
    api_key: SecretStr
    fallback: tuple[str, ...]
    max_output_tokens: Annotated[int, Field(ge=256, le=128_000)]
    thinking: Literal["off", "adaptive"]
    stall_seconds: Annotated[float, Field(ge=1, le=600)]
    retries: Annotated[int, Field(ge=0, le=10)]
    max_retry_wait_seconds: Annotated[float, Field(ge=0, le=600)]

    @field_validator("base_url")
    @classmethod
    def _address(cls, value: str) -> str:
        if value and not value.startswith(("http://", "https://")):
            raise ValueError("an address that starts with http:// or https://, or ''")
        return value

    @field_validator("fallback", mode="before")
    @classmethod
    def _chain(cls, value: Any) -> Any:
        known = ("anthropic", "openai", "offline")
        if isinstance(value, list):
            for entry in value:
                if not isinstance(entry, str) or entry.partition(":")[0] not in known:
                    raise ValueError('a list of "anthropic", "openai" or "offline", each with an optional ":name"')
            return tuple(value)
        return value


class ContextSettings(_Section):
    max_context_tokens: Annotated[int, Field(ge=0, le=2_000_000)]
    reserve_tokens: Annotated[int, Field(ge=0, le=100_000)]
    emergency_threshold: Annotated[float, Field(ge=0.60, le=0.95)]
    target: Annotated[float, Field(ge=0.10, le=0.50)]
    preserve_messages: Annotated[int, Field(ge=1, le=1000)]
    preserve_share: Annotated[float, Field(ge=0.0, le=0.5)]
    max_request_bytes: Annotated[int, Field(ge=0)]
    max_images: Annotated[int, Field(ge=0)]

    @field_validator("max_context_tokens")
    @classmethod
    def _zero_or_useful(cls, value: int) -> int:
        if 0 < value < 2000:
            raise ValueError("0 (ask the model), or 2000-2000000")
        return value


class ToolSettings(_Section):
    output_policy: Literal["tokens", "bytes", "none"]
    output_max_tokens: Annotated[int, Field(ge=100, le=100_000)]
    output_max_bytes: Annotated[int, Field(ge=400, le=10_000_000)]
    output_serialization_buffer: Annotated[float, Field(ge=1.0, le=2.0)]
    output_split: Annotated[float, Field(ge=0.0, le=1.0)]
    timeout_seconds: Annotated[float, Field(ge=1, le=3600)]


class TurnSettings(_Section):
    max_steps: Annotated[int, Field(ge=1, le=200)]
    max_seconds: Annotated[float, Field(ge=5, le=86_400)]
    on_message: Literal["wait", "steer"]
    overflow_retries: Annotated[int, Field(ge=0, le=10)]


class BudgetSettings(_Section):
    daily_usd: Annotated[float, Field(ge=0)]
    monthly_usd: Annotated[float, Field(ge=0)]
    daily_tokens: Annotated[int, Field(ge=0)]
    monthly_tokens: Annotated[int, Field(ge=0)]


class DaemonSettings(_Section):
    drain_seconds: Annotated[float, Field(ge=0, le=600)]
    watch_seconds: Annotated[float, Field(ge=1, le=30)]


class LogSettings(_Section):
    level: Literal["debug", "info", "warning", "error"]


class Values(_Section):
    """All sections of the settings files."""

    home: HomeSettings
    model: ModelSettings
    context: ContextSettings
    tools: ToolSettings
    turn: TurnSettings
    budget: BudgetSettings
    daemon: DaemonSettings
    log: LogSettings


@dataclass(frozen=True, slots=True)
class Home:
    """The data directory and the places in it. Only this class and `store/` know paths."""

    path: Path

    @property
    def config(self) -> Path:
        return self.path / "config.toml"

    @property
    def persona(self) -> Path:
        return self.path / "PERSONA.md"

    @property
    def workspace(self) -> Path:
        return self.path / "workspace"

    @property
    def run(self) -> Path:
        return self.path / "run"

    @property
    def socket(self) -> Path:
        return self.run / "control.sock"

    @property
    def lock(self) -> Path:
        return self.run / "lock"


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that was configured, validated; where the home is; where each value came from.

    `origins` maps "section.key" to "default.toml", the path of config.toml, or the name of the variable."""

    home: Home
    values: Values
    origins: Mapping[str, str]
    anthropic_key: SecretStr
    openai_key: SecretStr
    zone: ZoneInfo

    @property
    def provider(self) -> Literal["anthropic", "openai", "offline"]:
        """Who answers first, "auto" resolved."""
        chosen = self.values.model.provider
        if chosen != "auto":
            return chosen
        if self.anthropic_key.get_secret_value():
            return "anthropic"
        return "openai" if self.values.model.base_url else "offline"


def config_dir() -> Path:
    """The shipped data (default.toml, prices, prompts): inside the package in a wheel, beside it in a checkout."""
    package = Path(__file__).parent
    shipped = package / "config"
    return shipped if shipped.is_dir() else package.parent / "config"


def home_from_environment(environ: Mapping[str, str] | None = None) -> Home:
    environ = os.environ if environ is None else environ
    chosen = environ.get("ASSISTANT_HOME")
    return Home(Path(chosen).expanduser().absolute() if chosen else user_data_path("assistant", appauthor=False))


def load(home: Home | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """Read the three layers. Raises `SettingsError` naming file or variable, key, what was found, what is allowed."""
    environ = os.environ if environ is None else environ
    home = home or home_from_environment(environ)
    merged: dict[str, dict[str, Any]] = {}
    origins: dict[str, str] = {}
    for origin, layer in _layers(home, environ):
        for section, keys in layer.items():
            if not isinstance(keys, dict):
                raise SettingsError(f"{origin}: `{section}` stands outside a [section]. Nothing was started.")
            merged.setdefault(section, {}).update(keys)
            origins.update({f"{section}.{key}": origin for key in keys} or {section: origin})
    try:
        values = Values.model_validate(merged)
    except ValidationError as error:
        raise SettingsError("\n".join(_explain(error, origins))) from None
    return Settings(
        home=home,
        values=values,
        origins={**origins, **_environment_origins(environ)},
        anthropic_key=_first_secret(environ, "ANTHROPIC_API_KEY", values.model, "anthropic"),
        openai_key=_first_secret(environ, "OPENAI_API_KEY", values.model, "openai"),
        zone=_zone(values.home.timezone),
    )


def _layers(home: Home, environ: Mapping[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "default.toml", _read_toml(config_dir() / "default.toml")
    if home.config.exists():
        yield str(home.config), _read_toml(home.config)
    for name in sorted(environ):
        if name.startswith(ENV_PREFIX) and name not in _RESERVED_ENV:
            section, _, key = name.removeprefix(ENV_PREFIX).lower().partition("__")
            yield name, {section: {key: _from_environment(section, key, environ[name])} if key else {}}


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path} is not valid TOML: {error}. Nothing was started; correct it.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} cannot be read: {error}. Nothing was started.") from None


def _field(section: str, key: str) -> Any:
    outer = Values.model_fields.get(section)
    inner = getattr(outer.annotation, "model_fields", {}) if outer else {}
    return inner.get(key)


def _from_environment(section: str, key: str, text: str) -> Any:
    """Variables are text: read them as TOML where the setting is no text ("16000", "0.5", '["offline"]')."""
    spec = _field(section, key)
    if spec is None or spec.annotation in (str, SecretStr) or "Literal" in str(spec.annotation):
        return text
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _explain(error: ValidationError, origins: Mapping[str, str]) -> Iterator[str]:
    for problem in error.errors():
        where = [str(part) for part in problem["loc"]]
        key = ".".join(where[:2])
        origin = origins.get(key) or origins.get(where[0], "the settings")
        if problem["type"] == "extra_forbidden":
            known = _known_keys(where)
            yield f"{origin}: `{key}` is not a setting. Known here: {known}. Nothing was started; remove or rename it."
        else:
            secret = (
                (spec := _field(*where[:2])) is not None and spec.annotation is SecretStr if len(where) > 1 else True
            )
            found = "a value that is not shown" if secret else repr(problem["input"])
            yield f"{origin}: `{key}` is {found}; allowed: {_allowed(problem)}. Nothing was started; correct it."


def _known_keys(where: list[str]) -> str:
    section = Values.model_fields.get(where[0])
    if section is None or len(where) == 1:
        return ", ".join(f"[{name}]" for name in Values.model_fields)
    return ", ".join(getattr(section.annotation, "model_fields", {}))


def _allowed(problem: Any) -> str:
    context = problem.get("ctx", {})
    words = {
        "greater_than_equal": f"{context.get('ge')} or more",
        "less_than_equal": f"{context.get('le')} or less",
        "literal_error": str(context.get("expected", "")).replace("'", '"'),
        "int_type": "a whole number",
        "float_type": "a number",
        "string_type": "text in quotes",
        "bool_type": "true or false",
        "tuple_type": "a list",
        "missing": "a value",
    }
    if problem["type"] == "value_error":
        return str(context.get("error", problem["msg"]))
    return str(words.get(problem["type"], problem["msg"]))


def _environment_origins(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: name for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY") if environ.get(name)}


def _first_secret(environ: Mapping[str, str], name: str, model: ModelSettings, provider: str) -> SecretStr:
    """`model.api_key` belongs to the chosen provider; the provider's own variable wins over nothing at all."""
    configured = model.api_key.get_secret_value()
    mine = configured and (model.provider == provider or (model.provider == "auto" and _guess(model) == provider))
    return SecretStr(configured if mine else environ.get(name, "").strip())


def _guess(model: ModelSettings) -> str:
    return "openai" if model.base_url else "anthropic"


def _zone(name: str) -> ZoneInfo:
    if name:
        return ZoneInfo(name)
    try:
        return ZoneInfo(tzlocal.get_localzone_name())
    except (KeyError, ValueError, OSError, LookupError):
        return ZoneInfo("UTC")
