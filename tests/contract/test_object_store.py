"""Where archives are kept: the home's own folder, any folder, fsspec's memory, and a real S3 server, all alike."""

from __future__ import annotations

import hashlib
import socket
import stat
from pathlib import Path

import pyrage
import pytest

from assistant.core.errors import ArchiveMissing, ArchiveUnavailable
from tests.support.archive_storage import (
    FAULTY_URL,
    IDENTITY,
    IDENTITY_KEY,
    OTHER_IDENTITY_KEY,
    FaultyFileSystem,
    bit_flipped,
    hanging_step,
    make_object_store,
    open_archive,
    permission_denied,
    truncated,
)
from tests.support.store_home import NOW, StoreHome

NAME = "peer%3Atelegram%3A7/3.jsonl.gz"
DATA = b"what was said " * 1000
OTHER = b"something else"


@pytest.fixture(params=["home", "folder", "file", "memory", "s3"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "s3":
        return str(request.getfixturevalue("s3"))
    FaultyFileSystem.reset()
    elsewhere = tmp_path / "else where"
    return {"home": "", "folder": str(elsewhere), "file": f"file://{elsewhere}", "memory": FAULTY_URL}[request.param]


def fine(data: bytes) -> None:
    assert data == DATA


def test_what_is_put_is_got_and_removed(tmp_path: Path, url: str) -> None:
    shelf = make_object_store(tmp_path, url)
    kept = shelf.put(NAME, DATA, fine)
    assert (kept.bytes, kept.sha256, kept.encrypted) == (len(DATA), hashlib.sha256(DATA).hexdigest(), False)
    assert kept.url == shelf.url_of(NAME) == f"{url or 'archive'}/{NAME}"
    assert shelf.exists(kept.url)
    assert shelf.get(kept.url).data == DATA
    again = shelf.put(NAME, OTHER, lambda data: None)
    assert make_object_store(tmp_path, url).get(again.url).data == OTHER
    shelf.remove(kept.url)
    shelf.remove(kept.url)
    assert not shelf.exists(kept.url)
    with pytest.raises(ArchiveMissing):
        shelf.get(kept.url)


def test_what_does_not_prove_right_never_gets_its_name(tmp_path: Path, url: str) -> None:
    shelf = make_object_store(tmp_path, url)
    kept = shelf.put(NAME, OTHER, lambda data: None)

    def wrong(data: bytes) -> None:
        raise ArchiveUnavailable("It is wrong.")

    with pytest.raises(ArchiveUnavailable, match="It is wrong"):
        shelf.put(NAME, DATA, wrong)
    assert shelf.get(kept.url).data == OTHER
    shelf.remove_partial()
    shelf.put(NAME, DATA, fine)
    shelf.remove(kept.url)


def test_what_was_half_written_is_tidied_away(tmp_path: Path) -> None:
    FaultyFileSystem.reset()
    shelf = make_object_store(tmp_path, FAULTY_URL)
    shelf.put(NAME, OTHER, lambda data: None)
    FaultyFileSystem.faults["move"] = permission_denied
    with pytest.raises(ArchiveUnavailable, match="Permission denied"):
        shelf.put(NAME, DATA, fine)
    assert len(FaultyFileSystem.store) == 2
    make_object_store(tmp_path, FAULTY_URL).remove_partial()
    assert [path.rpartition("shelf/")[2] for path in FaultyFileSystem.store] == [NAME]
    assert shelf.get(shelf.url_of(NAME)).data == OTHER


@pytest.mark.parametrize("step", ["write", "read", "move"])
def test_a_place_that_refuses_a_step_is_told_in_a_line_and_keeps_what_it_had(tmp_path: Path, step: str) -> None:
    FaultyFileSystem.reset()
    shelf = make_object_store(tmp_path, FAULTY_URL)
    kept = shelf.put(NAME, OTHER, lambda data: None)
    FaultyFileSystem.faults[step] = permission_denied
    with pytest.raises(ArchiveUnavailable, match=r"faulty://shelf .*Permission denied.*Nothing was cleared") as told:
        shelf.put(NAME, DATA, fine)
    assert "\n" not in str(told.value)
    FaultyFileSystem.faults.clear()
    assert shelf.get(kept.url).data == OTHER


@pytest.mark.parametrize("fault", [truncated, bit_flipped])
@pytest.mark.parametrize("step", ["write", "read"])
def test_a_place_that_gives_other_bytes_is_found_out_before_anything_has_its_name(
    tmp_path: Path, step: str, fault: object
) -> None:
    FaultyFileSystem.reset()
    shelf = make_object_store(tmp_path, FAULTY_URL)
    kept = shelf.put(NAME, OTHER, lambda data: None)
    FaultyFileSystem.calls.clear()
    FaultyFileSystem.faults[step] = fault  # type: ignore[assignment]
    with pytest.raises(ArchiveUnavailable, match="other bytes came back"):
        shelf.put(NAME, DATA, lambda data: None)
    assert "move" not in {done for done, _ in FaultyFileSystem.calls}
    FaultyFileSystem.faults.clear()
    assert shelf.get(kept.url).data == OTHER


def test_a_place_that_spoils_what_it_moves_is_found_out(tmp_path: Path) -> None:
    FaultyFileSystem.reset()
    shelf = make_object_store(tmp_path, FAULTY_URL)
    FaultyFileSystem.faults["read"] = lambda path, given: given if ".part" in path else bit_flipped(path, given)
    with pytest.raises(ArchiveUnavailable, match="other bytes came back"):
        shelf.put(NAME, DATA, fine)


@pytest.mark.parametrize("step", ["write", "read", "move"])
def test_a_place_that_hangs_is_left_when_its_time_is_over(tmp_path: Path, step: str) -> None:
    FaultyFileSystem.reset()
    shelf = make_object_store(tmp_path, FAULTY_URL, timeout_seconds=0.05)
    with hanging_step() as hang:
        FaultyFileSystem.faults[step] = hang
        with pytest.raises(ArchiveUnavailable, match=r"did not answer within 0.05 s .*Nothing was cleared"):
            shelf.put(NAME, DATA, fine)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("nosuch://a/b", "nosuch"),
        ("smb://host/share", "not installed"),
        ("s3://no-such-bucket/x", "bucket"),
        ("/proc/nowhere", "No such file|Permission|not"),
    ],
)
def test_an_address_that_leads_nowhere_is_told(tmp_path: Path, s3: str, url: str, says: str) -> None:
    with pytest.raises(ArchiveUnavailable, match=f"(?i){says}"):
        make_object_store(tmp_path, url).put(NAME, DATA, fine)


def test_what_opens_an_address_is_never_told(tmp_path: Path) -> None:
    FaultyFileSystem.reset()

    def talkative(path: str, given: object) -> object:
        raise RuntimeError("login of alice with hunter2hunter2 at ?token=t0ps3cret failed")

    FaultyFileSystem.faults["write"] = talkative
    shelf = make_object_store(tmp_path, "faulty://alice:hunter2hunter2@shelf/x?token=t0ps3cret")
    with pytest.raises(ArchiveUnavailable) as told:
        shelf.put(NAME, DATA, fine)
    whole = f"{told.value} {shelf.url_of(NAME)} {told.value.__cause__}"
    assert not [secret for secret in ("alice", "hunter2", "t0ps3cret") if secret in whole]
    assert told.value.__suppress_context__


def test_folders_and_files_of_an_archive_are_closed_to_others(tmp_path: Path) -> None:
    for url in ("", str(tmp_path / "away" / "deep")):
        make_object_store(tmp_path, url).put(NAME, DATA, fine)
        root = tmp_path / "archive" if not url else Path(url)
        modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (root, *root.rglob("*"))}
        assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
        assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}


def test_what_goes_elsewhere_is_encrypted_and_opens_with_age_alone(tmp_path: Path) -> None:
    url = str(tmp_path / "away")
    shelf = make_object_store(tmp_path, url, IDENTITY_KEY)
    kept = shelf.put(NAME, DATA, fine)
    assert kept.encrypted
    assert kept.url == f"{url}/{NAME}.age"
    stored = Path(kept.url).read_bytes()
    assert b"said" not in stored
    assert pyrage.decrypt(stored, [IDENTITY]) == DATA
    assert shelf.get(kept.url).data == DATA
    for key, says in (
        (OTHER_IDENTITY_KEY, "cannot be decrypted"),
        ("", "key is not set"),
        ("AGE-SECRET-KEY-1X", "decrypted"),
    ):
        with pytest.raises(ArchiveUnavailable, match=says):
            make_object_store(tmp_path, url, key).get(kept.url)


def test_a_passphrase_encrypts_as_age_does(tmp_path: Path) -> None:
    key = "a långer passphrase"
    kept = make_object_store(tmp_path, str(tmp_path / "away"), key).put(NAME, DATA, fine)
    assert pyrage.passphrase.decrypt(Path(kept.url).read_bytes(), key) == DATA


def test_the_homes_own_folder_is_never_encrypted(tmp_path: Path) -> None:
    kept = make_object_store(tmp_path, "", "a key").put(NAME, DATA, fine)
    assert not kept.encrypted
    assert (tmp_path / kept.url).read_bytes() == DATA


def test_an_archive_is_found_where_archives_do_not_go_any_more(tmp_path: Path) -> None:
    own = make_object_store(tmp_path).put(NAME, DATA, fine)
    moved = make_object_store(tmp_path, str(tmp_path / "away"))
    away = moved.put(NAME, OTHER, lambda data: None)
    assert moved.get(own.url).data == DATA
    assert make_object_store(tmp_path).get(away.url).data == OTHER
    assert make_object_store(tmp_path).is_local(away.url)
    assert not make_object_store(tmp_path).is_local("s3://a/b")


def test_a_generation_goes_to_s3_and_comes_back(tmp_path: Path, s3: str) -> None:
    home = StoreHome(tmp_path / "home").open()
    home.chat(3)
    archive = open_archive(home, f"{s3}/one")
    one = archive.store("main", 1, NOW, handover="Open: the boat.", summary="", reason="manual")
    assert one.url == f"{s3}/one/main/1.jsonl.gz"
    assert archive.store("main", 1, NOW, handover="Open: the boat.", summary="", reason="manual") == one
    assert archive.read_records("main", 1) == list(home.log.scan("main"))
    assert archive.verify("main", 1) == []
    archive.remove("main", 1)
    assert archive.list_archives() == []
    home.close()


def test_a_server_that_is_gone_is_told_in_its_time(tmp_path: Path, s3: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody, pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{nobody.getsockname()[1]}")
        with pytest.raises(ArchiveUnavailable, match=r"s3://shelf/of/this home .*Nothing was cleared") as told:
            make_object_store(tmp_path, s3, timeout_seconds=0.5).put(NAME, DATA, fine)
    assert "thesecretkey" not in str(told.value)
