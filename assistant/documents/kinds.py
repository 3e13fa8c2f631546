"""Detects the kind of a document from its first bytes, or if they are ambiguous from its name. Pure."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Literal

DocumentKind = Literal["pdf", "office", "html", "email", "mail-parts", "image", "text"]
"""`office`: a ZIP file of Word, Excel, PowerPoint, OpenDocument or EPUB. `text`: plain text, in UTF-8 or not.
`mail-parts`: an e-mail as JSON (`mail_parts.py`); no file is found to be of this kind."""

HEAD_BYTES = 2_048

_PICTURES = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF8", b"II*\0", b"MM\0*")
_HTML = re.compile(
    rb"(?:\xef\xbb\xbf)?\s{0,200}(?:<\?xml[^>]{0,200}>\s{0,20})?<(?:!doctype html|html|head|body)\b", re.I
)
_HTML_NAMES = frozenset([".html", ".htm", ".xhtml"])
_EMAIL_NAMES = frozenset([".eml", ".mht", ".mhtml"])


def find_kind(name: str, head: bytes) -> DocumentKind | None:
    """Return the kind, None if unsupported. `head`: the first `HEAD_BYTES`, or all of a shorter file."""
    suffix = PurePosixPath(name).suffix.lower()
    if b"%PDF-" in head[:1024]:
        return "pdf"
    if head.startswith(b"PK\x03\x04"):
        return "office"
    if head.startswith(_PICTURES) or (head[:4] == b"RIFF" and head[8:12] == b"WEBP"):
        return "image"
    if _HTML.match(head) or (suffix in _HTML_NAMES and b"\0" not in head):
        return "html"
    if suffix in _EMAIL_NAMES and b"\0" not in head:
        return "email"
    if b"\0" not in head or head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "text"
    return None
