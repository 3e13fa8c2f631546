"""Notifications to browsers that are logged in to the page (Web Push): encrypted for the browser alone (RFC 8291),
signed with a key of this data folder (VAPID, RFC 8292), and handed to the push service that the browser names.

pywebpush is an optional dependency, imported at first use.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from threading import Lock
from typing import Any

from assistant.core.errors import StoreError, UsageError, install_hint
from assistant.core.plain_files import FileRefused, read_plain_text
from assistant.notify.services import SEND_SECONDS, PushError
from assistant.store.files import sync_directory, write_file
from assistant.store.home.browser_sessions import PushAddress

# A telephone that is off gets it when it is on again, as long as it is of use.
_KEPT_SECONDS = 12 * 3600
_GONE = (404, 410)
_LONGEST_KEY = 10_000  # bytes of its file
# Push services want an address of who sends; it says nothing of whose assistant this is.
_SENDER = "mailto:nocturne@example.org"
_MISSING = f"Notifications in the browser need a package that is not installed; {install_hint('notify')}."


class BrowserGone(PushError):
    """The browser no longer takes notifications at this address."""


class PushKey:
    """The key pair of this data folder, made at first use."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self._key: Any = None

    def public(self) -> str:
        """Return the public key as browsers want it. Raises `UsageError` if the package is missing, `StoreError`."""
        key = self.load()
        # Only now: it comes with py-vapid, whose absence `load` reports.
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        point = key.public_key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        return base64.urlsafe_b64encode(point).rstrip(b"=").decode()

    def load(self) -> Any:
        """Return the key for pywebpush. Raises `UsageError` if the package is missing, `StoreError`."""
        try:
            from py_vapid import Vapid02, VapidException
        except ImportError:
            raise UsageError(_MISSING) from None
        with self._lock:
            if self._key is not None:
                return self._key
            try:
                if self._path.exists():
                    key = Vapid02.from_pem(read_plain_text(self._path, _LONGEST_KEY).encode())
                else:
                    key = Vapid02()
                    key.generate_keys()
                    write_file(self._path, key.private_pem())
                    sync_directory(self._path.parent)
            except (OSError, ValueError, FileRefused, VapidException) as error:
                raise StoreError(f"{self._path} cannot be used ({error}). Remove it to make a new key.") from error
            self._key = key
            return key


def send_to_browser(address: PushAddress, key: PushKey, title: str, body: str) -> None:
    """Raises `PushError`, `BrowserGone`."""
    try:
        loaded = key.load()
        import pywebpush  # slow to import, an optional dependency
        import requests
    except (ImportError, UsageError, StoreError) as error:
        raise PushError(str(error) if not isinstance(error, ImportError) else _MISSING) from None
    known = {"endpoint": address.endpoint, "keys": {"p256dh": address.p256dh, "auth": address.auth}}
    try:
        pywebpush.webpush(
            known,
            json.dumps({"title": title, "body": body}),
            vapid_private_key=loaded,
            vapid_claims={"sub": _SENDER},
            ttl=_KEPT_SECONDS,
            timeout=SEND_SECONDS,
        )
    except pywebpush.WebPushException as error:
        if error.status_code in _GONE:
            raise BrowserGone("A browser takes no notifications any more; they are off for it now.") from None
        raise PushError(f"The push service of a browser did not take it ({error.status_code}).") from None
    except requests.Timeout:
        raise PushError("The push service of a browser did not answer in time.", uncertain=True) from None
    except requests.RequestException as error:
        raise PushError(f"The push service of a browser cannot be reached ({type(error).__name__}).") from None
