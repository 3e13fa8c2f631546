"""Makes the OpenAPI description of the web API in a child process, `python -m assistant.web.description`: it takes a
third of a second of a processor, and in a thread the event loop would wait for the interpreter all that time.

It does not depend on the data folder, so it is made once per process, when it is first asked for.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from typing import Any

from assistant.core.logger import get_logger
from assistant.core.processes import end_process

log = get_logger()

_COMMAND = (sys.executable, "-P", "-B", "-X", "utf8", "-m", "assistant.web.description")
_SECONDS = 60.0


class ApiDescription:
    """The description as JSON; `read` makes it for everybody who waits."""

    _made = b""  # the same for all applications of a process

    def __init__(self) -> None:
        self._making = asyncio.Lock()

    async def read(self) -> bytes:
        """Return it; b"" if it could not be made."""
        async with self._making:
            if not ApiDescription._made:
                ApiDescription._made = await _make_in_child()
            return ApiDescription._made


async def _make_in_child() -> bytes:
    environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = await asyncio.create_subprocess_exec(
        *_COMMAND, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, env=environment, start_new_session=True
    )
    try:
        async with asyncio.timeout(_SECONDS):
            made, _ = await process.communicate()
    except TimeoutError:
        made = b""
    finally:
        await end_process(process)
    if process.returncode != 0 or not made:
        log.error("the description of the web api could not be made", code=process.returncode)
        return b""
    return made


def main() -> None:
    from assistant.web.app import build_web_app
    from assistant.web.deps import ApiDeps

    # Routes use what they depend on when they are asked, and nobody asks here.
    nothing: Any = None
    app = build_web_app(ApiDeps(nothing, nothing, nothing, nothing, nothing, nothing))
    sys.stdout.write(json.dumps(app.openapi(), separators=(",", ":")))


if __name__ == "__main__":
    main()
