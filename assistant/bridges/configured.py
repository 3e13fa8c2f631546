"""Creates the configured bridges, and updates them when the settings change.

A network's library is only imported if that network is configured. A bridge that cannot be created is replaced by one
that fails and says why (F39).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import field, replace
from functools import partial

from assistant.core.bridge_api import (
    NETWORK_NAMES,
    Bridge,
    BridgeCapabilities,
    DeviceLogin,
    InboundPort,
    OutgoingPart,
    TurnEvent,
)
from assistant.core.dataclass import dataclass
from assistant.core.errors import BridgeError, SettingsError, StoreError, install_hint
from assistant.core.logger import get_logger
from assistant.core.people import Identity
from assistant.core.secret_text import SecretStr
from assistant.gateway.dispatcher import Dispatcher
from assistant.mail.account import MailAccount, MailServer
from assistant.settings.networks import NetworkSettings
from assistant.settings.secrets import IN_KEYRING
from assistant.settings.settings import Settings, load_settings
from assistant.store.script.people import People

log = get_logger()


class ConfiguredBridges:
    """Creates bridges, and replaces those whose settings changed."""

    def __init__(self, settings: Settings, people: People | None) -> None:
        """Without `people`, no account is the owner's."""
        self._people = people
        self._settings = settings
        self._due: set[str] = set()  # names of those that do not match the settings yet
        self._one_at_a_time = asyncio.Lock()  # settings may change while bridges are being replaced
        self._replacing: asyncio.Future[None] | None = None

    def open_all(self) -> dict[str, Bridge]:
        return {name: self.open_one(name) for name in NETWORK_NAMES if _section(self._settings, name).enabled}

    def take_over(self, settings: Settings, dispatcher: Dispatcher) -> None:
        """Run `apply_settings` in the background."""
        self._replacing = asyncio.ensure_future(self.apply_settings(settings, dispatcher))

    def check_due(self, dispatcher: Dispatcher) -> None:
        """Called at every wake-up: retry replacements that failed."""
        if self._due and (self._replacing is None or self._replacing.done()):
            self._replacing = asyncio.ensure_future(self.retry_pending(dispatcher))

    async def apply_settings(self, settings: Settings, dispatcher: Dispatcher) -> None:
        """Apply changed settings; bridges whose settings are the same keep running."""
        async with self._one_at_a_time:
            before, self._settings = self._settings, settings
            self._due |= {name for name in NETWORK_NAMES if _section(before, name) != _section(settings, name)}
        await self.retry_pending(dispatcher)

    async def retry_pending(self, dispatcher: Dispatcher) -> None:
        """Try again to replace bridges whose settings changed. Waits for another change; never raises `StoreError`, but
        logs it."""
        async with self._one_at_a_time:
            try:
                await self._replace_due(dispatcher)
            except StoreError as error:
                log.error("a bridge is not as the settings ask for; tried again", error=str(error))

    async def reload(self, name: str, dispatcher: Dispatcher) -> None:
        """Reload one bridge with its current settings and token. Raises `SettingsError`, and `StoreError` if it could
        not be replaced yet."""
        async with self._one_at_a_time:
            read = load_settings(self._settings.home, ring=None)
            values = self._settings.values.changed(**{name: _section(read, name)})
            origins = {key: origin for key, origin in read.origins.items() if key.startswith(f"{name}.")}
            self._settings = replace(self._settings, values=values, origins={**self._settings.origins, **origins})
            self._due.add(name)
            await self._replace_due(dispatcher)

    async def _replace_due(self, dispatcher: Dispatcher) -> None:
        for name in sorted(self._due):
            if _section(self._settings, name).enabled:
                await dispatcher.put(name, self.open_one(name))
            else:
                await dispatcher.drop(name)
            self._due.discard(name)

    def open_one(self, name: str) -> Bridge:
        """Create one bridge without starting it."""
        try:
            makers = {
                "telegram": self._telegram,
                "matrix": self._matrix,
                "discord": self._discord,
                "slack": self._slack,
                "mail": self._mail,
            }
            return makers[name]()
        except (ImportError, BridgeError, SettingsError) as error:
            return UnavailableBridge(name, unavailable_reason(name, error))

    def _telegram(self) -> Bridge:
        from assistant.bridges.telegram.bridge import TelegramBridge  # imported only if the network is configured

        return TelegramBridge(self._token("telegram"), self._settings.values.telegram.base_url)

    def _matrix(self) -> Bridge:
        from assistant.bridges.matrix.bridge import MatrixBridge  # an optional dependency

        matrix = self._settings.values.matrix
        return MatrixBridge(
            matrix.homeserver,
            DeviceLogin(matrix.user, matrix.device, self._token("matrix")),
            store=self._settings.home.path / "bridges" / "matrix",
            encryption=matrix.encryption,
            invites=matrix.invites,
            is_owners=partial(self._is_owners, "matrix"),
        )

    def _discord(self) -> Bridge:
        from assistant.bridges.discord.bridge import DiscordBridge  # an optional dependency

        return DiscordBridge(self._token("discord"))

    def _slack(self) -> Bridge:
        from assistant.bridges.slack.bridge import SlackBridge  # an optional dependency

        return SlackBridge(self._token("slack"))

    def _mail(self) -> Bridge:
        from assistant.bridges.mail.bridge import MailBridge  # an optional dependency

        mail, password = self._settings.values.mail, self._token("mail")
        if not (mail.address and mail.imap_host and mail.smtp_host):
            raise BridgeError(
                "The mailbox is not set up. `assistant bridge add mail` asks for its address and servers."
            )
        user = mail.user or mail.address
        account = MailAccount(
            mail.address,
            MailServer(mail.imap_host, mail.imap_port, user, password),
            MailServer(mail.smtp_host, mail.smtp_port, user, password),
            "Nocturne",
        )
        return MailBridge(
            account,
            verified_by=mail.verified_by,
            verified_with=mail.verified_with,
            hourly_limit=mail.hourly_limit,
        )

    def _is_owners(self, bridge: str, account: str) -> bool:
        person = None if self._people is None else self._people.find_by_identity(Identity(bridge, account))
        return person is not None and person.role == "owner"

    def _token(self, name: str) -> str:
        """Read the token from the keyring, since settings reloaded while the daemon runs have no, or old, keyring
        values."""
        token = _section(self._settings, name).token.get_secret_value()
        if not token or self._settings.origins[f"{name}.token"] == IN_KEYRING:
            token = _section(load_settings(self._settings.home), name).token.get_secret_value()
        if not token:
            raise BridgeError(f"No token is kept for {name}. `assistant bridge add {name}` asks for one.")
        return token


@dataclass(frozen=True, slots=True)
class UnavailableBridge:
    """Replaces a bridge that cannot be created."""

    name: str
    reason: str
    capabilities: BridgeCapabilities = field(default_factory=BridgeCapabilities)

    async def check(self) -> str:
        raise BridgeError(self.reason)

    async def run(self, inbound: InboundPort) -> None:
        raise BridgeError(self.reason)

    async def send(self, part: OutgoingPart) -> None:
        raise BridgeError(self.reason)

    def show(self, event: TurnEvent, target: str) -> None:
        """Do nothing."""

    async def aclose(self) -> None:
        """Do nothing."""


def unavailable_reason(name: str, error: Exception) -> str:
    """Explain to a person why a bridge cannot be created."""
    if isinstance(error, ImportError):
        return (
            f"The {name} bridge needs a package that is not installed ({error.name}); {install_hint(name)}. Then start "
            "the assistant again."
        )
    return str(error)


def _section(settings: Settings, name: str) -> NetworkSettings:
    section: NetworkSettings = getattr(settings.values, name)
    return section


_WITHIN = 30.0
_DISCOVERED_WITHIN = 5.0
_LONGEST = 64 * 1024
_TYPED = "what was typed"


def settings_with_answers(settings: Settings, name: str, answers: Mapping[str, str], token: str) -> Settings:
    """Return the settings as they would be with a network enabled; `answers` by key of its section, token "" for the
    current one."""
    section = getattr(settings.values, name)
    update = {**answers, "enabled": True, **({"token": SecretStr(token)} if token else {})}
    origins = {**settings.origins, **({f"{name}.token": _TYPED} if token else {})}
    values = settings.values.changed(**{name: section.changed(**update)})
    return replace(settings, values=values, origins=origins)


async def check_account(settings: Settings, name: str) -> str:
    """Return our account on a network with these settings. Raises `BridgeError`."""
    bridge = ConfiguredBridges(settings, None).open_one(name)
    try:
        async with asyncio.timeout(_WITHIN):
            return await bridge.check()
    except TimeoutError:
        raise BridgeError(f"{name} does not answer within {_WITHIN:g} s.") from None
    finally:
        await bridge.aclose()


async def matrix_login(homeserver: str, user: str, password: str) -> DeviceLogin:
    """Create a device for the assistant and return its token. Raises `BridgeError`."""
    try:
        from assistant.bridges.matrix.bridge import login  # an optional dependency
    except ImportError as error:
        raise BridgeError(unavailable_reason("matrix", error)) from None
    return await login(homeserver, user, password)


async def find_mail_verifier(settings: Settings) -> str:
    """Return the server that verified the sender of the newest mail in the mailbox of `[mail]`; "" if none. Raises
    `BridgeError`."""
    bridge = ConfiguredBridges(settings, None).open_one("mail")
    if isinstance(bridge, UnavailableBridge):
        raise BridgeError(bridge.reason)
    from assistant.bridges.mail.bridge import find_verifier

    mail = settings.values.mail
    server = MailServer(mail.imap_host, mail.imap_port, mail.user or mail.address, mail.token.get_secret_value())
    return await find_verifier(server)


async def find_matrix_device(homeserver: str, user: str, token: str) -> DeviceLogin:
    """Return the device of a token. Raises `BridgeError` if the token is refused, or belongs to another account."""
    import httpx2  # only needed for setup

    path = f"{homeserver}/_matrix/client/v3/account/whoami"
    try:
        async with httpx2.AsyncClient(timeout=_WITHIN) as client:
            answer = await client.get(path, headers={"Authorization": f"Bearer {token}"})
        account = answer.json()
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        raise BridgeError(f"{homeserver} cannot be reached, or is no homeserver ({type(error).__name__}).") from None
    if not answer.is_success or not isinstance(account, dict) or "device_id" not in account:
        raise BridgeError(f"{homeserver} refuses this access token.")
    if account.get("user_id") != user:
        raise BridgeError(f"This access token is one of {account.get('user_id')}, not of {user}.")
    return DeviceLogin(user, str(account["device_id"]), token)


async def find_homeserver(server: str) -> str:
    """Return the homeserver of accounts at `server` ("example.org"): the one in `/.well-known/matrix/client`, or
    `server` itself."""
    import httpx2  # only needed for setup

    own = f"https://{server}"
    try:
        async with httpx2.AsyncClient(timeout=_DISCOVERED_WITHIN, follow_redirects=True) as client:
            answer = await client.get(f"{own}/.well-known/matrix/client")
        if not answer.is_success or len(answer.content) >= _LONGEST:
            return own
        address = answer.json()["m.homeserver"]["base_url"]
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, KeyError, TypeError):
        return own
    is_address = isinstance(address, str) and address.startswith(("https://", "http://"))
    return str(address).rstrip("/") if is_address else own
