"""`[mcp]`: the configured MCP servers, and what each may do."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from assistant.settings.validators import SettingsSection, WebAddress

ServerName = Annotated[str, Field(pattern=r"^[a-z0-9]+(?:[-_][a-z0-9]+)*$", max_length=32)]
"""Part of the names of its tools, which providers allow letters, digits, "-" and "_" in."""


class McpServerSettings(SettingsSection):
    """`[mcp.servers.NAME]`: a command to start, or an address.

    - `tools`: those that are used, as names with "*" and "?".
    - `read_only`: those that are called without approval.
    """

    command: str = ""
    args: list[str] = Field(default_factory=list)
    env: dict[str, str] = Field(default_factory=dict)
    url: WebAddress = ""
    headers: dict[str, str] = Field(default_factory=dict)
    tools: list[str] = Field(default_factory=lambda: ["*"])
    read_only: list[str] = Field(default_factory=list)
    timeout_seconds: Annotated[float, Field(ge=1, le=3600)] = 30.0
    result_bytes: Annotated[int, Field(ge=1_000, le=4_000_000)] = 100_000

    @model_validator(mode="after")
    def _check_one_way(self) -> Self:
        if bool(self.command) == bool(self.url):
            raise ValueError("needs either `command` or `url`")
        if (self.args or self.env) and self.url:
            raise ValueError("has a `url`, so `args` and `env` mean nothing")
        if self.headers and self.command:
            raise ValueError("has a `command`, so `headers` mean nothing")
        return self


class McpSettings(SettingsSection):
    servers: dict[ServerName, McpServerSettings] = Field(
        description="a table [mcp.servers.NAME] for each, NAME being up to 32 small letters, digits, hyphens"
    )
