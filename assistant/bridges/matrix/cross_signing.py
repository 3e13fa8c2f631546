"""Cross-signing of the Matrix bridge's device.

Apps warn about, or refuse to write to, devices that their account has not signed, so the account gets signing keys if
it has none. They are stored before they are uploaded, so that after a crash the next run uploads them. Keys created by
another program are not changed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nio import Api
from vodozemac import Account

from assistant.bridges.matrix.client import MatrixClient, MatrixRefusal
from assistant.bridges.matrix.events import api_path
from assistant.core.dataclass import dataclass
from assistant.core.logger import get_logger
from assistant.core.plain_files import read_own_file
from assistant.store.files import write_file

log = get_logger()

_FILE = "signing-keys.json"
_USAGES = ("master", "self_signing", "user_signing")
# The directory's mode protects the file, like the other keys.
_PICKLE_KEY = bytes(32)


@dataclass(frozen=True, slots=True)
class SigningKeys:
    """The three signing keys of the account."""

    user: str
    keys: Mapping[str, Account]

    def public_key(self, usage: str) -> str:
        """Return it in unpadded base64."""
        key: str = self.keys[usage].ed25519_key.to_base64()
        return key

    def upload_payload(self, usage: str) -> dict[str, Any]:
        """Return the key for upload: signed by the master key, except for the master key itself."""
        public = self.public_key(usage)
        body = {"user_id": self.user, "usage": [usage], "keys": {f"ed25519:{public}": public}}
        return body if usage == "master" else self.sign_payload(body, "master")

    def sign_payload(self, body: Mapping[str, Any], usage: str) -> dict[str, Any]:
        """Return the body with its signature alone, over its canonical JSON without `signatures` and `unsigned` (Matrix
        specification, "Signing JSON")."""
        plain = {key: value for key, value in body.items() if key not in ("signatures", "unsigned")}
        signature = self.keys[usage].sign(Api.to_canonical_json(plain).encode()).to_base64()
        return {**plain, "signatures": {self.user: {f"ed25519:{self.public_key(usage)}": signature}}}


@dataclass(frozen=True, slots=True)
class _PublishedKeys:
    """What the server has of this device's and its account's keys; None if missing."""

    own: Mapping[str, Any] | None
    master: Mapping[str, Any] | None
    signing: Mapping[str, Any] | None


async def _load_published_keys(client: MatrixClient) -> _PublishedKeys:
    user, device = client.user_id, client.device_id or ""
    answer = await client.request_json("POST", api_path("keys", "query"), {"device_keys": {user: []}})
    own = answer.get("device_keys", {}).get(user, {}).get(device)
    return _PublishedKeys(own, answer.get("master_keys", {}).get(user), answer.get("self_signing_keys", {}).get(user))


async def is_device_verified(client: MatrixClient) -> bool:
    """Return whether the account has signed this device, or the device has no keys yet. Raises `BridgeError`."""
    published = await _load_published_keys(client)
    return published.own is None or _is_signed(published.own, published.signing, client.user_id)


async def sign_device(client: MatrixClient, folder: Path) -> None:
    """Sign this device with the account's keys, if they are ours. Raises `BridgeError`."""
    user, device = client.user_id, client.device_id or ""
    published = await _load_published_keys(client)
    own, master, signing = published.own, published.master, published.signing
    if own is None:
        return
    keys = _load_keys(folder / _FILE, user)
    if master is None:
        keys = keys or _create_keys(folder / _FILE, user)
        if not await _upload_keys(client, keys):
            return
    elif keys is None or keys.public_key("master") not in master["keys"].values():
        if not _is_signed(own, signing, user):
            log.warning("this device is not verified: apps may keep encrypted messages from it", device=device)
        return
    elif _is_signed(own, signing, user):
        return
    signed = {device: keys.sign_payload(own, "self_signing")}
    await client.request_json("POST", api_path("keys", "signatures", "upload"), {user: signed})
    log.info("this device is signed by its account", device=device)


async def _upload_keys(client: MatrixClient, keys: SigningKeys) -> bool:
    body = {f"{usage}_key": keys.upload_payload(usage) for usage in _USAGES}
    try:
        await client.request_json("POST", api_path("keys", "device_signing", "upload"), body)
    except MatrixRefusal as refusal:
        # Servers may ask for the password even the first time.
        if not refusal.is_final:
            raise
        log.warning("the account's signing keys could not be uploaded: the device is not verified", why=str(refusal))
        return False
    return True


def _is_signed(device: Mapping[str, Any], signing: Mapping[str, Any] | None, user: str) -> bool:
    signatures = device.get("signatures", {}).get(user, {})
    return signing is not None and any(key in signatures for key in signing["keys"])


def _create_keys(file: Path, user: str) -> SigningKeys:
    keys = SigningKeys(user, {usage: Account() for usage in _USAGES})
    pickled = {usage: key.pickle(_PICKLE_KEY) for usage, key in keys.keys.items()}
    new = file.with_suffix(".new")
    write_file(new, json.dumps({"user": user, "keys": pickled}).encode())
    new.replace(file)
    return keys


def _load_keys(file: Path, user: str) -> SigningKeys | None:
    if not file.exists():
        return None
    stored = json.loads(read_own_file(file))
    if stored["user"] != user:
        return None
    return SigningKeys(user, {usage: Account.from_pickle(key, _PICKLE_KEY) for usage, key in stored["keys"].items()})
