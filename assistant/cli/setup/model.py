"""The first step of `assistant setup`: which model answers, proved by a real answer before anything is kept."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from urllib.parse import urlsplit

from assistant.cli.config.change import (
    change_config_file,
    check_answer,
    check_sendable_key,
    print_changes,
    store_secret,
)
from assistant.cli.output import clean_line, print_prose
from assistant.cli.prompts import StepSkipped, prompt_choice, prompt_until_valid
from assistant.cli.setup.answers import read_address_answer, read_model_answer
from assistant.context.tokens import openai_encoding
from assistant.core.calendar import utc_now
from assistant.core.dataclass import dataclass
from assistant.core.errors import AssistantError, ModelError, UsageError
from assistant.core.secret_text import SecretStr
from assistant.models.prices import OPENAI_URL, is_hosted_by_openai
from assistant.service.home_lock import home_lock, is_home_served
from assistant.settings.config_text import CONFIG_HEADER, remove_key, set_key
from assistant.settings.home import Home
from assistant.settings.sections import DEFAULT_MODEL_NAMES
from assistant.settings.settings import Settings, load_settings, parse_settings_values
from assistant.settings.validators import is_loopback
from assistant.store.home.config_file import ConfigFile
from assistant.wire.checks import install_vocabulary, try_model
from assistant.wire.stores import build_token_counter

CHOICES = {
    "anthropic": "Claude, with an Anthropic API key",
    "openai": "GPT, with an OpenAI API key",
    "local": "a server of your own: Ollama, llama.cpp, vLLM, LM Studio, or any other that is OpenAI-compatible",
    "offline": "no language model, no key, no network",
}
ALIASES = {
    **dict.fromkeys(("claude", "sonnet", "opus", "haiku"), "anthropic"),
    **dict.fromkeys(("open ai", "gpt", "chatgpt", "chat gpt"), "openai"),
    **dict.fromkeys(("ollama", "llama", "llama.cpp", "vllm", "lmstudio", "lm studio", "openai-compatible"), "local"),
    **dict.fromkeys(("none", "nothing", "no model", "no"), "offline"),
}
_KEY_PAGES = {
    "anthropic": "https://platform.claude.com/settings/keys",
    "openai": "https://platform.openai.com/api-keys",
}
# Its server lists dozens of models, in no order that helps.
_OPENAI_MODEL = "gpt-6-sol"
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
    "no_credit": "Is there credit left?",
    "unknown_model": "Are the name of the model and the address correct?",
    "bad_request": "Is the name of the model correct?",
    "network": "Is this machine online, and the address correct?",
    "rate_limit": "Try again later.",
    "overload": "Try again later.",
}
_KEPT = " Your message is kept"
_LOCAL = "http://localhost:11434/v1"


@dataclass(frozen=True, slots=True)
class ModelAnswers:
    """Which model is to answer."""

    provider: str
    name: str = ""
    url: str = ""
    key: str = ""  # "" where none was given: the one that is set, if any, stays


def ask_model(home: Home, saved: list[str]) -> None:
    """Who answers, the key, a real answer to prove it; kept when it came, or when the person says so."""
    while True:
        settings = load_settings(home)
        answers = _ask_answers(home, settings)
        if answers.provider == "offline":
            saved += _save_model(home, settings, answers)
            print_prose(_OFFLINE)
            return
        then = "keep" if _is_answering(home, settings, answers) else prompt_choice("What now?", _AFTER, "again")
        if then == "keep":
            saved += _save_model(home, settings, answers)
            _offer_vocabulary(home, saved)
            return
        if then == "leave":
            raise StepSkipped


def _ask_answers(home: Home, settings: Settings) -> ModelAnswers:
    is_own_server = settings.provider == "openai" and not is_hosted_by_openai(settings.openai_url)
    choice = prompt_choice("Which provider?", CHOICES, "local" if is_own_server else settings.provider, ALIASES)
    if choice == "offline":
        return ModelAnswers(choice)
    provider = "openai" if choice == "local" else choice
    url = ""
    if provider == "openai":
        url = settings.openai_url or (OPENAI_URL if choice == "openai" else _LOCAL)
    if choice == "local" or (choice == "openai" and is_own_server):
        url = prompt_until_valid(
            "Address of the server?",
            url,
            lambda answer: check_answer(home, "model.base_url", read_address_answer(answer)),
        )
    is_hosted = provider == "anthropic" or is_hosted_by_openai(url)
    key = _ask_key(settings, provider, is_hosted=is_hosted)
    is_same_kind = settings.provider == provider and is_own_server == (choice == "local")
    current = settings.values.model.name if is_same_kind else ""
    default = current or DEFAULT_MODEL_NAMES.get(provider, "") or (_OPENAI_MODEL if is_hosted else "")
    shown = default or "the first one that the server lists"
    name = prompt_until_valid("Which model?", default, read_model_answer, shown=shown)
    return ModelAnswers(provider, name, url, key)


def _ask_key(settings: Settings, provider: str, *, is_hosted: bool) -> str:
    """A key for a provider; a server of one's own may have none."""
    is_set = bool((settings.anthropic_key if provider == "anthropic" else settings.openai_key).get_secret_value())
    if is_hosted:
        print_prose(f"Keys are made at {_KEY_PAGES[provider]}; copy one and paste it here.")

    def parse(answer: str) -> str:
        if is_hosted and not is_set and not answer:
            raise UsageError(f"It needs a key ({_KEY_PAGES[provider]}); - skips this step.")
        other = "anthropic" if answer.startswith("sk-ant-") else "openai" if answer.startswith("sk-proj-") else provider
        if is_hosted and other != provider:
            raise UsageError(f"That looks like a key of {other}, and you chose {provider}.")
        check_sendable_key(answer)
        return answer

    shown = "the current one" if is_set else "" if is_hosted else "none"
    return prompt_until_valid("Key (not shown)", "", parse, shown=shown, secret=True)


def _is_answering(home: Home, settings: Settings, answers: ModelAnswers) -> bool:
    """Have the model answer once, and say what it answers, or what went wrong."""
    trial = _trial_settings(home, settings, answers)
    served = is_home_served(home.path)
    print_prose("Asking for a first answer ...")
    try:
        with contextlib.nullcontext() if served else home_lock(home.path):
            reply = try_model(trial, utc_now, served=served)
    except ModelError as error:
        advice = _ADVICE.get(error.kind, "")
        if error.kind == "network" and not answers.url:
            # Nobody was asked for an address.
            advice = "Is this machine online?"
        elif error.kind == "network" and is_loopback(urlsplit(answers.url).hostname or ""):
            advice = "Is it running, and the address correct?"
        reason = str(error).partition(_KEPT)[0].rstrip(". ").removesuffix(" (is the server running?)")
        print_prose(f"{reason}. {advice}".rstrip())
        return False
    print_prose(f"It answers: {clean_line(reply)}")
    return True


def _trial_settings(home: Home, settings: Settings, answers: ModelAnswers) -> Settings:
    """The settings as they would be. What the environment says of the model would win, and does not count here."""
    values, _ = parse_settings_values(home, _with_model(ConfigFile(home.config).read(), settings, answers))
    model = values.model.changed(provider=answers.provider)
    key = SecretStr(answers.key)
    return replace(
        settings,
        values=settings.values.changed(model=model),
        openai_url=answers.url or settings.openai_url,
        anthropic_key=key if answers.key and answers.provider == "anthropic" else settings.anthropic_key,
        openai_key=key if answers.key and answers.provider == "openai" else settings.openai_key,
    )


def _save_model(home: Home, settings: Settings, answers: ModelAnswers) -> list[str]:
    """The key first: a provider without one is worse than a key without a provider. Returns what was changed."""
    saved = []
    if answers.key:
        store_secret(home, _KEYS[answers.provider], answers.key)
        saved.append(_KEYS[answers.provider])
    return saved + print_changes(home, change_config_file(home, lambda text: _with_model(text, settings, answers)))


def _with_model(text: str, settings: Settings, answers: ModelAnswers) -> str:
    """config.toml with these answers. A key that stands there would win over the one that is kept elsewhere."""
    text = set_key(text or CONFIG_HEADER, "model.provider", answers.provider)
    if answers.key:
        text = remove_key(text, "model.api_key")
    if answers.url and answers.url != (settings.openai_url or OPENAI_URL):
        text = set_key(text, "model.base_url", answers.url)
    is_default = answers.name == DEFAULT_MODEL_NAMES.get(answers.provider, "")
    return remove_key(text, "model.name") if is_default else set_key(text, "model.name", answers.name)


def _offer_vocabulary(home: Home, saved: list[str]) -> None:
    """Of an OpenAI model the vocabulary is public; where this machine has it, tokens are counted exactly."""
    settings = load_settings(home)
    tier = build_token_counter(settings, settings.values.model.name).tier
    encoding = openai_encoding(tier.model)
    if encoding is None or tier.name != "estimate":
        return
    choices = {"yes": "2 to 4 MB from OpenAI, once; it is checked", "no": "lengths are estimated instead"}
    if prompt_choice("Download the model's vocabulary, so that tokens are counted exactly?", choices, "yes") == "no":
        return
    try:
        install_vocabulary(settings, encoding)
        saved.append("the vocabulary")
    except AssistantError as error:
        print_prose(f"{error} `assistant doctor --fix` tries again.")
