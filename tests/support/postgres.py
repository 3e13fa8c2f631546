"""A real PostgreSQL with pgvector for tests: the one of the `pgserver` wheel, over a socket in a directory of its own.

PostgreSQL refuses to run as root. There it runs as `nobody`, from a copy where the wheel lies in a place that `nobody`
cannot reach; the wheel's own way would make a system user and open every directory on the way to it.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def run_postgres() -> Iterator[Postgres]:
    with TemporaryDirectory(prefix="pg", ignore_cleanup_errors=True) as directory:
        folder = Path(directory)
        binaries, someone = _installed(folder), _someone(folder)
        data = folder / "data"

        def run(program: str, *arguments: str) -> None:
            subprocess.run(
                [binaries / program, "-D", data, *arguments],
                check=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                cwd=folder,
                timeout=_SECONDS,
                **someone,
            )

        run("initdb", "--auth=trust", "--encoding=utf8", "--no-sync", "--username=postgres")
        options = f"-h '' -k {folder} -c fsync=off -c max_connections=20"
        run("pg_ctl", "-w", "-l", str(folder / "log"), "-o", options, "start")
        try:
            yield Postgres(folder)
        finally:
            run("pg_ctl", "-w", "-m", "immediate", "stop")


def _installed(folder: Path) -> Path:
    spec = importlib.util.find_spec("pgserver")
    assert spec is not None and spec.submodule_search_locations
    installed = Path(next(iter(spec.submodule_search_locations))) / "pginstall"
    if os.geteuid() or all(place.stat().st_mode & 0o005 == 0o005 for place in (installed, *installed.parents)):
        return installed / "bin"
    # Programs find their libraries by where these stand beside the package.
    for part in (installed, installed.parents[1] / "pgserver.libs"):
        shutil.copytree(part, folder / part.relative_to(installed.parents[1]), symlinks=True)
    return folder / installed.relative_to(installed.parents[1]) / "bin"


def _someone(folder: Path) -> dict[str, Any]:
    """Who it runs as: whoever runs the tests, unless that is root."""
    if os.geteuid():
        return {}
    nobody = pwd.getpwnam("nobody")
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
