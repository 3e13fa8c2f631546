"""Writes the conversation in README.md: the real program, in a home of its own, without any model.

`python -m docs.transcript` writes it again; a test compares it with what the program says now, dates and durations
aside.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
BEGIN, END = "<!-- transcript -->\n", "<!-- /transcript -->\n"
SAID = (
    "Remember that the boiler code is 4711.",
    "My sister Ines moved to Bergen in March.",
    "Put lamp oil on my list",
    "Where does Ines live?",
    "No, the boiler code is 4712.",
    "What is the boiler code?",
    "What is on my list?",
    "What is the capital of France?",
)
_PROGRAM = (sys.executable, "-c", "from assistant.cli.main import main; main()")


def conversation(home: Path) -> str:
    """What a terminal shows, as a Markdown block; `you:` marks what the person says."""
    replies = _assistant(home, "chat", "--json", said="".join(f"{line}\n" for line in SAID)).splitlines()
    blocks = [f"you: {line}\n{json.loads(told)['reply'].strip()}" for line, told in zip(SAID, replies, strict=True)]
    blocks.append(f"$ assistant verify\n{_assistant(home, 'verify')}")
    return "```text\n" + "\n\n".join(blocks) + "\n```\n"


def _assistant(home: Path, *arguments: str, said: str = "") -> str:
    done = subprocess.run(
        [*_PROGRAM, *arguments],
        cwd=ROOT,
        # Nothing of whoever writes it: where the program is found stands in `_PROGRAM`.
        env={"LANG": "C.UTF-8", "ASSISTANT_HOME": str(home), "ASSISTANT_HOME__TIMEZONE": "UTC"},
        input=said,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def shown() -> str:
    """The conversation that README.md shows."""
    return README.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]


def undated(text: str) -> str:
    """The text without what differs from one day, or one machine, to the next."""
    text = re.sub(r"\w{3} \d{4}-\d\d-\d\d \d\d:\d\d", "DATE", text)
    return re.sub(r"\([\d.]+ kB\) in [\d.]+ s\b", "(SIZE) in SECONDS", text)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        spoken = conversation(Path(folder) / "home")
    before, _, rest = README.read_text(encoding="utf-8").partition(BEGIN)
    README.write_text(f"{before}{BEGIN}{spoken}{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
