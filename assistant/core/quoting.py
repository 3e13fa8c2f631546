"""Text that is shown to the model as a record, between boundaries that the text itself cannot forge (I10).

Whoever wrote a text can write our closing tag into it as well. So every text that is not ours loses the power to open
or close one of our boundaries before it is sent: `<` of such a tag becomes `&lt;`, everything else stays as it was.
"""

from __future__ import annotations

import re

from assistant.core.text import lazy_regex

NOTE_TAG = "runtime-note"
RECORD_TAG = "context-record"
SPEAKER_TAG = "speaker"

_BOUNDARY = lazy_regex(rf"<(?=\s*/?\s*(?:{NOTE_TAG}|{RECORD_TAG}|{SPEAKER_TAG})\b)", re.IGNORECASE)
_REPLACEMENT = "\ufffd"
_HIDDEN = lazy_regex("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def quote_in_tag(tag: str, text: str) -> str:
    """`text` between boundaries of `tag`, which it cannot close."""
    return f"<{tag}>\n{escape_own_tags(text)}\n</{tag}>"


def quote_speaker(name: str, text: str) -> str:
    """What one of several people said, between boundaries that tell who it was; neither can forge another's."""
    who = "".join(letter for letter in replace_hidden_characters(name) if letter not in '<>"')
    return f'<{SPEAKER_TAG} name="{who}">\n{escape_own_tags(text)}\n</{SPEAKER_TAG}>'


def escape_own_tags(text: str) -> str:
    """`text` with our own boundary tags made harmless."""
    return _BOUNDARY.sub("&lt;", text) if "<" in text and _BOUNDARY.search(text) else text


def replace_hidden_characters(text: str) -> str:
    """`text` with what would turn or hide what stands around it replaced: control characters but tab and line ends,
    separators of lines, direction overrides."""
    return _HIDDEN.sub(_REPLACEMENT, text)


def replace_unsendable(text: str) -> str:
    """`text` without what a request cannot carry: NUL is replaced, surrogate pairs joined, lone surrogates replaced."""
    if "\0" in text:
        text = text.replace("\0", _REPLACEMENT)
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
