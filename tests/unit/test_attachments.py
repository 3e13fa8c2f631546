"""Files that come with a message: names that are safe, what is kept of whom, and one file for what is one file."""

from __future__ import annotations

import base64
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from assistant.core.errors import BridgeError, StoreError
from assistant.core.messages import Media
from assistant.core.plain_files import open_below
from assistant.core.records import IncomingMessage
from assistant.gateway.attachments import (
    LONG_TEXT_NAME,
    MAX_FILES_PER_MESSAGE,
    MAX_RECEIVED_BYTES,
    MAX_TEXT_BYTES,
    AttachmentIntake,
    load_outgoing_file,
)
from assistant.gateway.inbound import MAX_GUEST_CHARACTERS, truncate_guest_text
from assistant.store.home.workspace import WorkspaceFiles, safe_file_name
from tests.support.docs_pages import read_page

NOW = datetime(2026, 11, 20, 23, 30, tzinfo=UTC)
OSLO = ZoneInfo("Europe/Oslo")
DAY = "2026-11-21"


def file(data: bytes = b"plan", name: str = "plan.pdf", mime: str = "application/pdf") -> Media:
    return Media("image" if mime.startswith("image/") else "file", mime, name, data=base64.b64encode(data).decode())


def taken(workspace: Path, *media: Media, owner: bool = True, now: datetime = NOW) -> IncomingMessage:
    session, trust = ("main", "owner") if owner else ("peer:net:7", "guest")
    incoming = IncomingMessage("net", "1", session, "owner" if owner else session, "7", trust, "here", media)  # type: ignore[arg-type]
    return AttachmentIntake(WorkspaceFiles(workspace), OSLO).store_attachments(incoming, now)


def there(workspace: Path) -> list[str]:
    return sorted(path.relative_to(workspace).as_posix() for path in workspace.rglob("*") if path.is_file())


def test_a_file_of_the_owners_is_in_the_workspace_and_named_for_the_homes_day(tmp_path: Path) -> None:
    (medium,) = taken(tmp_path, file()).media
    assert medium == Media("file", "application/pdf", "plan.pdf", 4, None, f"received/{DAY}-plan.pdf")
    with open_below(tmp_path, medium.path or "", "plain file") as descriptor:
        assert os.read(descriptor, 10) == b"plan"
    assert (tmp_path / (medium.path or "")).stat().st_mode & 0o777 == 0o600


def test_what_is_handed_in_again_is_the_same_file_and_another_one_gets_another_name(tmp_path: Path) -> None:
    for now in (NOW, NOW + timedelta(days=1)):
        assert taken(tmp_path, file(), now=now).media[0].path == f"received/{DAY}-plan.pdf"
    assert taken(tmp_path, file(b"other")).media[0].path == f"received/{DAY}-plan-2.pdf"
    assert taken(tmp_path, file(b"other")).media[0].path == f"received/{DAY}-plan-2.pdf"
    assert (tmp_path / f"received/{DAY}-plan.pdf").read_bytes() == b"plan"
    assert len(there(tmp_path)) == 2


def test_what_a_crash_left_half_written_is_no_file_and_goes_at_the_next_start(tmp_path: Path) -> None:
    (tmp_path / "received").mkdir(parents=True)
    (tmp_path / "received" / ".partial-abc").write_bytes(b"pl")
    WorkspaceFiles(tmp_path).remove_partial()
    taken(tmp_path, file())
    assert there(tmp_path) == [f"received/{DAY}-plan.pdf"]


def test_i10_of_a_guests_files_the_names_are_kept_and_nothing_else(tmp_path: Path) -> None:
    incoming = taken(tmp_path, file(), Media("file", "a/b", "x", path="notes/secret"), owner=False)
    assert incoming.media == (Media("file", "application/pdf", "plan.pdf", 4), Media("file", "a/b", "x"))
    assert there(tmp_path) == []
    again = Media("file", "a/b", "x", path="received/x")
    assert taken(tmp_path, again).media == (again,)


def test_what_others_say_is_bounded() -> None:
    assert truncate_guest_text("x" * 9000) == "x" * MAX_GUEST_CHARACTERS + "\n[1,000 more characters were left out.]"
    assert truncate_guest_text("x" * MAX_GUEST_CHARACTERS) == "x" * MAX_GUEST_CHARACTERS


def test_a_picture_that_a_model_can_see_stays_with_the_message_and_the_owners_is_in_the_workspace_as_well(
    tmp_path: Path,
) -> None:
    picture = file(b"\x89PNG", "boat.png", "image/png")
    (guests,) = taken(tmp_path, picture, owner=False).media
    assert (guests.data, guests.path, there(tmp_path)) == (picture.data, None, [])
    for now in (NOW, NOW + timedelta(days=1)):
        (medium,) = taken(tmp_path, picture, now=now).media
        assert (medium.data, medium.path) == (picture.data, f"received/{DAY}-boat.png")
    assert (tmp_path / f"received/{DAY}-boat.png").read_bytes() == b"\x89PNG" and len(there(tmp_path)) == 1
    large = file(b"\x89PNG" + bytes(6 * 1024 * 1024), "boat.png", "image/png")
    assert taken(tmp_path, large, owner=False).media == (Media("image", "image/png", "boat.png", 6 * 1024 * 1024 + 4),)
    assert taken(tmp_path, large).media[0].path == f"received/{DAY}-boat-2.png"


@pytest.mark.parametrize(
    ("data", "mime"),
    [
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        (b"\x89PNG\r\n", "image/png"),
    ],
)
def test_a_picture_is_called_what_it_is(tmp_path: Path, data: bytes, mime: str) -> None:
    (medium,) = taken(tmp_path, file(data, "boat.png", "image/png")).media
    assert (medium.mime, medium.data) == (mime, base64.b64encode(data).decode())


@pytest.mark.parametrize("data", [b"<svg/>", b"\0\0\0\x18ftypheic", b"RIFF\0\0\0\0WAVE", b"", b"\x89PN"])
def test_what_no_model_can_see_is_a_file(tmp_path: Path, data: bytes) -> None:
    (medium,) = taken(tmp_path, file(data, "boat.png", "image/png")).media
    assert (medium.data, medium.path) == (None, f"received/{DAY}-boat.png")


def test_what_is_too_much_is_named_and_not_kept(tmp_path: Path) -> None:
    many = taken(tmp_path, *(file(b"%d" % n, f"{n}.txt") for n in range(MAX_FILES_PER_MESSAGE + 1))).media
    assert [one.path is None for one in many] == [False] * MAX_FILES_PER_MESSAGE + [True]
    assert taken(tmp_path, file(bytes(MAX_RECEIVED_BYTES + 1))).media[0].path is None
    assert taken(tmp_path, Media("file", "a/b", "x", data="no base64!")).media[0].path is None


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("../../etc/passwd", "passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        (".bashrc", "bashrc"),
        ("", "file.pdf"),
        ("a\nb\x00c\u202efdp.exe", "a_b_c_fdp.exe"),
        ("...", "file.pdf"),
        ("x" * 300 + ".pdf", "x" * 100 + ".pdf"),
        ("a:b?.txt", "a_b_.txt"),
        ("é.txt", "é.txt"),
        (".pdf", "pdf"),
        ("/", "file.pdf"),
        ("a.b.tar.gz", "a.b.tar.gz"),
        ("ж" * 200, "ж" * 50),
        ("x." + "y" * 40, "x." + "y" * 40),
        ("-", "-"),
        ("\ud800.txt", "_.txt"),
    ],
)
def test_a_name_is_safe_in_a_folder(name: str, safe: str) -> None:
    assert safe_file_name(Media("file", "application/pdf", name)) == safe


def test_a_folder_that_leads_elsewhere_is_not_written_to(tmp_path: Path) -> None:
    outside, workspace = tmp_path / "outside", tmp_path / "workspace"
    outside.mkdir()
    workspace.mkdir()
    (workspace / "received").symlink_to(outside)
    with pytest.raises(StoreError, match="Nothing was accepted"):
        taken(workspace, file())
    assert there(outside) == []


def test_what_goes_out_is_read_from_the_workspace_and_from_nowhere_else(tmp_path: Path) -> None:
    files = WorkspaceFiles(tmp_path / "workspace")
    (tmp_path / "secret").write_text("secret")
    path = files.save("sent", ("plan.pdf",), b"plan")
    assert load_outgoing_file(files, Media("file", "a/b", path=path)).data == base64.b64encode(b"plan").decode()
    (tmp_path / "workspace" / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "workspace" / "folder").symlink_to(tmp_path)
    for wrong in ("../secret", "/etc/passwd", "link", "folder/secret", "sent", "sent/gone", "sent/..", ""):
        with pytest.raises(BridgeError, match="was not sent") as caught:
            load_outgoing_file(files, Media("file", "a/b", path=wrong))
        assert caught.value.refused


def test_a_file_that_cannot_be_read_now_is_not_given_up() -> None:
    # The memory of a process reads at its beginning as a disk does that fails.
    with pytest.raises(BridgeError, match="Input/output error") as caught:
        load_outgoing_file(WorkspaceFiles(Path("/proc/self")), Media("file", "a/b", path="mem"))
    assert not caught.value.refused


@pytest.mark.parametrize(
    "text", ["x" * (MAX_TEXT_BYTES + 1), "的" * (MAX_TEXT_BYTES // 3 + 1), "\ud800" * MAX_TEXT_BYTES]
)
def test_a_text_of_the_owners_that_is_longer_than_any_model_reads_is_a_file_with_its_start(
    tmp_path: Path, text: str
) -> None:
    incoming = IncomingMessage("net", "1", "main", "owner", "7", "owner", text)
    intake = AttachmentIntake(WorkspaceFiles(tmp_path), OSLO)
    stored = intake.store_attachments(incoming, NOW)
    assert len(stored.content) < 4_200 and stored.content.startswith(text[:4_000])
    assert f"[This message has {len(text):,} characters. All of it is in the file message.txt.]" in stored.content
    (file,) = stored.media
    assert file.data is None and (tmp_path / (file.path or "")).read_bytes() == text.encode("utf-8", "replace")
    # What comes again is the same message.
    assert intake.store_attachments(incoming, NOW + timedelta(days=1)) == stored


@pytest.mark.parametrize("page", ["bridges.md", "terminal.md", "window.md", "web-api.md"])
def test_every_page_on_a_place_to_talk_says_from_where_on_a_text_becomes_a_file(page: str) -> None:
    text = " ".join(read_page(page).split())
    assert f"above {MAX_TEXT_BYTES // 1_000_000} MB" in text and f"file, `{LONG_TEXT_NAME}`" in text


def test_a_text_of_two_megabytes_is_left_as_it_is(tmp_path: Path) -> None:
    incoming = IncomingMessage("net", "1", "main", "owner", "7", "owner", "x" * MAX_TEXT_BYTES)
    assert AttachmentIntake(WorkspaceFiles(tmp_path), OSLO).store_attachments(incoming, NOW) is incoming
    assert there(tmp_path) == []
