"""How the bridges of a home are: of the daemon that runs them, else of what is kept."""

from __future__ import annotations

import json
from dataclasses import replace

from assistant.cli import attach
from assistant.cli.stored import opened
from assistant.commands.bridging_report import standing_from_json
from assistant.core.bridge_api import NETWORK_NAMES, BridgeStatus
from assistant.core.sessions import MAIN_SESSION
from assistant.service.home_lock import is_home_served
from assistant.service.unix_socket import is_listening
from assistant.settings.settings import Settings


def standings(settings: Settings) -> list[BridgeStatus]:
    """Those that are set up. Raises `HomeError`, `StoreError`, `LinkLost`."""
    if is_listening(settings.home.socket):
        return attach.run(_of_the_daemon(settings))
    return _as_kept(settings, is_home_served(settings.home))


async def _of_the_daemon(settings: Settings) -> list[BridgeStatus]:
    async with attach.daemon_link(settings.home) as link:
        told = json.loads(await link.command("/bridge list --json", MAIN_SESSION))
    return [standing_from_json(one) for one in told]


def _as_kept(settings: Settings, starting: bool) -> list[BridgeStatus]:
    """Nobody runs them; `starting`: somebody is about to."""
    names = [name for name in NETWORK_NAMES if getattr(settings.values, name).enabled]
    found = [BridgeStatus(name, "connecting" if starting else "off", _account(settings, name)) for name in names]
    if not found or not (settings.home.path / "script.db").exists():
        return found
    with opened(settings) as stores:
        waiting = stores.deliveries.waiting()
        return [
            replace(
                one,
                state="paused" if stores.bridge_states.paused(one.name) else one.state,
                waiting=waiting.get(one.name, 0),
            )
            for one in found
        ]


def _account(settings: Settings, name: str) -> str:
    """Where the settings tell it."""
    return settings.values.matrix.user if name == "matrix" else ""
