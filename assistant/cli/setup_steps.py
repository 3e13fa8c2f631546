"""The steps of `assistant setup` beside the model: names, time, budget, bridge, service."""

from __future__ import annotations

from collections.abc import Callable

from assistant.cli.asking import ask, choose, unusable
from assistant.cli.bridge_answers import Given
from assistant.cli.config_changing import changed, tell_changes
from assistant.cli.lazy import load
from assistant.cli.plain import say
from assistant.cli.service_managers import on_this_machine
from assistant.core.errors import AssistantError, SettingsError, UsageError
from assistant.settings.config_text import CONFIG_HEADER, SettingChange, set_key
from assistant.settings.home import Home
from assistant.settings.layers import parse_setting_text
from assistant.settings.persona import PersonaNames, clean_persona_name, parse_persona_names, replace_persona_names
from assistant.settings.settings import Settings, load_settings, shipped_config_dir
from assistant.wire import settings as wire_settings

NEVER = "never"
NO_BRIDGE = "no"
_BRIDGES = {
    "telegram": "a bot of your own, which is made in a minute",
    "matrix": "an account of its own on a homeserver; needs the `matrix` extra",
    NO_BRIDGE: "not now; `assistant bridge add` asks for it at any time",
}


def persona(home: Home, kept: list[str]) -> None:
    """Writes PERSONA.md: what the assistant is told of itself before each conversation."""
    file = wire_settings.persona_file(home)
    shipped = (shipped_config_dir() / "prompts" / "persona.md").read_text(encoding="utf-8")
    known = parse_persona_names(file.text() or shipped)

    def keep(names: PersonaNames) -> None:
        before, after = file.change(lambda text: replace_persona_names(text or shipped, names))
        if after != before:
            kept.append("PERSONA.md")

    person = ask("What are you called?", known.person, clean_persona_name)
    name = ask("What shall it be called?", known.assistant or "Nocturne", _name)
    keep(PersonaNames(name, person, known.manner))
    manner = ask("How shall it be, in a few words (dry, patient, formal, ...)?", known.manner, clean_persona_name)
    keep(PersonaNames(name, person, manner))
    say(f"{home.persona} says so; change there whatever else you like.")


def time(home: Home, kept: list[str]) -> None:
    """The zone that people read times in, and when the assistant sleeps."""
    zone = _settings(home).zone.key
    _setting(home, kept, "home.timezone", "Your time zone?", zone)
    at = _settings(home).values.sleep.at
    asked = f'When does it sleep, that is, go through the day and learn from it ("{NEVER}" for only by hand)?'
    _setting(home, kept, "sleep.at", asked, at or NEVER)


def budget(home: Home, kept: list[str]) -> None:
    """What models may cost."""
    caps = _settings(home).values.budget
    say("What models may cost at most, in US dollars; 0 for no limit. At the limit the offline model answers.")
    _setting(home, kept, "budget.daily_usd", "A day?", f"{caps.daily_usd:g}")
    _setting(home, kept, "budget.monthly_usd", "A month?", f"{caps.monthly_usd:g}")


def bridge(home: Home, kept: list[str]) -> None:
    """A network on which the owner talks to it, beside this terminal."""
    name = choose("Talk to it on a network, too?", _BRIDGES, NO_BRIDGE)
    if name != NO_BRIDGE:
        try:
            load("assistant.cli.bridge_adding:set_up")(home, name, Given(), kept, waits=True)
        except AssistantError as error:
            say(str(error))


def service(home: Home, kept: list[str]) -> None:
    """Have the service manager of this machine run it."""
    manager = on_this_machine()
    if manager:
        serve(manager, kept, lambda: load("assistant.cli.service:service").main(["install"], standalone_mode=False))
    else:
        say("Neither systemd nor launchd runs this machine; `assistant run` serves in the foreground.")


def serve(manager: str, kept: list[str], install: Callable[[], object]) -> None:
    """Ask, and install where it is wanted; what hinders that hinders nothing else."""
    choices = {"yes": f"{manager} starts it with the machine, and again should it end", "no": "leave it as it is"}
    if choose("Run it as a service?", choices, "no") == "yes":
        try:
            install()
        except AssistantError as error:
            say(str(error))
        else:
            kept.append("the service")


def _setting(home: Home, kept: list[str], key: str, question: str, default: str) -> None:
    """Ask for one setting; what is another value than the one in force is written at once."""

    def use(answer: str) -> list[SettingChange]:
        if answer == default:
            return []
        value = "" if answer == NEVER else answer
        return set_all(home, {key: value})

    done = ask(question, default, use)
    kept += [change.key for change in done]


def set_all(home: Home, answers: dict[str, str]) -> list[SettingChange]:
    """Write settings that were given as text, all or none, and say so. Raises `UsageError` for what is refused."""

    def edited(text: str) -> str:
        text = text or CONFIG_HEADER
        for key, answer in answers.items():
            text = set_key(text, key, parse_setting_text(key, answer))
        return text

    try:
        done = changed(home, edited)
    except SettingsError as error:
        raise unusable(home.config, answers, error.problems) from None
    tell_changes(home, done)
    return done


def _name(text: str) -> str:
    if "," in text or "." in text.rstrip("."):
        raise UsageError("A name without commas and full stops, please.")
    return clean_persona_name(text)


def _settings(home: Home) -> Settings:
    return load_settings(home)
