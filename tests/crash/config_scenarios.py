"""A scenario of what a person configures: a setting is changed in their own file, a secret takes another's place."""

from __future__ import annotations

import stat
from pathlib import Path

from assistant.core.errors import AssistantError
from assistant.settings.config_text import set_key
from assistant.settings.home import Home
from assistant.settings.settings import Settings, load_settings
from assistant.store.home.config_file import ConfigFile, HomeSecretStore
from tests.crash.scenario import Scenario, Snapshot

_TEXT = "# mine\n[context]\n# less is more\ntarget = 0.2 # a fifth\n"
_OLD, _NEW = "sk-old-old-old-old", "sk-new-new-new-new"
_FILES = ("config.toml", "secrets.toml")
# Without it, Python tries out a directory for temporary files.
_ENVIRON = {"TIKTOKEN_CACHE_DIR": ""}


def _prepare(path: Path) -> None:
    home = Home(path)
    ConfigFile(home.config).change(lambda _: _TEXT)
    HomeSecretStore(home.secrets, None).put("archive.key", _OLD)


def _work(path: Path) -> None:
    """Whatever happened before, there is a whole file of each to begin with."""
    home = Home(path)
    found = load_settings(home, _ENVIRON, ring=None)
    if _held(found) not in ((0.2, _OLD), (0.25, _OLD), (0.25, _NEW)):
        raise AssistantError(f"The home says {_held(found)}.")
    ConfigFile(home.config).change(lambda text: set_key(text, "context.target", 0.25))
    HomeSecretStore(home.secrets, None).put("archive.key", _NEW)


def _held(settings: Settings) -> tuple[float, str]:
    return settings.values.context.target, settings.values.archive.key.get_secret_value()


def _look(path: Path) -> Snapshot:
    return {
        "config": (path / "config.toml").read_text(),
        "held": _held(load_settings(Home(path), _ENVIRON, ring=None)),
        "modes": {name: stat.S_IMODE((path / name).stat().st_mode) for name in _FILES},
        "beside": sorted(one.name for one in path.iterdir() if one.name not in _FILES),
    }


CONFIGURED = Scenario("configured", "a setting and a secret are changed", _prepare, _work, _look)
