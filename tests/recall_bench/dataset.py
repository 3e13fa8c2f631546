"""Files of LoCoMo's form: conversations over months, with questions and the turns that answer them. Where it is a
person who talks to an assistant, a turn has a `role`, and may have a `time` of its own.

What always holds: a file that is not of that form ends in `BadFile`, which names the file and the place; nothing of a
file is written anywhere but into temporary homes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from assistant.core.messages import Role
from tests.recall_bench.times import read_time

ADVERSARIAL = "adversarial"
"""Questions that nothing in the conversation answers as they are put."""

_KINDS = {1: "several messages", 2: "when", 3: "world knowledge", 4: "one message", 5: ADVERSARIAL}
"""The categories of LoCoMo."""

_BETWEEN = timedelta(seconds=30)
_SESSION = re.compile(r"session_(\d+)")
_TURN = re.compile(r"D(\d+):0*(\d+)")


class BadFile(Exception):
    """The file cannot be measured with; the message says where and why."""


@dataclass(frozen=True, slots=True)
class DatasetTurn:
    """A turn: `turn` is its id in the data set, `session` the number of its session, `speaker` a name, if any."""

    turn: str
    session: int
    speaker: str
    text: str
    at: datetime
    role: Role = "user"


@dataclass(frozen=True, slots=True)
class DatasetQuestion:
    """`evidence` are the turns that answer it, those alone that the conversation has."""

    text: str
    kind: str
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Observation:
    """Something that was noted about a person, from `turns`."""

    text: str
    turns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DatasetConversation:
    """One conversation, in the order in which it was held."""

    said: tuple[DatasetTurn, ...]
    questions: tuple[DatasetQuestion, ...]
    observations: tuple[Observation, ...]


def read_talks(path: Path) -> list[DatasetConversation]:
    """Raises `BadFile`."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadFile(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(value, list) or not value:
        raise BadFile(f"{path} has no list of conversations")
    return [_talk(one, f"{path}, conversation {number}") for number, one in enumerate(value, 1)]


def _talk(value: Any, where: str) -> DatasetConversation:
    try:
        said = tuple(_said(value["conversation"], where))
        known = {one.turn for one in said}
        questions = tuple(_question(one, known) for one in value["qa"])
        observations = tuple(_observations(value.get("observation") or {}, known))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise BadFile(f"{where} is not of the form of LoCoMo: {type(error).__name__} {error}") from error
    if not said:
        raise BadFile(f"{where} has no turns")
    return DatasetConversation(said, questions, observations)


def _said(conversation: dict[str, Any], where: str) -> Iterator[DatasetTurn]:
    """The turns of all sessions. A session without a time, or with none that can be read, follows the one before; its
    turns come half a minute after each other, but for those that have times."""
    at = datetime(2020, 1, 1, tzinfo=UTC)
    for number in sorted(int(found[1]) for key in conversation if (found := _SESSION.fullmatch(key))):
        at = read_time(conversation.get(f"session_{number}_date_time"), at)
        for place, turn in enumerate(conversation[f"session_{number}"]):
            caption = turn.get("blip_caption")
            text = f"{turn['text']} [{caption}]" if caption else turn["text"]
            if not isinstance(text, str):
                raise BadFile(f"{where}, session {number} has a turn without words")
            said_at = datetime.fromisoformat(turn["time"]) if "time" in turn else at + place * _BETWEEN
            role = turn.get("role", "user")
            if role not in ("user", "assistant"):
                raise BadFile(f"{where}, session {number} has a turn of the role {role!r}")
            speaker = turn["speaker"] if "role" not in turn else turn.get("speaker", "")
            yield DatasetTurn(_ids([turn["dia_id"]])[0], number, speaker, text, said_at, role)


def _question(value: dict[str, Any], known: set[str]) -> DatasetQuestion:
    evidence = tuple(turn for turn in _ids(value.get("evidence") or []) if turn in known)
    category = value["category"]
    return DatasetQuestion(value["question"], _KINDS.get(category) or str(category), evidence)


def _observations(value: dict[str, Any], known: set[str]) -> Iterator[Observation]:
    for session in value.values():
        for about in session.values():
            for text, turns in about:
                ids = _ids(turns if isinstance(turns, list) else [turns])
                yield Observation(text, tuple(turn for turn in ids if turn in known))


def _ids(written: Sequence[str]) -> list[str]:
    """Ids in one spelling; some files have several in one string, or zeros in front."""
    found = [f"D{match[1]}:{match[2]}" for one in written for match in _TURN.finditer(one)]
    return list(dict.fromkeys(found))
