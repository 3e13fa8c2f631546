"""A real mail server for tests: Debian's Dovecot on free loopback ports, with TLS (its own certificate) and without,
mail in a directory of its own. Every user name is an account, with one password; a mail is delivered as a mail transfer
agent delivers it, as a file in the maildir."""

from __future__ import annotations

import grp
import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.web_api import make_certificate

PASSWORD = "password-of-tests"
_SECONDS = 30

_CONFIG = """\
base_dir = {folder}/run
state_dir = {folder}/state
log_path = {folder}/log
protocols = imap
listen = 127.0.0.1
default_internal_user = {user}
default_internal_group = {group}
default_login_user = {login}
auth_mechanisms = plain
auth_failure_delay = 0
disable_plaintext_auth = no
first_valid_uid = 1
mail_location = maildir:~/Maildir
mail_max_userip_connections = 1000
ssl = yes
ssl_cert = <{certificate}
ssl_key = <{key}
auth_cache_size = 1M
passdb {{
  driver = static
  args = password={password}
}}
userdb {{
  driver = static
  args = uid={user} gid={group} home={folder}/mail/%u
}}
namespace inbox {{
  inbox = yes
  mailbox Drafts {{
    special_use = \\Drafts
    auto = subscribe
  }}
  mailbox Sent {{
    special_use = \\Sent
    auto = subscribe
  }}
}}
service imap-login {{
  chroot =
  service_count = 0
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = {tls_port}
    ssl = yes
  }}
}}
service anvil {{
  chroot =
  unix_listener anvil-auth-penalty {{
    mode = 0
  }}
}}
"""


@dataclass
class Dovecot:
    """A running server."""

    port: int
    tls_port: int  # TLS from the first byte; the other has STARTTLS
    certificate: Path
    key: Path
    folder: Path
    owner: tuple[int, int]  # whose the mail is
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def new_user(self) -> str:
        """An account with an empty inbox."""
        user = f"user{next(self._numbers)}"
        self._make(self.inbox(user))
        return user

    def inbox(self, user: str) -> Path:
        return self.folder / "mail" / user / "Maildir"

    def deliver(self, user: str, mail: bytes, folder: str = "") -> None:
        """What a mail transfer agent does: the file is whole before it is in `new`."""
        place = self.inbox(user) / f".{folder}" if folder else self.inbox(user)
        self._make(place)
        name = f"{next(self._numbers)}.{os.getpid()}.test"
        path = place / "tmp" / name
        path.write_bytes(mail)
        os.chown(path, *self.owner)
        path.rename(place / "new" / name)

    def mails(self, user: str, folder: str = "") -> list[bytes]:
        """All that is in a folder, in no order."""
        place = self.inbox(user) / f".{folder}" if folder else self.inbox(user)
        return [path.read_bytes() for part in ("new", "cur") for path in sorted((place / part).glob("*"))]

    def _make(self, maildir: Path) -> None:
        for part in ("cur", "new", "tmp"):
            (maildir / part).mkdir(parents=True, exist_ok=True)
        made = maildir
        while made != self.folder / "mail":
            for path in (made, *(made / part for part in ("cur", "new", "tmp"))):
                if path.exists():
                    os.chown(path, *self.owner)
            made = made.parent


@contextmanager
def running_dovecot() -> Iterator[Dovecot]:
    program = shutil.which("dovecot") or "/usr/sbin/dovecot"
    # Root reads no mail: then the server's own accounts do.
    account = pwd.getpwnam("mail") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    login = "dovenull" if os.geteuid() == 0 else account.pw_name
    with TemporaryDirectory(prefix="dovecot-", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "mail").mkdir()
        os.chown(folder / "mail", account.pw_uid, account.pw_gid)
        with socket.socket() as free, socket.socket() as other:
            free.bind(("127.0.0.1", 0))
            other.bind(("127.0.0.1", 0))
            port, tls_port = int(free.getsockname()[1]), int(other.getsockname()[1])
        certificate, key = make_certificate(folder, "test.example")
        group = grp.getgrgid(account.pw_gid).gr_name
        config = folder / "dovecot.conf"
        names = {"user": account.pw_name, "group": group, "login": login, "password": PASSWORD}
        config.write_text(
            _CONFIG.format(folder=folder, port=port, tls_port=tls_port, certificate=certificate, key=key, **names)
        )
        process = subprocess.Popen([program, "-F", "-c", str(config)], stdin=subprocess.DEVNULL)
        try:
            _wait_until_listening(port, process, folder / "log")
            yield Dovecot(port, tls_port, certificate, key, folder, (account.pw_uid, account.pw_gid))
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(_SECONDS)


def _wait_until_listening(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    while process.poll() is None:
        with socket.socket() as trying:
            trying.settimeout(1)
            if trying.connect_ex(("127.0.0.1", port)) == 0 and trying.recv(4):
                return
    raise RuntimeError(f"dovecot did not start: {log.read_text() if log.exists() else ''}")
