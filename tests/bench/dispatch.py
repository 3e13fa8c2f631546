"""What a call of a tool costs besides the tool: from the model's reply to the tool's first line, and from its last line
to the model's next request: permission, approval, records before and after, and building that request.

In this process the tool notes its times. Of an MCP server, a process of its own that the official SDK runs, it is the
time from the registry's call to its answer, without the tool's own; the SDK takes part of it at both ends.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from assistant.core.mcp import approval_code
from assistant.core.messages import ToolCall
from assistant.core.model_api import ModelRequest
from assistant.core.permissions import OWNER_ONLY
from assistant.core.ports import ToolContext
from assistant.settings.settings import load_settings
from assistant.wire.app import App, build_app
from tests.bench.figures import Row, percentile, spread
from tests.bench.homes import CHECKOUT
from tests.bench.process import measured
from tests.support.scripted import RecordingBridge, ScriptedModel, owner_message
from tools.declaration import tool

MOST_MS = 2.0
_TURNS, _CALLS, _WARM_UP = 12, 20, 40


def measure(sizes: Sequence[int]) -> Iterator[Row]:
    del sizes
    found = measured("tests.bench.dispatch")
    for name, what in (
        ("dispatch", "registry and permission, p50 / p95 / p99"),
        ("mcp_processor", "an MCP server's tool, processor time of this process, p50 / p95 / p99"),
    ):
        median = 1000 * percentile(found[name], 0.5)
        yield Row("dispatch", None, what, spread(found[name]), f"p50 <= {MOST_MS:g} ms", median <= MOST_MS)
    yield Row("dispatch", None, "an MCP server's tool, wall time with both SDKs", spread(found["mcp"]))
    yield Row("dispatch", None, "a whole step of a turn: gate, records, next request", spread(found["step"]))
    yield Row("dispatch", None, "of it processor time", spread(found["step_processor"]))


@dataclass
class CallTimes:
    """When the model's newest reply was given, when the tool began and ended; and what each call took besides it, by
    the clock and of the processor."""

    replied: tuple[float, float] = (0.0, 0.0)
    began: tuple[float, float] = (0.0, 0.0)
    ended: tuple[float, float] = (0.0, 0.0)
    step: list[float] = field(default_factory=list)
    step_processor: list[float] = field(default_factory=list)

    def answer(self, request: ModelRequest) -> ToolCall | str:
        now = _now()
        if self.ended > self.replied:
            between = [
                before - replied + after - ended
                for before, replied, after, ended in zip(self.began, self.replied, now, self.ended, strict=True)
            ]
            self.step.append(between[0])
            self.step_processor.append(between[1])
        is_after_call = request.messages[-1].role == "tool"
        self.replied = _now()
        if is_after_call and len(self.step) % _CALLS == 0:
            return "Done."
        return ToolCall(f"c{len(self.step)}", "bench_tool", {"number": len(self.step)})


def _now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


async def _child() -> None:
    times = CallTimes()

    @tool(roles=OWNER_ONLY)
    def bench_tool(context: ToolContext, number: int) -> str:
        """Do nothing."""
        times.began = times.ended = _now()
        return f"nothing of {number}"

    with TemporaryDirectory() as folder:
        home = Path(folder)
        server = {"command": sys.executable, "args": ["-m", "tests.support.mcp_server", folder]}
        lines = [f"{name} = {json.dumps(value)}" for name, value in server.items()]
        environment = f'env = {{ PYTHONPATH = "{CHECKOUT}" }}\nread_only = ["*"]'
        (home / "config.toml").write_text("\n".join(["[mcp.servers.notes]", *lines, environment]))
        settings = load_settings(None, {"ASSISTANT_HOME": folder, "ASSISTANT_TURN__MAX_STEPS": str(_CALLS + 5)})
        model = ScriptedModel(times.answer, window=200_000)
        app = build_app(settings, lambda: datetime.now(UTC), bridges={"kept": RecordingBridge()}, model=model)
        app.toolbox.add(bench_tool)
        await app.start()
        for turn in range(_TURNS):
            await app.runtime.accept(owner_message("Go on.", external_id=f"t{turn}"))
            await app.runtime.wait_until_idle()
        dispatch, _ = await _run(app, "bench_tool", {"number": 1})
        pins = await app.mcp.refresh_tools("notes")
        assert pins
        app.mcp.approve("notes", approval_code(app.mcp.list_pins("notes")))
        mcp, processor = await _run(app, "notes__find_notes", {"words": "milk"})
        found = {"dispatch": dispatch, "mcp": mcp, "mcp_processor": processor}
        found |= {"step": times.step[_WARM_UP:], "step_processor": times.step_processor[_WARM_UP:]}
        print(json.dumps(found))
        await app.stop(5)
        app.close()


async def _run(app: App, name: str, arguments: dict[str, object]) -> tuple[list[float], list[float]]:
    """Seconds of many calls through the registry, by the clock and of the processor."""
    seconds, processor = [], []
    context = ToolContext("main", "owner", "t", "k", datetime.now(UTC), "chat")
    for number in range(_WARM_UP + 200):
        began = _now()
        text, ok = await app.toolbox.run(ToolCall(f"r{number}", name, arguments), context, "owner")
        ended = _now()
        assert ok, text
        seconds.append(ended[0] - began[0])
        processor.append(ended[1] - began[1])
    return seconds[_WARM_UP:], processor[_WARM_UP:]


if __name__ == "__main__":
    asyncio.run(_child())
