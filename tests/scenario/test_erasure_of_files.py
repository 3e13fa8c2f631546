"""Words that are forgotten leave the index of files too, and files that were added or attached go with them."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from assistant.core.erasure import ErasureRequest
from assistant.core.messages import Media, ToolCall
from tests.support.documents import make_pdf, make_photo
from tests.support.running_app import OWNER, BridgePeople, LiveApp, files_with_words, run_app
from tests.support.store_home import NOW

WORD = "zanzibarquux"
# Its words are in no byte of a document that packs them.
_SHOWN = f"<{f'The gate is {WORD}'.encode().hex()}>".encode()
HEX_PDF = make_pdf("The code is 123").replace(b"(The code is 123)", _SHOWN)
FOLDER = "ASSISTANT_FILES__FOLDERS"


def put(folder: Path, path: str, data: bytes | str) -> Path:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data if isinstance(data, bytes) else data.encode())
    return file


async def index(it: LiveApp) -> None:
    await it.app.maintenance.index_new_messages()


def found(it: LiveApp, words: str = WORD) -> list[str]:
    hits = it.app.stores.file_search.search(words)
    return sorted(hit.path for hit in hits if words in hit.excerpt)


@pytest.mark.parametrize("folder", ["files", "received"])
async def test_a_document_that_was_added_or_attached_goes_with_its_words(tmp_path: Path, folder: str) -> None:
    gone = put(tmp_path / "workspace", f"{folder}/gate.pdf", HEX_PDF)
    kept = put(tmp_path / "workspace", f"{folder}/boat.pdf", make_pdf("The boat is blue"))
    async with run_app(tmp_path) as it:
        await index(it)
        assert found(it) == [f"{folder}/gate.pdf"]
        preview = await it.app.erasure.preview(ErasureRequest("owner", text=WORD))
        assert f"{folder}/gate.pdf" in [example for place in preview.places for example in place.examples]
        done = await it.app.erasure.erase(ErasureRequest("owner", text=WORD), NOW)
        assert done.complete and not done.leftovers
        assert not gone.exists() and kept.exists()
        assert files_with_words(tmp_path, WORD) == []
        await index(it)
        assert found(it) == [] and found(it, "boat") == [f"{folder}/boat.pdf"]
    assert files_with_words(tmp_path, WORD) == []


async def test_a_document_that_is_sent_in_a_turn_is_found_with_its_page_and_forgotten_like_words(
    tmp_path: Path,
) -> None:
    lease = make_pdf("Lease of the boat house", "The rent is 9,400 crowns", f"The gate is {WORD}")
    sent = Media("file", "application/pdf", "lease.pdf", data=base64.b64encode(lease).decode())
    search = ToolCall("s", "use_tool", {"name": "search_files", "arguments": {"query": "the gate is"}})
    async with run_app(tmp_path, [search], "On its third page.", [search], "Nowhere.") as it:
        them = BridgePeople(it)
        await them.allow_everybody()
        await them.write("Where is the gate?", OWNER, "1", media=(sent,))
        read = [one.content for one in it.model.requests[1].messages if one.role == "tool"][-1]
        assert '-lease.pdf", page 3' in read and f"> The gate is {WORD}" in read
        done = await it.app.erasure.erase(ErasureRequest("owner", text=WORD), NOW)
        assert done.complete and not done.leftovers
        assert list((tmp_path / "workspace" / "received").iterdir()) == [] and files_with_words(tmp_path, WORD) == []
        await them.write("And where is it now?", OWNER, "2")
        assert not any(WORD in one.content for one in it.model.requests[-1].messages if not one.tool_calls)


async def test_a_picture_is_found_by_what_its_camera_noted_and_forgotten_with_the_message_that_shows_it(
    tmp_path: Path,
) -> None:
    photo = base64.b64encode(make_photo(f"The gate {WORD}")).decode()
    pictures = tuple(Media("image", "image/jpeg", f"{name}.jpg", data=photo) for name in ("gate", "gate again"))
    async with run_app(tmp_path, "A gate.", "The same.", "Yes.") as it:
        them = BridgePeople(it)
        await them.allow_everybody()
        for number, picture in enumerate(pictures):
            await them.write("What is this?", OWNER, str(number), media=(picture,))
        await them.write("Thank you.", OWNER, "2")
        await index(it)
        assert found(it) == ["received/2026-03-01-gate again.jpg", "received/2026-03-01-gate.jpg"]
        assert (
            sum(
                bool(medium.data)
                for row in it.app.stores.conversation.load_view("main").messages
                for medium in row.media
            )
            == 2
        )
        await them.command("/backup create")
        preview = await it.app.erasure.preview(ErasureRequest("owner", text=WORD))
        assert len(preview.messages) == 2
        done = await it.app.erasure.erase(ErasureRequest("owner", text=WORD), NOW)
        assert done.complete and not done.leftovers
        assert [place.count for place in done.places if place.kind == "backups of the data folder"] == [1]
        assert list((tmp_path / "workspace" / "received").iterdir()) == []
        assert files_with_words(tmp_path, WORD) == [] == files_with_words(tmp_path, photo[:400])
        await them.write("And now?", OWNER, "3")
        asked = it.model.requests[-1].messages
        assert not any(row.media for row in asked) and "Thank you." in [row.content for row in asked]


async def test_a_backup_that_has_a_document_with_the_words_is_made_anew(tmp_path: Path) -> None:
    put(tmp_path / "workspace", "received/gate.pdf", HEX_PDF)
    async with run_app(tmp_path) as it:
        await index(it)
        await BridgePeople(it).command("/backup create")
        done = await it.app.erasure.erase(ErasureRequest("owner", text=WORD), NOW)
        assert done.complete and not done.leftovers
        assert [place.count for place in done.places if place.kind == "backups of the data folder"] == [1]


async def test_a_file_of_the_owners_own_stays_is_named_and_is_found_no_more(tmp_path: Path) -> None:
    home, letters = tmp_path / "home", tmp_path / "letters"
    put(letters, "gate.pdf", HEX_PDF)
    put(letters, "boat.txt", "The boat is blue")
    own = put(home / "workspace", "notes/gate.txt", f"The gate is {WORD}.")
    async with run_app(home, **{FOLDER: f'["{letters}"]'}) as it:
        await it.say(f"The gate is {WORD}.")
        await it.wait_idle()
        await index(it)
        assert found(it) == ["@letters/gate.pdf", "notes/gate.txt"]
        done = await it.app.erasure.erase(ErasureRequest("owner", text=WORD), NOW)
        assert done.complete and {(left.where, left.kind) for left in done.leftovers} == {
            ("@letters/gate.pdf", "own_file"),
            ("workspace/notes/gate.txt", "own_file"),
        }
        assert files_with_words(home, WORD) == ["gate.txt"]
        await index(it)
        assert found(it) == [] and found(it, "boat") == ["@letters/boat.txt"]
        own.write_text(f"The new gate is {WORD}.")
        await index(it)
        assert found(it) == ["notes/gate.txt"]


async def test_words_of_a_file_that_went_before_are_nowhere_either(tmp_path: Path) -> None:
    file = put(tmp_path / "workspace", "gate.txt", f"The gate is {WORD}.")
    async with run_app(tmp_path) as it:
        await it.say(f"The gate is {WORD}.")
        await it.wait_idle()
        await index(it)
        file.unlink()
        await index(it)
        done = await it.app.erasure.erase(ErasureRequest("owner", text=WORD), NOW)
        assert done.complete and not done.leftovers
        assert files_with_words(tmp_path, WORD) == []


async def test_what_a_file_says_as_well_keeps_no_message_from_being_forgotten(tmp_path: Path) -> None:
    put(tmp_path / "workspace", "phone.txt", "Call 555-12345 at the gate.")
    async with run_app(tmp_path) as it:
        await it.say("My number is 555-12345.")
        await it.wait_idle()
        await index(it)
        [message] = [record.id for record in it.app.stores.history.recent("owner") if record.role == "user"]
        done = await it.app.erasure.erase(ErasureRequest("owner", messages=(message,)), NOW)
        assert done.complete, done.leftovers
        assert {left.kind for left in done.leftovers} == {"own_file"}
        assert found(it, "555-12345") == ["phone.txt"]


async def test_a_text_that_was_read_before_the_words_were_forgotten_is_not_taken_in_after_it(tmp_path: Path) -> None:
    put(tmp_path / "workspace", "gate.txt", f"The gate is {WORD}.")
    async with run_app(tmp_path) as it:
        await index(it)
        files = it.app.stores.file_search.index
        [known] = files.known_files().values()
        before = files.epoch
        await it.app.erasure.erase(ErasureRequest("owner", text=WORD), NOW)
        assert not files.put(known, [], epoch=before)
        assert [file.state for file in files.list_files()] == ["left_out"]


async def test_a_guest_who_forgets_a_word_learns_nothing_of_the_owners_files(tmp_path: Path) -> None:
    put(tmp_path / "workspace", "gate.txt", f"The gate is {WORD}.")
    async with run_app(tmp_path) as it:
        await index(it)
        preview = await it.app.erasure.preview(ErasureRequest("guest:7", text=WORD))
        assert not preview.places and not preview.leftovers
        done = await it.app.erasure.erase(ErasureRequest("guest:7", text=WORD), NOW)
        assert not done.places and not done.leftovers
        assert found(it) == ["gate.txt"]
