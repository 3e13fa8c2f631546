"""Hostile files: backups, archives, imports of memories and settings that are broken, or made to break something.

Cases take turns with the four. A file is crafted (a path that leads out, a link, a device, a bomb, nesting without
end), or a good one in which bytes are flipped, cut off, doubled or strewn, drawn from the seed. Each is taken or
refused with an error in words, within seconds, and nothing is written anywhere but where it belongs.
"""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from assistant.core.backups import MANIFEST_NAME
from assistant.core.errors import AssistantError
from assistant.memory.exchange import parse_import, plan_import
from assistant.settings.home import Home
from assistant.settings.settings import parse_settings_values, shipped_config_dir
from assistant.store.archive.format import DamagedArchive, check_archive
from assistant.store.backup.tarball import unpack_backup_file
from assistant.store.files import WriteThrottle
from tests.attack.tally import Tally
from tests.crash.homes import scratch
from tests.support.backup_home import BackupHome

KIND = "hostile-files"
CASES = 2_000
MOST_SECONDS = 60.0
_BOMB = 300 << 20
_NOW = datetime(2026, 3, 1, tzinfo=UTC)
_EXPORT = json.dumps(
    {
        "version": 1,
        "scope": "owner",
        "entries": [
            {"id": 1, "content": "The boat is blue.", "timestamp": "2026-02-01T10:00:00+00:00", "tags": ["fact"]},
            {"id": 2, "content": "The key lies under the pot.", "importance": 0.7, "superseded_by": None},
        ],
        "memories": [{"id": "m1", "text": "The boat is called Ines.", "timestamp": "2026-02-01T10:00:00+00:00"}],
    }
).encode()
_IMPORTS = (
    b"[" * 200_000,
    b'{"version": 1, "entries": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    b'{"version": ' + b"9" * 10_000 + b"}",
    b'{"version": 1, "entries": [{"content": "x", "importance": 1e999}, {"content": "y", "importance": NaN}]}',
    b'{"version": 1, "entries": [{"id": 1, "content": "x", "superseded_by": 1}]}',
    b'{"version": 1, "entries": [{"content": "\\ud800", "timestamp": "0001-01-01T00:00:00+14:00"}]}',
    b'{"version": 1, "entries": [{"content": "x", "timestamp": "9999-12-31T23:59:59-14:00"}]}',
    b'{"version": 1, "entries": [{"content": "x", "id": -99999999999999999999999}]}',
    b'{"content": "x"}\n' * 50_000,
    b"\x00" * 100_000,
    b"\xef\xbb\xbf{}",
)
_SETTINGS = (
    b"a = " + b"[" * 100_000,
    b"a = " + b"{a=" * 50_000,
    b"[" + b"a." * 50_000 + b"a]\n",
    b"[budget]\ndaily_usd = " + b"9" * 10_000 + b"\n",
    b"[budget]\ndaily_usd = nan\nmonthly_usd = -inf\n",
    b"[home]\ntimezone = '../../etc/passwd'\n",
    b"[home]\ntimezone = '\\u0000'\n",
    b"[context]\nmax_context_tokens = 99999999999999999999999999\n",
    b"[web]\nport = 1e5\nhost = ['a']\n",
    b"sleep = 3\n",
    b"\xff\xfe[home]\n",
    b"[sleep]\nat = 9999-99-99\n",
)


def run(seed: int, cases: int = CASES, until: float = float("inf"), only: int | None = None) -> Tally:
    tried, failures = 0, []
    with TemporaryDirectory(dir=scratch()) as folder:
        place = Path(folder)
        attacks = _attacks(place)
        for case in range(cases) if only is None else [only]:
            if time.monotonic() >= until:
                break
            name, crafted, good, read = attacks[case % len(attacks)]
            turn = case // len(attacks)
            data = crafted[turn] if turn < len(crafted) else _damaged(good, Random(f"{seed} {case}"))
            tried += 1
            if problem := _read(place, read, data):
                failures.append(f"case {case} ({name}, {data[:40]!r}...): {problem}")
    return Tally(KIND, tried, tuple(failures))


_Attack = tuple[str, tuple[bytes, ...], bytes, Callable[[bytes], object]]


def _attacks(place: Path) -> list[_Attack]:
    """(name, crafted files, a good one, what reads it)."""
    home = BackupHome(place / "home").open().write_files()
    try:
        home.back_up()
        backup = (home.folder.path / home.folder.list_backups()[0].name).read_bytes()
    finally:
        home.close()
    log = (place / "home" / "log" / "main" / "conversation.jsonl").read_bytes()
    settings = (shipped_config_dir() / "default.toml").read_bytes()
    lines = gzip.compress(b'{"kind": "archive", "version": 1}\n') + gzip.compress(log)
    bombs = (
        gzip.compress(b"\n") + gzip.compress(b"0" * _BOMB),
        gzip.compress(b"[" * 200_000 + b"\n"),
        b"",
        b"\x1f\x8b",
    )
    return [
        ("backup", _hostile_tars(), backup, lambda data: _unpack(place, data)),
        ("archive", bombs, lines, check_archive),
        ("import", _IMPORTS, _EXPORT, _import),
        ("settings", _SETTINGS, settings, lambda data: _parse_settings(place, data)),
    ]


def _read(place: Path, read: Callable[[bytes], object], data: bytes) -> str:
    before, begun = sorted(path.name for path in place.iterdir()), time.monotonic()
    problem = ""
    try:
        read(data)
    except (AssistantError, DamagedArchive) as error:
        problem = "" if str(error).strip() else "refused without a word"
    except (Exception, RecursionError) as error:  # noqa: BLE001 -- whatever it is, it is a failure of this case
        problem = f"{type(error).__name__}: {str(error)[:200]}"
    seconds = time.monotonic() - begun
    if seconds > MOST_SECONDS:
        problem = f"{problem} it took {seconds:.0f} s"
    after = sorted(path.name for path in place.iterdir())
    return problem if before == after else f"{problem} there is {sorted({*after} - {*before})} beside the folder"


def _unpack(place: Path, data: bytes) -> None:
    """Where it is unpacked lies two folders down, so that a path that leads out is seen."""
    with TemporaryDirectory(dir=place / "home") as folder:
        path = Path(folder) / "nocturne-20260301T000000Z-manual.tar.gz"
        path.write_bytes(data)
        try:
            unpack_backup_file(path, Path(folder) / "out", WriteThrottle(throttled=False))
        finally:
            left = {one.name for one in Path(folder).iterdir()} - {path.name, "out"}
            assert not left, f"written beside the folder: {left}"


def _import(data: bytes) -> None:
    plan_import(parse_import(data.decode("utf-8", "replace"), _NOW), {}, "owner", "main", _NOW)


def _parse_settings(place: Path, data: bytes) -> None:
    parse_settings_values(Home(place / "home"), data.decode("utf-8", "replace"))


def _hostile_tars() -> tuple[bytes, ...]:
    def tar(*members: tuple[str, bytes, bytes, str]) -> bytes:
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w:gz", compresslevel=1) as out:
            for name, kind, content, link in members:
                info = tarfile.TarInfo(name)
                info.type, info.size, info.linkname = kind, len(content), link
                out.addfile(info, io.BytesIO(content))
        return file.getvalue()

    names = (
        "../out.txt",
        "/tmp/out.txt",
        "a/../../out.txt",
        "log/../../../out.txt",
        "..",
        "",
        ".",
        "a\x00b",
        "a" * 5_000,
    )
    kinds = (
        tarfile.SYMTYPE,
        tarfile.LNKTYPE,
        tarfile.CHRTYPE,
        tarfile.BLKTYPE,
        tarfile.FIFOTYPE,
        tarfile.GNUTYPE_SPARSE,
    )
    return (
        *(tar((name, tarfile.REGTYPE, b"x", "")) for name in names),
        *(tar(("script.db", kind, b"", "../../../etc/passwd")) for kind in kinds),
        tar(("log", tarfile.SYMTYPE, b"", ".."), ("log/out.txt", tarfile.REGTYPE, b"x", "")),
        tar(("a.txt", tarfile.REGTYPE, b"x", ""), ("a.txt", tarfile.REGTYPE, b"y", "")),
        tar((MANIFEST_NAME, tarfile.REGTYPE, b"[" * 100_000, "")),
        tar((MANIFEST_NAME, tarfile.REGTYPE, b'{"files": ' + b"9" * 6_000 + b"}", "")),
        tar((MANIFEST_NAME, tarfile.REGTYPE, b'{"files": [{"path": "../x", "bytes": -1, "sha256": 1}]}', "")),
        tar(("workspace/zeros", tarfile.REGTYPE, bytes(_BOMB), "")),
        b"",
        b"no archive at all",
    )


def _damaged(good: bytes, chance: Random) -> bytes:
    data, at = bytearray(good), chance.randrange(len(good))
    match chance.randrange(5):
        case 0:
            for _ in range(chance.choice((1, 8, 64))):
                data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        case 1:
            del data[at:]
        case 2:
            del data[at : at + chance.randint(1, 1_000)]
        case 3:
            data[at:at] = data[at : at + chance.randint(1, 1_000)]
        case _:
            data[at:at] = chance.randbytes(chance.randint(1, 200))
    return bytes(data)
