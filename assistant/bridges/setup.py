"""Asking a network whether what a person answered is right, before anything of it is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import httpx2
from pydantic import SecretStr

from assistant.bridges.configured import ConfiguredBridges, unavailable_reason
from assistant.core.bridge_api import DeviceLogin
from assistant.core.errors import BridgeError
from assistant.settings.settings import Settings

_WITHIN = 30.0
_DISCOVERED_WITHIN = 5.0
_LONGEST = 64 * 1024
_TYPED = "what was typed"


def settings_with_answers(settings: Settings, name: str, answers: Mapping[str, str], token: str) -> Settings:
    """The settings as they would be, with one network on; `answers` by key of its section, "" for the token that is
    set."""
    section = getattr(settings.values, name)
    update = {**answers, "enabled": True, **({"token": SecretStr(token)} if token else {})}
    origins = {**settings.origins, **({f"{name}.token": _TYPED} if token else {})}
    values = settings.values.model_copy(update={name: section.model_copy(update=update)})
    return replace(settings, values=values, origins=origins)


async def check_account(settings: Settings, name: str) -> str:
    """Who we are on a network that is set up like this. Raises `BridgeError`."""
    bridge = ConfiguredBridges(settings, None).open_one(name)
    try:
        async with asyncio.timeout(_WITHIN):
            return await bridge.check()
    except TimeoutError:
        raise BridgeError(f"{name} does not answer within {_WITHIN:g} s.") from None
    finally:
        await bridge.aclose()


async def matrix_login(homeserver: str, user: str, password: str) -> DeviceLogin:
    """A device of its own for the assistant, and the token for it. Raises `BridgeError`."""
    try:
        from assistant.bridges.matrix.bridge import login  # an extra
    except ImportError as error:
        raise BridgeError(unavailable_reason("matrix", error)) from None
    return await login(homeserver, user, password)


async def find_matrix_device(homeserver: str, user: str, token: str) -> DeviceLogin:
    """The device that a token belongs to. Raises `BridgeError` for one that is refused, or is another account's."""
    path = f"{homeserver}/_matrix/client/v3/account/whoami"
    try:
        async with httpx2.AsyncClient(timeout=_WITHIN) as client:
            answer = await client.get(path, headers={"Authorization": f"Bearer {token}"})
        found = answer.json()
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        raise BridgeError(f"{homeserver} cannot be reached, or is no homeserver ({type(error).__name__}).") from None
    if not answer.is_success or not isinstance(found, dict) or "device_id" not in found:
        raise BridgeError(f"{homeserver} refuses this access token.")
    if found.get("user_id") != user:
        raise BridgeError(f"This access token is one of {found.get('user_id')}, not of {user}.")
    return DeviceLogin(user, str(found["device_id"]), token)


async def find_homeserver(server: str) -> str:
    """Where the homeserver of accounts at `server` ("example.org") is: what it says at `/.well-known/matrix/client`;
    where it says nothing, itself."""
    own = f"https://{server}"
    try:
        async with httpx2.AsyncClient(timeout=_DISCOVERED_WITHIN, follow_redirects=True) as client:
            answer = await client.get(f"{own}/.well-known/matrix/client")
        told = (
            answer.json()["m.homeserver"]["base_url"] if answer.is_success and len(answer.content) < _LONGEST else own
        )
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, KeyError, TypeError):
        return own
    return told.rstrip("/") if isinstance(told, str) and told.startswith(("https://", "http://")) else own
