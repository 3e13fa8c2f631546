"""A real server of calendars and address books for tests: Radicale on a free loopback port, its files in a directory of
its own. Anybody may log in by any name and password, and then owns what lies below `/name/`."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx2

from assistant.settings.calendar_sources import CalendarSource

_SECONDS = 60
PASSWORD = "a password of tests"
_CONFIG = """\
[server]
hosts = 127.0.0.1:{port}
[auth]
type = htpasswd
htpasswd_filename = {folder}/users
htpasswd_encryption = plain
delay = 0
[storage]
filesystem_folder = {folder}/collections
[logging]
level = warning
"""


@dataclass(frozen=True)
class Radicale:
    """A running server; `user` has calendars and address books."""

    port: int
    folder: Path
    user: str = "ann"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def source(self, name: str = "Server", kind: str = "caldav", **more: object) -> CalendarSource:
        values = {"name": name, "kind": kind, "url": self.url, "user": self.user, "private": True, **more}
        return CalendarSource.from_values(values)

    def request(self, method: str, path: str, body: str = "", **headers: str) -> httpx2.Response:
        """As the user, through another program."""
        with httpx2.Client(auth=(self.user, PASSWORD), trust_env=False) as client:
            return client.request(method, f"{self.url}{self.user}/{path}", content=body.encode(), headers=headers)

    def clear(self) -> None:
        """Remove what all users have."""
        shutil.rmtree(self.folder / "collections" / "collection-root", ignore_errors=True)

    def make_calendar(self, name: str) -> None:
        self._make(
            name,
            "<c:calendar/>",
            "<c:supported-calendar-component-set><c:comp name='VEVENT'/></c:supported-calendar-component-set>",
        )

    def make_address_book(self, name: str) -> None:
        self._make(name, "<a:addressbook/>", "")

    def _make(self, name: str, kind: str, more: str) -> None:
        body = (
            "<d:mkcol xmlns:d='DAV:' xmlns:c='urn:ietf:params:xml:ns:caldav' xmlns:a='urn:ietf:params:xml:ns:carddav'>"
            f"<d:set><d:prop><d:resourcetype><d:collection/>{kind}</d:resourcetype><d:displayname>{name}</d:displayname>"
            f"{more}</d:prop></d:set></d:mkcol>"
        )
        self.request("MKCOL", f"{name}/", body).raise_for_status()

    def put(self, path: str, text: str) -> None:
        kind = "text/vcard" if path.endswith(".vcf") else "text/calendar"
        self.request("PUT", path, text, **{"Content-Type": kind}).raise_for_status()

    def get(self, path: str) -> str:
        """The text of an entry; "" where there is none."""
        answer = self.request("GET", path)
        return answer.text if answer.status_code == 200 else ""

    def entries(self, calendar: str) -> list[str]:
        """The texts of all entries."""
        folder = self.folder / "collections" / "collection-root" / self.user / calendar
        return [path.read_text() for path in sorted(folder.iterdir()) if path.is_file() and path.name[0] != "."]


@contextmanager
def run_radicale() -> Iterator[Radicale]:
    with TemporaryDirectory(prefix="radicale", ignore_cleanup_errors=True) as directory:
        folder = Path(directory)
        port = _free_port()
        (folder / "users").write_text(f"ann:{PASSWORD}\n")
        (folder / "config").write_text(_CONFIG.format(port=port, folder=folder))
        command = [sys.executable, "-m", "radicale", "--config", str(folder / "config")]
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _wait_until_it_listens(process, port)
            yield Radicale(port, folder)
        finally:
            process.kill()
            process.wait(_SECONDS)


def _wait_until_it_listens(process: subprocess.Popen[bytes], port: int) -> None:
    while process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
    raise RuntimeError(f"Radicale ended with exit code {process.returncode}")


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
