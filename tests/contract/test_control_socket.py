"""The control socket: the owner's alone, one a home, reached at any depth, served from the first connection on."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from assistant.cli.client import open_socket_link
from assistant.cli.link import LinkLost
from assistant.core.errors import HomeError, HomeLocked
from assistant.service.home_lock import is_listening
from assistant.web.app import build_web_app
from assistant.web.server import serve_with_uvicorn
from assistant.web.servers import listen_unix, serve_control
from tests.support.control_api import ControlServer, ScriptedControl, control_deps, open_terminal, serve_control_api


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[ControlServer]:
    async with serve_control_api(tmp_path / "run" / "control.sock") as served:
        yield served


async def test_socket_and_its_directory_are_the_owners_alone(served: ControlServer) -> None:
    assert stat.S_IMODE(served.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(served.path.parent.stat().st_mode) == 0o700


def test_the_socket_is_private_before_it_can_be_connected_to(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        listening = listen_unix(tmp_path / "run" / "control.sock")
    finally:
        os.umask(before)
    with listening:
        assert stat.S_IMODE((tmp_path / "run" / "control.sock").stat().st_mode) == 0o600


async def test_a_path_longer_than_the_kernel_takes_is_served(tmp_path: Path) -> None:
    path = tmp_path / ("deep" * 20) / ("deeper" * 20) / "run" / "control.sock"
    async with serve_control_api(path) as served:
        assert is_listening(path)
        assert (await served.link.status())["ok"]
    assert not path.exists()


async def test_a_socket_of_a_dead_process_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(path))
    dead.close()
    assert not is_listening(path)
    async with serve_control_api(path) as served:
        assert (await served.link.status())["ok"]


async def test_a_socket_that_answers_is_left_alone(served: ControlServer) -> None:
    with pytest.raises(HomeLocked):
        listen_unix(served.path)
    assert (await served.link.status())["ok"]


def test_a_file_in_the_way_is_named_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"
    path.write_text("mine")
    with pytest.raises(HomeError, match=r"control\.sock"):
        listen_unix(path)
    assert path.read_text() == "mine"


async def test_the_framework_is_loaded_at_the_first_connection(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"
    loaded: list[str] = []

    def load() -> Any:
        loaded.append("now")
        return serve_with_uvicorn(build_web_app(control_deps(ScriptedControl(), terminal)))

    with open_terminal() as terminal:
        async with serve_control(load, path), open_socket_link(path) as link:
            for _ in range(5):
                await asyncio.to_thread(os.getpid)
            assert loaded == []
            assert (await link.status())["ok"]
            assert (await link.status())["ok"]
            assert loaded == ["now"]


async def test_a_server_that_cannot_be_loaded_refuses_instead_of_hanging(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"

    def load() -> Any:
        raise ImportError("no framework here")

    async with serve_control(load, path), open_socket_link(path) as link:
        with pytest.raises(LinkLost):
            await link.status()


@pytest.mark.parametrize("html", ["true", "false"])
async def test_an_event_stream_that_cannot_be_read_ends_without_a_traceback(
    served: ControlServer, html: str, caplog: pytest.LogCaptureFixture
) -> None:
    served.terminal._outbox._db.close()
    with capture_logs() as logged:
        answer = await served.request("GET", f"/events?session=main&html={html}")
    assert (answer.status_code, answer.content) == (200, b"")
    assert [line["event"] for line in logged] == ["an event stream ended"] and caplog.records == []
