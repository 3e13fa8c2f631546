"""Settings of external services: see `sections`."""

from typing import Annotated, Literal

from msgspec import Meta

from assistant.core.checked_tables import CheckedTable, whole
from assistant.core.secret_text import SecretStr
from assistant.settings.validators import ArchiveUrl, WebAddress


class VoiceSettings(CheckedTable, frozen=True):
    url: WebAddress
    model: Annotated[str, Meta(max_length=200)]
    key: SecretStr
    minute_usd: Annotated[float, Meta(ge=0, le=10)]
    timeout_seconds: Annotated[float, Meta(ge=1, le=600)]
    speak: Literal["never", "voice", "always"]
    speech_model: Annotated[str, Meta(max_length=200)]
    speech_voice: Annotated[str, Meta(max_length=200)]
    speech_usd: Annotated[float, Meta(ge=0, le=10)]


class ReplicaSettings(CheckedTable, frozen=True):
    url: SecretStr
    home_name: Annotated[
        str,
        Meta(
            pattern=whole(r"[A-Za-z0-9._-]{1,64}"),
            description="1 to 64 letters, digits, dots, dashes and underscores",
        ),
    ]
    key: SecretStr
    on_failure: Literal["continue", "refuse"]
    timeout_seconds: Annotated[float, Meta(ge=1, le=600)]
    bases: ArchiveUrl
    file_megabytes: Annotated[int, Meta(ge=0, le=1024)]


class NotifySettings(CheckedTable, frozen=True):
    urls: SecretStr
    text: Literal["short", "full"]
