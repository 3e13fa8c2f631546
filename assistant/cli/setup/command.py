"""`assistant setup`: what an assistant has to know before it begins, asked in a conversation. The step that chooses
the model is `cli.setup.model`; names, time, budget, bridge and service are here.

Each step can be left out and asked again. What was answered is kept as it is answered; a step that is broken off in
the middle of a choice that needs more than one answer (who answers, and the key for it) changes nothing of that
choice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click

from assistant.cli.bridge.settings import BridgeOptions
from assistant.cli.config.change import change_config_file, describe_when_effective, print_changes
from assistant.cli.lazy import EXIT_INTERRUPTED
from assistant.cli.logging_setup import configure_logging
from assistant.cli.output import print_text
from assistant.cli.prompts import StepSkipped, prompt_choice, prompt_until_valid, settings_refusal
from assistant.cli.service.managers import detect_service_manager
from assistant.cli.setup import model as setup_model
from assistant.core.errors import AssistantError, SettingsError, UsageError
from assistant.service.home_lock import is_home_served
from assistant.settings.config_text import CONFIG_HEADER, SettingChange, set_key
from assistant.settings.home import Home, home_from_environment
from assistant.settings.layers import parse_setting_text
from assistant.settings.prompts import PersonaNames, clean_persona_name, parse_persona_names, replace_persona_names
from assistant.settings.settings import Settings, load_settings, shipped_config_dir
from assistant.store.home.config_file import ConfigFile

_HOW = "Enter keeps the value in brackets, - skips a step, Ctrl-C stops; your answers so far are saved."


def _saved(kept: list[str]) -> str:
    done = ", ".join(dict.fromkeys(kept))
    return f"Saved: {done}." if done else "Nothing was changed."


def _next(home: Home, kept: Sequence[str]) -> str:
    if is_home_served(home.path):
        return describe_when_effective(kept) if kept else "The assistant is running: `assistant chat` to talk with it."
    return (
        "Next: `assistant chat` to talk, `assistant run` to keep it running (it sleeps at night), `assistant status` "
        "to see how it is. `assistant config show` lists everything else."
    )


NEVER = "never"
NO_BRIDGE_CHOICE = "no"
_BRIDGES = {
    "telegram": "a bot of your own; making one takes a minute",
    "matrix": "its own account on a homeserver; needs the `matrix` extra",
    NO_BRIDGE_CHOICE: "not now; `assistant bridge add` sets one up later",
}


def ask_names(home: Home, kept: list[str]) -> None:
    """Writes PERSONA.md: what the assistant is told of itself before each conversation."""
    file = ConfigFile(home.persona)
    shipped = (shipped_config_dir() / "prompts" / "persona.md").read_text(encoding="utf-8")
    known = parse_persona_names(file.read() or shipped)

    def keep(names: PersonaNames) -> None:
        before, after = file.change(lambda text: replace_persona_names(text or shipped, names))
        if after != before:
            kept.append("PERSONA.md")

    person = prompt_until_valid("What is your name?", known.person, clean_persona_name)
    name = prompt_until_valid("What is the assistant's name?", known.assistant or "Nocturne", _name)
    keep(PersonaNames(name, person, known.manner))
    manner = prompt_until_valid(
        "Its manner, in a few words (dry, patient, formal, ...)?", known.manner, clean_persona_name
    )
    keep(PersonaNames(name, person, manner))
    print_text(f"Written to {home.persona}, where you can change more.")


def ask_time(home: Home, kept: list[str]) -> None:
    """The zone that people read times in, and when the assistant sleeps."""
    zone = _settings(home).zone.key
    _setting(home, kept, "home.timezone", "Your time zone?", zone)
    at = _settings(home).values.sleep.at
    asked = f'When does it sleep (goes through the day and learns from it; "{NEVER}": only manually)?'
    _setting(home, kept, "sleep.at", asked, at or NEVER)


def ask_budget(home: Home, kept: list[str]) -> None:
    """What models may cost."""
    caps = _settings(home).values.budget
    print_text("The most that models may cost, in US dollars; 0 for no limit. At the limit the offline mode answers.")
    _setting(home, kept, "budget.daily_usd", "Per day?", f"{caps.daily_usd:g}")
    _setting(home, kept, "budget.monthly_usd", "Per month?", f"{caps.monthly_usd:g}")


def ask_bridge(home: Home, kept: list[str]) -> None:
    """A network on which the owner talks to it, beside this terminal."""
    name = prompt_choice("Also talk to it on a network?", _BRIDGES, NO_BRIDGE_CHOICE)
    if name != NO_BRIDGE_CHOICE:
        try:
            from assistant.cli.bridge.add import set_up_bridge

            set_up_bridge(home, name, BridgeOptions(), kept, waits=True)
        except AssistantError as error:
            print_text(str(error))


def ask_service(home: Home, kept: list[str]) -> None:
    """Have the service manager of this machine run it."""
    manager = detect_service_manager()
    if manager:
        from assistant.cli.service.command import service

        offer_service(
            manager,
            kept,
            lambda: service.main(["install"], standalone_mode=False),
        )
    else:
        print_text("Neither systemd nor launchd runs this machine; `assistant run` runs it in the foreground.")


def offer_service(manager: str, kept: list[str], install: Callable[[], object]) -> None:
    """Ask, and install where it is wanted; what hinders that hinders nothing else."""
    choices = {"yes": f"{manager} starts it with the machine, and restarts it if it fails", "no": "not now"}
    if prompt_choice("Run it as a service?", choices, "no") == "yes":
        try:
            install()
        except AssistantError as error:
            print_text(str(error))
        else:
            kept.append("the service")


def _setting(home: Home, kept: list[str], key: str, question: str, default: str) -> None:
    """Ask for one setting; what is another value than the one in force is written at once."""

    def parse(answer: str) -> list[SettingChange]:
        if answer == default:
            return []
        value = "" if answer == NEVER else answer
        return write_settings(home, {key: value})

    done = prompt_until_valid(question, default, parse)
    kept += [change.key for change in done]


def write_settings(home: Home, answers: dict[str, str]) -> list[SettingChange]:
    """Write settings that were given as text, all or none, and say so. Raises `UsageError` for what is refused."""

    def edited(text: str) -> str:
        text = text or CONFIG_HEADER
        for key, answer in answers.items():
            text = set_key(text, key, parse_setting_text(key, answer))
        return text

    try:
        done = change_config_file(home, edited)
    except SettingsError as error:
        raise settings_refusal(home.config, answers, error.problems) from None
    print_changes(home, done)
    return done


def _name(text: str) -> str:
    if "," in text or "." in text.rstrip("."):
        raise UsageError("Enter a name without commas and full stops.")
    return clean_persona_name(text)


def _settings(home: Home) -> Settings:
    return load_settings(home)


# Each adds to the list what it changed, as soon as it is on the disk.
SetupStep = Callable[[Home, list[str]], None]
STEPS: dict[str, tuple[str, SetupStep]] = {
    "model": ("Model", setup_model.ask_model),
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

    \b
    Example:
      assistant setup
      assistant setup model
      printf 'offline\\n' | assistant setup model
    """
    configure_logging("error")
    home = home_from_environment()
    print_text(f"Setting up the assistant in {home.path}. {_HOW}")
    kept: list[str] = []
    for name in steps or STEPS:
        title, step = STEPS[name]
        print_text(f"\n{title}")
        try:
            step(home, kept)
        except StepSkipped:
            print_text("Skipped.")
        except (click.Abort, KeyboardInterrupt):
            print_text(f"\nStopped. {_saved(kept)} `assistant setup {name}` continues from here.")
            context.exit(EXIT_INTERRUPTED)
    print_text(f"\n{_saved(kept)}\n{_next(home, kept)}")
