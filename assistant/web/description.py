"""Makes the OpenAPI description of the web API in a child process, `assistant.web.description_main`: it takes a
third of a second of a processor, and in a thread the event loop would wait for the interpreter all that time.

It does not depend on the data folder, so it is made once per process, when it is first asked for.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE

from assistant.core.logger import get_logger
from assistant.core.processes import end_process

log = get_logger()

_COMMAND = (sys.executable, "-P", "-B", "-X", "utf8", "-m", "assistant.web.description_main")
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
