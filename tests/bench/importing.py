"""What an import of another program's export takes: messages a second, and memory, of an export of many short messages
and of one of a gigabyte; the command as a person runs it, with the process that reads the file."""

from __future__ import annotations

import json
import random
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench.figures import Row
from tests.bench.process import run
from tests.bench.prose import Prose

_CONVERSATION = 100
_USUAL_LENGTH = 200
_MESSAGES, _LEAST_A_SECOND = 100_000, 2_000
_LARGE_BYTES, _MOST_MIB = 1_000_000_000, 200
_COMMAND = (sys.executable, "-c", "from assistant.cli.main import main; main()", "import")


def measure(sizes: Sequence[int]) -> Iterator[Row]:
    with TemporaryDirectory() as folder:
        for length in (_USUAL_LENGTH, _LARGE_BYTES // _MESSAGES):
            path = _export(Path(folder) / "conversations.json", length)
            home = Path(folder) / "home"
            ended, again = (run([*_COMMAND, str(path)], {"ASSISTANT_HOME": str(home)}, together=True) for _ in range(2))
            shutil.rmtree(home)
            what = f"an export of {path.stat().st_size / 1e6:,.0f} MB"
            rate = _MESSAGES / ended.seconds
            result = f"{rate:,.0f} a second"
            # Messages as people write them; those of ten thousand characters are there for what they take of memory.
            if length == _USUAL_LENGTH:
                yield Row("import", _MESSAGES, what, result, f">= {_LEAST_A_SECOND:,}", rate >= _LEAST_A_SECOND)
            else:
                yield Row("import", _MESSAGES, what, result)
            peak = max(ended.together_mib, again.together_mib)
            memory = f"{what}, peak memory of its processes together"
            yield Row("import", _MESSAGES, memory, f"{peak:.0f} MiB", f"<= {_MOST_MIB} MiB", peak <= _MOST_MIB)
            yield Row("import", _MESSAGES, f"{what}, a second time", f"{again.seconds:.1f} s")


def _export(path: Path, length: int) -> Path:
    """As ChatGPT writes it, messages of about so many characters."""
    chance, prose, text = random.Random(1), Prose(1), ""
    topic = prose.topic(chance)
    while len(text) < length:
        text = f"{text} {prose.message(chance, topic)}"
    text = text[:length]
    with path.open("w", encoding="utf-8") as file:
        file.write("[")
        for number in range(_MESSAGES // _CONVERSATION):
            file.write("," if number else "")
            json.dump(_conversation(number, text), file)
        file.write("]")
    return path


def _conversation(number: int, text: str) -> dict[str, object]:
    mapping: dict[str, object] = {"root": {"id": "root", "message": None, "parent": None}}
    parent = "root"
    for place in range(_CONVERSATION):
        key = f"{number}-{place}"
        message = {
            "id": key,
            "author": {"role": "assistant" if place % 2 else "user"},
            "create_time": 1.6e9 + 3_600 * number + place,
            "content": {"content_type": "text", "parts": [f"{key} {text}"]},
            "metadata": {},
        }
        mapping[key] = {"id": key, "message": message, "parent": parent, "children": []}
        parent = key
    return {"title": f"Talk {number}", "mapping": mapping, "current_node": parent, "conversation_id": f"c{number}"}
