"""F42: who is let in to the page in a browser: links that log in once, cookies, and requests of other pages."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest

from assistant.core.bridge_api import TurnEvent
from assistant.core.errors import UsageError
from assistant.store.home.browser_sessions import BrowserSessions
from assistant.web.page_files import PAGE_FOLDER, load_page_files
from tests.support.machine_clock import MachineClock
from tests.support.scripted import SteppingClock
from tests.support.web_api import LiveApi, run_web_api


def login_code(it: LiveApi) -> str:
    return it.app.browsers.create_link_code()


async def log_in(it: LiveApi, code: str, **headers: str) -> httpx2.Response:
    address = f"http://127.0.0.1:{it.port}"
    async with httpx2.AsyncClient(base_url=address, timeout=60) as browser:
        return await browser.post("/v1/login", headers={"Authorization": f"Login {code}", "Origin": address, **headers})


async def cookie_of(it: LiveApi) -> str:
    answer = await log_in(it, login_code(it))
    assert answer.status_code == 200, answer.text
    return str(answer.headers["set-cookie"].partition(";")[0])


async def ask(it: LiveApi, method: str, path: str, cookie: str, **headers: str) -> httpx2.Response:
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{it.port}", timeout=60) as browser:
        body = {"text": "/status"} if method == "POST" else None
        return await browser.request(method, path, json=body, headers={"Cookie": cookie, **headers})


def own(it: LiveApi) -> dict[str, str]:
    return {"Origin": f"http://127.0.0.1:{it.port}", "Sec-Fetch-Site": "same-origin"}


async def test_f42_a_link_logs_one_browser_in_once(tmp_path: Path) -> None:
    async with run_web_api(tmp_path) as it:
        code = login_code(it)
        answer = await log_in(it, code)
        assert answer.status_code == 200
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie and "SameSite=strict" in cookie and code not in cookie
        pair = cookie.partition(";")[0]
        assert (await ask(it, "GET", "/v1/status", pair)).status_code == 200
        again = await log_in(it, code)
        assert (
            again.status_code == 401 and "assistant open" in again.json()["error"] and "set-cookie" not in again.headers
        )


async def test_f42_a_cookie_is_secure_where_the_page_is_encrypted(tmp_path: Path) -> None:
    async with run_web_api(tmp_path, WEB__HOSTS='["n.example.org"]', WEB__BEHIND_PROXY="true") as it:
        plain = await log_in(it, login_code(it))
        proxied = await log_in(it, login_code(it), Origin="https://n.example.org", Host="n.example.org")
        assert "secure" not in plain.headers["set-cookie"].lower().split("; ")
        assert "secure" in proxied.headers["set-cookie"].lower().split("; ")


async def test_f42_guessed_codes_are_refused_and_after_ten_not_even_tried(tmp_path: Path) -> None:
    async with run_web_api(tmp_path) as it:
        answers = [(await log_in(it, f"guess-{n}")).status_code for n in range(12)]
        assert answers[:10] == [401] * 10 and answers[10:] == [429] * 2
        assert it.app.browsers.list_sessions() == []


def test_f42_a_link_is_good_for_five_minutes(tmp_path: Path) -> None:
    clock = SteppingClock()
    browsers = BrowserSessions(tmp_path / "browsers.json", clock)
    early, late = browsers.create_link_code(), browsers.create_link_code()
    clock.now += timedelta(minutes=4, seconds=50)
    assert browsers.is_valid(browsers.log_in(early, "a browser"))
    clock.now += timedelta(seconds=20)
    with pytest.raises(UsageError, match="assistant open"):
        browsers.log_in(late, "a browser")


@pytest.mark.parametrize(("back", "passed"), [(timedelta(days=3 * 365), 0), (timedelta(minutes=4), 2)])
def test_f42_a_link_does_not_outlast_a_clock_that_is_set_back(tmp_path: Path, back: timedelta, passed: int) -> None:
    machine = MachineClock(SteppingClock().now)
    browsers = BrowserSessions(tmp_path / "browsers.json", machine.wall, machine.elapsed)
    code = browsers.create_link_code()
    machine.run(timedelta(minutes=4))
    machine.set_clock(-back)
    machine.run(timedelta(minutes=passed))
    with pytest.raises(UsageError, match="assistant open"):
        browsers.log_in(code, "a browser")


def test_f42_a_login_survives_a_restart_as_a_hash_and_ends_after_90_days_without_use(tmp_path: Path) -> None:
    clock, file = SteppingClock(), tmp_path / "browsers.json"
    first = BrowserSessions(file, clock)
    code = first.create_link_code()
    secret = first.log_in(code, "a browser")
    assert secret not in file.read_text() and code not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    clock.now += timedelta(days=80)
    assert BrowserSessions(file, clock).is_valid(secret)
    clock.now += timedelta(days=80)
    assert BrowserSessions(file, clock).is_valid(secret)
    clock.now += timedelta(days=91)
    assert not BrowserSessions(file, clock).is_valid(secret)
    assert BrowserSessions(file, clock).list_sessions() == []


def test_f42_a_login_that_was_used_while_the_clock_was_ahead_ends_after_90_days_without_use(tmp_path: Path) -> None:
    clock = SteppingClock()
    browsers = BrowserSessions(tmp_path / "browsers.json", clock)
    secret = browsers.log_in(browsers.create_link_code(), "a browser")
    for days in (80, -70):
        clock.now += timedelta(days=days)
        assert browsers.is_valid(secret)
    clock.now += timedelta(days=91)
    assert not browsers.is_valid(secret)


def test_f42_links_of_an_earlier_process_are_void(tmp_path: Path) -> None:
    clock = SteppingClock()
    code = BrowserSessions(tmp_path / "browsers.json", clock).create_link_code()
    with pytest.raises(UsageError):
        BrowserSessions(tmp_path / "browsers.json", clock).log_in(code, "")


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_f42_a_request_of_another_page_is_refused_though_the_browser_sends_its_cookie(
    tmp_path: Path, site: str
) -> None:
    async with run_web_api(tmp_path) as it:
        cookie = await cookie_of(it)
        refused = await ask(it, "GET", "/v1/status", cookie, **{"Sec-Fetch-Site": site})
        assert refused.status_code == 403
        foreign = await ask(it, "POST", "/v1/commands", cookie, Origin="http://127.0.0.1:1", **{"Sec-Fetch-Site": site})
        assert foreign.status_code == 403
        assert (await ask(it, "POST", "/v1/commands", cookie)).status_code == 403, "no page is named"
        assert (await ask(it, "POST", "/v1/commands", cookie, **own(it))).status_code == 200


async def test_f42_a_page_under_another_name_gets_nothing_though_it_leads_here(tmp_path: Path) -> None:
    async with run_web_api(tmp_path) as it:
        cookie = await cookie_of(it)
        for path in ("/", "/v1/status", "/v1/login"):
            answer = await ask(it, "GET", path, cookie, Host=f"evil.example.com:{it.port}")
            assert answer.status_code == 403


async def test_f42_a_revoked_browser_is_out_at_once_and_what_it_has_open_ends(tmp_path: Path) -> None:
    async with run_web_api(tmp_path) as it:
        kept, lost = await cookie_of(it), await cookie_of(it)
        async with (
            httpx2.AsyncClient(base_url=f"http://127.0.0.1:{it.port}", timeout=60) as browser,
            browser.stream("GET", "/v1/events", headers={"Cookie": lost}) as stream,
        ):
            lines = stream.aiter_lines()
            assert "hello" in await anext(lines)
            answer = await ask(it, "POST", "/v1/commands", kept, **own(it))
            assert answer.status_code == 200
            revoke = {"argv": ["web", "revoke", "2"]}
            done = await browser.post("/v1/commands", json=revoke, headers={"Cookie": kept, **own(it)})
            assert done.status_code == 200, done.text
            it.app.terminal.show(TurnEvent("delta", "main", "t1", {"text": "not for the one who is out"}), "")
            async with asyncio.timeout(5):
                rest = [line async for line in lines]
            assert "not for" not in "".join(rest)
        assert (await ask(it, "GET", "/v1/status", lost)).status_code == 401
        assert (await ask(it, "GET", "/v1/status", kept)).status_code == 200


async def test_f42_who_logs_out_is_out_and_the_cookie_goes(tmp_path: Path) -> None:
    async with run_web_api(tmp_path) as it:
        cookie = await cookie_of(it)
        done = await ask(it, "POST", "/v1/logout", cookie, **own(it))
        assert done.status_code == 200 and "Max-Age=0" in done.headers["set-cookie"]
        assert (await ask(it, "GET", "/v1/status", cookie)).status_code == 401


async def test_f42_the_page_runs_and_loads_what_is_its_own_alone_and_is_shown_in_no_frame(tmp_path: Path) -> None:
    async with run_web_api(tmp_path) as it:
        page = await ask(it, "GET", "/", "")
        policy = page.headers["content-security-policy"]
        assert "default-src 'self'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
        assert page.headers["x-frame-options"] == "DENY"
        assert "<script>" not in page.text and "style=" not in page.text and "http" not in page.text


async def test_the_pages_files_are_kept_by_browsers_for_ever_and_the_page_is_asked_for_again(tmp_path: Path) -> None:
    async with run_web_api(tmp_path) as it:
        page = await ask(it, "GET", "/", "")
        assert page.headers["cache-control"] == "no-cache"
        same = await ask(it, "GET", "/", "", **{"If-None-Match": page.headers["etag"]})
        assert same.status_code == 304
        script = page.text.partition('src="')[2].partition('"')[0]
        file = await ask(it, "GET", script, "")
        assert "immutable" in file.headers["cache-control"] and file.headers["content-encoding"] == "gzip"
        plain = await ask(it, "GET", script, "", **{"Accept-Encoding": "identity"})
        assert plain.text == file.text and "content-encoding" not in plain.headers
        for missing in ("/page/0/main.js", f"{script}/..%2f..%2fapp.py", "/page/"):
            assert (await ask(it, "GET", missing, "")).status_code == 404


async def test_f42_links_are_made_where_the_owner_is_and_not_in_conversations(tmp_path: Path) -> None:
    async with run_web_api(tmp_path) as it:
        answer = await it.socket.request("POST", "/v1/commands", json={"argv": ["web", "link"]})
        assert answer.json()["value"]["url"].startswith(f"http://127.0.0.1:{it.port}/#login=")
        typed = await it.socket.request("POST", "/v1/commands", json={"text": "/web link"})
        assert typed.status_code == 400 and "assistant open" in typed.json()["error"]


def test_the_page_is_two_files_and_with_its_plots_below_60_kilobytes() -> None:
    loaded = load_page_files()
    assert set(loaded.files) == {"icon.svg", "main.js", "page.css", "vendor/uplot.js"}
    assert sum(len(file.compressed) for file in (loaded.index, loaded.worker, *loaded.files.values())) <= 60_000
    own = list(PAGE_FOLDER.glob("*.js"))
    assert len(own) > 10 and all(len(path.read_text(encoding="utf-8").splitlines()) < 300 for path in own)


async def test_answers_are_compressed_over_tcp_and_files_and_streams_are_not(tmp_path: Path) -> None:
    async with run_web_api(tmp_path, "It is a file. " * 100) as it:
        sound = {"mime": "application/x-thing", "name": "a.bin", "data": "AAAA" * 1000}
        message = {"text": "Look. " * 100, "external_id": "1", "media": [sound]}
        said = (await it.tcp.request("POST", "/v1/messages", json=message)).json()
        await it.wait_idle()
        for client, encoding in ((it.tcp, "gzip"), (it.socket, None)):
            answer = await client.request("GET", "/v1/messages", params={"html": True})
            assert answer.headers.get("content-encoding") == encoding
            assert [entry["text"][:5] for entry in answer.json()["messages"]] == ["Look.", "It is"]
        file = await it.tcp.request("GET", f"/v1/history/{said['message_id']}/files/0")
        assert len(file.content) == 3000 and "content-encoding" not in file.headers
        async with it.tcp.client.sse("/v1/events") as stream:
            assert "content-encoding" not in stream.response.headers
