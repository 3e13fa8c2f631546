"""The networks that are configured, put together: one part of the composition root (`assistant.wire.app`).

What always holds: a network's library is loaded where the owner has that network, and only then. A bridge that can't be
made stands in its place as one that fails, and says why (F39).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

import structlog
from pydantic import SecretStr

from assistant.commands.bridges import BridgeCommands, BridgeStores, DeliveryCommands
from assistant.core.bridge_api import (
    NETWORK_NAMES,
    Bridge,
    BridgeCapabilities,
    DeviceLogin,
    InboundPort,
    OutgoingPart,
    TurnEvent,
)
from assistant.core.errors import BridgeError, SettingsError, StoreError, install_hint
from assistant.core.people import Identity
from assistant.gateway.dispatcher import Dispatcher
from assistant.settings.network_sections import NetworkSettings
from assistant.settings.secrets import IN_KEYRING
from assistant.settings.settings import Settings, load_settings
from assistant.store.script.people import People
from assistant.wire.stores import Stores

log = structlog.get_logger()


class BridgeHost(Protocol):
    """Where bridges are had (`assistant.gateway.dispatcher.Delivery`)."""

    async def put(self, name: str, bridge: Bridge) -> None: ...
    async def drop(self, name: str) -> None: ...


class ConfiguredBridges:
    """The bridges that settings ask for."""

    def __init__(self, settings: Settings, people: People | None) -> None:
        """Without `people` nobody is the owner there."""
        self._people = people
        self._settings = settings
        # Those that are not as the settings ask for.
        self._due: set[str] = set()
        # Settings may be found changed while somebody has them taken up.
        self._one_at_a_time = asyncio.Lock()

    def open_all(self) -> dict[str, Bridge]:
        return {name: self._made(name) for name in NETWORK_NAMES if _wanted(self._settings, name)}

    async def apply_settings(self, settings: Settings, lines: BridgeHost) -> None:
        """Have those that `settings` ask for; one whose settings did not change is left alone."""
        async with self._one_at_a_time:
            before, self._settings = self._settings, settings
            self._due |= {name for name in NETWORK_NAMES if _section(before, name) != _section(settings, name)}
        await self.retry_pending(lines)

    @property
    def has_pending(self) -> bool:
        """Whether one is not as the settings ask for: `catch_up` tries again."""
        return bool(self._due)

    async def retry_pending(self, lines: BridgeHost) -> None:
        async with self._one_at_a_time:
            try:
                await self._have_due(lines)
            except StoreError as error:
                log.error("a bridge is not as the settings ask for; tried again", error=str(error))

    async def reload(self, name: str, lines: BridgeHost) -> None:
        """Have one as the settings are at this moment, its token too. Raises `SettingsError`, and `StoreError` where it
        could not be had yet."""
        async with self._one_at_a_time:
            found = load_settings(self._settings.home, ring=None)
            values = self._settings.values.model_copy(update={name: _section(found, name)})
            origins = {key: origin for key, origin in found.origins.items() if key.startswith(f"{name}.")}
            self._settings = replace(self._settings, values=values, origins={**self._settings.origins, **origins})
            self._due.add(name)
            await self._have_due(lines)

    async def _have_due(self, lines: BridgeHost) -> None:
        for name in sorted(self._due):
            await self._take_up(name, lines)
            self._due.discard(name)

    async def _take_up(self, name: str, lines: BridgeHost) -> None:
        if _wanted(self._settings, name):
            await lines.put(name, self._made(name))
        else:
            await lines.drop(name)

    def open_one(self, name: str) -> Bridge:
        """A bridge by itself, for whoever tries it out."""
        return self._made(name)

    def _made(self, name: str) -> Bridge:
        try:
            make: Callable[[], Bridge] = {"matrix": self._matrix, "telegram": self._telegram}[name]
            return make()
        except (ImportError, BridgeError, SettingsError) as error:
            return UnavailableBridge(name, unavailable_reason(name, error))

    def _telegram(self) -> Bridge:
        from assistant.bridges.telegram.bridge import TelegramBridge  # a network's library, for those who have it

        wanted = self._settings.values.telegram
        return TelegramBridge(self._token("telegram", wanted.token), wanted.base_url)

    def _matrix(self) -> Bridge:
        from assistant.bridges.matrix.bridge import MatrixBridge  # an extra

        wanted = self._settings.values.matrix
        return MatrixBridge(
            wanted.homeserver,
            DeviceLogin(wanted.user, wanted.device, self._token("matrix", wanted.token)),
            store=self._settings.home.path / "bridges" / "matrix",
            encryption=wanted.encryption,
            invites=wanted.invites,
            is_owners=self._is_owners_on("matrix"),
        )

    def _is_owners_on(self, bridge: str) -> Callable[[str], bool]:
        def is_owners(account: str) -> bool:
            person = None if self._people is None else self._people.find_by_identity(Identity(bridge, account))
            return person is not None and person.role == "owner"

        return is_owners

    def _token(self, name: str, found: SecretStr) -> str:
        """Settings that were read again while the daemon runs come without what is in the keyring, or with what was
        there before."""
        if not found.get_secret_value() or self._settings.origins[f"{name}.token"] == IN_KEYRING:
            found = _section(load_settings(self._settings.home), name).token
        if not found.get_secret_value():
            raise BridgeError(f"No token is kept for {name}. `assistant bridge add {name}` asks for one.")
        return found.get_secret_value()


@dataclass(frozen=True, slots=True)
class UnavailableBridge:
    """Stands for a bridge that can't be made."""

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
        """Nobody is there to see it."""

    async def aclose(self) -> None:
        """Nothing was opened."""


def unavailable_reason(name: str, error: Exception) -> str:
    """What a person is told of a bridge that can't be made."""
    if isinstance(error, ImportError):
        return (
            f"The {name} bridge needs a package that is not installed ({error.name}); {install_hint(name)}. Then start "
            "the assistant again."
        )
    return str(error)


def build_bridge_commands(
    settings: Settings, stores: Stores, delivery: Dispatcher, networks: ConfiguredBridges, home: str
) -> tuple[BridgeCommands, DeliveryCommands]:
    """What the owner types about bridges and deliveries; `home` is the bridge of the home's own terminals."""

    async def reload(name: str) -> None:
        await networks.reload(name, delivery)

    def try_now(name: str) -> None:
        if name in delivery.bridges:
            delivery.retry_now(name)

    kept = BridgeStores(stores.outbox, stores.deliveries, stores.bridge_states, stores.places)
    about_bridges = BridgeCommands(delivery, reload, kept, settings.zone, home)
    return about_bridges, DeliveryCommands(stores.deliveries, try_now, settings.zone)


def _section(settings: Settings, name: str) -> NetworkSettings:
    section: NetworkSettings = getattr(settings.values, name)
    return section


def _wanted(settings: Settings, name: str) -> bool:
    return _section(settings, name).enabled
