"""`mcp`: servers of the Model Context Protocol whose tools the model may call, and what the owner approved of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from datetime import tzinfo

import click

from assistant.commands.context import CommandContext
from assistant.commands.table import CommandGroup
from assistant.core.dataclass import dataclass
from assistant.core.mcp import McpToolDefinition, McpToolPin, McpToolState, approval_code
from assistant.core.quoting import quote_block, quote_text
from assistant.core.text import pluralize, shorten
from assistant.mcp.servers import McpServer
from assistant.settings.layers import mask_secrets_in_text

_MAX_SECONDS = 3700.0
_LONGEST_PLACE = 80


@dataclass(frozen=True, slots=True)
class McpServerRow:
    name: str
    place: str  # its command or address
    tools: dict[McpToolState, int]


@dataclass(frozen=True, slots=True)
class McpToolRow:
    name: str
    state: McpToolState
    asks: bool  # whether each call asks the owner
    description: str
    approved_description: str | None
    schema: str  # JSON
    approved_schema: str | None


@dataclass(frozen=True, slots=True)
class McpServerDetails:
    """`code`: what `approve` needs, "" where nothing waits for it."""

    name: str
    tools: list[McpToolRow]
    code: str


@dataclass(frozen=True, slots=True)
class McpChange:
    text: str


def _render_servers(servers: Sequence[McpServerRow], zone: tzinfo) -> str:
    return "\n".join(f"- {it.name}: {it.place}; {_count(it.tools)}" for it in servers) or (
        "There are no MCP servers. A table `[mcp.servers.NAME]` in config.toml adds one. `assistant mcp serve` is one "
        "itself, for your other programs."
    )


def _count(tools: dict[McpToolState, int]) -> str:
    known = [f"{count} {state}" for state, count in tools.items()]
    return f"tools: {', '.join(known)}" if known else "not asked for its tools yet"


def _render_details(it: McpServerDetails, zone: tzinfo) -> str:
    parts = [_render_tool(tool) for tool in it.tools] or [f"{it.name} was not asked for its tools yet."]
    if it.code:
        parts.append(
            "The model may not use what is new or changed. What a tool says of itself is read by the model: approve "
            f"only what you trust. `/mcp approve {it.name} {it.code}` approves all of it as it stands here."
        )
    elif not it.tools:
        parts.append(f"`/mcp test {it.name}` asks it.")
    return "\n\n".join(parts)


def _render_test(it: McpServerDetails, zone: tzinfo) -> str:
    lines = [f"{it.name} answers. It has {pluralize(len(it.tools), 'tool')}:"]
    lines += [f"- {tool.name} ({tool.state})" for tool in it.tools]
    more = "shows what they say of themselves" + (", with the code that approves them" if it.code else "")
    return "\n".join([*lines, "", f"`/mcp show {it.name}` {more}."])


def _render_tool(tool: McpToolRow) -> str:
    head = f"**{tool.name}** ({tool.state}; {'asks you before each call' if tool.asks else 'is called without asking'})"
    said = [head, quote_block(tool.description), quote_block(tool.schema)]
    if tool.state == "changed":
        said += ["You approved:", quote_block(tool.approved_description or ""), quote_block(tool.approved_schema or "")]
    return "\n\n".join(said)


def _row(server: McpServer, pin: McpToolPin) -> McpToolRow:
    now = pin.seen or pin.approved
    assert now is not None
    return McpToolRow(
        quote_text(pin.name)[1:-1],
        pin.state,
        not server.only_reads(pin.name),
        now.description,
        pin.approved.description if pin.approved else None,
        _schema(now),
        _schema(pin.approved) if pin.approved else None,
    )


def _schema(definition: McpToolDefinition) -> str:
    return json.dumps({"arguments": definition.schema, "hints": definition.annotations}, ensure_ascii=False)


def _details(context: CommandContext, name: str) -> McpServerDetails:
    servers = context.stores.mcp
    pins = servers.list_pins(name)
    waits = any(pin.state in ("new", "changed") for pin in pins)
    server = next(it for it in servers.list_servers() if it.name == name)
    return McpServerDetails(name, [_row(server, pin) for pin in pins], approval_code(pins) if waits else "")


@click.group(cls=CommandGroup)
def mcp() -> None:
    """MCP servers whose tools the model may call, once you approved them.

    > assistant mcp
    > assistant mcp test github
    > assistant mcp show github
    """


@mcp.command("list", render=_render_servers, reads=True, with_session=False)
def list_servers(context: CommandContext) -> list[McpServerRow]:
    """List the servers, and how many of their tools are approved.

    > assistant mcp list
    """
    servers = context.stores.mcp
    return [
        McpServerRow(
            server.name,
            shorten(mask_secrets_in_text(server.settings.url or server.settings.command), _LONGEST_PLACE),
            dict(Counter(pin.state for pin in servers.list_pins(server.name))),
        )
        for server in servers.list_servers()
    ]


@mcp.command("show", render=_render_details, reads=True, with_session=False)
@click.argument("name")
def show(context: CommandContext, name: str) -> McpServerDetails:
    """Show what a server says of its tools.

    Also what changed since you approved it.

    > assistant mcp show github
    """
    return _details(context, name)


@mcp.command("test", render=_render_test, with_session=False, max_seconds=_MAX_SECONDS)
@click.argument("name")
async def test(context: CommandContext, name: str) -> McpServerDetails:
    """Start a server, and ask for its tools. Nothing is approved.

    > assistant mcp test github
    """
    await context.services.mcp.refresh_tools(name)
    return _details(context, name)


@mcp.command("approve", with_session=False)
@click.argument("name")
@click.argument("code")
def approve(context: CommandContext, name: str, code: str) -> McpChange:
    """Let the model use the tools of a server.

    As `show` showed them with this code, and no other.

    > assistant mcp approve github 3f9a1c2b
    """
    pins = context.services.mcp.approve(name, code)
    return McpChange(f"The model may use {pluralize(len(pins), 'tool')} of {name} now.")


@mcp.command("remove", with_session=False)
@click.argument("name")
def remove(context: CommandContext, name: str) -> McpChange:
    """Approve nothing of a server any more. Its settings stay in config.toml.

    > assistant mcp remove github
    """
    count = context.services.mcp.remove(name)
    return McpChange(f"The model may not use {name} any more. {pluralize(count, 'tool')} forgotten.")
