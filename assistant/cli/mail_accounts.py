"""Which account of the settings `assistant mail add` changes, and how it and its password are saved and removed."""

from __future__ import annotations

import json
from typing import Any

from assistant.cli.config.change import change_config_file, store_secret
from assistant.core.checked_tables import InvalidTable, fields_of
from assistant.core.errors import UsageError
from assistant.settings.calendar_sources import read_passwords
from assistant.settings.config_text import CONFIG_HEADER, SettingChange, set_key
from assistant.settings.home import Home
from assistant.settings.networks import FurtherMailAccount, MailAccountSettings
from assistant.settings.sections import describe_allowed
from assistant.store.home.config_file import HomeSecretStore

Account = MailAccountSettings | FurtherMailAccount
_SECTION = "mail_account"


def account_to_change(own: MailAccountSettings, address: str, name: str) -> Account:
    """Return the account of this address or name, the first if it is free, or a new one. Raises `UsageError`."""
    for known in _accounts(own):
        if known.address == address:
            return known
    named = next((it for it in _accounts(own) if name and it.name.casefold() == name.casefold()), None)
    if named:
        raise UsageError(f"{named.name} is {named.address} already. Nothing was changed; choose another --name.")
    if not own.address:
        return own
    chosen = name or _free_name(own, address)
    # Hosts are asked for, or guessed from the address.
    return FurtherMailAccount(name=chosen, address="", imap_host="", smtp_host="")


def _accounts(own: MailAccountSettings) -> list[Account]:
    first: list[Account] = [own] if own.address else []
    return [*first, *own.further]


def _free_name(own: MailAccountSettings, address: str) -> str:
    taken = {it.name.casefold() for it in own.further} | {own.name.casefold()}
    domain = address.rpartition("@")[2][:30]
    return next(
        it for it in (domain, *(f"{domain} {number}" for number in range(2, 100))) if it.casefold() not in taken
    )


def chosen_keys(current: Account, imap: str, smtp: str, user: str, ca_file: str, name: str) -> dict[str, Any]:
    """Return the keys that the options of the command name. Raises `UsageError`."""
    name_key = "account_name" if isinstance(current, MailAccountSettings) else "name"
    keys: dict[str, Any] = {"user": user, "ca_file": ca_file, name_key: name}
    for server, text in (("imap", imap), ("smtp", smtp)):
        host, colon, port = text.rpartition(":")
        keys[f"{server}_host"] = host if colon else text
        if colon and not port.isdecimal():
            raise UsageError(f"{text} is no server with its port, as in {server}.example.org:993. Nothing was changed.")
        keys[f"{server}_port"] = int(port) if colon else ""
    return {key: value for key, value in keys.items() if value != ""}


def check_account(own: MailAccountSettings, current: Account, keys: dict[str, Any]) -> Account:
    """Return the account with these keys, after the checks of the settings. Raises `UsageError`."""
    try:
        return type(current).from_values(current.as_dict() | keys)
    except InvalidTable as error:
        first = error.problems[0]
        key = str(first.path[0]) if first.path else ""
        why = str(first.reason) if first.reason else f"allowed: {describe_allowed(fields_of(type(current))[key])}"
        raise UsageError(f"{key or 'the account'}: {why}. Nothing was changed.") from None


def stored_password(own: MailAccountSettings, current: Account) -> str:
    """Return the account's password, "" if none is stored."""
    if isinstance(current, MailAccountSettings):
        return current.password.get_secret_value()
    return read_passwords(own.passwords).get(current.name, "")


def store_account_password(
    home: Home, own: MailAccountSettings, account: Account, password: str, *, in_file: bool
) -> None:
    """Store it in the system's keyring, or with `in_file` in secrets.toml."""
    if isinstance(account, MailAccountSettings):
        store_secret(home, f"{_SECTION}.password", password, in_file=in_file)
        return
    _store_passwords(home, {**read_passwords(own.passwords), account.name: password}, in_file=in_file)


def _store_passwords(home: Home, passwords: dict[str, str], *, in_file: bool) -> None:
    HomeSecretStore(home.secrets).put(f"{_SECTION}.passwords", json.dumps(passwords), in_file=in_file)


def save_account(home: Home, own: MailAccountSettings, account: Account, keys: dict[str, Any]) -> list[SettingChange]:
    """Write `keys` of the first account, or all of a further one."""
    if isinstance(account, MailAccountSettings):
        return change_config_file(home, lambda text: _set_keys(text, keys))
    others = [it for it in own.further if it.address != account.address]
    return change_config_file(home, lambda text: _set_keys(text, {"further": _tables([*others, account])}))


def _set_keys(text: str, keys: dict[str, Any]) -> str:
    text = text or CONFIG_HEADER
    for key, value in keys.items():
        text = set_key(text, f"{_SECTION}.{key}", value)
    return text


def _tables(accounts: list[FurtherMailAccount]) -> list[dict[str, Any]]:
    return [it.as_json(without_defaults=True) for it in accounts]


def remove_account(home: Home, own: MailAccountSettings, name: str) -> str:
    """Remove an account and its password; return its address. Raises `UsageError`."""
    wanted = name.casefold()
    accounts = _accounts(own)
    gone = next((it for it in accounts if wanted in (it.name.casefold(), it.address.casefold())), None)
    if gone is None:
        known = ", ".join(f"{it.name} ({it.address})" for it in accounts) or "none"
        raise UsageError(f"No mail account is called {name!r}. Nothing was changed; there are: {known}.")
    if isinstance(gone, MailAccountSettings):
        change_config_file(home, lambda text: _set_keys(text, {"address": ""}))
        HomeSecretStore(home.secrets).remove(f"{_SECTION}.password")
        return gone.address
    rest = [it for it in own.further if it is not gone]
    change_config_file(home, lambda text: _set_keys(text, {"further": _tables(rest)}))
    passwords = read_passwords(own.passwords)
    if passwords.pop(gone.name, None) is not None:
        _store_passwords(home, passwords, in_file=False)
    return gone.address
