"""Settings of external services: see `sections`."""

from typing import Annotated, Literal

from pydantic import Field, SecretStr

from assistant.settings.validators import ArchiveUrl, SettingsSection, WebAddress


class VoiceSettings(SettingsSection):
    url: WebAddress
    model: Annotated[str, Field(max_length=200)]
    key: SecretStr
    minute_usd: Annotated[float, Field(ge=0, le=10)]
    timeout_seconds: Annotated[float, Field(ge=1, le=600)]
    speak: Literal["never", "voice", "always"]
    speech_model: Annotated[str, Field(max_length=200)]
    speech_voice: Annotated[str, Field(max_length=200)]
    speech_usd: Annotated[float, Field(ge=0, le=10)]


class ReplicaSettings(SettingsSection):
    url: SecretStr
    home_name: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")] = Field(
        description="1 to 64 letters, digits, dots, dashes and underscores"
    )
    key: SecretStr
    on_failure: Literal["continue", "refuse"]
    timeout_seconds: Annotated[float, Field(ge=1, le=600)]
    bases: ArchiveUrl
    file_megabytes: Annotated[int, Field(ge=0, le=1024)]


class NotifySettings(SettingsSection):
    urls: SecretStr
    text: Literal["short", "full"]
