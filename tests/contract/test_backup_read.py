"""Archives that are damaged, or made to do harm: nothing is unpacked outside, nothing unproved is used."""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from assistant.core.backups import MANIFEST_NAME, BackupManifest
from assistant.core.errors import CorruptStore, NewerSchema, StoreError
from assistant.store.backup.tarball import manifest_to_json, unpack_backup_file, verify_backup_file
from tests.support.backup_home import BackupHome, fast_pace, file_contents, pack_tar
from tests.support.store_home import NOW

EMPTY = manifest_to_json(BackupManifest("1", NOW, "manual", (), {}, {}, {}))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    home = BackupHome(tmp_path_factory.mktemp("of") / "home").open().write_files()
    yield home.folder.path / home.back_up().backup.name
    home.close()


def test_a_whole_one_is_proved(whole: Path) -> None:
    assert len(verify_backup_file(whole, fast_pace()).files) > 10


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.7, 0.999])
def test_one_that_ends_too_early_is_refused(whole: Path, tmp_path: Path, share: float) -> None:
    data = whole.read_bytes()
    (tmp_path / "cut").write_bytes(data[: int(len(data) * share)])
    with pytest.raises(CorruptStore) as refused:
        verify_backup_file(tmp_path / "cut", fast_pace())
    assert "marker" not in str(refused.value)


def test_one_with_a_changed_byte_is_refused_unless_it_unpacks_to_the_same(whole: Path, tmp_path: Path) -> None:
    data, refused = whole.read_bytes(), 0
    for place in range(11, len(data), len(data) // 60):
        changed = bytearray(data)
        changed[place] ^= 0x10
        (tmp_path / "changed").write_bytes(changed)
        try:
            verify_backup_file(tmp_path / "changed", fast_pace())
        except CorruptStore:
            refused += 1
        else:
            assert gzip.decompress(changed) == gzip.decompress(data)
    assert refused > 30


def test_one_whose_words_were_changed_and_packed_again_is_refused(whole: Path, tmp_path: Path) -> None:
    data = gzip.decompress(whole.read_bytes())
    (tmp_path / "changed").write_bytes(gzip.compress(data.replace(b"Be brief.", b"Be loud!!")))
    with pytest.raises(CorruptStore, match=r"PERSONA\.md differ"):
        verify_backup_file(tmp_path / "changed", fast_pace())


def _odd(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


@pytest.mark.parametrize(
    "odd",
    [
        _odd("workspace/l", tarfile.SYMTYPE, "/etc/passwd"),
        _odd("workspace/l", tarfile.LNKTYPE, "script.db"),
        _odd("workspace/d", tarfile.CHRTYPE),
        _odd("workspace/p", tarfile.FIFOTYPE),
        *(
            _odd(name, tarfile.REGTYPE)
            for name in (
                "../evil",
                "/evil",
                "workspace/../../evil",
                "workspace//evil",
                "./script.db",
                "run/lock",
                "script.db-wal",
                "backups/x",
                "secrets.toml",
                ".restoring.json",
            )
        ),
    ],
    ids=lambda odd: f"{odd.name}-{odd.type.decode()}",
)
def test_what_no_backup_has_is_refused_and_nothing_lands_outside(tmp_path: Path, odd: tarfile.TarInfo) -> None:
    path = pack_tar(tmp_path / "evil.tar.gz", {}, odd)
    pack_tar(tmp_path / "after.tar.gz", {MANIFEST_NAME: EMPTY}, odd)
    for number, archive in enumerate((path, tmp_path / "after.tar.gz")):
        with pytest.raises(CorruptStore):
            unpack_backup_file(archive, tmp_path / f"in{number}", fast_pace())
    assert set(file_contents(tmp_path)) == {"evil.tar.gz", "after.tar.gz"}


def test_files_that_no_manifest_names_are_refused(tmp_path: Path) -> None:
    for members in (
        {"PERSONA.md": b"x"},
        {"PERSONA.md": b"x", MANIFEST_NAME: EMPTY},
        {MANIFEST_NAME: EMPTY, "PERSONA.md": b""},
    ):
        with pytest.raises(CorruptStore):
            verify_backup_file(pack_tar(tmp_path / "evil", members), fast_pace())


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b"[" * 100_000, EMPTY.replace(b'"logs": {}', b'"logs": 7')])
def test_a_manifest_that_is_none_is_refused(tmp_path: Path, text: bytes) -> None:
    with pytest.raises(CorruptStore):
        verify_backup_file(pack_tar(tmp_path / "odd", {MANIFEST_NAME: text}), fast_pace())


def test_one_of_a_later_form_says_so(tmp_path: Path) -> None:
    later = EMPTY.replace(b'"format": 1', b'"format": 2')
    with pytest.raises(NewerSchema):
        verify_backup_file(pack_tar(tmp_path / "later", {MANIFEST_NAME: later}), fast_pace())


def test_one_that_is_not_there_is_told_in_a_line(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be read"):
        verify_backup_file(tmp_path / "none.tar.gz", fast_pace())
