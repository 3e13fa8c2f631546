"""`assistant setup`: what an assistant has to know before it begins, asked in a conversation.

Each step can be left out and asked again. What was answered is kept as it is answered; a step that is broken off in
the middle of a choice that needs more than one answer (who answers, and the key for it) changes nothing of that
choice. Who answers is proved by a real answer before anything is kept.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import click
from pydantic import SecretStr

from assistant.cli.bridge.settings import BridgeOptions
from assistant.cli.config.change import (
    change_config_file,
    check_answer,
    describe_when_effective,
    print_changes,
    settings_refusal,
    store_secret,
)
from assistant.cli.lazy import EXIT_INTERRUPTED
from assistant.cli.logging_setup import configure_logging
from assistant.cli.output import print_text, shorten_line
from assistant.cli.prompts import StepSkipped, prompt_choice, prompt_until_valid
from assistant.cli.service.install import detect_service_manager
from assistant.core.calendar import utc_now
from assistant.core.errors import AssistantError, ModelError, SettingsError, UsageError
from assistant.service.home_lock import home_lock, is_home_served
from assistant.settings.config_text import CONFIG_HEADER, remove_key, set_key
from assistant.settings.home import Home, home_from_environment
from assistant.settings.layers import parse_setting_text
from assistant.settings.prompts import PersonaNames, clean_persona_name, parse_persona_names, replace_persona_names
from assistant.settings.sections import DEFAULT_MODEL_NAMES
from assistant.settings.settings import Settings, load_settings, parse_settings_values, shipped_config_dir
from assistant.store.home.config_file import ConfigFile
from assistant.wire.checks import try_model

_HOW = "Enter keeps the value in brackets, - skips a step, Ctrl-C stops; your answers so far are saved."

# ----------------------------------------------------------------------------------------------------------- the model

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
            print_text(_OFFLINE)
            return
        then = "keep" if _is_answering(home, settings, answers) else prompt_choice("What now?", _AFTER, "again")
        if then == "keep":
            saved += _save_model(home, settings, answers)
            return
        if then == "leave":
            raise StepSkipped


def _ask_answers(home: Home, settings: Settings) -> ModelAnswers:
    provider = prompt_choice("Which provider?", _WHO, settings.provider)
    if provider == "offline":
        return ModelAnswers(provider)
    url = ""
    if provider == "openai":
        default_url = settings.openai_url or _LOCAL
        url = prompt_until_valid(
            "Address of the server?", default_url, lambda answer: check_answer(home, "model.base_url", answer)
        )
    key = _ask_key(settings, provider)
    current = settings.values.model.name if settings.provider == provider else ""
    default = current or DEFAULT_MODEL_NAMES.get(provider, "")
    name = prompt_until_valid("Which model?", default, str, shown=default or "the first one that the server lists")
    return ModelAnswers(provider, name, url, key)


def _ask_key(settings: Settings, provider: str) -> str:
    is_claude = provider == "anthropic"
    is_set = bool((settings.anthropic_key if is_claude else settings.openai_key).get_secret_value())

    def parse(answer: str) -> str:
        if is_claude and not is_set and not answer:
            raise UsageError("Claude needs a key (https://platform.claude.com, API keys); - skips this step.")
        return answer

    shown = "the current one" if is_set else "" if is_claude else "none"
    return prompt_until_valid("Key (not shown)", "", parse, shown=shown, secret=True)


def _is_answering(home: Home, settings: Settings, answers: ModelAnswers) -> bool:
    """Have the model answer once, and say what it answers, or what went wrong."""
    trial = _trial_settings(home, settings, answers)
    served = is_home_served(home.path)
    print_text("Asking for a first answer ...")
    try:
        with contextlib.nullcontext() if served else home_lock(home.path):
            reply = try_model(trial, utc_now, served=served)
    except ModelError as error:
        print_text(f"{str(error).partition(_KEPT)[0].rstrip('. ')}. {_ADVICE.get(error.kind, '')}".rstrip())
        return False
    print_text(f"It answers: {shorten_line(reply)}")
    return True


def _trial_settings(home: Home, settings: Settings, answers: ModelAnswers) -> Settings:
    """The settings as they would be. What the environment says of the model would win, and does not count here."""
    values, _ = parse_settings_values(home, _with_model(ConfigFile(home.config).read(), settings, answers))
    model = values.model.model_copy(update={"provider": answers.provider})
    key = SecretStr(answers.key)
    return replace(
        settings,
        values=settings.values.model_copy(update={"model": model}),
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
    if answers.url and answers.url != settings.openai_url:
        text = set_key(text, "model.base_url", answers.url)
    is_default = answers.name == DEFAULT_MODEL_NAMES.get(answers.provider, "")
    return remove_key(text, "model.name") if is_default else set_key(text, "model.name", answers.name)


# ----------------------------------------------------------------------------------------------------- the other steps

_NEVER = "never"
_NO_BRIDGE = "no"
_BRIDGES = {
    "telegram": "a bot of your own; making one takes a minute",
    "matrix": "its own account on a homeserver; needs the `matrix` extra",
    _NO_BRIDGE: "not now; `assistant bridge add` sets one up later",
}


def ask_names(home: Home, saved: list[str]) -> None:
    """Writes PERSONA.md: what the assistant is told of itself before each conversation."""
    file = ConfigFile(home.persona)
    shipped = (shipped_config_dir() / "prompts" / "persona.md").read_text(encoding="utf-8")
    current = parse_persona_names(file.read() or shipped)

    def save(names: PersonaNames) -> None:
        before, after = file.change(lambda text: replace_persona_names(text or shipped, names))
        if after != before:
            saved.append("PERSONA.md")

    person = prompt_until_valid("What is your name?", current.person, clean_persona_name)
    name = prompt_until_valid("What is the assistant's name?", current.assistant or "Nocturne", _assistant_name)
    save(PersonaNames(name, person, current.manner))
    manner = prompt_until_valid(
        "Its manner, in a few words (dry, patient, formal, ...)?", current.manner, clean_persona_name
    )
    save(PersonaNames(name, person, manner))
    print_text(f"Written to {home.persona}, where you can change more.")


def _assistant_name(text: str) -> str:
    if "," in text or "." in text.rstrip("."):
        raise UsageError("Enter a name without commas and full stops.")
    return clean_persona_name(text)


def ask_time(home: Home, saved: list[str]) -> None:
    """The zone that people read times in, and when the assistant sleeps."""
    _ask_setting(home, saved, "home.timezone", "Your time zone?", load_settings(home).zone.key)
    question = f'When does it sleep (goes through the day and learns from it; "{_NEVER}": only manually)?'
    _ask_setting(home, saved, "sleep.at", question, load_settings(home).values.sleep.at or _NEVER)


def ask_budget(home: Home, saved: list[str]) -> None:
    """What models may cost."""
    caps = load_settings(home).values.budget
    print_text("The most that models may cost, in US dollars; 0 for no limit. At the limit the offline mode answers.")
    _ask_setting(home, saved, "budget.daily_usd", "Per day?", f"{caps.daily_usd:g}")
    _ask_setting(home, saved, "budget.monthly_usd", "Per month?", f"{caps.monthly_usd:g}")


def _ask_setting(home: Home, saved: list[str], key: str, question: str, default: str) -> None:
    """Ask for one setting; what is another value than the one in force is written at once."""

    def write(answer: str) -> list[str]:
        if answer == default:
            return []
        value = parse_setting_text(key, "" if answer == _NEVER else answer)
        try:
            changes = change_config_file(home, lambda text: set_key(text or CONFIG_HEADER, key, value))
        except SettingsError as error:
            raise settings_refusal(home, key, error.problems) from None
        return print_changes(home, changes)

    saved += prompt_until_valid(question, default, write)


def ask_bridge(home: Home, saved: list[str]) -> None:
    """A network on which the owner talks to it, beside this terminal."""
    name = prompt_choice("Also talk to it on a network?", _BRIDGES, _NO_BRIDGE)
    if name != _NO_BRIDGE:
        from assistant.cli.bridge.command import set_up_bridge  # the networks are loaded where one is set up

        with _failure_printed():
            set_up_bridge(home, name, BridgeOptions(), saved, waits=True)


def ask_service(home: Home, saved: list[str]) -> None:
    """Have the service manager of this machine run it."""
    manager = detect_service_manager()
    if not manager:
        print_text("Neither systemd nor launchd runs this machine; `assistant run` runs it in the foreground.")
        return
    from assistant.cli.service.command import service  # only where there is a manager

    offer_service(manager, saved, lambda: service.main(["install"], standalone_mode=False))


def offer_service(manager: str, saved: list[str], install: Callable[[], object]) -> None:
    """Ask, and install where it is wanted; what hinders that hinders nothing else."""
    choices = {"yes": f"{manager} starts it with the machine, and restarts it if it fails", "no": "not now"}
    if prompt_choice("Run it as a service?", choices, "no") == "yes":
        with _failure_printed():
            install()
            saved.append("the service")


@contextlib.contextmanager
def _failure_printed() -> Iterator[None]:
    try:
        yield
    except AssistantError as error:
        print_text(str(error))


# Each adds to the list what it changed, as soon as it is on the disk.
SetupStep = Callable[[Home, list[str]], None]
STEPS: dict[str, tuple[str, SetupStep]] = {
    "model": ("Model", ask_model),
    "persona": ("Names", ask_names),
    "time": ("Time", ask_time),
    "budget": ("Budget", ask_budget),
    "bridge": ("Bridge", ask_bridge),
    "service": ("Service", ask_service),
}


@click.command()
@click.argument("steps", nargs=-1, type=click.Choice(list(STEPS)))
@click.pass_context
def setup(context: click.Context, steps: Sequence[str]) -> None:
    """Set the assistant up: model, names, time, budget, bridge, service; or only the named STEPS.

    You can run it again at any time: current values are shown in brackets. Answers may be piped in, line by line.

    > assistant setup
    > assistant setup model
    > printf 'offline\\n' | assistant setup model
    """
    configure_logging("error")
    home = home_from_environment()
    print_text(f"Setting up the assistant in {home.path}. {_HOW}")
    saved: list[str] = []
    for name in steps or STEPS:
        title, step = STEPS[name]
        print_text(f"\n{title}")
        try:
            step(home, saved)
        except StepSkipped:
            print_text("Skipped.")
        except (click.Abort, KeyboardInterrupt):
            print_text(f"\nStopped. {_describe_saved(saved)} `assistant setup {name}` continues from here.")
            context.exit(EXIT_INTERRUPTED)
    print_text(f"\n{_describe_saved(saved)}\n{_describe_next(home, saved)}")


def _describe_saved(saved: list[str]) -> str:
    names = ", ".join(dict.fromkeys(saved))
    return f"Saved: {names}." if names else "Nothing was changed."


def _describe_next(home: Home, saved: Sequence[str]) -> str:
    if is_home_served(home.path):
        return (
            describe_when_effective(saved) if saved else "The assistant is running: `assistant chat` to talk with it."
        )
    return (
        "Next: `assistant chat` to talk, `assistant run` to keep it running (it sleeps at night), `assistant status` "
        "to see how it is. `assistant config show` lists everything else."
    )
