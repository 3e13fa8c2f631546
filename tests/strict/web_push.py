"""A push service of a browser, as strict as the real ones, and the browser behind it.

    async with StrictWebPush() as server:
        address = server.address  # what the browser's `PushManager` gives
        server.key = key  # with which it was asked for

It verifies who signed (RFC 8292), refuses what is not encrypted as it has to be (RFC 8291, RFC 8188), and decrypts it
with the browser's own key. What came stands in `messages`, what was wrong in `complaints`; `refusals` are statuses with
which the next requests are refused.
"""

from __future__ import annotations

import base64
import json
import os
import time
from types import TracebackType
from typing import Any, Self

from aiohttp import web
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

_CURVE = ec.SECP256R1()
_LONGEST = 4096
_DAY = 24 * 3600


class StrictWebPush:
    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.complaints: list[str] = []
        self.refusals: list[int] = []
        self.key = ""
        self._private = ec.generate_private_key(_CURVE)
        self._public = self._private.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        self._auth = os.urandom(16)
        self._runner: web.AppRunner | None = None
        self._origin = ""

    @property
    def address(self) -> dict[str, str]:
        return {"endpoint": f"{self._origin}/push/1", "p256dh": _encode(self._public), "auth": _encode(self._auth)}

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/push/1", self._take)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self._origin = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _take(self, request: web.Request) -> web.Response:
        if self.refusals:
            return web.Response(status=self.refusals.pop(0))
        body = await request.read()
        try:
            self._check_signature(request.headers.get("Authorization", ""))
            assert request.headers.get("Content-Encoding") == "aes128gcm", "not encrypted as RFC 8291 says"
            assert request.headers.get("TTL", "").isdigit(), "no TTL"
            assert len(body) <= _LONGEST, "too long"
            self.messages.append(json.loads(self._decrypted(body)))
        except (AssertionError, ValueError, InvalidSignature) as error:
            self.complaints.append(f"{type(error).__name__}: {error}")
            return web.Response(status=400)
        return web.Response(status=201)

    def _check_signature(self, header: str) -> None:
        scheme, _, rest = header.partition(" ")
        given = dict(part.strip().split("=", 1) for part in rest.split(","))
        assert scheme == "vapid" and given["k"] == self.key, "signed with another key"
        head, claims, signature = given["t"].split(".")
        number = _decode(signature)
        pair = (int.from_bytes(number[:32]), int.from_bytes(number[32:]))
        public = ec.EllipticCurvePublicKey.from_encoded_point(_CURVE, _decode(self.key))
        public.verify(encode_dss_signature(*pair), f"{head}.{claims}".encode(), ec.ECDSA(SHA256()))
        said = json.loads(_decode(claims))
        assert json.loads(_decode(head))["alg"] == "ES256" and said["aud"] == self._origin, "for another service"
        assert time.time() < said["exp"] <= time.time() + _DAY, "good for too long, or no more"
        assert said["sub"].startswith(("mailto:", "https://")), "no sender"

    def _decrypted(self, body: bytes) -> bytes:
        salt, length = body[:16], body[20]
        sender, record = body[21 : 21 + length], body[21 + length :]
        shared = self._private.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(_CURVE, sender))
        keys = _derive(self._auth, shared, b"WebPush: info\0" + self._public + sender, 32)
        key, nonce = (_derive(salt, keys, b"Content-Encoding: " + name, size) for name, size in _DERIVED)
        padded = AESGCM(key).decrypt(nonce, record, None).rstrip(b"\0")
        assert padded.endswith(b"\x02"), "not the last record"
        return padded[:-1]


_DERIVED = ((b"aes128gcm\0", 16), (b"nonce\0", 12))


def _derive(salt: bytes, secret: bytes, info: bytes, length: int) -> bytes:
    return HKDF(SHA256(), length, salt, info).derive(secret)


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
