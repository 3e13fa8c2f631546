"""Turns through the whole app: real stores, tools and delivery, a scripted model and a bridge that keeps."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path
from threading import Event

import pytest

from assistant.core.errors import BridgeError, ModelError, UsageError
from assistant.core.messages import ToolCall
from assistant.core.model_api import ModelNotice, ModelRequest
from assistant.settings.settings import load_settings
from assistant.wire.app import build_app
from tests.support.running_app import run_app
from tests.support.scripted import RecordingBridge, ScriptedModel, SteppingClock, owner_message


async def test_a_message_is_answered_once_and_logged(tmp_path: Path) -> None:
    async with run_app(tmp_path, "hello yourself") as it:
        inbox_id = await it.say("hello")
        await it.wait_idle()
        assert it.bridge.bodies == ["hello yourself"]
        assert it.inbox_item(inbox_id).state == "answered"
        assert it.view_contents() == [("user", "hello"), ("assistant", "hello yourself")]
        assert [r.content for r in it.app.stores.history.recent("owner")] == ["hello", "hello yourself"]


async def test_f40_the_probe_is_told_what_waits_and_what_runs(tmp_path: Path) -> None:
    async with run_app(tmp_path, "yes") as it:

        def waiting_and_running() -> tuple[list[str], list[str]]:
            lanes = it.app.runtime.progress_snapshot()
            return sorted(lanes.waiting), sorted(lanes.turns.values())

        it.model.gate = asyncio.Event()
        await it.say("hello")
        assert waiting_and_running() == (["main"], [])
        await it.app.runtime.tick(it.clock())
        assert waiting_and_running() == ([], ["main"])
        it.model.gate.set()
        await it.wait_idle()
        assert waiting_and_running() == ([], [])


async def test_the_same_external_id_is_answered_once(tmp_path: Path) -> None:
    async with run_app(tmp_path, "once") as it:
        await it.say("hello", "same")
        await it.say("hello", "same")
        await it.wait_idle()
        assert it.bridge.bodies == ["once"]
        assert len(it.model.requests) == 1


async def test_tools_run_and_their_results_reach_the_model(tmp_path: Path) -> None:
    call = ToolCall("c1", "manage_todo_list", {"action": "add", "items": ["buy milk"]})
    async with run_app(tmp_path, call, "noted") as it:
        await it.say("buy milk, please")
        await it.wait_idle()
        assert it.bridge.bodies == ["noted"]
        assert [todo.text for todo in it.app.stores.todos.list_todos("owner")] == ["buy milk"]
        result = it.model.requests[1].messages[-1]
        assert (result.role, result.tool_call_id) == ("tool", "c1")
        assert "buy milk" in result.content


async def test_call_ids_that_a_local_server_repeats_are_made_unique(tmp_path: Path) -> None:
    same = ToolCall("call_0", "current_time", {})
    async with run_app(tmp_path, same, same, "done") as it:
        await it.say("what time is it")
        await it.wait_idle()
        ids = [c.id for m in it.app.stores.conversation.load_view("main").messages for c in m.tool_calls]
        assert len(ids) == 2
        assert len(set(ids)) == 2


async def test_messages_wait_for_the_running_turn(tmp_path: Path) -> None:
    model = ScriptedModel("first", "second")
    model.gate = asyncio.Event()
    async with run_app(tmp_path, model=model) as it:
        await it.say("one")
        await it.app.runtime.tick(it.clock())
        await model.called.wait()
        await it.say("two")
        await it.app.runtime.tick(it.clock())
        assert len(model.requests) == 1
        model.gate.set()
        await it.wait_idle()
        assert it.bridge.bodies == ["first", "second"]
        assert [m.content for m in model.requests[1].messages] == ["one", "first", "two"]


async def test_what_can_wait_gives_way_to_a_long_turn_once(tmp_path: Path) -> None:
    model = ScriptedModel("first", "second")
    model.gate = asyncio.Event()
    async with run_app(tmp_path, model=model) as it:
        await it.say("one")
        await it.app.runtime.tick(it.clock())
        await model.called.wait()
        await it.app.running_turns.wait_until_quiet(0.01)
        await it.say("what waits behind it is no reason either")
        async with asyncio.timeout(60):
            await it.app.running_turns.wait_until_quiet(3_600)
        model.gate.set()
        await it.wait_idle()
        model.gate.clear()
        await it.say("two")
        await it.app.runtime.tick(it.clock())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await it.app.running_turns.wait_until_quiet(3_600)
        model.gate.set()
        await it.wait_idle()


async def test_a_message_steers_the_turn_at_the_next_tool_boundary(tmp_path: Path) -> None:
    model = ScriptedModel(ToolCall("c1", "current_time", {}), "both answered")
    model.gate = asyncio.Event()
    async with run_app(tmp_path, model=model, ASSISTANT_TURN__ON_MESSAGE="steer") as it:
        first = await it.say("one")
        await it.app.runtime.tick(it.clock())
        await model.called.wait()
        second = await it.say("and also two")
        model.gate.set()
        await it.wait_idle()
        assert model.requests[1].messages[-1].content == "and also two"
        assert it.bridge.bodies == ["both answered"]
        assert {it.inbox_item(first).state, it.inbox_item(second).state} == {"answered"}


async def test_stop_leaves_a_marker_and_a_notice_and_the_next_message_is_answered(tmp_path: Path) -> None:
    model = ScriptedModel("later")
    model.gate = asyncio.Event()
    async with run_app(tmp_path, model=model) as it:
        inbox_id = await it.say("a long task")
        await it.app.runtime.tick(it.clock())
        await model.called.wait()
        assert await it.app.runtime.stop_turn("main")
        assert it.inbox_item(inbox_id).state == "failed"
        assert it.view_contents()[-1][1].startswith("<turn-aborted>")
        model.gate.set()
        await it.say("go on")
        await it.wait_idle()
        assert it.bridge.bodies == ["Stopped.", "later"]
        assert not await it.app.runtime.stop_turn("main")


async def test_a_turn_that_is_stopped_before_it_ran_ends_and_blocks_nothing(tmp_path: Path) -> None:
    async with run_app(tmp_path / "home", "the first answer", "an answer") as it:
        await it.say("stop this")
        await it.app.runtime.tick(it.clock.now)
        assert await it.app.runtime.stop_turn("main")
        await it.say("and this?")
        await it.wait_idle()
        assert it.bridge.bodies == ["Stopped.", "the first answer"]


async def test_while_the_index_takes_in_much_a_turn_that_looks_nothing_up_is_answered(tmp_path: Path) -> None:
    async with run_app(tmp_path, "good morning") as it:
        held, let_go = Event(), Event()

        def take_in() -> bool:
            with it.app.stores.message_index._lock:
                held.set()
                return let_go.wait(10)

        taking_in = asyncio.create_task(asyncio.to_thread(take_in))
        await asyncio.to_thread(held.wait)
        await it.say("hello")
        await it.wait_idle()
        assert it.app.status()["ok"] and it.bridge.bodies == ["good morning"] and not taking_in.done()
        let_go.set()
        assert await taking_in


async def test_a_model_that_fails_becomes_one_notice_with_its_exit_code(tmp_path: Path) -> None:
    error = ModelError("The model is not reachable. Your message is kept.", kind="network")
    async with run_app(tmp_path, error, "fine again") as it:
        inbox_id = await it.say("hello")
        await it.wait_idle()
        result = it.app.runtime.result(it.inbox_item(inbox_id))
        assert (result["state"], result["exit_code"], result["error"]) == ("failed", 3, str(error))
        assert [(i.outgoing.kind, i.outgoing.body) for i in it.bridge.sent] == [("notice", str(error))]
        await it.say("and now?")
        await it.wait_idle()
        assert it.bridge.bodies[-1] == "fine again"


async def test_a_bug_ends_its_turn_with_a_notice_and_nothing_else(tmp_path: Path) -> None:
    async with run_app(tmp_path, ZeroDivisionError("oops"), "well") as it:
        inbox_id = await it.say("hello")
        await it.wait_idle()
        assert it.inbox_item(inbox_id).state == "failed"
        assert "ZeroDivisionError: oops" in it.bridge.bodies[0]
        await it.say("again")
        await it.wait_idle()
        assert it.bridge.bodies[1] == "well"


async def test_a_turn_stops_at_its_step_limit(tmp_path: Path) -> None:
    async with run_app(tmp_path, ToolCall("c", "current_time", {}), ASSISTANT_TURN__MAX_STEPS="3") as it:
        inbox_id = await it.say("loop")
        await it.wait_idle()
        assert it.inbox_item(inbox_id).state == "failed"
        assert "after 3 steps" in it.bridge.bodies[0]
        assert len(it.model.requests) == 3


async def test_an_overflow_is_recovered_by_shortening_with_pairs_kept(tmp_path: Path) -> None:
    overflow = ModelError("prompt is too long", kind="overflow")
    async with run_app(tmp_path, "ok") as it:
        for n in range(12):
            await it.say(f"message {n}: " + "words and more words " * 200)
            await it.wait_idle()
        it.model.script = [overflow, "made it"]
        before = len(it.model.requests[-1].messages)
        await it.say("and now this")
        await it.wait_idle()
        assert it.bridge.bodies[-1] == "made it"
        assert len(it.model.requests[-1].messages) < before
        assert it.model.requests[-1].messages[-1].content == "and now this"


async def test_overflow_is_given_up_after_its_retries_and_told(tmp_path: Path) -> None:
    overflow = ModelError("prompt is too long. Your message is kept.", kind="overflow")
    async with run_app(tmp_path, overflow) as it:
        await it.say("hello")
        await it.wait_idle()
        assert len(it.model.requests) == 4
        told = [body for body in it.bridge.bodies if "The context stays at" not in body]
        assert len(it.bridge.bodies) - len(told) == 1  # each retry finds it full: that is told once
        assert told == [str(overflow)]


async def test_a_long_conversation_stays_below_the_emergency_threshold(tmp_path: Path) -> None:
    async with run_app(tmp_path, "ok " * 300, ASSISTANT_CONTEXT__MAX_CONTEXT_TOKENS="8000") as it:
        for n in range(30):
            await it.say(f"message {n}: " + "words and more words " * 40)
            await it.wait_idle()
            assert (it.app.contexts.window.pressure("main") or 1.0) < 0.95
        assert it.app.stores.conversation.checkpoints("main")
        assert sum(item.outgoing.kind == "reply" for item in it.bridge.sent) == 30


async def test_a_running_turn_is_taken_up_again_after_a_restart(tmp_path: Path) -> None:
    gate = asyncio.Event()
    gate.set()
    add = ToolCall("c1", "manage_todo_list", {"action": "add", "items": ["tea"]})
    second_call = asyncio.Event()

    def first_call(_: ModelRequest) -> ToolCall:
        gate.clear()
        model.called = second_call
        return add

    model = ScriptedModel(first_call, "lost")
    model.gate = gate
    settings = load_settings(None, {"ASSISTANT_HOME": str(tmp_path)})
    app = build_app(settings, SteppingClock(), bridges={"kept": RecordingBridge()}, model=model)
    await app.start()
    await app.runtime.accept(owner_message("put tea on my list", external_id="m"))
    await app.runtime.tick(SteppingClock()())
    await second_call.wait()
    turn = next(task for task in asyncio.all_tasks() if task.get_name().startswith("turn "))
    turn.cancel()
    await asyncio.wait([turn])
    app.close()

    async with run_app(tmp_path, "it is on the list") as it:
        await it.wait_idle()
        assert it.bridge.bodies == ["it is on the list"]
        assert [todo.text for todo in it.app.stores.todos.list_todos("owner")] == ["tea"]
        assert [m.role for m in it.model.requests[0].messages] == ["user", "assistant", "tool"]


async def test_a_failing_bridge_keeps_the_reply_and_sends_it_later(tmp_path: Path) -> None:
    async with run_app(tmp_path, "kept for you") as it:
        it.bridge.send_errors = [BridgeError("network down", retry_after=0.01)]
        await it.say("hello")
        await it.wait_idle()
        await asyncio.wait_for(it.bridge.delivered.wait(), 10)
        assert it.bridge.bodies == ["kept for you"]


async def test_undo_hides_the_last_exchange_and_retry_asks_again(tmp_path: Path) -> None:
    async with run_app(tmp_path, "first answer", "second answer", "better answer") as it:
        await it.say("one")
        await it.wait_idle()
        await it.say("two")
        await it.wait_idle()
        told = await it.app.commands.run("/retry", "main", bridge="kept")
        assert "two" in told
        await it.wait_idle()
        assert it.view_contents() == [
            ("user", "one"),
            ("assistant", "first answer"),
            ("user", "two"),
            ("assistant", "better answer"),
        ]
        told = await it.app.commands.run("/undo", "main", bridge="kept")
        assert "sent on kept" in told
        assert it.view_contents() == [("user", "one"), ("assistant", "first answer")]


@pytest.mark.parametrize("text", ["/help", "/status", "/model", "/usage", "/todo", "/todo add milk", "/stop"])
async def test_commands_answer(tmp_path: Path, text: str) -> None:
    async with run_app(tmp_path, "ok") as it:
        await it.say("hello")
        await it.wait_idle()
        assert await it.app.commands.run(text, "main")


async def test_commands_are_the_owners(tmp_path: Path) -> None:
    async with run_app(tmp_path, "ok") as it:
        with pytest.raises(UsageError):
            await it.app.commands.run("/status", "peer:matrix:@eve")
        with pytest.raises(UsageError, match="no command /dance"):
            await it.app.commands.run("/dance", "main")


async def test_a_restarted_stream_withdraws_what_was_shown(tmp_path: Path) -> None:
    class Restarting(ScriptedModel):
        async def stream(self, request, purpose="chat", *, session=None, turn=None):  # type: ignore[no-untyped-def]
            async for event in super().stream(request, purpose, session=session, turn=turn):
                yield event
                if not isinstance(event, ModelNotice) and len(self.requests) == 1:
                    yield ModelNotice("The connection broke; trying again.", restarted=True)
                    self.requests.append(request)

    async with run_app(tmp_path, model=Restarting("whole answer")) as it:
        await it.say("hello")
        await it.wait_idle()
        kinds = [event.kind for event in it.bridge.events]
        assert kinds.index("discard") > kinds.index("delta")
        assert it.bridge.bodies == ["whole answer"]


async def test_answers_that_come_together_are_stored_in_different_rounds_of_the_loop(tmp_path: Path) -> None:
    """Each takes milliseconds, for which a health check would wait."""
    model = ScriptedModel("Noted.")
    model.gate = asyncio.Event()
    async with run_app(tmp_path, model=model) as it:
        numbers = []
        for number in range(5):
            said = owner_message("Hello.", external_id=f"t{number}", session=f"thread:t{number}")
            numbers.append((await it.app.runtime.accept(said)).inbox_id)
        await it.app.runtime.tick(it.clock())
        while len(model.requests) < 5:  # noqa: ASYNC110 -- round by round
            await asyncio.sleep(0)
        model.gate.set()
        answered = [0]
        while answered[-1] < 5:
            await asyncio.sleep(0)
            answered.append(sum(it.inbox_item(number).state == "answered" for number in numbers))
        assert max(after - before for before, after in pairwise(answered)) == 1
