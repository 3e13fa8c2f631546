"""Numbers that no database takes, wherever a command or an address of the API takes a number: an answer in words."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from fastapi.testclient import TestClient

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


@pytest.mark.parametrize("number", HUGE)
async def test_a_number_that_is_too_large_is_an_error_in_words_for_every_command(tmp_path: Path, number: str) -> None:
    async with run_app(tmp_path) as it:
        await it.app.commands.run("/people allow kept 7", "main")
        client = TestClient(build_web_app(it.app.web.deps), raise_server_exceptions=False)
        tried, wrong = 0, []
        for path, command in leaf_commands(it.app.commands.root):
            if path in _NOT_HERE:
                continue
            options = [p for p in command.params if isinstance(p, click.Option) and not (p.is_flag or p.hidden)]
            words = [f"{option.opts[-1]}={number}" for option in options if "--session" not in option.opts]
            for tail in (number, *words, *(f"1 {word}" for word in words)):
                line = f"/{' '.join(path)} {tail}"
                for body in ({"text": line}, {"argv": [*path, *tail.split()]}):
                    tried += 1
                    answer = client.post("/v1/commands", json=body)
                    if answer.status_code not in (200, 400):
                        wrong.append(f"{line[:60]}: {answer.status_code} {answer.text[:80]}")
        assert tried > 200 and wrong == []


async def test_a_number_that_is_too_large_is_refused_by_every_address(tmp_path: Path) -> None:
    async with run_app(tmp_path) as it:
        app = build_web_app(it.app.web.deps)
        client = TestClient(app, raise_server_exceptions=False)
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
                        answer = client.request(method, url, params=params)
                        assert answer.status_code < 500, f"{method} {url[:80]} {parameter['name']}: {answer.text[:300]}"
