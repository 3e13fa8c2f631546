"""`assistant mail`: your own mail, as the model may search and read it. These commands ask your mail server themselves,
with or without a running assistant, and change nothing there."""

from __future__ import annotations

import asyncio
import sys
from datetime import date, datetime, tzinfo
from email.utils import parsedate_to_datetime

import click

from assistant.cli.bridge.mailbox import ask_mailbox_login
from assistant.cli.config.change import print_changes
from assistant.cli.home_stores import load_effective_settings
from assistant.cli.lazy import DefaultGroup
from assistant.cli.mail_accounts import (
    account_to_change,
    check_account,
    chosen_keys,
    remove_account,
    save_account,
    store_account_password,
    stored_password,
)
from assistant.cli.output import json_result, print_remark, print_text
from assistant.cli.prompts import StepSkipped
from assistant.core.calendar import format_local_time
from assistant.core.dataclass import dataclass
from assistant.core.errors import MailError, UsageError
from assistant.core.quoting import replace_hidden_characters
from assistant.core.text import pluralize
from assistant.mail.accounts import MailAccounts
from assistant.mail.parsed import ParsedMail
from assistant.mail.service import MailService, imap_module
from assistant.settings.home import home_from_environment
from assistant.settings.settings import Settings, load_settings
from assistant.wire.mail import own_mail_account, own_mail_accounts

_SHOWN = 20
_NOT_SET_UP = "Your mail is not set up. `assistant mail add ADDRESS` sets it up. Nothing was done."


@dataclass(frozen=True, slots=True)
class MailItem:
    """One mail of a list; everything but `id` and `unread` is the sender's own words."""

    id: str
    unread: bool
    date: str
    sender: str
    subject: str


@dataclass(frozen=True, slots=True)
class MailAccountItem:
    name: str
    address: str
    imap: str
    smtp: str


@dataclass(frozen=True, slots=True)
class MailFile:
    name: str
    mime: str
    size: int


@dataclass(frozen=True, slots=True)
class MailText:
    sender: str
    to: str
    date: str
    subject: str
    text: str
    files: tuple[MailFile, ...]


@click.group("mail", cls=DefaultGroup, default="list")
def mail() -> None:
    """Your own mail: set it up, list, search and read it.

    The model searches and reads it for you, and sends a mail after you said yes to it. For a mailbox of the assistant's
    own, to which you write: `assistant bridge add mail`.

    > assistant mail add ada@example.org
    > assistant mail list --unread
    """


@mail.command()
@click.argument("address")
@click.option("--name", default="", help="What you call it, where you have several.")
@click.option("--imap", default="", help="Its IMAP server, as in imap.example.org:993.")
@click.option("--smtp", default="", help="Its server for sending, as in smtp.example.org:465.")
@click.option("--user", default="", help="The user name, if it is not the address.")
@click.option("--ca-file", default="", help="The certificate of a server of your own.")
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input; ask nothing.")
@click.option("--file", "in_file", is_flag=True, help="Store the password in secrets.toml, not in the keyring.")
def add(
    address: str, name: str, imap: str, smtp: str, user: str, ca_file: str, password_stdin: bool, in_file: bool
) -> None:
    """Set up your mail, after a login to both servers.

    Many providers want a password made for one program: they call it an app password. A second address is a further
    account; the same address again changes its settings.

    > assistant mail add ada@example.org
    > assistant mail add ada@example.com --name work
    > pass show mail | assistant mail add ada@example.org --password-stdin
    """
    home = home_from_environment()
    settings = load_settings(home)
    password = sys.stdin.read().strip() if password_stdin else ""
    if password_stdin and (not password or len(password.splitlines()) != 1):
        raise UsageError("Standard input must contain the password, in one line. Nothing was changed.")
    own = settings.values.mail_account
    current = account_to_change(own, address, name)
    known = stored_password(own, current)
    given = chosen_keys(current, imap, smtp, user, ca_file, name)
    try:
        answers = ask_mailbox_login(
            home,
            "mail_account",
            current.changed(address=address, **given),
            address=address,
            password=password,
            has_password=bool(known) and address == current.address,
        )
    except StepSkipped:
        print_text("Skipped. Nothing was changed.")
        return
    chosen = check_account(own, current, {**given, **answers.keys})
    account = own_mail_account(chosen, answers.password or known)
    print_text(f"Logging in as {account.imap.user} ...")
    asyncio.run(MailService(account).check())
    if answers.password or chosen.name != current.name:
        store_account_password(home, own, chosen, answers.password or known, in_file=in_file)
    print_changes(home, save_account(home, own, chosen, {**given, **answers.keys}))
    print_text("Both servers accept the login. The model can use your mail from the assistant's next start on.")


@mail.command()
@click.argument("name")
@json_result(str)
def remove(name: str) -> str:
    """Forget an account and its password. Nothing is changed on its servers.

    > assistant mail remove work
    """
    home = home_from_environment()
    gone = remove_account(home, load_settings(home).values.mail_account, name)
    print_text(f"{gone} is not used any more, from the assistant's next start on. Its mail stays where it is.")
    return gone


@mail.command()
@json_result(list[MailAccountItem], "Print a JSON array of the accounts.")
def accounts() -> list[MailAccountItem]:
    """List your mail accounts, without asking their servers.

    > assistant mail accounts
    """
    found = [
        MailAccountItem(it.account.name, it.account.address, str(it.account.imap), str(it.account.smtp))
        for it in _accounts(load_effective_settings()).services
    ]
    for item in found:
        print_text(f"{item.name}: {item.address} ({item.imap}, {item.smtp})")
    return found


@mail.command()
@json_result(str)
def test() -> str:
    """Log in to both servers of every account.

    > assistant mail test
    """
    mail = _accounts(load_effective_settings())
    problems = []
    for service in mail.services:
        try:
            print_text(f"Both servers accept the login of {asyncio.run(service.check())}.")
        except MailError as error:
            problems.append(str(error))
    if problems:
        raise MailError("\n".join(problems), refused=True)
    return mail.describe()


@mail.command("list")
@click.option("--folder", default="", help="Only this folder.")
@click.option("--account", default="", help="Only of this account.")
@click.option("--unread", is_flag=True, help="Only what is unread.")
@json_result(list[MailItem], "Print a JSON array of the mails.")
def list_(folder: str, account: str, unread: bool) -> list[MailItem]:
    """List the newest mails.

    > assistant mail list
    > assistant mail list --unread --folder Archive
    > assistant mail list --account work
    """
    if not own_mail_accounts(load_effective_settings(read_only=True).values.mail_account):
        print_text("Your mail is not set up. `assistant mail add ADDRESS` sets it up.")
        return []
    return _show_found("", folder, account, unread=unread)


@mail.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--from", "sender", default="", help="Only of this sender.")
@click.option("--since", type=click.DateTime(["%Y-%m-%d"]), help="Only from this day on.")
@click.option("--folder", default="", help="Only in this folder.")
@click.option("--account", default="", help="Only in this account.")
@json_result(list[MailItem], "Print a JSON array of the mails.")
def search(words: tuple[str, ...], sender: str, since: datetime | None, folder: str, account: str) -> list[MailItem]:
    """Search your mail, newest first.

    > assistant mail search boat keel
    > assistant mail search invoice --from bob@example.org --since 2026-01-01
    """
    return _show_found(" ".join(words), folder, account, sender=sender, since=since.date() if since else None)


@mail.command()
@click.argument("mail_id")
@json_result(MailText)
def read(mail_id: str) -> MailText:
    """Show the mail MAIL_ID of a list. It stays unread on the server.

    > assistant mail read Archive:17
    """
    settings = load_effective_settings()
    shown = _as_text(asyncio.run(_accounts(settings).read(mail_id)))
    date = _local_date(shown.date, settings.zone)
    for name, value in (("From", shown.sender), ("To", shown.to), ("Date", date), ("Subject", shown.subject)):
        print_text(f"{name}: {replace_hidden_characters(value) or '(none)'}")
    for number, file in enumerate(shown.files, 1):
        print_text(f"Attachment {number}: {replace_hidden_characters(file.name)} ({file.mime}, {file.size:,} bytes)")
    print_text("")
    print_text(replace_hidden_characters(shown.text.strip()) or "(It has no text.)")
    return shown


def _as_text(parsed: ParsedMail) -> MailText:
    files = tuple(MailFile(it.name, it.mime, it.size) for it in parsed.files)
    return MailText(parsed.get("from"), parsed.get("to"), parsed.get("date"), parsed.get("subject"), parsed.text, files)


def _local_date(text: str, zone: tzinfo) -> str:
    """Return a mail's date by the clock of the home; as it came, where it is none."""
    try:
        return format_local_time(parsedate_to_datetime(text), zone)
    except (ValueError, OverflowError):
        return text


def _accounts(settings: Settings) -> MailAccounts:
    found = own_mail_accounts(settings.values.mail_account)
    if found is None:
        raise UsageError(_NOT_SET_UP)
    return found


def _show_found(
    text: str, folder: str, account: str, *, sender: str = "", since: date | None = None, unread: bool = False
) -> list[MailItem]:
    settings = load_effective_settings()
    mail = _accounts(settings)
    query = imap_module().MailQuery(text, sender, since=since, unread=unread)
    found = asyncio.run(mail.search(query, folder, account, limit=_SHOWN))
    items = [MailItem(str(place), not head.seen, head.date, head.sender, head.subject) for place, head in found.mails]
    for item in items:
        mark = "*" if item.unread else " "
        date, sender = _local_date(item.date, settings.zone) or "(no date)", item.sender or "(no sender)"
        line = f"{mark} {item.id}  {date}  {sender}: {item.subject or '(no subject)'}"
        print_text(replace_hidden_characters(line))
    if not items:
        print_text("No mail was found.")
    for problem in found.problems:
        print_remark(f"Not searched: {problem}")
    if found.more:
        print_remark(f"{pluralize(found.more, 'more mail')}: search for more words, or since a day.")
    return items
