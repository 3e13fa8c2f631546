"""Tools that are not in the prompt: found by what they do, and called through a tool that is.

Every prompt has the same tools in the same order, whatever was found (for the prompt cache). A call through `use_tool`
is recorded, approved and run as a call of the named tool (`ToolRegistry.direct_call`), so that no limit and no approval
is bypassed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from assistant.core.errors import ToolError
from assistant.core.permissions import ALL_ROLES
from assistant.core.ports import Tool, ToolContext
from assistant.core.quoting import quote_text
from assistant.core.sessions import session_role
from assistant.core.text import distinct_words, fold_text, pluralize
from tools.declaration import tool

MOST_SHOWN = 6


def tool_search_tools(list_deferred: Callable[[str], Sequence[Tool]]) -> list[Tool]:
    """Return `find_tools` and `use_tool`. `list_deferred`: returns the tools outside of the prompt that a role may
    use."""

    @tool(roles=ALL_ROLES)
    def find_tools(context: ToolContext, query: str) -> str:
        """Find more tools."""
        deferred = list_deferred(session_role(context.session))
        found = rank_tools(query, deferred)
        if not found:
            names = "\n".join(f"- {it.topic}: {it.spec.name}" for it in deferred)
            return f"No tool matches. There are:\n{names}"
        more = len(found) - MOST_SHOWN
        lines = [_describe(it) for it in found[:MOST_SHOWN]]
        rest = [f"({pluralize(more, 'more tool')}: search in other words.)"] if more > 0 else []
        return "\n".join([*lines, *rest, "Call one with use_tool."])

    @tool(roles=ALL_ROLES)
    def use_tool(context: ToolContext, name: str, arguments: dict[str, Any] = {}) -> str:  # noqa: B006 - pydantic copies it
        """Call a tool of find_tools."""
        raise ToolError(f"there is no tool {quote_text(name[:64])}. find_tools finds what there is. Nothing was done.")

    return [find_tools, use_tool]


def rank_tools(query: str, tools: Sequence[Tool]) -> list[Tool]:
    """Return tools with a word of the query, those with most words first. Names and topics count more than
    descriptions."""
    wanted = _stems(query)
    scored = [(_score(wanted, it), it) for it in tools]
    return [it for score, it in sorted(scored, key=lambda pair: -pair[0]) if score > 0]


def _score(wanted: set[str], it: Tool) -> int:
    name = _stems(f"{it.spec.name} {it.topic}".replace("_", " "))
    return 3 * len(wanted & name) + len(wanted & _stems(it.spec.description))


def _stems(text: str) -> set[str]:
    """Return the first letters of each word, which nouns, plurals and verbs share: "calendar", "mails", "sending"."""
    return {fold_text(word)[:5].removesuffix("s") for word in distinct_words(text)}


def _describe(it: Tool) -> str:
    schema = json.dumps(it.spec.schema, ensure_ascii=False)
    return f"- {it.spec.name}: {it.spec.description} Arguments: {schema}"
