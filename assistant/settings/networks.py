"""Settings of the networks for messages, and of the owner's mail."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, SecretStr

from assistant.settings.validators import NameList, SettingsSection, WebAddress


class NetworkSettings(SettingsSection):
    """Settings of every network."""

    enabled: bool
    token: SecretStr


class TelegramSettings(NetworkSettings):
    base_url: WebAddress


class MatrixSettings(NetworkSettings):
    homeserver: WebAddress
    user: Annotated[
        str, Field(pattern=r"^(@[^:]+:.+)?$", description='an account as in "@nocturne:example.org", or ""')
    ]
    device: Annotated[str, Field(max_length=255)]
    encryption: bool
    invites: NameList = Field(description='a list of accounts and servers as in ["@erik:example.org", "example.org"]')


class DiscordSettings(NetworkSettings):
    """No further settings: a bot is identified by its token."""


class SlackSettings(NetworkSettings):
    """No further settings: an app is identified by its tokens."""


MailAddress = Annotated[
    str, Field(pattern=r"^([^@\s]+@[^@\s]+)?$", description='an address as in "ada@example.org", or ""')
]
Port = Annotated[int, Field(ge=1, le=65_535)]
ShortText = Annotated[str, Field(max_length=255)]


class MailSettings(NetworkSettings):
    address: MailAddress
    user: ShortText
    imap_host: ShortText
    imap_port: Port
    smtp_host: ShortText
    smtp_port: Port
    verified_by: ShortText
    verified_with: Literal["dmarc", "dkim"]
    hourly_limit: Annotated[int, Field(ge=1, le=1000)]


class MailAccountSettings(SettingsSection):
    address: MailAddress
    sender_name: ShortText
    user: ShortText
    password: SecretStr
    imap_host: ShortText
    imap_port: Port
    smtp_host: ShortText
    smtp_port: Port
    folders: NameList = Field(description='a list of folders as in ["Archive", "Sent"]')
    sent_folder: ShortText
    drafts_folder: ShortText
