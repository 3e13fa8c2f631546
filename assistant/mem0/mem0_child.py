"""The child process that runs Mem0: one question a line on its input, one answer a line on its output, both JSON.

What always holds: the output carries answers and nothing else; nothing is logged, since Mem0 logs what it is given.
What the desk cannot handle ends the process with one line that quotes no memory: whoever asked starts another.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, BinaryIO

from assistant.core.errors import AssistantError
from assistant.mem0 import memory_form
from assistant.mem0.memory_desk import MemoryDesk

_LONGEST_LINE = 200


def serve(desk: MemoryDesk, questions: Iterable[bytes], answers: BinaryIO) -> None:
    """Answer until there are no more questions."""
    logging.disable(logging.CRITICAL)
    sys.excepthook = _in_one_line
    for line in questions:
        question = json.loads(line)
        answer: dict[str, Any] = {"id": question["id"]}
        try:
            answer["result"] = _STEPS[question["step"]](desk, question)
        except AssistantError as error:
            answer["error"] = str(error)
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()


def _apply(desk: MemoryDesk, question: Mapping[str, Any]) -> None:
    desk.apply([memory_form.change_from_json(change) for change in question["changes"]])


def _get(desk: MemoryDesk, question: Mapping[str, Any]) -> Any:
    found = desk.get(question["memory_id"])
    return None if found is None else memory_form.to_json(found)


def _all(desk: MemoryDesk, question: Mapping[str, Any]) -> Any:
    return [memory_form.to_json(memory) for memory in desk.all(question["scope"])]


def _nearest(desk: MemoryDesk, question: Mapping[str, Any]) -> Any:
    found = desk.nearest(question["texts"], question["scope"], question["limit"])
    return [[[memory_form.to_json(memory), cosine] for memory, cosine in row] for row in found]


def _history(desk: MemoryDesk, question: Mapping[str, Any]) -> Any:
    return [memory_form.version_to_json(version) for version in desk.history(question["memory_id"])]


def _erase(desk: MemoryDesk, question: Mapping[str, Any]) -> None:
    desk.erase(question["memory_ids"])


def _reembed(desk: MemoryDesk, question: Mapping[str, Any]) -> int:
    return desk.reembed(question["limit"])


_STEPS: dict[str, Callable[[MemoryDesk, Mapping[str, Any]], Any]] = {
    "apply": _apply,
    "get": _get,
    "all": _all,
    "nearest": _nearest,
    "history": _history,
    "erase": _erase,
    "reembed": _reembed,
}


def _in_one_line(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """What ended the process, without the frames, and without the further lines that may quote a memory."""
    said = (str(error).splitlines() or [""])[0]
    place = trace
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f" in {place.tb_frame.f_code.co_name}" if place is not None else ""
    sys.stderr.write(f"{kind.__name__}{where}: {said}"[:_LONGEST_LINE] + "\n")
