"""`assistant mail`: your own mail, as the model may search and read it. These commands ask your mail server themselves,
with or without a running assistant, and change nothing there."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from datetime import date, datetime

import click

from assistant.cli.bridge.mailbox import ask_mailbox_login
from assistant.cli.config.change import change_config_file, print_changes, store_secret
from assistant.cli.home_stores import load_effective_settings
from assistant.cli.output import json_result, print_remark, print_text
from assistant.cli.prompts import StepSkipped
from assistant.core.dataclass import dataclass
from assistant.core.errors import UsageError
from assistant.core.quoting import replace_hidden_characters
from assistant.core.text import pluralize
from assistant.mail.parsed import ParsedMail
from assistant.mail.service import MailPlace, MailService, imap_module
from assistant.settings.config_text import CONFIG_HEADER, set_key
from assistant.settings.home import home_from_environment
from assistant.settings.settings import Settings, load_settings
from assistant.wire.mail import own_mail_account

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


@click.group("mail", invoke_without_command=True)
@click.pass_context
def mail(context: click.Context) -> None:
    """Your own mail: set it up, list, search and read it.

    The model searches and reads it for you, and sends a mail after you said yes to it. For a mailbox of the assistant's
    own, to which you write: `assistant bridge add mail`.

    > assistant mail add ada@example.org
    > assistant mail list --unread
    """
    if context.invoked_subcommand is None:
        if load_effective_settings(read_only=True).values.mail_account.address:
            context.invoke(list_, folder="", unread=False)
        else:
            print_text("Your mail is not set up. `assistant mail add ADDRESS` sets it up.")


@mail.command()
@click.argument("address")
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input; ask nothing.")
@click.option("--file", "in_file", is_flag=True, help="Store the password in secrets.toml, not in the keyring.")
def add(address: str, password_stdin: bool, in_file: bool) -> None:
    """Set up your mail, after a login to both servers.

    Many providers want a password made for one program: they call it an app password.

    > assistant mail add ada@example.org
    > pass show mail | assistant mail add ada@example.org --password-stdin
    """
    home = home_from_environment()
    settings = load_settings(home)
    password = sys.stdin.read().strip() if password_stdin else ""
    if password_stdin and (not password or len(password.splitlines()) != 1):
        raise UsageError("Standard input must contain the password, in one line. Nothing was changed.")
    current = settings.values.mail_account
    has_password = bool(current.password.get_secret_value())
    try:
        answers = ask_mailbox_login(
            home, "mail_account", current, address=address, password=password, has_password=has_password
        )
    except StepSkipped:
        print_text("Skipped. Nothing was changed.")
        return
    account = own_mail_account(current.model_copy(update=answers.keys))
    if answers.password:
        imap, smtp = (replace(server, password=answers.password) for server in (account.imap, account.smtp))
        account = replace(account, imap=imap, smtp=smtp)
    print_text(f"Logging in as {account.imap.user} ...")
    asyncio.run(MailService(account).check())
    if answers.password:
        store_secret(home, "mail_account.password", answers.password, in_file=in_file)

    def edit(text: str) -> str:
        text = text or CONFIG_HEADER
        for key, value in answers.keys.items():
            text = set_key(text, f"mail_account.{key}", value)
        return text

    print_changes(home, change_config_file(home, edit))
    print_text("Both servers accept the login. The model can use your mail from the assistant's next start on.")


@mail.command()
@json_result(str)
def test() -> str:
    """Log in to both servers.

    > assistant mail test
    """
    service = _service(load_effective_settings())
    address = asyncio.run(service.check())
    print_text(f"Both servers accept the login of {address}.")
    return address


@mail.command("list")
@click.option("--folder", default="", help="Only this folder.")
@click.option("--unread", is_flag=True, help="Only what is unread.")
@json_result(list[MailItem], "Print a JSON array of the mails.")
def list_(folder: str, unread: bool) -> list[MailItem]:
    """List the newest mails.

    > assistant mail list
    > assistant mail list --unread --folder Archive
    """
    return _show_found("", folder, unread=unread)


@mail.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--from", "sender", default="", help="Only of this sender.")
@click.option("--since", type=click.DateTime(["%Y-%m-%d"]), help="Only from this day on.")
@click.option("--folder", default="", help="Only in this folder.")
@json_result(list[MailItem], "Print a JSON array of the mails.")
def search(words: tuple[str, ...], sender: str, since: datetime | None, folder: str) -> list[MailItem]:
    """Search your mail, newest first.

    > assistant mail search boat keel
    > assistant mail search invoice --from bob@example.org --since 2026-01-01
    """
    return _show_found(" ".join(words), folder, sender=sender, since=since.date() if since else None)


@mail.command()
@click.argument("mail_id")
@json_result(MailText)
def read(mail_id: str) -> MailText:
    """Show the mail MAIL_ID of a list. It stays unread on the server.

    > assistant mail read Archive:17
    """
    service = _service(load_effective_settings())
    parsed = asyncio.run(service.read(MailPlace.parse(mail_id)))
    shown = _as_text(parsed)
    for name, value in (("From", shown.sender), ("To", shown.to), ("Date", shown.date), ("Subject", shown.subject)):
        print_text(f"{name}: {replace_hidden_characters(value)}")
    for number, file in enumerate(shown.files, 1):
        print_text(f"Attachment {number}: {replace_hidden_characters(file.name)} ({file.mime}, {file.size:,} bytes)")
    print_text("")
    print_text(replace_hidden_characters(shown.text.strip()) or "(It has no text.)")
    return shown


def _as_text(parsed: ParsedMail) -> MailText:
    files = tuple(MailFile(it.name, it.mime, it.size) for it in parsed.files)
    return MailText(parsed.get("from"), parsed.get("to"), parsed.get("date"), parsed.get("subject"), parsed.text, files)


def _service(settings: Settings) -> MailService:
    if not settings.values.mail_account.address:
        raise UsageError(_NOT_SET_UP)
    return MailService(own_mail_account(settings.values.mail_account))


def _show_found(
    text: str, folder: str, *, sender: str = "", since: date | None = None, unread: bool = False
) -> list[MailItem]:
    service = _service(load_effective_settings())
    query = imap_module().MailQuery(text, sender, since=since, unread=unread)
    found = asyncio.run(service.search(query, folder, limit=_SHOWN))
    items = [MailItem(str(place), not head.seen, head.date, head.sender, head.subject) for place, head in found.mails]
    for item in items:
        mark = "*" if item.unread else " "
        line = f"{mark} {item.id}  {item.date}  {item.sender}: {item.subject}"
        print_text(replace_hidden_characters(line))
    if not items:
        print_text("No mail was found.")
    if found.more:
        print_remark(f"{pluralize(found.more, 'more mail')}: search for more words, or since a day.")
    return items
