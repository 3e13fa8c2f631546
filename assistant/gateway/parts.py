"""A long text as several messages: cut where a reader would, each part valid Markdown by itself. Pure.

What always holds: the same text gives the same parts, for ever (I8: a part has a key, and one body under it). None is
longer than the network allows. Together they say everything: between blocks, list items and lines of code nothing is
lost, a fence that is cut is closed and opened again, a table has its head in every part, a link that is defined
elsewhere has its definition with it.
"""

from __future__ import annotations

from collections.abc import Callable

from assistant.core.bridge_api import BridgeCapabilities

_SIZES: dict[str, Callable[[str], int]] = {
    "characters": len,
    "utf-16": lambda text: len(text.encode("utf-16-le", "surrogatepass")) // 2,
    "utf-8": lambda text: len(text.encode("utf-8", "surrogatepass")),
}


def parts_of(body: str, capabilities: BridgeCapabilities) -> tuple[str, ...]:
    """The texts of the messages that `body`, Markdown, is sent as; one at least."""
    most, size = capabilities.max_length, _SIZES[capabilities.length_in]
    if most is None or size(body) <= most:
        return (body,)
    from assistant.gateway.apart import taken_apart  # loads a Markdown parser, and most answers are short

    return taken_apart(body, most, size)
