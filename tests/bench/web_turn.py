"""What a turn costs whoever talks over the web API: a daemon as it is installed, Anthropic's official SDK in it, and a
model in a process of its own that answers at once; from the request to the event that delivers the answer.

`python -m tests.bench.web_turn --against CHECKOUT` holds the same conversation with a daemon of another checkout (with
its own `.venv`), turn by turn in alternation, so that whatever else the machine does meets both alike.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from assistant.cli.client import SocketLink, open_socket_link
from assistant.cli.link import LinkLost
from tests.bench.appends import durable_append, in_appends
from tests.bench.figures import Row, percentile, spread
from tests.bench.homes import CACHE, CHECKOUT
from tests.bench.process import resident_mib
from tests.bench.prose import Prose

_TURNS, _WARM_UP = 380, 20
FIRST_MIB, LAST_MIB = 120, 150


class InstantModel:
    """Answers Anthropic's Messages API with the same few words, made before anybody asks; serves at `url` while its
    context is open."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._process = multiprocessing.get_context("fork").Process(target=self._serve, daemon=True)

    def __enter__(self) -> InstantModel:
        self._process.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.join()
        self._socket.close()

    def _serve(self) -> None:
        async def main() -> None:
            server = await asyncio.start_server(_answer_requests, sock=self._socket)
            await server.serve_forever()

        asyncio.run(main())


async def _answer_requests(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = head.partition(b"content-length:")[2].partition(b"\r\n")[0].strip()
            body = await reader.readexactly(int(length or 0))
            writer.write(_answer(body) if head.startswith(b"post /v1/messages ") else _MODEL_INFO)
            await writer.drain()


_WORDS = ("A fine ", "walk, and ", "nothing that could not wait until tomorrow.")
_SUMMARY = (
    "<summary>\nThey talked about many things, and nothing of it was decided.\n</summary>\n<memories>\n</memories>"
)


def _answer(body: bytes) -> bytes:
    is_asked_for_summary = b"<summary>" in body
    usage = {"input_tokens": len(body) // 4, "output_tokens": 1}
    begin = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-5-5", "content": []}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**begin, "stop_reason": None, "stop_sequence": None, "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
            for text in ((_SUMMARY,) if is_asked_for_summary else _WORDS)
        ),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 15}},
        {"type": "message_stop"},
    ]
    text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()
    return _response(text, "text/event-stream")


def _response(body: bytes, kind: str) -> bytes:
    return f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


_MODEL_INFO = _response(
    json.dumps(
        {
            "id": "claude-sonnet-5-5",
            "type": "model",
            "display_name": "Sonnet",
            "created_at": "2026-01-01T00:00:00Z",
            "max_input_tokens": 200_000,
            "max_tokens": 32_000,
            "capabilities": {"thinking": {"types": {"between_tools": {"supported": True}}}},
        }
    ).encode(),
    "application/json",
)


@dataclass(slots=True)
class Talk:
    """A conversation with one daemon, and what its turns took: wall seconds, and the daemon's own processor seconds."""

    link: SocketLink
    pid: int
    events: AsyncIterator[Any]
    seconds: list[float] = field(default_factory=list)
    processor_seconds: list[float] = field(default_factory=list)
    first_mib: float = 0.0
    last_mib: float = 0.0

    async def say(self, text: str, external_id: str) -> None:
        self.processor_seconds.append(self._processor_seconds())
        began = time.perf_counter()
        await self.link.send_message(text, external_id, "main")
        while (reply := await self._next_delivery())["kind"] != "reply":
            await self.link.acknowledge(reply["key"])
        self.seconds.append(time.perf_counter() - began)
        await self.link.acknowledge(reply["key"])
        self.first_mib = self.first_mib or resident_mib(self.pid)

    async def _next_delivery(self) -> dict[str, Any]:
        while (event := await anext(self.events))[0] != "deliver":
            pass
        return dict(event[1])

    def _processor_seconds(self) -> float:
        tasks = Path(f"/proc/{self.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text(encoding="ascii").split()[0]) for task in tasks) / 1e9


def measure(sizes: Sequence[int]) -> Iterator[Row]:
    del sizes
    (talk,) = asyncio.run(_held([CHECKOUT], _TURNS))
    append = durable_append(CACHE)
    yield Row("web-turn", None, "request to delivered event, p50 / p95 / p99", spread(talk.seconds))
    yield Row("web-turn", None, *in_appends(talk.seconds, append))
    yield Row("web-turn", None, "of it processor time of the daemon", spread(talk.processor_seconds))
    for when, found, most in (("first", talk.first_mib, FIRST_MIB), ("last", talk.last_mib, LAST_MIB)):
        what = f"resident memory after the {when} of {_WARM_UP + _TURNS} turns"
        yield Row("web-turn", None, what, f"{found:.0f} MiB", f"<= {most} MiB", found <= most)


async def _held(checkouts: Sequence[Path], turns: int) -> list[Talk]:
    chance, prose = random.Random(1), Prose(1)
    topic = prose.topic(chance)
    async with AsyncExitStack() as stack:
        model = stack.enter_context(InstantModel())
        talks = []
        for checkout in checkouts:
            folder = Path(stack.enter_context(TemporaryDirectory(dir=CACHE)))
            daemon = stack.enter_context(_daemon(checkout, folder, model.url))
            link = await stack.enter_async_context(_link(folder))
            talks.append(Talk(link, daemon.pid, link.events("main")))
        for talk in talks:
            await anext(talk.events)
        for number in range(_WARM_UP + turns):
            text = prose.message(chance, topic)
            for talk in talks if number % 2 else reversed(talks):
                await talk.say(text, f"turn {number}")
        for talk in talks:
            talk.last_mib = resident_mib(talk.pid)
            talk.processor_seconds = [after - before for before, after in pairwise(talk.processor_seconds)][_WARM_UP:]
            del talk.seconds[:_WARM_UP]
            await talk.events.aclose()  # type: ignore[attr-defined]
    return talks


@contextmanager
def _daemon(checkout: Path, home: Path, model_url: str) -> Iterator[subprocess.Popen[bytes]]:
    environment = {
        "ASSISTANT_HOME": str(home),
        "ASSISTANT_MODEL__PROVIDER": "anthropic",
        "ASSISTANT_MODEL__NAME": "claude-sonnet-5-5",
        "ANTHROPIC_BASE_URL": model_url,
        "ANTHROPIC_API_KEY": "a-key",
        "ASSISTANT_SLEEP__AT": "",
        "ASSISTANT_BACKUP__AT": "",
        "ASSISTANT_BUDGET__DAILY_USD": "0",
        "ASSISTANT_BUDGET__MONTHLY_USD": "0",
        "ASSISTANT_LOG__LEVEL": "warning",
    }
    with (home / "daemon.txt").open("wb") as log:
        daemon = subprocess.Popen(
            [checkout / ".venv" / "bin" / "assistant", "run"],
            cwd=checkout,
            env={**os.environ, **environment},
            stdout=log,
            stderr=log,
        )
    try:
        yield daemon
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.wait()


@asynccontextmanager
async def _link(home: Path) -> AsyncIterator[SocketLink]:
    for _ in range(600):
        with suppress(LinkLost, OSError):
            async with open_socket_link(home / "run" / "control.sock") as link:
                await link.status()
                yield link
                return
        await asyncio.sleep(0.1)
    raise RuntimeError("the daemon did not become ready")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.web_turn")
    parser.add_argument("--against", type=Path, required=True, help="a checkout with its own .venv")
    parser.add_argument("--turns", type=int, default=_TURNS)
    chosen = parser.parse_args()
    CACHE.mkdir(exist_ok=True)
    other, this = asyncio.run(_held([chosen.against.resolve(), CHECKOUT], chosen.turns))
    for what, before, after in (
        ("request to delivered event", other.seconds, this.seconds),
        ("processor time of the daemon", other.processor_seconds, this.processor_seconds),
    ):
        ratios = " / ".join(f"{percentile(after, s) / percentile(before, s):.2f}" for s in (0.50, 0.95, 0.99))
        print(f"{what}, p50 / p95 / p99: {spread(before)} -> {spread(after)}, {ratios} x")
    for when, was, now in (("first", other.first_mib, this.first_mib), ("last", other.last_mib, this.last_mib)):
        print(f"resident memory after the {when} turn: {was:.0f} MiB -> {now:.0f} MiB")


if __name__ == "__main__":
    main()
