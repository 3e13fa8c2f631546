"""Numbers that no database takes, wherever a command or an address of the API takes a number: an answer in words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import httpx
import pytest
from fastapi import FastAPI

from assistant.commands.table import leaf_commands
from assistant.web.app import build_web_app
from tests.support.running_app import run_app

HUGE = (
    "99999999999999999999",
    "9" * 400,
    "9" * 5000,
    "-99999999999999999999",
    "\u0663",
    "1e400",
    "#" + "9" * 20,
    "e" + "9" * 20,
    "e" + "9" * 5000,
)
# They end the test's own app, or wait for a network.
_NOT_HERE = {("retry",), ("stop",)}


@pytest.mark.parametrize("number", HUGE[::2])
async def test_a_number_that_is_too_large_is_an_error_in_words_for_every_command(tmp_path: Path, number: str) -> None:
    async with run_app(tmp_path) as it:
        await it.app.commands.run("/people allow kept 7", "main")
        tried, wrong = 0, []
        async with _client(build_web_app(it.app.web.deps)) as client:
            for line, argv in _lines(it.app.commands.root, number):
                for body in ({"text": line}, {"argv": argv}):
                    tried += 1
                    answer = await client.post("/v1/commands", json=body)
                    if answer.status_code not in (200, 400):
                        wrong.append(f"{line[:60]}: {answer.status_code} {answer.text[:80]}")
        assert tried > 200 and wrong == []


def _client(app: FastAPI) -> httpx.AsyncClient:
    """Asks in this loop: a client in a thread of its own takes five times as long."""
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app, raise_app_exceptions=False), base_url="http://testserver"
    )


def _lines(root: click.Group, number: str) -> Iterator[tuple[str, list[str]]]:
    """The number wherever a command takes one, as it is typed and in words."""
    for path, command in leaf_commands(root):
        if path in _NOT_HERE:
            continue
        options = [p for p in command.params if isinstance(p, click.Option) and not (p.is_flag or p.hidden)]
        words = [f"{option.opts[-1]}={number}" for option in options if "--session" not in option.opts]
        for tail in (number, *words, *(f"1 {word}" for word in words)):
            yield f"/{' '.join(path)} {tail}", [*path, *tail.split()]


async def test_a_number_that_is_too_large_is_refused_by_every_address(tmp_path: Path) -> None:
    async with run_app(tmp_path) as it:
        app = build_web_app(it.app.web.deps)
        client = _client(app)
        for path, item in app.openapi()["paths"].items():
            for method, about in item.items():
                named = [
                    p for p in about.get("parameters", ()) if p["in"] in ("query", "path") and p["name"] != "session"
                ]
                for parameter in named:
                    for number in HUGE[:3]:
                        url = path.replace("{session}", "main").replace(f"{{{parameter['name']}}}", number)
                        if "{" in url or path == "/v1/events":
                            continue
                        params = {parameter["name"]: number, "q": "x"} if parameter["in"] == "query" else {}
                        names = {p["name"] for p in named}
                        params = {name: value for name, value in params.items() if name in names}
                        answer = await client.request(method, url, params=params)
                        assert answer.status_code < 500, f"{method} {url[:80]} {parameter['name']}: {answer.text[:300]}"
