"""The pages beside Talk, in a real browser: what they show, and that what they do is what the commands do."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from assistant.core.bridge_api import InboundMessage
from tests.support.browser import Browser, in_browser, open_page
from tests.support.scripted import RecordingBridge, SteppingClock
from tests.support.web_api import LiveApi, run_web_api

PAGES = ("talk", "today", "memory", "context", "sleep", "spending", "health", "settings", "setup")
SIZES = ((2560, 1400), (1440, 900), (768, 1024), (360, 780))
# At which of them the rules of accessibility are tried, and whether in dark: each theme once, and both layouts.
THEMES = {1440: False, 360: True}
SAID = ("My sister Ada lives in Lisbon.", "My blue coat is at the cleaner's.")
LONG = "The boat lies in the harbour of Bergen, and the mooring is paid until October. " * 40


async def _live_and_sleep(home: Path) -> None:
    async with run_web_api(home, "Noted.", WEB__PORT="0") as it:
        for text in SAID:
            await it.socket.say(text)
            await it.wait_idle()
        await command(it, "sleep")


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder in which something was said, and slept over; each test has a copy."""
    home = tmp_path_factory.mktemp("lived") / "home"
    asyncio.run(_live_and_sleep(home))
    return home


@asynccontextmanager
async def lived_home(lived: Path, home: Path, *script: str) -> AsyncIterator[LiveApi]:
    shutil.copytree(lived, home, dirs_exist_ok=True)
    async with run_web_api(home, *(script or ("Noted.",))) as it:
        yield it


async def command(it: LiveApi, *argv: str) -> Any:
    answer = await it.socket.request("POST", "/v1/commands", json={"argv": list(argv)}, timeout=60)
    assert answer.status_code == 200, answer.text
    return answer.json()["value"]


async def test_a_memory_is_found_traced_to_its_words_corrected_and_forgotten(
    lived: Path, tmp_path: Path, browser: Browser
) -> None:
    async with lived_home(lived, tmp_path) as it:
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
            # Its message, too? The memory alone? Neither.
            for _ in range(2):
                browser.wait(browser.has_question)
                browser.driver.switch_to.alert.dismiss()
            browser.find("button.danger[aria-disabled=false]")
            assert not browser.find_all("main [role=status]")
            browser.click("main button", "Forget")
            browser.wait(browser.has_question)
            browser.driver.switch_to.alert.accept()
            browser.find("main [role=status]")

        await in_browser(forget)
        left = await command(it, "memory", "list", "--former")
        assert not [memory for memory in left if "Porto" in memory["text"]]


async def test_the_context_is_shown_in_order_with_the_tokens_of_each_part(
    lived: Path, tmp_path: Path, browser: Browser
) -> None:
    async with lived_home(lived, tmp_path) as it:
        report = await command(it, "context")
        assert report["tokens"] == sum(part["tokens"] for part in report["parts"])
        await open_page(browser, it, "#/context")

        def look() -> None:
            browser.find("main .list summary", SAID[0])
            assert len(browser.find_all("main ol.list > li")) == len(report["parts"])
            browser.find("main dd", f"{report['tokens']:,}")
            assert browser.complaints() == []

        await in_browser(look)


async def test_a_reminder_is_moved_by_dragging_it_to_another_day(tmp_path: Path, browser: Browser) -> None:
    async with run_web_api(tmp_path) as it:
        await command(it, "remind", "add", "call", "Ada", "--at", "2099-03-03 09:00")
        await open_page(browser, it, "#/today/2099-03-03")

        def look() -> None:
            browser.click("main .tabs button", "Week")
            browser.find("main [draggable=true]", "call Ada")
            browser.run(
                "const data = new DataTransfer(); const fire = (on, name) => on.dispatchEvent("
                "new DragEvent(name, {dataTransfer: data, bubbles: true, cancelable: true}));"
                "fire(document.querySelector('main [draggable=true]'), 'dragstart');"
                "const day = document.querySelector('[data-day=\"2099-03-05\"]');"
                "fire(day, 'dragover'); fire(day, 'drop')"
            )
            browser.find("[data-day='2099-03-05'] [draggable=true]", "call Ada")
            browser.find("[data-day='2099-03-05']", "AM")  # as all times of the page in this browser
            browser.click("main .tabs button", "Month")
            browser.find(".month .thing", "call Ada")
            browser.screenshot("today-month")
            assert browser.complaints() == []

        await in_browser(look)
        (reminder,) = await command(it, "remind", "list")
        assert "2099-03-05T09:00" in str(reminder), reminder


async def test_a_sleep_is_begun_and_its_report_is_shown(lived: Path, tmp_path: Path, browser: Browser) -> None:
    async with lived_home(lived, tmp_path) as it:
        assert isinstance(it.app.base.clock, SteppingClock)
        it.app.base.clock.now += timedelta(days=2)
        status = await it.socket.get("/v1/status")
        await open_page(browser, it, "#/sleep")

        def look() -> None:
            browser.find("details", "#1")
            browser.find("main .next", "Next sleep: due since ")
            (shown,) = browser.find_all("main .next time")
            assert shown.get_attribute("datetime") == status["next_sleep"]
            browser.click("main button", "What it changed")
            browser.find("main ins", SAID[0])
            browser.find("main h3", "MEMORY.md")
            browser.screenshot("sleep")
            browser.click("main button", "Sleep now")
            browser.find("details", "#2")

        await in_browser(look)
        assert len((await it.socket.get("/v1/sleeps"))["sleeps"]) == 2


async def test_health_shows_who_is_logged_in_and_makes_a_backup(tmp_path: Path, browser: Browser) -> None:
    async with run_web_api(tmp_path) as it:
        await it.socket.say("Hello", "thread:trip")
        await it.wait_idle()
        await open_page(browser, it, "#/health")

        def look() -> None:
            browser.find("main", "All is well.")
            browser.find("dt", "Conversation trip")
            assert "Green" not in [it.text for it in browser.find_all("dt")]
            browser.find("main section", "last used")
            browser.click("main button", "Back up now")
            browser.find("main section .list li", "nocturne")

        def look_again() -> None:
            browser.driver.refresh()
            browser.find("main .problem", "no answer")
            assert [row.text for row in browser.find_all("dt") if row.text.startswith("!")] == [], "said once"

        await in_browser(look)
        assert len(await command(it, "backup", "list")) == 1
        it.app.stores.breakers.record_failure("extraction", "no answer: none", 1, it.app.base.clock())
        await in_browser(look_again)


async def test_every_page_is_accessible_and_fits_small_and_large_screens(
    lived: Path, tmp_path: Path, browser: Browser
) -> None:
    async with lived_home(lived, tmp_path) as it:
        await open_page(browser, it)

        def look() -> None:
            for page in PAGES:
                browser.run("location.hash = arguments[0]", f"#/{page}")
                browser.wait(lambda page=page: browser.driver.title.lower().replace(" ", "").startswith(page))
                browser.find("main")
                browser.settle()
                browser.wait(lambda: not browser.find_all("main .dots"))
                for width, height in SIZES:
                    browser.size(width, height)
                    overflow = browser.run("return document.documentElement.scrollWidth - window.innerWidth")
                    assert overflow <= 0, (page, width)
                    if width in THEMES:
                        browser.dark(THEMES[width])
                        assert browser.serious_findings() == [], (page, width)
                        browser.screenshot(f"{page}-{width}")
                browser.dark(False)
            assert browser.complaints() == []

        await in_browser(look)


async def test_hostile_names_and_lists_run_nothing(tmp_path: Path, browser: Browser) -> None:
    async with run_web_api(tmp_path) as it:
        for hostile in ("<script>document.title='run'</script>", '"><img src=x onerror=alert(1)>'):
            await command(it, "todo", "add", hostile)
            await it.socket.say(hostile, "thread:x")
            await it.wait_idle()
        await open_page(browser, it, "#/today")

        def look() -> None:
            for page in PAGES:
                browser.run("location.hash = arguments[0]", f"#/{page}")
                browser.wait(lambda page=page: browser.driver.title.lower().replace(" ", "").startswith(page))
                browser.settle()
                assert browser.find_all("nav script, #page script, #page img, #page [onerror]") == []
            assert browser.complaints() == []

        await in_browser(look)


async def test_what_the_last_sleep_changed_is_shown_in_memory_and_taken_back(
    lived: Path, tmp_path: Path, browser: Browser
) -> None:
    async with lived_home(lived, tmp_path) as it:
        await open_page(browser, it, "#/memory/profiles")

        def look() -> None:
            browser.find("main h3", "Ada")
            browser.find("main li", "Lisbon")
            browser.screenshot("memory-profiles")
            browser.click("main h3 a", "Ada")
            browser.find("main h2", "Lisbon")
            browser.find("main svg text", "Lisbon")
            browser.screenshot("memory-connections")
            assert browser.serious_findings() == []
            browser.click("main li a", SAID[0])
            browser.find(".quote", SAID[0])
            browser.run("location.hash = arguments[0]", "#/memory/profiles")
            browser.click("main .tabs button", "Current")
            browser.click("main summary", "What the last sleep changed")
            browser.find("main ins", SAID[0])
            browser.click(".change:nth-of-type(1) button", "Accept")
            browser.find(".change:nth-of-type(1) .good", "Accepted")
            browser.click(".change:nth-of-type(2) button", "Undo")
            browser.wait(lambda: len(browser.find_all(".last-sleep .change a")) == 1)
            browser.wait(lambda: len(browser.find_all(".memories li")) == 1)
            browser.screenshot("memory-changes")
            browser.click("main button", "Undo it all")
            browser.wait(browser.has_question)
            browser.driver.switch_to.alert.accept()
            browser.wait(lambda: not browser.find_all("main .last-sleep"))
            assert browser.complaints() == []

        await in_browser(look)
        assert await command(it, "memory", "list") == []


async def test_a_compaction_opens_with_its_plan_and_originals_and_is_undone(tmp_path: Path, browser: Browser) -> None:
    async with run_web_api(tmp_path, "Noted.", CONTEXT__MAX_CONTEXT_TOKENS="30000") as it:
        for n in range(6):
            await it.socket.say(f"{n}: {LONG}")
            await it.wait_idle()
        await open_page(browser, it, "#/context")

        def look() -> None:
            browser.click("main button", "Compact now")
            browser.click("main .compaction summary", "#1")
            browser.click("main .compaction button", "Show the plan and the check")
            browser.find("main .compaction li", "made from the original messages")
            browser.click("main .compaction button", "Show the originals")
            browser.find("main .compaction .columns", "harbour of Bergen")
            browser.find("main h2", "Size over time")
            browser.find(".plot canvas")
            browser.screenshot("compaction")
            browser.click("main .compaction button", "Undo")
            browser.find("main .compaction summary", "undone")
            assert browser.complaints() == [], browser.text()

        await in_browser(look)
        assert {it["state"] for it in (await it.socket.get("/v1/compactions"))["compactions"]} == {"undone"}


async def test_settings_are_shown_with_what_they_mean_and_changed_through_their_checks(
    tmp_path: Path, browser: Browser
) -> None:
    async with run_web_api(tmp_path) as it:
        await open_page(browser, it, "#/settings")

        def look() -> None:
            browser.type("main input[type=search]", "budget.daily_usd")
            browser.find("main details p", "The most that models may cost.")
            browser.find("main li", "Allowed")
            browser.click("main li button", "Change")
            browser.run("document.querySelector('main li input').select()")
            browser.type("main li input", "lots")
            browser.click("main li button", "Save")
            browser.find("main li .problem", "budget.daily_usd")
            assert not (tmp_path / "config.toml").exists()
            browser.run("document.querySelector('main li input').select()")
            browser.type("main li input", "$3")
            browser.click("main li button", "Save")
            browser.find("main li", "config.toml")
            browser.screenshot("settings")
            assert "ERR_" not in str(browser.complaints())

        await in_browser(look)
        assert "daily_usd = 3" in (tmp_path / "config.toml").read_text()
        await it.app.runtime.wait_until_idle()


async def test_a_first_run_is_set_up_in_the_page_as_the_command_does_it(tmp_path: Path, browser: Browser) -> None:
    async with run_web_api(tmp_path) as it:
        await open_page(browser, it, "#/setup")

        def look() -> None:
            # Which one `model.provider = "auto"` uses is not known; a first choice is made.
            assert browser.find("main input[value=anthropic]").is_selected()
            browser.click("main input[value=offline]")
            browser.click("main button", "Use offline mode")
            browser.find("main .said-by-step", "no language model")
            browser.run("document.querySelectorAll('main .field input')[0].select()")
            browser.type("main .field input", "Ruth")
            browser.click("main section:nth-of-type(2) button", "Save")
            browser.find("main section:nth-of-type(2) .said-by-step", "PERSONA.md")
            browser.run("document.querySelectorAll('main section:nth-of-type(4) input')[0].select()")
            browser.type("main section:nth-of-type(4) input", "lots")
            browser.click("main section:nth-of-type(4) button", "Save")
            refused = browser.find("main section:nth-of-type(4) .said-by-step", "Nothing was changed.")
            # The amount of a month is not taken for another try at that of a day.
            assert refused.text.count("does not fit here") == 1
            browser.type(".bridge-step input[type=password]", "no token")
            browser.click(".bridge-step button", "Try Telegram")
            browser.find(".bridge-step .problem, .bridge-step .said-by-step", "not a bot token")
            browser.screenshot("setup")
            assert "ERR_" not in str(browser.complaints())

        await in_browser(look)
        assert 'provider = "offline"' in (tmp_path / "config.toml").read_text()
        assert "Ruth" in (tmp_path / "PERSONA.md").read_text()


async def test_somebody_who_asks_is_let_in_and_what_is_wrong_is_mended_by_buttons(
    tmp_path: Path, browser: Browser
) -> None:
    bridge = RecordingBridge()
    async with run_web_api(tmp_path, bridges={"kept": bridge}) as it:
        assert bridge.inbound is not None
        await bridge.inbound.receive(InboundMessage("kept", "1", "77", "Hello?", target="77", sender_name="Ben"))
        (tmp_path / "script.db").chmod(0o644)
        await open_page(browser, it, "#/health")

        def look() -> None:
            browser.find(".waiting li", "Ben")
            browser.click(".waiting button", "Let in as a guest")
            browser.find(".people li", "Ben")
            browser.click("main button", "Check every part")
            browser.find(".findings li", "permissions")
            browser.click("main button", "Fix what is safe to fix")
            browser.find(".findings .good")
            browser.screenshot("health-checks")
            assert browser.complaints() == []

        await in_browser(look)
        assert (tmp_path / "script.db").stat().st_mode & 0o077 == 0
        (person,) = (await command(it, "people", "list"))["people"]
        assert (person["name"], person["role"]) == ("Ben", "guest")


async def test_spending_is_shown_by_part_of_the_prompt(lived: Path, tmp_path: Path, browser: Browser) -> None:
    async with lived_home(lived, tmp_path) as it:
        await open_page(browser, it, "#/spending")

        def look() -> None:
            browser.click("main .tabs button", "Part of the prompt")
            browser.wait(lambda: "No model was asked" in browser.text(), browser.text())
            assert browser.complaints() == []

        await in_browser(look)
