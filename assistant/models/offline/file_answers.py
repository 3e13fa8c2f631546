"""What the person's files say to a question that nothing told answers: a line of a file, with the file's name. Pure.

What always holds: what a file says is quoted and named as the file's, never as the person's own words.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from assistant.core.dataclass import dataclass
from assistant.core.messages import Media
from assistant.core.quoting import QuotedMessage, is_failed_result, quote_block
from assistant.core.text import lazy_regex
from assistant.models.offline.plans import ToolStep
from assistant.models.offline.ranking import find_answer

_HEAD = lazy_regex(r'- (?P<path>"(?:[^"\\]|\\.)*")(?:, (?P<place>[^;\n]{1,80}?))?, of \S.*:')
_LABEL = lazy_regex(r"^[\s>*#•-]*(?P<label>[^\W\d_][^:|=\t]{1,40}?)[*_ ]*[:|=\t][\s*_]*(?=\S)")
_PATH = lazy_regex(r'"(?:[^"\\]|\\.)*"')
_WORD = lazy_regex(r"[^\W\d_]+")
_ENDS = ".!?:…"
_WITHOUT_TEXT = ("audio/", "video/", "image/")
_MOST_LINES = 400
_MOST_HITS = 8


@dataclass(frozen=True, slots=True)
class _FileLine:
    source: str  # the path and the place in it
    text: str


def search_files(words: Sequence[str], path: str = "") -> ToolStep:
    """The call that searches the files for these words; only the one at `path`, where that is given."""
    within = {"path": path} if path else {}
    arguments = {"query": " ".join(words), "limit": _MOST_HITS, **within}
    return ToolStep("use_tool", {"name": "search_files", "arguments": arguments})


def can_be_searched(medium: Media) -> bool:
    """Whether a file that came with a message may have text, and is where files are searched."""
    return medium.kind == "file" and medium.path is not None and not medium.mime.startswith(_WITHOUT_TEXT)


def describe_attached(media: Sequence[Media], *, has_files: bool, were_asked: bool) -> list[str]:
    """What is said of the files that came with a message: that they can be asked about, unless they `were_asked`, or
    that offline mode cannot look at them."""
    readable = [medium for medium in media if has_files and can_be_searched(medium)]
    others = [medium for medium in media if medium not in readable]
    said = []
    if readable and not were_asked:
        them = "it" if len(readable) == 1 else "them"
        said.append(f"{_names(readable)}: kept. Ask me about {them}, and I quote what I find in {them}.")
    if others:
        said.append(f"I can't look at {_names(others)} offline; kept with your message.")
    return said


def _names(media: Sequence[Media]) -> str:
    return ", ".join(medium.name or medium.kind for medium in media)


def answer_from_files(question: str, result: str) -> str:
    """The line of a file that answers `question`, in words for people, by the result of `search_files`; "" if none
    does."""
    lines = _read_lines(result)[:_MOST_LINES] if not is_failed_result(result) else []
    # The best match of the search comes first: of lines that answer as well, the newest number is taken.
    quotes = [QuotedMessage(len(lines) - n, line.source, "file", _as_context(line)) for n, line in enumerate(lines)]
    answers = find_answer(question, quotes).answers
    if not answers:
        return ""
    line = lines[len(lines) - answers[0].message_id]
    return f"In the file {line.source}:\n\n{quote_block(line.text)}"


def _read_lines(result: str) -> list[_FileLine]:
    """The lines of the excerpts, each with its file; the best match first. A line that goes on in lower case was
    wrapped."""
    lines: list[_FileLine] = []
    source, is_open = "", False
    for line in result.split("\n"):
        text = line[2:].strip(" …")
        if head := _HEAD.match(line):
            path = json.dumps(json.loads(head["path"]), ensure_ascii=False)
            source, is_open = f"{path}, {head['place']}" if head["place"] else path, False
        elif source and line.startswith("> ") and text:
            if is_open and text[0].islower():
                text = f"{lines.pop().text} {text}"
            lines.append(_FileLine(source, text))
            is_open = text[-1] not in _ENDS
        else:
            is_open = False
    return lines


def _as_context(line: _FileLine) -> str:
    """A line, with the words of the file's name, which a question may have too: "the notice in my lease"."""
    name = json.loads(_PATH.match(line.source)[0]).rpartition("/")[2]  # type: ignore[index]
    return f"{_as_told(line.text)}\n\n{' '.join(_WORD.findall(name.rpartition('.')[0]))}"


def _as_told(text: str) -> str:
    """A line as somebody would say it: "Launch date: 14 March" is "the launch date is 14 March"."""
    label = _LABEL.match(text)
    return f"The {label['label'].lower()} is {text[label.end() :].strip()}" if label else text.lstrip("#*•- ")
