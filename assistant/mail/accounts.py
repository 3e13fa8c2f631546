"""The owner's mail accounts together: each is named, and a mail of several accounts is named with its account."""

from __future__ import annotations

import asyncio
from dataclasses import field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from assistant.core.dataclass import dataclass
from assistant.core.errors import MailError
from assistant.documents.reader import DocumentReader
from assistant.mail.parsed import ParsedMail
from assistant.mail.service import FoundMails, MailPlace, MailService

if TYPE_CHECKING:
    from assistant.mail.imap import MailHead, MailQuery

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class MailAccounts:
    services: tuple[MailService, ...]  # at least one; the first is meant where none is named
    documents: DocumentReader = field(default_factory=DocumentReader)

    def named(self, name: str) -> MailService:
        """Return the account of this name or address, for "" the first. Raises `MailError`."""
        wanted = name.strip().casefold()
        for service in self.services:
            if not wanted or wanted in (service.account.name.casefold(), service.account.address.casefold()):
                return service
        known = ", ".join(f"{it.account.name} ({it.account.address})" for it in self.services)
        raise MailError(f"No mail account is called {name[:80]!r}; there are: {known}.", refused=True)

    def describe(self, name: str = "") -> str:
        """Return the account of this name, or all, as in "ada@example.org" or "work (ada@example.com), ..."."""
        if len(self.services) == 1:
            return self.services[0].account.address
        chosen = (self.named(name),) if name else self.services
        return ", ".join(f"{it.account.name} ({it.account.address})" for it in chosen)

    def find(self, text: str) -> tuple[MailService, MailPlace]:
        """Return the place that `text` names, and the account it is in. Raises `MailError`."""
        first, colon, rest = text.strip().partition(":")
        if colon and ":" in rest and (service := self._by_name(first)):
            return service, replace(MailPlace.parse(rest), account=self._label(service))
        service = self.services[0]
        return service, replace(MailPlace.parse(text), account=self._label(service))

    async def read(self, text: str) -> ParsedMail:
        """Return the mail of this name. Raises `MailError`."""
        service, place = self.find(text)
        return await service.read(place)

    async def search(
        self, query: MailQuery, folder: str = "", account: str = "", *, limit: int, offset: int = 0
    ) -> FoundMails:
        """Search one account, or all. Raises `MailError` if none could be searched."""
        chosen = (self.named(account),) if account else self.services
        if len(chosen) == 1:
            found = await chosen[0].search(query, folder, limit=limit, offset=offset)
            return FoundMails(self._labelled(chosen[0], found), found.more)
        answers = await asyncio.gather(
            *(it.search(query, folder, limit=limit + offset) for it in chosen), return_exceptions=True
        )
        mails: list[tuple[MailPlace, MailHead]] = []
        problems: list[MailError] = []
        total = 0
        for service, answer in zip(chosen, answers, strict=True):
            if isinstance(answer, MailError):
                problems.append(answer)
            elif isinstance(answer, BaseException):
                raise answer
            else:
                mails += self._labelled(service, answer)
                total += len(answer.mails) + answer.more
        if len(problems) == len(chosen):
            raise problems[0]
        mails.sort(key=lambda it: _sent_at(it[1].date), reverse=True)
        shown = tuple(mails[offset : offset + limit])
        return FoundMails(shown, max(0, total - offset - len(shown)), tuple(map(str, problems)))

    def _by_name(self, name: str) -> MailService | None:
        wanted = name.casefold()
        return next((it for it in self.services if it.account.name.casefold() == wanted), None)

    def _label(self, service: MailService) -> str:
        return service.account.name if len(self.services) > 1 else ""

    def _labelled(self, service: MailService, found: FoundMails) -> tuple[tuple[MailPlace, MailHead], ...]:
        label = self._label(service)
        return tuple((replace(place, account=label), head) for place, head in found.mails)


def _sent_at(date: str) -> datetime:
    from email.utils import parsedate_to_datetime  # only where mail is read

    try:
        sent = parsedate_to_datetime(date)
    except ValueError:
        return _LONG_AGO
    return sent if sent.tzinfo else sent.replace(tzinfo=UTC)
