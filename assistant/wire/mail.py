"""The mail account of the settings, for the app and for a command line."""

from __future__ import annotations

from assistant.mail.account import MailAccount, MailServer
from assistant.settings.networks import MailAccountSettings


def own_mail_account(settings: MailAccountSettings) -> MailAccount:
    """Return the owner's own account."""
    user, password = settings.user or settings.address, settings.password.get_secret_value()
    return MailAccount(
        settings.address,
        MailServer(settings.imap_host, settings.imap_port, user, password),
        MailServer(settings.smtp_host, settings.smtp_port, user, password),
        settings.sender_name,
        settings.folders,
        settings.sent_folder,
        settings.drafts_folder,
    )
