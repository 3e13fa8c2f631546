"""The control API over a real Unix socket, with a scripted runtime behind it."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from assistant.cli.client import open_socket_link
from assistant.cli.link import LinkLost
from assistant.core.bridge_api import OutgoingPart, TurnEvent
from assistant.core.errors import BridgeError, RecipientNotConnected, StoreError, UsageError
from assistant.core.records import OutboxItem, OutgoingMessage
from assistant.web import large_bodies, schemas_chat
from tests.support.control_api import ControlServer, open_terminal, serve_control_api

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[ControlServer]:
    async with serve_control_api(tmp_path / "run" / "control.sock") as served:
        yield served


def item(key: str = "reply:t1", body: str = "hello", *, session: str = "main", inbox_id: int = 1) -> OutgoingPart:
    outgoing = OutgoingMessage(key, session, "owner", "terminal", session, body, message_id=7, inbox_id=inbox_id)
    return OutgoingPart(OutboxItem(1, outgoing, "pending", 0, NOW), 1, body)


# ------------------------------------------------------------------------------------------------------------- messages


async def test_a_message_is_answered_with_its_ids_once_it_is_accepted(served: ControlServer) -> None:
    response = await served.request("POST", "/messages", json={"text": "hi", "external_id": "a"})
    assert response.status_code == 202
    assert response.json() == {"inbox_id": 1, "message_id": 101, "duplicate": False}
    incoming = served.control.accepted["a"]
    assert (incoming.bridge, incoming.scope, incoming.trust) == ("terminal", "owner", "owner")
    assert (incoming.content, incoming.session, incoming.target) == ("hi", "main", "main")


async def test_the_same_external_id_is_accepted_once(served: ControlServer) -> None:
    first = await served.link.send_message("hi", "a", "main")
    again = await served.link.send_message("hi", "a", "main")
    assert (again.inbox_id, again.duplicate) == (first.inbox_id, True)


async def test_a_message_that_could_not_be_kept_is_refused_with_the_reason(served: ControlServer) -> None:
    served.control.failure = StoreError("The disk is full. Nothing was kept;\nmake room.")
    response = await served.request("POST", "/messages", json={"text": "hi", "external_id": "a"})
    assert response.status_code == 503
    assert response.json() == {"error": "The disk is full. Nothing was kept; make room."}


async def test_a_defect_is_told_in_one_line_and_the_next_request_is_served(served: ControlServer) -> None:
    served.control.failure = RuntimeError("boom")
    response = await served.request("POST", "/messages", json={"text": "hi", "external_id": "a"})
    assert response.status_code == 500
    assert "RuntimeError" in response.json()["error"]
    served.control.failure = None
    assert (await served.link.send_message("hi", "a", "main")).inbox_id == 1


async def test_ten_megabytes_nul_and_every_script_arrive_unchanged(served: ControlServer) -> None:
    text = "\x00 é 日本語 🙂 \u202e " + "x" * 10_000_000
    await served.link.send_message(text, "big", "main")
    assert served.control.accepted["big"].content == text


async def test_a_picture_comes_with_its_size(served: ControlServer) -> None:
    picture = {"mime": "image/png", "name": "a.png", "data": "aGVsbG8="}
    await served.request("POST", "/messages", json={"text": "", "external_id": "a", "media": [picture]})
    (media,) = served.control.accepted["a"].media
    assert (media.kind, media.mime, media.size, media.data) == ("image", "image/png", 5, "aGVsbG8=")


REFUSED = {
    "no text": ({"external_id": "a"}, "`text`"),
    "an empty message": ({"text": " \n", "external_id": "a"}, "empty"),
    "an unknown field": ({"text": "hi", "external_id": "a", "trust": "owner"}, "`trust`"),
    "a wrong type": ({"text": 5, "external_id": "a"}, "`text`"),
    "somebody else's session": (
        {"text": "hi", "external_id": "a", "session": "peer:telegram:5"},
        "conversations of others",
    ),
    "a session that does not exist": ({"text": "hi", "external_id": "a", "session": "Main"}, "`thread:NAME`"),
    "a thread without a name": ({"text": "hi", "external_id": "a", "session": "thread:"}, "`thread:NAME`"),
    "a thread of dots": ({"text": "hi", "external_id": "a", "session": "thread:.."}, "cannot be named"),
    "a branch without a number": ({"text": "hi", "external_id": "a", "session": "branch:x/../y"}, "`branch:NUMBER`"),
    "a branch that is not there": ({"text": "hi", "external_id": "a", "session": "branch:9"}, "no session 'branch:9'"),
    "media that is no base64": (
        {"text": "hi", "external_id": "a", "media": [{"mime": "image/png", "data": "!"}]},
        "`media.0.data`",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_a_message_is_refused_in_one_line_with(served: ControlServer, case: str) -> None:
    body, named = REFUSED[case]
    response = await served.request("POST", "/messages", json=body)
    assert response.status_code == 400
    error = response.json()["error"]
    assert named in error and "\n" not in error and ("Nothing was changed" in error or "Sessions:" in error)
    assert not served.control.accepted


async def test_a_session_is_called_as_everywhere_else(served: ControlServer) -> None:
    await served.request("POST", "/messages", json={"text": "hi", "external_id": "a", "session": "thread:Ärger"})
    assert served.control.accepted["a"].session == "thread:ärger"


UNSAID = {
    "no word of JSON": ({"content": b'{"text": "hi", "external_id": "a"}'}, "`Content-Type: application/json`"),
    "another kind": ({"data": {"text": "hi"}}, "`Content-Type: application/json`"),
    "no body": ({}, "there is no body"),
    "a list": ({"json": [{"text": "hi", "external_id": "a"}]}, "not an object"),
}


@pytest.mark.parametrize("case", UNSAID)
async def test_what_a_body_lacks_is_told_of_one_with(served: ControlServer, case: str) -> None:
    request, named = UNSAID[case]
    response = await served.request("POST", "/messages", **request)
    assert response.status_code == 400
    assert named in response.json()["error"]


async def test_of_many_faults_the_first_are_told(served: ControlServer) -> None:
    body = {"text": "hi", "external_id": "a", "media": [1] * 10_000, "x" * 100_000: 1}
    response = await served.request("POST", "/messages", json=body)
    error = response.json()["error"]
    assert response.status_code == 400 and len(error) < 2000
    assert "`media.0`" in error and "and 9996 more" in error


@pytest.mark.parametrize(
    "body", [b'{"text": "\xff\xfe", "external_id": "a"}', b"{", b"", b'{"text": "\\ud800", "external_id": "a"}']
)
async def test_a_body_that_is_no_text_is_refused_in_one_line(served: ControlServer, body: bytes) -> None:
    response = await served.request("POST", "/messages", content=body, headers={"content-type": "application/json"})
    assert response.status_code == 400
    assert set(response.json()) == {"error"}
    assert "\n" not in response.json()["error"]
    assert not served.control.accepted


async def test_a_body_over_64_megabytes_is_refused_however_it_is_sent(served: ControlServer) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(65):
            yield b" " * 2**20

    for content in (b" " * (65 * 2**20), pieces()):
        response = await served.request(
            "POST", "/messages", content=content, headers={"content-type": "application/json"}
        )
        assert response.status_code == 413
        assert response.json() == {"error": "The body is larger than 64 MB. Nothing was accepted."}


async def test_an_unknown_address_and_method_are_refused_as_json(served: ControlServer) -> None:
    for method, address, status in (("GET", "/nothing", 404), ("PUT", "/messages", 405), ("GET", "/docs", 404)):
        response = await served.request(method, address)
        assert response.status_code == status
        assert set(response.json()) == {"error"}


# ------------------------------------------------------------------------------------------------------- other requests


async def test_a_command_gives_what_to_show(served: ControlServer) -> None:
    assert await served.link.run_command("/todo add milk", "main") == "**/todo add milk** in main from terminal"


async def test_a_command_that_is_not_understood_raises_its_line(served: ControlServer) -> None:
    with pytest.raises(UsageError, match=r"There is no command /nonsense\. Nothing was changed\."):
        await served.link.run_command("/nonsense", "main")


async def test_stop_tells_whether_a_turn_ran(served: ControlServer) -> None:
    assert await served.link.stop("main") is True
    assert await served.link.stop("main") is False


async def test_a_result_is_given_by_inbox_id_and_an_unknown_one_is_404(served: ControlServer) -> None:
    await served.link.send_message("hi", "a", "main")
    assert (await served.link.result(1))["reply"] == "yes"
    assert (await served.request("GET", "/results/9")).status_code == 404
    assert (await served.request("GET", "/results/nine")).status_code == 400


async def test_a_remark_of_a_command_comes_beside_its_text(served: ControlServer) -> None:
    done = await served.link.run_argv(["memory", "list"], "main", 60.0)
    assert (done.text, done.remark, done.value) == ("memory list", "Some were left out.", {"session": "main"})


async def test_status_is_served(served: ControlServer) -> None:
    assert (await served.link.status())["ok"] is True


# --------------------------------------------------------------------------------------------------------------- events


async def test_events_begin_with_hello_and_carry_what_happens_in_the_session(served: ControlServer) -> None:
    async with aclosing(served.link.events("main")) as events:
        assert (await anext(events))[0] == "hello"
        served.terminal.show(TurnEvent("delta", "room:x:1", "t0", {"text": "not here"}), "")
        served.terminal.show(TurnEvent("delta", "main", "t1", {"text": "two\nlines\r 🙂"}), "")
        assert await anext(events) == ("delta", {"text": "two\nlines\r 🙂", "turn": "t1"})


async def test_a_delivery_is_made_when_a_terminal_confirms_its_key(served: ControlServer) -> None:
    async with aclosing(served.link.events("main")) as events:
        await anext(events)
        sending = asyncio.create_task(served.terminal.send(item()))
        name, data = await anext(events)
        assert (name, data["key"], data["body"], data["inbox_id"]) == ("deliver", "reply:t1", "hello", 1)
        assert not sending.done()
        await served.link.acknowledge("reply:t1")
        await sending


async def test_nobody_attached_means_that_the_item_waits(served: ControlServer) -> None:
    with pytest.raises(RecipientNotConnected):
        await served.terminal.send(item())


async def test_attaching_tells_the_runtime_so_that_it_sends_what_waits(served: ControlServer) -> None:
    attached = asyncio.Event()
    served.terminal.on_attach = attached.set
    async with aclosing(served.link.events("main")) as events:
        await anext(events)
        assert await asyncio.wait_for(attached.wait(), 20)


async def test_a_terminal_that_asked_for_one_answer_gets_no_other(served: ControlServer) -> None:
    async with aclosing(served.link.events("main", inbox_id=2)) as events:
        await anext(events)
        with pytest.raises(RecipientNotConnected):
            await served.terminal.send(item(inbox_id=1))
        sending = asyncio.create_task(served.terminal.send(item("reply:t2", inbox_id=2)))
        assert (await anext(events))[1]["key"] == "reply:t2"
        await served.link.acknowledge("reply:t2")
        await sending


async def test_a_delivery_whose_terminal_leaves_unconfirmed_waits_for_the_next(served: ControlServer) -> None:
    async with aclosing(served.link.events("main")) as events:
        await anext(events)
        sending = asyncio.create_task(served.terminal.send(item()))
        await anext(events)
    with pytest.raises(RecipientNotConnected):
        await sending
    with pytest.raises(RecipientNotConnected):
        await served.terminal.send(item())


async def test_a_terminal_that_does_not_confirm_is_detached_and_the_item_waits(tmp_path: Path) -> None:
    async with serve_control_api(tmp_path / "s", confirm_seconds=0.01) as served:
        async with aclosing(served.link.events("main")) as events:
            await anext(events)
            with pytest.raises(BridgeError) as caught:
                await served.terminal.send(item())
            assert caught.value.ambiguous
            rest = [name async for name, _ in events]
        assert rest[-1] == "notice"
        with pytest.raises(RecipientNotConnected):
            await served.terminal.send(item())


async def test_who_comes_while_another_does_not_confirm_is_given_the_message_and_may_confirm_it() -> None:
    """Else a client that only watches keeps everybody else waiting, and they read it a second time later."""
    with open_terminal() as terminal, terminal.attach("main"):
        sending = asyncio.create_task(terminal.send(item()))
        await asyncio.sleep(0)
        with terminal.attach("main") as newcomer:
            given = [newcomer.queue.get_nowait() for _ in range(newcomer.queue.qsize())]
            assert [name for name, _ in given] == ["hello", "deliver"]
            assert terminal.acknowledge(given[1][1]["key"])
            await sending


async def test_a_terminal_that_falls_behind_is_detached_and_blocks_nobody(tmp_path: Path) -> None:
    with (
        open_terminal(queue_size=3) as terminal,
        terminal.attach("main") as slow,
        terminal.attach("main") as other,
    ):
        for n in range(10):
            while not other.queue.empty():
                other.queue.get_nowait()
            terminal.show(TurnEvent("delta", "main", "t1", {"text": str(n)}), "")
        assert [name async for name, _ in slow.events()] == ["notice"]
        terminal.show(TurnEvent("delta", "main", "t1", {"text": "10"}), "")
        assert slow.queue.empty()
        assert [other.queue.get_nowait()[1]["text"] for _ in range(2)] == ["9", "10"]


async def test_stopping_the_bridge_ends_the_streams(served: ControlServer) -> None:
    async with aclosing(served.link.events("main")) as events:
        await anext(events)
        await served.terminal.aclose()
        assert [event async for event in events] == []


async def test_a_client_learns_that_the_daemon_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "run" / "control.sock"
    async with serve_control_api(path), open_socket_link(path) as link:
        assert (await link.status())["ok"]
    async with open_socket_link(path) as link:
        with pytest.raises(LinkLost):
            await link.status()
        with pytest.raises(LinkLost):
            await anext(link.events("main"))


async def test_errors_are_json_with_one_key(served: ControlServer) -> None:
    response = await served.request("POST", "/stop", json={"session": "main", "now": True})
    assert json.loads(response.content).keys() == {"error"}


async def test_a_large_body_is_parsed_and_its_file_decoded_beside_the_loop(
    served: ControlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[bool] = []

    def noted(work: Callable[..., Any]) -> Callable[..., Any]:
        def do(data: Any, *arguments: Any, **named: Any) -> Any:
            if len(data) > 2**20:
                threads.append(threading.current_thread() is threading.main_thread())
            return work(data, *arguments, **named)

        return do

    monkeypatch.setattr(large_bodies, "parse_json", noted(large_bodies.parse_json))
    monkeypatch.setattr(json, "loads", noted(json.loads))
    monkeypatch.setattr(schemas_chat, "decode_base64", noted(schemas_chat.decode_base64))
    data = base64.b64encode(bytes(3_000_000)).decode()
    medium = {"mime": "application/zip", "name": "a.zip", "data": data}
    response = await served.request("POST", "/messages", json={"text": "", "external_id": "a", "media": [medium]})
    assert response.status_code == 202 and served.control.accepted["a"].media[0].data == data
    assert len(threads) == 2 and not any(threads)


@pytest.mark.parametrize("place", [0, 2_000_001, -1])
async def test_a_large_file_that_is_no_base64_is_refused(served: ControlServer, place: int) -> None:
    data = bytearray(base64.b64encode(bytes(3_000_000)))
    data[place] = ord("=") if place == 2_000_001 else ord("!")
    medium = {"mime": "application/zip", "name": "a.zip", "data": data.decode()}
    response = await served.request("POST", "/messages", json={"text": "", "external_id": "a", "media": [medium]})
    assert response.status_code == 400 and "File 1 is not in base64" in response.json()["error"]
    assert not served.control.accepted


async def test_a_large_body_that_is_no_json_is_refused_as_a_short_one_is(served: ControlServer) -> None:
    for content in (b'{"text": ', b'{"text": "' + b"x" * 2**21):
        headers = {"content-type": "application/json"}
        response = await served.request("POST", "/messages", content=content, headers=headers)
        assert response.status_code == 400 and "JSON" in response.json()["error"], response.text
