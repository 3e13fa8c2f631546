"""The secrets: which exist, where they may be stored, and how they are found.

A secret is named by its setting ("archive.key") or, for a provider's key, by the usual variable ("ANTHROPIC_API_KEY").
It is looked up in the environment, in the service manager's credentials (one file each in $CREDENTIALS_DIRECTORY), in
the store of secrets, and last in config.toml. The store is a list in the data folder, `secrets.toml` (0600): for each
secret it has either the value or its account in the operating system's keyring. A keyring is only asked for listed
secrets, so that nobody has to unlock it in vain; and nothing here prints a secret.
"""

from __future__ import annotations

import difflib
import stat
import threading
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from assistant.core.dataclass import dataclass
from assistant.core.errors import SecretsUnavailable, UsageError
from assistant.core.plain_files import FileRefused, read_plain_text
from assistant.core.secret_text import SecretStr
from assistant.core.text import lazy_regex
from assistant.settings.sections import SETTING_FIELDS

PROVIDER_KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY")
SECRET_NAMES = (*PROVIDER_KEYS, *(key for key, spec in SETTING_FIELDS.items() if spec.kind is SecretStr))
IN_KEYRING = "the keyring"
IN_FILE = "secrets.toml"

MCP_SECRET = lazy_regex(r"mcp\.[a-z0-9_-]{1,64}\.[A-Za-z0-9_-]{1,64}")
"""`mcp.SERVER.NAME`: a variable, or a header, of an MCP server."""

_MAX_BYTES = 1 << 20
_OTHERWISE = "Unlock it and start again, or use `assistant config secret set {name} --file`."


@dataclass(frozen=True, slots=True)
class SecretIndex:
    """The content of `secrets.toml`."""

    values: Mapping[str, str] = field(default_factory=dict, repr=False)  # by name
    accounts: Mapping[str, str] = field(default_factory=dict)  # in the keyring, by name


@dataclass(frozen=True, slots=True)
class FoundSecret:
    name: str
    value: SecretStr
    origin: str  # where it was found, for people


@dataclass(frozen=True, slots=True)
class SecretLookup:
    """The secrets found in one place."""

    found: tuple[FoundSecret, ...] = ()
    problems: tuple[str, ...] = ()  # prevent a start
    warnings: tuple[str, ...] = ()  # make the status red


def canonical_secret_name(name: str) -> str:
    """Return the canonical spelling of a name. Raises `UsageError` for an unknown one."""
    spelled = {name.casefold(): name for name in SECRET_NAMES}
    if MCP_SECRET.fullmatch(name):
        return name
    if name.casefold() in spelled:
        return spelled[name.casefold()]
    near = difflib.get_close_matches(name.casefold(), spelled, n=1, cutoff=0.6)
    meant = f"did you mean {spelled[near[0]]}?" if near else f"secrets: {', '.join(SECRET_NAMES)}."
    raise UsageError(f"{name} is not the name of a secret; {meant} Nothing was changed.")


# ------------------------------------------------------------------------------------------------------------- reading


def read_credentials(directory: Path | None) -> SecretLookup:
    """Read the service manager's credentials: one file per secret, with its name in upper or lower case."""
    if directory is None:
        return SecretLookup()
    spelled = {name.casefold(): name for name in SECRET_NAMES}
    found, problems = [], []
    try:
        files = sorted(path for path in directory.iterdir() if path.name.casefold() in spelled)
    except OSError as error:
        return SecretLookup(problems=(f"CREDENTIALS_DIRECTORY: {directory} cannot be read: {error.strerror}.",))
    for path in files:
        try:
            value = read_plain_text(path, _MAX_BYTES).strip()
        except FileRefused as error:
            problems.append(f"The credential {path.name} {error}.")
        else:
            found.append(FoundSecret(spelled[path.name.casefold()], SecretStr(value), f"credential {path.name}"))
    return SecretLookup(tuple(found), tuple(problems))


def read_stored_secrets(path: Path, ring: SystemKeyring | None) -> SecretLookup:
    """Return the secrets in the store at `path`; without `ring`, only those in the file."""
    try:
        index = read_secret_index(path)
        open_to_others = index != SecretIndex() and stat.S_IMODE(path.stat().st_mode) & 0o077
    except (SecretsUnavailable, OSError) as error:
        return SecretLookup(problems=(str(error),))
    warnings = [f"{path} can be read by others. `chmod 600 {path}` closes it."] if open_to_others else []
    found = [FoundSecret(name, SecretStr(value), IN_FILE) for name, value in index.values.items()]
    if ring is not None:
        in_keyring, unavailable = _read_keyring(index, ring)
        found, warnings = [*found, *in_keyring], [*warnings, *unavailable]
    return SecretLookup(tuple(found), warnings=tuple(warnings))


def _read_keyring(index: SecretIndex, ring: SystemKeyring) -> tuple[list[FoundSecret], list[str]]:
    """Return the secrets in the keyring, and warnings about missing ones; a keyring that does not answer is not asked
    again."""
    found: list[FoundSecret] = []
    missing: list[str] = []
    for name, account in index.accounts.items():
        try:
            value = ring.read(account)
        except SecretsUnavailable as error:
            names = ", ".join(list(index.accounts)[len(found) + len(missing) :])
            warning = f"The keyring has {names} and cannot be read: {error} {_OTHERWISE.format(name=name)}"
            return found, [*missing, warning]
        if value is None:
            missing.append(f"{name} is no longer in the keyring. `assistant config secret set {name}` puts it there.")
        else:
            found.append(FoundSecret(name, SecretStr(value), IN_KEYRING))
    return found, missing


def read_secret_index(path: Path) -> SecretIndex:
    """Raises `SecretsUnavailable`, naming the file, if it is invalid."""
    try:
        return parse_secret_index(read_plain_text(path, _MAX_BYTES), path)
    except FileRefused as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return SecretIndex()
        raise SecretsUnavailable(f"{path} {error}.") from None


def parse_secret_index(text: str, path: Path) -> SecretIndex:
    """Raises like `read_secret_index`."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SecretsUnavailable(f"{path} is not valid TOML: {error}.") from None
    except (ValueError, RecursionError):
        raise SecretsUnavailable(f"{path} is nested too deeply, or has a number that is too long.") from None
    values, accounts = document.get("file", {}), document.get("keyring", {})
    tables = [table for table in (values, accounts) if isinstance(table, dict)]
    if len(tables) < 2 or not all(isinstance(value, str) for table in tables for value in table.values()):
        raise SecretsUnavailable(f"{path} may only have names with texts, under [file] and [keyring].")
    return SecretIndex(values, accounts)


_SERVICE = "nocturne-assistant"
# Keyrings with a lower priority are not recommended: plain text files, and one that refuses everything.
_LEAST_PRIORITY = 1


@dataclass(frozen=True, slots=True)
class SystemKeyring:
    """Secrets by account. Every method raises `SecretsUnavailable`, with a one-line reason that does not contain the
    secret."""

    read_seconds: float = 10.0
    write_seconds: float = 120.0  # a person who stores a secret may have to type a password first

    def read(self, account: str) -> str | None:
        value: str | None = _call_keyring(lambda ring: ring.get_password(_SERVICE, account), self.read_seconds)
        return value

    def write(self, account: str, value: str) -> None:
        """Store a secret and verify it by reading it back."""
        _call_keyring(lambda ring: ring.set_password(_SERVICE, account, value), self.write_seconds)
        if self.read(account) != value:
            raise SecretsUnavailable("The keyring did not keep what it was given.")

    def remove(self, account: str) -> None:
        if self.read(account) is not None:
            _call_keyring(lambda ring: ring.delete_password(_SERVICE, account), self.write_seconds)


def _call_keyring(work: Callable[[Any], Any], seconds: float) -> Any:
    """Return the result of `work` with the keyring. Runs in its own thread, which does not delay the exit."""
    answers: list[Any] = []
    reasons: list[str] = []

    def ask() -> None:
        try:
            answers.append(work(_backend()))
        except SecretsUnavailable as error:
            reasons.append(str(error))
        except (_errors(), OSError, RuntimeError) as error:
            reasons.append(f"The keyring refused ({type(error).__name__}).")

    thread = threading.Thread(target=ask, name="keyring", daemon=True)
    thread.start()
    thread.join(seconds)
    if not answers:
        raise SecretsUnavailable(reasons[0] if reasons else "The keyring does not answer.")
    return answers[0]


def _backend() -> Any:
    try:
        import keyring  # an optional dependency
    except ImportError:
        raise SecretsUnavailable("The package `keyring` is not installed.") from None
    backend = keyring.get_keyring()
    if backend.priority < _LEAST_PRIORITY:
        raise SecretsUnavailable("There is no keyring on this machine.")
    return backend


def _errors() -> type[Exception]:
    """Return the errors all keyrings raise; only called after one was used, which imported it."""
    try:
        from keyring.errors import KeyringError
    except ImportError:
        return OSError
    return KeyringError
