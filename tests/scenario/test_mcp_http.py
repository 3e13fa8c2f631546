"""MCP servers that have an address: a real one of the official SDK, and ones that play foul."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from assistant.core.errors import ToolError
from tests.scenario.test_mcp import ADD, approve, ask, calls, offered
from tests.support.page_server import listening
from tests.support.running_app import run_app


@contextmanager
def http_server(folder: Path) -> Iterator[str]:
    """The address of a server of the SDK."""
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "tests.support.mcp_server", str(folder), "http"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
        finally:
            process.kill()


def configure(home: Path, url: str, *, secret: str = "", timeout: float = 30.0) -> None:
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(f'[mcp.servers.notes]\nurl = "{url}"\ntimeout_seconds = {timeout}\n')
    if secret:
        (home / "secrets.toml").write_text(f'[file]\n"mcp.notes.Authorization" = "{secret}"\n')
        (home / "secrets.toml").chmod(0o600)


async def test_a_server_with_an_address_is_approved_asked_about_and_called_with_its_secret(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "server"
    with http_server(folder) as url:
        configure(home, url, secret="Bearer t0ken")
        async with run_app(home, ADD, "Shall I?") as it:
            await approve(it)
            assert "notes__add_note" in offered(it)
            assert 'call "add_note" of the MCP server notes' in await ask(it, "note buy milk")
            assert "> added: buy milk" in await ask(it, "yes")
    asked = calls(folder)
    assert [it["text"] for it in asked if it["tool"] == "add_note"] == ["buy milk"]
    assert {it["authorization"] for it in asked if it["tool"] == "request"} == {"Bearer t0ken"}


class Foul(BaseHTTPRequestHandler):
    """Reads a request, and answers as it should not."""

    how = ""
    stopped: threading.Event
    asked: list[str]

    def do_POST(self) -> None:
        self.asked.append(self.path)
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        match self.how:
            case "close":
                self.close_connection = True
            case "stall":
                self.stopped.wait()
            case "refuse":
                self._answer(401, b"no")
            case "page":
                self._answer(200, b"<html>hello</html>", "text/html")
            case "redirect":
                self.send_response(307)
                self.send_header("Location", "http://169.254.169.254/latest/meta-data")
                self.end_headers()
            case "elsewhere":
                self.send_response(307)
                self.send_header("Location", f"http://localhost:{self.server.server_address[1]}/other")
                self.end_headers()
            case "flood":
                self._answer(200, b'{"x":"' + b"y" * 50_000_000, "application/json")

    def _answer(self, status: int, body: bytes, kind: str = "text/plain") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.end_headers()
        try:
            self.wfile.write(body)
        except ConnectionError:
            return

    def log_message(self, *_: object) -> None:
        return


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("close", ""),
        ("stall", "did not answer within 6 s"),
        ("refuse", ""),
        ("page", ""),
        ("redirect", "169.254.169.254"),
        ("elsewhere", "not followed"),
        ("flood", ""),
    ],
)
async def test_a_server_that_plays_foul_gives_an_error_within_its_time_and_is_sent_nowhere_else(
    tmp_path: Path, how: str, told: str
) -> None:
    stopped = threading.Event()
    asked: list[str] = []
    handler = type("Handler", (Foul,), {"how": how, "stopped": stopped, "asked": asked})
    with listening(handler) as port:
        try:
            configure(tmp_path / "home", f"http://127.0.0.1:{port}/mcp", secret="Bearer t0ken", timeout=6.0)
            async with run_app(tmp_path / "home", "fine") as it:
                with pytest.raises(ToolError, match="the MCP server notes does not answer") as error:
                    await it.app.mcp.refresh_tools("notes")
                assert told in str(error.value) and "t0ken" not in str(error.value)
                assert it.app.mcp.list_pins("notes") == []
        finally:
            stopped.set()
    assert set(asked) == {"/mcp"}


def test_settings_that_cannot_be_meant_are_refused_with_the_name_of_the_server(tmp_path: Path) -> None:
    from tests.support.command_line import run_assistant

    home = tmp_path / "home"
    home.mkdir()
    for text, told in (
        ("[mcp.servers.notes]\n", "`mcp.servers.notes` needs either `command` or `url`"),
        (
            '[mcp.servers.notes]\ncomand = "x"\nurl = "http://x/"\n',
            "`mcp.servers.notes` has `comand`, which is not a setting",
        ),
        ('[mcp.servers."No Tes"]\nurl = "http://x/"\n', "`mcp.servers.No Tes` is wrong"),
        ('[mcp.servers.notes]\nurl = "ftp://x/"\n', "`mcp.servers.notes.url` is wrong"),
        ('[mcp.servers.notes]\nurl = "http://x/"\ntimeout_seconds = 0.1\n', "timeout_seconds` is wrong"),
    ):
        (home / "config.toml").write_text(text)
        assert told in run_assistant(home, "config", "check").err + run_assistant(home, "config", "check").out


def test_nothing_of_a_secret_is_shown_or_logged(tmp_path: Path) -> None:
    from tests.support.command_line import run_assistant

    home, server = tmp_path / "home", tmp_path / "server"
    server.mkdir()
    home.mkdir()
    words = json.dumps(["-m", "tests.support.bare_mcp_server", "stderr"])
    (home / "config.toml").write_text(
        f'[mcp.servers.notes]\ncommand = "{sys.executable}"\nargs = {words}\n[log]\nlevel = "debug"\n'
    )
    stored = run_assistant(home, "config", "secret", "set", "mcp.notes.TOKEN", "--file", said=b"s3cret-t0ken\n")
    assert stored.returncode == 0, stored.err
    assert "mcp.notes.TOKEN" in run_assistant(home, "config", "secret", "list").out
    run_assistant(home, "chat", "-m", "hello", ASSISTANT_MODEL__PROVIDER="offline")
    done = run_assistant(home, "mcp", "test", "notes", PYTHONPATH=str(Path.cwd()))
    assert "s3cret" not in done.out + done.err + run_assistant(home, "config", "show").out
    logged = [path for path in home.rglob("*") if path.is_file() and b"s3cret-t0ken" in path.read_bytes()]
    assert [path.name for path in logged] == ["secrets.toml"]
