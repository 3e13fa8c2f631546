"""A headless Chromium (Debian's package, by Debian's driver) that looks at the page of a running app, in threads beside
the event loop."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from selenium.common.exceptions import NoAlertPresentException, StaleElementReferenceException, TimeoutException
from selenium.webdriver import Chrome, ChromeOptions, ChromeService
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from tests.support.web_api import LiveApi

T = TypeVar("T")


@lru_cache(maxsize=1)
def _axe() -> str:
    """axe-core, as a package of Python has it."""
    return (files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")


# For looking at afterwards, where SCREENSHOTS=1 asks for them; ignored by git.
SCREENSHOTS = Path(__file__).parents[2] / ".screenshots" if os.environ.get("SCREENSHOTS") else None
_SECONDS = 90
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.2  # seconds
_ENDED = re.compile(r"net::ERR_(?:CONNECTION_|INCOMPLETE_CHUNKED|EMPTY_RESPONSE)")


class Browser:
    def __init__(self, driver: Chrome) -> None:
        self.driver = driver

    def open(self, url: str) -> None:
        self.driver.get(url)

    def wait(self, condition: Callable[[], T], what: str = "") -> T:
        """Until it gives something true. Asking takes the browser as much as what is waited for: it is asked ever less
        often."""
        ends, pause = time.monotonic() + _SECONDS, _FIRST_PAUSE
        while not (found := condition()):
            if time.monotonic() > ends:
                raise TimeoutException(what)
            time.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE)
        return found

    def find(self, selector: str, text: str = "") -> WebElement:
        """The first element that has the text, once there is one."""

        def found() -> WebElement | None:
            script = (
                "return [...document.querySelectorAll(arguments[0])].find(it => it.textContent.includes(arguments[1]))"
            )
            element: WebElement | None = self.driver.execute_script(script, selector, text)
            return element

        try:
            element = self.wait(found)
        except TimeoutException:
            element = None
        assert element is not None, f"no {selector} with {text!r}; there is: {self.text()[:2000]}"
        return element

    def find_all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self) -> str:
        return str(self.driver.execute_script("return document.body ? document.body.innerText : ''"))

    def click(self, selector: str, text: str = "") -> None:
        self.find(selector, text)
        script = (
            "const it = [...document.querySelectorAll(arguments[0])].find(it => it.textContent.includes(arguments[1]));"
            "it?.scrollIntoView({block: 'center'}); setTimeout(() => it?.click()); return Boolean(it)"
        )
        # What is shown again meanwhile is another element: it is looked up where it is pressed.
        self.wait(lambda: self.driver.execute_script(script, selector, text))

    def type(self, selector: str, text: str) -> None:
        def typed() -> bool:
            try:
                self.find(selector).send_keys(text)
            except StaleElementReferenceException:
                return False
            return True

        self.wait(typed)

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def complaints(self) -> list[str]:
        """What the browser refused or failed at: a broken rule of the page's policy, a fault of its scripts."""
        told = [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]
        # An app that has ended is not at fault.
        return [message for message in told if not _ENDED.search(message)]

    def settle(self, quiet_milliseconds: int = 150) -> None:
        """Until nothing that the page asked for has come for a while."""
        script = (
            "const [quiet, done] = arguments; let timer; const idle = () => { clearTimeout(timer); "
            "timer = setTimeout(() => { seen.disconnect(); done() }, quiet) }; "
            "const seen = new PerformanceObserver(idle); seen.observe({type: 'resource'}); idle()"
        )
        self.driver.execute_async_script(script, quiet_milliseconds)

    def hold_answers(self, pattern: str) -> None:
        """Keep what the page asks for at addresses with this pattern from it, until `release_answers`."""
        self.driver.execute_script(
            "window.held = []; window.askedFor ??= window.fetch; const held = new RegExp(arguments[0]);"
            "window.fetch = async (...all) => { const answer = await askedFor(...all);"
            "if (held.test(all[0])) await new Promise(go => window.held.push(go)); return answer }",
            pattern,
        )

    def held_answers(self) -> int:
        """How many wait now."""
        return int(self.driver.execute_script("return window.held.length"))

    def release_answers(self) -> None:
        self.driver.execute_script("window.fetch = askedFor; window.held.splice(0).forEach(go => go())")

    def has_question(self) -> bool:
        """Whether the page asks for a yes."""
        try:
            return bool(self.driver.switch_to.alert.text)
        except NoAlertPresentException:
            return False

    def serious_findings(self) -> list[str]:
        """What axe-core finds that keeps people from using the page."""
        if not self.driver.execute_script("return Boolean(window.axe)"):
            self.driver.execute_script(_axe())
        found = self.driver.execute_async_script(
            "const done = arguments[0];axe.run(document, {resultTypes: ['violations']}).then(it => done(it.violations))"
        )
        return [
            f"{it['id']}: {it['nodes'][0]['html'][:150]} {it['nodes'][0]['failureSummary'][:200]}"
            for it in found
            if it["impact"] in ("serious", "critical")
        ]

    def size(self, width: int, height: int) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def dark(self, on: bool) -> None:
        features = [{"name": "prefers-color-scheme", "value": "dark" if on else "light"}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def zone(self, name: str) -> None:
        """The zone of the reader, for what is loaded from now on; "" is that of the machine."""
        self.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": name})

    def screenshot(self, name: str) -> None:
        if SCREENSHOTS is not None:
            SCREENSHOTS.mkdir(exist_ok=True)
            self.driver.save_screenshot(str(SCREENSHOTS / f"{name}.png"))


@contextmanager
def run_browser() -> Iterator[Browser]:
    options = ChromeOptions()
    options.binary_location = shutil.which("chromium") or "chromium"
    for argument in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,900"):
        options.add_argument(argument)
    options.add_argument("--use-fake-ui-for-media-stream")
    options.add_argument("--use-fake-device-for-media-stream")
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Chrome(options=options, service=ChromeService(shutil.which("chromedriver") or "chromedriver"))
    try:
        yield Browser(driver)
    finally:
        driver.quit()


async def in_browser(look: Callable[..., T], *arguments: Any) -> T:
    """Run what a person does in the browser while the app goes on."""
    return await asyncio.to_thread(look, *arguments)


async def open_page(browser: Browser, it: LiveApi, where: str = "") -> None:
    """The page, logged in by a link as `assistant open` makes it; `where` as in "#/memory"."""
    answer = await it.socket.request("POST", "/v1/commands", json={"argv": ["web", "link"]}, timeout=60)
    url = answer.json()["value"]["url"]

    def look() -> None:
        open_link(browser, url)
        if where:
            browser.run("location.hash = arguments[0]", where)

    await in_browser(look)


def open_link(browser: Browser, url: str) -> None:
    """The page, by a link that logs in, as in a browser that was never here."""
    browser.size(1280, 900)
    browser.driver.delete_all_cookies()
    browser.open("about:blank")
    browser.driver.execute_cdp_cmd("Page.resetNavigationHistory", {})
    browser.complaints()  # of the page of an earlier app
    browser.open(url)
    browser.find("main")
