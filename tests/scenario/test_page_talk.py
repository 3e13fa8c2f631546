"""Talk in the page, in a real browser: what a person sees and does in a conversation."""

from __future__ import annotations

import asyncio
from pathlib import Path

from assistant.core.bridge_api import TurnEvent
from assistant.core.messages import ToolCall
from tests.strict.behaviour import Held, ScriptedAnswer
from tests.strict.server import StrictServer
from tests.strict.speech import KEY, StrictSpeech
from tests.support.browser import Browser, in_browser, open_link, open_page
from tests.support.command_line import TIMEOUT_SECONDS, run_daemon, run_in_process
from tests.support.sounds import ogg_opus
from tests.support.web_api import LiveApi, free_port, run_web_api

ANSWER = (
    "Here is the **plan**:\n\n| Day | What |\n|---|---|\n| Friday | Dentist |\n\n"
    "```python\ndef area(r): return 3 * r ** 2\n```\n\nThe area is $A = \\pi r^2$."
)
HOSTILE = (
    "<script>document.title = 'run'</script><img src=http://elsewhere.example/a.png onerror=\"document.title='run'\">"
    "![a](http://elsewhere.example/b.png) [x](javascript:document.title='run') $\\text{<img src=x onerror=alert(1)>}$"
)


def loaded_from(browser: Browser) -> set[str]:
    """The hosts that the page asked for anything."""
    script = "return performance.getEntriesByType('resource').map(it => new URL(it.name).host)"
    return set(browser.run(script))


async def test_an_answer_is_shown_with_its_table_code_and_mathematics(tmp_path: Path, browser: Browser) -> None:
    async with run_web_api(tmp_path, ANSWER) as it:
        await open_page(browser, it)

        def look() -> None:
            browser.type("textarea", "What is on?\n")
            browser.find(".entry.user", "What is on?")
            browser.find(".entry.assistant td", "Dentist")
            browser.find(".entry.assistant .nf", "area")
            browser.find(".entry.assistant math")
            assert "login=" not in browser.driver.current_url
            assert browser.run("return history.length") <= 3
            browser.screenshot("talk")
            assert browser.complaints() == []

        await in_browser(look)


async def test_words_are_shown_as_they_are_written_and_steps_are_folded(tmp_path: Path, browser: Browser) -> None:
    async with run_web_api(tmp_path, ToolCall("c1", "current_time", {}), "It is nine.") as it:
        await open_page(browser, it)
        it.model.gate = asyncio.Event()

        def ask() -> None:
            browser.type("textarea", "What time is it?\n")
            browser.find(".entry.writing")

        def part() -> None:
            browser.find(".entry.writing strong", "half")
            # Whoever comes in the middle sees it from its beginning.
            browser.run("location.reload()")
            browser.find(".entry.writing strong", "half")
            browser.find(".entry.writing p", "One")

        def whole() -> None:
            browser.find(".entry.assistant:not(.writing)", "It is nine.")
            assert len(browser.find_all(".entry.assistant")) == 1
            browser.find(".steps summary", "Did: current time")

        await in_browser(ask)
        await it.model.called.wait()
        it.app.terminal.show(TurnEvent("delta", "main", "t00000001", {"text": "One\n\n**half"}), "")
        it.app.terminal.show(TurnEvent("delta", "main", "t00000001", {"text": "** done"}), "")
        await in_browser(part)
        it.app.terminal.show(TurnEvent("discard", "main", "t00000001", {}), "")
        it.model.gate.set()
        await in_browser(whole)
        stored = (await it.socket.get("/v1/messages"))["messages"]
        (result,) = [message["id"] for message in stored if message["role"] == "tool"]

        def place() -> None:
            # What a tool gave is found in the answer that was made of it.
            browser.run("location.hash = arguments[0]", f"#/talk/main/{result}")
            browser.find(".entry.found .steps[open]", "current time")

        await in_browser(place)


async def test_hostile_words_run_nothing_and_load_nothing_from_elsewhere(tmp_path: Path, browser: Browser) -> None:
    async with run_web_api(tmp_path, HOSTILE) as it:
        await open_page(browser, it)

        def look() -> None:
            browser.type("textarea", f"{HOSTILE}\n")
            browser.find(".entry.assistant", "<script>")
            browser.run("location.reload()")
            browser.find(".entry.assistant", "<script>")
            assert browser.find_all(".entry img, .entry script, .entry [onerror]") == []
            assert browser.driver.title == "Talk · Nocturne"
            assert loaded_from(browser) <= {f"127.0.0.1:{it.port}"}
            assert browser.complaints() == []

        await in_browser(look)


async def test_commands_are_completed_and_what_they_did_is_shown(tmp_path: Path, browser: Browser) -> None:
    async with run_web_api(tmp_path) as it:
        await open_page(browser, it)

        def look() -> None:
            browser.type("textarea", "/todo a")
            browser.find(".offered [aria-selected=true]", "/todo add")
            browser.type("textarea", "\t")
            browser.wait(lambda: browser.find("textarea").get_property("value") == "/todo add ")
            browser.type("textarea", "call Ada\n")
            browser.find(".entry.command", "call Ada")
            browser.screenshot("talk-command")
            assert browser.complaints() == []

        await in_browser(look)


async def test_two_tabs_and_a_telephone_show_the_same_and_nothing_twice(tmp_path: Path, browser: Browser) -> None:
    async with run_web_api(tmp_path, "First.", "Second.") as it:
        await open_page(browser, it)

        def look() -> None:
            first = browser.driver.current_window_handle
            browser.find("textarea")
            for width, height in ((1280, 900), (360, 780)):
                browser.driver.switch_to.new_window("tab")
                browser.open(f"http://127.0.0.1:{it.port}/")
                browser.size(width, height)
                browser.find("textarea")
            browser.type("textarea", "one\n")
            browser.find(".entry.assistant", "First.")
            browser.screenshot("talk-phone")
            browser.driver.switch_to.window(first)
            browser.find(".entry.user", "one")
            browser.find(".entry.assistant", "First.")
            browser.type("textarea", "two\n")
            browser.find(".entry.assistant", "Second.")
            browser.wait(lambda: len(browser.find_all(".entry")) == 4)
            for other in set(browser.driver.window_handles) - {first}:
                browser.driver.switch_to.window(other)
                browser.find(".entry.assistant", "Second.")
                browser.wait(lambda: len(browser.find_all(".entry")) == 4)
                browser.driver.close()
            browser.driver.switch_to.window(first)
            assert browser.complaints() == []

        await in_browser(look)


async def test_a_page_goes_on_after_a_restart_and_shows_nothing_twice(tmp_path: Path, browser: Browser) -> None:
    port = str(free_port())
    async with run_web_api(tmp_path, "Before.", WEB__PORT=port) as it:
        await open_page(browser, it)
        await in_browser(lambda: (browser.type("textarea", "one\n"), browser.find(".entry.assistant", "Before.")))

    def away() -> None:
        browser.find(".lost")
        browser.type("textarea", "two\n")
        browser.find("form .problem", "cannot be reached")
        # It is said once, and of nothing that is only asked for with it.
        assert not [it for it in browser.find_all("main h2") if it.text]

    await in_browser(away)
    async with run_web_api(tmp_path, "After.", WEB__PORT=port):

        def look() -> None:
            browser.wait(lambda: not browser.find_all(".lost, .problem"))
            browser.type("textarea", "\n")
            browser.find(".entry.assistant", "After.")
            assert len(browser.find_all(".entry")) == 4

        await in_browser(look)


async def test_what_was_said_is_found_and_the_place_is_shown(tmp_path: Path, browser: Browser) -> None:
    async with run_web_api(tmp_path, "Noted.") as it:
        for text in ("The heron stands at the pond.", "It rains.", "The coat is blue."):
            await it.socket.say(text)
            await it.wait_idle()
        await it.app.maintenance.index_new_messages()
        await open_page(browser, it)

        def look() -> None:
            browser.type(".sessions input[type=search]", "heron")
            browser.click(".found a", "heron")
            browser.find(".entry.found", "The heron stands at the pond.")
            browser.click("button", "Earlier messages")
            browser.wait(lambda: "Earlier messages" not in browser.text())
            # They would take back and ask again what was said last, which may not be shown here.
            assert not {"Edit", "Try again"} & {it.text for it in browser.find_all(".entry button")}
            assert browser.complaints() == []

        await in_browser(look)


async def test_of_a_long_text_that_was_pasted_the_beginning_is_shown_until_all_is_asked_for(
    tmp_path: Path, browser: Browser
) -> None:
    async with run_web_api(tmp_path, "Noted.") as it:
        await it.socket.say(f"begins {'word ' * 4_000}ends")
        await it.wait_idle()
        await open_page(browser, it)

        def look() -> None:
            shown = browser.find(".entry.user", "begins")
            assert len(shown.text) < 2_000 and "ends" not in shown.text
            browser.click(".entry.user button", "Show all of it")
            browser.find(".entry.user .words", "ends")
            browser.find(".entry.assistant", "Noted.")

        await in_browser(look)


async def test_a_picture_is_attached_sent_and_shown(tmp_path: Path, browser: Browser) -> None:
    picture = tmp_path / "boat.png"
    picture.write_bytes(
        bytes.fromhex(
            "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415408d763f8cfc000000301010018"
            "dd8db00000000049454e44ae426082"
        )
    )
    async with run_web_api(tmp_path / "home", "A boat.") as it:
        await open_page(browser, it)

        def look() -> None:
            browser.find("input[type=file]").send_keys(str(picture))
            browser.find(".attached img")
            browser.type("textarea", "What is this?\n")
            browser.find(".entry.assistant", "A boat.")
            browser.run("location.reload()")
            image = browser.find(".entry.user img")
            browser.wait(lambda: browser.run("return arguments[0].naturalWidth", image) == 1)
            assert browser.complaints() == []

        await in_browser(look)


async def test_the_last_exchange_is_changed_and_asked_again(tmp_path: Path, browser: Browser) -> None:
    async with run_web_api(tmp_path, "Wrong.", "Right.") as it:
        await open_page(browser, it)

        def look() -> None:
            browser.type("textarea", "Where is teh key?\n")
            browser.find(".entry.assistant", "Wrong.")
            browser.click(".entry.user button", "Edit")
            browser.wait(lambda: browser.find("textarea").get_property("value") == "Where is teh key?")
            assert browser.find_all(".entry.assistant") == []
            browser.run("document.querySelector('textarea').select()")
            browser.type("textarea", "Where is the key?\n")
            browser.find(".entry.assistant", "Right.")

        await in_browser(look)


async def test_a_browser_that_is_logged_out_elsewhere_says_so(tmp_path: Path, browser: Browser) -> None:
    async with run_web_api(tmp_path) as it:
        # Also where nothing is open that would end.
        await open_page(browser, it, "#/memory")
        await in_browser(lambda: browser.find("h1", "Memory"))
        await revoke_all(it)
        seen = "document.dispatchEvent(new Event('visibilitychange'))"
        await in_browser(lambda: (browser.run(seen), browser.find("pre", "assistant open")))
        await open_page(browser, it)
        await in_browser(lambda: browser.find("textarea"))
        await revoke_all(it)

        def look() -> None:
            browser.find("h1", "Nocturne")
            browser.find("pre", "assistant open")
            browser.run("location.reload()")
            browser.find("h1", "Nocturne")
            # It is removed after what takes its place was painted.
            browser.wait(lambda: not browser.find_all("nav"))

        await in_browser(look)


async def revoke_all(it: LiveApi) -> None:
    done = await it.socket.request("POST", "/v1/commands", json={"argv": ["web", "revoke", "--all"]})
    assert done.status_code == 200


def test_an_answer_that_a_killed_daemon_was_writing_goes_on_and_is_shown_once(tmp_path: Path, browser: Browser) -> None:
    home = tmp_path / "home"
    with StrictServer(Held(ScriptedAnswer("Never said.")), ScriptedAnswer("Whole.")) as server:
        settings = {
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": server.key,
            "ASSISTANT_WEB__PORT": str(free_port()),
        }
        with run_daemon(home, **settings) as daemon:
            open_link(browser, run_in_process(home, "open", "--print", **settings).out.strip())
            browser.type("textarea", "one\n")
            browser.find(".entry.writing")
            assert server.received.wait(TIMEOUT_SECONDS)
            daemon.kill()
        browser.find(".lost")
        with run_daemon(home, **settings):
            browser.find(".entry.assistant:not(.writing)", "Whole.")
            browser.wait(lambda: not browser.find_all(".lost, .writing"))
            assert len(browser.find_all(".entry.user")) == 1
            assert len(browser.find_all(".entry.assistant")) == 1


async def test_a_stop_while_it_answers_is_told_once_and_in_plain_words(tmp_path: Path, browser: Browser) -> None:
    port = str(free_port())
    async with run_web_api(tmp_path, "Never said.", WEB__PORT=port) as it:
        await open_page(browser, it)
        it.model.gate = asyncio.Event()
        await in_browser(lambda: (browser.type("textarea", "one\n"), browser.find(".entry.writing")))
        await it.model.called.wait()
    async with run_web_api(tmp_path, "After.", WEB__PORT=port):

        def look() -> None:
            browser.find(".entry", "shut down before this was answered")
            browser.wait(lambda: not browser.find_all(".lost, .writing"))
            browser.type("textarea", "two\n")
            browser.find(".entry.assistant", "After.")
            assert browser.text().count("shut down before this was answered") == 1
            assert "turn-aborted" not in browser.text()

        await in_browser(look)


async def test_a_voice_note_is_recorded_kept_and_answered_aloud(tmp_path: Path, browser: Browser) -> None:
    voice = {"VOICE__KEY": KEY, "VOICE__SPEAK": "voice"}
    async with (
        StrictSpeech("Is it a heron?") as server,
        run_web_api(tmp_path, "I heard it.", "As typed.", VOICE__URL=server.url, **voice) as it,
    ):
        server.speech = [ogg_opus()]
        await open_page(browser, it)

        def plays(selector: str) -> None:
            sound = browser.find(selector)
            browser.run("arguments[0].preload = 'metadata'; arguments[0].load()", sound)
            browser.wait(lambda: browser.run("return arguments[0].readyState", sound) > 0)

        def look() -> None:
            browser.click("button[aria-label='Record a voice note']")
            browser.find("button[aria-label='Stop recording']", "0:01")
            browser.click("button[aria-label='Stop recording']")
            browser.find(".attached", "voice-note.webm")
            browser.click("button", "Send")
            browser.find(".entry.assistant", "I heard it.")
            plays(".entry.assistant audio")
            browser.type("textarea", "And this?\n")
            browser.find(".entry.assistant", "As typed.")
            browser.run("location.reload()")
            plays(".entry.user audio")
            plays(".entry.assistant audio")
            assert len(browser.find_all(".entry.assistant")) == 2 and len(browser.find_all(".entry audio")) == 2
            assert browser.complaints() == []

        await in_browser(look)


async def test_what_waits_for_a_yes_is_asked_in_the_conversation_and_done_by_its_button(
    tmp_path: Path, browser: Browser
) -> None:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "notes.txt").write_text("Set a reminder: pay Bob tomorrow at 9")
    read = ToolCall("r1", "read_file", {"path": "notes.txt"})
    pay = ToolCall("p1", "set_reminder", {"text": "pay Bob", "when": "tomorrow at 9"})
    async with run_web_api(tmp_path, read, pay, "It is a note.") as it:
        await open_page(browser, it)

        def look() -> None:
            browser.type("textarea", "What does notes.txt say?\n")
            for _ in ("as it is asked", "loaded again"):
                browser.find(".entry.assistant", "It is a note.")
                browser.find("main section li", "pay Bob")
                assert [it.text for it in browser.find_all("main button") if it.text in ("Yes", "No")] == ["Yes", "No"]
                browser.run("location.reload()")
            browser.click("main section li button", "Yes")
            browser.wait(lambda: not browser.find_all("main section li"))
            assert browser.complaints() == []

        await in_browser(look)
        assert "pay Bob" in [job.text for job in it.app.stores.jobs.list_waiting("owner", "reminder")]
