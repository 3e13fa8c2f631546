"""The page without a mouse: each flow by Tab, Enter, Escape and arrows alone, with the focus in sight.

Keys are pressed, as a keyboard does; nothing is clicked, and nothing is focused by a script. What has the focus is
found by going on with Tab, so what Tab does not reach is not used.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from assistant.core.messages import ToolCall
from tests.support.browser import Browser, in_browser, open_page
from tests.support.web_api import LiveApi, run_web_api

LONG = "The boat lies in the harbour of Bergen, and the mooring is paid until October. " * 40
_MOST_TABS = 150
_FOCUS = """
const it = document.activeElement, style = getComputedStyle(it);
const line = it.closest('.line');
const seen = line ? getComputedStyle(line).borderColor !== getComputedStyle(document.body).color
  : style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
const box = it.getBoundingClientRect();
return [it.matches(arguments[0]) && it.textContent.includes(arguments[1]), seen && box.width > 0,
  `${it.tagName} ${it.ariaLabel ?? ''} ${it.textContent.slice(0, 40)}`]
"""


async def command(it: LiveApi, *argv: str) -> None:
    answer = await it.socket.request("POST", "/v1/commands", json={"argv": list(argv)}, timeout=60)
    assert answer.status_code == 200, answer.text


def press(browser: Browser, *keys: str) -> None:
    ActionChains(browser.driver, duration=0).send_keys(*keys).perform()


def has_focus(browser: Browser, selector: str) -> None:
    """Wait until it was given the focus, without a Tab."""
    browser.wait(lambda: browser.run("return document.activeElement.matches(arguments[0])", selector), selector)


def clear(browser: Browser) -> None:
    ActionChains(browser.driver, duration=0).key_down(Keys.CONTROL).send_keys("a").key_up(Keys.CONTROL).perform()


def reach(browser: Browser, selector: str, text: str = "", *, backwards: bool = False) -> None:
    """Tab until what is meant has the focus; that it has it must be seen."""
    browser.find(selector, text)
    passed = []
    for _ in range(_MOST_TABS):
        is_there, is_seen, name = browser.run(_FOCUS, selector, text)
        if is_there:
            assert is_seen, f"the focus on {name} is not seen"
            return
        passed.append(name)
        if backwards:
            keys = ActionChains(browser.driver, duration=0)
            keys.key_down(Keys.SHIFT).send_keys(Keys.TAB).key_up(Keys.SHIFT).perform()
        else:
            press(browser, Keys.TAB)
    raise AssertionError(f"Tab does not reach {selector} {text!r}; it passed {passed}")


def use(browser: Browser, selector: str, text: str = "", *, backwards: bool = False) -> None:
    reach(browser, selector, text, backwards=backwards)
    press(browser, Keys.ENTER)


def go_to(browser: Browser, page: str) -> None:
    use(browser, "nav li a", page, backwards=True)
    browser.wait(lambda: browser.run("return document.querySelector('nav [aria-current]')?.textContent") == page)
    browser.find("main")


def agree(browser: Browser) -> None:
    browser.wait(browser.has_question)
    browser.driver.switch_to.alert.accept()  # Enter, in a browser that has a window


async def test_a_conversation_is_led_by_keyboard_alone(tmp_path: Path, browser: Browser) -> None:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "notes.txt").write_text("Set a reminder: pay Bob tomorrow at 9")
    read = ToolCall("r1", "read_file", {"path": "notes.txt"})
    pay = ToolCall("p1", "set_reminder", {"text": "pay Bob", "when": "tomorrow at 9"})
    said = ("A heron is a bird.", "It stands in water.", "It eats fish.", read, pay, "It is a note.")
    async with run_web_api(tmp_path, *said) as it:
        await open_page(browser, it)

        def look() -> None:
            reach(browser, "textarea")
            press(browser, "What is teh heron?", Keys.ENTER)
            browser.find(".entry.assistant", "A heron is a bird.")
            use(browser, ".entry.user button", "Edit", backwards=True)
            browser.wait(lambda: browser.find("textarea").get_property("value") == "What is teh heron?")
            reach(browser, "textarea")
            clear(browser)
            press(browser, "Where is the heron?", Keys.ENTER)
            browser.find(".entry.assistant", "It stands in water.")
            use(browser, ".entry.assistant button", "Try again", backwards=True)
            browser.find(".entry.assistant", "It eats fish.")
            reach(browser, "textarea")
            press(browser, "/t")
            browser.find(".offered")
            press(browser, Keys.ARROW_DOWN, Keys.ARROW_UP, Keys.ESCAPE)
            browser.wait(lambda: not browser.find_all(".offered"))
            press(browser, "odo a")
            browser.find(".offered [aria-selected=true]", "/todo add")
            press(browser, Keys.TAB, "buy oil", Keys.ENTER)
            browser.find(".entry.command", "buy oil")
            press(browser, "What does notes.txt say?", Keys.ENTER)
            browser.find("main section li", "pay Bob")
            use(browser, "main section li button", "Yes", backwards=True)
            browser.wait(lambda: not browser.find_all("main section li"))

        def search() -> None:
            browser.size(768, 1000)
            use(browser, ".side-button button", "Conversations", backwards=True)
            has_focus(browser, ".sessions input")
            press(browser, Keys.ESCAPE)
            has_focus(browser, ".side-button button")
            press(browser, Keys.ENTER)
            has_focus(browser, ".sessions input")
            press(browser, "heron")
            use(browser, ".found a", "heron")
            browser.find(".entry.found", "heron")
            browser.size(1280, 900)
            assert browser.complaints() == []

        await in_browser(look)
        await it.app.maintenance.index_new_messages()
        await in_browser(search)
        assert "pay Bob" in [job.text for job in it.app.stores.jobs.list_waiting("owner", "reminder")]


def move_a_reminder(browser: Browser) -> None:
    browser.find("main .agenda li", "call Ada")
    use(browser, "button[aria-label='Move call Ada']")
    has_focus(browser, "input[type=datetime-local]")
    press(browser, Keys.ESCAPE)
    browser.wait(lambda: not browser.find_all("main input[type=datetime-local]"))
    use(browser, "button[aria-label='Move call Ada']")
    has_focus(browser, "input[type=datetime-local]")
    press(browser, Keys.ARROW_RIGHT, Keys.ARROW_UP)
    press(browser, Keys.ENTER)
    browser.wait(lambda: "call Ada" not in browser.text())
    use(browser, "main .tabs button", "Week", backwards=True)
    browser.find("[data-day='2099-03-04'] li", "call Ada")


def sleep_and_correct(browser: Browser) -> None:
    go_to(browser, "Sleep")
    use(browser, "main button", "Sleep now")
    browser.find("details summary", "done")
    go_to(browser, "Memory")
    use(browser, ".memories a", "Lisbon")
    use(browser, "main button", "Correct")
    has_focus(browser, "textarea")
    clear(browser)
    press(browser, "Ada lives in Porto.")
    use(browser, "main button", "Keep this instead")
    browser.find("main [role=status]", "Porto")
    use(browser, "main header a", "All memories", backwards=True)
    use(browser, ".memories a", "Porto")
    use(browser, "main button", "Forget")
    agree(browser)
    browser.find("main [role=status]")


def undo_what_a_sleep_changed(browser: Browser) -> None:
    use(browser, "main header a", "All memories", backwards=True)
    use(browser, ".last-sleep > summary")
    changed = len(browser.find_all(".change"))
    use(browser, ".change button", "Undo")
    browser.wait(lambda: len(browser.find_all(".change")) < changed)
    has_focus(browser, ".last-sleep button")
    use(browser, ".last-sleep button", "Undo it all")
    agree(browser)
    browser.wait(lambda: not browser.find_all(".last-sleep"))


def undo_a_compaction(browser: Browser) -> None:
    go_to(browser, "Context")
    use(browser, "main button", "Compact now")
    use(browser, ".compaction summary", "#1")
    use(browser, ".compaction button", "Show the originals")
    browser.find(".compaction .columns", "harbour of Bergen")
    use(browser, ".compaction button", "Undo")
    browser.find(".compaction summary", "undone")


def change_a_setting(browser: Browser) -> None:
    go_to(browser, "Settings")
    reach(browser, "main input[type=search]")
    press(browser, "budget.daily_usd")
    use(browser, "button[aria-label='Change budget.daily_usd']")
    has_focus(browser, "input[aria-label='budget.daily_usd']")
    clear(browser)
    press(browser, "3", Keys.ENTER)
    browser.find("main li", "config.toml")
    assert "ERR_" not in str(browser.complaints())


async def test_agenda_memory_sleep_compaction_and_settings_are_worked_by_keyboard_alone(
    tmp_path: Path, browser: Browser
) -> None:
    async with run_web_api(tmp_path, "Noted.", CONTEXT__MAX_CONTEXT_TOKENS="30000") as it:
        await it.socket.say("My sister Ada lives in Lisbon.")
        for n in range(6):
            await it.socket.say(f"{n}: {LONG}")
            await it.wait_idle()
        await command(it, "remind", "add", "call", "Ada", "--at", "2099-03-03 09:00")
        await open_page(browser, it, "#/today/2099-03-03")

        for flow in (
            move_a_reminder,
            sleep_and_correct,
            undo_what_a_sleep_changed,
            undo_a_compaction,
            change_a_setting,
        ):
            await in_browser(partial(flow, browser))
        assert "daily_usd = 3" in (tmp_path / "config.toml").read_text()
