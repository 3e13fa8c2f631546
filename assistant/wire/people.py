"""Who is who, and what they may do, put together: one part of the composition root (`assistant.wire.app`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime

from assistant.bridges.terminal.bridge import TerminalBridge
from assistant.commands.people import PeopleCommands
from assistant.commands.registry import CommandRegistry
from assistant.core.errors import SettingsError
from assistant.core.people import invalid_grants
from assistant.core.records import InboxReceipt, IncomingMessage, OutgoingMessage
from assistant.core.slash_commands import PendingCommand
from assistant.gateway.dispatcher import Dispatcher
from assistant.gateway.inbound import InboundHandler, InboundStores
from assistant.gateway.routing import Destination, OutgoingRouter
from assistant.people.pairing import DeniedMessages, PairingRules, PairingService
from assistant.settings.sections import RoleSettings
from assistant.settings.settings import Settings
from assistant.wire.stores import Stores

AllowedRoles = Mapping[str, Collection[str]]


def build_pairing(settings: Settings, stores: Stores) -> PairingService:
    wanted = settings.values.people
    rules = PairingRules(wanted.unknown, wanted.pairing_minutes, wanted.pairing_pending, wanted.pairing_tries)
    return PairingService(stores.people, stores.pairings, stores.places, rules, settings.zone, TerminalBridge.name)


def build_people_commands(settings: Settings, stores: Stores, bridges: Callable[[], Sequence[str]]) -> PeopleCommands:
    """`bridges` are those over which people can be met."""
    denied = build_denied_notices(stores).supersede_denied
    return PeopleCommands(stores.people, build_pairing(settings, stores), bridges, settings.zone, denied)


def build_denied_notices(stores: Stores) -> DeniedMessages:
    return DeniedMessages(stores.conversation, stores.people)


def build_inbound(
    settings: Settings,
    stores: Stores,
    commands: CommandRegistry,
    accept: Callable[[IncomingMessage], Awaitable[InboxReceipt]],
    dispatcher: Dispatcher,
    clock: Callable[[], datetime],
) -> InboundHandler:
    inbound_stores = InboundStores(
        stores.people, stores.places, stores.typed_commands, stores.bridge_states, stores.message_edits
    )
    pairing = build_pairing(settings, stores)

    async def run_command(command: PendingCommand) -> str:
        return await commands.run(
            command.text, command.session, bridge=command.bridge, target=command.target, sender=command.sender
        )

    return InboundHandler(
        inbound_stores,
        accept=accept,
        handle_stranger=pairing.handle_stranger,
        redeem_link_code=pairing.redeem_link_code,
        command_names=commands.names,
        run_command=run_command,
        dispatcher=dispatcher,
        answers_everything_in_rooms=lambda: settings.values.room.answers == "everything",
        clock=clock,
    )


def build_destinations(stores: Stores, home: str) -> Callable[[OutgoingMessage], Destination | None]:
    """Where what goes out may still go; `home` is the bridge of the home's own terminals."""
    return OutgoingRouter(stores.people, stores.places, home).resolve_destination


def check_grants(settings: Settings, tools: AllowedRoles, commands: AllowedRoles) -> None:
    """Raises `SettingsError` naming what `[guest]` or `[room]` grants and nobody but the owner may have, or nobody
    knows."""
    values = settings.values
    for role, section in (("guest", values.guest), ("room", values.room)):
        _check(role, section, tools, commands)


def _check(role: str, section: RoleSettings, tools: AllowedRoles, commands: AllowedRoles) -> None:
    for key, named, admitted in (("tools", section.tools, tools), ("commands", section.commands, commands)):
        for name in invalid_grants(named, admitted, role):
            what = "is the owner's alone" if name in admitted else "does not exist"
            possible = ", ".join(sorted(one for one, roles in admitted.items() if role in roles))
            raise SettingsError(
                f"`{role}.{key}` names {name!r}, which {what}. Nothing was started; of these it may name: {possible}."
            )
