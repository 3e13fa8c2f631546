"""The Matrix bridge's device, vouched for by its account.

What always holds: apps show, or even send, encrypted messages only to devices that their account has signed
(cross-signing), so the account is given keys to sign with where it has none. They are kept before they are handed in: a
crash in between leaves keys that the next run hands in. An account whose keys somebody else has is left alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from nio import Api
from vodozemac import Account

from assistant.bridges.matrix.client import MatrixClient, MatrixRefusal
from assistant.bridges.matrix.events import api_path

log = structlog.get_logger()

_FILE = "signing-keys.json"
_USAGES = ("master", "self_signing", "user_signing")
# The file's own protection is its directory's mode, as that of the keys beside it.
_PICKLE_KEY = bytes(32)


@dataclass(frozen=True, slots=True)
class SigningKeys:
    """The account's three keys."""

    user: str
    keys: Mapping[str, Account]

    def public_key(self, usage: str) -> str:
        key: str = self.keys[usage].ed25519_key.to_base64()
        return key

    def upload_payload(self, usage: str) -> dict[str, Any]:
        """As the server is told of it: signed by the master key, which signs itself not."""
        public = self.public_key(usage)
        body = {"user_id": self.user, "usage": [usage], "keys": {f"ed25519:{public}": public}}
        return body if usage == "master" else self.sign_payload(body, "master")

    def sign_payload(self, body: Mapping[str, Any], usage: str) -> dict[str, Any]:
        plain = {key: value for key, value in body.items() if key not in ("signatures", "unsigned")}
        signature = self.keys[usage].sign(Api.to_canonical_json(plain).encode()).to_base64()
        return {**plain, "signatures": {self.user: {f"ed25519:{self.public_key(usage)}": signature}}}


@dataclass(frozen=True, slots=True)
class _Published:
    """What the server tells of this device, and of its account's keys; None for what there is not."""

    own: Mapping[str, Any] | None
    master: Mapping[str, Any] | None
    signing: Mapping[str, Any] | None


async def _published(client: MatrixClient) -> _Published:
    user, device = client.user_id, client.device_id or ""
    asked = await client.request_json("POST", api_path("keys", "query"), {"device_keys": {user: []}})
    own = asked.get("device_keys", {}).get(user, {}).get(device)
    return _Published(own, asked.get("master_keys", {}).get(user), asked.get("self_signing_keys", {}).get(user))


async def is_device_verified(client: MatrixClient) -> bool:
    """Whether the account vouches for this device, or it has no keys yet to be vouched for. Raises `BridgeError`."""
    there = await _published(client)
    return there.own is None or _is_signed(there.own, there.signing, client.user_id)


async def sign_device(client: MatrixClient, folder: Path) -> None:
    """Have the account vouch for this device, where it is ours to say. Raises `BridgeError`."""
    user, device = client.user_id, client.device_id or ""
    there = await _published(client)
    own, master, signing = there.own, there.master, there.signing
    if own is None:
        return
    kept = _kept(folder / _FILE, user)
    if master is None:
        kept = kept or _made(folder / _FILE, user)
        if not await _hand_in(client, kept):
            return
    elif kept is None or kept.public_key("master") not in master["keys"].values():
        if not _is_signed(own, signing, user):
            log.warning("this device is not verified: apps may keep encrypted messages from it", device=device)
        return
    elif _is_signed(own, signing, user):
        return
    signed = {device: kept.sign_payload(own, "self_signing")}
    await client.request_json("POST", api_path("keys", "signatures", "upload"), {user: signed})
    log.info("this device is signed by its account", device=device)


async def _hand_in(client: MatrixClient, keys: SigningKeys) -> bool:
    body = {f"{usage}_key": keys.upload_payload(usage) for usage in _USAGES}
    try:
        await client.request_json("POST", api_path("keys", "device_signing", "upload"), body)
    except MatrixRefusal as refusal:
        # Servers may ask for the password even the first time.
        if not refusal.is_final:
            raise
        log.warning("the account could not be given keys to sign its device with: it is not verified", why=str(refusal))
        return False
    return True


def _is_signed(device: Mapping[str, Any], signing: Mapping[str, Any] | None, user: str) -> bool:
    signatures = device.get("signatures", {}).get(user, {})
    return signing is not None and any(key in signatures for key in signing["keys"])


def _made(file: Path, user: str) -> SigningKeys:
    keys = SigningKeys(user, {usage: Account() for usage in _USAGES})
    pickled = {usage: key.pickle(_PICKLE_KEY) for usage, key in keys.keys.items()}
    new = file.with_suffix(".new")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as handle:
        json.dump({"user": user, "keys": pickled}, handle)
        handle.flush()
        os.fsync(handle.fileno())
    new.replace(file)
    return keys


def _kept(file: Path, user: str) -> SigningKeys | None:
    if not file.exists():
        return None
    kept = json.loads(file.read_text())
    if kept["user"] != user:
        return None
    return SigningKeys(user, {usage: Account.from_pickle(key, _PICKLE_KEY) for usage, key in kept["keys"].items()})
