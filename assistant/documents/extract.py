"""The child process that reads one document, `python -m assistant.documents.extract KIND [background]`: the document on
standard input, its text on standard output, in UTF-8.

It has limited time and memory, writes no file, and follows no reference out of the document. If it stops early, it says
so at the end of the text. Exit code 2 with a line on standard error says why there is no text.
"""

from __future__ import annotations

import email
import email.policy
import io
import os
import resource
import sys
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator
from email.message import EmailMessage
from typing import Any

_MAX_MEMORY = 1024 * 1024 * 1024
_MAX_SECONDS = 60
_STOP_AFTER = 30.0  # seconds (wall clock; CPU time in background mode) after which no further page is started
_MAX_UNPACKED = 300 * 1024 * 1024
_MAX_ENTRIES = 20_000
_MAX_TEXT = 8 * 1024 * 1024
_EXIT_UNREADABLE = 2
_BACKGROUND_NICENESS = 10

Extractor = Callable[[bytes], Iterator[str]]


class _Unreadable(Exception):
    """The text completes a sentence that begins with the file name."""


def _read_pdf(data: bytes) -> Iterator[str]:
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise _Unreadable("is locked with a password")
        pages = reader.pages
        count = len(pages)
    except PyPdfError as error:
        raise _Unreadable(f"is a damaged PDF ({error})") from None
    has_text = False
    for number, page in enumerate(pages, 1):
        try:
            text = page.extract_text().strip()
        # A damaged page does not affect the others.
        except Exception as error:  # noqa: BLE001
            text = f"(This page cannot be read: {type(error).__name__}.)"
        has_text = has_text or bool(text)
        yield _page(f"page {number} of {count}", text)
    if not has_text:
        raise _Unreadable(f"has {count} page{'s' * (count != 1)} without any text: they are pictures, as of a scanner")


def _read_office(data: bytes) -> Iterator[str]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            if len(entries) > _MAX_ENTRIES or sum(entry.file_size for entry in entries) > _MAX_UNPACKED:
                raise _Unreadable(f"unpacks to more than {_MAX_UNPACKED // 2**20} MB, so it is not opened")
            names = {entry.filename for entry in entries}
            mimetype = archive.read("mimetype").decode(errors="replace").strip() if "mimetype" in names else ""
    except (zipfile.BadZipFile, RuntimeError) as error:
        raise _Unreadable(f"is damaged ({error})") from None
    if "word/document.xml" in names:
        return _read_word(data)
    if "xl/workbook.xml" in names:
        return _read_excel(data)
    if "ppt/presentation.xml" in names:
        return _read_powerpoint(data)
    if mimetype == "application/epub+zip":
        return _read_epub(data)
    if mimetype.startswith("application/vnd.oasis.opendocument"):
        return _read_opendocument(data)
    shown = "".join(f"\n- {name}" for name in sorted(names)[:50])
    raise _Unreadable(f"is a ZIP file, which is not unpacked here. In it:{shown}".replace("\n", " "))


def _read_word(data: bytes) -> Iterator[str]:
    import docx
    from docx.table import Table

    for block in docx.Document(io.BytesIO(data)).iter_inner_content():
        if isinstance(block, Table):
            yield "\n".join(_row(cell.text for cell in row.cells) for row in block.rows)
        elif block.text.strip():
            level = block.style.name if block.style is not None else ""
            yield f"# {block.text}" if level and level.startswith(("Heading", "Title")) else block.text


def _read_excel(data: bytes) -> Iterator[str]:
    import openpyxl

    book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
    for sheet in book.worksheets:
        yield f"[sheet {sheet.title}]"
        for row in sheet.iter_rows(values_only=True):
            values = ["" if value is None else str(value) for value in row]
            if any(values):
                yield _row(values)


def _read_powerpoint(data: bytes) -> Iterator[str]:
    from pptx import Presentation

    slides = Presentation(io.BytesIO(data)).slides
    for number, slide in enumerate(slides, 1):
        parts = [shape.text_frame.text for shape in slide.shapes if shape.has_text_frame]
        tables = [shape.table for shape in slide.shapes if getattr(shape, "has_table", False)]
        parts += [_row(cell.text for cell in row.cells) for table in tables for row in table.rows]
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            parts.append(f"Notes: {slide.notes_slide.notes_text_frame.text}")
        yield _page(f"slide {number} of {len(slides)}", "\n".join(part for part in parts if part.strip()))


def _read_epub(data: bytes) -> Iterator[str]:
    from lxml import etree

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parser = etree.XMLParser(resolve_entities=False, no_network=True)
        container = etree.fromstring(archive.read("META-INF/container.xml"), parser)
        place = str(container.find(".//{*}rootfile").get("full-path"))
        package = etree.fromstring(archive.read(place), parser)
        folder = place.rpartition("/")[0]
        files = {item.get("id"): item.get("href") for item in package.iterfind(".//{*}manifest/{*}item")}
        chapters = [files.get(item.get("idref")) for item in package.iterfind(".//{*}spine/{*}itemref")]
        for number, chapter in enumerate(filter(None, chapters), 1):
            name = f"{folder}/{chapter}" if folder else chapter
            yield _page(f"part {number}", _text_of_markup(archive.read(name)))


def _read_opendocument(data: bytes) -> Iterator[str]:
    from lxml import etree

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        content = archive.read("content.xml")
    root = etree.fromstring(content, etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False))
    for element in root.iter("{*}h", "{*}p"):
        text = "".join(element.itertext()).strip()
        if text:
            yield f"# {text}" if str(element.tag).endswith("}h") else text


def _read_html(data: bytes) -> Iterator[str]:
    import trafilatura

    page: Any = trafilatura.bare_extraction(data, include_links=True, include_tables=True, with_metadata=True)
    if page is None or not page.text:
        yield _text_of_markup(data)
        return
    yield "\n".join(f"{name}: {value}" for name, value in (("Title", page.title), ("Date", page.date)) if value)
    yield page.text


def _text_of_markup(data: bytes) -> str:
    from lxml import html

    try:
        root = html.document_fromstring(data)
    except (ValueError, html.etree.LxmlError) as error:
        raise _Unreadable(f"is no markup that can be read ({error})") from None
    for element in root.xpath("//script | //style | //noscript | //template"):
        element.drop_tree()
    lines = (" ".join(line.split()) for line in root.text_content().splitlines())
    return "\n".join(line for line in lines if line)


def _read_email(data: bytes) -> Iterator[str]:
    message = email.message_from_bytes(data, policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    head = [f"{name}: {message[name]}" for name in ("From", "To", "Cc", "Date", "Subject") if message[name]]
    yield "\n".join(head)
    body = message.get_body(("plain", "html"))
    if body is not None:
        content = body.get_content()
        yield _text_of_markup(content.encode()) if body.get_content_subtype() == "html" else content
    for part in message.iter_attachments():
        yield f"(Attached: {part.get_filename() or 'without a name'}, {part.get_content_type()}.)"


def _take_mail_apart(data: bytes) -> Iterator[str]:
    from assistant.documents.mail_parts import take_apart

    yield take_apart(data)


def _read_image(data: bytes) -> Iterator[str]:
    from PIL import ExifTags, Image

    try:
        with Image.open(io.BytesIO(data)) as image:
            yield f"A picture ({image.format}) of {image.width} x {image.height} pixels."
            exif = image.getexif()
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise _Unreadable(f"is a damaged picture ({error})") from None
    notes = {**exif, **exif.get_ifd(ExifTags.IFD.Exif)}
    wanted = {"Make", "Model", "DateTime", "DateTimeOriginal", "ImageDescription", "Artist", "Copyright"}
    named = ((ExifTags.TAGS.get(tag, ""), value) for tag, value in notes.items())
    yield from (f"{name}: {value}" for name, value in named if name in wanted)
    if place := _place(exif.get_ifd(ExifTags.IFD.GPSInfo)):
        yield place


def _place(gps: dict[int, object]) -> str:
    """Convert degrees, minutes and seconds with N, S, E or W, where a picture was taken, to degrees."""
    found = []
    for value, reference in ((gps.get(2), gps.get(1)), (gps.get(4), gps.get(3))):
        if not isinstance(value, tuple) or len(value) != 3:
            return ""
        degrees = sum(float(part) / 60**place for place, part in enumerate(value))
        found.append(-degrees if reference in ("S", "W") else degrees)
    return f"Taken at latitude {found[0]:.5f}, longitude {found[1]:.5f}."


def _read_text(data: bytes) -> Iterator[str]:
    from charset_normalizer import from_bytes

    best = from_bytes(data).best()
    if best is None:
        raise _Unreadable("is no text in any encoding that is known here")
    yield str(best)


def _page(name: str, text: str) -> str:
    """Return a page after its mark, which no line of the page can imitate."""
    return f"[{name}]\n{text}".replace("\n[", "\n [")


def _row(cells: Iterable[str]) -> str:
    return " | ".join(" ".join(cell.split()) for cell in cells)


_EXTRACTORS: dict[str, Extractor] = {
    "pdf": _read_pdf,
    "office": _read_office,
    "html": _read_html,
    "email": _read_email,
    "mail-parts": _take_mail_apart,
    "image": _read_image,
    "text": _read_text,
}


def _write(parts: Iterator[str], clock: Callable[[], float]) -> None:
    begun, written = clock(), 0
    for part in parts:
        # Remove what cannot be text: a lone surrogate cannot be encoded, and a NUL ends strings in other programs.
        piece = part.replace("\0", "").encode("utf-8", "replace").strip() + b"\n\n"
        sys.stdout.buffer.write(piece)
        written += len(piece)
        if written > _MAX_TEXT or clock() - begun > _STOP_AFTER:
            sys.stdout.buffer.write(b"(The rest of the document was not read: it is too long.)\n")
            return


def _limit() -> None:
    limits = (
        (resource.RLIMIT_AS, _MAX_MEMORY),
        (resource.RLIMIT_CPU, _MAX_SECONDS),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    )
    for kind, most in limits:
        try:
            resource.setrlimit(kind, (most, most))
        except (OSError, ValueError):  # macOS has no limit for the address space
            continue


def main() -> int:
    """Extract the text of standard input as the format in the first argument says, and write it in pages; returns the
    exit code. A reason for people is on standard error."""
    _limit()
    clock = time.monotonic
    if "background" in sys.argv[2:]:
        os.nice(_BACKGROUND_NICENESS)
        # Nobody waits, so only CPU time counts.
        clock = time.process_time
    try:
        _write(_EXTRACTORS[sys.argv[1]](sys.stdin.buffer.read()), clock)
    except _Unreadable as error:
        sys.stderr.write(f"{error}\n")
        return _EXIT_UNREADABLE
    except MemoryError:
        sys.stderr.write(f"needs more than {_MAX_MEMORY // 2**20} MB of memory to read\n")
        return _EXIT_UNREADABLE
    # A document may cause any error in its library.
    except Exception as error:  # noqa: BLE001
        sys.stderr.write(f"is damaged, or of a form that is not known here ({type(error).__name__})\n")
        return _EXIT_UNREADABLE
    return 0


if __name__ == "__main__":
    sys.exit(main())
