"""What the doctor says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "note", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """How one thing is. `to_do` is what a person can do: of a "problem" that is always said, here or at the end of
    `text`; a "note" is no problem, but may be worth something to them. `mended` tells what was done about it."""

    subject: str
    verdict: Verdict
    text: str
    to_do: str = ""
    mended: str = ""


def ok(subject: str, text: str) -> Finding:
    return Finding(subject, "ok", text)


def note(subject: str, text: str, to_do: str = "") -> Finding:
    return Finding(subject, "note", text, to_do)


def problem(subject: str, text: str, to_do: str) -> Finding:
    return Finding(subject, "problem", text, to_do)


def mended(subject: str, text: str, done: str) -> Finding:
    """It was a problem."""
    return Finding(subject, "ok", text, mended=done)
