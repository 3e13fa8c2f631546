"""Words of others, made fit for a terminal. Pure.

What a model, a tool or another person wrote may hold escape sequences that move the cursor, rewrite the screen or set
the clipboard. Nothing but line breaks and tabs of such characters ever reaches a terminal; the rest is shown as a
visible sign in its place.
"""

from __future__ import annotations

from assistant.core.errors import UsageError

_SHOWN_AS = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"}
_SHOWN_AS |= {0x7F: "\u2421"}
_SHOWN_AS |= dict.fromkeys(range(0x80, 0xA0), "\ufffd")
# Overrides of the writing direction can make text read as something it is not.
_SHOWN_AS |= dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)], "\ufffd")


def clean(text: str) -> str:
    """`text` without anything that a terminal would act on."""
    text = text.replace("\r\n", "\n").encode("utf-8", "replace").decode("utf-8")
    return text.translate(_SHOWN_AS)


def one_line(text: str, most: int = 100) -> str:
    """The beginning of `text` as one clean line of at most `most` characters."""
    line = clean(" ".join(text[: most * 4].split()))
    return line if len(line) <= most and len(text) <= most * 4 else f"{line[: most - 1]}…"


def is_text(text: str) -> bool:
    """Whether it was UTF-8 when it was given to us (`surrogateescape` leaves marks)."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def typed(text: str, where: str) -> str:
    """What a person gave us as text. Raises `UsageError` when it was not UTF-8 (`surrogateescape` left its marks)."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UsageError(f"{where} is not valid UTF-8 (at character {error.start + 1}). It was not sent.") from None
    return text
