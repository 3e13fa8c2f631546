"""The settings for a command that looks at the home, or asks whoever serves it.

config.toml may have been edited to nonsense while a daemon runs on. That keeps nobody from looking and talking: such a
command goes on with what the daemon last understood, and says so. A command that starts something, or changes the
settings, does not: it loads them itself, and is refused.
"""

from __future__ import annotations

from assistant import settings as settings_module
from assistant.cli.plain import tell
from assistant.errors import SettingsError
from assistant.settings import Settings
from assistant.unix_socket import answers


def settings_in_force() -> Settings:
    """Those of the home, else those that its daemon last understood. Raises `SettingsError` where no daemon answers,
    or where something else than config.toml is wrong."""
    home = settings_module.home_from_environment()
    try:
        return settings_module.load(home)
    except SettingsError as error:
        if not answers(home.socket):
            raise
        try:
            found = settings_module.load(home, config=home.understood)
        except SettingsError:
            raise error from None
        more = f" (and {len(error.problems) - 1} more)" if len(error.problems) > 1 else ""
        tell(
            f"{error.problems[0]}{more} The assistant that runs goes on with the settings that it had, and so does "
            "this; `assistant config edit` mends it."
        )
        return found
