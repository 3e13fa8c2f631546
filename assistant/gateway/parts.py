"""Splits outbox items into network messages. Kept light: only long messages load the Markdown parser.

A text of more than `MAX_TEXT_PARTS` messages is sent as its start and a file with the whole of it: nobody reads a
hundred messages in a row, and each of them rings.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable

from assistant.core.bridge_api import Bridge, BridgeCapabilities, OutgoingPart
from assistant.core.messages import Media
from assistant.core.records import OutboxItem

MAX_TEXT_PARTS = 10
# Characters per file: every network accepts files of 8 MB, and a character has at most 4 bytes.
_FILE_CHARACTERS = 2_000_000
# Reserved for the note after the start, in the units of the network.
_NOTE_LENGTH = 160

_SIZES: dict[str, Callable[[str], int]] = {
    "characters": len,
    "utf-16": lambda text: len(text.encode("utf-16-le", "surrogatepass")) // 2,
    "utf-8": lambda text: len(text.encode("utf-8", "surrogatepass")),
}


def split_text(body: str, capabilities: BridgeCapabilities) -> tuple[str, ...]:
    """Split Markdown into message texts; at least one."""
    max_size, size = capabilities.max_length, _SIZES[capabilities.length_unit]
    if max_size is None or size(body) <= max_size:
        return (body,)
    from assistant.gateway.markdown_splitter import split_markdown  # a Markdown parser

    return split_markdown(body, max_size, size)


def exceeds_messages(body: str, capabilities: BridgeCapabilities) -> bool:
    """Return whether a text is sent as a file, with its start as a message."""
    most = capabilities.max_length
    # Most texts are so short that nothing has to be counted.
    if most is None or not capabilities.media or 4 * len(body) <= MAX_TEXT_PARTS * most:
        return False
    return _SIZES[capabilities.length_unit](body) > MAX_TEXT_PARTS * most


def _start_and_files(body: str, capabilities: BridgeCapabilities) -> tuple[str, tuple[Media, ...]]:
    """Return the start of a text that `exceeds_messages`, with a note that names the files, and the files."""
    most = capabilities.max_length or len(body)
    from assistant.gateway.markdown_splitter import split_markdown  # a Markdown parser

    start = split_markdown(body[:most], most - _NOTE_LENGTH, _SIZES[capabilities.length_unit])[0]
    pieces = [body[first : first + _FILE_CHARACTERS] for first in range(0, len(body), _FILE_CHARACTERS)]
    names = ["answer.md"] if len(pieces) == 1 else [f"answer-{number}.md" for number in range(1, len(pieces) + 1)]
    files = tuple(_text_file(name, piece) for name, piece in zip(names, pieces, strict=True))
    return f"{start}\n\n[This is the start. All {len(body):,} characters are in {', '.join(names[:3])}.]", files


def _text_file(name: str, text: str) -> Media:
    data = text.encode("utf-8", "replace")
    return Media("file", "text/markdown", name, len(data), base64.b64encode(data).decode())


def list_commands(commands: Iterable[str]) -> str:
    """Return the paragraph that stands for buttons where there are none: what to type instead."""
    return ", ".join(f"`{command}`" for command in commands)


def split_into_parts(item: OutboxItem, bridge: Bridge) -> list[OutgoingPart]:
    """Return the parts of an item; stable once its texts are stored."""
    outgoing, can = item.outgoing, bridge.capabilities
    files = outgoing.media if can.media else ()
    named = () if can.media else tuple(f"[{file.name or file.mime}]" for file in outgoing.media)
    unshown = (
        () if can.buttons else (button.command for button in outgoing.buttons if button.command not in outgoing.body)
    )
    body = "\n\n".join(text for text in (outgoing.body, list_commands(unshown), *named) if text.strip())
    # An item that was stored in several parts, before files were used, continues in parts.
    if len(item.parts) <= 1 and exceeds_messages(body, can):
        start, made = _start_and_files(body, can)
        texts, files = item.parts or (start,), (*made, *files)
    else:
        texts = item.parts or (split_text(body, can) if body or not files else ())
    count = len(texts) + len(files)
    return [
        *(OutgoingPart(item, number, text, number == count) for number, text in enumerate(texts, 1)),
        *(OutgoingPart(item, number, "", number == count, file) for number, file in enumerate(files, len(texts) + 1)),
    ]
