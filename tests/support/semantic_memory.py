"""Semantic memory for tests: memory.db of a home with the child process over it, and an embedder's provider."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from assistant.core.memories import Memory, MemoryChange
from assistant.mem0.client import Mem0Client, MemoryStoreSettings
from assistant.mem0.codec import EmbedderSettings
from assistant.wire.memories import MEMORY_WORKER_COMMAND, open_mem0_client, open_memory_db
from tests.support.page_server import listening

NOW = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)


def make_memory(text: str, scope: str = "main", number: int = 0, **rest: Any) -> Memory:
    """One with an id made of its scope, its first words and its number, said `number` minutes after `NOW`."""
    made = uuid.uuid5(uuid.NAMESPACE_URL, f"{scope}/{number}/{text[:200]!r}")
    fields = {"said_at": NOW + timedelta(minutes=number), "entries": (number,), **rest}
    return Memory(str(made), scope, text, **fields)


def add_changes(*added: Memory) -> list[MemoryChange]:
    return [MemoryChange("add", one) for one in added]


def update_changes(*changed: Memory) -> list[MemoryChange]:
    return [MemoryChange("update", one) for one in changed]


def delete_changes(*gone: Memory) -> list[MemoryChange]:
    return [MemoryChange("delete", one) for one in gone]


@asynccontextmanager
async def open_memories(
    settings: MemoryStoreSettings, command: Sequence[str] = MEMORY_WORKER_COMMAND
) -> AsyncIterator[Mem0Client]:
    db = open_memory_db(settings, NOW)
    app = open_mem0_client(settings, db, command)
    try:
        yield app
    finally:
        await app.aclose()
        db.close()


@dataclass
class EmbedderServer:
    """An embedder's provider that speaks OpenAI's way and Ollama's: a vector of letter counts for each text. `answers`
    are given first: a status, or a body."""

    url: str = ""
    request_bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    next_answers: list[int | bytes] = field(default_factory=list)

    def settings(self, kind: str = "openai") -> EmbedderSettings:
        return EmbedderSettings(kind, "letters", self.url, "sk-secret-key")


def letter_counts(text: str) -> list[float]:
    return [float(text.lower().count(letter)) + 0.01 for letter in "abcdefghijklmnopqrstuvwxyz"]


@contextmanager
def run_embedder_server() -> Iterator[EmbedderServer]:
    told = EmbedderServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            told.request_bodies.append(body)
            told.headers.append(dict(self.headers))
            answer = told.next_answers.pop(0) if told.next_answers else _answer(self.path, body["input"])
            status, said = (answer, b"{}") if isinstance(answer, int) else (200, answer)
            self.send_response(status)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, format: str, *args: Any) -> None:
            """Quiet."""

    with listening(Handler) as port:
        told.url = f"http://127.0.0.1:{port}"
        yield told


def _answer(path: str, texts: Sequence[str]) -> bytes:
    made = [letter_counts(text) for text in texts]
    if path == "/api/embed":
        return json.dumps({"embeddings": made}).encode()
    # In no order: a provider may answer so.
    rows = [{"index": place, "embedding": row} for place, row in enumerate(made)]
    return json.dumps({"data": rows[::-1]}).encode()


def words_in_files(folder: Path, *words: str) -> list[str]:
    """Those of the words that stand anywhere under a folder, byte for byte."""
    held = b"\n".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    return [word for word in words if word.encode() in held]
