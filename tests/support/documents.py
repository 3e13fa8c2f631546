"""Documents of every kind, made by the libraries that people's programs make them with."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from email.message import EmailMessage

import docx
import openpyxl
from PIL import Image
from pptx import Presentation

HTML = """<!doctype html><html><head><title>The harbour of Lund</title><script>alert("x")</script></head>
<body><nav>Home About Contact</nav><article><h1>The harbour of Lund</h1>
<p>The harbour opens on the third of May, and the first boat leaves at nine in the morning from the old pier.</p>
<p>Tickets are sold by <a href="https://example.org/tickets">the office</a> on the quay, at twelve crowns each
for grown-ups; children go free, as they have done since the harbour was built.</p></article></body></html>"""


def make_pdf(*pages: str) -> bytes:
    """A PDF of one line of plain ASCII a page."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"", b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids = []
    for text in pages:
        shown = text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
        stream = f"BT /F1 12 Tf 72 720 Td ({shown}) Tj ET".encode()
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
        page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >>"
        objects.append(page + b" /Contents %d 0 R >>" % len(objects))
        kids.append(len(objects))
    shown_kids = b" ".join(b"%d 0 R" % kid for kid in kids)
    objects[1] = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (shown_kids, len(kids))
    out, places = bytearray(b"%PDF-1.4\n"), []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, table)
    return bytes(out)


def _saved(save: Callable[[io.BytesIO], object]) -> bytes:
    file = io.BytesIO()
    save(file)
    return file.getvalue()


def make_word(text: str = "The rent is 9,400 crowns a month.") -> bytes:
    document = docx.Document()
    document.add_heading("Lease")
    document.add_paragraph(text)
    table = document.add_table(1, 2)
    table.rows[0].cells[0].text, table.rows[0].cells[1].text = "Deposit", "18,800"
    return _saved(document.save)


def make_excel(text: str = "Rent") -> bytes:
    book = openpyxl.Workbook()
    sheet = book.worksheets[0]
    sheet.title = "Budget"
    sheet.append([text, 9400])
    sheet.append(["Food", 3100.5])
    return _saved(book.save)


def make_powerpoint(note: str = "Tell the story of the eel.") -> bytes:
    talk = Presentation()
    slide = talk.slides.add_slide(talk.slide_layouts[5])
    slide.shapes.title.text = "Why boats float"
    slide.notes_slide.notes_text_frame.text = note
    return _saved(talk.save)


def _zipped(files: dict[str, str]) -> bytes:
    def save(file: io.BytesIO) -> None:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in files.items():
                archive.writestr(name, text)

    return _saved(save)


def make_epub(text: str = "It was a quiet summer.") -> bytes:
    opf = """<package xmlns="http://www.idpf.org/2007/opf"><manifest><item id="c1" href="one.xhtml"/></manifest>
    <spine><itemref idref="c1"/></spine></package>"""
    container = """<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>
    <rootfile full-path="OPS/book.opf"/></rootfiles></container>"""
    return _zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": container,
            "OPS/book.opf": opf,
            "OPS/one.xhtml": f"<html><body><p>{text}</p></body></html>",
        }
    )


def make_opendocument(text: str = "Two eggs and a lemon.") -> bytes:
    space = "urn:oasis:names:tc:opendocument:xmlns"
    content = f"""<o:document-content xmlns:o="{space}:office:1.0" xmlns:t="{space}:text:1.0"><o:body><o:text>
    <t:h>Recipe</t:h><t:p>{text}</t:p></o:text></o:body></o:document-content>"""
    return _zipped({"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": content})


def make_email() -> bytes:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "Ann <ann@example.org>", "me@example.org", "Sunday"
    message.set_content("Shall we sail on Sunday?")
    message.add_attachment(b"...", maintype="image", subtype="png", filename="map.png")
    return message.as_bytes()


def make_photo(description: str = "") -> bytes:
    exif = Image.Exif()
    exif[0x010F] = "Hasselblad"
    exif[0x010E] = description
    exif.get_ifd(0x8825).update({1: "N", 2: (55.0, 42.0, 18.0), 3: "E", 4: (13.0, 11.0, 24.0)})
    return _saved(lambda file: Image.new("RGB", (40, 30)).save(file, "JPEG", exif=exif))


def make_zip_bomb() -> bytes:
    """Little that unpacks to more than is read, as a Word file."""
    file = io.BytesIO()
    with (
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive,
        archive.open("word/document.xml", "w") as entry,
    ):
        for _ in range(301):
            entry.write(b"a" * 2**20)
    return file.getvalue()


def make_entity_bomb() -> bytes:
    """Entities that multiply to 10^9, in an OpenDocument file."""
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
    content = f'<!DOCTYPE d [<!ENTITY e0 "lol">{entities}]><d><p>&e9;</p></d>'
    return _zipped({"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": content})
