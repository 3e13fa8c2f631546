"""Keeping what a bridge needs, and taking it away again.

What always holds: the token and the settings are kept both or neither; where the settings are refused, or somebody
presses Ctrl-C in between, the token that was there before is put back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from assistant.cli import secret
from assistant.cli.bridge_answers import Answers
from assistant.cli.commanding import say_answer
from assistant.cli.config_changing import changed, tell_changes
from assistant.cli.plain import say, tell
from assistant.core.errors import UsageError
from assistant.core.sessions import MAIN_SESSION
from assistant.settings.config_text import CONFIG_HEADER, SettingChange, remove_key, set_key
from assistant.settings.home import Home
from assistant.settings.secrets import IN_FILE, read_stored_secrets
from assistant.settings.sections import SETTING_FIELDS
from assistant.settings.settings import SYSTEM_KEYRING, Settings, load_settings
from assistant.wire import settings as wire_settings


def keep(home: Home, name: str, answers: Answers, *, in_file: bool) -> list[str]:
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
        return _told(home, changed(home, edited))
    with _as_it_was(home, key):
        secret.put(home, key, answers.token, in_file=in_file)
        done = changed(home, edited)
    return [key, *_told(home, done)]


def is_kept(settings: Settings, name: str) -> bool:
    """Whether anybody set anything of the bridge."""
    return any(one.startswith(f"{name}.") and origin != "default.toml" for one, origin in settings.origins.items())


def remove(settings: Settings, name: str) -> None:
    """Take a bridge away: first its settings, so that whatever comes in between leaves one that is off."""
    home, key = settings.home, f"{name}.token"
    keys = [one for one in SETTING_FIELDS if one.startswith(f"{name}.")]

    def edited(text: str) -> str:
        for one in keys:
            text = remove_key(text, one)
        return text

    done = changed(home, edited)
    _told(home, done)
    had_secret = wire_settings.secret_store(home).remove(key)
    if had_secret:
        say(f"{key} was removed.")
    left = load_settings(home)
    if getattr(left.values, name).enabled:
        raise UsageError(f"{left.origins[f'{name}.enabled']} still turns {name} on; take that away too.")
    if (home.path / "script.db").exists():
        # Also where nothing was kept: an earlier removal may have been cut off before this.
        say_answer(left, f"/bridge remove {name}", MAIN_SESSION)
    if not done and not had_secret:
        tell(f"{name} is not set up, so that there was none to take away.")
        return
    say(f"{name} is off. Your account there stays yours; `assistant people unlink` takes it from you.")


def _told(home: Home, done: list[SettingChange]) -> list[str]:
    tell_changes(home, done)
    return [change.key for change in done]


@contextmanager
def _as_it_was(home: Home, name: str) -> Iterator[None]:
    """Whatever ends this early leaves the secret as it was before."""
    store = wire_settings.secret_store(home)
    before = {found.name: found for found in read_stored_secrets(home.secrets, SYSTEM_KEYRING).found}.get(name)
    try:
        yield
    except BaseException:
        if before is None:
            store.remove(name)
        else:
            store.put(name, before.value.get_secret_value(), in_file=before.origin == IN_FILE)
        raise
