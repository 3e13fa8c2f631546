"""Splits outbox items into network messages. Kept light: only long messages load the Markdown parser."""

from __future__ import annotations

from collections.abc import Callable

from assistant.core.bridge_api import Bridge, BridgeCapabilities, OutgoingPart
from assistant.core.records import OutboxItem

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


def split_into_parts(item: OutboxItem, bridge: Bridge) -> list[OutgoingPart]:
    """Return the parts of an item; stable once its texts are stored."""
    outgoing, can = item.outgoing, bridge.capabilities
    files = outgoing.media if can.media else ()
    named = () if can.media else tuple(f"[{file.name or file.mime}]" for file in outgoing.media)
    unshown = (
        () if can.buttons else (button.command for button in outgoing.buttons if button.command not in outgoing.body)
    )
    commands = ", ".join(f"`{command}`" for command in unshown)
    body = "\n\n".join(text for text in (outgoing.body, commands, *named) if text.strip())
    texts = item.parts or (split_text(body, can) if body or not files else ())
    count = len(texts) + len(files)
    return [
        *(OutgoingPart(item, number, text, number == count) for number, text in enumerate(texts, 1)),
        *(OutgoingPart(item, number, "", number == count, file) for number, file in enumerate(files, len(texts) + 1)),
    ]
