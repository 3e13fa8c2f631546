"""Writes the OpenAPI description of the web API, as JSON, to standard output: a process of its own (`description`)."""

from __future__ import annotations

import json
import sys
from typing import Any

from assistant.web.app import build_web_app
from assistant.web.deps import ApiDeps


def main() -> None:
    # Routes use what they depend on when they are asked, and nobody asks here.
    nothing: Any = None
    app = build_web_app(ApiDeps(nothing, nothing, nothing, nothing, nothing, nothing))
    sys.stdout.write(json.dumps(app.openapi(), separators=(",", ":")))


if __name__ == "__main__":
    main()
