"""What looks like a password, a key, a PIN or a card number is left out of what `aihistory` shows, unless it is asked
for: by `--secrets`, by `--json` (a program takes all of the data), or by a search that names such a thing.

A value is known again without the words around it once a text said what it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from sleep.rules.secrets import find_secret_values, leave_out_secrets

Function = TypeVar("Function", bound=Callable[..., Any])

SECRETS_LEFT_OUT = "What looks like a password, key, PIN or card number is left out; `--secrets` shows it."


def secrets_option(function: Function) -> Function:
    return click.option("--secrets", is_flag=True, help="Also show passwords, keys, PINs and card numbers.")(function)


class SecretMask:
    """Texts without their secrets, or, where these were asked for, as they are."""

    def __init__(self, *, asked: bool) -> None:
        self._asked = asked
        self._kinds: dict[str, str] = {}  # what kind of secret each value is
        self.left_out = False  # whether anything was

    def learn(self, text: str) -> None:
        """Know the secrets of a text again."""
        if not self._asked:
            self._kinds |= find_secret_values([text])

    def apply(self, text: str) -> str:
        """Return the text without its secrets and those learned before; `left_out` tells afterwards whether there were
        any."""
        if self._asked:
            return text
        self.learn(text)
        masked = leave_out_secrets(text, self._kinds)
        self.left_out = self.left_out or masked != text
        return masked

    def with_remark(self, text: str) -> str:
        """What is shown, masked line by line; with a last line that says so where anything was left out."""
        masked = self.apply(text)
        return f"{masked}\n\n{SECRETS_LEFT_OUT}" if self.left_out else masked
