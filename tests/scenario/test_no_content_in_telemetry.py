"""Nothing of what people say, and no secret, is in what watches the assistant: its log, its spans, its numbers."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import structlog
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from assistant.cli.logging_setup import log_to_stderr
from assistant.core.errors import BridgeError, ModelError, UsageError
from assistant.core.messages import ToolCall
from assistant.models.offline.model import OfflineModel
from assistant.web.metrics import render_metrics
from tests.support.running_app import LiveApp, run_app

NOWHERE = "http://127.0.0.1:9/v1/traces"
WORD, SECRET = "zwetschgenknoedel", "sk-ant-4711-not-for-anybody"
LIFE: tuple[object, ...] = (
    [ToolCall("c1", "manage_todo_list", {"action": "add", "items": [f"buy {WORD}"]})],
    [ToolCall("c2", WORD, {"dish": WORD})],
    [ToolCall("c3", "read_file", {"path": f"{WORD}.txt"})],
    [ToolCall("c4", "search_history", {"query": WORD, "limit": WORD})],
    f"I wrote {WORD} down.",
    ModelError(f"The provider says: {WORD} is no dish.", kind="bad_request", partial=WORD),
    ValueError(f"a fault that quotes {WORD}"),
    f"Once more: {WORD}.",
)


@dataclass
class Collector:
    """An OpenTelemetry collector that keeps what it is sent."""

    address: str = ""
    spans: list[Span] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)

    def take(self, body: bytes) -> None:
        self.raw.append(body)
        sent = ExportTraceServiceRequest.FromString(body)
        self.spans += [
            span for resource in sent.resource_spans for scope in resource.scope_spans for span in scope.spans
        ]

    def attributes(self, name: str) -> list[dict[str, str]]:
        return [
            {
                one.key.removeprefix("nocturne."): str(one.value).split(": ", 1)[1].strip().strip('"')
                for one in s.attributes
            }
            for s in self.spans
            if s.name == f"nocturne.{name}"
        ]


@contextmanager
def collecting() -> Iterator[Collector]:
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            collector.take(gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            return None

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        collector.address = f"http://127.0.0.1:{server.server_port}/v1/traces"
        try:
            yield collector
        finally:
            server.shutdown()


@pytest.fixture(autouse=True)
def log() -> Iterator[None]:
    log_to_stderr("info")
    yield
    structlog.reset_defaults()


async def live(it: LiveApp) -> None:
    """A day in which everything is about one dish, and a good deal goes wrong; then a night."""
    it.bridge.send_errors = [BridgeError("The network is down.")]
    for number in range(4):
        await it.say(f"remember that I like {WORD} {number}")
        await it.wait_idle()
    it.app.dispatcher.retry_now(it.bridge.name)
    for line in (f"/remind tomorrow at 9 eat {WORD}", f"/forget {WORD}", f"/{WORD}", "/status"):
        try:
            await it.app.commands.run(line, "main")
        except UsageError:
            continue
    assert await it.app.sleep.scheduler.run_now("manual") is not None


async def test_a_word_that_is_planted_everywhere_is_in_no_line_of_the_log_no_span_and_no_number(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with collecting() as collector:
        async with run_app(
            tmp_path,
            *LIFE,
            writer=OfflineModel(),
            ANTHROPIC_API_KEY=SECRET,
            ASSISTANT_TELEMETRY__TRACES="otlp",
            ASSISTANT_TELEMETRY__ENDPOINT=collector.address,
        ) as it:
            await live(it)
            numbers = render_metrics(it.app.daemon_status).decode()
            assert WORD in str(it.view_contents())
        lines = capfd.readouterr().err
    sent = b"".join(collector.raw).decode(errors="replace")
    assert "turn failed" in lines and "ValueError" in lines, "what went wrong is told, with its place"
    assert "test_no_words" in lines or "scripted.py" in lines
    for where in (lines, numbers, sent):
        assert WORD not in where
        assert SECRET not in where


async def test_spans_tell_what_was_done_and_stand_within_each_other(tmp_path: Path) -> None:
    with collecting() as collector:
        async with run_app(
            tmp_path,
            *LIFE,
            writer=OfflineModel(),
            ASSISTANT_TELEMETRY__TRACES="otlp",
            ASSISTANT_TELEMETRY__ENDPOINT=collector.address,
        ) as it:
            await live(it)
    # The third was left by a fault of the model's.
    assert [one.get("state") for one in collector.attributes("turn")] == ["answered", "failed", None, "answered"]
    tools = collector.attributes("tool")
    assert {one["tool"] for one in tools} == {"manage_todo_list", "read_file", "search_history"}
    assert {one["phase"] for one in collector.attributes("phase")} >= {"extract", "consolidate", "compact"}
    assert [one["bridge"] for one in collector.attributes("send")][:2] == ["kept", "kept"]
    turns = {span.span_id: span for span in collector.spans if span.name == "nocturne.turn"}
    sleeps = {span.span_id for span in collector.spans if span.name == "nocturne.sleep"}
    assert all(span.parent_span_id in turns for span in collector.spans if span.name == "nocturne.tool")
    assert all(span.parent_span_id in sleeps for span in collector.spans if span.name == "nocturne.phase")
    failed = [span.status.code for span in turns.values()]
    assert failed == [0, 2, 2, 0]


async def test_a_collector_that_is_away_keeps_nobody_from_being_answered_or_from_ending(tmp_path: Path) -> None:
    async with run_app(
        tmp_path, "hello yourself", ASSISTANT_TELEMETRY__TRACES="otlp", ASSISTANT_TELEMETRY__ENDPOINT=NOWHERE
    ) as it:
        await it.say("hello")
        await it.wait_idle()
        assert it.bridge.bodies == ["hello yourself"]
