"""An MCP server without the SDK, which starts at once: `python bare_mcp_server.py HOW [FILE]`. It answers as a server
should until its tool is called; then it does what HOW says. FILE has the description of the tool. `mcp_server.py` is
the real one."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

HOW = sys.argv[1]
DESCRIPTION = Path(sys.argv[2]).read_text(encoding="utf-8") if sys.argv[2:] else "Act."
TOOLS = [{"name": "act", "description": DESCRIPTION, "inputSchema": {"type": "object"}}]


def write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def answer(identifier: object, result: object) -> None:
    write(json.dumps({"jsonrpc": "2.0", "id": identifier, "result": result}) + "\n")


def misbehave(identifier: object) -> None:
    match HOW:
        case "flood":
            write("y" * 50_000_000)
        case "lines":
            while True:
                write("no message\n" * 1000)
        case "bytes":
            sys.stdout.buffer.write(bytes(range(256)) * 1000 + b"\n")
            sys.stdout.buffer.flush()
        case "large":
            answer(identifier, {"content": [{"type": "text", "text": "z" * 8_000_000}]})
        case "other":
            answer("another", {"content": [{"type": "text", "text": "for somebody else"}]})
        case "shape":
            answer(identifier, {"content": "no list"})
        case "close":
            sys.stdout.close()
            os.close(1)
            time.sleep(600)
        case "stderr":
            sys.stderr.write("the token is s3cret-t0ken\n")
            sys.exit(1)
        case "fork":
            if os.fork() == 0:
                time.sleep(600)
            sys.exit(1)


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        match message.get("method"):
            case "initialize":
                version = message["params"]["protocolVersion"]
                about = {"name": "foul", "version": "1"}
                answer(message["id"], {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about})
            case "tools/list":
                answer(message["id"], {"tools": TOOLS})
            case "tools/call":
                misbehave(message["id"])
            case "server/discover":
                error = {"code": -32601, "message": "Method not found"}
                write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}) + "\n")


if __name__ == "__main__":
    main()
