"""The settings of how the assistant is reached and watched: networks, the web API, telemetry."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr

from assistant.settings.validators import SettingsSection, check_name_list, check_web_address


class NetworkSettings(SettingsSection):
    """What every network has."""

    enabled: bool
    token: SecretStr


class TelegramSettings(NetworkSettings):
    base_url: Annotated[
        str,
        AfterValidator(check_web_address),
        Field(description='an address that starts with http:// or https://, or ""'),
    ]


class MatrixSettings(NetworkSettings):
    homeserver: Annotated[
        str,
        AfterValidator(check_web_address),
        Field(description='an address that starts with http:// or https://, or ""'),
    ]
    user: Annotated[
        str, Field(pattern=r"^(@[^:]+:.+)?$", description='an account as in "@nocturne:example.org", or ""')
    ]
    device: Annotated[str, Field(max_length=255)]
    encryption: bool
    invites: Annotated[
        tuple[str, ...],
        BeforeValidator(check_name_list),
        Field(description='a list of accounts and servers as in ["@erik:example.org", "example.org"]'),
    ]


class WebSettings(SettingsSection):
    port: Annotated[int, Field(ge=0, le=65_535)]
    host: Annotated[str, Field(min_length=1, max_length=255)]
    token: SecretStr
    hosts: Annotated[
        tuple[str, ...],
        BeforeValidator(check_name_list),
        Field(description='a list of names as in ["nocturne.example.org"]'),
    ]
    behind_proxy: bool
    certificate: Annotated[str, Field(max_length=1000)]
    certificate_key: Annotated[str, Field(max_length=1000)]


MIN_TOKEN_LENGTH = 16
"""What the web API starts with at all."""
STRONG_TOKEN_LENGTH = 43
"""Characters of a token that is made here: 256 bits, in base64."""
_FEWEST_DIFFERENT = 10


def is_weak_token(token: str) -> bool:
    """Whether a token is weaker than those that are made here: shorter, or of a few characters again and again."""
    return len(token) < STRONG_TOKEN_LENGTH or len(set(token)) < _FEWEST_DIFFERENT


def is_loopback(host: str) -> bool:
    """Whether nobody beyond this machine can reach what listens there."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def web_exposure_problems(web: WebSettings, origins: Mapping[str, str]) -> Iterator[str]:
    """What keeps the web API from listening as it is set (F42), a line each; nothing where it is off."""
    if not web.port:
        return
    if not (is_loopback(web.host) or web.behind_proxy or web.certificate):
        yield (
            f"{origins['web.host']}: `web.host` is {web.host!r}, which can be reached from beyond this machine without "
            "encryption; set web.certificate and web.certificate_key, or web.behind_proxy = true where a proxy "
            'encrypts, or "127.0.0.1".'
        )
    if bool(web.certificate) != bool(web.certificate_key):
        given, missing = ("certificate", "certificate_key") if web.certificate else ("certificate_key", "certificate")
        yield f"{origins[f'web.{given}']}: `web.{given}` is set and web.{missing} is not; set both."
    if 0 < len(web.token.get_secret_value()) < MIN_TOKEN_LENGTH:
        yield (
            f"{origins['web.token']}: `web.token` has fewer than {MIN_TOKEN_LENGTH} characters; "
            "`assistant config secret set web.token` takes a longer one."
        )


class TelemetrySettings(SettingsSection):
    traces: Literal["off", "otlp"]
    endpoint: Annotated[
        str,
        AfterValidator(check_web_address),
        Field(description='an address that starts with http:// or https://, or ""'),
    ]
