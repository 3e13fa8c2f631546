"""`assistant config secret`: putting secrets where they are kept, and telling which there are. None is ever printed."""

from __future__ import annotations

import sys

import click

from assistant.cli.config.change import AFTER_RESTART_NOTE, describe_when_effective
from assistant.cli.output import is_utf8, print_json, print_remark, print_text
from assistant.core.errors import SettingsError, UsageError
from assistant.service.home_lock import is_home_served
from assistant.settings.home import Home, home_from_environment
from assistant.settings.layers import environment_variable
from assistant.settings.secrets import IN_FILE, IN_KEYRING, PROVIDER_KEYS, SECRET_NAMES, canonical_secret_name
from assistant.settings.sections import STRONG_TOKEN_LENGTH, is_weak_token
from assistant.settings.settings import Settings, load_settings
from assistant.store.home.secrets import HomeSecretStore

_ABOUT = {
    IN_KEYRING: "in the keyring of this machine",
    IN_FILE: "in secrets.toml of your data folder, readable by you alone (0600)",
}


@click.group()
def secret() -> None:
    """Store API keys, passwords and tokens. They are never printed.

    \b
    Example:
      assistant config secret set ANTHROPIC_API_KEY
      assistant config secret list
    """


@secret.command("set")
@click.argument("name")
@click.option("--file", "in_file", is_flag=True, help="Store it in secrets.toml, not in the keyring.")
def set_(name: str, in_file: bool) -> None:
    """Store the secret NAME: type it without echo, or pipe it in.

    It is stored in the keyring of the operating system if that works, else in secrets.toml (mode 0600).

    \b
    Example:
      assistant config secret set ANTHROPIC_API_KEY
      pass show anthropic | assistant config secret set ANTHROPIC_API_KEY --file
    """
    spelled = canonical_secret_name(name)
    home = home_from_environment()
    place = store_secret(home, spelled, _asked(spelled), in_file=in_file)
    if is_home_served(home.path):
        # The keyring is asked once, at the start.
        print_remark(describe_when_effective([spelled]) if place == IN_FILE else AFTER_RESTART_NOTE)


@secret.command("list")
@click.option("--json", "json_out", is_flag=True, help="Print a JSON array.")
def list_(json_out: bool) -> None:
    """List all secrets, and where each that is set comes from.

    \b
    Example:
      assistant config secret list
    """
    settings = load_settings()
    rows = [(name, _origin(settings, name)) for name in SECRET_NAMES]
    if json_out:
        print_json([{"name": name, "set": bool(origin), "origin": origin or None} for name, origin in rows])
    else:
        widest = max(len(name) for name in SECRET_NAMES)
        print_text("\n".join(f"{name:<{widest}}  {origin or 'not set'}" for name, origin in rows))
    for warning in settings.warnings:
        print_remark(warning)


@secret.command()
@click.argument("name")
def remove(name: str) -> None:
    """Remove the secret NAME from the keyring and from secrets.toml.

    One in the environment or in config.toml stays.

    \b
    Example:
      assistant config secret remove OPENAI_API_KEY
    """
    spelled = canonical_secret_name(name)
    home = home_from_environment()
    if not HomeSecretStore(home.secrets).remove(spelled):
        raise UsageError(f"{spelled} is neither in the keyring nor in secrets.toml. Nothing was changed.")
    print_text(f"{spelled} was removed.")
    if is_home_served(home.path):
        print_remark(AFTER_RESTART_NOTE)


def store_secret(home: Home, name: str, value: str, *, in_file: bool = False) -> str:
    """Keep a secret and say where; and what wins over it, where something does: `IN_KEYRING` or `IN_FILE`. Raises
    `UsageError` for what is none, `StoreError`."""
    if not value or not is_utf8(value):
        raise UsageError("A secret must be text (UTF-8) and not empty. Nothing was changed.")
    if name == "web.token" and is_weak_token(value):
        raise UsageError(
            f"This web.token could be guessed. Use a random one of {STRONG_TOKEN_LENGTH} characters or more. "
            "Nothing was changed; `assistant web token --new` makes one."
        )
    place = HomeSecretStore(home.secrets).put(name, value, in_file=in_file)
    print_text(f"{name} is {_ABOUT[place]}.")
    try:
        winner = _origin(load_settings(home), name)
    except SettingsError as error:
        print_remark("\n".join(error.problems))
    else:
        if winner not in ("", place):
            where = "The environment" if winner in (name, environment_variable(name)) else winner
            print_remark(f"{where} has another {name}, which overrides this one.")
    return place


def _origin(settings: Settings, name: str) -> str:
    """Where a secret that is in force was found; "" where none is."""
    origin = settings.origins.get(name, "")
    if name in PROVIDER_KEYS:
        return origin
    return origin if settings.values.value_of(name).get_secret_value() else ""


def _asked(name: str) -> str:
    if sys.stdin is not None and sys.stdin.isatty():
        value: str = click.prompt(name, hide_input=True, err=True)
        return value.strip()
    return sys.stdin.read().strip() if sys.stdin is not None else ""
