"""Writes the files with which a person configures the assistant: config.toml, secrets.toml, and similar texts; and
stores secrets in the keyring of the operating system, or in secrets.toml.

- A file is replaced in one step, durably and readable by the owner only (0600), or unchanged. Concurrent changes by two
  processes are serialized. If the file is a link, its target is replaced.
- The list in secrets.toml names every stored secret. A secret is in the keyring before it is listed, and removed from
  the list before it is removed from the keyring, so a crash may leave an unused one, but never a listed one that is
  missing.
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
    """The file at `path`, which may not exist yet; the data folder is created at the first write."""

    def __init__(self, path: Path) -> None:
        self._home = path.parent
        place = Path(os.path.realpath(path))
        self._file = TextFile(place.parent, place.name)

    def read(self) -> str:
        """Return the text; "" if the file does not exist. Raises `StoreError` if it is not text."""
        return self._file.read()

    def change(self, edit: Callable[[str], str]) -> tuple[str, str]:
        """Replace the text by the result of `edit`, under a lock; return the text before and after. If `edit` raises,
        the file is unchanged. Raises `HomeError`, `StoreError`."""
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
    """Copy a valid config.toml, for commands that run while it is being edited (`Home.last_valid_config`). A file that
    changed since it was read is left to the next call. If the copy cannot be written, readers do without it."""
    with contextlib.suppress(HomeError, StoreError):
        text = ConfigFile(settings.home.config).read()
        if file_stamp(settings.home.config) == settings.file_stamps[0]:
            ConfigFile(settings.home.last_valid_config).change(lambda _: text)


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Hold the lock between processes; the kernel releases it when a process ends."""
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
    """Create a token for the web API, stored in the `secrets.toml` at `path`, so that the daemon can start without an
    unlocked keyring. Raises `StoreError`."""
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    HomeSecretStore(path, None).put(WEB_TOKEN_KEY, token, in_file=True)
    return token


class HomeSecretStore:
    """Stores secrets for commands that ask for one."""

    def __init__(self, path: Path, ring: SystemKeyring | None = SYSTEM_KEYRING) -> None:
        self._path = path
        self._file = ConfigFile(path)
        self._ring = ring

    def put(self, name: str, value: str, *, in_file: bool = False) -> str:
        """Store a secret, in the keyring if one works; return `IN_KEYRING` or `IN_FILE`. Raises `StoreError`, with the
        old secret unchanged."""
        account = "" if in_file else self._put_in_keyring(name, value)
        before = self._change(lambda index: _with(index, name, value, account))
        previous_account = before.accounts.get(name)
        if previous_account and previous_account != account and self._ring is not None:
            # What is not listed is never read.
            with contextlib.suppress(SecretsUnavailable):
                self._ring.remove(previous_account)
        return IN_KEYRING if account else IN_FILE

    def remove(self, name: str) -> bool:
        """Delete a secret; return whether it existed. Raises `StoreError`, `SecretsUnavailable`."""
        before = self._change(lambda index: _without(index, name))
        account = before.accounts.get(name)
        if account and self._ring is not None:
            self._ring.remove(account)
        return name in before.values or account is not None

    def _put_in_keyring(self, name: str, value: str) -> str:
        """Store a secret in the keyring and return its account there; "" if no keyring works."""
        if self._ring is None:
            return ""
        account = f"{self._path.parent}#{name}"
        try:
            self._ring.write(account, value)
        except SecretsUnavailable:
            return ""
        return account

    def _change(self, edit: Callable[[SecretIndex], SecretIndex]) -> SecretIndex:
        """Change the list, and return its previous content."""
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
