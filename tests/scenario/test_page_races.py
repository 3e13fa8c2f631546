"""The page in Chromium while something that it asked for is under way: nothing is lost, doubled, or shown where it does
not belong."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from assistant.web.page_files import PAGE_FOLDER
from tests.support.browser import Browser, in_browser, open_page
from tests.support.scripted import SteppingClock
from tests.support.web_api import free_port, run_web_api


def words(browser: Browser) -> list[str]:
    """What a conversation shows, first lines of what was said and answered."""
    return [
        str(text)
        for text in browser.run("return [...document.querySelectorAll('.entry .words')].map(it => it.innerText)")
    ]


async def test_what_was_asked_for_one_conversation_does_not_come_into_another(tmp_path: Path, browser: Browser) -> None:
    async with run_web_api(tmp_path, "Yes.") as it:
        await open_page(browser, it)

        def look() -> None:
            browser.type("textarea", "In main\n")
            browser.find(".entry.assistant:not(.writing)", "Yes.")
            browser.run("location.hash = '#/talk/thread:one'")
            browser.find("p", "Say something.")
            browser.hold_answers("/messages")
            browser.run("location.hash = '#/talk/main'")
            browser.wait(browser.held_answers)
            browser.type("textarea", "Half a th")
            browser.run("location.hash = '#/talk/thread:two'")
            browser.find("main[aria-label='Conversation two']")
            browser.wait(lambda: browser.held_answers() == 2)
            browser.release_answers()
            browser.find("p", "Say something.")
            assert words(browser) == []
            assert browser.find("textarea").get_property("value") == ""
            # What was typed is there where it was typed, also after another page.
            browser.run("location.hash = '#/health'")
            browser.find("h1", "Health")
            browser.run("location.hash = '#/talk/main'")
            browser.wait(lambda: words(browser) == ["In main", "Yes."])
            assert browser.find("textarea").get_property("value") == "Half a th"
            # What is no conversation is told, and is not asked for again and again.
            browser.run("location.hash = '#/talk/nope:x'")
            browser.find(".problem", "conversations of others")
            assert browser.find_all(".lost, main .dots") == []
            # A name in any script makes one.
            browser.type(".sessions form input", "Küche, Поездка\n")
            browser.find("main[aria-label='Conversation küche-поездка'] p", "Say something.")

        await in_browser(look)


async def test_what_was_undone_elsewhere_goes_and_a_command_keeps_its_place(tmp_path: Path, browser: Browser) -> None:
    async with run_web_api(tmp_path, "First.", "Second.", "Third.") as it:
        await open_page(browser, it)

        def begin() -> None:
            browser.type("textarea", "One\n")
            browser.find(".entry.assistant:not(.writing)", "First.")
            browser.type("textarea", "/todo list\n")
            browser.find(".entry.command", "Nothing is on the list.")
            browser.type("textarea", "Two\n")
            browser.find(".entry.assistant:not(.writing)", "Second.")
            assert words(browser) == ["One", "First.", "Nothing is on the list.", "Two", "Second."]

        def go_on() -> None:
            # At once, and not with the next message.
            browser.wait(lambda: words(browser) == ["One", "First.", "Nothing is on the list."])
            browser.type("textarea", "Three\n")
            browser.find(".entry.assistant:not(.writing)", "Third.")
            browser.wait(lambda: words(browser) == ["One", "First.", "Nothing is on the list.", "Three", "Third."])

        await in_browser(begin)
        await it.socket.request("POST", "/v1/commands", json={"argv": ["undo"]})
        await in_browser(go_on)
        await it.socket.request("POST", "/v1/commands", json={"argv": ["forget", "Three", "--yes"]})

        def forgotten() -> None:
            browser.find(".entry.user", "(forgotten)")
            # It cannot be changed and asked again.
            assert "Edit" not in [it.text for it in browser.find_all(".entry button")]

        await in_browser(forgotten)


async def test_what_came_while_a_machine_slept_is_shown_when_it_is_looked_at_again(
    tmp_path: Path, browser: Browser
) -> None:
    async with run_web_api(tmp_path, "First.", "Second.") as it:
        await open_page(browser, it)
        await in_browser(lambda: (browser.type("textarea", "One\n"), browser.find(".entry.assistant", "First.")))
        await it.wait_idle()
        terminals = it.app.terminal._terminals

        def look(hidden: str, later: int = 0) -> None:
            browser.run(
                f"Object.defineProperty(document, 'hidden', {{value: {hidden}, configurable: true}});"
                f"const now = Date.now(); Date.now = () => now + {later};"
                "document.dispatchEvent(new Event('visibilitychange'))"
            )

        async def is_anew(before: object) -> None:
            await in_browser(lambda: browser.wait(lambda: [one for one in terminals if one is not before]))

        (before,) = terminals
        # The connection is dead, and nobody has said so: no event comes by it.
        await in_browser(look, "true")
        await in_browser(look, "false", 61_000)
        await is_anew(before)
        (before,) = [one for one in terminals if one is not before]
        await in_browser(lambda: browser.run("dispatchEvent(new Event('online'))"))
        await is_anew(before)
        await in_browser(lambda: (browser.type("textarea", "Two\n"), browser.find(".entry.assistant", "Second.")))
        await in_browser(lambda: browser.wait(lambda: words(browser) == ["One", "First.", "Two", "Second."]))


# The connection ends after what the page sends was accepted, when `lose` is called.
_LOSE = """
window.whole = fetch;
window.fetch = async (...all) => {
  const answer = await whole(...all);
  if (all[1]?.method !== "POST" || !/messages/.test(all[0])) return answer;
  await new Promise((go) => (window.lose = go));
  throw new Error("lost");
}"""


async def test_a_message_whose_answer_was_lost_is_sent_once_and_what_was_typed_meanwhile_stays(
    tmp_path: Path, browser: Browser
) -> None:
    async with run_web_api(tmp_path, "Yes.", "Again.") as it:
        await open_page(browser, it)

        def look() -> None:
            browser.find("p", "Say something.")
            browser.run(_LOSE)
            browser.type("textarea", "Buy oil\n")
            browser.wait(lambda: browser.run("return Boolean(window.lose)"))
            browser.find(".entry.assistant:not(.writing)", "Yes.")
            browser.settle()
            assert words(browser) == ["Buy oil", "Yes."]
            browser.run("window.fetch = whole; lose()")
            browser.find("form .problem", "cannot be reached")
            browser.find(".entry.assistant:not(.writing)", "Yes.")
            browser.type("textarea", "\n")
            browser.wait(lambda: browser.find("textarea").get_property("value") == "")
            browser.wait(lambda: words(browser) == ["Buy oil", "Yes."])
            browser.run(f"{_LOSE}; delete window.lose")
            browser.type("textarea", "Buy oil\n")
            browser.wait(lambda: browser.run("return Boolean(window.lose)"))
            browser.type("textarea", "and milk")
            browser.run("window.fetch = whole; lose()")
            browser.wait(lambda: browser.find("textarea").get_property("value") == "Buy oil\nand milk")

        await in_browser(look)
        await it.wait_idle()
        stored = (await it.socket.request("GET", "/v1/messages")).json()["messages"]
        assert [message["text"] for message in stored] == ["Buy oil", "Yes.", "Buy oil", "Again."]


async def test_the_second_press_of_a_double_click_does_nothing_to_what_moved_there(
    tmp_path: Path, browser: Browser
) -> None:
    async with run_web_api(tmp_path) as it:
        for text in ("one", "two", "three"):
            await it.socket.request("POST", "/v1/commands", json={"argv": ["todo", "add", text]})
        await open_page(browser, it, "#/today")
        press = (
            "document.querySelector('li.row button')"
            ".dispatchEvent(new MouseEvent('click', {bubbles: true, detail: arguments[0]}))"
        )

        def look() -> None:
            browser.find("li button", "Done")
            browser.run(press, 1)
            browser.wait(lambda: len(browser.find_all("li.row")) == 2)
            browser.run(press, 2)
            browser.run(press, 1)
            browser.wait(lambda: len(browser.find_all("li.row")) == 1)

        await in_browser(look)
        assert [todo.text for todo in it.app.stores.todos.list_todos("owner")] == ["three"]


async def test_a_time_that_is_refused_stays_in_its_field(tmp_path: Path, browser: Browser) -> None:
    async with run_web_api(tmp_path) as it:
        argv = ["remind", "add", "2099-03-03 at 9", "call", "Ada"]
        await it.socket.request("POST", "/v1/commands", json={"argv": argv})
        await open_page(browser, it, "#/today/2099-03-03")

        def look() -> None:
            browser.click("button", "Move")
            field = "const it = document.querySelector('input[type=datetime-local]');"
            browser.run(
                f"{field} it.value = '2020-01-01T09:00'; it.dispatchEvent(new Event('input', {{bubbles: true}}))"
            )
            browser.click("form button.primary", "Move")
            browser.find("li form .problem", "past")
            assert browser.run(f"{field} return it.value") == "2020-01-01T09:00"

        await in_browser(look)


async def test_what_an_answer_asks_stays_when_stored_messages_come_after_it(tmp_path: Path, browser: Browser) -> None:
    module = (PAGE_FOLDER / "conversation.js").read_text(encoding="utf-8").replace("export ", "")
    async with run_web_api(tmp_path) as it:
        await open_page(browser, it)

        def look() -> None:
            delivered = {"key": "k", "message_id": 7, "kind": "reply", "html": "<p>Pay Bob?</p>", "body": "Pay Bob?"}
            shown = browser.driver.execute_async_script(
                f"""const [delivered, done] = arguments;
                {module}
                const stored = [{{ key: "m7", id: 7, role: "assistant", text: "It is a note.", steps: [] }}];
                const entries = merge(withDelivery([], delivered, []), stored);
                done(entries.map((entry) => [entry.id, entry.text, entry.buttons]));""",
                {**delivered, "buttons": [{"label": "Done", "command": "/remind done 1"}]},
            )
            assert shown == [[7, "Pay Bob?", [{"label": "Done", "command": "/remind done 1"}]]]
            kept = browser.driver.execute_async_script(
                f"""const done = arguments[0];
                {module}
                const notice = (key) => ({{ key, message_id: null, kind: "notice", html: "", body: key }});
                const sent = withSent([], "s", "Hello", []);
                const empty = {{ id: 1, role: "user", kind: "message", text: "", html: "", tool_calls: [], media: [] }};
                const forgotten = entriesOf([empty]);
                const entries = withDelivery(withDelivery(sent, notice("one"), []), notice("two"), []);
                done(merge(entries, forgotten).map((entry) => entry.text));"""
            )
            assert kept == ["Hello", "one", "two", "(forgotten)"]

        await in_browser(look)


async def test_a_recording_stays_when_messages_that_were_read_before_it_come_after_it(
    tmp_path: Path, browser: Browser
) -> None:
    module = (PAGE_FOLDER / "conversation.js").read_text(encoding="utf-8").replace("export ", "")
    async with run_web_api(tmp_path) as it:
        await open_page(browser, it)

        def look() -> None:
            shown = browser.driver.execute_async_script(
                f"""const done = arguments[0];
                {module}
                const reply = {{ key: "turn:1", message_id: 7, kind: "reply", html: "<p>Yes.</p>", body: "Yes." }};
                const recording = {{ key: "spoken:7", message_id: 7, kind: "reply", html: "", body: "" }};
                const stored = [{{ key: "m7", id: 7, role: "assistant", text: "Yes.", spoken: false, steps: [] }}];
                const heard = withDelivery(withDelivery([], reply, []), recording, []);
                done(merge(heard, stored).map((entry) => [entry.id, entry.text, entry.spoken]));"""
            )
            assert shown == [[7, "Yes.", True]]

        await in_browser(look)


async def test_a_page_that_could_not_be_loaded_is_loaded_when_the_assistant_is_back(
    tmp_path: Path, browser: Browser
) -> None:
    port = str(free_port())
    async with run_web_api(tmp_path, WEB__PORT=port) as it:
        await open_page(browser, it)

    def away() -> None:
        browser.run("location.hash = '#/settings'")
        browser.find(".problem", "cannot be reached")

    await in_browser(away)
    async with run_web_api(tmp_path, WEB__PORT=port):
        await in_browser(
            lambda: browser.wait(lambda: browser.find_all("main details") and not browser.find_all(".problem"))
        )


async def test_a_reminder_comes_with_buttons_and_is_still_there_when_the_page_is_loaded_again(
    tmp_path: Path, browser: Browser
) -> None:
    async with run_web_api(tmp_path, "Hello to you.") as it:
        assert isinstance(it.app.base.clock, SteppingClock)
        due = it.app.base.clock.now + timedelta(minutes=2)
        add = ["remind", "add", "call", "Ada", "--at", f"{due:%Y-%m-%d %H:%M}"]
        assert (await it.socket.request("POST", "/v1/commands", json={"argv": add})).status_code == 200
        await open_page(browser, it)

        def answered() -> None:
            browser.type("textarea", "Hello.")
            browser.click("button", "Send")
            browser.find(".entry.assistant", "Hello to you.")

        def comes() -> None:
            browser.find(".buttons button", "Done")
            entry = browser.find(".entry", "Reminder: call Ada")
            assert "/remind" not in entry.text and "Try again" not in entry.text
            assert "Try again" in browser.find(".entry.assistant", "Hello to you.").text
            browser.run("location.reload()")
            assert browser.find(".entry.reminder", "Reminder: call Ada").text.startswith("Reminder")
            assert "asks nothing of you" not in browser.text()
            assert browser.complaints() == []

        await in_browser(answered)
        it.app.base.clock.now = due
        await it.app.agenda_scheduler.fire_due()
        await in_browser(comes)
