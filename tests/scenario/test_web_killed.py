"""A client of the web API through a daemon that is killed with a delivery under way: it comes again with the last id it
has, and is told everything once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2

from tests.support.command_line import run_daemon
from tests.support.web_api import TOKEN, free_port


def client(port: int) -> httpx2.Client:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    # A daemon that was just started binds its port a moment after it is ready.
    transport = httpx2.HTTPTransport(retries=8)
    return httpx2.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, transport=transport, timeout=30)


def say(to: httpx2.Client, text: str) -> int:
    answer = to.post("/v1/messages", json={"text": text, "external_id": text})
    assert answer.status_code == 202
    return int(answer.json()["inbox_id"])


def told(by: httpx2.Client, count: int, last: int, *, confirm: bool) -> list[dict[str, Any]]:
    """So many deliveries after the last one."""
    found: list[dict[str, Any]] = []
    with by.sse("/v1/events", headers={"Last-Event-ID": str(last)}) as stream:
        for event in stream:
            if event.event == "deliver":
                found.append(json.loads(event.data))
                if confirm:
                    by.post("/v1/deliveries/ack", json={"key": found[-1]["key"]})
                if len(found) == count:
                    break
    return found


def test_f35_f36_through_a_kill_every_delivery_comes_once(tmp_path: Path) -> None:
    port = free_port()
    settings = {"ASSISTANT_WEB__PORT": str(port), "ASSISTANT_WEB__TOKEN": TOKEN}
    with run_daemon(tmp_path / "home", **settings) as first, client(port) as caller:
        asked = [say(caller, "note: the boat is blue")]
        (given,) = told(caller, 1, 0, confirm=False)
        asked.append(say(caller, "note: the oars are red"))
        first.kill()
    with run_daemon(tmp_path / "home", **settings), client(port) as caller:
        asked.append(say(caller, "note: the sail is white"))
        rest = told(caller, 2, given["id"], confirm=True)
        assert [one["inbox_id"] for one in (given, *rest)] == asked
        everything = told(caller, 3, 0, confirm=False)
        assert [one["id"] for one in everything] == [one["id"] for one in (given, *rest)]
