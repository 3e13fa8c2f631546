"""Whether a summary says what it must, in the language of its conversation (F05, F24, F25): no model asked. Pure.

What the originals name and the summary does not (wishes on how to answer, tasks, identifiers, numbers, names) is
appended word for word, the most important first, under a budget of its own. What does not fit is in the log, and
`aihistory diff` lists it. Of what tools returned nothing is taken: what mattered of it was said, and nobody's output
gets into the record by itself (F26).

Values are found by their form alone, in any language that has such forms: an identifier mixes letters with digits or
signs, a name begins with a capital where no sentence does, a task begins with what asks for something. The number of
a message, as in #12, is no number of anything.

The language is told by script, and within the Latin one by small words. Only what clearly is another language is
refused. Where it cannot be told (too few words, names and code only, a language unknown here), it is taken to be the
same: a wrong refusal costs a good summary.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from assistant.context.truncate import original_words
from assistant.core.dataclass import dataclass
from assistant.core.messages import Message
from assistant.core.text import IDENTIFIER, IDENTIFIER_CHARS, LONGEST_IDENTIFIER, find_in_windows, lazy_regex, shorten
from sleep.compaction.answer import escape_boundaries
from sleep.compaction.draft_view import original_id
from sleep.compaction.prompts import describe_media
from sleep.compaction.values import SummaryInput
from sleep.rules.clauses import find_standing_wishes
from sleep.rules.pattern_files import read_words

Count = Callable[[str], int]

RESTORED_HEADING = "Kept word for word:"
_SPOKEN = ("user", "assistant")
_LONGEST_LINE = 240
_LONGEST_TASK = 300
_AROUND = 40
# A line of a record that names the message it is of.
_TOLD_LINE = lazy_regex(r"- #(\d+)(?: \d{4}-\d\d-\d\d)?(?: user| assistant)?: (.+)")
# (kind, who said it), the most important first; of one kind, the person's words come before the assistant's. Names come
# late, since what begins with a capital is in some languages any noun.
_ORDER = [
    ("wishes", "user"),
    ("wishes", "assistant"),  # in a record of what the person said
    ("tasks", "user"),
    ("identifiers", "user"),
    ("numbers", "user"),
    ("identifiers", "assistant"),
    ("names", "user"),
    ("tasks", "assistant"),
    ("numbers", "assistant"),
    ("names", "assistant"),
]


@dataclass(frozen=True, slots=True)
class CheckedSummary:
    """A summary with what it had left out at its end."""

    text: str
    restored: tuple[str, ...] = ()  # the lines that were added


@dataclass(frozen=True, slots=True)
class _MissingValue:
    """A value of a message that the summary does not have."""

    kind: str
    value: str
    row: Message


def restore_missing_values(
    text: str, material: SummaryInput, count: Count, restored_max_tokens: int, wishes_max_tokens: int = 0
) -> CheckedSummary:
    """The summary, and in at most `restored_max_tokens` more what it does not say; `wishes_max_tokens` more for wishes,
    which are few and count with every answer."""
    lines: list[str] = []
    left = restored_max_tokens - count(f"\n{RESTORED_HEADING}\n")
    left_for_wishes = wishes_max_tokens
    added = ""
    for line, values, kind in _missing_lines(text, material):
        if values and all(fold_width_and_case(value) in added for value in values):
            continue
        tokens = count(f"{line}\n")
        if tokens > left + (left_for_wishes if kind == "wishes" else 0):
            continue
        paid = min(tokens, left_for_wishes) if kind == "wishes" else 0
        left_for_wishes -= paid
        left -= tokens - paid
        lines.append(line)
        added += f" {fold_width_and_case(line)}"
    if not lines:
        return CheckedSummary(text)
    return CheckedSummary("\n".join([text, RESTORED_HEADING, *lines]).strip(), tuple(lines))


def _missing_lines(text: str, material: SummaryInput) -> Iterator[tuple[str, list[str], str]]:
    """Lines that say what the summary does not, most important first, each with the values that it is for (none for an
    open task, which is said as a whole) and their kind."""
    there = FoldedText(text)
    for task in dict.fromkeys(" ".join(task.split()) for task in material.tasks):
        if task and not there.contains(task):
            yield f"- open: {_shorten_line(task, _LONGEST_TASK)}", [], "tasks"
    media = [medium for row in material.rows for medium in row.media]
    shown = describe_media(media).strip()
    if shown and not all(there.contains(medium.name) for medium in media if medium.name):
        yield f"- {_shorten_line(shown, _LONGEST_TASK)}", [], "media"
    lacks = _missing_by_kind(there, material)
    for kind, role in _ORDER:
        # The newest first: of what does not fit, the oldest is missed least.
        for of_message in reversed(lacks.get((kind, role), [])):
            yield from ((line, values, kind) for line, values in _lines(of_message))


def _missing_by_kind(there: FoldedText, material: SummaryInput) -> dict[tuple[str, str], list[list[_MissingValue]]]:
    """By kind and role, what each message has that the summary has not; each value where it was said first."""
    missing: dict[tuple[str, str], list[list[_MissingValue]]] = {}
    seen: set[str] = set()
    for row in _units(material):
        if row.role not in _SPOKEN:
            continue
        of_row: dict[str, list[_MissingValue]] = {}
        for kind, value in (*_find_wishes(row, material), *find_named_values(row.content)):
            if value.casefold() not in seen and not there.contains(value):
                seen.add(value.casefold())
                of_row.setdefault(kind, []).append(_MissingValue(kind, value, row))
        for kind, lacks in of_row.items():
            missing.setdefault((kind, row.role), []).append(lacks)
    return missing


def _find_wishes(row: Message, material: SummaryInput) -> Iterator[tuple[str, str]]:
    """How the person wants to be answered from now on. Of records of messages their lines tell it."""
    if row.role == "user" or material.depth > 1:
        for wish in find_standing_wishes(row.content):
            yield "wishes", wish


def _units(material: SummaryInput) -> Iterator[Message]:
    """The messages; of records of messages each line by itself, under the number that it names."""
    if material.depth == 1:
        yield from (replace(row, content=original_words(row)) for row in material.rows)
        return
    for row in material.rows:
        for line in row.content.splitlines():
            named = _TOLD_LINE.match(line.strip())
            if named:
                yield replace(row, content=named[2], id=int(named[1]))
            elif line.strip() != RESTORED_HEADING:
                yield replace(row, content=line)


def _lines(lacks: list[_MissingValue]) -> Iterator[tuple[str, list[str]]]:
    """What one message has of one kind, in lines that are not too long; each value with the words before it."""
    row = lacks[0].row
    number = original_id(row)
    head = f"- #{number}: " if number else "- earlier: "
    parts: list[str] = []
    values: list[str] = []
    for lack in lacks:
        if not any(fold_width_and_case(lack.value) in fold_width_and_case(part) for part in parts):
            is_whole = lack.kind in ("tasks", "wishes")
            new = _shorten_line(lack.value, _LONGEST_TASK) if is_whole else _with_context(row.content, lack.value)
            if parts and len(head) + sum(len(part) + 2 for part in parts) + len(new) > _LONGEST_LINE:
                yield head + "; ".join(parts), values
                parts, values = [], []
            parts.append(new)
        values.append(lack.value)
    yield head + "; ".join(parts), values


def _with_context(content: str, value: str) -> str:
    """The value with the words before it: a bare number says nothing."""
    flat, wanted = " ".join(content.split()), " ".join(value.split())
    at = flat.find(wanted)
    if at < 0:
        return _shorten_line(wanted, _LONGEST_TASK)
    start = max(0, at - _AROUND)
    if start and (space := flat.find(" ", start, at)) >= 0:
        start = space + 1
    return escape_boundaries(flat[start : at + len(wanted)])


def _shorten_line(text: str, most: int) -> str:
    return shorten(escape_boundaries(" ".join(text.split())), most)


_NUMBER = lazy_regex(rf"(?<![{IDENTIFIER_CHARS}_.,#-])[-+]?\d+(?:[.,:/-]\d+)*(?![{IDENTIFIER_CHARS}_-])")
_NAME = lazy_regex(
    r"(?<=[^\s.!?:;] )(?:(?:Dr|Prof|Mrs?|Ms|St)\. )?(?:[A-ZÀ-ÞА-ЯΑ-Ω][\w'’-]+)(?: [A-ZÀ-ÞА-ЯΑ-Ω][\w'’-]+)*"
)
_TASK = lazy_regex(
    r"(?im)^[ \t]*(?:[-*] \[ \] |todo:? |(?:please|remember to|remind me to|don't forget to|we need to)\b)[^\n]+"
)
_FORMS = (("tasks", _TASK), ("identifiers", IDENTIFIER), ("numbers", _NUMBER), ("names", _NAME))
_END = ".,;:!?)]}"


class FoldedText:
    """A text that is asked whether it has this or that in it, in whatever width or case it is written."""

    def __init__(self, text: str) -> None:
        self._folded = fold_width_and_case(text)

    def contains(self, value: str) -> bool:
        """A number is there only by itself: 12 is not in 2012, nor in 12.50."""
        wanted = fold_width_and_case(value)
        if wanted not in self._folded:
            return False
        if not wanted[-1:].isdigit() or not _NUMBER.fullmatch(wanted):
            return True
        alone = rf"(?<!\d)(?<!\d[.,:/-]){re.escape(wanted)}(?!\d|[.,:/-]\d)"
        return re.search(alone, self._folded) is not None


def find_named_values(text: str) -> Iterator[tuple[str, str]]:
    """(kind, value) of what a text names; kinds "tasks", "identifiers", "numbers", "names", in this order."""
    rest = text
    for kind, form in _FORMS:
        pieces, at = [], 0
        for match in find_in_windows(form, rest, LONGEST_IDENTIFIER):
            value = match[0].strip().rstrip(_END)
            if value:
                yield kind, value
            pieces += [rest[at : match.start()], " " * len(match[0])]
            at = match.end()
        if kind == "identifiers":
            rest = "".join([*pieces, rest[at:]])


def find_missing_values(source_texts: Iterable[str], summary: str) -> dict[str, list[str]]:
    """What the sources name and the summary does not, by kind ("identifiers", "numbers", "names", "tasks"), in their
    order, each once; kinds of which nothing is missing are left out."""
    there = FoldedText(summary)
    missing: dict[str, dict[str, None]] = {}
    for text in source_texts:
        for kind, value in find_named_values(text):
            if not there.contains(value):
                missing.setdefault(kind, {}).setdefault(value)
    return {kind: list(values) for kind, values in missing.items()}


def fold_width_and_case(text: str) -> str:
    """The text in one width and case, with single spaces."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


_SCRIPTS = (
    ("cyrillic", lazy_regex(r"[\u0400-\u04ff]")),
    ("arabic", lazy_regex(r"[\u0600-\u06ff]")),
    ("hebrew", lazy_regex(r"[\u0590-\u05ff]")),
    ("greek", lazy_regex(r"[\u0370-\u03ff]")),
    ("kana", lazy_regex(r"[\u3040-\u30ff]")),
    ("hangul", lazy_regex(r"[\uac00-\ud7af]")),
    ("han", lazy_regex(r"[\u3400-\u9fff]")),
    ("devanagari", lazy_regex(r"[\u0900-\u097f]")),
    ("thai", lazy_regex(r"[\u0e00-\u0e7f]")),
    ("latin", lazy_regex(r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")),
)
# One character of these says about as much as three Latin letters.
_DENSE = frozenset({"kana", "hangul", "han"})
# Code, addresses, paths and identifiers are the same in every language.
_NOT_WORDS = lazy_regex(r"```.*?(?:```|\Z)|`[^`\n]*`|(?<![!-~])[!-~]*[\d/\\@_<>{}=][!-~]*", re.DOTALL)
# Languages that share most of their small words are taken for one.
_ALIKE = (frozenset({"no", "da", "sv"}), frozenset({"es", "pt", "it"}), frozenset({"pl", "cs"}))
_LOOKED_AT = 20_000
_OF_A_ROW = 2_000
_ENOUGH_CHARACTERS = 20
_MOST_OF_IT = 0.5
# A summary with at least this share of the conversation's script in it is no summary in another script.
_SOME_OF_IT = 0.15
_ENOUGH_STOPS = 6
_CLEARLY = 1.5


def is_same_language(text: str, material: SummaryInput) -> bool:
    """Whether the summary is in the language of the person or, where they write in two, of the assistant."""
    mine = _prose(text)
    spoken = [_prose(_text_of_role(material, role)) for role in _SPOKEN]
    shares = _shares(mine)
    scripts = {script for words in spoken if (script := _main_script(_shares(words)))}
    if not shares or not scripts:
        return True
    if all(shares.get(script, 0.0) < _SOME_OF_IT for script in scripts):
        return False
    if _main_script(shares) != "latin" or "latin" not in scripts:
        return True
    ours = _language(mine)
    theirs = {language for words in spoken if (language := _language(words))}
    return ours is None or not theirs or any(_alike(ours, language) for language in theirs)


def _text_of_role(material: SummaryInput, role: str) -> str:
    """Words of one side, some of each message, the newest messages first."""
    return " ".join(row.content[:_OF_A_ROW] for row in reversed(material.rows) if row.role == role)[:_LOOKED_AT]


def _prose(text: str) -> str:
    return _NOT_WORDS.sub(" ", text[:_LOOKED_AT])


def _shares(text: str) -> dict[str, float]:
    """The share of each script in a text; nothing where there are too few letters to tell."""
    counts = {name: len(form.findall(text)) * (3 if name in _DENSE else 1) for name, form in _SCRIPTS}
    if counts["kana"] > 0.1 * (counts["kana"] + counts["han"]):
        # Japanese is written with both; Chinese with one of them only.
        counts["kana"] += counts["han"]
        counts["han"] = 0
    total = sum(counts.values())
    return {name: count / total for name, count in counts.items()} if total >= _ENOUGH_CHARACTERS else {}


def _main_script(shares: dict[str, float]) -> str | None:
    return next((name for name, share in shares.items() if share > _MOST_OF_IT), None)


def _language(text: str) -> str | None:
    """The language whose small words the text has by far the most of; None where that is not clear."""
    words = Counter(re.findall(r"[^\W\d_]+", text.casefold()))
    small_words = read_words("language_words")
    counts = sorted(
        ((sum(words[word] for word in small_words[name].split()), name) for name in small_words), reverse=True
    )
    best, language = counts[0]
    rival = next((count for count, other in counts[1:] if not _alike(language, other)), 0)
    return language if best >= _ENOUGH_STOPS and best >= _CLEARLY * max(1, rival) else None


def _alike(*languages: str) -> bool:
    return len({*languages}) == 1 or any({*languages} <= group for group in _ALIKE)
