"""Whether the settings grant guests and rooms only what they may have."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from assistant.core.errors import SettingsError
from assistant.core.people import invalid_grants
from assistant.settings.sections import SettingsValues

AllowedRoles = Mapping[str, Collection[str]]


def check_grants(settings: SettingsValues, tools: AllowedRoles, commands: AllowedRoles) -> None:
    """`tools` and `commands` map names to the roles that may ever have them. Raises `SettingsError` for what `[guest]`
    or `[room]` names and does not exist, or is the owner's alone."""
    for role, section in (("guest", settings.guest), ("room", settings.room)):
        for key, named, allowed in (("tools", section.tools, tools), ("commands", section.commands, commands)):
            for name in invalid_grants(named, allowed, role):
                what = "is the owner's alone" if name in allowed else "does not exist"
                possible = ", ".join(sorted(other for other, roles in allowed.items() if role in roles))
                raise SettingsError(
                    f"`{role}.{key}` names {name!r}, which {what}. Nothing was started; it may name: {possible}."
                )
