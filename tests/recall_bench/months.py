"""The two written months (`tests/month`) in the form of the data sets: a person and an assistant, in words that no
template made, with a question for each fact.

The message that tells a fact last is its evidence. Results of tools are left out, as in the index.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path

from tests.month.conversation import MONTH, SECOND, MonthConversation, read_month

MONTHS = (MONTH, SECOND)
_QUESTIONS = MONTH.with_name("questions.toml")
_ONE_MESSAGE = 4


def write_months(folder: Path) -> Path:
    """One file of both."""
    asked = tomllib.loads(_QUESTIONS.read_text(encoding="utf-8"))
    path = folder / "months.json"
    path.write_text(json.dumps([_talk(read_month(month), asked[month.stem]) for month in MONTHS]), encoding="utf-8")
    return path


def _talk(month: MonthConversation, asked: Mapping[str, str]) -> dict[str, object]:
    """A session a day. KeyError where a fact has no question."""
    days: dict[str, list[dict[str, str]]] = {}
    turns: dict[int, str] = {}
    for said in month.said:
        if said.role != "tool":
            day = f"{(said.at.date() - month.said[0].at.date()).days + 1}"
            session = days.setdefault(f"session_{day}", [])
            turns[said.number] = f"D{day}:{len(session) + 1}"
            session.append(
                {"dia_id": turns[said.number], "role": said.role, "text": said.text, "time": said.at.isoformat()}
            )
    questions = [
        {"question": asked[fact.id], "category": _ONE_MESSAGE, "evidence": [turns[fact.messages[-1]]]}
        for fact in month.facts
    ]
    return {"conversation": days, "qa": questions}
