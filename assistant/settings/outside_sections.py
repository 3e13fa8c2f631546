"""Settings of external services: see `sections`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, SecretStr

from assistant.settings.validators import SettingsSection, WebAddress


class VoiceSettings(SettingsSection):
    url: WebAddress
    model: Annotated[str, Field(max_length=200)]
    key: SecretStr
    minute_usd: Annotated[float, Field(ge=0, le=10)]
    timeout_seconds: Annotated[float, Field(ge=1, le=600)]


class NotifySettings(SettingsSection):
    urls: SecretStr
    text: Literal["short", "full"]
