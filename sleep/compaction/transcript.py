"""What was said, as it is shown to whoever summarises it. Pure.

What always holds: one paragraph a message, headed by its number, day and speaker; only a heading begins at the edge of
a line, so that no text can pretend to be somebody else's message (F26); none of our tags in it keeps its power (F19).
Calls stand with their results; what a tool returned is shortened, pictures are named and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from assistant.context.structure import block_starts
from assistant.core.messages import Media, Message
from sleep.compaction.answer import clean

Count = Callable[[str], int]

_TOOL_TOKENS = 300
_CALL_CHARACTERS = 300
_NAME_CHARACTERS = 80
_BEGINNING = 200
_LEAST_HALF = 20
_NO_WORDS = "(no words)"


def chunks(rows: Sequence[Message], most: int, count: Count, *, partial: bool) -> list[str]:
    """The rows as transcripts of about `most` tokens each, calls and their results together where that fits. A row that
    is larger by itself is shown with both its ends or, in a partial summary, only described."""
    made: list[list[str]] = [[]]
    used = 0
    for texts in _units([row for row in rows if not row.metadata.get("internal")], most, count, partial):
        size = _size(texts, count)
        if used and used + size > most:
            made.append([])
            used = 0
        made[-1] += texts
        used += size
    return ["\n\n".join(texts) for texts in made if texts]


def shown(row: Message, most: int, count: Count) -> str:
    """One row as a paragraph of about `most` tokens: its heading, its words with both their ends, its calls, and its
    pictures by name."""
    calls = "".join(f" [{_one_line(f'calls {call.name} {dict(call.arguments)}')}]" for call in row.tool_calls)
    beside = f"{calls}{pictures(row.media)}"
    allowed = min(most, _TOOL_TOKENS) if row.role == "tool" else most
    words = shortened(_indented(row.content), allowed - count(f"{heading(row)}: {beside}"), count)
    return f"{heading(row)}: {words or ('' if beside else _NO_WORDS)}{beside}"


def described(row: Message, tokens: int) -> str:
    """A row that is too large to be sent, by what is known of it."""
    begins = " ".join(clean(row.content[: 2 * _BEGINNING]).split())[:_BEGINNING]
    return f"{heading(row)}: [about {tokens} tokens, not shown; it begins: {begins}…]{pictures(row.media)}"


def heading(row: Message) -> str:
    """`#12 2026-03-04 09:15 user`; a summary that is material itself has no number."""
    number = row.id or row.metadata.get("carried_from")
    when = f" {row.ts:%Y-%m-%d %H:%M}" if row.ts and number else ""
    match row.role:
        case "tool":
            who = f"result of {_one_line(row.name or 'a tool')}"
        case "system":
            who = "note"
        case "user" if row.name:
            who = f"user {_one_line(row.name)}"
        case role:
            who = role
    return f"#{number}{when} {who}" if number else f"Record{when}"


def pictures(media: Sequence[Media]) -> str:
    """` [2 pictures: boat.jpg, crew.jpg] [1 file: map.pdf]`."""
    told = ""
    for kind, one, many in (("image", "picture", "pictures"), ("file", "file", "files")):
        names = [_one_line(medium.name or medium.mime)[:_NAME_CHARACTERS] for medium in media if medium.kind == kind]
        if names:
            told += f" [{len(names)} {one if len(names) == 1 else many}: {', '.join(names)}]"
    return told


def shortened(text: str, most: int, count: Count) -> str:
    """The text in about `most` tokens: both its ends, and how much is left out between."""
    tokens = count(text)
    if tokens <= most:
        return text
    half = len(text) * max(0, most) // tokens // 2
    while half > _LEAST_HALF and count(_ends(text, half)) > most:
        half = half * 4 // 5
    return _ends(text, max(half, _LEAST_HALF))


def _ends(text: str, half: int) -> str:
    if 2 * half >= len(text):
        return text
    return f"{text[:half]} [… {len(text) - 2 * half} characters left out …] {text[len(text) - half :]}"


def _units(rows: Sequence[Message], most: int, count: Count, partial: bool) -> Iterator[list[str]]:
    """What is not torn apart: blocks that fit into a chunk, if need be with their rows shortened further."""
    starts = sorted({0, *block_starts(rows)}) if rows else []
    for start, end in pairwise([*starts, len(rows)]):
        block = rows[start:end]
        texts = [_fitted(row, most, count, partial) for row in block]
        if _size(texts, count) > most and len(block) > 1:
            texts = [shown(row, most // len(block) - 2, count) for row in block]
        if _size(texts, count) <= most:
            yield texts
        else:
            yield from ([text] for text in texts)


def _fitted(row: Message, most: int, count: Count, partial: bool) -> str:
    tokens = count(row.content)
    if partial and row.role != "tool" and tokens > most:
        return described(row, tokens)
    return shown(row, most, count)


def _size(texts: Sequence[str], count: Count) -> int:
    return sum(count(f"{text}\n\n") for text in texts)


def _indented(text: str) -> str:
    return "\n  ".join(clean(text).splitlines())


def _one_line(text: str) -> str:
    return " ".join(clean(text).split())[:_CALL_CHARACTERS]
