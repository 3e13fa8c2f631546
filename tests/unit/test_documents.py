"""Documents become text in a child process, whatever they are and whatever they try."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from assistant.core.plain_files import FileRefused
from assistant.documents.kinds import find_kind
from assistant.documents.reader import MAX_DOCUMENT_BYTES, DocumentReader
from tests.support import forked_modules
from tests.support.documents import (
    HTML,
    make_email,
    make_entity_bomb,
    make_epub,
    make_excel,
    make_opendocument,
    make_pdf,
    make_photo,
    make_powerpoint,
    make_word,
    make_zip_bomb,
)


async def read(data: bytes, name: str = "x", **reader: float) -> str:
    kind = find_kind(name, data[:2048])
    assert kind is not None
    return (await DocumentReader(**reader).extract(kind, data)).decode()


@pytest.mark.parametrize(
    ("make", "parts"),
    [
        (lambda: make_pdf("The rent is 9,400", "Page (two)"), ["[page 1 of 2]\nThe rent is 9,400", "Page (two)"]),
        (make_word, ["# Lease", "The rent is 9,400 crowns a month.", "Deposit | 18,800"]),
        (make_excel, ["[sheet Budget]", "Rent | 9400", "Food | 3100.5"]),
        (make_powerpoint, ["[slide 1 of 1]\nWhy boats float\nNotes: Tell the story of the eel."]),
        (make_epub, ["[part 1]\nIt was a quiet summer."]),
        (make_opendocument, ["# Recipe", "Two eggs and a lemon."]),
        (make_email, ["From: Ann <ann@example.org>", "Shall we sail on Sunday?", "(Attached: map.png, image/png.)"]),
        (make_photo, ["A picture (JPEG) of 40 x 30", "Make: Hasselblad", "latitude 55.70500, longitude 13.19000"]),
        (lambda: HTML.encode(), ["Title: The harbour of Lund", "the third of May", "https://example.org/tickets"]),
        (lambda: "Grüße aus Málaga, à bientôt, señor".encode("utf-16"), ["Grüße aus Málaga, à bientôt, señor"]),
    ],
    ids=["pdf", "word", "excel", "powerpoint", "epub", "opendocument", "email", "photo", "html", "utf-16"],
)
async def test_a_document_is_read_with_its_pages(make: Callable[[], bytes], parts: list[str]) -> None:
    text = await read(make(), "x.eml" if make is make_email else "x")
    assert [part for part in parts if part not in text] == []
    assert "alert(" not in text


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (make_zip_bomb, "unpacks to more than 300 MB"),
        (lambda: make_pdf("x")[:200], "is a damaged PDF"),
        (lambda: make_word()[:900], "is damaged"),
        (lambda: make_pdf(""), "1 page without any text"),
        (lambda: b"\xff\xd8\xff\xe0 no picture", "is a damaged picture"),
    ],
    ids=["zip bomb", "cut PDF", "cut Word", "scan", "cut picture"],
)
async def test_a_document_that_cannot_be_read_is_said_to_be_that(make: Callable[[], bytes], said: str) -> None:
    with pytest.raises(FileRefused, match=said):
        await read(make())


async def test_entities_that_multiply_are_not_followed() -> None:
    try:
        text = await read(make_entity_bomb())
    except FileRefused:
        return
    assert text.count("lol") < 10


async def test_a_document_that_takes_too_long_is_given_up_and_its_process_ends() -> None:
    with pytest.raises(FileRefused, match="took longer than 0 seconds"):
        await read(make_pdf(*["x"] * 2000), timeout_seconds=0.05)


async def test_a_large_document_is_refused_unread_and_one_that_was_read_is_read_once(tmp_path: Path) -> None:
    reader, path = DocumentReader(), tmp_path / "plan.pdf"
    path.write_bytes(make_pdf("Sail on Sunday"))
    with path.open("rb") as file:
        first = await reader.read(file.fileno(), "pdf")
        assert await reader.read(file.fileno(), "pdf") is first
    os.truncate(path, MAX_DOCUMENT_BYTES + 1)
    with path.open("rb") as file, pytest.raises(FileRefused, match="is larger than 100 MB"):
        await reader.read(file.fileno(), "pdf")


async def test_the_child_sees_no_secret_of_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys\nsys.stdout.write(','.join(sorted(os.environ)))\nsys.stdout.flush()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(forked_modules, "MODULES", frozenset())  # the interpreter itself is started
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    text = await read("words".encode("utf-16"))
    assert "PYTHONPATH" in text and "words" in text and "ANTHROPIC" not in text
