"""F42: who is let in to the web API over TCP, over real sockets, and where it may listen at all."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from assistant.core.bridge_api import TurnEvent
from assistant.core.errors import SettingsError
from assistant.settings.home import Home
from assistant.settings.secrets import IN_KEYRING
from assistant.settings.settings import Settings, load_settings, settings_problems
from assistant.settings.watch import SettingsWatch
from assistant.store.home.config_file import HomeSecretStore, create_web_token
from assistant.web.deps import AccessRules
from assistant.web.guard import AccessGuard
from assistant.wire.app import build_app
from tests.support.api_surface import api_routes
from tests.support.scripted import ScriptedModel, SteppingClock
from tests.support.web_api import TOKEN, LiveApi, run_web_api

RIGHT = {"Authorization": f"Bearer {TOKEN}"}


async def status(it: LiveApi, headers: dict[str, str], path: str = "/v1/status") -> int:
    """Of a request with these headers and no others of the caller's own."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    reader, writer = await asyncio.open_connection("127.0.0.1", it.port)
    writer.write(f"GET {path} HTTP/1.1\r\n{lines}Connection: close\r\n\r\n".encode())
    async with asyncio.timeout(10):
        answer = await reader.read()
    writer.close()
    return int(answer.split()[1])


# ---------------------------------------------------------------------------------------------------------------- token


@pytest.mark.parametrize(
    "shown",
    [None, "", "Bearer", "Bearer ", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", TOKEN, "Bearer \xe9"],
)
async def test_f42_nothing_is_told_without_the_right_token(tmp_path: Path, shown: str | None) -> None:
    async with run_web_api(tmp_path) as it:
        host = {"Host": f"127.0.0.1:{it.port}"}
        headers = host if shown is None else {**host, "Authorization": shown}
        for path in ("/v1/status", "/v1/messages", "/openapi.json", "/metrics", "/v1/nothing"):
            assert await status(it, headers, path) == 401, path
        assert await status(it, {**host, **RIGHT}) == 200


async def test_f42_a_message_without_the_token_is_not_accepted(tmp_path: Path) -> None:
    async with run_web_api(tmp_path) as it:
        answer = await it.tcp.request(
            "POST", "/v1/messages", json={"text": "hi", "external_id": "1"}, headers={"Authorization": "Bearer wrong"}
        )
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert "assistant web token" in answer.json()["error"]
        assert it.app.stores.conversation.list_sessions() == []


async def test_f42_no_route_answers_without_the_token_and_none_reaches_a_guests_or_rooms_session(
    tmp_path: Path,
) -> None:
    """All of them, as the running program lists them: a new one is tried as well."""
    async with run_web_api(tmp_path) as it:
        routes = api_routes(it.app)
        assert len(routes) > 20
        for route in routes:
            method, path = route.split()
            plain = (
                path.replace("{session}", "main")
                .replace("{message_id}", "1")
                .replace("{number}", "0")
                .replace("{inbox_id}", "1")
            )
            answer = await it.tcp.request(method, plain, headers={"Authorization": "Bearer wrong"})
            is_open = path in ("/healthz", "/readyz", "/") or path.startswith("/page/")
            assert is_open or answer.status_code in (401, 429), route
            for session in ("peer:kept:7", "room:kept:-200"):
                body = {"session": session, "text": "/status", "external_id": session} if method == "POST" else None
                named = (
                    path.replace("{session}", session)
                    .replace("{message_id}", "1")
                    .replace("{number}", "0")
                    .replace("{inbox_id}", "1")
                )
                params = {} if body or "{" in path else {"session": session, "q": "x"}
                answer = await it.socket.request(method, named, json=body, params=params)
                assert answer.status_code >= 400 or session not in answer.text, route
        assert it.app.stores.conversation.list_sessions() == []


async def test_f42_the_control_socket_needs_no_token_and_no_name(tmp_path: Path) -> None:
    async with run_web_api(tmp_path) as it:
        answer = await it.socket.request("GET", "/v1/status", headers={"Host": "anything"})
        assert answer.status_code == 200


async def test_f42_a_new_token_holds_at_once_and_the_former_for_nothing_any_more(tmp_path: Path) -> None:
    async with run_web_api(tmp_path, WEB__TOKEN="") as it, it.tcp.events() as stream:
        token = create_web_token(it.app.settings.home.secrets)
        refused = await it.tcp.request("GET", "/v1/status")
        assert refused.status_code == 401 and "assistant web token" in refused.json()["error"]
        it.app.terminal.show(TurnEvent("delta", "main", "t1", {"text": "not for the former"}), "")
        assert await stream.remaining_events() == []
        known = {"Authorization": f"Bearer {token}"}
        status = await it.tcp.request("GET", "/v1/status", headers=known)
        assert status.json()["changed_settings"] == []


def test_a_new_token_takes_the_place_of_one_in_the_keyring(tmp_path: Path) -> None:
    home = Home(tmp_path)
    started = load_settings(home, {"ASSISTANT_WEB__TOKEN": TOKEN}, ring=None)
    ringed = replace(started, origins={**started.origins, "web.token": IN_KEYRING})
    taken: list[Settings] = []
    watch = SettingsWatch(ringed, partial(load_settings, home, {}, ring=None), taken.append)
    token = create_web_token(home.secrets)
    watch.check_files()
    assert [one.values.web.token.get_secret_value() for one in taken] == [token]


async def test_f42_where_no_token_can_be_kept_nobody_is_let_in_until_there_is_one(tmp_path: Path) -> None:
    home, unplugged = tmp_path / "home", tmp_path / "stick"
    home.mkdir(mode=0o700)
    (home / "secrets.toml").symlink_to(unplugged / "secrets.toml")
    async with run_web_api(home, WEB__TOKEN="") as it:
        assert (await it.tcp.request("GET", "/v1/status", headers={"Authorization": "Bearer none"})).status_code == 401
        (problem,) = [one for one in it.app.web.problems() if "refuses everybody" in one]
        assert "`assistant web token --new`" in problem
        unplugged.mkdir()
        known = {"Authorization": f"Bearer {create_web_token(it.app.settings.home.secrets)}"}
        assert (await it.tcp.request("GET", "/v1/status", headers=known)).status_code == 200
        assert it.app.web.problems() == []


async def test_a_token_that_is_taken_away_holds_until_the_next_start_which_is_told(tmp_path: Path) -> None:
    async with run_web_api(tmp_path, WEB__TOKEN="") as it:
        HomeSecretStore(it.app.settings.home.secrets, None).remove("web.token")
        assert (await it.tcp.get("/v1/status"))["changed_settings"] == ["web.token"]


async def test_whether_it_is_alive_is_told_without_a_token_and_nothing_more(tmp_path: Path) -> None:
    async with run_web_api(tmp_path) as it:
        for path in ("/healthz", "/readyz"):
            answer = await it.tcp.request("GET", path, headers={"Authorization": ""})
            assert answer.status_code == 200
            assert "problems" not in answer.json()


# ------------------------------------------------------------------------------------------------------------ the guard


class GuardProbe:
    """A guard before an application that notes that it was reached."""

    def __init__(self, *, hosts: tuple[str, ...] = (), behind_proxy: bool = False) -> None:
        self.now = 1000.0
        self.token = TOKEN
        self.reached = 0
        rules = AccessRules(lambda: self.token, frozenset(hosts), behind_proxy)
        self._guard = AccessGuard(self._app, rules, lambda: self.now)

    async def _app(self, scope: Any, receive: Any, send: Any) -> None:
        self.reached += 1
        await send({"type": "http.response.start", "status": 200, "headers": [(b"cache-control", b"own")]})
        await send({"type": "http.response.body", "body": b""})

    async def get(self, *headers: tuple[str, str], path: str = "/v1/status", client: str = "127.0.0.1") -> int:
        self.answer: dict[str, str] = {}
        status = 0

        async def receive() -> dict[str, Any]:
            raise AssertionError("no body is read before somebody is let in")

        async def send(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self.answer = {name.decode(): value.decode() for name, value in message["headers"]}

        scope = {
            "type": "http",
            "method": "GET",
            "path": path,
            "server": ("192.0.2.5", 8484),
            "client": (client, 5),
            "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in headers],
        }
        await self._guard(scope, receive, send)
        return status


HERE = ("Host", "127.0.0.1:8484")
KNOWN = ("Authorization", f"Bearer {TOKEN}")


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8484", "127.0.0.1:8484", "[::1]:8484", "192.0.2.5:8484", "my.example.org"]
)
async def test_f42_it_answers_to_its_own_names(host: str) -> None:
    asked = GuardProbe(hosts=("My.example.org",))
    assert await asked.get(("Host", host), KNOWN) == 200


@pytest.mark.parametrize(
    "hosts",
    [
        ["evil.example"],
        ["127.0.0.1.evil.example"],
        ["localhost.evil.example:8484"],
        ["evil.example#localhost"],
        ["evil.example@x"],
        ["[::1"],
        [""],
        [],
        ["127.0.0.1:8484", "evil.example"],
        ["192.0.2.6"],
        ["a" * 5000],
    ],
)
async def test_f42_a_request_by_another_name_is_refused(hosts: list[str]) -> None:
    asked = GuardProbe()
    headers = [("Host", host) for host in hosts]
    assert await asked.get(*headers, KNOWN) == 403
    assert await asked.get(*headers, KNOWN, path="/healthz") == 403
    assert asked.reached == 0


@pytest.mark.parametrize("origin", ["http://127.0.0.1:8484", "https://127.0.0.1:8484", "https://my.example.org"])
async def test_f42_its_own_pages_may_ask(origin: str) -> None:
    asked = GuardProbe(hosts=("my.example.org",))
    assert await asked.get(HERE, KNOWN, ("Origin", origin)) == 200


@pytest.mark.parametrize(
    "origins",
    [
        ["https://evil.example"],
        ["null"],
        [""],
        ["http://127.0.0.1:9999"],
        ["http://localhost:8484"],
        ["file://127.0.0.1:8484"],
        ["http://127.0.0.1:8484", "https://evil.example"],
        ["127.0.0.1:8484"],
        ["https://my.example.org.evil.example"],
        ["http://[::1"],
    ],
)
async def test_f42_a_page_from_elsewhere_is_refused_whatever_it_shows(origins: list[str]) -> None:
    asked = GuardProbe(hosts=("my.example.org",))
    assert await asked.get(HERE, KNOWN, *[("Origin", origin) for origin in origins]) == 403
    assert await asked.get(HERE, *[("Origin", origin) for origin in origins], path="/healthz") == 403
    assert asked.reached == 0


async def test_no_answer_may_be_kept_framed_or_read_by_another_page() -> None:
    asked = GuardProbe()
    for headers in ((HERE, KNOWN), (HERE,), (("Host", "evil.example"),)):
        await asked.get(*headers)
        assert "access-control-allow-origin" not in asked.answer
        assert asked.answer["x-frame-options"] == "DENY"
        assert asked.answer["x-content-type-options"] == "nosniff"
        assert asked.answer["content-security-policy"].startswith("default-src 'none'")
    assert asked.answer["cache-control"] == "no-store"


async def test_f42_whoever_guesses_waits_and_the_right_token_never_does() -> None:
    asked = GuardProbe()
    wrong = ("Authorization", "Bearer guess")
    assert [await asked.get(HERE, wrong) for _ in range(12)] == [401] * 10 + [429] * 2
    assert 0 < int(asked.answer["retry-after"]) <= 60
    assert await asked.get(HERE, KNOWN) == 200
    assert await asked.get(HERE, wrong) == 429, "it forgives nobody else"
    assert await asked.get(HERE, wrong, client="127.0.0.2") == 401, "somebody else"
    asked.now += 61
    assert await asked.get(HERE, wrong) == 401


async def test_a_caller_without_any_token_is_not_taken_for_a_guesser() -> None:
    asked = GuardProbe()
    assert {await asked.get(HERE) for _ in range(20)} == {401}
    assert await asked.get(HERE, KNOWN) == 200


async def test_behind_a_proxy_guesses_are_counted_by_whom_the_proxy_names() -> None:
    asked = GuardProbe(behind_proxy=True)
    wrong = ("Authorization", "Bearer guess")
    for number in range(11):
        # What the caller puts in front is not believed.
        last = await asked.get(HERE, wrong, ("X-Forwarded-For", f"10.0.0.{number}, 203.0.113.9"))
    assert last == 429
    assert await asked.get(HERE, KNOWN, ("X-Forwarded-For", "203.0.113.10")) == 200
    plain = GuardProbe()
    for number in range(11):
        last = await plain.get(HERE, wrong, ("X-Forwarded-For", f"203.0.113.{number}"))
    assert last == 429, "without a proxy nobody is believed"


@pytest.mark.parametrize("shown", ["Bearer", "Bearer ", "Bearer x"])
async def test_f42_without_a_token_of_its_own_it_lets_nobody_in(shown: str) -> None:
    asked = GuardProbe()
    asked.token = ""
    assert await asked.get(HERE, ("Authorization", shown)) == 401
    assert asked.reached == 0


async def test_callers_who_guess_are_forgotten_beyond_a_thousand() -> None:
    asked = GuardProbe()
    for number in range(1100):
        await asked.get(HERE, ("Authorization", "Bearer guess"), client=f"host-{number}")
    assert len(asked._guard._attempts._wrong) <= 1024


# ----------------------------------------------------------------------------------------------------- where it listens


def loaded(tmp_path: Path, **web: str) -> Settings:
    given = {f"ASSISTANT_WEB__{name}": value for name, value in web.items()}
    return load_settings(None, {"ASSISTANT_HOME": str(tmp_path), **given}, ring=None)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.5", "my.example.org", "127.0.0.1.example"])
def test_f42_beyond_the_machine_it_listens_over_tls_or_behind_a_proxy_alone(tmp_path: Path, host: str) -> None:
    with pytest.raises(SettingsError) as refused:
        loaded(tmp_path, PORT="8484", HOST=host)
    for word in ("ASSISTANT_WEB__HOST", "web.certificate", "web.behind_proxy", "127.0.0.1", "Nothing was started"):
        assert word in str(refused.value)
    assert loaded(tmp_path, PORT="0", HOST=host).values.web.host == host
    assert loaded(tmp_path, PORT="8484", HOST=host, BEHIND_PROXY="true").values.web.behind_proxy
    assert loaded(tmp_path, PORT="8484", HOST=host, CERTIFICATE="c.pem", CERTIFICATE_KEY="k.pem").values.web.port


@pytest.mark.parametrize("host", ["127.0.0.1", "127.5.5.5", "::1", "localhost"])
def test_on_the_machine_itself_it_needs_neither(tmp_path: Path, host: str) -> None:
    assert loaded(tmp_path, PORT="8484", HOST=host).values.web.port == 8484


def test_half_a_certificate_and_a_short_token_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"web\.certificate_key is not; set both"):
        loaded(tmp_path, PORT="8484", CERTIFICATE="c.pem")
    with pytest.raises(SettingsError, match="fewer than 16") as refused:
        loaded(tmp_path, PORT="8484", TOKEN="hunter2")
    assert "hunter2" not in str(refused.value)


def test_a_config_file_that_would_expose_it_is_refused_before_it_is_written(tmp_path: Path) -> None:
    home = Home(tmp_path)
    (problem,) = settings_problems(home, '[web]\nport = 8484\nhost = "0.0.0.0"\n')
    assert "web.behind_proxy" in problem


async def test_a_token_is_made_at_the_first_start_and_kept_for_its_owner_alone(tmp_path: Path) -> None:
    async with run_web_api(tmp_path, WEB__TOKEN="") as it:
        assert (await it.tcp.request("GET", "/v1/status")).json()["changed_settings"] == []
    kept = tmp_path / "secrets.toml"
    assert kept.stat().st_mode & 0o777 == 0o600
    token = loaded(tmp_path).values.web.token.get_secret_value()
    assert len(token) >= 40
    async with run_web_api(tmp_path, WEB__TOKEN=token) as it:
        assert (await it.tcp.request("GET", "/v1/status")).status_code == 200


async def test_without_a_port_nothing_listens_and_no_token_is_made(tmp_path: Path) -> None:
    app = build_app(loaded(tmp_path), SteppingClock(), model=ScriptedModel())
    try:
        assert app.web.tcp is None and app.web.problems() == []
        assert not (tmp_path / "secrets.toml").exists()
    finally:
        app.close()


async def test_a_slow_caller_without_a_token_holds_nobody_up(tmp_path: Path) -> None:
    async with run_web_api(tmp_path) as it:
        with socket.create_connection(("127.0.0.1", it.port)) as slow:
            slow.sendall(b"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000\r\n\r\n")
            slow.setblocking(False)
            async with asyncio.timeout(10):
                answer = await asyncio.get_running_loop().sock_recv(slow, 100)
            assert answer.startswith(b"HTTP/1.1 401"), "refused before its body has come"
            assert (await it.tcp.request("GET", "/v1/status")).status_code == 200
