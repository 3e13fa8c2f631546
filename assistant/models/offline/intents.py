"""What a message can ask of the offline model: one small value for each kind of request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Mood = Literal["greeting", "thanks", "goodbye", "agreed", "well", "help"]


@dataclass(frozen=True, slots=True)
class TakeNote:
    """Something told; `task` where it sounds like something to be done."""

    task: bool = False


@dataclass(frozen=True, slots=True)
class CorrectStatement:
    """Something told that replaces what was told before."""

    text: str


@dataclass(frozen=True, slots=True)
class AskHistory:
    """A question about what was said. `topic` asks for everything about it rather than for one answer."""

    text: str
    role: Literal["user", "assistant"] = "user"
    topic: bool = False


@dataclass(frozen=True, slots=True)
class AboutMe:
    """What is known of the person at all."""


@dataclass(frozen=True, slots=True)
class AddTodos:
    items: tuple[str, ...]
    reminder: bool = False


@dataclass(frozen=True, slots=True)
class SetReminder:
    """`when` in the person's words; `instead` goes on the to-do list where no reminder can be set."""

    text: str
    when: str
    instead: AddTodos


@dataclass(frozen=True, slots=True)
class ListReminders:
    """Those that wait."""


@dataclass(frozen=True, slots=True)
class CancelReminder:
    id: int


@dataclass(frozen=True, slots=True)
class ShowTodos:
    """`label` names one of several lists ("shopping"), whose items begin with it."""

    label: str = ""
    clear: bool = False


@dataclass(frozen=True, slots=True)
class ChangeTodos:
    """Complete or remove by number, or by the words of one to-do."""

    action: Literal["complete", "remove"]
    ids: tuple[int, ...] = ()
    words: str = ""


@dataclass(frozen=True, slots=True)
class TellTime:
    """The time, the date, the day or the week."""


@dataclass(frozen=True, slots=True)
class ListFiles:
    path: str = ""


@dataclass(frozen=True, slots=True)
class ReadFile:
    path: str


@dataclass(frozen=True, slots=True)
class ReadMessage:
    message_id: int


@dataclass(frozen=True, slots=True)
class SmallTalk:
    mood: Mood


@dataclass(frozen=True, slots=True)
class NeedsLanguageModel:
    """Something that takes a language model, or (`forget`) something only the person may do."""

    forget: bool = False


Intent = (
    TakeNote
    | CorrectStatement
    | AskHistory
    | AboutMe
    | AddTodos
    | SetReminder
    | ListReminders
    | CancelReminder
    | ShowTodos
    | ChangeTodos
    | TellTime
    | ListFiles
    | ReadFile
    | ReadMessage
    | SmallTalk
    | NeedsLanguageModel
)
