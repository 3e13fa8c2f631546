"""`assistant setup`: what an assistant has to know before it begins, asked in a conversation.

Each step can be left out and asked again. What was answered is kept as it is answered; a step that is broken off in
the middle of a choice that needs more than one answer (who answers, and the key for it) changes nothing of that
choice. At the end the assistant answers a first message, over the way that every message takes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import click

from assistant.cli.bridge.settings import BridgeOptions
from assistant.cli.chat.answers import ask_and_wait, new_external_id
from assistant.cli.config.change import (
    change_config_file,
    describe_when_effective,
    print_changes,
    settings_refusal,
)
from assistant.cli.lazy import EXIT_INTERRUPTED
from assistant.cli.logging_setup import log_to_file
from assistant.cli.open_link import open_link, run_with_signals
from assistant.cli.output import print_markdown, print_prose
from assistant.cli.prompts import StepSkipped, asking, prompt_choice, prompt_until_valid
from assistant.cli.setup.answers import read_manner_answer, read_name_answer, read_setting_answer
from assistant.cli.setup.model import ask_model
from assistant.core.errors import AssistantError, SettingsError, UsageError
from assistant.core.sessions import MAIN_SESSION
from assistant.service.home_lock import is_home_served
from assistant.service.presence import detect_service_manager
from assistant.settings.config_text import CONFIG_HEADER, set_key
from assistant.settings.home import Home, home_from_environment
from assistant.settings.layers import parse_setting_text
from assistant.settings.prompts import PersonaNames, clean_persona_name, parse_persona_names, replace_persona_names
from assistant.settings.settings import load_settings, shipped_config_dir
from assistant.store.home.config_file import ConfigFile

_HOW = "Enter keeps the value in brackets, - skips a step, Ctrl-C stops; your answers so far are saved."

_NEVER = "never"
_NO_BRIDGE = "no"
_BRIDGES = {
    "telegram": "a bot of your own; making one takes a minute",
    "matrix": "its own account on a homeserver; needs the `matrix` extra",
    "discord": "a bot of your own; needs the `discord` extra",
    "slack": "an app of your own in a workspace; needs the `slack` extra",
    "mail": "a mailbox of its own; needs the `mail` extra",
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

    person = prompt_until_valid(
        "What is your name?", current.person, lambda text: clean_persona_name(read_name_answer(text))
    )
    name = prompt_until_valid("What is the assistant's name?", current.assistant or "Nocturne", _assistant_name)
    save(PersonaNames(name, person, current.manner))
    manner = prompt_until_valid(
        "Its manner, in a few words (dry, patient, formal, ...)?",
        current.manner,
        lambda text: clean_persona_name(read_manner_answer(text)),
    )
    save(PersonaNames(name, person, manner))
    print_prose(f"Written to {home.persona}, where you can change more.")


def _assistant_name(text: str) -> str:
    if "," in text or "." in text.rstrip("."):
        raise UsageError("Enter a name without commas and full stops.")
    return clean_persona_name(read_name_answer(text))


def ask_time(home: Home, saved: list[str]) -> None:
    """The zone that people read times in, and when the assistant sleeps."""
    _ask_setting(home, saved, "home.timezone", "Your time zone, or your city?", load_settings(home).zone.key)
    question = f'When does it sleep, to learn from the day ("{_NEVER}": only manually)?'
    _ask_setting(home, saved, "sleep.at", question, load_settings(home).values.sleep.at or _NEVER)


def ask_budget(home: Home, saved: list[str]) -> None:
    """What models may cost."""
    caps = load_settings(home).values.budget
    print_prose("The most that models may cost, in US dollars; 0 for no limit. At the limit the offline mode answers.")
    _ask_setting(home, saved, "budget.daily_usd", "Per day?", f"{caps.daily_usd:g}")
    _ask_setting(home, saved, "budget.monthly_usd", "Per month?", f"{caps.monthly_usd:g}")


def _ask_setting(home: Home, saved: list[str], key: str, question: str, default: str) -> None:
    """Ask for one setting; what is another value than the one in force is written at once."""

    def write(answer: str) -> list[str]:
        if answer == default:
            return []
        value = parse_setting_text(key, read_setting_answer(key, answer))
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
        print_prose("Neither systemd nor launchd runs this machine; `assistant run` runs it in the foreground.")
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
        print_prose(str(error))


_LAST_STEP = "reply"
_TEST_MESSAGE = "Hello!"


def ask_for_first_reply(home: Home, saved: list[str]) -> None:
    """A message over the whole way that messages take, and its answer. It stays in the conversation."""
    print_prose(f'You: "{_TEST_MESSAGE}"')
    settings = load_settings(home)
    results: list[Mapping[str, Any]] = []

    async def ask() -> None:
        async with open_link(settings) as link:
            await ask_and_wait(link, _TEST_MESSAGE, MAIN_SESSION, new_external_id(), results.append)

    try:
        run_with_signals(ask())
    except AssistantError as error:
        print_prose(f"There was no answer: {error}")
        return
    if (result := results[0])["error"]:
        print_prose(f"There was no answer: {result['error']}")
        return
    # A notice that says so has been printed.
    if settings.provider != "offline" and result["model"] == "offline" and not result["notices"]:
        print_prose(
            "The model could not be reached; this is what offline mode answers. `assistant doctor --call` says why."
        )
    print_markdown(result["reply"])


# Each adds to the list what it changed, as soon as it is on the disk.
SetupStep = Callable[[Home, list[str]], None]
STEPS: dict[str, tuple[str, SetupStep]] = {
    "model": ("Model", ask_model),
    "persona": ("Names", ask_names),
    "time": ("Time", ask_time),
    "budget": ("Budget", ask_budget),
    "bridge": ("Bridge", ask_bridge),
    "service": ("Service", ask_service),
    _LAST_STEP: ("A first reply", ask_for_first_reply),
}


@click.command()
@click.argument("steps", nargs=-1, type=click.Choice(list(STEPS)), metavar="[STEPS]...")
@click.option("--once", is_flag=True, help="Stop at an answer that is refused, instead of asking again.")
@click.pass_context
def setup(context: click.Context, steps: Sequence[str], once: bool) -> None:
    """Set the assistant up, or only the named STEPS of: model, persona, time, budget, bridge, service, reply.

    You can run it again at any time: current values are shown in brackets. Answers may be piped in, line by line.

    > assistant setup
    > assistant setup model
    > printf 'offline\\n' | assistant setup model
    > printf '2\\n40\\n' | assistant setup budget --once
    """
    home = home_from_environment()
    log_to_file(home.program_log)
    print_prose(f"Setting up the assistant in {home.path}. {_HOW}")
    saved: list[str] = []
    for name in steps or STEPS:
        if name == _LAST_STEP and not (steps or saved):
            continue
        title, step = STEPS[name]
        print_prose(f"\n{title}")
        try:
            with asking(again=not once):
                step(home, saved)
        except StepSkipped:
            print_prose("Skipped.")
        except (click.Abort, KeyboardInterrupt):
            print_prose(f"\nStopped. {_describe_saved(saved)} `assistant setup {name}` continues from here.")
            context.exit(EXIT_INTERRUPTED)
    print_prose(f"\n{_describe_saved(saved)}\n{_describe_next(home, saved)}")


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
