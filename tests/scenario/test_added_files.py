"""`assistant add`: files, folders and pages of the web, copied into the workspace and searchable, beside a daemon or
without one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assistant.core.errors import UsageError
from tests.support.command_line import run_daemon, run_in_process
from tests.support.documents import HTML, make_pdf, make_word
from tests.support.page_server import Answer, serving
from tests.support.running_app import run_app

LEASE = make_pdf("Lease of the boat house", "The rent is 9,400 crowns", "Notice is three months, in writing")


def letters(folder: Path) -> Path:
    """A folder of a person's, with what is nobody else's to read in it."""
    (folder / "letters" / "deep").mkdir(parents=True)
    (folder / "letters" / "rent.docx").write_bytes(make_word())
    (folder / "letters" / "deep" / "bird.txt").write_text("The kestrel nests in May.")
    (folder / "letters" / ".env").write_text("KEY=1")
    (folder / "letters" / "id_rsa").write_text("a key")
    (folder / "letters" / "link.txt").symlink_to("/etc/hostname")
    (folder / "lease.pdf").write_bytes(LEASE)
    return folder


@pytest.mark.parametrize("served", [True, False], ids=["beside a daemon", "without one"])
def test_files_and_folders_are_copied_once_and_searchable(tmp_path: Path, served: bool) -> None:
    home, mine = tmp_path / "home", letters(tmp_path / "mine")

    def check() -> None:
        done = run_in_process(home, "add", str(mine / "lease.pdf"), str(mine / "letters"))
        assert done.out.strip() == "Added 3 files, 3 pages; they can be searched.", done.err
        assert ": 3, since hidden files, keys, passwords and links in a folder are left out." in done.err
        again = run_in_process(home, "add", str(mine / "lease.pdf"))
        assert again.out.strip() == "Added 1 file, 3 pages; it can be searched."
        copies = sorted(path for path in (home / "workspace").rglob("*") if path.is_file())
        assert [str(path.relative_to(home / "workspace")) for path in copies] == [
            "files/lease.pdf",
            "files/letters/deep/bird.txt",
            "files/letters/rent.docx",
        ]
        hits = json.loads(run_in_process(home, "files", "search", "notice in writing", "--json").out)
        assert (hits[0]["path"], hits[0]["place"]) == ("files/lease.pdf", "page 3")

    if served:
        with run_daemon(home):
            check()
            typed = run_in_process(home, "chat", "-m", f"/add {mine / 'lease.pdf'}")
            assert "Added 1 file, 3 pages; it can be searched." in typed.out
    else:
        check()


def test_what_cannot_be_added_is_said_and_nothing_is_copied(tmp_path: Path) -> None:
    home, mine = tmp_path / "home", letters(tmp_path / "mine")
    refused = run_in_process(home, "add", str(mine / "lease.pdf"), str(mine / "gone.pdf"))
    assert refused.returncode == 2 and "is not there. Nothing was added." in refused.err
    assert not (home / "workspace").exists()
    (mine / "cut.pdf").write_bytes(LEASE[:150])
    cut = run_in_process(home, "add", str(mine / "cut.pdf"))
    assert '"files/cut.pdf" cannot be searched: it is a damaged PDF' in cut.out


async def test_a_page_of_the_web_is_added_from_any_conversation_and_a_path_from_none(tmp_path: Path) -> None:
    pages = {"/harbour": Answer(HTML.encode()), "/lease.pdf": Answer(LEASE, "application/pdf")}
    with serving(pages) as server:
        async with run_app(tmp_path, ASSISTANT_TOOLS__FETCH_PRIVATE_HOSTS='["127.0.0.1"]') as it:
            text = f"/add {server.url('/harbour')} {server.url('/lease.pdf')} {server.url('/gone')}"
            added = await it.app.commands.run(text, "main")
            assert added.startswith("Added 2 files, 3 pages; they can be searched.") and "answered 404" in added
            hits = it.app.stores.file_search.search("notice in writing")
            assert (hits[0].path, hits[0].place) == ("files/2026-03-01-127.0.0.1-lease.pdf", "page 3")
            with pytest.raises(UsageError, match="is no address of the web"):
                await it.app.commands.run("/add /etc/passwd", "main")
