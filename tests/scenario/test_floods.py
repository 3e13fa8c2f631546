"""What a flood would make everybody wait for is not done on the loop: shapes are made before, memories are looked up
beside it, the collector leaves alone what is loaded, and of many messages at once a few are accepted in a round.
Counted, not timed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import pydantic
import pytest
from starlette.types import Message, Receive, Scope, Send

from assistant.context.build import PromptFrame
from assistant.context.pressure import PromptSize
from assistant.context.tokens import TokenCounter
from assistant.core.messages import Message as Said
from assistant.runtime import turn_recall
from assistant.runtime.long_texts import MAX_ANSWER_CHARACTERS
from assistant.runtime.turn import TRUNCATED_REPLY_NOTE
from assistant.store.log import format as log_format
from assistant.store.script.sessions import Session
from assistant.store.script.view import Views
from assistant.web.app import _PacedRequests, build_web_app
from assistant.web.description import ApiDescription
from tests.support.control_api import ScriptedControl, control_deps, open_terminal
from tests.support.imports import import_messages
from tests.support.running_app import LiveApp, run_app
from tests.support.scripted import owner_message
from tests.support.web_api import run_web_api

_DAEMON = """
import asyncio, gc, os, signal, sys
from assistant.daemon import main
from assistant.settings.settings import load_settings

def look(address):
    sys.stderr.write(f"{gc.get_freeze_count() > 20_000} {len(gc.get_objects()) < 20_000} {sys.getswitchinterval():.5f}")
    os.kill(os.getpid(), signal.SIGTERM)

asyncio.run(main(load_settings(), look))
"""


async def test_the_first_request_makes_no_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    with open_terminal() as terminal:
        app = build_web_app(control_deps(ScriptedControl(), terminal))
    made: list[object] = []
    init = pydantic.TypeAdapter.__init__

    def noted(self: object, type: object, **rest: object) -> None:
        made.append(type)
        init(self, type, **rest)  # type: ignore[arg-type, call-overload]

    monkeypatch.setattr(pydantic.TypeAdapter, "__init__", noted)
    answers: list[dict[str, object]] = []

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, object]) -> None:
        answers.append(message)

    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "path": "/v1/nothing",
        "raw_path": b"/v1/nothing", "query_string": b"", "headers": [], "scheme": "http", "root_path": "", "state": {},
        "server": ("127.0.0.1", 1), "client": ("127.0.0.1", 2),
    }  # fmt: skip
    await app(scope, receive, send)  # type: ignore[arg-type]
    assert answers[0]["status"] == 404 and made == []


async def test_the_description_of_the_web_api_is_made_once_and_in_a_process_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_here: list[object] = []
    monkeypatch.setattr(ApiDescription, "_made", b"")
    monkeypatch.setitem(build_web_app.__globals__, "_describe", made_here.append)
    started: list[object] = []
    start = asyncio.create_subprocess_exec

    async def noted(*command: object, **rest: object) -> object:
        started.append(command)
        return await start(*command, **rest)  # type: ignore[arg-type]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", noted)
    async with run_web_api(tmp_path) as it:
        answers = await asyncio.gather(*(it.tcp.get("/openapi.json") for _ in range(5)))
        monkeypatch.undo()
        assert all(answer == build_web_app(it.app.web.deps).openapi() for answer in answers)
    assert made_here == [] and len(started) == 1


async def test_of_many_requests_one_is_begun_in_a_round_and_those_for_the_health_at_once() -> None:
    begun: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        begun.append(scope["path"])

    async def nothing(*_: object) -> Message:
        return {}

    paced = _PacedRequests(app)
    paths = ["/v1/status"] * 20 + ["/healthz"]
    asking = [asyncio.create_task(paced({"type": "http", "path": path}, nothing, nothing)) for path in paths]
    rounds = []
    while not all(task.done() for task in asking):
        before = len(begun)
        await asyncio.sleep(0)
        rounds.append(begun[before:].count("/v1/status"))
        assert "/healthz" in begun
    assert max(rounds) == 1 and len(begun) == 21


def test_the_collector_leaves_alone_what_a_daemon_has_loaded(tmp_path: Path) -> None:
    environment = {"ASSISTANT_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", _DAEMON], env=environment, capture_output=True, text=True)
    assert done.stderr == "True True 0.00005", done.stderr


async def test_of_many_messages_at_once_a_few_are_accepted_in_a_round_of_the_loop(tmp_path: Path) -> None:
    async with run_app(tmp_path, *["ok"] * 5) as it:
        messages = [owner_message(f"Note {number}.", external_id=f"m{number}") for number in range(40)]
        accepting = [asyncio.create_task(it.app.runtime.accept(message)) for message in messages]
        in_a_round, before = [], 0
        while not all(task.done() for task in accepting):
            await asyncio.sleep(0)
            kept = len(it.app.stores.conversation.list_accepted("main", limit=100))
            in_a_round.append(kept - before)
            before = kept
        assert before == 40 and max(in_a_round) <= 4
        await it.wait_idle()


async def test_what_memory_has_is_looked_up_beside_the_loop(tmp_path: Path) -> None:
    async with run_app(tmp_path, "ok") as it:
        threads, _ = note_searches(it)
        await it.say("Where is the boat?")
        await it.wait_idle()
        assert len(threads) == 1 and threads[0] != threading.get_ident()


def note_searches(it: LiveApp) -> tuple[list[int], threading.Event]:
    """The threads in which memory will be searched for a message, and whether one has begun to."""
    memory, threads, begun = it.app.runtime._turn_context._recall._memory, [], threading.Event()
    recall = memory.recall

    def noted(*question: object) -> str:
        threads.append(threading.get_ident())
        begun.set()
        return recall(*question)  # type: ignore[arg-type]

    memory.recall = noted  # type: ignore[assignment, method-assign]
    return threads, begun


async def test_what_a_message_recalls_is_looked_up_while_the_message_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with run_app(tmp_path, "ok", "ok") as it:
        threads, begun = note_searches(it)
        conversation, found_first = it.app.stores.conversation, []
        accept = conversation.accept

        def store(*message: object) -> object:
            found_first.append(begun.wait(5))
            return accept(*message)  # type: ignore[arg-type]

        monkeypatch.setattr(conversation, "accept", store)
        await it.say("Where is the boat?")
        await it.wait_idle()
        assert found_first == [True] and len(threads) == 1
        # What was found for a message that had to wait for its turn is out of date.
        await it.app.runtime.accept(owner_message("Where is the oar?", external_id="later"))
        monkeypatch.setattr(turn_recall, "_AT_ONCE", -1.0)
        await it.wait_idle()
        assert len(threads) == 3


async def test_a_message_is_stored_and_answered_where_no_thread_could_look_anything_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    async with run_app(tmp_path, "ok") as it:
        with monkeypatch.context() as patch:
            patch.setattr(asyncio.get_running_loop(), "run_in_executor", refuse)
            await it.app.runtime.accept(owner_message("Where is the boat?", external_id="asked"))
        await it.wait_idle()
        assert [item.outgoing.body for item in it.bridge.sent] == ["ok"]


async def test_what_is_said_at_length_is_encoded_for_the_log_beside_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long, threads = "It rained on the hills. " * 50_000, []
    commit = log_format.compute_commitment

    def noted(salt: str, body: bytes) -> str:
        if len(body) > len(long):
            threads.append(threading.get_ident())
        return commit(salt, body)

    monkeypatch.setattr(log_format, "compute_commitment", noted)
    async with run_app(tmp_path, long) as it:
        await it.say(long)
        await it.wait_idle()
    assert len(threads) == 2 and threading.get_ident() not in threads


async def test_a_status_reads_few_conversations_however_many_there_are_and_each_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    load = Views._load

    def noted(self: Views, session: Session, prefix_rev: int) -> object:
        read.append(session.key)
        return load(self, session, prefix_rev)

    async with run_app(tmp_path, "ok") as it:
        said = [Said("user" if number % 2 == 0 else "assistant", f"Chapter {number}. " * 9) for number in range(50)]
        for number in range(40):
            import_messages(it.app.stores.conversation, f"thread:t{number}", "owner", said, it.clock(), keep=50)
        await it.say("Hello.")
        await it.wait_idle()
        it.app.stores.conversation.views._cached.clear()
        monkeypatch.setattr(Views, "_load", noted)
        told = []
        for _ in range(12):
            read.clear()
            told.append({row["session"]: row["pressure"] for row in it.app.status()["sessions"]})
            assert len(read) <= 6
        assert read == []
        exact = {session: it.app.contexts.window.pressure(session) for session in told[-1]}
        assert told[-1] == exact and len(exact) == 41
        # What is told before a conversation is read is near it.
        assert told[0] == pytest.approx(exact, rel=0.1)

        await it.app.runtime.accept(owner_message("And again.", external_id="again", session="thread:t7"))
        await it.wait_idle()
        read.clear()
        (row,) = [row for row in it.app.status()["sessions"] if row["session"] == "thread:t7"]
        assert row["pressure"] == it.app.contexts.window.pressure("thread:t7") != exact["thread:t7"] and read == []


async def test_an_answer_that_does_not_end_is_cut_and_said_to_be(tmp_path: Path) -> None:
    async with run_app(tmp_path, "x" * (MAX_ANSWER_CHARACTERS + 5)) as it:
        await it.say("Go on.")
        await it.wait_idle()
        (sent,) = [body for body in it.bridge.bodies if body.startswith("xxx")]
        assert sent == "x" * MAX_ANSWER_CHARACTERS + TRUNCATED_REPLY_NOTE


async def test_of_many_requests_at_once_a_few_begin_in_a_round_and_the_health_is_told_at_once() -> None:
    with open_terminal() as terminal:
        app = build_web_app(control_deps(ScriptedControl(), terminal))
    answered: list[str] = []

    async def ask(path: str) -> None:
        async def send(message: dict[str, object]) -> None:
            if message["type"] == "http.response.start":
                answered.append(path)

        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "path": path,
            "raw_path": path.encode(), "query_string": b"", "headers": [], "scheme": "http", "root_path": "",
            "state": {}, "server": ("127.0.0.1", 1), "client": ("127.0.0.1", 2),
        }  # fmt: skip
        await app(scope, asyncio.Event().wait, send)  # type: ignore[arg-type]

    asking = [asyncio.create_task(ask("/v1/nothing")) for _ in range(40)]
    asking.append(asyncio.create_task(ask("/healthz")))
    await asyncio.sleep(0)
    assert answered.count("/healthz") == 1 and answered.count("/v1/nothing") <= 4
    await asyncio.gather(*asking)
    assert answered.count("/v1/nothing") == 40


async def test_the_declarations_of_the_tools_are_measured_once_however_often_the_rest_of_the_prompt_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[int] = []
    measure = PromptFrame.tool_size

    def noted(frame: PromptFrame, counter: TokenCounter) -> PromptSize:
        measured.append(len(frame.tools))
        return measure(frame, counter)

    monkeypatch.setattr(PromptFrame, "tool_size", noted)
    async with run_app(tmp_path) as it:
        meter = it.app.contexts.meter
        _, before = meter.frame("main", "m")
        await it.app.commands.run("/pins add The dog is called Flint.", "main")
        frame, after = meter.frame("main", "m")
        assert after.tokens > before.tokens and after == frame.size(meter.counter("m"))
    assert len(measured) == 2, "once, and by this test"
