"""Mail as the conformance suite plays it: the bridge over a real IMAP server (Dovecot) and a real server that takes
mail (aiosmtpd), and people whose mails arrive as their mail server delivers them, verified.

Nobody edits or deletes a mail, and there are no rooms and no buttons. A thread is what a mail answers.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from datetime import datetime
from email.message import EmailMessage
from pathlib import Path
from typing import Literal

from assistant.bridges.mail.bridge import MailBridge
from assistant.core.bridge_api import Bridge
from assistant.mail.account import MailAccount, MailServer
from assistant.settings.settings import Settings
from assistant.wire.app import App
from tests.support.dovecot import PASSWORD, Dovecot
from tests.support.networks.network import (
    ConversationPlace,
    Network,
    NetworkAbilities,
    NetworkRefused,
    PersonKind,
    VisibleMessage,
)
from tests.support.networks.probed_bridge import ChangeSignal
from tests.support.submission import SentMail, Submission
from tests.support.tcp_gate import TcpGate

ADDRESS = "nocturne@test.example"
SERVER = "mx.test.example"


def verified(message: EmailMessage, domain: str = "people.example") -> EmailMessage:
    """As the mail server of the mailbox writes down that it verified the sender."""
    results = f"{SERVER}; dkim=pass header.d={domain}; dmarc=pass (p=REJECT) header.from={domain}"
    message._headers.insert(0, ("Authentication-Results", results))  # type: ignore[attr-defined]
    return message


class MailNetwork:
    name = "mail"
    abilities = NetworkAbilities(rooms=False, threads=True, edits=False, deletes=False)
    room = ""

    def __init__(self, imap: Dovecot, gate: TcpGate, smtp: Submission) -> None:
        self._imap, self._gate, self._smtp = imap, gate, smtp
        self._user = imap.new_user()
        self._numbers = itertools.count(1)
        self._said: dict[str, bytes] = {}
        self._changed = ChangeSignal()
        smtp.on_change = self._changed.notify

    @property
    def mail_account(self) -> MailAccount:
        return MailAccount(
            ADDRESS,
            MailServer("127.0.0.1", self._gate.port, self._user, PASSWORD),
            MailServer("127.0.0.1", self._smtp.port, self._user, PASSWORD),
        )

    @property
    def maildir(self) -> Path:
        return self._imap.inbox(self._user)

    @property
    def taken(self) -> list[SentMail]:
        """All mails of the assistant's."""
        return self._smtp.taken

    def deliver(self, message: EmailMessage | bytes) -> None:
        """A mail as it is, verified or not."""
        self._imap.deliver(self._user, message if isinstance(message, bytes) else message.as_bytes())

    def bridge(self, settings: Settings, clock: Callable[[], datetime]) -> Bridge:
        return MailBridge(
            self.mail_account, verified_by=SERVER, verified_with="dmarc", hourly_limit=100_000, clock=clock
        )

    def serve_app(self, app: App) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    def account(self, who: PersonKind) -> str:
        return f"{who}@people.example"

    # --------------------------------------------------------------------------------------------------- what people do

    async def say(
        self,
        who: PersonKind,
        text: str,
        *,
        where: ConversationPlace = "private",
        addressed: bool = True,
        thread: str = "",
    ) -> str:
        if where == "room":
            raise NetworkRefused("There are no rooms.")
        message = self._message(who, thread)
        message.set_content(text)
        return self._put(message)

    async def edit(self, who: PersonKind, message: str, text: str) -> None:
        raise NetworkRefused("A mail cannot be changed.")

    async def delete(self, who: PersonKind, message: str) -> None:
        raise NetworkRefused("A mail that was sent cannot be taken away.")

    async def press(self, who: PersonKind, message: str, label: str) -> None:
        raise NetworkRefused("There are no buttons.")

    async def send_picture(self, who: PersonKind, data: bytes, caption: str = "") -> str:
        message = self._message(who)
        message.set_content(caption)
        message.add_attachment(data, maintype="image", subtype="png", filename="picture.png")
        return self._put(message)

    async def send_file(self, who: PersonKind, name: str, data: bytes, caption: str = "") -> str:
        message = self._message(who)
        message.set_content(caption)
        message.add_attachment(data, maintype="text", subtype="plain", filename=name)
        return self._put(message)

    async def redeliver(self, message: str) -> None:
        self.deliver(self._said[message])

    def _message(self, who: PersonKind, thread: str = "") -> EmailMessage:
        message = EmailMessage()
        message["From"], message["To"] = f"{who.title()} <{self.account(who)}>", ADDRESS
        message["Message-ID"] = f"<{next(self._numbers)}.{self._user}@people.example>"
        if thread:
            message["In-Reply-To"] = thread
            message["Subject"] = "Re: something"
        return message

    def _put(self, message: EmailMessage) -> str:
        identity = str(message["Message-ID"])
        self._said[identity] = verified(message).as_bytes()
        self.deliver(self._said[identity])
        return identity

    # -------------------------------------------------------------------------------------------------- what people see

    def visible_messages(self, who: PersonKind, where: ConversationPlace = "private") -> tuple[VisibleMessage, ...]:
        sent = [one for one in self._smtp.taken if self.account(who) in one.recipients]
        return tuple(map(self._as_seen, sent)) if where == "private" else ()

    def _as_seen(self, sent: SentMail) -> VisibleMessage:
        message = sent.message
        body = message.get_body(("plain",))
        text = "" if body is None else str(body.get_content()).replace("\r\n", "\n").rstrip("\n")
        files = list(message.iter_attachments())
        # A mail program shows a thread where the mail that is answered was in one already.
        answered = str(message["In-Reply-To"] or "")
        root = self._root(answered)
        file = files[0].get_payload(decode=True) if files else None
        return VisibleMessage(
            str(message["Message-ID"]),
            text,
            len(text),
            thread=root if root != answered else "",
            file=file if isinstance(file, bytes) else None,
            file_name=(files[0].get_filename() or "") if files else "",
        )

    def _root(self, identity: str) -> str:
        for line in self._said.get(identity, b"").decode().splitlines():
            if line.startswith("In-Reply-To: "):
                return line.removeprefix("In-Reply-To: ")
        return identity

    def typing_count(self, who: PersonKind, where: ConversationPlace = "private") -> int:
        return 0

    @property
    def send_attempts(self) -> int:
        return self._smtp.attempts

    async def wait_until(self, true: Callable[[], bool]) -> None:
        await self._changed.wait_until(true)

    # --------------------------------------------------------------------------------------------------------- troubles

    def refuse_sends(self, calls: int, retry_after: float | None) -> None:
        refusal = "550 5.7.1 Not here" if retry_after is None else f"451 4.7.1 Try again in {retry_after:g} seconds"
        self._smtp.troubles += [refusal] * calls

    def cut_connections(self, when: Literal["before", "after"], calls: int = 1) -> None:
        self._smtp.troubles += [when] * calls

    async def go_offline(self) -> None:
        await self._gate.stop()
        await self._smtp.stop()

    async def go_online(self) -> None:
        await self._gate.start()
        await self._smtp.start()

    async def aclose(self) -> None:
        await self.go_offline()


@asynccontextmanager
async def open_mail_network(imap: Dovecot) -> AsyncIterator[Network]:
    gate, smtp = TcpGate(imap.port), Submission()
    network = MailNetwork(imap, gate, smtp)
    await network.go_online()
    try:
        yield network
    finally:
        await network.aclose()
