"""Writes the conversation in docs/mail.md: a mail arrives, an appointment is proposed, the owner says yes, the calendar
has it, and the next morning's brief names it. The program is the real one, over real servers of mail (Dovecot) and
calendars (Radicale); what the model says is scripted.

`python -m tests.day_transcript` writes it again; a test compares it with what the program says now.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from assistant.core.messages import ToolCall
from tests.support.dovecot import Dovecot, running_dovecot
from tests.support.own_mail import OwnMail, mail_from, own_mail
from tests.support.radicale import PASSWORD, Radicale, run_radicale
from tests.support.running_app import LiveApp, run_app
from tests.support.scripted import SteppingClock

PAGE = Path(__file__).parents[1] / "docs" / "mail.md"
BEGIN, END = "<!-- transcript -->\n", "<!-- /transcript -->\n"
EVENING = datetime(2026, 3, 4, 18, 0, tzinfo=UTC)
MORNING = datetime(2026, 3, 5, 7, 30, tzinfo=UTC)

_BOATYARD = "Hello Ada,\n\nthe boat is ready. Can you collect it on Thursday at 15:00, at pier 4?\n\nBob"
_APPOINTMENT = {"title": "Collect the boat", "when": "2026-03-05 at 15:00", "minutes": 60, "place": "Pier 4"}
_ANSWER = "Yes: Bob writes that the boat is ready. He asks you to collect it on Thursday at 15:00, at pier 4."


def _use(number: int, name: str, **arguments: object) -> ToolCall:
    return ToolCall(f"c{number}", "use_tool", {"name": name, "arguments": arguments})


SCRIPT = (
    _use(1, "search_mail", unread=True),
    _use(2, "read_mail", mail_id="INBOX:1"),
    _use(3, "add_event", **_APPOINTMENT),
    _ANSWER,
)


async def play(home: Path, mail: OwnMail, calendars: Radicale) -> str:
    """What the owner and the assistant say to each other, and what the calendar then has; a Markdown block."""
    calendars.make_calendar("family")
    mail.deliver(mail_from("Bob <bob@boatyard.example>", "Your boat", _BOATYARD))
    _make_home(home, calendars)
    environ = {
        "ASSISTANT_CALENDAR__PASSWORDS": json.dumps({"Server": PASSWORD}),
        "ASSISTANT_HOME__TIMEZONE": "UTC",
        "ASSISTANT_BRIEF__MORNING": "7:30",
        "ASSISTANT_SLEEP__AT": "",
        **mail.environ,
    }
    clock = SteppingClock(EVENING)
    async with run_app(home, *SCRIPT, now=clock, **environ) as it:
        blocks = [await _ask(it, text) for text in ("/calendar sync", "Is there anything new in my mail?", "yes")][1:]
        clock.now = MORNING + timedelta(seconds=1)
        it.app.check_due()
        await it.app.briefs.wait_idle()
        await it.wait_idle()
        blocks.append(f"(the next morning)\n{it.bridge.bodies[-1]}")
        blocks.append(await _ask(it, "/agenda today"))
    (entry,) = calendars.entries("family")
    kept = [line for line in entry.splitlines() if line.startswith(("DTSTART", "LOCATION", "SUMMARY"))]
    blocks.append("(on the calendar's server)\n" + "\n".join(sorted(kept)))
    return "```text\n" + "\n\n".join(blocks) + "\n```\n"


def _make_home(home: Path, calendars: Radicale) -> None:
    source = calendars.source().as_json(without_defaults=True)
    home.mkdir(mode=0o700)
    fields = "".join(f"{key} = {json.dumps(value)}\n" for key, value in source.items())
    (home / "config.toml").write_text(f"[[calendar.sources]]\n{fields}")


async def _ask(it: LiveApp, text: str) -> str:
    if text.startswith("/"):
        reply = await it.app.commands.run(text, "main")
    else:
        await it.say(text)
        await it.wait_idle()
        reply = it.bridge.bodies[-1]
    return f"you: {text}\n{reply.strip()}"


def shown() -> str:
    """The conversation that the page shows."""
    return PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]


async def _make(imap: Dovecot, folder: Path) -> str:
    with run_radicale() as calendars:
        async with own_mail(imap) as mail:
            return await play(folder / "home", mail, calendars)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, running_dovecot() as imap:
        spoken = asyncio.run(_make(imap, Path(folder)))
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}{spoken}{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
