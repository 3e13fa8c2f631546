"""The TCP socket of the web API: a port that is taken, TLS, a certificate that is renewed, and what none of it holds
up."""

from __future__ import annotations

import asyncio
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest

from assistant.web.tcp_listener import ServeSocket, TcpAddress, TcpListener
from tests.support.web_api import free_port, make_certificate, run_web_api


@asynccontextmanager
async def _echo(listening: socket.socket) -> AsyncIterator[None]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readline())
        writer.close()

    async with await asyncio.start_server(answer, sock=listening):
        yield


def _plain(_: ssl.SSLContext | None) -> ServeSocket:
    return _echo


async def asked(port: int, tls: ssl.SSLContext | None = None) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
    writer.write(b"hello\n")
    answer = await reader.read()
    writer.close()
    return answer


async def opened(listener: TcpListener) -> None:
    async with asyncio.timeout(10):
        await listener.opened.wait()


async def told(listener: TcpListener, *, wrong: bool = True) -> None:
    """Until it says that something is wrong, or nothing any more."""
    for _ in range(2000):
        if bool(listener.problem) == wrong:
            return
        await asyncio.sleep(0.005)
    pytest.fail(f"it says {listener.problem!r}")


# ------------------------------------------------------------------------------------------------------------- the port


async def test_f39_a_port_in_use_is_told_and_tried_again_until_it_is_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        listener = TcpListener(_plain, TcpAddress("127.0.0.1", port), retry_seconds=0.01)
        async with listener.serve():
            await told(listener)
            for word in (str(port), "web.port", "tried again automatically"):
                assert word in listener.problem
            taken.close()
            await opened(listener)
            assert listener.problem == ""
            assert await asked(port) == b"hello\n"


async def test_f39_a_taken_port_turns_the_status_red_and_nothing_else_fails(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        async with run_web_api(tmp_path, "hello", listening=False, WEB__PORT=str(port)) as it:
            assert it.app.web.tcp is not None
            await told(it.app.web.tcp)
            status = (await it.socket.request("GET", "/v1/status")).json()
            assert not status["ok"] and any(str(port) in problem for problem in status["problems"])
            inbox_id = await it.socket.say("hi")
            await it.wait_idle()
            assert (await it.socket.get(f"/v1/results/{inbox_id}"))["reply"] == "hello"


async def test_an_address_of_another_machine_is_told(tmp_path: Path) -> None:
    listener = TcpListener(_plain, TcpAddress("192.0.2.5", free_port()), retry_seconds=60)
    async with listener.serve():
        await told(listener)
        assert "192.0.2.5" in listener.problem


async def test_what_fails_to_load_is_told() -> None:
    def broken(_: ssl.SSLContext | None) -> ServeSocket:
        raise RuntimeError("no framework")

    port = free_port()
    listener = TcpListener(broken, TcpAddress("127.0.0.1", port))
    async with listener.serve():
        await opened(listener)
        with pytest.raises(ConnectionError):
            if await asked(port) == b"":
                raise ConnectionResetError
        await told(listener)
        assert "no framework" in listener.problem


def test_until_somebody_connects_no_web_framework_is_loaded_and_then_only_what_is_used_of_it(tmp_path: Path) -> None:
    code = """if True:
        import asyncio, sys
        from urllib.request import urlopen
        from assistant.settings.settings import load_settings
        from assistant.core.calendar import utc_now
        from assistant.wire.app import build_app

        async def serve():
            app = build_app(load_settings(ring=None), utc_now)
            async with app.serve():
                await app.web.tcp.opened.wait()
                before = {"fastapi", "uvicorn", "starlette"} & set(sys.modules)
                assert (await asyncio.to_thread(urlopen, f"{app.web.url()}/healthz")).status == 200
            app.close()
            return before

        before = asyncio.run(serve())
        unused = {"fastapi.openapi.models", "fastapi.security.oauth2", "uvicorn.main", "logging.config", "configparser"}
        unused |= {"opentelemetry.metrics", "opentelemetry._logs", "opentelemetry.propagate", "dateutil.parser"}
        assert {"fastapi", "uvicorn"} <= set(sys.modules)
        print(sorted(before | unused & set(sys.modules)))
    """
    environment = {"ASSISTANT_HOME": str(tmp_path), "ASSISTANT_WEB__PORT": str(free_port())}
    printed = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert printed.stdout.splitlines()[-1] == "[]"


# ------------------------------------------------------------------------------------------------------------------ TLS


async def shown(port: int) -> bytes:
    """The certificate that is shown to who connects."""
    careless = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    careless.check_hostname, careless.verify_mode = False, ssl.CERT_NONE
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=careless)
    found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    assert isinstance(found, bytes)
    return found


async def test_over_tls_it_is_reached_by_who_trusts_its_certificate(tmp_path: Path) -> None:
    made, key = make_certificate(tmp_path, "first")
    trusting = ssl.create_default_context(cafile=made)
    home = tmp_path / "home"
    made_known = run_web_api(
        home, "hello", scheme="https", trusting=trusting, WEB__CERTIFICATE=str(made), WEB__CERTIFICATE_KEY=str(key)
    )
    async with made_known as it, it.tcp.events() as stream:
        await it.tcp.say("hi")
        assert (await stream.next_delivery()).data["body"] == "hello"
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            reader, writer = await asyncio.open_connection("127.0.0.1", it.port)
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await reader.readexactly(1)


async def test_a_renewed_certificate_is_shown_without_a_restart_and_a_bad_one_is_not(tmp_path: Path) -> None:
    made, key = make_certificate(tmp_path, "first")
    port = free_port()

    def load(tls: ssl.SSLContext | None) -> ServeSocket:
        @asynccontextmanager
        async def serve(listening: socket.socket) -> AsyncIterator[None]:
            async with await asyncio.start_server(lambda _, writer: writer.close(), sock=listening, ssl=tls):
                yield

        return serve

    listener = TcpListener(load, TcpAddress("127.0.0.1", port, made, key), retry_seconds=0.01)
    async with listener.serve():
        await opened(listener)
        first = await shown(port)
        key.write_text("nonsense")
        await told(listener)
        assert "web.certificate" in listener.problem and "still used" in listener.problem
        assert await shown(port) == first
        make_certificate(tmp_path, "second")
        await told(listener, wrong=False)
        assert await shown(port) != first


async def test_a_certificate_that_cannot_be_read_is_told_and_tried_again(tmp_path: Path) -> None:
    place = TcpAddress("127.0.0.1", free_port(), tmp_path / "certificate.pem", tmp_path / "key.pem")
    listener = TcpListener(_plain, place, retry_seconds=0.01)
    async with listener.serve():
        await told(listener)
        assert "certificate.pem" in listener.problem
        make_certificate(tmp_path, "first")
        await opened(listener)
        assert listener.problem == ""


async def test_hundreds_who_connect_while_the_daemon_is_busy_wait_and_are_not_dropped(tmp_path: Path) -> None:
    async with run_web_api(tmp_path) as it:
        # The first request loads what serves it.
        await it.tcp.get("/healthz")
        with ExitStack() as stack:
            # Nobody accepts meanwhile: this keeps the loop.
            for _ in range(600):
                stack.enter_context(socket.create_connection(("127.0.0.1", it.port), timeout=0.5))
        assert await it.tcp.get("/healthz")
