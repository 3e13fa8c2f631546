"""The one writer of files that a person configures the home with: config.toml, secrets.toml, and any other text of that
kind; and where secrets are stored: in the keyring of the operating system, or in secrets.toml.

What always holds:
- A new text replaces the old one in one step, durable and closed to others (0600), or the old one stays. Two processes
  that change the same file do it one after the other. A file that is a link stays one: the file that it leads to is
  replaced.
- The list in secrets.toml names every secret that is stored. A secret is in the keyring before the list says so and out
  of the list before it is out of the keyring: a crash in between leaves one that nobody looks for, never one that is
  looked for and missing.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from assistant.core.errors import HomeError, SecretsUnavailable, StoreError
from assistant.settings.home import file_stamp
from assistant.settings.secrets import IN_FILE, IN_KEYRING, SecretIndex, SystemKeyring, parse_secret_index
from assistant.settings.sections import WEB_TOKEN_KEY
from assistant.settings.settings import SYSTEM_KEYRING, Settings
from assistant.store.files import TextFile, prepare_home

_MARK = "new"


class ConfigFile:
    """The file at `path`, which may not exist yet; the home is made when something is first written."""

    def __init__(self, path: Path) -> None:
        self._home = path.parent
        place = Path(os.path.realpath(path))
        self._file = TextFile(place.parent, place.name)

    def read(self) -> str:
        """What it says; "" where there is none. Raises `StoreError` for what is no text."""
        return self._file.read()

    def change(self, edit: Callable[[str], str]) -> tuple[str, str]:
        """Replace what it says by what `edit` makes of it, while nobody else can; before and after. What `edit` raises
        leaves the file as it is. Raises `HomeError`, `StoreError`."""
        prepare_home(self._home)
        with _alone(self._home):
            before = self._file.read()
            after = edit(before)
            if after != before:
                self._replace(after)
        return before, after

    def _replace(self, text: str) -> None:
        new = self._file.pending_file(_MARK)
        try:
            new.write(text)
            new.move_to(self._file)
        except StoreError:
            with contextlib.suppress(StoreError):
                new.remove()
            raise


def keep_valid_config(settings: Settings) -> None:
    """Copy a config.toml that was understood, for commands that run meanwhile (`Home.last_valid_config`). A file that
    changed since it was read is left for the next look. Where the copy cannot be written, the reader of it does
    without."""
    with contextlib.suppress(HomeError, StoreError):
        text = ConfigFile(settings.home.config).read()
        if file_stamp(settings.home.config) == settings.file_stamps[0]:
            ConfigFile(settings.home.last_valid_config).change(lambda _: text)


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """One at a time, of all processes; the kernel lets go of it however a process ends."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise StoreError(f"{directory} cannot be read: {error.strerror}. Nothing was changed.") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


# ------------------------------------------------------------------------------------------------------------- secrets

_TOKEN_BYTES = 32
_SECRETS_HEADER = """\
# Secrets of the assistant. Keep this file to yourself; no backup has it. Change them with `assistant config secret`.
"""


def create_web_token(path: Path) -> str:
    """A new token of the web API, stored in the `secrets.toml` at `path`: no keyring has to be unlocked to start the
    daemon. Raises `StoreError`."""
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    HomeSecretStore(path, None).put(WEB_TOKEN_KEY, token, in_file=True)
    return token


class HomeSecretStore:
    """Where secrets are put, for a command that asks for one."""

    def __init__(self, path: Path, ring: SystemKeyring | None = SYSTEM_KEYRING) -> None:
        self._path = path
        self._file = ConfigFile(path)
        self._ring = ring

    def put(self, name: str, value: str, *, in_file: bool = False) -> str:
        """Keep it, in the keyring where there is one that works; returns `IN_KEYRING` or `IN_FILE`. Raises
        `StoreError`; then what was kept before is still there."""
        account = "" if in_file else self._put_in_keyring(name, value)
        before = self._change(lambda index: _with(index, name, value, account))
        previous_account = before.accounts.get(name)
        if previous_account and previous_account != account and self._ring is not None:
            # What is no longer listed is no longer sought.
            with contextlib.suppress(SecretsUnavailable):
                self._ring.remove(previous_account)
        return IN_KEYRING if account else IN_FILE

    def remove(self, name: str) -> bool:
        """Whether there was one. Raises `StoreError`, `SecretsUnavailable`."""
        before = self._change(lambda index: _without(index, name))
        account = before.accounts.get(name)
        if account and self._ring is not None:
            self._ring.remove(account)
        return name in before.values or account is not None

    def _put_in_keyring(self, name: str, value: str) -> str:
        """The account under which the keyring has it now; "" where none works."""
        if self._ring is None:
            return ""
        account = f"{self._path.parent}#{name}"
        try:
            self._ring.write(account, value)
        except SecretsUnavailable:
            return ""
        return account

    def _change(self, edit: Callable[[SecretIndex], SecretIndex]) -> SecretIndex:
        """What the list said before."""
        before, _ = self._file.change(lambda text: _text(edit(self._parse(text))))
        return self._parse(before)

    def _parse(self, text: str) -> SecretIndex:
        try:
            return parse_secret_index(text, self._path)
        except SecretsUnavailable as error:
            raise StoreError(f"{error} Nothing was changed; correct it or remove it.") from None


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
    import tomlkit  # not needed at start

    document = tomlkit.document()
    for section, content in (("file", index.values), ("keyring", index.accounts)):
        if content:
            table = tomlkit.table()
            for name in sorted(content):
                table.add(tomlkit.key(name), content[name])
            document.add(section, table)
    return _SECRETS_HEADER + tomlkit.dumps(document)
