"""The pages beside Talk, in a real browser: what they show, and that what they do is what the commands do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import Browser, in_browser, open_page
from tests.support.web_api import LiveApi, run_web_api

PAGES = ("talk", "today", "memory", "context", "sleep", "spending", "health")
SAID = ("My sister Ada lives in Lisbon.", "My blue coat is at the cleaner's.")


@asynccontextmanager
async def lived_home(home: Path, **environ: str) -> AsyncIterator[LiveApi]:
    """Something was said, and slept over."""
    async with run_web_api(home, "Noted.", **environ) as it:
        for text in SAID:
            await it.socket.say(text)
            await it.wait_idle()
        await command(it, "sleep")
        yield it


async def command(it: LiveApi, *argv: str) -> Any:
    answer = await it.socket.request("POST", "/v1/commands", json={"argv": list(argv)}, timeout=60)
    assert answer.status_code == 200, answer.text
    return answer.json()["value"]


async def test_a_memory_is_found_traced_to_its_words_corrected_and_forgotten(tmp_path: Path, browser: Browser) -> None:
    async with lived_home(tmp_path) as it:
        await open_page(browser, it, "#/memory")

        def look() -> None:
            browser.type("main input[type=search]", "where does Ada live")
            browser.click(".memories a", "Lisbon")
            browser.find(".quote", SAID[0])
            browser.screenshot("memory-one")
            browser.click("main button", "Correct")
            browser.run("document.querySelector('main textarea').select()")
            browser.type("main textarea", "Ada, my sister, lives in Porto.")
            browser.click("main button", "Keep this instead")
            browser.find("main [role=status]", "Porto")
            assert browser.complaints() == []

        await in_browser(look)
        (found, *_) = await command(it, "memory", "search", "--limit", "1", "Ada", "lives", "in", "Porto")
        assert "Porto" in found["text"]
        await in_browser(lambda: browser.run("location.hash = arguments[0]", f"#/memory/{found['id']}"))

        def forget() -> None:
            browser.find(".words", "Porto")
            browser.click("main button", "Forget")
            browser.wait(lambda: browser.has_question())
            browser.driver.switch_to.alert.accept()
            browser.find("main [role=status]")

        await in_browser(forget)
        left = await command(it, "memory", "list", "--former")
        assert not [memory for memory in left if "Porto" in memory["text"]]


async def test_the_context_is_shown_in_order_with_the_tokens_of_each_part(tmp_path: Path, browser: Browser) -> None:
    async with lived_home(tmp_path) as it:
        report = await command(it, "context")
        assert report["tokens"] == sum(part["tokens"] for part in report["parts"])
        await open_page(browser, it, "#/context")

        def look() -> None:
            browser.find("main .list summary", SAID[0])
            assert len(browser.find_all("main ol.list > li")) == len(report["parts"])
            browser.find("main dd", f"{report['tokens']:,}")
            assert browser.complaints() == []

        await in_browser(look)


async def test_what_is_on_today_is_shown_and_a_reminder_is_moved(tmp_path: Path, browser: Browser) -> None:
    async with run_web_api(tmp_path) as it:
        await command(it, "remind", "add", "call", "Ada", "--at", "2099-03-03 09:00")
        await open_page(browser, it, "#/today")

        def look() -> None:
            browser.find("main h1")
            browser.run(
                "const box = document.querySelector('[data-day]'); const data = new DataTransfer();"
                "data.setData('text/plain', JSON.stringify({id: 1, time: '11:30'})); box.dataset.day = '2099-03-05';"
                "box.dispatchEvent(new DragEvent('drop', {dataTransfer: data, bubbles: true, cancelable: true}))"
            )
            browser.click("main .tabs button", "Month")
            browser.find(".month")
            browser.screenshot("today-month")

        await in_browser(look)


async def test_a_sleep_is_begun_and_its_report_is_shown(tmp_path: Path, browser: Browser) -> None:
    async with lived_home(tmp_path) as it:
        await open_page(browser, it, "#/sleep")

        def look() -> None:
            browser.find("details", "#1")
            browser.click("main button", "Sleep now")
            browser.find("details", "#2")
            browser.screenshot("sleep")

        await in_browser(look)
        assert len((await it.socket.get("/v1/sleeps"))["sleeps"]) == 2


async def test_health_shows_who_is_logged_in_and_makes_a_backup(tmp_path: Path, browser: Browser) -> None:
    async with run_web_api(tmp_path) as it:
        await open_page(browser, it, "#/health")

        def look() -> None:
            browser.find("main", "All is well.")
            browser.find("main section", "last used")
            browser.click("main button", "Back up now")
            browser.find("main section .list li", "nocturne")

        await in_browser(look)
        assert len(await command(it, "backup", "list")) == 1


async def test_every_page_is_accessible_and_fits_small_and_large_screens(tmp_path: Path, browser: Browser) -> None:
    async with lived_home(tmp_path) as it:
        await open_page(browser, it)

        def look() -> None:
            for page in PAGES:
                browser.run("location.hash = arguments[0]", f"#/{page}")
                browser.wait(lambda page=page: browser.driver.title.lower().startswith(page))
                browser.find("main")
                browser.settle()
                for width, height, dark in ((1280, 900, False), (360, 780, True), (2560, 1400, False)):
                    browser.size(width, height)
                    browser.dark(dark)
                    overflow = browser.run("return document.documentElement.scrollWidth - window.innerWidth")
                    assert overflow <= 0, (page, width)
                    browser.screenshot(f"{page}-{width}")
                    assert browser.serious_findings() == [], (page, width, dark)
                browser.size(1280, 900)
                browser.dark(False)
            assert browser.complaints() == []

        await in_browser(look)


@pytest.mark.parametrize("hostile", ["<script>document.title='run'</script>", '"><img src=x onerror=alert(1)>'])
async def test_hostile_names_and_lists_run_nothing(tmp_path: Path, browser: Browser, hostile: str) -> None:
    async with run_web_api(tmp_path) as it:
        await command(it, "todo", "add", hostile)
        await it.socket.say(hostile, "thread:x")
        await it.wait_idle()
        await open_page(browser, it, "#/today")

        def look() -> None:
            for page in PAGES:
                browser.run("location.hash = arguments[0]", f"#/{page}")
                browser.wait(lambda page=page: browser.driver.title.lower().startswith(page))
                browser.settle()
                assert browser.find_all("#page script, #page img, #page [onerror]") == []
            assert browser.complaints() == []

        await in_browser(look)
