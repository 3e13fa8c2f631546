"""The mail accounts of the settings, for the app and for a command line."""

from __future__ import annotations

from assistant.mail.account import MailAccount, MailServer
from assistant.mail.accounts import MailAccounts
from assistant.mail.service import MailService
from assistant.settings.calendar_sources import read_passwords
from assistant.settings.networks import FurtherMailAccount, MailAccountSettings


def own_mail_accounts(settings: MailAccountSettings) -> MailAccounts | None:
    """Return the owner's accounts, or None without any."""
    passwords = read_passwords(settings.passwords)
    chosen = [own_mail_account(settings, settings.password.get_secret_value())] if settings.address else []
    chosen += [own_mail_account(it, passwords.get(it.name, "")) for it in settings.further]
    return MailAccounts(tuple(map(MailService, chosen))) if chosen else None


def own_mail_account(settings: MailAccountSettings | FurtherMailAccount, password: str) -> MailAccount:
    user, ca_file = settings.user or settings.address, settings.ca_file
    return MailAccount(
        settings.address,
        MailServer(settings.imap_host, settings.imap_port, user, password, settings.imap_tls, ca_file),
        MailServer(settings.smtp_host, settings.smtp_port, user, password, settings.smtp_tls, ca_file),
        settings.sender_name,
        settings.folders,
        settings.sent_folder,
        settings.drafts_folder,
        settings.name,
    )
