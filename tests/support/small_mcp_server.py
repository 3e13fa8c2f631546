"""An MCP server over pipes that has one tool and starts at once, as the SDK's own does not: `python -S
small_mcp_server.py FILE`, where FILE holds the tool's description. `mcp_server.py` is the real one.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def answer(method: str, parameters: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            server = {"name": "notes", "version": "1"}
            version = parameters["protocolVersion"]
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}
        case "tools/list":
            described = Path(sys.argv[1]).read_text(encoding="utf-8")
            schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
            return {"tools": [{"name": "add_note", "description": described, "inputSchema": schema}]}
        case _:
            return {}


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:  # else a notification
            result = answer(request["method"], request.get("params", {}))
            print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)


if __name__ == "__main__":
    main()
