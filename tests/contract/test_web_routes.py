"""The web API over real sockets, before a real app with a scripted model: talking, and looking at what was said."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from assistant.commands.usage import UsageAnswer, load_usage
from assistant.core.messages import Usage
from assistant.core.model_api import ModelCall, UsageKey
from tests.support.scripted import owner_message
from tests.support.web_api import ApiClient, run_web_api


async def test_a_message_over_tcp_is_answered_over_its_event_stream(tmp_path: Path) -> None:
    async with run_web_api(tmp_path, "hello yourself") as it, it.tcp.events() as stream:
        inbox_id = await it.tcp.say("hello")
        event = await stream.next_delivery()
        assert (event.data["body"], event.data["inbox_id"], event.data["kind"]) == ("hello yourself", inbox_id, "reply")
        assert await it.tcp.confirm(event)
        result = await it.tcp.get(f"/v1/results/{inbox_id}")
        assert (result["state"], result["reply"]) == ("answered", "hello yourself")


@pytest.mark.parametrize("way", ["tcp", "socket"])
async def test_what_was_said_is_listed_read_and_found(tmp_path: Path, way: str) -> None:
    async with run_web_api(tmp_path, "The blue boat is called Heron.", "Fine.") as it:
        caller: ApiClient = getattr(it, way)
        for text in ("What is the boat called?", "Thank you."):
            await caller.say(text)
            await it.wait_idle()
        listed = (await caller.get("/v1/messages"))["messages"]
        assert [one["text"] for one in listed] == [
            "What is the boat called?",
            "The blue boat is called Heron.",
            "Thank you.",
            "Fine.",
        ]
        before = (await caller.get("/v1/messages", before=listed[2]["id"], limit=1))["messages"]
        assert [one["id"] for one in before] == [listed[1]["id"]]
        await it.app.maintenance.index_new_messages()
        hits = (await caller.get("/v1/history", q="boat Heron"))["hits"]
        assert hits[0]["id"] == listed[1]["id"]
        around = await caller.get(f"/v1/history/{listed[1]['id']}", neighbours=1)
        assert [one["id"] for one in around["messages"]] == [one["id"] for one in listed[:3]]


async def test_other_words_under_a_used_external_id_are_refused_and_the_first_stay(tmp_path: Path) -> None:
    async with run_web_api(tmp_path, "Noted.") as it:

        async def say(text: str, **more: str) -> tuple[int, dict[str, object]]:
            body = {"text": text, "external_id": "note-1", **more}
            answer = await it.tcp.request("POST", "/v1/messages", json=body)
            return answer.status_code, answer.json()

        status, first = await say("buy milk")
        assert (status, first["duplicate"]) == (202, False)
        await it.wait_idle()
        assert await say("buy milk") == (202, {**first, "duplicate": True})
        for refused in (await say("buy bread"), await say("buy milk", session="thread:shop")):
            status, told = refused
            assert status == 409
            assert "inbox_id 1" in str(told["error"]) and "external_id of its own" in str(told["error"])
        said = (await it.tcp.get("/v1/messages"))["messages"]
        assert [one["text"] for one in said] == ["buy milk", "Noted."]


async def test_of_messages_at_once_under_one_external_id_one_is_accepted(tmp_path: Path) -> None:
    async with run_web_api(tmp_path, "Noted.") as it:
        asked = [
            it.tcp.request("POST", "/v1/messages", json={"text": f"words {number % 2}", "external_id": "note-1"})
            for number in range(20)
        ]
        answers = await asyncio.gather(*asked)
        kept = [one.json()["duplicate"] for one in answers if one.status_code == 202]
        assert sorted(kept) == [False, *[True] * 9]
        assert [one.status_code for one in answers].count(409) == 10
        await it.wait_idle()
        assert len((await it.tcp.get("/v1/messages"))["messages"]) == 2


async def test_a_parameter_that_is_misspelt_or_given_twice_is_refused_at_every_address(tmp_path: Path) -> None:
    async with run_web_api(tmp_path) as it:
        described = await it.tcp.get("/openapi.json")
        asked = [(path, method) for path, item in described["paths"].items() for method in item]
        assert ("/v1/events", "get") in asked and ("/v1/messages", "post") in asked
        bodies = {"/v1/messages": {"text": "hi", "external_id": "a"}, "/v1/deliveries/ack": {"key": "a"}}
        for path, method in asked:
            where = path.format(session="main", inbox_id=1, message_id=1, number=0, model="nocturne")
            body = bodies.get(path, {"text": "/help"} if path == "/v1/commands" else {})
            answer = await it.tcp.request(method, f"{where}?limt=5", json=body)
            assert answer.status_code == 400, path
            assert "`limt`" in answer.text, path
        assert it.app.stores.conversation.list_sessions() == []
        twice = await it.tcp.request("GET", "/v1/messages?limit=5&limit=6")
        assert twice.status_code == 400 and "`limit`: is given more than once" in twice.json()["error"]
        unnamed = await it.tcp.request("GET", "/v1/messages?=5")
        assert unnamed.status_code == 400 and '`""`' in unnamed.json()["error"]
        missed = await it.tcp.request("GET", "/v1/messages?sesion=thread:trip")
        assert "there are: session, before, limit" in missed.json()["error"]


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+23:00", "9999-12-31T23:59:59-23:00"])
async def test_a_time_outside_the_calendar_is_refused(tmp_path: Path, time: str) -> None:
    async with run_web_api(tmp_path) as it:
        for path, name in (("history", "after"), ("history", "before"), ("memories/search", "as_of")):
            answer = await it.tcp.request("GET", f"/v1/{path}", params={"q": "boat", name: time})
            assert answer.status_code == 400, answer.text
            assert f"`{name}`" in answer.json()["error"]


async def test_what_is_not_there_is_not_found(tmp_path: Path) -> None:
    async with run_web_api(tmp_path) as it:
        for path in ("/v1/history/999", "/v1/results/999", "/v1/sessions/thread:trip", "/v1/nothing"):
            answer = await it.tcp.request("GET", path)
            assert (answer.status_code, list(answer.json())) == (404, ["error"]), path


async def test_sessions_are_listed_shown_and_put_away(tmp_path: Path) -> None:
    async with run_web_api(tmp_path, "Have fun.", "Hello.") as it:
        await it.tcp.say("I pack my bag.", "thread:trip")
        await it.tcp.say("hi")
        await it.wait_idle()
        listed = (await it.tcp.get("/v1/sessions"))["sessions"]
        assert {(one["session"], one["messages"], one["current"]) for one in listed} == {
            ("main", 2, True),
            ("thread:trip", 2, True),
        }
        ended = await it.tcp.request("POST", "/v1/sessions/thread:trip/end")
        assert ended.status_code == 200, ended.text
        first = await it.tcp.get("/v1/sessions/thread:trip", number=1)
        assert (first["current"], first["ended"]) == (False, "end")
        refused = await it.tcp.request("POST", "/v1/sessions/main/end")
        assert refused.status_code == 400 and "main cannot be ended" in refused.json()["error"]


async def test_guests_are_neither_listed_nor_read(tmp_path: Path) -> None:
    async with run_web_api(tmp_path, "Hello.", "Hello guest.") as it:
        await it.tcp.say("mine")
        await it.wait_idle()
        stores, now = it.app.stores, it.app.started_at
        guest = owner_message("a guest's secret", external_id="g1", session="peer:kept:7", scope="peer:kept:7")
        stores.conversation.accept(guest, now)
        it.app.running_turns.wake.set()
        await it.wait_idle()
        await it.app.maintenance.index_new_messages()
        theirs = stores.history.recent("peer:kept:7")[0]
        assert [one["session"] for one in (await it.tcp.get("/v1/sessions"))["sessions"]] == ["main"]
        assert (await it.tcp.get("/v1/history", q="secret"))["hits"] == []
        assert (await it.tcp.request("GET", f"/v1/history/{theirs.id}")).status_code == 404
        assert (await it.tcp.request("GET", "/v1/sessions/peer:kept:7")).status_code == 400


async def test_memories_sleeps_compactions_usage_and_status_are_told(tmp_path: Path) -> None:
    async with run_web_api(tmp_path, "I see.") as it:
        await it.tcp.say("My sister Ada lives in Bremen. Remember that.")
        await it.wait_idle()
        await it.app.sleep.scheduler.run_now("manual", "extract")
        known = (await it.tcp.get("/v1/memories"))["memories"]
        assert any("Bremen" in one["text"] for one in known)
        found = (await it.tcp.get("/v1/memories/search", q="where does Ada live"))["memories"]
        assert any("Bremen" in one["text"] for one in found)
        slept = (await it.tcp.get("/v1/sleeps"))["sleeps"]
        assert slept[0]["trigger"] == "manual" and slept[0]["text"].startswith("Sleep 1")
        assert (await it.tcp.get("/v1/compactions"))["compactions"] == []
        assert (await it.tcp.get("/v1/usage", by="model"))["rows"] == []
        assert (await it.tcp.get("/v1/status"))["problems"] == []


async def test_what_pages_ask_first_takes_as_many_statements_with_more_messages_and_asks_nothing_twice(
    tmp_path: Path,
) -> None:
    async with run_web_api(tmp_path, "I see.") as it:
        connection = it.app.stores.outbox._db.connection
        counts = []
        for said in (1, 3):
            for _ in range(said):
                await it.tcp.say("Hello")
                await it.wait_idle()
            # Whatever else asks the same connection is done: nobody listens who could be sent anything.
            await it.app.dispatcher.flush()
            statements: list[str] = []
            connection.set_trace_callback(statements.append)
            for asked in ("/v1/messages", "/v1/usage", "/v1/compactions", "/v1/sessions", "/v1/status"):
                await it.tcp.get(asked)
                counts.append((asked, len(statements)))
                about = [sql for sql in statements if "outbox" in sql or "usage_by_role" in sql]
                assert len(about) == len(set(about)), about
                statements.clear()
            connection.set_trace_callback(None)
    assert counts[:5] == counts[5:]


@pytest.mark.parametrize("by", ["day", "model", "kind", "session", "part"])
async def test_costs_and_caps_are_what_the_command_line_tells(tmp_path: Path, by: UsageKey) -> None:
    async with run_web_api(tmp_path, "I see.") as it:
        ledger, now = it.app.stores.ledger, it.app.started_at
        answering = ModelCall("chat", "anthropic", "claude", 100, 10, 0.5, "main")
        for call in (answering, replace(answering, purpose="extraction", session=None)):
            ledger.settle_reservation(ledger.reserve(call, now), Usage(80, 10, cost_usd=0.25), now)
        told = await it.tcp.get("/v1/usage", by=by, days=7)
        assert told == UsageAnswer.model_validate(load_usage(ledger, by, 7, now)).model_dump(mode="json")
        assert {cap["setting"]: cap["used"] for cap in told["caps"]} == {"daily_usd": 0.5, "monthly_usd": 0.5}
        assert {name: part["calls"] for name, part in told["split"].items()} == {"answering": 1, "background": 1}
        assert all(by in row for row in told["rows"])


async def test_the_description_loads_nothing_from_elsewhere_and_tells_every_route(tmp_path: Path) -> None:
    async with run_web_api(tmp_path) as it:
        described = await it.tcp.get("/openapi.json")
        assert "/v1/events" in described["paths"]
        assert "422" not in str(described["paths"].values())
        for page in ("/docs", "/redoc"):
            assert (await it.tcp.request("GET", page)).status_code == 404


@pytest.mark.parametrize("written", ["151510", "-5", "1e5", "1772323200.5"])
@pytest.mark.parametrize("address", ["/v1/memories/search", "/v1/history"])
async def test_a_number_is_no_time(tmp_path: Path, address: str, written: str) -> None:
    async with run_web_api(tmp_path) as it:
        answer = await it.tcp.request("GET", address, params={"q": "boat", "after": written})
        assert answer.status_code == 400
        assert "write it out" in answer.json()["error"]
