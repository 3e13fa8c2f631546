"""The owner's mail over a real IMAP server (Dovecot) and a real server that sends (aiosmtpd)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from email.message import EmailMessage

import pytest

from assistant.core.errors import MailError
from assistant.mail.account import MailAccount, MailServer
from assistant.mail.compose import AttachedFile, OutgoingMail
from assistant.mail.imap import MailQuery
from assistant.mail.service import MailPlace, MailService
from tests.support.dovecot import PASSWORD, Dovecot
from tests.support.own_mail import mail_from
from tests.support.submission import Submission, taking_mail

NOW = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)
_PART = b"Content-Type: multipart/mixed; boundary=b\r\n"
MAIL = OutgoingMail(("bob@example.org",), "Boat", "The **boat** is ready.")


@dataclass
class Mail:
    imap: Dovecot
    smtp: Submission
    user: str
    service: MailService

    def deliver(self, message: EmailMessage | bytes) -> None:
        self.imap.deliver(self.user, message if isinstance(message, bytes) else message.as_bytes())

    async def subjects(self, **query: object) -> list[str]:
        found = await self.service.search(MailQuery(**query), limit=50)  # type: ignore[arg-type]
        return [head.subject for _, head in found.mails]


@pytest.fixture
async def mail(imap_server: Dovecot) -> AsyncIterator[Mail]:
    async with taking_mail() as smtp:
        user = imap_server.new_user()
        account = MailAccount(
            "ada@example.org",
            MailServer("127.0.0.1", imap_server.port, user, PASSWORD),
            MailServer("127.0.0.1", smtp.port, user, PASSWORD),
            "Ada",
        )
        yield Mail(imap_server, smtp, user, MailService(account, clock=lambda: NOW, seconds=10))


# -------------------------------------------------------------------------------------------------- looking and reading


async def test_mails_are_found_by_words_sender_subject_and_what_is_unread(mail: Mail) -> None:
    mail.deliver(mail_from("Bob <bob@example.org>", "Boat", "The keel is done."))
    mail.deliver(mail_from("carol@example.org", "Grüße aus Köln", "Es ist schön."))
    assert await mail.subjects() == ["Grüße aus Köln", "Boat"]
    assert await mail.subjects(text="keel") == ["Boat"]
    assert await mail.subjects(text="schön") == ["Grüße aus Köln"]
    assert await mail.subjects(sender="carol") == ["Grüße aus Köln"]
    assert await mail.subjects(subject="boat", unread=True) == ["Boat"]
    assert await mail.subjects(since=date(2026, 1, 1)) == ["Grüße aus Köln", "Boat"]
    assert await mail.subjects(before=date(2026, 1, 1)) == []


async def test_reading_marks_nothing_as_read(mail: Mail) -> None:
    mail.deliver(mail_from("bob@example.org", "Boat", "The keel is done."))
    parsed = await mail.service.read(MailPlace("INBOX", 1))
    assert (parsed.get("from"), parsed.text.strip()) == ("bob@example.org", "The keel is done.")
    assert await mail.subjects(unread=True) == ["Boat"]


@pytest.mark.parametrize("words", ['" OR ALL', 'a"\r\nA1 DELETE INBOX', "\\", "{5}", "%*", "barge\x00", '")'])
async def test_no_word_of_a_search_leaves_its_quotation(mail: Mail, words: str) -> None:
    mail.deliver(mail_from("bob@example.org", "Boat", "The keel is done."))
    assert await mail.subjects(text=words) == []
    assert await mail.subjects(subject=words, sender=words) == []
    with pytest.raises(MailError):
        await mail.service.search(MailQuery(), words, limit=5)
    assert await mail.subjects() == ["Boat"]


async def test_pages_follow_each_other_newest_first(mail: Mail) -> None:
    for number in range(7):
        mail.deliver(mail_from("bob@example.org", f"Boat {number}", "x"))
    first = await mail.service.search(MailQuery(), limit=3)
    then = await mail.service.search(MailQuery(), limit=3, offset=3)
    assert [head.subject for _, head in first.mails] == ["Boat 6", "Boat 5", "Boat 4"]
    assert ([head.subject for _, head in then.mails], then.more) == (["Boat 3", "Boat 2", "Boat 1"], 1)


async def test_a_mail_of_html_alone_is_read_as_text_without_scripts(mail: Mail) -> None:
    message = mail_from("bob@example.org", "Boat", "")
    message.set_content("<p>One</p><p>Two</p><script>alert(1)</script><style>p{}</style>", subtype="html")
    mail.deliver(message)
    assert (await mail.service.read(MailPlace("INBOX", 1))).text.split() == ["One", "Two"]


async def test_attachments_come_with_their_names_and_bytes(mail: Mail) -> None:
    message = mail_from("bob@example.org", "Boat", "See there.")
    message.add_attachment(b"\x00\x01plan", maintype="application", subtype="x", filename="../plan ü.bin")
    mail.deliver(message)
    (file,) = (await mail.service.read(MailPlace("INBOX", 1))).files
    assert (file.name, file.content()) == ("../plan ü.bin", b"\x00\x01plan")


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\x00\xff\xfe" * 100,
        b"From: =?utf-8?b?////?=\r\nSubject: =?nope?q?x?=\r\n\r\nx",
        _PART + b"\r\n" + (b"--b\r\n" + _PART + b"\r\n") * 5_000,
        b"Content-Type: text/plain; charset=nope\r\nContent-Transfer-Encoding: base64\r\n\r\n!!!",
        b"Subject: " + b"a" * 400_000 + b"\r\n\r\nx",
        b"From: a" + b"@b, a" * 20_000 + b"\r\n\r\nx",
    ],
    ids=["empty", "bytes", "encodings", "nested", "charset", "long subject", "many senders"],
)  # fmt: skip
async def test_a_mail_of_any_bytes_is_listed_and_read_or_refused(mail: Mail, raw: bytes) -> None:
    mail.deliver(raw)
    mail.deliver(mail_from("bob@example.org", "Boat", "The keel is done."))
    assert "Boat" in await mail.subjects()
    try:
        await mail.service.read(MailPlace("INBOX", 1))
    except MailError as error:
        assert str(error)
    assert (await mail.service.read(MailPlace("INBOX", 2))).text.strip() == "The keel is done."


async def test_a_mail_that_is_not_there_and_a_wrong_password_are_told(mail: Mail) -> None:
    with pytest.raises(MailError, match="no mail INBOX:9"):
        await mail.service.read(MailPlace("INBOX", 9))
    wrong = replace(mail.service.account, imap=replace(mail.service.account.imap, password="wrong"))
    with pytest.raises(MailError, match="refuses the user name or the password"):
        await replace(mail.service, account=wrong).check()
    assert await mail.service.check() == "ada@example.org"


# ------------------------------------------------------------------------------------------------------------- sending


def kept(mail: Mail, folder: str) -> list[str]:
    return [
        line for raw in mail.imap.mails(mail.user, folder) for line in raw.decode().splitlines() if "Subject" in line
    ]


async def test_a_mail_is_sent_once_under_its_key_and_is_with_the_sent_ones(mail: Mail) -> None:
    assert "was sent" in await mail.service.send(MAIL, "k1")
    assert "sent before" in await mail.service.send(MAIL, "k1")
    (sent,) = mail.smtp.taken
    assert (sent.sender, sent.recipients) == ("ada@example.org", ["bob@example.org"])
    body = sent.message.get_body(("plain",))
    markup = sent.message.get_body(("html",))
    assert body is not None and markup is not None
    assert body.get_content().strip() == "The **boat** is ready."
    assert "<strong>boat</strong>" in markup.get_content()
    assert (kept(mail, "Sent"), kept(mail, "Drafts")) == (["Subject: Boat"], [])


async def test_a_move_to_the_sent_ones_that_was_cut_off_is_ended_by_the_next_try(mail: Mail) -> None:
    await mail.service.send(MAIL, "k1")
    (raw,) = mail.imap.mails(mail.user, "Sent")
    mail.imap.deliver(mail.user, raw, "Drafts")
    assert "sent before" in await mail.service.send(MAIL, "k1")
    assert (kept(mail, "Sent"), kept(mail, "Drafts")) == (["Subject: Boat"], [])


async def test_another_key_is_another_mail(mail: Mail) -> None:
    await mail.service.send(MAIL, "k1")
    await mail.service.send(MAIL, "k2")
    assert len(mail.smtp.taken) == 2


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_connection_that_breaks_leaves_it_unknown_and_it_is_not_sent_again(mail: Mail, when: str) -> None:
    mail.smtp.troubles = [when]
    for _ in range(2):
        with pytest.raises(MailError, match="Nobody knows whether") as caught:
            await mail.service.send(MAIL, "k1")
        assert caught.value.ambiguous
    assert mail.smtp.attempts == 1
    assert (kept(mail, "Sent"), kept(mail, "Drafts")) == ([], ["Subject: Boat"])


@pytest.mark.parametrize("answer", ["550 No such user", "451 Try again in 300 seconds"])
async def test_what_the_server_refuses_was_not_sent_and_may_be_tried_again(mail: Mail, answer: str) -> None:
    mail.smtp.troubles = [answer]
    with pytest.raises(MailError, match="Nothing was sent") as caught:
        await mail.service.send(MAIL, "k1")
    assert not caught.value.ambiguous and kept(mail, "Drafts") == []
    assert "was sent" in await mail.service.send(MAIL, "k1")
    assert len(mail.smtp.taken) == 1


async def test_without_a_server_nothing_is_sent(mail: Mail) -> None:
    await mail.smtp.stop()
    with pytest.raises(MailError, match="Nothing was sent"):
        await mail.service.send(MAIL, "k1")
    assert kept(mail, "Drafts") == []


async def test_a_draft_is_kept_once_under_its_key_and_not_sent(mail: Mail) -> None:
    assert await mail.service.save_draft(MAIL, "k1")
    assert not await mail.service.save_draft(MAIL, "k1")
    assert (kept(mail, "Drafts"), mail.smtp.attempts) == (["Subject: Boat"], 0)


async def test_an_answer_is_in_the_thread_of_what_it_answers(mail: Mail) -> None:
    answer = replace(MAIL, in_reply_to="<b@x>", references=("<a@x>", "<b@x>"))
    await mail.service.send(answer, "k1")
    message = mail.smtp.taken[0].message
    assert (message["In-Reply-To"], message["References"]) == ("<b@x>", "<a@x> <b@x>")


async def test_no_subject_and_no_name_of_a_file_adds_a_field(mail: Mail) -> None:
    trick = "Boat\r\nBcc: mallory@example.org\r\n\r\nx"
    await mail.service.send(replace(MAIL, subject=trick, files=(AttachedFile(f"{trick}.txt", b"x"),)), "k1")
    (sent,) = mail.smtp.taken
    assert sent.recipients == ["bob@example.org"]
    assert sent.message["Bcc"] is None and "mallory" in sent.message["Subject"]
