"""Child processes are ended whole: nothing of them is waited for for ever, or left to the garbage collector."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import warnings
from asyncio.subprocess import PIPE
from collections.abc import Coroutine
from datetime import UTC
from pathlib import Path
from typing import Any

from assistant.core.processes import end_process
from assistant.imports.reader import read_export
from tests.support.store_home import NOW

_TALKS = "import sys\nwhile True: sys.stdout.write('word ' * 10000)"


def left_to_the_collector(work: Coroutine[Any, Any, Any]) -> list[str]:
    """What is closed only as it is collected, after its loop has ended."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        asyncio.run(work)
        gc.collect()
    return [str(one.message) for one in caught if issubclass(one.category, ResourceWarning)]


def test_a_child_that_is_ended_with_much_left_to_say_is_closed() -> None:
    async def work() -> None:
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", _TALKS, stdout=PIPE, limit=1024)
        assert process.stdout is not None
        await process.stdout.read(1)
        await end_process(process)

    assert left_to_the_collector(work()) == []


def test_an_export_that_is_read_no_further_leaves_no_process_behind(tmp_path: Path) -> None:
    talks = [
        {
            "conversation_id": f"c{number}",
            "title": "Talk",
            "current_node": "m",
            "mapping": {
                "m": {
                    "id": "m",
                    "parent": None,
                    "message": {
                        "id": "m",
                        "author": {"role": "user"},
                        "create_time": 1.6e9,
                        "content": {"content_type": "text", "parts": ["word " * 200_000]},
                    },
                }
            },
        }
        for number in range(30)
    ]
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps(talks), encoding="utf-8")

    async def work() -> None:
        found = read_export(path, "chatgpt", "Ann", UTC, NOW)
        async for _ in found:
            break
        # What it has to say meanwhile waits in the pipe.
        await asyncio.to_thread(gc.collect)
        await found.aclose()  # type: ignore[attr-defined]

    assert left_to_the_collector(work()) == []
