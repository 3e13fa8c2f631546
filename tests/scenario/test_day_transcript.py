"""The conversation of docs/mail.md is what the program says."""

from __future__ import annotations

from pathlib import Path

from tests.day_transcript import play, shown
from tests.support.dovecot import Dovecot
from tests.support.own_mail import own_mail
from tests.support.radicale import run_radicale


async def test_the_page_shows_how_a_mail_becomes_an_appointment_after_a_yes(
    imap_server: Dovecot, tmp_path: Path
) -> None:
    with run_radicale() as calendars:
        async with own_mail(imap_server) as mail:
            assert await play(tmp_path / "home", mail, calendars) == shown()
