"""Where secrets are stored: in the keyring of the operating system, or in `secrets.toml` of the home (0600).

What always holds: the list in `secrets.toml` names every secret that is stored. A secret is in the keyring before the
list says so and out of the list before it is out of the keyring: a crash in between leaves one that nobody looks for,
never one that is looked for and missing.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path

import tomlkit

from assistant.core.errors import SecretsUnavailable, StoreError
from assistant.settings.secrets import IN_FILE, IN_KEYRING, SecretIndex, SystemKeyring, parse_secret_index
from assistant.settings.sections import WEB_TOKEN_KEY
from assistant.settings.settings import SYSTEM_KEYRING
from assistant.store.home.config_file import ConfigFile

_HEADER = """\
# Secrets of the assistant. Keep this file to yourself; no backup has it. Change them with `assistant config secret`.
"""


_TOKEN_BYTES = 32


def create_web_token(path: Path) -> str:
    """A new token of the web API, stored in the `secrets.toml` at `path`: no keyring has to be unlocked to start the
    daemon. Raises `StoreError`."""
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    HomeSecretStore(path, None).put(WEB_TOKEN_KEY, token, in_file=True)
    return token


class HomeSecretStore:
    """Where secrets are put, for whoever asks a person for one."""

    def __init__(self, path: Path, ring: SystemKeyring | None = SYSTEM_KEYRING) -> None:
        self._path = path
        self._file = ConfigFile(path)
        self._ring = ring

    def put(self, name: str, value: str, *, in_file: bool = False) -> str:
        """Keep it, in the keyring where there is one that works; returns `IN_KEYRING` or `IN_FILE`. Raises
        `StoreError`; then what was kept before is still there."""
        account = "" if in_file else self._ringed(name, value)
        before = self._change(lambda index: _with(index, name, value, account))
        previous_account = before.accounts.get(name)
        if previous_account and previous_account != account and self._ring is not None:
            self._dropped(previous_account)
        return IN_KEYRING if account else IN_FILE

    def remove(self, name: str) -> bool:
        """Whether there was one. Raises `StoreError`, `SecretsUnavailable`."""
        before = self._change(lambda index: _without(index, name))
        account = before.accounts.get(name)
        if account and self._ring is not None:
            self._ring.remove(account)
        return name in before.values or account is not None

    def _ringed(self, name: str, value: str) -> str:
        """The account under which the keyring has it now; "" where none works."""
        if self._ring is None:
            return ""
        account = f"{self._path.parent}#{name}"
        try:
            self._ring.write(account, value)
        except SecretsUnavailable:
            return ""
        return account

    def _dropped(self, account: str) -> None:
        """Best effort: what is no longer listed is no longer sought."""
        if self._ring is not None:
            try:
                self._ring.remove(account)
            except SecretsUnavailable:
                return

    def _change(self, edit: Callable[[SecretIndex], SecretIndex]) -> SecretIndex:
        """What the list said before."""
        before: list[SecretIndex] = []

        def rewritten(text: str) -> str:
            try:
                before.append(parse_secret_index(text, self._path))
            except SecretsUnavailable as error:
                raise StoreError(f"{error} Nothing was changed; correct it or remove it.") from None
            return _text(edit(before[0]))

        self._file.change(rewritten)
        return before[0]


def _with(index: SecretIndex, name: str, value: str, account: str) -> SecretIndex:
    rest = _without(index, name)
    if account:
        return SecretIndex(rest.values, {**rest.accounts, name: account})
    return SecretIndex({**rest.values, name: value}, rest.accounts)


def _without(index: SecretIndex, name: str) -> SecretIndex:
    return SecretIndex(
        {key: value for key, value in index.values.items() if key != name},
        {key: value for key, value in index.accounts.items() if key != name},
    )


def _text(index: SecretIndex) -> str:
    document = tomlkit.document()
    for section, content in (("file", index.values), ("keyring", index.accounts)):
        if content:
            table = tomlkit.table()
            for name in sorted(content):
                table.add(tomlkit.key(name), content[name])
            document.add(section, table)
    return _HEADER + tomlkit.dumps(document)
