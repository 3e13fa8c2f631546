"""Requests to an MCP server with the official SDK: list its tools, prompts and resources, and use one of them.

Prompts and resources are offered as tools whose names begin with `PROMPT` or `RESOURCES`, so approvals and filters
apply to them as well. A tool of the server that has such a name is ignored. Answers are text, cut to a limit; binary
content is only mentioned, with its type and size.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from mcp import Client, MCPError
from mcp.types import (
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    Prompt,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from assistant.core.mcp import LIST_RESOURCES, PROMPT, READ_RESOURCE, RESOURCES

_MAX_OFFERS, _MAX_PAGES, _MAX_RESOURCES = 256, 64, 2_000
_NO_ARGUMENTS = {"type": "object", "properties": {}}
_RESOURCE_TOOLS = [
    (LIST_RESOURCES, "List the resources that can be read, with their addresses.", _NO_ARGUMENTS),
    (
        READ_RESOURCE,
        "Read a resource by its address.",
        {"type": "object", "properties": {"uri": {"type": "string"}}, "required": ["uri"]},
    ),
]


class ServerRefused(Exception):
    """The server does not do what it was asked; why, in a few words."""


async def list_offers(client: Client) -> list[dict[str, Any]]:
    """Return the fields of an `McpToolDefinition` for each tool and prompt. Raises `ServerRefused`, `MCPError`."""
    has = client.server_capabilities
    tools = [it for it in await _pages(client.list_tools, "tools") if not it.name.startswith((PROMPT, RESOURCES))]
    prompts = await _pages(client.list_prompts, "prompts", optional=True) if has.prompts else []
    if len(tools) + len(prompts) > _MAX_OFFERS:
        raise ServerRefused(f"it has more than {_MAX_OFFERS} tools and prompts")
    offers = [
        _offer(
            tool.name,
            tool.description or tool.title or "",
            tool.input_schema,
            tool.annotations.model_dump(mode="json", exclude_none=True) if tool.annotations else {},
        )
        for tool in tools
    ]
    offers += [_offer(PROMPT + it.name, it.description or it.title or "", _prompt_schema(it)) for it in prompts]
    if has.resources and await _has_resources(client):
        offers += [_offer(*it) for it in _RESOURCE_TOOLS]
    return offers


async def call(client: Client, name: str, arguments: dict[str, Any], max_bytes: int) -> dict[str, Any]:
    """Call a tool, get a prompt, or list or read resources. Raises `ServerRefused`, `MCPError`."""
    failed = False
    if name.startswith(PROMPT):
        lines = await _read_prompt(client, name.removeprefix(PROMPT), arguments)
    elif name == LIST_RESOURCES:
        lines = await _list_resources(client)
    elif name == READ_RESOURCE:
        lines = map(_text_of_resource, (await client.read_resource(str(arguments.get("uri", "")))).contents)
    else:
        result = await client.call_tool(name, arguments)
        lines, failed = _texts_of_result(result), bool(result.is_error)
    text = "\n".join(lines).encode("utf-8", "replace")
    kept = text[:max_bytes].decode(errors="ignore")
    if len(text) > max_bytes:
        kept += f"\n(… cut here: the first {max_bytes:,} of {len(text):,} bytes.)"
    return {"text": kept, "failed": failed}


def _offer(
    name: str, description: str, schema: Mapping[str, Any], annotations: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    return {"name": name, "description": description, "schema": schema, "annotations": annotations or {}}


async def _pages(
    ask: Callable[..., Awaitable[Any]], field: str, *, limit: int = _MAX_OFFERS, optional: bool = False
) -> list[Any]:
    """Return the items of all pages, at most `limit` + 1, so that the caller sees that there are more. `optional`: a
    list that the server refuses counts as empty."""
    items: list[Any] = []
    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        try:
            page = await ask(cursor=cursor)
        except MCPError:
            if optional:
                break
            raise
        items += getattr(page, field)
        cursor = page.next_cursor
        if cursor is None or len(items) > limit:
            break
    return items[: limit + 1]


async def _has_resources(client: Client) -> bool:
    for ask, field in ((client.list_resources, "resources"), (client.list_resource_templates, "resource_templates")):
        if await _pages(ask, field, limit=0, optional=True):
            return True
    return False


def _prompt_schema(prompt: Prompt) -> dict[str, Any]:
    arguments = prompt.arguments or []
    return {
        "type": "object",
        "properties": {it.name: {"type": "string", "description": it.description or ""} for it in arguments},
        "required": [it.name for it in arguments if it.required],
    }


async def _read_prompt(client: Client, name: str, arguments: Mapping[str, Any]) -> Iterable[str]:
    """Return the messages of a prompt. The protocol allows only text as arguments."""
    texts = {key: it if isinstance(it, str) else json.dumps(it, ensure_ascii=False) for key, it in arguments.items()}
    result = await client.get_prompt(name, texts)
    return [f"{it.role}: {_text_of_part(it.content)}" for it in result.messages]


async def _list_resources(client: Client) -> Iterable[str]:
    resources = await _pages(client.list_resources, "resources", limit=_MAX_RESOURCES, optional=True)
    templates = await _pages(client.list_resource_templates, "resource_templates", limit=_MAX_RESOURCES, optional=True)
    lines = [f"- {it.uri}: {_about(it)}" for it in resources[:_MAX_RESOURCES]]
    lines += [f"- {it.uri_template} (fill in what is in braces): {_about(it)}" for it in templates[:_MAX_RESOURCES]]
    if max(len(resources), len(templates)) > _MAX_RESOURCES:
        lines.append(f"(More than {_MAX_RESOURCES:,}; the rest is not listed.)")
    return lines or ["There are none."]


def _about(it: Any) -> str:
    """Describe a resource: title or name, description, MIME type."""
    told: str = it.title or it.name
    told += f". {' '.join(it.description.split())}" if it.description else ""
    return told + (f" ({it.mime_type})" if it.mime_type else "")


def _texts_of_result(result: CallToolResult) -> Iterable[str]:
    if not result.content and result.structured_content is not None:
        return [json.dumps(result.structured_content, ensure_ascii=False)]
    return map(_text_of_part, result.content)


def _text_of_part(part: Any) -> str:
    """Return the text of a part; other content is only mentioned."""
    if isinstance(part, TextContent):
        return part.text
    if isinstance(part, ResourceLink):
        return f"({part.name}: {part.uri})"
    if isinstance(part, EmbeddedResource):
        return _text_of_resource(part.resource)
    size = len(getattr(part, "data", "")) * 3 // 4
    return f"({part.type}: {getattr(part, 'mime_type', 'bytes')}, about {size:,} bytes, not shown.)"


def _text_of_resource(held: TextResourceContents | BlobResourceContents) -> str:
    if isinstance(held, BlobResourceContents):
        return f"({held.uri}: {held.mime_type or 'bytes'}, about {len(held.blob) * 3 // 4:,} bytes, not shown.)"
    return f"{held.uri}\n{held.text}"
