"""What each network needs to know, asked of a person, or given in a script: nothing is kept here."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field, replace
from functools import partial

from assistant.cli.asking import ask, choose, unusable
from assistant.cli.logs import log_to_stderr
from assistant.cli.plain import say
from assistant.cli.stored import opened
from assistant.core.bridge_api import DeviceLogin
from assistant.core.errors import UsageError
from assistant.settings.config_text import set_key
from assistant.settings.home import Home
from assistant.settings.layers import environment_variable
from assistant.settings.secrets import IN_FILE, IN_KEYRING
from assistant.settings.settings import Settings, settings_problems
from assistant.wire import bridge_setup

_OURS = ("default.toml", IN_FILE, IN_KEYRING)
_BOTFATHER = (
    "A bot of your own talks for the assistant. In Telegram, write /newbot to @BotFather, choose its names, and copy "
    "the token that it answers with."
)
_ACCOUNT = (
    "The assistant needs an account of its own on a Matrix homeserver: register one there, as for a person, and not "
    "with your own account."
)
_LOGINS = {
    "password": "its password, used once for a device of its own, and not kept",
    "token": "an access token of a device that was made for it",
}


@dataclass(frozen=True, slots=True)
class Given:
    """What the command line said; "" for what is to be asked, or found out."""

    token: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    user: str = ""
    homeserver: str = ""
    owner: str = ""
    in_file: bool = False

    @property
    def asks(self) -> bool:
        """Whether a person is there to answer."""
        return not (self.token or self.password)


@dataclass(frozen=True, slots=True)
class Answers:
    """What is to be set in the network's section, and its token, "" for the one that is set already. `anew`: it is
    another account than before, so that how far the one before had come means nothing. `owner`: what the network calls
    the account of whoever answers, "" where a code is to tell."""

    keys: dict[str, str] = field(default_factory=dict)
    token: str = field(default="", repr=False)
    anew: bool = False
    owner: str = ""


def of(name: str, home: Home, settings: Settings, given: Given) -> Answers:
    """Raises `LeftOut`, `click.Abort`, `UsageError`, `BridgeError`."""
    place = _elsewhere(name, settings)
    if place and not given.asks:
        raise UsageError(f"{place} has {name}.token, and it wins. Nothing was changed; take it away there first.")
    if place:
        say(f"{place} has {name}.token: that is used, and is not changed.")
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


def _telegram(settings: Settings, given: Given, *, fixed: bool) -> Answers:
    if fixed:
        return Answers(owner=given.owner)
    known = settings.values.telegram.token.get_secret_value()

    def use(answer: str) -> str:
        return "" if known and not answer else _bot_token(answer)

    if given.token:
        token = use(given.token)
    else:
        say(_BOTFATHER)
        token = ask("Token (it is not shown)", "", use, shown="the one that is set" if known else "", secret=True)
    return Answers(token=token, anew=bool(known and token) and _bot_of(known) != _bot_of(token), owner=given.owner)


def _bot_token(text: str) -> str:
    if not re.fullmatch(r"\d+:\S+", text):
        raise UsageError("That is no token of a bot: it is a number, a colon, and letters. @BotFather gives it.")
    return text


def _bot_of(token: str) -> str:
    """Its number, which is in its token."""
    return token.partition(":")[0]


# -------------------------------------------------------------------------------------------------------------- matrix


def _matrix(home: Home, settings: Settings, given: Given, *, fixed: bool) -> Answers:
    known = settings.values.matrix
    if given.asks:
        say(_ACCOUNT)
    user = _user(home, known.user, given)
    moved = user != known.user
    homeserver = _homeserver(home, user, "" if moved else known.homeserver, given)
    keys = {"homeserver": homeserver, "user": user}
    answers = Answers(keys, anew=moved and bool(known.user), owner=_owner(home, settings, given))
    if fixed:
        return answers
    login = _login(homeserver, user, given, is_set=bool(known.token.get_secret_value()) and not moved)
    if login is None:
        return answers
    return replace(answers, keys={**keys, "user": login.user, "device": login.device}, token=login.token)


def _owner(home: Home, settings: Settings, given: Given) -> str:
    """Nobody else's invitation would be accepted."""
    if given.owner or not given.asks:
        return given.owner
    return ask("Your own account, as in @ada:example.org", _owners_account(settings), partial(_account, home))


def _owners_account(settings: Settings) -> str:
    """The one that is known already."""
    if not (settings.home.path / "script.db").exists():
        return ""
    with opened(settings) as stores:
        known = [one for person in stores.people.all() if person.role == "owner" for one in person.identities]
    log_to_stderr("error")
    return next((one.sender for one in known if one.bridge == "matrix"), "")


def _user(home: Home, known: str, given: Given) -> str:
    if given.user or not given.asks:
        return _account(home, given.user or known)
    return ask("The assistant's account, as in @nocturne:example.org", known, partial(_account, home))


def _account(home: Home, answer: str) -> str:
    if not answer:
        raise UsageError("An account looks like @nocturne:example.org.")
    return _valid(home, "matrix.user", answer)


def _homeserver(home: Home, user: str, known: str, given: Given) -> str:
    def use(answer: str) -> str:
        return _valid(home, "matrix.homeserver", answer.rstrip("/"))

    if given.homeserver:
        return use(given.homeserver)
    found = known or asyncio.run(bridge_setup.homeserver_of(user.partition(":")[2]))
    return ask("Its homeserver", found, use) if given.asks else use(found)


def _login(homeserver: str, user: str, given: Given, *, is_set: bool) -> DeviceLogin | None:
    """None: with the token that is set."""
    if given.password:
        return asyncio.run(bridge_setup.matrix_login(homeserver, user, given.password))
    if given.token:
        return asyncio.run(bridge_setup.matrix_device(homeserver, user, given.token))
    choices = {**({"set": "as it does already"} if is_set else {}), **_LOGINS}
    match choose("How does it log in?", choices, next(iter(choices))):
        case "set":
            return None
        case "password":
            password = ask("Password (it is not shown, and not kept)", "", _needed, secret=True)
            return asyncio.run(bridge_setup.matrix_login(homeserver, user, password))
        case _:
            token = ask("Access token (it is not shown)", "", _needed, secret=True)
            return asyncio.run(bridge_setup.matrix_device(homeserver, user, token))


def _needed(answer: str) -> str:
    if not answer:
        raise UsageError("It cannot be empty; - leaves this out.")
    return answer


def _valid(home: Home, key: str, answer: str) -> str:
    """`answer`, where the settings take it. Raises `UsageError`."""
    if problems := settings_problems(home, set_key("", key, answer)):
        raise unusable(home.config, [key], problems)
    return answer
