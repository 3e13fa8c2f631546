"""A forgetting lets no lock go that the databases of the home stand under."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from assistant.core.erasure import ErasureRequest
from tests.support.erasure_home import ErasureHome
from tests.support.semantic_memory import make_memory
from tests.support.store_home import NOW

OTHER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("UPDATE memories SET text = 'Cake is good.'")
db.commit()
db.close()
"""


async def test_what_another_process_writes_after_a_forgetting_is_seen(tmp_path: Path) -> None:
    home = ErasureHome(tmp_path).open()
    try:
        home.add_memory(make_memory("Cake is nice.", "owner", 1))
        home.add_memory(make_memory("The code is zanzibarquux.", "owner", 2))
        home.add_entry("code", "The code is zanzibarquux.")
        done = await home.erasure.erase(ErasureRequest("owner", text="zanzibarquux"), NOW)
        assert (done.leftovers, done.complete) == ((), True) and done.files_searched > 3
        other = await asyncio.create_subprocess_exec(sys.executable, "-c", OTHER, str(tmp_path / "memory.db"))
        assert await other.wait() == 0
        assert [one.text for one in await home.memories.all()] == ["Cake is good."]
        assert (tmp_path / "memory.db-wal").exists()
    finally:
        home.close()
