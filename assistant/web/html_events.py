"""Adds HTML to the events of a session: deliveries as a whole, and a model's text block by block.

Queued parts are joined to one event, so that a slow reader does not fall further behind with each part.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from assistant.bridges.terminal.bridge import Terminal, TerminalEvent
from assistant.gateway.parts import list_commands


async def with_html(terminal: Terminal, events: AsyncIterator[TerminalEvent]) -> AsyncIterator[TerminalEvent]:
    """`events` are those of the terminal."""
    from assistant.web.markdown_html import StreamedHtml, render_html  # only for the page

    written: dict[str, StreamedHtml] = {}
    async for event in events:
        following: TerminalEvent | None = event
        while following is not None:
            name, data = following
            following = None
            if name == "delta":
                data, following, is_over = _join_deltas(terminal, data)
                first, blocks = written.setdefault(data["turn"], StreamedHtml()).add(data["text"])
                data = {**data, "first": first, "html": blocks}
                yield name, data
                if is_over:
                    return
                continue
            if name in ("discard", "turn", "tool"):
                # Text after a tool call is a separate text.
                written.pop(data.get("turn", ""), None)
            yield name, {**data, "html": render_html(_without_commands(data))} if name == "deliver" else data


def _without_commands(data: Mapping[str, Any]) -> str:
    """The text of a delivery without the commands at its end, where it has buttons for them."""
    text: str = data["body"]
    typed = list_commands(button["command"] for button in data["buttons"])
    return text.removesuffix(f"\n\n{typed}") if typed else text


def _join_deltas(terminal: Terminal, data: Mapping[str, Any]) -> tuple[Mapping[str, Any], TerminalEvent | None, bool]:
    """Join a part with those queued behind it; return it, the next other event if there is one, and whether the stream
    has ended."""
    pieces = [data["text"]]
    while not terminal.queue.empty():
        following = terminal.queue.get_nowait()
        if following is None or following[0] != "delta" or following[1]["turn"] != data["turn"]:
            return {**data, "text": "".join(pieces)}, following, following is None
        pieces.append(following[1]["text"])
    return {**data, "text": "".join(pieces)}, None, False
