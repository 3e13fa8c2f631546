"""F33 in the running program: every endpoint of the web API is tried with what a guest and a room have, and in their
names, while both talk over a bridge. The routes of the program name them, so that a new one is tried without being
listed here. Nothing of anybody's comes out, and nothing changes."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2

from assistant.web.app import build_web_app
from assistant.web.deps import AccessRules
from assistant.web.server import build_tcp_server
from assistant.web.tcp_listener import TcpAddress, TcpListener
from assistant.wire.app import App
from tests.support.api_surface import all_routes, api_routes
from tests.support.networks.conformance_app import ConformanceApp, run_conformance_app
from tests.support.networks.owners_things import MARK, grants, live_as_owner, owners_things
from tests.support.networks.telegram import open_telegram_network
from tests.support.web_api import TOKEN

# What the guest and the room say, which is nobody else's either.
SAID = {"private": "saffron", "room": "cardamom"}
# For these nobody needs a token: they are the same for everybody, and say yes or no.
OPEN = {"/", "/healthz", "/readyz", "/worker.js", "/page/{version}/{name:path}"}
# What is shown for a token: nothing, or what a guest may know.
GUESSES: Mapping[str, tuple[Mapping[str, str], ...]] = {
    "private": ({}, {"Authorization": "Bearer peer:telegram:1002"}),
    "room": ({"Authorization": "login 1002"}, {"Cookie": "assistant_session=1002"}),
}


@asynccontextmanager
async def served(app: App) -> AsyncIterator[httpx2.AsyncClient]:
    """The web API over TCP, and somebody who has no token."""
    listener = TcpListener(
        lambda tls: build_tcp_server(build_web_app(app.web.deps), AccessRules(lambda: TOKEN), tls, time.monotonic),
        TcpAddress("127.0.0.1", 0),
    )
    async with listener.serve():
        await listener.opened.wait()
        assert listener.address is not None
        address = "http://{}:{}".format(*listener.address)
        async with httpx2.AsyncClient(base_url=address, timeout=60) as client:
            yield client


class Shapes:
    """What each endpoint takes, by the description of the API, filled with a session and numbers."""

    def __init__(self, description: Mapping[str, Any], session: str, number: int) -> None:
        self._paths, self._schemas = description["paths"], description["components"]["schemas"]
        self._session, self._number = session, number

    def path(self, path: str) -> str:
        for name, value in (
            ("session", self._session),
            ("model", self._session),
            ("version", "x"),
            ("name:path", "../config.toml"),
        ):
            path = path.replace(f"{{{name}}}", value)
        return (
            path.replace("{number}", "0")
            .replace("{message_id}", str(self._number))
            .replace("{inbox_id}", str(self._number))
        )

    def query(self, method: str, path: str) -> dict[str, Any]:
        asked = self._paths.get(path, {}).get(method.lower(), {}).get("parameters", [])
        named = [
            one["name"] for one in asked if one["in"] == "query" and (one.get("required") or one["name"] in _NAMED)
        ]
        return {
            name: self._session if name == "session" else self._number if name in _NUMBERS else "boat" for name in named
        }

    def body(self, method: str, path: str) -> Any:
        content = self._paths.get(path, {}).get(method.lower(), {}).get("requestBody", {}).get("content", {})
        return self._filled("", content["application/json"]["schema"]) if content else None

    def _filled(self, name: str, schema: Mapping[str, Any]) -> Any:
        if "$ref" in schema:
            return self._filled(name, self._schemas[schema["$ref"].rpartition("/")[2]])
        if "anyOf" in schema:
            return self._filled(name, schema["anyOf"][0])
        if "properties" in schema:
            wanted = {*schema.get("required", ()), *({"session"} & schema["properties"].keys())}
            return {key: self._filled(key, schema["properties"][key]) for key in sorted(wanted)}
        if "const" in schema or "enum" in schema:
            return schema.get("const", schema.get("enum", [""])[0])
        if schema.get("type") == "array":
            return [self._filled(name, schema["items"])]
        return {"integer": self._number, "boolean": True}.get(schema.get("type", ""), _VALUES.get(name, self._session))


_NUMBERS = {"inbox_id", "number", "before", "neighbours"}
_NAMED = {"session", "inbox_id", "q"}
_VALUES = {"text": "/todo list", "content": "/todo list", "role": "user", "model": "assistant"}


async def talk(it: ConformanceApp) -> dict[str, str]:
    """The guest and the room say something, and are answered: their sessions by where they are."""
    for where, secret in SAID.items():
        await it.network.say("guest", f"My word is {secret}.", where=where)  # type: ignore[arg-type]
        await it.wait_for_answer(secret, "guest", where)  # type: ignore[arg-type]
    await it.app.maintenance.index_new_messages()
    return {where: it.session("guest", where) for where in SAID}  # type: ignore[arg-type]


async def test_f33_no_endpoint_shows_or_changes_anything_without_the_token_or_in_the_name_of_a_guest_or_room(
    home: Path,
) -> None:
    async with (
        open_telegram_network() as network,
        run_conformance_app(network, home, **grants("guest"), **grants("room")) as it,
        served(it.app) as stranger,
    ):
        await live_as_owner(it)
        sessions = await talk(it)
        routes, description = all_routes(it.app), build_web_app(it.app.web.deps).openapi()
        assert {f"{method} {path}" for method, path in routes} > api_routes(it.app)
        numbers = range(1, it.accepted_count() + 4)
        before, accepted, asked = owners_things(home), it.accepted_count(), len(it.model.requests)
        for method, path in sorted(routes):
            for where, session in sessions.items():
                shapes = Shapes(description, session, numbers[-1])
                for guess in GUESSES[where]:
                    answer = await stranger.request(
                        *(method, shapes.path(path)),
                        params=shapes.query(method, path),
                        json=shapes.body(method, path),
                        headers=guess,
                    )
                    assert path in OPEN or answer.status_code in (401, 403, 429), (method, path, guess)
                    assert not any(word in answer.text for word in (MARK, *SAID.values())), (method, path)
                for number in numbers if "{" in path else numbers[:1]:
                    shapes = Shapes(description, session, number)
                    answer = await stranger.request(
                        *(method, shapes.path(path)),
                        params=shapes.query(method, path),
                        json=shapes.body(method, path),
                        headers={"Authorization": f"Bearer {TOKEN}"},
                    )
                    named = session in str((shapes.path(path), shapes.query(method, path), shapes.body(method, path)))
                    assert not named or answer.status_code >= 400, (method, path, where, answer.text)
                    assert not any(word in answer.text for word in SAID.values()), (method, path, number)
        await it.wait_idle()
        assert it.accepted_count() == accepted and len(it.model.requests) == asked
        after = owners_things(home)
        assert {kind for kind in before if before[kind] != after[kind]} == set()
