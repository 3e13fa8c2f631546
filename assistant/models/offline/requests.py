"""What a message of a person asks offline mode for. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from assistant.core.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Say:
    """An answer that needs nothing looked up."""

    text: str
    is_small_talk: bool = False


@dataclass(frozen=True, slots=True)
class UseTool:
    """One tool call, its result shown as it is."""

    tool: str
    arguments: Mapping[str, str | int]
    needs: str  # what cannot be reached without the tool, as in "files"
    lead: str = ""  # stands before the result


@dataclass(frozen=True, slots=True)
class Note:
    is_task: bool = False  # sounds like something to be done
    is_doubtful: bool = False  # has the form of an order
    is_command: bool = False  # has the mood of one
    is_likely: bool = True  # reads like something told
    is_plain: bool = True  # and has no sign that anything was to change
    names_item: bool = True  # or may: what the person has was not read
    name: str = ""  # the person says that they are called so
    plain_unless_named: str = ""  # it is plain where these words name no reminder and no to-do that is there


@dataclass(frozen=True, slots=True)
class Correction:
    """Something that replaces what was told before."""

    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question about what was said."""

    text: str
    role: Literal["user", "assistant"] = "user"  # whose words are searched
    topic: bool = False  # everything about it, rather than one answer


@dataclass(frozen=True, slots=True)
class AboutMe:
    """What is known of the person at all."""

    counts: bool = False  # it was asked how much that is


@dataclass(frozen=True, slots=True)
class DoOrder:
    """Something to do about reminders, to-dos or the agenda, or that can't be done; `otherwise` is what the sentence is
    where nothing that the person has fits the order."""

    text: str
    otherwise: Say | UseTool | Note | Correction | Question | AboutMe


PlainRequest = Say | UseTool | Note | Correction | Question | AboutMe
Request = DoOrder | PlainRequest
