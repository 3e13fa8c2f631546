"""A real MCP server of the official SDK, as a process: `python -m tests.support.mcp_server FOLDER [http]`, which over
HTTP prints its port.

What it says of its tools, and how it behaves, is in FOLDER/behaviour.json, read when it starts: a test changes it
between two starts. What it was asked to do is in FOLDER/calls.jsonl.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.types import BlobResourceContents, CallToolResult, EmbeddedResource, ImageContent, TextContent, ToolAnnotations

FOLDER = Path(sys.argv[1])
BEHAVIOUR: dict[str, Any] = {}
if (FOLDER / "behaviour.json").exists():
    BEHAVIOUR = json.loads((FOLDER / "behaviour.json").read_text())


def note(tool: str, **arguments: Any) -> None:
    with (FOLDER / "calls.jsonl").open("a") as file:
        file.write(json.dumps({"tool": tool, **arguments}) + "\n")


def main() -> None:
    server = MCPServer("notes")
    with (FOLDER / "starts").open("a") as file:
        file.write(f"{os.getpid()}\n")
    if BEHAVIOUR.get("dies"):
        print(BEHAVIOUR["dies"], file=sys.stderr, flush=True)
        sys.exit(3)
    if BEHAVIOUR.get("noise"):
        print(BEHAVIOUR["noise"], flush=True)
    if BEHAVIOUR.get("flood"):
        sys.stdout.write("x" * BEHAVIOUR["flood"])
        sys.stdout.flush()
    if BEHAVIOUR.get("garbage"):
        sys.stdout.buffer.write(bytes(range(256)) * 100 + b"\n")
        sys.stdout.buffer.flush()
    if BEHAVIOUR.get("silent"):
        time.sleep(600)

    @server.tool(description=BEHAVIOUR.get("description", "Add a note."))
    def add_note(text: str) -> str:
        note("add_note", text=text)
        return BEHAVIOUR.get("answer", f"added: {text}")

    @server.tool(description="Find notes.", annotations=ToolAnnotations(read_only_hint=True))
    def find_notes(words: str) -> str:
        note("find_notes", words=words)
        return str(BEHAVIOUR.get("found", "nothing"))

    @server.tool(description="Tell what the environment has.")
    def environment() -> str:
        return json.dumps(dict(os.environ))

    @server.tool(description="Misbehave.")
    def misbehave(how: str) -> CallToolResult:
        note("misbehave", how=how)
        match how:
            case "hang":
                time.sleep(600)
            case "die":
                os._exit(7)
            case "raise":
                raise ValueError(BEHAVIOUR.get("error", "it failed"))
            case "print":
                sys.stdout.write("y" * 50_000_000)
                sys.stdout.flush()
            case "long":
                return CallToolResult(content=[TextContent(type="text", text="z" * 10_000_000)])
            case "bytes":
                image = ImageContent(type="image", data="AAAA" * 1000, mime_type="image/png")
                blob = BlobResourceContents(uri="file:///a.bin", blob="AAAA", mime_type="application/octet-stream")
                return CallToolResult(content=[image, EmbeddedResource(type="resource", resource=blob)])
        return CallToolResult(content=[TextContent(type="text", text="fine")])

    add_prompt_and_resources(server)
    for name in BEHAVIOUR.get("more", []):
        server.add_tool(lambda: "more", name=name, description="One more.")
    if sys.argv[2:3] == ["http"]:
        serve_http(server)
    else:
        server.run("stdio")


def add_prompt_and_resources(server: MCPServer) -> None:
    if "prompt" in BEHAVIOUR:

        @server.prompt(description=BEHAVIOUR.get("prompt_description", "How notes are tidied."))
        def tidy(topic: str, how: str = "gently") -> str:
            note("prompt:tidy", topic=topic, how=how)
            return f"{BEHAVIOUR['prompt']} ({topic}, {how})"

    if "resource" in BEHAVIOUR:

        @server.resource("notes://today", name="today", description="What was noted today.", mime_type="text/plain")
        def today() -> str:
            note("resources:read", uri="notes://today")
            return str(BEHAVIOUR["resource"])

        @server.resource("notes://of/{day}", name="a day")
        def of_day(day: str) -> bytes:
            return b"\0" * 3_000


def serve_http(server: MCPServer) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    app = server.streamable_http_app()

    async def noting(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            note("request", authorization=dict(scope["headers"]).get(b"authorization", b"").decode())
        await app(scope, receive, send)

    uvicorn.Server(uvicorn.Config(noting, log_level="error")).run(sockets=[listener])


if __name__ == "__main__":
    main()
