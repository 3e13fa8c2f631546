"""How mail is encrypted, over real servers (Dovecot, aiosmtpd) with a certificate of their own: each way works where
the certificate is trusted, and nothing is said to a server whose certificate is not."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import pytest

from assistant.core.checked_tables import InvalidTable
from assistant.core.errors import MailError
from assistant.mail.account import MailAccount, MailServer
from assistant.mail.compose import OutgoingMail
from assistant.mail.imap import MailQuery
from assistant.mail.service import MailService
from assistant.settings.networks import FurtherMailAccount
from tests.support.dovecot import PASSWORD, Dovecot
from tests.support.own_mail import mail_from
from tests.support.submission import Submission

MAIL = OutgoingMail(("bob@example.org",), "Boat", "It is ready.")
Way = Literal["tls", "starttls"]


def service(imap: Dovecot, smtp: Submission, tls: Way, ca_file: str, host: str = "127.0.0.1") -> MailService:
    user = imap.new_user()
    imap.deliver(user, mail_from("bob@example.org", "Tea", "At four.").as_bytes())
    port = imap.tls_port if tls == "tls" else imap.port
    return MailService(
        MailAccount(
            "ada@example.org",
            MailServer(host, port, user, PASSWORD, tls, ca_file),
            MailServer(host, smtp.port, user, PASSWORD, tls, ca_file),
        ),
        seconds=30,
    )


async def submission(imap: Dovecot, tls: Way) -> Submission:
    made = Submission(tls=tls, certificate=(imap.certificate, imap.key))
    await made.start()
    return made


@pytest.mark.parametrize("tls", ["tls", "starttls"])
async def test_a_mail_is_found_and_sent_over_a_trusted_connection(imap_server: Dovecot, tls: Way) -> None:
    smtp = await submission(imap_server, tls)
    try:
        mail = service(imap_server, smtp, tls, str(imap_server.certificate))
        assert [head.subject for _, head in (await mail.search(MailQuery(), limit=5)).mails] == ["Tea"]
        assert "was sent" in await mail.send(MAIL, "k1")
        assert [sent.recipients for sent in smtp.taken] == [["bob@example.org"]]
    finally:
        await smtp.stop()


@pytest.mark.parametrize("tls", ["tls", "starttls"])
@pytest.mark.parametrize(
    ("trusted", "host", "why"), [(False, "127.0.0.1", "self-signed"), (True, "localhost", "localhost")]
)
async def test_a_wrong_certificate_is_refused_and_it_is_said_what_to_do(
    imap_server: Dovecot, tls: Way, trusted: bool, host: str, why: str
) -> None:
    """Not known, or of another name: for both servers, and the password is not sent."""
    smtp = await submission(imap_server, tls)
    ca_file = str(imap_server.certificate) if trusted else ""
    try:
        mail = service(imap_server, smtp, tls, ca_file, host)
        with pytest.raises(MailError, match=r"certificate of .* is not accepted.*password was not") as caught:
            await mail.check()
        assert why in str(caught.value).replace("self signed", "self-signed")
        assert "set ca_file" in str(caught.value)
        from assistant.mail.smtp import check_login

        with pytest.raises(MailError, match=f"certificate of {host}:{smtp.port} is not accepted"):
            await check_login(mail.account.smtp)
        assert smtp.attempts == 0
    finally:
        await smtp.stop()


async def test_a_server_without_the_asked_encryption_gets_no_password(imap_server: Dovecot) -> None:
    smtp = Submission()
    await smtp.start()
    try:
        mail = service(imap_server, smtp, "starttls", str(imap_server.certificate))
        with pytest.raises(MailError, match="Nothing was sent"):
            await mail.send(MAIL, "k1")
        assert smtp.taken == []
    finally:
        await smtp.stop()


async def test_a_certificate_that_cannot_be_read_is_named(imap_server: Dovecot, tmp_path: Path) -> None:
    empty = tmp_path / "ca.pem"
    empty.write_text("no certificate")
    for path, why in ((tmp_path / "missing.pem", os.strerror(2)), (empty, "it has no certificate")):
        mail = service(imap_server, Submission(), "tls", str(path))
        with pytest.raises(MailError, match=f"{path.name} cannot be used .*: {why}. Set ca_file"):
            await mail.check()


def test_a_password_never_crosses_a_network_in_the_clear() -> None:
    values = {"name": "work", "address": "ada@example.com", "imap_host": "imap.example.com", "smtp_host": "localhost"}
    assert FurtherMailAccount.from_values(values | {"smtp_tls": "none"}).smtp_tls == "none"
    with pytest.raises(InvalidTable, match="only for a server on this machine"):
        FurtherMailAccount.from_values(values | {"imap_tls": "none"})
    ports = [MailServer(host, port, "ada", "").security for host in ("127.0.0.1", "mx.example") for port in (993, 143)]
    assert ports == ["tls", "none", "tls", "starttls"]
