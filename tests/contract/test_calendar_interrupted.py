"""A change of a calendar whose answer is lost: it is known what became of it, or said that nobody knows; and what was
approved before a restart is done once after it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import httpx2
import pytest

from assistant.calendars.service import CalendarError
from assistant.calendars.sync import SourceReading
from assistant.core.calendar_events import CalendarChange
from assistant.core.errors import OutcomeUnknown, StoreError, ToolError
from assistant.core.messages import ToolCall
from assistant.core.model_api import ModelRequest
from assistant.core.ports import ToolContext
from assistant.core.sessions import MAIN_SESSION
from assistant.store.calendars import CalendarWriter
from tests.support.calendar_home import NOW, OSLO, CalendarHome
from tests.support.page_server import listening
from tests.support.radicale import PASSWORD, Radicale, run_radicale
from tests.support.running_app import run_app
from tests.support.scripted import ScriptedModel, ScriptStep
from tests.support.store_home import CrashingStore
from tools.toolbox import calendar_tools


@pytest.fixture
def server() -> Iterator[Radicale]:
    with run_radicale() as it:
        it.make_calendar("family")
        yield it


@dataclass
class LossyProxy:
    """Passes requests on to a server. The answer to the next PUT is lost; with `dies`, so is everything after it."""

    port: int = 0
    dies: bool = False
    loses: bool = True
    is_dead: bool = False


@contextmanager
def lossy_proxy(server: Radicale, *, dies: bool) -> Iterator[LossyProxy]:
    state = LossyProxy(dies=dies)

    class Handler(BaseHTTPRequestHandler):
        def pass_on(self) -> None:
            if state.is_dead:
                return
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {
                name: value for name, value in self.headers.items() if name.lower() not in ("host", "connection")
            }
            answer = httpx2.request(
                self.command, f"{server.url.rstrip('/')}{self.path}", content=body, headers=headers, trust_env=False
            )
            if self.command == "PUT" and state.loses:
                state.loses, state.is_dead = False, state.dies
                return
            self.send_response(answer.status_code)
            for name in ("Content-Type", "ETag"):
                if name in answer.headers:
                    self.send_header(name, answer.headers[name])
            self.end_headers()
            self.wfile.write(answer.content)

        do_GET = do_PUT = do_DELETE = do_PROPFIND = do_REPORT = pass_on  # noqa: N815

        def log_message(self, *_: object) -> None:
            return

    with listening(Handler) as port:
        state.port = port
        yield state


def adding(server: Radicale) -> CalendarChange:
    return CalendarChange(
        "add",
        "the key",
        "Server",
        collection=f"{server.url}ann/family/",
        title="Dentist",
        starts="2026-03-05T14:30",
        ends="2026-03-05T15:15",
    )


@pytest.mark.parametrize("dies", [False, True])
async def test_a_change_whose_answer_is_lost_is_found_out_or_said_to_be_unknown(
    tmp_path: Path, server: Radicale, dies: bool
) -> None:
    with lossy_proxy(server, dies=dies) as proxy:
        behind = replace(server, port=proxy.port)
        home = CalendarHome(tmp_path / "home", [behind.source()], {"Server": PASSWORD})
        assert await home.read() == {"Server": ""}
        (add,) = (it for it in calendar_tools(home.service, 10_000) if it.spec.name == "add_event")
        ask = partial(
            add.run, {"title": "Dentist", "when": "friday at 9"}, ToolContext("main", "owner", "turn", "other", NOW)
        )
        if dies:
            with pytest.raises(CalendarError, match="Nobody knows whether the change was carried out") as error:
                await home.service.change(adding(behind))
            assert error.value.unsure
            # An approval ends as not known, not as failed.
            with pytest.raises(OutcomeUnknown):
                await ask()
        else:
            await home.service.change(adding(behind))
            assert [it.title for it in home.reader.list_events(NOW, NOW.replace(month=4))] == ["Dentist"]
    assert len(server.entries("family")) == 1
    with pytest.raises(ToolError, match=r"nothing answers there \(connection refused\)\. Nothing was changed\.$"):
        await ask()


async def test_a_change_that_was_made_and_cannot_be_stored_here_is_made_and_shown_by_the_next_reading(
    tmp_path: Path, server: Radicale
) -> None:
    home = CalendarHome(tmp_path / "home", [server.source()], {"Server": PASSWORD})
    assert await home.read() == {"Server": ""}
    with closing(CalendarWriter(home.path, NOW)) as store:
        full = CrashingStore(store, "save_changed_resource", error=StoreError("The disk is full."))
        await SourceReading(server.source(), PASSWORD, full, NOW, OSLO, tmp_path, 2**20).change(adding(server))  # type: ignore[arg-type]
    assert home.reader.list_events(NOW, NOW.replace(month=4)) == []
    assert await home.read() == {"Server": ""}
    assert [it.title for it in home.reader.list_events(NOW, NOW.replace(month=4))] == ["Dentist"]


def _proposes(request: ModelRequest) -> ScriptStep:
    if "dentist" not in next(m.content for m in reversed(request.messages) if m.role == "user").lower():
        return "Noted."
    if request.messages[-1].role == "tool":
        return "I have asked you."
    wanted = {"title": "Dentist", "when": "2026-03-05 14:30", "minutes": 45}
    return ToolCall("add", "use_tool", {"name": "add_event", "arguments": wanted})


async def test_an_appointment_is_asked_about_with_all_that_will_be_and_the_yes_after_a_restart_adds_it_once(
    tmp_path: Path, server: Radicale
) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    table = (
        f'[[calendar.sources]]\nname = "Server"\nkind = "caldav"\nurl = "{server.url}"\nuser = "ann"\nprivate = true\n'
    )
    (home / "config.toml").write_text(f'[home]\ntimezone = "Europe/Oslo"\n{table}')
    secret = {"ASSISTANT_CALENDAR__PASSWORDS": f'{{"Server": "{PASSWORD}"}}'}
    async with run_app(home, model=ScriptedModel(_proposes), now=lambda: NOW, **secret) as live:
        await live.app.commands.run("/calendar sync", MAIN_SESSION)
        # Their own words ask for just this: it is asked about all the same.
        await live.say("Add the dentist to my calendar, 2026-03-05 14:30, 45 minutes")
        await live.wait_idle()
        assert 'add to the calendar "family": "Dentist", Thursday 2026-03-05 14:30 to 15:15' in live.bridge.bodies[-1]
        assert server.entries("family") == []
    async with run_app(home, model=ScriptedModel(_proposes), now=lambda: NOW, **secret) as live:
        for _ in range(2):
            await live.say("yes")
            await live.wait_idle()
        agenda = await live.app.commands.run("/agenda 2026-03-05", MAIN_SESSION)
    assert len(server.entries("family")) == 1
    assert '14:30-15:15 "Dentist" (calendar "family")' in agenda
