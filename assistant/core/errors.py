"""Exceptions, written for people.

An error's text says what happened, what was kept and what to do next, in one or two lines. The command line prints it
without a traceback (unless `--debug`) and maps the class to an exit code. `install_hint` names a missing optional
extra.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from assistant.core.text import quote_briefly

_LONGEST_WAIT = 24 * 3600.0

ModelErrorKind = Literal[
    "overflow",
    "rate_limit",
    "overload",
    "auth",
    "no_credit",
    "unknown_model",
    "budget",
    "refusal",
    "bad_request",
    "network",
]


class AssistantError(Exception):
    """Something went wrong. Nothing that was accepted is lost."""

    exit_code = 1

    def __str__(self) -> str:
        return super().__str__() or (self.__doc__ or "").strip()


class UsageError(AssistantError):
    """The command or argument is not understood, or names what is not there. Nothing was changed."""

    exit_code = 2

    def __str__(self) -> str:
        return quote_briefly(super().__str__())


class NothingYet(UsageError):
    """There is nothing yet for the command to work on, and you named nothing that is missing."""

    exit_code = 0


class SettingsError(AssistantError):
    """A setting is not valid. Nothing was started; correct it and start again.

    `problems` has a line for each: the file or variable, the key, what was found and what is allowed.
    """

    exit_code = 2

    def __init__(self, text: str = "", *, problems: Sequence[str] = ()) -> None:
        super().__init__(text)
        self.problems = tuple(problems) or (text,)


class SecretsUnavailable(AssistantError):
    """The place where a secret is kept does not answer. Nothing was changed."""


class HomeError(AssistantError):
    """The data folder cannot be used."""


class NewHome(HomeError):
    """Nothing was ever said in the data folder. Nothing was changed."""


class HomeLocked(HomeError):
    """The assistant is running already with this data folder. Talk to it with `assistant chat`, or stop it first."""


class StoreError(AssistantError):
    """The data folder cannot be written. What was accepted before is kept; free some space or repair the disk, then try
    again."""


class NewerSchema(StoreError):
    """The data folder was written by a newer version. Nothing was changed; install that version or restore a backup."""


class OlderSchema(StoreError):
    """The data folder was written by an earlier version. Nothing was changed; the next start updates it."""


class HomeReplaced(StoreError):
    """The data folder was replaced while it was open. Nothing was written; start the assistant again."""


class ReplicaUnavailable(StoreError):
    """The replica does not answer. What was accepted is kept on this machine alone."""


class ReplicaLost(ReplicaUnavailable):
    """Another machine has taken this home over. This one keeps nothing more, and answers nobody."""


class CorruptStore(StoreError):
    """Files in the data folder contradict each other. Nothing was changed; run `assistant verify`."""


class StoreLost(CorruptStore):
    """A database of the data folder is missing, damaged, or older than it was. Nothing was changed; run `assistant
    verify --repair`."""


class IndexDamaged(CorruptStore):
    """The search index is damaged. It is made again from what was said."""


class StaleView(AssistantError):
    """The conversation changed while a new view of it was being made. The earlier view stays."""


class MemoryUnavailable(AssistantError):
    """The memory store does not answer. The journal keeps everything; the next sleep catches up."""


class ArchiveUnavailable(AssistantError):
    """The archive could not be reached or verified. Nothing was removed; it is tried again later."""


class ArchiveMissing(ArchiveUnavailable):
    """An archive is not where it was stored."""


class ToolError(AssistantError):
    """A tool could not do what was asked; its text is given to the model as the tool's result."""


class OutcomeUnknown(ToolError):
    """Nobody knows whether a tool did what was asked; its text says so, and is given to the model."""


class BridgeError(AssistantError):
    """A message could not be delivered. It is kept and sent again.

    `retry_after` is in seconds, a day at most, whatever the network says. `ambiguous` is True where the message may
    have arrived. `refused` is True where the network answered, and will not take this message: sent again, it would be
    refused again.
    """

    def __init__(
        self, text: str = "", *, retry_after: float | None = None, ambiguous: bool = False, refused: bool = False
    ) -> None:
        super().__init__(text)
        self.retry_after = None if retry_after is None else min(max(0.0, retry_after), _LONGEST_WAIT)
        self.ambiguous = ambiguous
        self.refused = refused


class MailError(AssistantError):
    """A mail server did not do what was asked.

    `retry_after`, `ambiguous` and `refused` are as in `BridgeError`.
    """

    def __init__(
        self, text: str = "", *, retry_after: float | None = None, ambiguous: bool = False, refused: bool = False
    ) -> None:
        super().__init__(text)
        self.retry_after = retry_after
        self.ambiguous = ambiguous
        self.refused = refused


class RecipientNotConnected(BridgeError):
    """Nobody is connected there now. The message is kept and waits."""


class ModelError(AssistantError):
    """The model did not answer. Your message is kept.

    `kind` decides what happens next: `overflow` compacts, `rate_limit`, `overload` and `network` are retried
    (honouring `retry_after`, seconds) and then failed over, `auth`, `no_credit`, `unknown_model`, `refusal` and
    `bad_request` fail over at once, `budget` falls back to offline mode. `partial` is the text streamed before the
    failure.
    """

    exit_code = 3

    def __init__(
        self,
        text: str = "",
        *,
        kind: ModelErrorKind,
        retry_after: float | None = None,
        provider: str = "",
        partial: str = "",
    ) -> None:
        super().__init__(text)
        self.kind: ModelErrorKind = kind
        self.retry_after = retry_after
        self.provider = provider
        self.partial = partial

    @property
    def reason(self) -> str:
        """What happened, without what was kept and what to do next (which only concern the author of the message)."""
        return str(self).partition(" Your message is kept")[0].rstrip(". ")


class BudgetExceeded(ModelError):
    """The budget is used up. Your message is kept; raise `[budget]` or wait for the next day or month.

    `remedy` is what its reader can do about it, as part of a sentence; "" where they can do nothing but wait."""

    exit_code = 4

    def __init__(self, text: str = "", remedy: str = "") -> None:
        super().__init__(text, kind="budget")
        self.remedy = remedy

    @property
    def remedy_sentence(self) -> str:
        """The remedy as a sentence after another, or ""."""
        return f" {self.remedy[0].upper()}{self.remedy[1:]}." if self.remedy else ""


class RepeatedRequestBlocked(BudgetExceeded):
    """The same request was sent again and again without a result. It is not sent again today."""


def install_hint(extra: str) -> str:
    """Return how to install an extra, as part of a sentence. The package is on no index: it is installed from a
    checkout or wheel."""
    return (
        f"the `{extra}` extra brings it: `pipx install --force './[{extra}]'` or `uv tool install './[{extra}]'`, in "
        "the folder of the checkout, with the other extras that you use"
    )
