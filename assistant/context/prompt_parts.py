"""Attributes the cost of a prompt to its parts, from the provider's figures and the position of each part. Pure.

A provider reports how many tokens were read from cache, written to it, or neither. Reads are the start of the prompt,
writes follow, the rest is uncached; so each part's share of the three follows from its position and size. Sizes are our
estimates, scaled so that they add up exactly to the billed total.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from assistant.context.structure import turn_start
from assistant.context.tokens import TokenCounter
from assistant.core.messages import Message, Usage, find_summaries
from assistant.core.model_api import ModelRequest, PromptPart, PromptParts
from assistant.core.records import ContextView

_CHARACTERS_A_TOKEN = 4


def measure_view_parts(view: ContextView, tools: int, frame: int, volatile: int, counter: TokenCounter) -> PromptParts:
    """Return the parts of a turn's request in order, in uncorrected tokens: `tools` and `frame` (which includes them)
    as measured, `volatile` for the recalled block."""
    sizes = [size[0] for size in view.sizes] or [counter.count_message(row) for row in view.messages]
    summary = 0
    if find_summaries(view.messages):
        summary = sum(size for row, size in zip(view.messages, sizes, strict=True) if row.is_summary)
    opener = turn_start(view.messages)
    opener = len(view.messages) if opener < 0 else opener
    history = sum(sizes[:opener]) - summary
    return (
        ("tools", tools),
        ("rules", max(0, frame - tools)),
        ("summary", summary),
        ("history", max(0, history)),
        ("new", sum(sizes[opener : opener + 1])),
        ("recalled", volatile),
        ("new", sum(sizes[opener + 1 :])),
    )


def measure_request_parts(request: ModelRequest) -> PromptParts:
    """Return the parts of any other request."""
    rules = sum(len(block.text) for block in request.system) // _CHARACTERS_A_TOKEN
    tools = sum(len(str(tool.schema)) + len(tool.description) for tool in request.tools) // _CHARACTERS_A_TOKEN
    return (("tools", tools), ("rules", rules), ("new", sum(map(_length, request.messages)) // _CHARACTERS_A_TOKEN))


def split_usage(parts: PromptParts, usage: Usage, cost: Callable[[Usage], float] | None) -> Mapping[PromptPart, Usage]:
    """Return the usage billed per part, with prices if `cost` is given; "answer" is the output."""
    edges = _edges([size for _, size in parts], usage.prompt)
    read_to, written_to = usage.cache_read, usage.cache_read + usage.cache_write
    split: dict[PromptPart, Usage] = {}
    for (name, _), (start, end) in zip(parts, edges, strict=True):
        read = max(0, min(end, read_to) - start)
        written = max(0, min(end, written_to) - max(start, read_to))
        hour = round(written * usage.cache_write_hour / usage.cache_write) if usage.cache_write else 0
        part = Usage(end - start - read - written, 0, read, written, cache_write_hour=hour)
        split[name] = split.get(name, Usage()) + part
    split["answer"] = Usage(output=usage.output)
    if cost is None:
        return split
    return {name: replace(part, cost_usd=cost(part)) for name, part in split.items()}


def _edges(sizes: Sequence[int], total: int) -> list[tuple[int, int]]:
    """Return the start and end of each part in a prompt of `total` tokens."""
    whole, so_far, edges = max(1, sum(sizes)), 0, []
    for size in sizes:
        edges.append((so_far * total // whole, (so_far + size) * total // whole))
        so_far += size
    if edges:
        edges[-1] = (edges[-1][0], total)
    return edges


def _length(message: Message) -> int:
    return len(message.content) + sum(len(str(call.arguments)) for call in message.tool_calls)
