"""Who the page is not for, and what of a login is found nowhere: in no address, no history, no referrer, no log. What a
person typed or clicked, the link itself, is used up by then."""

from __future__ import annotations

import asyncio
from pathlib import Path

import structlog

from assistant.core.bridge_api import InboundMessage
from tests.support.browser import Browser, in_browser, open_page
from tests.support.page_server import Answer, serving
from tests.support.scripted import RecordingBridge
from tests.support.web_api import TOKEN, LiveApi, run_web_api

_VISITED = "Page.getNavigationHistory"


async def command(it: LiveApi, *argv: str) -> None:
    answer = await it.socket.request("POST", "/v1/commands", json={"argv": list(argv)}, timeout=60)
    assert answer.status_code == 200, answer.text


def all_text(folder: Path) -> str:
    return " ".join(path.read_text("utf-8", "replace") for path in folder.rglob("*") if path.is_file())


async def test_f42_no_secret_of_a_login_is_in_an_address_the_history_a_referrer_or_a_log(
    tmp_path: Path, browser: Browser
) -> None:
    # In the page's host but another origin, to which a browser would send a referrer.
    with structlog.testing.capture_logs() as logged, serving({"/elsewhere": Answer(b"elsewhere")}) as server:
        async with run_web_api(tmp_path, f"Look: [it]({server.url('/elsewhere', 'localhost')})") as it:
            codes = []
            make = it.app.browsers.create_link_code
            it.app.browsers.create_link_code = lambda: codes.append(make()) or codes[-1]  # type: ignore[method-assign, func-returns-value]
            await open_page(browser, it)

            def look() -> tuple[str, str]:
                browser.type("textarea", "Where?\n")
                browser.find(".entry.assistant a", "it")
                (cookie,) = browser.driver.get_cookies()
                assert cookie["httpOnly"] and cookie["sameSite"] == "Strict"
                assert browser.run("return document.cookie") == ""
                assert browser.run("return Object.keys(localStorage).length + Object.keys(sessionStorage).length") == 0
                visited = [it["url"] for it in browser.driver.execute_cdp_cmd(_VISITED, {})["entries"]]
                asked = browser.run("return performance.getEntriesByType('resource').map(it => it.name)")
                shown = f"{visited} {asked} {browser.driver.current_url}"
                here = browser.driver.current_window_handle
                browser.click(".entry.assistant a", "it")
                browser.wait(lambda: len(browser.driver.window_handles) == 2)
                (other,) = set(browser.driver.window_handles) - {here}
                browser.driver.switch_to.window(other)
                browser.wait(lambda: "elsewhere" in browser.text())
                assert browser.run("return document.referrer") == "" and browser.run("return window.opener") is None
                browser.driver.close()
                browser.driver.switch_to.window(here)
                return cookie["value"], shown

            secret, shown = await in_browser(look)
            assert len(codes) == 1
    kept = all_text(tmp_path)
    for hidden in (secret, codes[0]):
        assert hidden not in shown and hidden not in str(logged) and hidden not in kept
    assert TOKEN not in shown and TOKEN not in str(logged)


async def test_f42_a_guest_gets_no_link_to_the_page(tmp_path: Path) -> None:
    bridge = RecordingBridge()
    async with run_web_api(tmp_path, "Hello.", bridges={"kept": bridge}) as it:
        assert bridge.inbound is not None
        hello = InboundMessage("kept", "1", "77", "Hello?", target="77", sender_name="Ben")
        await bridge.inbound.receive(hello)
        await command(it, "people", "pair", "allow", "1")
        for number, text in enumerate(("/web link", "/open", "/web sessions", "/web token"), start=2):
            known = len(bridge.sent)
            await bridge.inbound.receive(InboundMessage("kept", str(number), "77", text, target="77"))
            async with asyncio.timeout(60):
                while len(bridge.sent) == known:
                    bridge.delivered.clear()
                    await bridge.delivered.wait()
        said = str(bridge.sent)
        assert len(bridge.sent) > 1 and "login=" not in said and TOKEN not in said and f":{it.port}" not in said
        assert it.app.browsers.list_sessions() == []
