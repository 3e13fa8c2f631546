"""What is seldom looked at in the page, in a real browser: files by drop and paste, the way from an answer to a memory,
archive and log, a compaction as a file, a filled table of spending, and hostile words in every place."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from assistant.core.bridge_api import InboundMessage
from assistant.core.messages import ToolCall, Usage
from assistant.core.model_api import ModelCall
from tests.support.browser import Browser, in_browser, open_page
from tests.support.calendar_home import calendar_text
from tests.support.scripted import RecordingBridge
from tests.support.web_api import LiveApi, run_web_api

PICTURE = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVQI12P4z8AAAAMBAQAY3Y2wAAAAAElFTkSuQmCC"  # one red pixel
)
HOSTILE = (
    "<img src=http://elsewhere.example/a.png onerror=\"document.title='run'\"><script>document.title='run'</script>"
)
HOSTILE_FILE = "<img src=x onerror=alert(1)>.txt"
PAGES = ("talk", "today", "memory", "memory/profiles", "context", "sleep", "spending", "health", "settings")
_GIVE_FILES = """
const [selector, name, files] = arguments, data = new DataTransfer();
for (const [title, mime, content] of files) {
  data.items.add(new File([Uint8Array.from(atob(content), it => it.charCodeAt(0))], title, {type: mime}));
}
const event = name === 'paste' ? new ClipboardEvent('paste', {clipboardData: data, bubbles: true, cancelable: true})
  : new DragEvent('drop', {dataTransfer: data, bubbles: true, cancelable: true});
document.querySelector(selector).dispatchEvent(event)
"""


async def command(it: LiveApi, *argv: str) -> None:
    answer = await it.socket.request("POST", "/v1/commands", json={"argv": list(argv)}, timeout=60)
    assert answer.status_code == 200, answer.text


async def test_files_come_by_drop_and_paste_with_a_thumbnail_each_and_may_be_left_out(
    tmp_path: Path, browser: Browser
) -> None:
    async with run_web_api(tmp_path, "Two files.") as it:
        await open_page(browser, it)

        def look() -> None:
            browser.find("textarea")
            files = [[f"{HOSTILE}.png", "image/png", PICTURE], ["notes.txt", "text/plain", "aGVsbG8="]]
            browser.run(_GIVE_FILES, "form.composer", "drop", files)
            browser.find(".attached li", "notes.txt")
            browser.run(_GIVE_FILES, "textarea", "paste", [["pasted.png", "image/png", PICTURE]])
            thumbnails = browser.wait(lambda: len(found := browser.find_all(".attached img")) == 2 and found)
            browser.wait(lambda: all(browser.run("return arguments[0].naturalWidth", it) == 1 for it in thumbnails))
            browser.click("button[aria-label='Remove pasted.png']")
            browser.wait(lambda: len(browser.find_all(".attached li")) == 2)
            browser.screenshot("talk-attached")
            browser.type("textarea", "Look.\n")
            browser.find(".entry.assistant", "Two files.")
            browser.run("location.reload()")
            assert browser.find(".entry.user .files a[download]", "notes.txt")
            assert len(browser.find_all(".entry.user img")) == 1
            assert browser.driver.title == "Talk · Nocturne"
            assert browser.complaints() == []

        await in_browser(look)


async def test_an_answer_leads_to_the_memory_that_has_its_words(tmp_path: Path, browser: Browser) -> None:
    async with run_web_api(tmp_path, "Noted.", "Ada lives in Lisbon.") as it:
        await it.socket.say("My sister Ada lives in Lisbon.")
        await it.wait_idle()
        await command(it, "sleep")
        await it.socket.say("Where does Ada live?")
        await it.wait_idle()
        await open_page(browser, it)

        def look() -> None:
            browser.find(".entry.assistant", "Ada lives in Lisbon.")
            browser.click(".entry.assistant:last-of-type button", "Why do you know this?")
            browser.click(".entry .why a", "Lisbon")
            browser.find(".quote", "My sister Ada lives in Lisbon.")
            browser.click(".quote a", "You")
            browser.find(".entry.found", "My sister Ada lives in Lisbon.")
            assert browser.complaints() == []

        await in_browser(look)


async def test_a_conversation_that_ended_is_read_from_the_archive(tmp_path: Path, browser: Browser) -> None:
    async with run_web_api(tmp_path, "Noted.") as it:
        await it.socket.say("The heron stands at the pond.")
        await it.wait_idle()
        await command(it, "reset", "--yes")
        await it.wait_idle()
        await open_page(browser, it, "#/health")

        def look() -> None:
            browser.find("main h2", "Archive")
            browser.click("main section li button", "Show")
            browser.find("main .whole", "The heron stands at the pond.")
            browser.click("main button", "Show the last lines")
            assert browser.find("main pre, main .problem")
            browser.screenshot("health-archive")

        await in_browser(look)


async def test_hostile_words_run_and_load_nothing_wherever_they_stand(tmp_path: Path, browser: Browser) -> None:
    today = datetime(2026, 3, 1, tzinfo=UTC)
    event = f"DTSTART:{today:%Y%m%dT100000Z}\nDTEND:{today:%Y%m%dT110000Z}\nSUMMARY:{HOSTILE}\nLOCATION:{HOSTILE}"
    (tmp_path / "bad.ics").write_bytes(calendar_text(event, name=HOSTILE).encode())
    home = tmp_path / "home"
    home.mkdir()
    source = f'{{ name = "Bad", kind = "ics", url = "{tmp_path / "bad.ics"}" }}'
    (home / "config.toml").write_text(f"[calendar]\nsources = [{source}]\n")
    (home / "workspace").mkdir()
    (home / "workspace" / HOSTILE_FILE).write_text(HOSTILE)
    read, bridge = ToolCall("r1", "read_file", {"path": HOSTILE_FILE}), RecordingBridge()
    async with run_web_api(home, read, HOSTILE, bridges={"kept": bridge}) as it:
        assert bridge.inbound is not None
        for number, room in enumerate(("", "room1")):
            about = {"room": room, "room_name": HOSTILE} if room else {}
            who = InboundMessage("kept", str(number), f"77{number}", HOSTILE, target="77", sender_name=HOSTILE, **about)
            await bridge.inbound.receive(who)
        await it.socket.say(f"My sister Ada says {HOSTILE} and lives in Lisbon.")
        await it.wait_idle()
        await command(it, "sleep")
        await command(it, "memory", "add", f"The password page says {HOSTILE}")
        await command(it, "todo", "add", HOSTILE)
        await command(it, "calendar", "sync")
        await open_page(browser, it, f"#/today/{today:%Y-%m-%d}")

        def look() -> None:
            browser.find("main .agenda li", "elsewhere.example")
            # Most days of this week and month are over.
            browser.click("main .tabs button", "Week")
            browser.find("[data-day='2026-03-01'] li", "elsewhere.example")
            browser.find("[data-day='2026-02-24'] li", "Nothing planned.")
            browser.click("main .tabs button", "Month")
            browser.find(".month .thing", "elsewhere.example")
            assert browser.find_all("main .problem") == []
            browser.screenshot("today-calendar")
            for page in PAGES:
                browser.run("location.hash = arguments[0]", f"#/{page}")
                browser.find("main")
                browser.settle()
                if page == "talk":
                    browser.click(".steps summary", "Did: read file")
                    browser.find(".steps code", HOSTILE_FILE)
                    browser.find(".steps pre", "elsewhere.example")
                if page == "health":
                    browser.find(".waiting li", "elsewhere.example")
                assert browser.find_all("#page script, #page img, #page [onerror]") == [], page
                assert browser.driver.title.endswith(" · Nocturne"), page
            loaded = browser.run("return performance.getEntriesByType('resource').map(it => new URL(it.name).host)")
            assert set(loaded) == {f"127.0.0.1:{it.port}"}
            assert browser.complaints() == []

        await in_browser(look)


async def test_spending_is_a_table_by_day_model_and_part_with_what_the_caps_leave(
    tmp_path: Path, browser: Browser
) -> None:
    async with run_web_api(tmp_path) as it:
        ledger, now = it.app.stores.ledger, it.app.base.clock()
        for days, model, usd in ((1, "large-1", 1.25), (0, "small-1", 0.5), (0, "large-1", 0.75), (0, "own-1", None)):
            at = now - timedelta(days=days)
            call = ModelCall("chat", "anthropic", model, 1000, 100, usd, session="main")
            usage = Usage(input=1200, output=30, cost_usd=usd)
            ledger.settle_reservation(ledger.reserve(call, at), usage, at, {"history": usage})
        await open_page(browser, it, "#/spending")

        def look() -> None:
            browser.find("main dd", "$1.25")
            browser.find(".words tbody td", "$1.25")
            assert len(browser.find_all(".words tbody tr")) == 2
            browser.find(".plot canvas")
            browser.click("main .tabs button", "Model")
            assert "$2.00" in browser.find(".words tbody tr", "large-1").text
            # What has no known price costs not nothing.
            assert "no price" in browser.find(".words tbody tr", "own-1").text
            browser.click("main .tabs button", "Part of the prompt")
            browser.find(".words tbody tr", "$2.50")
            browser.click("main button", "Show by month")
            browser.find("main .words", "Nothing was compacted yet.")
            browser.screenshot("spending-table")
            assert browser.complaints() == []

        await in_browser(look)


async def test_a_compaction_is_recovered_as_a_file_with_every_word(tmp_path: Path, browser: Browser) -> None:
    long = "The boat lies in the harbour of Bergen, and the mooring is paid until October. " * 40
    async with run_web_api(tmp_path, "Noted.", CONTEXT__MAX_CONTEXT_TOKENS="30000") as it:
        for number in range(6):
            await it.socket.say(f"{number}: {long}")
            await it.wait_idle()
        await command(it, "compact")
        await open_page(browser, it, "#/context")

        def look() -> None:
            browser.run(
                "window.files = []; const make = URL.createObjectURL;"
                "URL.createObjectURL = blob => (blob.text().then(text => window.files.push(text)), make(blob))"
            )
            browser.click("main .compaction summary", "#1")
            browser.click("main .compaction button", "Recover as a file")
            (text,) = browser.wait(lambda: browser.run("return window.files"))
            assert f"0: {long.strip()}" in str(json.loads(text))
            assert browser.complaints() == []

        await in_browser(look)


async def test_a_month_fits_a_telephone_and_a_day_of_it_opens(tmp_path: Path, browser: Browser) -> None:
    async with run_web_api(tmp_path) as it:
        await command(it, "remind", "add", "call the dentist", "--at", "2026-03-12 09:00")
        await command(it, "todo", "add", "buy lamp oil")
        await open_page(browser, it, "#/today/2026-03-10")

        def look() -> None:
            browser.find("main .list li", "buy lamp oil")
            browser.size(360, 780)
            browser.click("main .tabs button", "Month")
            browser.find("main h1", "March 2026")
            browser.find("[data-day='2026-03-12'] .thing", "09:00")
            for dark in (False, True):
                browser.dark(dark)
                for part in ("html", ".month .thing"):
                    wide = "const it = document.querySelector(arguments[0]); return it.scrollWidth - it.clientWidth"
                    assert browser.run(wide, part) == 0, part
                assert browser.serious_findings() == []
                browser.screenshot(f"month-{'dark' if dark else 'light'}")
            browser.click("[data-day='2026-03-12'] .date")
            browser.find("main .agenda li", "call the dentist")
            browser.click("main .list li button", "Done")
            browser.wait(lambda: "buy lamp oil" not in browser.text())
            browser.dark(False)
            browser.size(1280, 900)
            assert browser.complaints() == []

        await in_browser(look)


async def test_times_are_in_the_readers_zone_and_earlier_sleeps_are_asked_for(tmp_path: Path, browser: Browser) -> None:
    async with run_web_api(tmp_path) as it:
        for _ in range(31):
            it.app.stores.journal.begin_cycle("manual", it.app.base.clock())
        there = it.app.base.clock().astimezone(ZoneInfo("Asia/Tokyo"))
        await open_page(browser, it, "#/sleep")

        def look() -> None:
            browser.zone("Asia/Tokyo")
            browser.driver.refresh()
            newest = browser.find("main details:first-of-type summary time")
            assert newest.text.replace("\u202f", " ").endswith(f"{there:%-I:%M %p}"), newest.text
            assert len(browser.find_all("main details")) == 30
            browser.find("main p", "Times in reports are those of ")
            browser.click("main button", "Earlier ones")
            browser.find("main details summary", "#1 ")
            browser.run("location.hash = '#/today'")
            browser.find("main p", "where your assistant lives.")
            browser.zone("")
            assert browser.complaints() == []

        await in_browser(look)
