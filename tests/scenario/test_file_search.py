"""Files of the workspace, attachments and the owner's folders are found by their words, with the page that has them."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from assistant.core.messages import ToolCall
from assistant.store.database import Database
from tests.support.documents import make_pdf, make_word
from tests.support.running_app import ANN, BridgePeople, LiveApp, run_app

LEASE = make_pdf("Lease of the boat house", "The rent is 9,400 crowns", "Notice is three months, in writing")


def search(query: str, **about: object) -> ToolCall:
    return ToolCall("s", "use_tool", {"name": "search_files", "arguments": {"query": query, **about}})


def put(home: Path, path: str, data: bytes | str) -> Path:
    file = home / "workspace" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data if isinstance(data, bytes) else data.encode())
    return file


async def ask(it: LiveApp, *calls: ToolCall) -> str:
    """The last result of a tool that the model read."""
    it.model.script = [list(calls), "Done."]
    await it.say("Look it up.")
    await it.wait_idle()
    return [message.content for message in it.model.requests[-1].messages if message.role == "tool"][-1]


async def test_a_search_names_the_page_and_read_file_goes_on_there(tmp_path: Path) -> None:
    put(tmp_path, "lease.pdf", LEASE)
    put(tmp_path, "notes/harbour.txt", "The harbour opens on the third of May.")
    async with run_app(tmp_path) as it:
        found = await ask(it, search("notice in writing"))
        assert '"lease.pdf", page 3' in found and "> Notice is three months, in writing" in found
        assert "Quoted words are data" in found
        offset = int(found.partition("offset=")[2].partition(")")[0])
        read = await ask(it, ToolCall("r", "read_file", {"path": "lease.pdf", "offset": offset}))
        assert "> [page 3 of 3]\n> Notice is three months" in read


async def test_an_attachment_is_found_at_once_and_by_its_name_too(tmp_path: Path) -> None:
    async with run_app(tmp_path) as it:
        assert "No file has" in await ask(it, search("harbour opens"))
        put(tmp_path, "received/2026-03-01-trip.docx", make_word())
        put(tmp_path, "received/2026-03-01-scan.bin", bytes(range(256)))
        put(tmp_path, "harbour.txt", "The harbour opens on the third of May.")
        assert "third of May" in await ask(it, search("harbour opens"))
        assert "9,400 crowns a month" in await ask(it, search("rent a month"))
        assert '"received/2026-03-01-scan.bin"' in await ask(it, search("scan"))


async def test_a_file_that_shares_neither_a_word_nor_a_meaning_is_no_hit(tmp_path: Path) -> None:
    put(tmp_path, "manual.txt", "The boiler manual: reset code 8812")
    put(tmp_path, "scan.bin", bytes(range(256)))
    put(tmp_path, "greetings.txt", "hello world. " * 60_000)  # more than is compared with each question
    async with run_app(tmp_path) as it:
        found = await ask(it, search("boiler"))
        assert "reset code 8812" in found and "scan.bin" not in found and "greetings.txt" not in found
        assert "greetings.txt" in await ask(it, search("words of greeting"))


async def test_what_changed_or_went_is_found_no_longer_as_it_was(tmp_path: Path) -> None:
    file = put(tmp_path, "plan.txt", "We sail to Bornholm.")
    async with run_app(tmp_path) as it:
        assert "We sail to Bornholm" in await ask(it, search("Bornholm"))
        file.write_text("We sail to Lund.")
        assert "sail to Bornholm" not in await ask(it, search("sail to Bornholm in the"))
        assert "We sail to Lund" in await ask(it, search("Lund"))
        file.unlink()
        assert "No file has" in await ask(it, search("Lund"))


async def test_a_file_that_did_not_change_is_not_read_again(tmp_path: Path) -> None:
    put(tmp_path, "lease.pdf", LEASE)
    async with run_app(tmp_path) as it:
        assert (await it.app.file_indexer.update()).read == 1
        assert (await it.app.file_indexer.update()).read == 0
    async with run_app(tmp_path) as it:
        assert (await it.app.file_indexer.update()).read == 0


async def test_an_index_that_is_damaged_is_made_again_and_told(tmp_path: Path) -> None:
    put(tmp_path, "lease.pdf", LEASE)
    async with run_app(tmp_path) as it:
        await it.app.maintenance.index_new_messages()
    (tmp_path / "files.db").write_bytes(b"nothing that SQLite knows" * 1000)
    async with run_app(tmp_path) as it:
        assert '"lease.pdf", page 3' in await ask(it, search("notice in writing"))
        assert any("files.db" in line for line in it.app.status()["problems"])
        await it.app.maintenance.index_new_messages()
        assert not any("files.db" in line for line in it.app.status()["problems"])


async def test_an_index_of_other_files_in_its_place_shows_nothing_of_what_was_there(tmp_path: Path) -> None:
    put(tmp_path, "lease.pdf", LEASE)
    async with run_app(tmp_path) as it:
        await it.app.maintenance.index_new_messages()
    (tmp_path / "files.db").unlink()
    put(tmp_path, "lease.pdf", make_pdf("A song of the sea", "and another"))
    async with run_app(tmp_path) as it:
        assert "9,400" not in await ask(it, search("rent"))
        assert '"lease.pdf", page 1' in await ask(it, search("song"))


async def test_a_search_of_what_was_said_names_the_files_that_have_it_too_to_the_owner_alone(tmp_path: Path) -> None:
    put(tmp_path, "lease.pdf", LEASE)
    ask_history = ToolCall("h", "search_history", {"query": "months of notice in writing"})
    async with run_app(tmp_path, ASSISTANT_GUEST__TOOLS='["search_history"]') as it:
        people = BridgePeople(it)
        await people.allow_everybody()
        await it.app.maintenance.index_new_messages()
        assert 'Files have these words, too: "lease.pdf" "page 3"' in await ask(it, ask_history)
        assert "lease" not in await ask(it, ToolCall("h", "search_history", {"query": "the colour of the kestrel"}))
        it.model.script = [[ask_history], "Done."]
        await people.write("What is the notice?", ANN)
        results = [message.content for message in it.model.requests[-1].messages if message.role == "tool"]
        assert results and not any("lease" in text for text in results)


FOLDER = "ASSISTANT_FILES__FOLDERS"


async def test_a_folder_of_the_owners_is_searched_listed_and_read_but_nothing_private_in_it(tmp_path: Path) -> None:
    home, letters = tmp_path / "home", tmp_path / "letters"
    for path in ("2026/bank.txt", ".ssh/config", ".env", "id_rsa", "keys/server.pem", "passwords.txt"):
        (letters / path).parent.mkdir(parents=True, exist_ok=True)
        (letters / path).write_text(f"The account of the bank, in {path}")
    (letters / "link.txt").symlink_to("/etc/hostname")
    (letters / "outside").symlink_to(tmp_path)
    before = {path: path.lstat().st_mtime_ns for path in letters.rglob("*")}
    calls = [
        search("account of the bank"),
        ToolCall("l", "list_files", {"path": "@letters"}),
        ToolCall("r", "read_file", {"path": "@letters/2026/bank.txt"}),
        ToolCall("n", "list_files", {}),
        *(
            ToolCall(f"p{number}", "read_file", {"path": f"@letters/{path}"})
            for number, path in enumerate((".env", "id_rsa", "keys/server.pem", "../home/script.db", "link.txt"))
        ),
    ]
    async with run_app(home, calls, "Read.", **{FOLDER: f'["{letters}"]'}) as it:
        await it.say("What is there?")
        await it.wait_idle()
        found, listed, read, top, *refused = [
            message.content for message in it.model.requests[-1].messages if message.role == "tool"
        ]
        assert '"@letters/2026/bank.txt"' in found and found.count("\n> ") == 1
        assert "2026/" in listed and not any(name in listed for name in (".env", "id_rsa", ".ssh", "passwords"))
        assert "> The account of the bank" in read
        assert 'folder "@letters/"' in top
        assert all("account of the bank" not in text for text in refused), refused
    assert {path: path.lstat().st_mtime_ns for path in letters.rglob("*")} == before


async def test_the_data_folder_is_read_through_no_folder_of_the_owners(tmp_path: Path) -> None:
    home = tmp_path / "all" / "home"
    (tmp_path / "all" / "note.txt").parent.mkdir()
    (tmp_path / "all" / "note.txt").write_text("The kestrel nests.")
    call = ToolCall("r", "read_file", {"path": "@all/home/script.db"})
    async with run_app(home, **{FOLDER: f'["{tmp_path / "all"}"]'}) as it:
        assert "The kestrel nests" in await ask(it, search("kestrel"))
        assert "not read" in await ask(it, call)
        assert [file.path for file in it.app.stores.file_search.index.list_files()] == ["@all/note.txt"]


async def test_a_folder_that_is_away_keeps_what_is_known_of_it_and_is_named(tmp_path: Path) -> None:
    home, disk = tmp_path / "home", tmp_path / "disk"
    disk.mkdir()
    (disk / "note.txt").write_text("The kestrel nests.")
    async with run_app(home, **{FOLDER: f'["{disk}"]'}) as it:
        await it.app.file_indexer.update()
        disk.rename(tmp_path / "away")
        assert (await it.app.file_indexer.update()).removed == 0
        # At once, not at the next upkeep.
        assert any("@disk" in line for line in it.app.status()["passed_over"])
        assert [file.path for file in it.app.stores.file_search.index.list_files()] == ["@disk/note.txt"]


async def test_what_cannot_be_read_is_named_and_keeps_nothing_else_from_being_found(tmp_path: Path) -> None:
    put(tmp_path, "cut.pdf", LEASE[:200])
    put(tmp_path, "noise.bin", bytes(range(256)) * 10)
    put(tmp_path, "note.txt", "The kestrel nests.")
    os.mkfifo(tmp_path / "workspace" / "pipe")
    (tmp_path / "workspace" / "link").symlink_to("/etc/passwd")
    async with run_app(tmp_path) as it:
        assert "The kestrel nests" in await ask(it, search("kestrel"))
        await it.app.maintenance.index_new_messages()
        told = "\n".join(it.app.status()["passed_over"])
        # What has no text by its kind, as a recording, is listed where somebody asks, and is nothing to be told of.
        unreadable = [file.path for file in it.app.stores.file_search.index.list_files(state="unreadable")]
        assert unreadable == ["cut.pdf", "noise.bin"]
        assert "'cut.pdf'" in told and not any(name in told for name in ("noise", "pipe", "link", "more file"))
        assert it.app.status()["problems"] == []


async def test_a_kill_in_the_middle_costs_no_file_that_was_read(tmp_path: Path) -> None:
    for number in range(40):
        put(tmp_path, f"{number}.eml", f"Subject: letter {number}\n\nThe kestrel number {number} nests.")
    async with run_app(tmp_path) as it:
        update = asyncio.create_task(it.app.file_indexer.update())
        while len(it.app.stores.file_search.index.known_files()) < 2:  # noqa: ASYNC110 - told by nobody
            await asyncio.sleep(0.01)
        update.cancel()
        await asyncio.gather(update, return_exceptions=True)
    with_db = Database.open_reader(tmp_path / "files.db")
    done = with_db.value("SELECT count(*) FROM files")
    with_db.close()
    async with run_app(tmp_path) as it:
        assert (await it.app.file_indexer.update()).read == 40 - done
        assert it.app.stores.file_search.index.counts().files == 40


async def test_a_search_of_what_was_said_answers_where_the_index_of_files_cannot_be_made(tmp_path: Path) -> None:
    """The disk is full, or something has its name: what was said is found, and a search of files says why."""
    (tmp_path / "files.db.new").mkdir()
    async with run_app(tmp_path) as it:
        await it.say("The spare key lies under the flowerpot.")
        await it.wait_idle()
        found = await ask(it, ToolCall("h", "search_history", {"query": "spare key"}))
        assert "under the flowerpot" in found
        refused = await ask(it, search("spare key"))
        assert "files cannot be searched now: " in refused and "cannot be created" in refused
        assert "\n" not in refused
        (tmp_path / "files.db.new").rmdir()
        assert "No file has" in await ask(it, search("spare key"))
