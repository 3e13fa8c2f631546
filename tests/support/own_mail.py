"""An account of the owner's on a real IMAP server, whose mail goes out over a real server: for an app that is set up
with it, and for command lines."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage

from tests.support.dovecot import PASSWORD, Dovecot
from tests.support.submission import Submission, taking_mail

ADDRESS = "ada@example.org"


def mail_from(sender: str, subject: str, text: str, *, to: str = ADDRESS, **fields: str) -> EmailMessage:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = sender, to, subject
    message["Date"] = datetime(2026, 2, 28, 9, 0, tzinfo=UTC)
    for name, value in fields.items():
        message[name.replace("_", "-")] = value
    message.set_content(text)
    return message


@dataclass
class OwnMail:
    imap: Dovecot
    smtp: Submission
    user: str

    def deliver(self, message: EmailMessage | bytes) -> None:
        self.imap.deliver(self.user, message if isinstance(message, bytes) else message.as_bytes())

    def subjects(self, folder: str) -> list[str]:
        lines = [line for raw in self.imap.mails(self.user, folder) for line in raw.decode().splitlines()]
        return [line.removeprefix("Subject: ") for line in lines if line.startswith("Subject: ")]

    @property
    def environ(self) -> dict[str, str]:
        values = {
            "ADDRESS": ADDRESS,
            "SENDER_NAME": "Ada",
            "USER": self.user,
            "PASSWORD": PASSWORD,
            "IMAP_HOST": "127.0.0.1",
            "IMAP_PORT": str(self.imap.port),
            "SMTP_HOST": "127.0.0.1",
            "SMTP_PORT": str(self.smtp.port),
        }
        return {f"ASSISTANT_MAIL_ACCOUNT__{name}": value for name, value in values.items()}


@asynccontextmanager
async def own_mail(imap: Dovecot) -> AsyncIterator[OwnMail]:
    async with taking_mail() as smtp:
        yield OwnMail(imap, smtp, imap.new_user())
