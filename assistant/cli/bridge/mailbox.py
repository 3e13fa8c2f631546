"""What is asked for a mailbox: its address, its servers, its password; and of the assistant's own, who verifies the
senders of its mail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import field

from assistant.bridges import configured as networks
from assistant.cli.config.change import check_answer
from assistant.cli.output import print_text
from assistant.cli.prompts import prompt_until_valid
from assistant.core.dataclass import dataclass
from assistant.core.errors import UsageError
from assistant.settings.home import Home
from assistant.settings.networks import FurtherMailAccount, MailAccountSettings, MailSettings
from assistant.settings.settings import Settings

_OWN_MAILBOX = (
    "The assistant needs a mailbox of its own, with IMAP and SMTP. Do not use your own: everything that arrives there "
    "is read as said to it."
)
_VERIFIER = (
    "A From line proves nothing. Which server checks the senders of this mailbox's mail? Its name is the first word of "
    "the Authentication-Results in the source of any mail there. Only what it verified is accepted."
)


@dataclass(frozen=True, slots=True)
class Mailbox:
    """Keys of the section, without the password, which is "" where it stays as it was."""

    keys: dict[str, str]
    password: str = field(default="", repr=False)


def ask_mailbox_login(
    home: Home,
    section: str,
    current: MailSettings | MailAccountSettings | FurtherMailAccount,
    *,
    address: str = "",
    password: str = "",
    has_password: bool,
) -> Mailbox:
    """With `password` nothing is asked: what is not set is guessed from the address. Raises `UsageError`."""
    asks = not password

    def value(key: str, question: str, default: str) -> str:
        def check(answer: str) -> str:
            if not answer:
                raise UsageError("It cannot be empty; - skips this.")
            return check_answer(home, f"{section}.{key}", answer)

        return prompt_until_valid(question, default, check) if asks else check(default)

    chosen = address or current.address
    chosen = (
        value("address", "Its address", chosen) if not address else check_answer(home, f"{section}.address", chosen)
    )
    same = current.address in ("", chosen)  # what was set before the address was, counts
    domain = chosen.partition("@")[2]
    imap = value("imap_host", "Its IMAP server", (same and current.imap_host) or f"imap.{domain}")
    smtp = value("smtp_host", "Its server for sending (SMTP)", (same and current.smtp_host) or f"smtp.{domain}")
    if asks:
        kept = has_password and same
        shown = "the current one" if kept else ""
        password = prompt_until_valid(
            "Password (not shown), often one made for this program", "", _required(kept), shown=shown, secret=True
        )
    return Mailbox({"address": chosen, "imap_host": imap, "smtp_host": smtp}, password)


def _required(may_be_empty: bool) -> Callable[[str], str]:
    def check(answer: str) -> str:
        if not answer and not may_be_empty:
            raise UsageError("It cannot be empty; - skips this.")
        return answer

    return check


def ask_verifier(home: Home, settings: Settings, mailbox: Mailbox, *, asks: bool) -> str:
    """Raises `UsageError`, and `BridgeError` where the mailbox cannot be opened."""
    current = settings.values.mail.verified_by
    if not asks:
        if not current:
            raise UsageError(
                "Which server verifies the senders of its mail? `assistant config set mail.verified_by NAME` says it, "
                "and without --password-stdin you are asked. Nothing was changed."
            )
        return current
    trial = networks.settings_with_answers(settings, "mail", mailbox.keys, mailbox.password)
    found = current or asyncio.run(networks.find_mail_verifier(trial))
    print_text(_VERIFIER)
    if not found:
        print_text("No mail is there yet that says it. Write one to it from anywhere, then look at its source.")

    def check(answer: str) -> str:
        if not answer or len(answer.split()) != 1:
            raise UsageError("It is the name of a server, as in mx.example.org; - skips this.")
        return check_answer(home, "mail.verified_by", answer)

    return prompt_until_valid("Server", found, check)


def explain_own_mailbox() -> None:
    print_text(_OWN_MAILBOX)
