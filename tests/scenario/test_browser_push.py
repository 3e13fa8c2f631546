"""Notifications in a browser that is logged in to the page: turned on there, encrypted for it, and without words."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.contract.test_web_browser_login import cookie_of, own
from tests.strict.web_push import StrictWebPush
from tests.support.browser import Browser, in_browser, open_page
from tests.support.web_api import LiveApi, run_web_api

TEST = {"title": "Nocturne", "body": "This is a test. Reminders and questions will arrive here."}


async def ask(it: LiveApi, cookie: str, method: str, path: str, **body: Any) -> Any:
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{it.port}", timeout=60) as client:
        answer = await client.request(method, path, headers={"Cookie": cookie, **own(it)}, json=body or None)
    assert answer.status_code in (200, 400, 401), answer.text
    return answer.json() | {"status": answer.status_code}


async def go_on(it: LiveApi, **by: float) -> None:
    it.clock.now += timedelta(**by)
    await it.app.agenda_scheduler.fire_due()
    await it.wait_idle()
    it.app.check_due()
    await it.app.notifier.wait_idle()


async def test_a_reminder_that_nobody_saw_comes_to_the_browser_encrypted_and_without_its_words(tmp_path: Path) -> None:
    async with StrictWebPush() as server, run_web_api(tmp_path) as it:
        cookie = await cookie_of(it)
        off = await ask(it, cookie, "GET", "/v1/push")
        assert not off["on"] and (tmp_path / "run" / "push-key.pem").stat().st_mode & 0o077 == 0
        server.key = off["key"]
        assert (await ask(it, "", "GET", "/v1/push"))["status"] == 401
        assert (await it.tcp.request("POST", "/v1/push", json=server.address)).status_code == 400
        for wrong in ({"endpoint": "http://elsewhere.example/push"}, {"p256dh": "short"}):
            assert (await ask(it, cookie, "POST", "/v1/push", **(server.address | wrong)))["status"] == 400
        assert (await ask(it, cookie, "POST", "/v1/push", **server.address))["on"]

        await it.app.commands.run('/remind call the clinic --at "in 10 minutes"', "main")
        await go_on(it, minutes=10)
        await go_on(it, seconds=30)
        assert server.messages == [{"title": "Nocturne", "body": "You have a reminder."}]
        # The service says that the browser is gone: it is not asked again.
        server.refusals = [410]
        await it.app.commands.run('/remind call the bank --at "in 10 minutes"', "main")
        await go_on(it, minutes=10)
        await go_on(it, seconds=30)
        assert not (await ask(it, cookie, "GET", "/v1/push"))["on"] and it.app.notifier.problems() == []
        assert (await ask(it, cookie, "POST", "/v1/push", **server.address))["on"]
        it.app.browsers.revoke({1})
        assert not it.app.notifier.is_used()
        assert len(server.messages) == 1 and server.complaints == []


async def test_without_its_packages_it_says_what_to_install_and_nothing_is_turned_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with StrictWebPush() as server, run_web_api(tmp_path) as it:
        for name in ("py_vapid", "pywebpush", "cryptography", "cryptography.hazmat.primitives.serialization"):
            monkeypatch.setitem(sys.modules, name, None)
        cookie = await cookie_of(it)
        for answer in (
            await ask(it, cookie, "GET", "/v1/push"),
            await ask(it, cookie, "POST", "/v1/push", **server.address),
        ):
            assert answer["status"] == 400
            assert answer["error"].startswith("Notifications in the browser need a package that is not installed; ")
        assert not it.app.notifier.is_used()


async def test_it_is_turned_on_and_off_in_the_page_and_its_worker_shows_what_comes(
    tmp_path: Path, browser: Browser
) -> None:
    async with StrictWebPush() as server, run_web_api(tmp_path) as it:
        await open_page(browser, it)
        origin = f"http://127.0.0.1:{it.port}"

        def turn_on() -> None:
            grant = {"origin": origin, "permissions": ["notifications"]}
            browser.driver.execute_cdp_cmd("Browser.grantPermissions", grant)
            silent = (
                "const wait = window.setTimeout; window.setTimeout = (act, ms, ...rest) => "
                "wait(act, ms === 3e4 ? 0 : ms, ...rest); "
                "PushManager.prototype.subscribe = () => new Promise(() => {}); location.hash = '#/health'"
            )
            browser.run(silent)
            browser.click("main button", "Notify me here")
            browser.find("main", "Your browser's push service does not answer.")
            # A push service of a vendor is not reached here: the browser is given the strict one's address.
            script = (
                "const {endpoint, ...keys} = arguments[0]; PushManager.prototype.subscribe = async function (asked) "
                "{ window.asked = asked; return {toJSON: () => ({endpoint, keys})} }; location.hash = '#/health'"
            )
            browser.run(script, server.address)
            browser.click("main button", "Notify me here")
            browser.find("main button", "Turn off")
            server.key = browser.run("return window.asked.applicationServerKey")

        await in_browser(turn_on)
        assert [it.ok for it in await it.app.notifier.test()] == [True]
        assert server.messages == [TEST] and server.complaints == []

        def show() -> None:
            shown = (
                "return (await (await navigator.serviceWorker.ready).getNotifications()).map(it => [it.title, it.body])"
            )
            browser.driver.execute_cdp_cmd("ServiceWorker.enable", {})
            for number in range(8):
                message = {
                    "origin": origin,
                    "registrationId": str(number),
                    "data": '{"title": "Nocturne", "body": "Hm."}',
                }
                browser.driver.execute_cdp_cmd("ServiceWorker.deliverPushMessage", message)
            browser.wait(lambda: browser.run(shown) == [["Nocturne", "Hm."]])
            browser.click("main button", "Turn off")
            browser.find("main button", "Notify me here")
            assert browser.complaints() == []

        await in_browser(show)
        assert not it.app.notifier.is_used()
