"""`assistant mail` and `assistant bridge add mail`, against real servers on this machine."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from assistant.settings.home import Home
from assistant.settings.settings import load_settings
from tests.support.command_line import FinishedCommand, run_in_process
from tests.support.dovecot import PASSWORD, Dovecot
from tests.support.own_mail import OwnMail, mail_from
from tests.support.submission import Submission, SubmissionThread

ADDRESS = "ada@example.org"


def run(home: Home, *argv: str, typed: str = "") -> FinishedCommand:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", io.StringIO(typed))
        return run_in_process(home.path, *argv)


@pytest.fixture
def smtp() -> Iterator[Submission]:
    with SubmissionThread() as server:
        yield server


@pytest.fixture
def mail(imap_server: Dovecot, smtp: Submission) -> OwnMail:
    return OwnMail(imap_server, smtp, imap_server.new_user())


@pytest.fixture
def home(tmp_path: Path, mail: OwnMail) -> Home:
    """A home whose mail servers are known, and nothing else of them."""
    made = Home(tmp_path / "home")
    made.path.mkdir(mode=0o700)
    servers = f'imap_host = "127.0.0.1"\nimap_port = {mail.imap.port}\nsmtp_host = "127.0.0.1"\nuser = "{mail.user}"\n'
    servers += f"smtp_port = {mail.smtp.port}\n"
    mailbox = f'[mail]\n{servers}address = "nocturne@example.org"\n'
    made.config.write_text(f'[mail_account]\naddress = "{ADDRESS}"\n{servers}{mailbox}')
    return made


def test_your_mail_is_set_up_after_a_login_and_then_listed_searched_and_read(home: Home, mail: OwnMail) -> None:
    added = run(home, "mail", "add", ADDRESS, "--password-stdin", "--file", typed=PASSWORD)
    assert added.returncode == 0 and "Both servers accept the login" in added.out
    assert PASSWORD not in home.config.read_text() + added.out
    assert load_settings(home).values.mail_account.password.get_secret_value() == PASSWORD
    assert "accept the login of ada@example.org" in run(home, "mail", "test").out
    mail.deliver(mail_from("Bob <bob@example.org>", "Boat", "The keel is done."))
    mail.deliver(mail_from("carol@example.org", "Tea", "At four."))
    listed = run(home, "mail", "list").out.splitlines()
    assert ["Tea" in listed[0], "Boat" in listed[1]] == [True, True]
    assert listed[0].startswith("* INBOX:2  Sat 2026-02-28 ")  # by the clock of the home
    found = json.loads(run(home, "mail", "search", "keel", "--json").out)
    assert [it["subject"] for it in found] == ["Boat"]
    read = run(home, "mail", "read", "INBOX:1").out
    assert "From: Bob <bob@example.org>" in read and "The keel is done." in read
    assert "* INBOX:1" in run(home, "mail", "list").out


def test_several_accounts_each_have_their_name_and_password(
    home: Home, mail: OwnMail, imap_server: Dovecot, smtp: Submission
) -> None:
    """The first stays the one section of before; a mail of another is named with its account."""
    assert run(home, "mail", "add", ADDRESS, "--password-stdin", "--file", typed=PASSWORD).returncode == 0
    work = OwnMail(imap_server, smtp, imap_server.new_user())
    servers = ("--imap", f"127.0.0.1:{imap_server.port}", "--smtp", f"127.0.0.1:{smtp.port}", "--user", work.user)
    further = ("mail", "add", "ada@work.example", "--name", "work", *servers, "--password-stdin", "--file")
    wrong = run(home, *further, typed="wrong")
    assert wrong.returncode == 1 and "work" not in home.config.read_text()
    added = run(home, *further, typed=PASSWORD)
    assert added.returncode == 0 and PASSWORD not in home.config.read_text() + added.out, added.err
    mail.deliver(mail_from("bob@example.org", "Boat", "The keel is done."))
    work.deliver(mail_from("carol@example.org", "Tea", "At four."))
    listed = run(home, "mail", "list").out
    assert "main:INBOX:1" in listed and "work:INBOX:1" in listed
    only = json.loads(run(home, "mail", "list", "--account", "work", "--json").out)
    assert [(it["id"], it["subject"]) for it in only] == [("work:INBOX:1", "Tea")]
    assert "At four." in run(home, "mail", "read", "work:INBOX:1").out
    assert "The keel is done." in run(home, "mail", "read", "INBOX:1").out
    tested = run(home, "mail", "test").out
    assert "accept the login of ada@example.org" in tested and "accept the login of ada@work.example" in tested
    assert "work: ada@work.example" in run(home, "mail", "accounts").out
    unknown = run(home, "mail", "list", "--account", "club")
    assert unknown.returncode == 1 and "work (ada@work.example)" in unknown.err
    assert run(home, "mail", "remove", "work").returncode == 0
    assert "work:" not in run(home, "mail", "accounts").out
    left = load_settings(home).values.mail_account
    assert (left.further, left.passwords.get_secret_value(), left.address) == ((), "{}", ADDRESS)


def test_a_password_that_is_refused_changes_nothing(home: Home) -> None:
    before = home.config.read_text()
    added = run(home, "mail", "add", ADDRESS, "--password-stdin", "--file", typed="wrong")
    assert added.returncode == 1 and "refuses the user name or the password" in added.err
    assert home.config.read_text() == before and not home.secrets.exists()


def test_without_an_account_it_is_said_how_to_set_one_up(tmp_path: Path) -> None:
    done = run(Home(tmp_path), "mail", "list")
    assert done.returncode == 0 and "`assistant mail add ADDRESS`" in done.out


def test_words_of_a_sender_cannot_move_the_cursor(home: Home, mail: OwnMail) -> None:
    run(home, "mail", "add", ADDRESS, "--password-stdin", "--file", typed=PASSWORD)
    mail.deliver(b"From: x@example.org\r\nSubject: =?utf-8?q?=1B[2JBoat?=\r\n\r\n\x1b[2Jx\r\n")
    for argv in (["list"], ["read", "INBOX:1"]):
        assert "\x1b" not in run(home, "mail", *argv).out


def test_the_bridge_is_not_added_before_it_is_known_who_verifies_senders(home: Home) -> None:
    # The servers are set, and the address only now: they are used, not guessed from it.
    home.config.write_text(home.config.read_text().replace('address = "nocturne@example.org"\n', ""))
    argv = ["bridge", "add", "mail", "--user", "nocturne@example.org", "--password-stdin", "--file", "--no-wait"]
    refused = run(home, *argv, typed=PASSWORD)
    assert refused.returncode == 2 and "mail.verified_by" in refused.err
    assert not load_settings(home).values.mail.enabled
    run(home, "config", "set", "mail.verified_by", "mx.example.org")
    added = run(home, *argv, typed=PASSWORD)
    assert added.returncode == 0 and "Set up." in added.out
    assert "On mail the assistant is nocturne@example.org" in added.out
    assert load_settings(home).values.mail.enabled


def test_who_verifies_senders_is_taken_from_the_newest_mail(home: Home, mail: OwnMail) -> None:
    """Asked at a terminal: the values of the settings and what is found are offered, and Enter takes them."""
    mail.deliver(mail_from("x@example.org", "Hi", "x", Authentication_Results="mx.example.org; dmarc=pass"))
    answers = ["", "", "", PASSWORD, ""]
    argv = ["bridge", "add", "mail", "--owner", "ada@example.org", "--file", "--no-wait"]
    added = run(home, *argv, typed="\n".join(answers) + "\n")
    assert added.returncode == 0, added.out + added.err
    assert "Server [mx.example.org]" in added.out
    assert PASSWORD not in added.out
    values = load_settings(home).values.mail
    assert (values.verified_by, values.enabled) == ("mx.example.org", True)
    assert "Write a mail to nocturne@example.org from your own address." in added.out
