"""What each network needs to know, asked of a person or given in a script, and keeping it or taking it away again.

What always holds: the token and the settings are kept both or neither; where the settings are refused, or somebody
presses Ctrl-C in between, the token that was there before is put back. Asking keeps nothing.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field, replace

from pydantic import SecretStr

from assistant.bridges import configured as networks
from assistant.cli.bridge.mailbox import ask_mailbox_login, ask_verifier, explain_own_mailbox
from assistant.cli.config.change import change_config_file, check_answer, print_changes, store_secret
from assistant.cli.home_stores import open_home_stores
from assistant.cli.open_link import run_once
from assistant.cli.output import print_remark, print_text
from assistant.cli.prompts import prompt_choice, prompt_until_valid
from assistant.core.bridge_api import DeviceLogin
from assistant.core.dataclass import dataclass
from assistant.core.errors import UsageError
from assistant.settings.config_text import CONFIG_HEADER, remove_key, set_key
from assistant.settings.home import Home
from assistant.settings.layers import environment_variable
from assistant.settings.secrets import IN_FILE, IN_KEYRING, read_stored_secrets
from assistant.settings.sections import SETTING_FIELDS
from assistant.settings.settings import SYSTEM_KEYRING, Settings, load_settings
from assistant.store.home.config_file import HomeSecretStore
from assistant.wire.stores import Stores

_OUR_PLACES = ("default.toml", IN_FILE, IN_KEYRING)
_BOTFATHER = (
    "The assistant talks through a bot of your own. In Telegram, send /newbot to @BotFather, choose names, and copy "
    "the token from its reply."
)
_DISCORD_BOT = (
    "The assistant talks through a Discord bot of your own. Make one at https://discord.com/developers/applications as "
    "the page that `assistant docs discord` shows, turn on Message Content Intent, and copy its token."
)
_SLACK_APP = (
    "The assistant talks through a Slack app of your own. Make one at https://api.slack.com/apps as the page "
    "`assistant docs slack` shows, install it to your workspace, and copy its two tokens."
)
_MATRIX_ACCOUNT = (
    "The assistant needs its own account on a Matrix homeserver. Register one there as for a person; do not use your "
    "own account."
)
_LOGINS = {
    "password": "its password; used once to add a device, and not stored",
    "token": "an access token of a device that you added for it",
}


@dataclass(frozen=True, slots=True)
class BridgeOptions:
    """The command line; "" for what is to be asked, or found out."""

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
    """What is to be set of a network."""

    keys: dict[str, str] = field(default_factory=dict)  # of its section
    token: str = field(default="", repr=False)  # "" for the one that is set already
    anew: bool = False  # another account than before, so that how far the one before had come means nothing
    owner: str = ""  # the person's own account there; "" where a code is to tell


def ask_bridge_answers(home: Home, name: str, settings: Settings, options: BridgeOptions) -> BridgeAnswers:
    """Raises `StepSkipped`, `click.Abort`, `UsageError`, `BridgeError`."""
    key = f"{name}.token"
    origin, token = settings.origins[key], getattr(settings.values, name).token.get_secret_value()
    is_elsewhere = bool(token) and origin not in (*_OUR_PLACES, str(home.config))
    if is_elsewhere:
        place = f"The environment ({origin})" if origin == environment_variable(key) else f"The {origin}"
        if not options.is_interactive:
            raise UsageError(
                f"{place} has {key}, which overrides this one. Nothing was changed; remove it there first."
            )
        print_text(f"{place} has {key}; it is used and stays as it is.")
    ask = {
        "telegram": _ask_telegram,
        "matrix": _ask_matrix,
        "discord": _ask_discord,
        "slack": _ask_slack,
        "mail": _ask_mail,
    }
    return ask[name](home, settings, options, is_elsewhere)


def _ask_telegram(home: Home, settings: Settings, options: BridgeOptions, token_is_elsewhere: bool) -> BridgeAnswers:
    wrong = "That is not a bot token. It looks like 123456:ABC-def; @BotFather sends it."
    form = _TokenForm(r"\d+:\S+", ":", wrong, _BOTFATHER)
    return _ask_bot_token(form, settings.values.telegram.token, options, token_is_elsewhere)


def _ask_matrix(home: Home, settings: Settings, options: BridgeOptions, token_is_elsewhere: bool) -> BridgeAnswers:
    current = settings.values.matrix

    def check_account(answer: str) -> str:
        if not answer:
            raise UsageError("An account looks like @nocturne:example.org.")
        return check_answer(home, "matrix.user", answer)

    def check_homeserver(answer: str) -> str:
        return check_answer(home, "matrix.homeserver", answer.rstrip("/"))

    user, owner = options.user or current.user, options.owner
    if options.is_interactive:
        print_text(_MATRIX_ACCOUNT)
    if options.is_interactive and not options.user:
        user = prompt_until_valid("The assistant's account, as in @nocturne:example.org", user, check_account)
    else:
        user = check_account(user)
    moved = user != current.user
    if options.homeserver:
        homeserver = check_homeserver(options.homeserver)
    else:
        default = "" if moved else current.homeserver
        default = default or asyncio.run(networks.find_homeserver(user.partition(":")[2]))
        ask = options.is_interactive
        homeserver = (
            prompt_until_valid("Its homeserver", default, check_homeserver) if ask else check_homeserver(default)
        )
    if options.is_interactive and not owner:
        # Nobody else's invitation would be accepted.
        owner = prompt_until_valid(
            "Your own account, as in @ada:example.org", _linked_matrix_account(settings), check_account
        )
    answers = BridgeAnswers({"homeserver": homeserver, "user": user}, anew=moved and bool(current.user), owner=owner)
    if token_is_elsewhere:
        return answers
    login = _log_in(homeserver, user, options, is_set=bool(current.token.get_secret_value()) and not moved)
    if login is None:
        return answers
    return replace(answers, keys={**answers.keys, "user": login.user, "device": login.device}, token=login.token)


def _ask_discord(home: Home, settings: Settings, options: BridgeOptions, token_is_elsewhere: bool) -> BridgeAnswers:
    wrong = "That is not a bot's token. It has three parts with dots between them."
    form = _TokenForm(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+", ".", wrong, _DISCORD_BOT)
    return _ask_bot_token(form, settings.values.discord.token, options, token_is_elsewhere)


@dataclass(frozen=True, slots=True)
class _TokenForm:
    """What a bot's token looks like."""

    pattern: str
    after_number: str  # what ends the bot's number in it
    error: str
    where: str  # how one gets a token


def _ask_bot_token(form: _TokenForm, stored: SecretStr, options: BridgeOptions, is_elsewhere: bool) -> BridgeAnswers:
    if is_elsewhere:
        return BridgeAnswers(owner=options.owner)
    current = stored.get_secret_value()

    def parse(answer: str) -> str:
        if not (current and not answer) and not re.fullmatch(form.pattern, answer):
            raise UsageError(form.error)
        return answer

    if options.token:
        token = parse(options.token)
    else:
        print_text(form.where)
        shown = "the current one" if current else ""
        token = prompt_until_valid("Token (not shown)", "", parse, shown=shown, secret=True)
    # A token without its secret half: the number of a bot.
    before, now = (it.partition(form.after_number)[0] for it in (current, token))
    return BridgeAnswers(token=token, anew=bool(current and token) and before != now, owner=options.owner)


def _ask_slack(home: Home, settings: Settings, options: BridgeOptions, token_is_elsewhere: bool) -> BridgeAnswers:
    """Both tokens are one secret, kept or replaced together."""
    if token_is_elsewhere:
        return BridgeAnswers(owner=options.owner)
    current = settings.values.slack.token.get_secret_value()

    def parse(answer: str, kind: str, where: str) -> str:
        if not (current and not answer) and not re.fullmatch(rf"{kind}-[A-Za-z0-9_-]+", answer):
            raise UsageError(f"That is not the token. It begins with {kind}-; the app's page has it under {where}.")
        return answer

    def parse_bot(answer: str) -> str:
        return parse(answer, "xoxb", "OAuth & Permissions")

    def parse_app(answer: str) -> str:
        return parse(answer, "xapp", "Basic Information, App-Level Tokens")

    if options.token:
        bot, _, app = options.token.partition(" ")
        bot, app = parse_bot(bot), parse_app(app.strip())
    else:
        print_text(_SLACK_APP)
        shown = "the current one" if current else ""
        bot = prompt_until_valid("Bot token (not shown)", "", parse_bot, shown=shown, secret=True)
        app = prompt_until_valid("App token (not shown)", "", parse_app, shown=shown, secret=True)
    before = current.partition(" ")
    tokens = f"{bot or before[0]} {app or before[2]}" if bot or app else ""
    # The workspace's number is in the bot's token.
    is_other = bool(current and bot) and current.split("-")[:2] != bot.split("-")[:2]
    return BridgeAnswers(token=tokens, anew=is_other, owner=options.owner)


def _ask_mail(home: Home, settings: Settings, options: BridgeOptions, token_is_elsewhere: bool) -> BridgeAnswers:
    current = settings.values.mail
    if options.is_interactive:
        explain_own_mailbox()
    has_password = bool(current.token.get_secret_value())
    mailbox = ask_mailbox_login(
        home,
        "mail",
        current,
        address=options.user,
        password=options.password or options.token,
        has_password=has_password,
    )
    verifier = ask_verifier(home, settings, mailbox, asks=options.is_interactive)
    moved = bool(current.address) and mailbox.keys["address"] != current.address
    keys = {**mailbox.keys, "verified_by": verifier}
    return BridgeAnswers(keys, "" if token_is_elsewhere else mailbox.password, moved, options.owner.lower())


def _linked_matrix_account(settings: Settings) -> str:
    """The owner's, where it is known already."""
    if not (settings.home.path / "script.db").exists():
        return ""
    with open_home_stores(settings) as stores:
        return next(iter(owner_accounts(stores, "matrix")), "")


def owner_accounts(stores: Stores, name: str) -> list[str]:
    """Return the owner's accounts on that network; none before pairing."""
    owners = [person for person in stores.people.list_people() if person.role == "owner"]
    return [it.sender for person in owners for it in person.identities if it.bridge == name]


def _log_in(homeserver: str, user: str, options: BridgeOptions, *, is_set: bool) -> DeviceLogin | None:
    """None: with the token that is set."""
    password, token = options.password, options.token
    if options.is_interactive:
        choices = {**({"set": "as now"} if is_set else {}), **_LOGINS}
        match prompt_choice("How does it log in?", choices, next(iter(choices))):
            case "set":
                return None
            case "password":
                password = prompt_until_valid("Password (not shown, not stored)", "", _require_answer, secret=True)
            case _:
                token = prompt_until_valid("Access token (not shown)", "", _require_answer, secret=True)
    if password:
        return asyncio.run(networks.matrix_login(homeserver, user, password))
    return asyncio.run(networks.find_matrix_device(homeserver, user, token))


def _require_answer(answer: str) -> str:
    if not answer:
        raise UsageError("It cannot be empty; - skips this.")
    return answer


# ------------------------------------------------------------------------------------------------- keeping and removing


def save_bridge_answers(home: Home, name: str, answers: BridgeAnswers, *, in_file: bool) -> list[str]:
    """Keep the answers and turn the bridge on; what became different. Raises `SettingsError`, `StoreError`."""
    key = f"{name}.token"

    def edit(text: str) -> str:
        text = text or CONFIG_HEADER
        if answers.token:
            # One that stands there would be in plain sight beside the one that is kept elsewhere.
            text = remove_key(text, key)
        for setting, value in answers.keys.items():
            text = set_key(text, f"{name}.{setting}", value)
        return set_key(text, f"{name}.enabled", True)

    if not answers.token:
        return print_changes(home, change_config_file(home, edit))
    with _secret_restored(home, key):
        store_secret(home, key, answers.token, in_file=in_file)
        changes = change_config_file(home, edit)
    return [key, *print_changes(home, changes)]


@contextmanager
def _secret_restored(home: Home, name: str) -> Iterator[None]:
    """Whatever ends this early leaves the secret as it was before."""
    store = HomeSecretStore(home.secrets)
    before = {secret.name: secret for secret in read_stored_secrets(home.secrets, SYSTEM_KEYRING).found}.get(name)
    try:
        yield
    except BaseException:
        if before is None:
            store.remove(name)
        else:
            store.put(name, before.value.get_secret_value(), in_file=before.origin == IN_FILE)
        raise


def has_bridge_settings(settings: Settings, name: str) -> bool:
    """Whether anybody set anything of the bridge."""
    return any(key.startswith(f"{name}.") and origin != "default.toml" for key, origin in settings.origins.items())


def remove_bridge(settings: Settings, name: str) -> bool:
    """Take a bridge away: first its settings, so that whatever comes in between leaves one that is off. Returns whether
    there was any."""
    home = settings.home

    def edit(text: str) -> str:
        for key in SETTING_FIELDS:
            text = remove_key(text, key) if key.startswith(f"{name}.") else text
        return text

    changed = print_changes(home, change_config_file(home, edit))
    had_secret = HomeSecretStore(home.secrets).remove(f"{name}.token")
    if had_secret:
        print_text(f"{name}.token was removed.")
    left = load_settings(home)
    if getattr(left.values, name).enabled:
        raise UsageError(f"{left.origins[f'{name}.enabled']} still turns {name} on; remove that too.")
    if (home.path / "script.db").exists():
        # Also where nothing was kept: an earlier removal may have been cut off before this.
        print_text(run_once(left, ["bridge", "remove", name]).text)
    if not changed and not had_secret:
        print_remark(f"{name} is not set up, so nothing was removed.")
        return False
    print_text(f"{name} is removed. Your account there stays linked; `assistant people unlink` unlinks it.")
    return True
