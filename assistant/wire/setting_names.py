"""Names of tools and commands in the settings that the program does not know."""

from __future__ import annotations

from collections.abc import Sequence

from assistant.settings.consistency import unknown_names
from assistant.settings.sections import SettingsValues
from assistant.settings.settings import Settings

_WITH_NAMES = ("guest.tools", "guest.commands", "room.tools", "room.commands", "compaction.protected_tools")


def setting_name_problems(values: SettingsValues) -> list[str]:
    """Return a line for each tool or command in the settings that does not exist or may not be granted."""
    # The tools import many packages, which whoever asks does not need.
    from assistant.commands.catalog import command_root
    from assistant.commands.registry import grantable_roles
    from tools.toolbox import tool_roles

    return list(unknown_names(values, tool_roles(), grantable_roles(command_root())))


def problems_of_next_start(settings: Settings) -> Sequence[str]:
    """Return such lines as `status` shows while nothing runs: the assistant would refuse to start."""
    if all(settings.origins.get(key) == "default.toml" for key in _WITH_NAMES):
        return ()
    found = setting_name_problems(settings.values)
    return [f"{line} The assistant does not start until that is corrected in {settings.home.config}." for line in found]
