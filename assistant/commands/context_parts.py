"""`/context`: what the model sees of a conversation now, part by part."""

from __future__ import annotations

from collections import Counter
from datetime import tzinfo

import click

from assistant.commands.context import CommandContext
from assistant.commands.table import TableCommand
from assistant.core.text import pluralize
from assistant.runtime.context_parts import ContextReport

_KINDS = {
    "tools": "tools",
    "persona": "PERSONA.md",
    "rules": "rules",
    "pins": "pinned words",
    "memory": "what is remembered",
    "summary": "summaries",
    "message": "messages",
}


def _render(report: ContextReport, _: tzinfo) -> str:
    tokens: Counter[str] = Counter()
    for part in report.parts:
        tokens[part.kind] += part.tokens
    known = report.read_price is not None and report.write_price is not None
    # Offline mode has no provider, and what costs nothing is no cheaper in a cache.
    cache = (" The provider has it cached." if report.cached else " It is not cached now.") if known else ""
    lines = [
        f"The model sees {pluralize(report.tokens, 'token')} of {report.window_tokens:,}; with room for its answer the "
        f"context is {report.pressure:.0%} full.{cache}",
        *(f"- {name}: {tokens[kind]:,}" for kind, name in _KINDS.items() if tokens[kind]),
    ]
    if known:
        price = report.read_price if report.cached else report.write_price
        # After a blank line: it is no part of the list.
        lines += ["", f"The next call pays ${report.tokens * (price or 0.0):.4f} for it."]
    return "\n".join(lines)


@click.command("context", cls=TableCommand, render=_render)
async def context(context: CommandContext) -> ContextReport:
    """Show what the model sees of this conversation: each part with its tokens, and what they cost.

    > assistant context
    > assistant context --json
    """
    return await context.services.context_parts.load(context.session, context.now)
