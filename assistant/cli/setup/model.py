"""The step of `assistant setup` that chooses who answers, and proves it by a real answer before anything is kept."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace

from pydantic import SecretStr

from assistant.cli.config import secrets as secret
from assistant.cli.config.change import change_config_file, print_changes
from assistant.cli.output import print_text, shorten_line
from assistant.cli.prompts import StepSkipped, prompt_choice, prompt_until_valid
from assistant.core.calendar import utc_now
from assistant.core.errors import ModelError, UsageError
from assistant.service.home_lock import home_lock, is_home_served
from assistant.settings.config_text import CONFIG_HEADER, remove_key, set_key
from assistant.settings.home import Home
from assistant.settings.sections import DEFAULT_MODEL_NAMES
from assistant.settings.settings import Settings, load_settings, parse_settings_values, settings_problems
from assistant.store.home.config_file import ConfigFile
from assistant.wire.checks import try_model

_WHO = {
    "anthropic": "Claude, with an Anthropic API key",
    "openai": "any OpenAI-compatible server: Ollama, llama.cpp, vLLM, OpenAI",
    "offline": "offline mode: no language model, no key, no network",
}
_OFFLINE = (
    "Offline mode uses no language model and no network: it takes notes, finds what you said word for word, keeps your "
    "to-do list, and knows the time. It cannot converse, write or reason. `assistant setup model` changes it."
)
_AFTER = {
    "again": "answer these questions again",
    "keep": "save the answers anyway",
    "leave": "change nothing",
}
_KEYS = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}
_ADVICE = {
    "auth": "Is the key correct, complete, and for this provider?",
    "bad_request": "Is the name of the model correct?",
    "network": "Is the address correct and reachable?",
    "rate_limit": "Try again later.",
    "overload": "Try again later.",
}
_KEPT = " Your message is kept"
_LOCAL = "http://localhost:11434/v1"


@dataclass(frozen=True, slots=True)
class ModelAnswers:
    """What was answered. `key` is "" where none was given; then the one that was found, if any, stays."""

    provider: str
    name: str = ""
    url: str = ""
    key: str = ""


def ask_model(home: Home, kept: list[str]) -> None:
    """Who answers, the key, a real answer to prove it; kept when it came, or when the person says so."""
    while True:
        settings = load_settings(home)
        choice = _asked(home, settings)
        if choice.provider == "offline":
            _keep(home, settings, choice, kept)
            print_text(_OFFLINE)
            return
        reason = _tried(home, settings, choice)
        then = prompt_choice("What now?", _AFTER, "again") if reason else "keep"
        if then == "keep":
            _keep(home, settings, choice, kept)
            return
        if then == "leave":
            raise StepSkipped


# ------------------------------------------------------------------------------------------------------------ questions


def _asked(home: Home, settings: Settings) -> ModelAnswers:
    provider = prompt_choice("Which provider?", _WHO, settings.provider)
    if provider == "offline":
        return ModelAnswers(provider)
    url = _address(home, settings) if provider == "openai" else ""
    key = _key(settings, provider)
    known = settings.values.model.name if settings.provider == provider else ""
    default = known or DEFAULT_MODEL_NAMES.get(provider, "")
    name = prompt_until_valid("Which model?", default, str, shown=default or "the first one that the server lists")
    return ModelAnswers(provider, name, url, key)


def _address(home: Home, settings: Settings) -> str:
    def parse(answer: str) -> str:
        problems = settings_problems(home, set_key("", "model.base_url", answer))
        if problems:
            raise UsageError("\n".join(problems))
        return answer

    return prompt_until_valid("Address of the server?", settings.openai_url or _LOCAL, parse)


def _key(settings: Settings, provider: str) -> str:
    found = settings.anthropic_key if provider == "anthropic" else settings.openai_key
    if found.get_secret_value():
        return prompt_until_valid("Key (not shown)", "", str, shown="the current one", secret=True)
    needed = provider == "anthropic"

    def parse(answer: str) -> str:
        if needed and not answer:
            raise UsageError("Claude needs a key (https://platform.claude.com, API keys); - skips this step.")
        return answer

    return prompt_until_valid("Key (not shown)", "", parse, shown="" if needed else "none", secret=True)


# ------------------------------------------------------------------------------------------------------------ the proof


def _tried(home: Home, settings: Settings, choice: ModelAnswers) -> str:
    """Have the model answer once; what went wrong in words, "" where nothing did."""
    trial = _with(home, settings, choice)
    served = is_home_served(home.path)
    print_text("Asking for a first answer ...")
    try:
        with contextlib.nullcontext() if served else home_lock(home.path):
            reply = try_model(trial, utc_now, served=served)
    except ModelError as error:
        reason = f"{str(error).partition(_KEPT)[0].rstrip('. ')}. {_ADVICE.get(error.kind, '')}".rstrip()
        print_text(reason)
        return reason
    print_text(f"It answers: {shorten_line(reply)}")
    return ""


def _with(home: Home, settings: Settings, choice: ModelAnswers) -> Settings:
    """The settings as they would be. What the environment says of the model would win, and does not count here."""
    values, _ = parse_settings_values(home, _edited(ConfigFile(home.config).read(), settings, choice))
    chosen = values.model.model_copy(update={"provider": choice.provider})
    trial = replace(
        settings,
        values=settings.values.model_copy(update={"model": chosen}),
        openai_url=choice.url or settings.openai_url,
    )
    if not choice.key:
        return trial
    key = SecretStr(choice.key)
    return replace(trial, anthropic_key=key) if choice.provider == "anthropic" else replace(trial, openai_key=key)


def _keep(home: Home, settings: Settings, choice: ModelAnswers, kept: list[str]) -> None:
    """The key first: a provider without one is worse than a key without a provider."""
    if choice.key:
        secret.store_secret(home, _KEYS[choice.provider], choice.key)
        kept.append(_KEYS[choice.provider])
    done = change_config_file(home, lambda text: _edited(text, settings, choice))
    print_changes(home, done)
    kept += [change.key for change in done]


def _edited(text: str, settings: Settings, choice: ModelAnswers) -> str:
    """config.toml with this choice in it. A key that stands there would win over the one that is kept elsewhere."""
    text = set_key(text or CONFIG_HEADER, "model.provider", choice.provider)
    if choice.key:
        text = remove_key(text, "model.api_key")
    if choice.url and choice.url != settings.openai_url:
        text = set_key(text, "model.base_url", choice.url)
    is_default = choice.name == DEFAULT_MODEL_NAMES.get(choice.provider, "")
    return remove_key(text, "model.name") if is_default else set_key(text, "model.name", choice.name)
