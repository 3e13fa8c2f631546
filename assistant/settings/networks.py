"""Settings of the networks for messages, and of the owner's mail."""

from typing import Annotated, Literal

from msgspec import Meta

from assistant.core.checked_tables import CheckedTable, whole
from assistant.core.secret_text import SecretStr
from assistant.settings.validators import GivenName, NameList, WebAddress, check_path, convert_to_tuple, is_loopback


class NetworkSettings(CheckedTable, frozen=True):
    """Settings of every network."""

    enabled: bool
    token: SecretStr


class TelegramSettings(NetworkSettings, frozen=True):
    base_url: WebAddress


class MatrixSettings(NetworkSettings, frozen=True):
    homeserver: WebAddress
    user: Annotated[
        str, Meta(pattern=whole(r"(@[^:]+:.+)?"), description='an account as in "@nocturne:example.org", or ""')
    ]
    device: Annotated[str, Meta(max_length=255)]
    encryption: bool
    invites: Annotated[
        NameList, Meta(description='a list of accounts and servers as in ["@erik:example.org", "example.org"]')
    ]


class DiscordSettings(NetworkSettings, frozen=True):
    """No further settings: a bot is identified by its token."""


class SlackSettings(NetworkSettings, frozen=True):
    """No further settings: an app is identified by its tokens."""


MailAddress = Annotated[
    str, Meta(pattern=whole(r"([^@\s]+@[^@\s]+)?"), description='an address as in "ada@example.org", or ""')
]
Port = Annotated[int, Meta(ge=1, le=65_535)]
ShortText = Annotated[str, Meta(max_length=255)]


class MailSettings(NetworkSettings, frozen=True):
    address: MailAddress
    user: ShortText
    imap_host: ShortText
    imap_port: Port
    smtp_host: ShortText
    smtp_port: Port
    verified_by: ShortText
    verified_with: Literal["dmarc", "dkim"]
    hourly_limit: Annotated[int, Meta(ge=1, le=1000)]


MailFolders = Annotated[NameList, Meta(description='a list of folders as in ["Archive", "Sent"]')]
MailTls = Literal["auto", "tls", "starttls", "none"]
FilePath = Annotated[
    str,
    Meta(extra={"check": check_path}),
    Meta(pattern=whole(r"(/.*)?"), max_length=1000, description='the whole path of a file, or ""'),
]
AccountName = Annotated[GivenName, Meta(description="letters, numbers, spaces, dots, hyphens")]


class _MailLogin(CheckedTable, frozen=True):
    """What every account of the owner's has. "none" for TLS is only for a server on this machine."""

    address: MailAddress

    def check(self) -> None:
        for server in ("imap", "smtp"):
            if getattr(self, f"{server}_tls") == "none" and not is_loopback(getattr(self, f"{server}_host")):
                raise ValueError(f'has {server}_tls = "none", which is only for a server on this machine')


class FurtherMailAccount(_MailLogin, frozen=True, kw_only=True):
    """A mail account besides the first. Its password is in `mail_account.passwords`, by its name."""

    name: AccountName
    address: Annotated[MailAddress, Meta(min_length=1)]
    sender_name: ShortText = ""
    user: ShortText = ""
    imap_host: Annotated[ShortText, Meta(min_length=1)]
    imap_port: Port = 993
    imap_tls: MailTls = "auto"
    smtp_host: Annotated[ShortText, Meta(min_length=1)]
    smtp_port: Port = 465
    smtp_tls: MailTls = "auto"
    ca_file: FilePath = ""
    folders: MailFolders = ("INBOX",)
    sent_folder: ShortText = ""
    drafts_folder: ShortText = ""


class MailAccountSettings(_MailLogin, frozen=True):
    """The first account."""

    account_name: AccountName
    sender_name: ShortText
    user: ShortText
    password: SecretStr
    imap_host: ShortText
    imap_port: Port
    imap_tls: MailTls
    smtp_host: ShortText
    smtp_port: Port
    smtp_tls: MailTls
    ca_file: FilePath
    folders: MailFolders
    sent_folder: ShortText
    drafts_folder: ShortText
    further: Annotated[
        tuple[FurtherMailAccount, ...],
        Meta(extra={"convert": convert_to_tuple}),
        Meta(description="a list of tables, each with a name, an address, an imap_host and an smtp_host"),
    ]
    passwords: SecretStr

    @property
    def name(self) -> str:
        return self.account_name

    def check(self) -> None:
        super().check()
        names = [self.name.casefold(), *(account.name.casefold() for account in self.further)]
        if len(set(names)) < len(names):
            raise ValueError("two mail accounts have the same name")
