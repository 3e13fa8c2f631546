"""`[mcp]`: the configured MCP servers, and what each may do."""

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta

from assistant.core.checked_tables import CheckedTable, whole
from assistant.settings.validators import TextList, WebAddress

ServerName = Annotated[str, Meta(pattern=whole(r"[a-z0-9]+(?:[-_][a-z0-9]+)*"), max_length=32)]
"""Part of the names of its tools, which providers allow letters, digits, "-" and "_" in."""


class McpServerSettings(CheckedTable, frozen=True):
    """`[mcp.servers.NAME]`: a command to start, or an address.

    - `tools`: those that are used, as names with "*" and "?".
    - `read_only`: those that are called without approval.
    """

    command: str = ""
    args: TextList = ()
    env: Mapping[str, str] = {}
    url: WebAddress = ""
    headers: Mapping[str, str] = {}
    tools: TextList = ("*",)
    read_only: TextList = ()
    timeout_seconds: Annotated[float, Meta(ge=1, le=3600)] = 30.0
    result_bytes: Annotated[int, Meta(ge=1_000, le=4_000_000)] = 100_000

    def check(self) -> None:
        if bool(self.command) == bool(self.url):
            raise ValueError("needs either `command` or `url`")
        if (self.args or self.env) and self.url:
            raise ValueError("has a `url`, so `args` and `env` mean nothing")
        if self.headers and self.command:
            raise ValueError("has a `command`, so `headers` mean nothing")


class McpSettings(CheckedTable, frozen=True):
    servers: Annotated[
        Mapping[ServerName, McpServerSettings],
        Meta(description="a table [mcp.servers.NAME] for each, NAME being up to 32 small letters, digits, hyphens"),
    ]
