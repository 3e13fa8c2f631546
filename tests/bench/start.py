"""What starting costs: one question from cold, the daemon until it is ready and idle; and the first prompt.

Each is a fresh process on a home of the given size, as a person would start it; files are in the disk cache.
"""

from __future__ import annotations

import asyncio
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from assistant.settings.settings import load_settings
from assistant.wire.app import build_app
from tests.bench.figures import Row, percentile
from tests.bench.homes import CHECKOUT, home
from tests.bench.process import resident_mib, run
from tests.support.scripted import RecordingBridge, ScriptedModel, owner_message

ANSWER_SECONDS, READY_SECONDS, IDLE_MIB, PROMPT_TOKENS = 0.8, 1.5, 100, 2800
# Seconds until a start is given up; a busy machine with a large home takes a minute.
_LONGEST_START = 300
_RUNS = 7
_ASSISTANT = (str(Path(sys.executable).with_name("assistant")),)


def measure(sizes: Sequence[int]) -> Iterator[Row]:
    with TemporaryDirectory() as folder:
        answered = [run([*_ASSISTANT, "chat", "-m", "hi"], _environment(Path(folder) / str(n))) for n in range(_RUNS)]
        seconds = percentile([one.seconds for one in answered], 0.5)
        yield Row(
            "start",
            None,
            "`assistant chat -m hi`, new home, median",
            f"{seconds:.2f} s",
            f"<= {ANSWER_SECONDS} s",
            seconds <= ANSWER_SECONDS,
        )
        yield _first_prompt(Path(folder) / "prompt")
    for size in sizes:
        copy = home(size).copied("start")
        try:
            started = [_start(copy) for _ in range(_RUNS)]
        finally:
            shutil.rmtree(copy)
        ready = percentile([seconds for seconds, _ in started], 0.5)
        idle = percentile([memory for _, memory in started], 0.5)
        yield Row(
            "start", size, "daemon ready, median", f"{ready:.2f} s", f"<= {READY_SECONDS} s", ready <= READY_SECONDS
        )
        yield Row("start", size, "resident memory when idle", f"{idle:.0f} MiB", f"<= {IDLE_MIB} MiB", idle <= IDLE_MIB)


def _environment(path: Path) -> dict[str, str]:
    """The offline model on a home, whatever the environment of the benchmark says."""
    return {"ASSISTANT_HOME": str(path), "ASSISTANT_MODEL__PROVIDER": "offline"}


def _start(path: Path) -> tuple[float, float]:
    """(seconds until the daemon says that it is ready, MiB resident then)."""
    began = time.perf_counter()
    with ready(path) as daemon:
        return time.perf_counter() - began, resident_mib(daemon.pid)


@contextmanager
def ready(path: Path, **settings: str) -> Iterator[subprocess.Popen[bytes]]:
    """A daemon on a home, once it says that it is ready."""
    daemon = subprocess.Popen(
        [*_ASSISTANT, "run"], cwd=CHECKOUT, env={**os.environ, **_environment(path), **settings}, stderr=subprocess.PIPE
    )
    try:
        _until(daemon, b"ready")
        yield daemon
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.wait()
        if daemon.stderr:
            daemon.stderr.close()


def _until(daemon: subprocess.Popen[bytes], word: bytes) -> None:
    assert daemon.stderr is not None
    said = b""
    while word not in said:
        readable, _, _ = select.select([daemon.stderr], [], [], _LONGEST_START)
        part = os.read(daemon.stderr.fileno(), 65536) if readable else b""
        if not part:
            raise RuntimeError(f"the daemon did not become ready: {said.decode(errors='replace')}")
        said += part


def _first_prompt(path: Path) -> Row:
    """Tools, persona, rules and a first "hi", counted as for a model without a public vocabulary."""
    tokens = asyncio.run(prompt_tokens(path))
    target = f"<= {PROMPT_TOKENS:,}"
    return Row("start", None, "first prompt, tokens (estimated)", f"{tokens:,}", target, tokens <= PROMPT_TOKENS)


async def prompt_tokens(path: Path) -> int:
    """Of the first request of a new home, with every tool that its owner has."""
    settings = load_settings(None, _environment(path))
    model = ScriptedModel("hello")
    app = build_app(settings, lambda: datetime.now(UTC), bridges={"kept": RecordingBridge()}, model=model)
    try:
        await app.start()
        await app.runtime.accept(owner_message("hi", external_id="1"))
        await app.runtime.wait_until_idle()
        await app.stop(1)
        return app.estimates.request_tokens(model.requests[0], "claude-sonnet-5-5")
    finally:
        app.close()
