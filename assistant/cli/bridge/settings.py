"""What each network needs to know, asked of a person or given in a script, and keeping it or taking it away again.

What always holds: the token and the settings are kept both or neither; where the settings are refused, or somebody
presses Ctrl-C in between, the token that was there before is put back. Asking keeps nothing.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from assistant.bridges import configured as bridge_setup
from assistant.cli.config import secrets as secret
from assistant.cli.config.change import change_config_file, print_changes
from assistant.cli.home_stores import open_home_stores
from assistant.cli.link import run_once
from assistant.cli.logging_setup import configure_logging
from assistant.cli.output import print_remark, print_text
from assistant.cli.prompts import prompt_choice, prompt_until_valid, settings_refusal
from assistant.core.bridge_api import DeviceLogin
from assistant.core.errors import UsageError
from assistant.settings.config_text import CONFIG_HEADER, SettingChange, remove_key, set_key
from assistant.settings.home import Home
from assistant.settings.layers import environment_variable
from assistant.settings.secrets import IN_FILE, IN_KEYRING, read_stored_secrets
from assistant.settings.sections import SETTING_FIELDS
from assistant.settings.settings import SYSTEM_KEYRING, Settings, load_settings, settings_problems
from assistant.store.home.secrets import HomeSecretStore

_OURS = ("default.toml", IN_FILE, IN_KEYRING)
_BOTFATHER = (
    "The assistant talks through a bot of your own. In Telegram, send /newbot to @BotFather, choose names, and copy "
    "the token from its reply."
)
_ACCOUNT = (
    "The assistant needs its own account on a Matrix homeserver. Register one there as for a person; do not use your "
    "own account."
)
_LOGINS = {
    "password": "its password; used once to add a device, and not stored",
    "token": "an access token of a device that you added for it",
}


@dataclass(frozen=True, slots=True)
class BridgeOptions:
    """What the command line said; "" for what is to be asked, or found out."""

    token: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    user: str = ""
    homeserver: str = ""
    owner: str = ""
    in_file: bool = False

    @property
    def is_interactive(self) -> bool:
        """Whether a person is there to answer."""
        return not (self.token or self.password)


@dataclass(frozen=True, slots=True)
class BridgeAnswers:
    """What is to be set in the network's section, and its token, "" for the one that is set already. `anew`: it is
    another account than before, so that how far the one before had come means nothing. `owner`: what the network calls
    the account of whoever answers, "" where a code is to tell."""

    keys: dict[str, str] = field(default_factory=dict)
    token: str = field(default="", repr=False)
    anew: bool = False
    owner: str = ""


def ask_bridge_answers(name: str, home: Home, settings: Settings, given: BridgeOptions) -> BridgeAnswers:
    """Raises `StepSkipped`, `click.Abort`, `UsageError`, `BridgeError`."""
    place = _elsewhere(name, settings)
    if place and not given.is_interactive:
        raise UsageError(
            f"{place} has {name}.token, which overrides this one. Nothing was changed; remove it there first."
        )
    if place:
        print_text(f"{place} has {name}.token; it is used and stays as it is.")
    match name:
        case "telegram":
            return _telegram(settings, given, fixed=bool(place))
        case _:
            return _matrix(home, settings, given, fixed=bool(place))


def _elsewhere(name: str, settings: Settings) -> str:
    """The place outside this home that the token comes from, in words; "" where there is none."""
    key = f"{name}.token"
    origin = settings.origins[key]
    if not getattr(settings.values, name).token.get_secret_value() or origin in (*_OURS, str(settings.home.config)):
        return ""
    return f"The environment ({origin})" if origin == environment_variable(key) else f"The {origin}"


# ------------------------------------------------------------------------------------------------------------ telegram


def _telegram(settings: Settings, given: BridgeOptions, *, fixed: bool) -> BridgeAnswers:
    if fixed:
        return BridgeAnswers(owner=given.owner)
    known = settings.values.telegram.token.get_secret_value()

    def use(answer: str) -> str:
        return "" if known and not answer else _bot_token(answer)

    if given.token:
        token = use(given.token)
    else:
        print_text(_BOTFATHER)
        token = prompt_until_valid("Token (not shown)", "", use, shown="the current one" if known else "", secret=True)
    return BridgeAnswers(
        token=token, anew=bool(known and token) and _bot_of(known) != _bot_of(token), owner=given.owner
    )


def _bot_token(text: str) -> str:
    if not re.fullmatch(r"\d+:\S+", text):
        raise UsageError("That is not a bot token. It looks like 123456:ABC-def; @BotFather sends it.")
    return text


def _bot_of(token: str) -> str:
    """Its number, which is in its token."""
    return token.partition(":")[0]


# -------------------------------------------------------------------------------------------------------------- matrix


def _matrix(home: Home, settings: Settings, given: BridgeOptions, *, fixed: bool) -> BridgeAnswers:
    known = settings.values.matrix
    if given.is_interactive:
        print_text(_ACCOUNT)
    user = _user(home, known.user, given)
    moved = user != known.user
    homeserver = _homeserver(home, user, "" if moved else known.homeserver, given)
    keys = {"homeserver": homeserver, "user": user}
    answers = BridgeAnswers(keys, anew=moved and bool(known.user), owner=_owner(home, settings, given))
    if fixed:
        return answers
    login = _login(homeserver, user, given, is_set=bool(known.token.get_secret_value()) and not moved)
    if login is None:
        return answers
    return replace(answers, keys={**keys, "user": login.user, "device": login.device}, token=login.token)


def _owner(home: Home, settings: Settings, given: BridgeOptions) -> str:
    """Nobody else's invitation would be accepted."""
    if given.owner or not given.is_interactive:
        return given.owner
    return prompt_until_valid(
        "Your own account, as in @ada:example.org", _owners_account(settings), partial(_account, home)
    )


def _owners_account(settings: Settings) -> str:
    """The one that is known already."""
    if not (settings.home.path / "script.db").exists():
        return ""
    with open_home_stores(settings) as stores:
        known = [one for person in stores.people.list_people() if person.role == "owner" for one in person.identities]
    configure_logging("error")
    return next((one.sender for one in known if one.bridge == "matrix"), "")


def _user(home: Home, known: str, given: BridgeOptions) -> str:
    if given.user or not given.is_interactive:
        return _account(home, given.user or known)
    return prompt_until_valid("The assistant's account, as in @nocturne:example.org", known, partial(_account, home))


def _account(home: Home, answer: str) -> str:
    if not answer:
        raise UsageError("An account looks like @nocturne:example.org.")
    return _valid(home, "matrix.user", answer)


def _homeserver(home: Home, user: str, known: str, given: BridgeOptions) -> str:
    def use(answer: str) -> str:
        return _valid(home, "matrix.homeserver", answer.rstrip("/"))

    if given.homeserver:
        return use(given.homeserver)
    found = known or asyncio.run(bridge_setup.find_homeserver(user.partition(":")[2]))
    return prompt_until_valid("Its homeserver", found, use) if given.is_interactive else use(found)


def _login(homeserver: str, user: str, given: BridgeOptions, *, is_set: bool) -> DeviceLogin | None:
    """None: with the token that is set."""
    if given.password:
        return asyncio.run(bridge_setup.matrix_login(homeserver, user, given.password))
    if given.token:
        return asyncio.run(bridge_setup.find_matrix_device(homeserver, user, given.token))
    choices = {**({"set": "as now"} if is_set else {}), **_LOGINS}
    match prompt_choice("How does it log in?", choices, next(iter(choices))):
        case "set":
            return None
        case "password":
            password = prompt_until_valid("Password (not shown, not stored)", "", _needed, secret=True)
            return asyncio.run(bridge_setup.matrix_login(homeserver, user, password))
        case _:
            token = prompt_until_valid("Access token (not shown)", "", _needed, secret=True)
            return asyncio.run(bridge_setup.find_matrix_device(homeserver, user, token))


def _needed(answer: str) -> str:
    if not answer:
        raise UsageError("It cannot be empty; - skips this.")
    return answer


def _valid(home: Home, key: str, answer: str) -> str:
    """`answer`, where the settings take it. Raises `UsageError`."""
    if problems := settings_problems(home, set_key("", key, answer)):
        raise settings_refusal(home.config, [key], problems)
    return answer


def save_bridge_answers(home: Home, name: str, answers: BridgeAnswers, *, in_file: bool) -> list[str]:
    """Keep the answers and turn the bridge on; what became different. Raises `SettingsError`, `StoreError`."""
    key = f"{name}.token"

    def edited(text: str) -> str:
        text = text or CONFIG_HEADER
        if answers.token:
            # One that stands there would be in plain sight beside the one that is kept elsewhere.
            text = remove_key(text, key)
        for setting, value in answers.keys.items():
            text = set_key(text, f"{name}.{setting}", value)
        return set_key(text, f"{name}.enabled", True)

    if not answers.token:
        return _told(home, change_config_file(home, edited))
    with _as_it_was(home, key):
        secret.store_secret(home, key, answers.token, in_file=in_file)
        done = change_config_file(home, edited)
    return [key, *_told(home, done)]


def has_bridge_settings(settings: Settings, name: str) -> bool:
    """Whether anybody set anything of the bridge."""
    return any(one.startswith(f"{name}.") and origin != "default.toml" for one, origin in settings.origins.items())


def remove_bridge(settings: Settings, name: str) -> None:
    """Take a bridge away: first its settings, so that whatever comes in between leaves one that is off."""
    home, key = settings.home, f"{name}.token"
    keys = [one for one in SETTING_FIELDS if one.startswith(f"{name}.")]

    def edited(text: str) -> str:
        for one in keys:
            text = remove_key(text, one)
        return text

    done = change_config_file(home, edited)
    _told(home, done)
    had_secret = HomeSecretStore(home.secrets).remove(key)
    if had_secret:
        print_text(f"{key} was removed.")
    left = load_settings(home)
    if getattr(left.values, name).enabled:
        raise UsageError(f"{left.origins[f'{name}.enabled']} still turns {name} on; remove that too.")
    if (home.path / "script.db").exists():
        # Also where nothing was kept: an earlier removal may have been cut off before this.
        print_text(run_once(left, ["bridge", "remove", name]).text)
    if not done and not had_secret:
        print_remark(f"{name} is not set up, so nothing was removed.")
        return
    print_text(f"{name} is removed. Your account there stays linked; `assistant people unlink` unlinks it.")


def _told(home: Home, done: list[SettingChange]) -> list[str]:
    print_changes(home, done)
    return [change.key for change in done]


@contextmanager
def _as_it_was(home: Home, name: str) -> Iterator[None]:
    """Whatever ends this early leaves the secret as it was before."""
    store = HomeSecretStore(home.secrets)
    before = {found.name: found for found in read_stored_secrets(home.secrets, SYSTEM_KEYRING).found}.get(name)
    try:
        yield
    except BaseException:
        if before is None:
            store.remove(name)
        else:
            store.put(name, before.value.get_secret_value(), in_file=before.origin == IN_FILE)
        raise
