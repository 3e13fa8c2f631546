"""The keys of the sections about services outside that are told, or asked, something: see `sections`."""

from __future__ import annotations

from typing import Literal

from pydantic import SecretStr

from assistant.settings.validators import SettingsSection


class NotifySettings(SettingsSection):
    urls: SecretStr
    text: Literal["short", "full"]
