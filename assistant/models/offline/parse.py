"""How offline mode reads a message: text in, a few requests out. Pure.

A message is read sentence by sentence against the patterns of `phrases.toml`; the first one that fits the whole
sentence decides. What fits none is a question if it reads like one, and otherwise something the person told. Whatever
is decided here, the message itself is already stored whole, so a misreading costs an odd answer and never words.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from assistant.core.calendar import MONTHS, NUMBER_WORDS, WEEKDAYS, split_reminder
from assistant.core.text import fold_text, lazy_regex
from assistant.search.query import asks_about_assistant
from sleep.rules.pattern_files import compile_patterns, join_fragments
from sleep.rules.sentences import Sentence, blank_quotations, split_sentences

PHRASES_FILE = Path(__file__).with_name("phrases.toml")
_MOST_REQUESTS = 8
_LONG_TEXT = 2000
_LONGEST_SENTENCE = 400
_ENDS = " \t\n.!?…,。！？؟"
_BULLET = lazy_regex(r"^\s*(?:[-*•]|\d+[.)]|\[ ?\])\s*")
_BETWEEN_ITEMS = lazy_regex(r"\s*,\s*(?:and\s+)?|\s+and\s+")


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


@dataclass(frozen=True, slots=True)
class AddTodos:
    items: tuple[str, ...]
    is_reminder: bool = False


@dataclass(frozen=True, slots=True)
class SetReminder:
    text: str
    when: str  # in the person's words
    instead: AddTodos  # where no reminder can be set


@dataclass(frozen=True, slots=True)
class ShowTodos:
    label: str = ""  # one of several lists ("shopping"), whose items begin with it
    clear: bool = False


@dataclass(frozen=True, slots=True)
class ChangeTodos:
    """By number, or by the words of one to-do."""

    action: Literal["complete", "remove"]
    ids: tuple[int, ...] = ()
    words: str = ""


Request = Say | UseTool | Note | Correction | Question | AboutMe | AddTodos | SetReminder | ShowTodos | ChangeTodos


@dataclass(frozen=True, slots=True)
class Phrases:
    """What `phrases.toml` holds."""

    patterns: Mapping[str, re.Pattern[str]]
    sentences: tuple[tuple[Mapping[str, Any], tuple[re.Pattern[str], ...]], ...]
    small_words: frozenset[str]  # folded, as the following
    attributes: frozenset[str]
    families: tuple[frozenset[str], ...]


@cache
def read_phrases() -> Phrases:
    data = tomllib.loads(PHRASES_FILE.read_text(encoding="utf-8"))
    data["fragments"] |= {"calendar": "|".join((*MONTHS, *WEEKDAYS)), "number": "|".join(NUMBER_WORDS)}

    def compiled(pattern: str) -> re.Pattern[str]:
        return lazy_regex(join_fragments("phrases", "sentence", pattern, data["fragments"]), re.IGNORECASE | re.DOTALL)

    words = {name: frozenset(map(fold_text, text.split())) for name, text in data["words"].items()}
    return Phrases(
        compile_patterns("phrases", data),
        tuple((row, tuple(map(compiled, row["patterns"]))) for row in data["sentence"]),
        words["small"],
        words["attributes"],
        tuple(frozenset(line.split()) for line in data["families"]["lists"]),
    )


def parse_message(text: str) -> tuple[Request, ...]:
    """What `text` asks for, in its order: at most one note, and small talk only where there is nothing else."""
    todo_list = _list_over_lines(text)
    if todo_list is not None:
        return (todo_list,)
    requests: list[Request] = [parse_sentence(sentence) for sentence in _sentences_to_read(text)]
    if not requests and text.strip():
        requests = [parse_sentence(Sentence("help", "help")) if "?" in text else Note()]
    notes = [request for request in requests if isinstance(request, Note)]
    work = [request for request in requests if not _is_by_the_way(request)]
    if notes or len(text) > _LONG_TEXT:
        work = [Note(any(note.is_task for note in notes)), *work]
    return tuple(work[:_MOST_REQUESTS]) or tuple(requests[:1])


def _is_by_the_way(request: Request) -> bool:
    return isinstance(request, Note) or (isinstance(request, Say) and request.is_small_talk)


def is_statement(text: str) -> bool:
    """Whether `text` tells something, beside whatever else it does."""
    return any(isinstance(request, Note | Correction) for request in parse_message(text))


def parse_sentence(sentence: Sentence) -> Request:
    """What one sentence asks for."""
    patterns = read_phrases().patterns
    plain = patterns["courtesy_behind"].sub("", sentence.text.replace("’", "'"), count=1).strip(_ENDS)
    bare = patterns["courtesy_before"].sub("", plain, count=1)
    asks = _is_question(sentence, bare)
    if plain and len(plain) <= _LONGEST_SENTENCE:
        request = _by_phrase(plain, asks=asks) or _by_phrase(bare, asks=asks)
        if request is not None:
            return request
    return _question(bare) if asks else Note()


def parse_clause(clause: str) -> Request:
    return parse_sentence(Sentence(clause, blank_quotations(clause)))


def _is_question(sentence: Sentence, bare: str) -> bool:
    patterns = read_phrases().patterns
    if sentence.has_question_mark:
        return not patterns["tag"].search(sentence.text)
    own = blank_quotations(bare)
    return sentence.is_question or Sentence(bare, own).is_question or patterns["asks"].fullmatch(own) is not None


def _by_phrase(text: str, *, asks: bool) -> Request | None:
    for row, alternatives in read_phrases().sentences:
        match = next((m for pattern in alternatives if (m := pattern.fullmatch(text))), None)
        if match and not (asks and row["does"] == "change"):
            return _request(row, match)
    return None


def _request(row: Mapping[str, Any], match: re.Match[str]) -> Request:
    groups = {name: text for name, text in match.groupdict().items() if text}
    what, label = groups.get("what", ""), groups.get("label", "").lower()
    match row["does"]:
        case "say":
            return Say(row["text"].strip(), row.get("small_talk", False))
        case "tool":
            return UseTool(row["tool"], _tool_arguments(groups), row["needs"], row.get("lead", ""))
        case "add":
            return AddTodos(_labelled(_split_items(what), label))
        case "add_one":
            return AddTodos((what,))
        case "remind":
            return _reminder(match[0], what, groups.get("when", ""))
        case "show" | "clear" as does:
            return ShowTodos(label, clear=does == "clear")
        case "complete" | "remove" as action:
            numbers = re.findall(r"\d{1,18}", groups.get("ids", ""))
            return ChangeTodos(action, tuple(dict.fromkeys(map(int, numbers))), what)
        case "about_me":
            return AboutMe()
        case "topic":
            return Question(what, topic=True)
        case "ask":
            return _question(what)
        case "correct" | "change":
            return Correction(what or match[0])
        case does:
            return Note(is_task=does == "task")


def _question(text: str) -> Question:
    return Question(text, "assistant" if asks_about_assistant(text) else "user")


def _tool_arguments(groups: Mapping[str, str]) -> dict[str, str | int]:
    values = {name: text if text.isdecimal() else text.strip("\"'").rstrip("/") for name, text in groups.items()}
    return {name: text if name == "path" else int(text) for name, text in values.items() if text}


def _reminder(sentence: str, what: str, when: str) -> SetReminder | AddTodos:
    instead = AddTodos((f"{what} ({when})" if when else what,), is_reminder=True)
    text, time = split_reminder(sentence)
    return SetReminder(text, time, instead) if time else instead


def _split_items(text: str) -> tuple[str, ...]:
    """One to-do or several: single words, or short pieces between commas, are several."""
    text = text.strip().strip("\"'“”").strip()
    if ";" in text:
        return tuple(part.strip() for part in text.split(";") if part.strip())
    parts = tuple(part.strip() for part in _BETWEEN_ITEMS.split(text) if part.strip())
    single = all(len(part.split()) == 1 for part in parts)
    short = "," in text and all(len(part.split()) <= 3 for part in parts)
    return parts if len(parts) > 1 and (single or short) else (text,)


def _labelled(items: tuple[str, ...], label: str) -> tuple[str, ...]:
    return tuple(f"{label}: {item}" for item in items) if label else items


def _list_over_lines(text: str) -> AddTodos | None:
    """A to-do list with an item on each line below its heading."""
    head, _, rest = text.strip().partition("\n")
    heading = read_phrases().patterns["list_heading"].fullmatch(head.strip())
    items = tuple(item for line in rest.splitlines() if (item := _BULLET.sub("", line).strip()))
    return AddTodos(_labelled(items, (heading["label"] or "").lower())) if heading and items else None


def _sentences_to_read(text: str) -> list[Sentence]:
    """The sentences of a message; of a long text only the first and the last, where a request would stand."""
    if len(text) <= _LONG_TEXT:
        return split_sentences(text)
    lines = text.strip().splitlines()
    return [*split_sentences(lines[0][:_LONG_TEXT])[:1], *split_sentences(lines[-1][-_LONG_TEXT:])[-1:]]
