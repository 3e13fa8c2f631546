"""`python -m tests.page_pictures`: the pictures of the page in the README, of a home that is made for them.

`--all FOLDER` takes one of every page instead, light and dark, for a telephone and for a screen.
"""

from __future__ import annotations

import asyncio
import io
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from PIL import Image

from assistant.core.messages import ToolCall
from tests.support.browser import Browser, in_browser, open_page, run_browser
from tests.support.scripted import SteppingClock
from tests.support.web_api import LiveApi, run_web_api

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
PAGES = ("talk", "today", "memory", "memory/profiles", "context", "sleep", "spending", "health", "settings", "setup")
_COLOURS = 128
_DAYS = (
    (
        4,
        (
            (
                "My sister Ines moved to Bergen in March. She works at the aquarium.",
                "Bergen it is. I will remember.",
            ),
            ("I am allergic to walnuts.", "Noted: no walnuts in any recipe."),
        ),
    ),
    (
        2,
        (
            ("The boat is called Havgasse. The mooring is paid until October.", "Good to know."),
            ("My dentist is Dr. Lund in Parkgata 4.", "I have kept that."),
        ),
    ),
)
_PLAN = (
    "Ines is free from Friday on, and the **ferry** still has a cabin:\n\n"
    "| Day | What | Cost |\n|---|---|---|\n| Fri | Ferry to Bergen, 18:30 | 64 € |\n"
    "| Sat | Aquarium, then dinner with Ines | 40 € |\n| Sun | Back by train, 10:05 | 52 € |\n\n"
    "I left walnuts out of the dinner. Shall I put the ferry into your reminders?"
)


@asynccontextmanager
async def seeded_home(home: Path) -> AsyncIterator[LiveApi]:
    """Some days of a life, slept over; a conversation of today."""
    replies = [reply for _, said in _DAYS for _, reply in said]
    script = [*replies, ToolCall("c1", "search_memory", {"query": "Ines Bergen"}), _PLAN]
    async with run_web_api(home, *script) as it:
        clock = it.app.base.clock
        assert isinstance(clock, SteppingClock)
        today = datetime.now(UTC).replace(hour=8, minute=40, second=0)
        for days, said in _DAYS:
            clock.now = today - timedelta(days=days)
            for text, _ in said:
                await it.socket.say(text)
                await it.wait_idle()
            await command(it, "sleep")
        clock.now = today
        for argv in (
            ("remind", "add", "call", "the", "dentist", "--at", f"{today + timedelta(days=1):%Y-%m-%d} 09:00"),
            ("todo", "add", "buy", "lamp", "oil"),
        ):
            await command(it, *argv)
        await it.socket.say("Plan a weekend with Ines for me, please.")
        await it.wait_idle()
        await it.app.maintenance.index_new_messages()
        yield it


async def command(it: LiveApi, *argv: str) -> Any:
    answer = await it.socket.request("POST", "/v1/commands", json={"argv": list(argv)}, timeout=120)
    assert answer.status_code == 200, answer.text
    return answer.json()["value"]


def show(browser: Browser, page: str, width: int, height: int, *, dark: bool = False) -> None:
    browser.size(width, height)
    browser.dark(dark)
    browser.run("location.hash = arguments[0]", f"#/{page}")
    browser.find("main")
    browser.settle()
    browser.wait(lambda: not browser.find_all("main .dots"))


def take(browser: Browser, file: Path) -> None:
    """In few colours: a page has no more."""
    picture = Image.open(io.BytesIO(browser.driver.get_screenshot_as_png()))
    file.parent.mkdir(parents=True, exist_ok=True)
    picture.convert("RGB").quantize(_COLOURS).save(file, optimize=True)


async def main(everything: Path | None) -> None:
    with tempfile.TemporaryDirectory() as folder, run_browser() as browser:
        async with seeded_home(Path(folder) / "home") as it:
            await open_page(browser, it)
            if everything is None:
                for page in ("talk", "memory"):
                    await in_browser(show, browser, page, 1120, 700)
                    await in_browser(take, browser, PICTURES / f"{page}.png")
                return
            for page in PAGES:
                for width, height, dark in ((1280, 900, False), (360, 780, True)):
                    await in_browser(lambda p=page, w=width, h=height, d=dark: show(browser, p, w, h, dark=d))
                    await in_browser(take, browser, everything / f"{page.replace('/', '-')}-{width}.png")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[2]) if sys.argv[1:2] == ["--all"] else None))
