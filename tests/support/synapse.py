"""A real Matrix homeserver for tests: Synapse on a free loopback port, SQLite in a directory of its own.

Accounts are made with the registration secret; people then act over the client API, as their apps would."""

from __future__ import annotations

import hashlib
import hmac
import itertools
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx2

SERVER = "test.example"
SECRET = "registration of tests"
_PASSWORD = "a password of tests"
_SECONDS = 60
# Nobody is held back, but for the account that a test slows down itself.
_FREELY = "{per_second: 10000, burst_count: 10000}"

_CONFIG = """\
server_name: {server}
report_stats: false
pid_file: {folder}/synapse.pid
listeners:
  - {{port: {port}, type: http, bind_addresses: [127.0.0.1], resources: [{{names: [client, media]}}]}}
database: {{name: sqlite3, args: {{database: ":memory:"}}}}
media_store_path: {folder}/media
signing_key_path: {folder}/signing.key
registration_shared_secret: "{secret}"
macaroon_secret_key: "{secret}"
form_secret: "{secret}"
log_config: {folder}/log.yaml
trusted_key_servers: []
suppress_key_server_warning: true
bcrypt_rounds: 4
presence: {{enabled: false}}
push: {{enabled: false}}
stats: {{enabled: false}}
user_directory: {{enabled: false}}
federation_domain_whitelist: []
send_federation: false
gc_thresholds: [100000, 50, 50]
caches: {{sync_response_cache_duration: 0}}
rc_message: {freely}
rc_registration: {freely}
rc_login: {{address: {freely}, account: {freely}, failed_attempts: {freely}}}
rc_admin_redaction: {freely}
rc_joins: {{local: {freely}, remote: {freely}}}
rc_joins_per_room: {freely}
rc_room_creation: {freely}
rc_invites: {{per_room: {freely}, per_user: {freely}, per_issuer: {freely}}}
rc_media_create: {freely}
"""

_LOGGING = """\
version: 1
formatters: {{line: {{format: "%(asctime)s %(levelname)s %(name)s %(message)s"}}}}
handlers: {{file: {{class: logging.FileHandler, filename: {folder}/log, formatter: line}}}}
root: {{level: WARNING, handlers: [file]}}
disable_existing_loggers: false
"""


@dataclass
class Synapse:
    """A running server."""

    port: int
    # Accounts that several tests use, by what they are there for: id, device, token, and how far they have looked.
    shared: dict[str, tuple[str, str, str, str]] = field(default_factory=dict)
    # A room that several tests use.
    room: str = ""
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def register(self, name: str) -> tuple[str, str]:
        """A new account whose name begins with `name`: its id and its password."""
        return str(self._made(name)["user_id"]), _PASSWORD

    def register_device(self, name: str) -> tuple[str, str, str]:
        """A new account that is logged in: its id, device and token."""
        made = self._made(name)
        return made["user_id"], made["device_id"], made["access_token"]

    def _made(self, name: str) -> dict[str, str]:
        user = f"{name}{next(self._numbers)}"
        path = f"{self.url}/_synapse/admin/v1/register"
        nonce = httpx2.get(path).json()["nonce"]
        said = b"\0".join(part.encode() for part in (nonce, user, _PASSWORD, "admin"))
        mac = hmac.new(SECRET.encode(), said, hashlib.sha1).hexdigest()
        body = {"nonce": nonce, "username": user, "password": _PASSWORD, "admin": True, "mac": mac}
        made: dict[str, str] = httpx2.post(path, json=body).raise_for_status().json()
        return made


@contextmanager
def run_synapse() -> Iterator[Synapse]:
    with TemporaryDirectory(prefix="synapse", ignore_cleanup_errors=True) as directory:
        folder, port = Path(directory), _free_port()
        names = {"server": SERVER, "folder": folder, "port": port, "secret": SECRET, "freely": _FREELY}
        (folder / "log.yaml").write_text(_LOGGING.format(**names))
        (folder / "signing.key").write_text(f"ed25519 a_test {'A' * 43}\n")
        (folder / "config.yaml").write_text(_CONFIG.format(**names))
        # It says over this socket, as to a service manager, that it is ready.
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready:
            ready.bind(str(folder / "ready"))
            ready.settimeout(_SECONDS)
            command = [sys.executable, "-m", "synapse.app.homeserver", "-c", str(folder / "config.yaml")]
            environment = {**os.environ, "NOTIFY_SOCKET": str(folder / "ready")}
            process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL)
            try:
                assert b"READY=1" in ready.recv(1000)
                yield Synapse(port)
            finally:
                process.send_signal(signal.SIGKILL)
                process.wait(_SECONDS)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
