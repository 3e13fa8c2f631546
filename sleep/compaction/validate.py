"""Checks that a summary is complete and in the language of its conversation, without a model (F05, F24, F25). Pure.

Values in the originals that the summary lacks (wishes about answers, tasks, identifiers, numbers, names) are appended
verbatim, most important first, within their own budget. The rest is in the log, and `aihistory diff` lists it. Tool
results are ignored: what mattered was said, and no tool output enters the summary on its own (F26).

Values are recognised by form, in any language: identifiers mix letters with digits or signs, names are capitalised
within a sentence, tasks start with a request. Message ids as in #12 are not numbers.

Language is detected by script, and for Latin script by function words. Only a clear mismatch is rejected: if in doubt
(too few words, only names and code, an unknown language) it counts as the same, since a wrong rejection costs a good
summary.
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
from sleep.compaction.message_cache import FOUND_IN_MESSAGES
from sleep.compaction.prompts import describe_media
from sleep.compaction.values import SummaryInput
from sleep.rules.clauses import find_standing_wishes
from sleep.rules.pattern_files import read_words
from sleep.rules.secrets import find_secrets

Count = Callable[[str], int]

RESTORED_HEADING = "Kept word for word:"
_SPOKEN = ("user", "assistant")
# Messages before each of which background work may rest: ten seconds in all.
MAX_RESTS = 200
_LONGEST_LINE = 240
_LONGEST_TASK = 300
_AROUND = 40
# A summary line that cites its message.
_TOLD_LINE = lazy_regex(r"- #(\d+)(?: \d{4}-\d\d-\d\d)?(?: user| assistant)?: (.+)")
# (kind, role), most important first; the user before the assistant. Names come late, since some languages capitalise
# all nouns.
_ORDER = [
    ("wishes", "user"),
    ("wishes", "assistant"),  # in summaries of the user's messages
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
    """A summary with missing values appended."""

    text: str
    restored: tuple[str, ...] = ()  # the appended lines


@dataclass(frozen=True, slots=True)
class _MissingValue:
    """A value of a message that the summary lacks."""

    kind: str
    value: str
    row: Message


def restore_missing_values(
    text: str,
    material: SummaryInput,
    count: Count,
    restored_max_tokens: int,
    wishes_max_tokens: int = 0,
    *,
    rest: Callable[[], None] | None = None,
) -> CheckedSummary:
    """Return the summary with at most `restored_max_tokens` of missing values appended; `wishes_max_tokens` more for
    wishes, which are few and affect every answer. `rest` is called before each of the first 200 messages that were not
    prepared, since to go through one takes milliseconds."""
    lines: list[str] = []
    left = restored_max_tokens - count(f"\n{RESTORED_HEADING}\n")
    left_for_wishes = wishes_max_tokens
    added = ""
    for line, values, kind in _missing_lines(text, material, rest):
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


def _missing_lines(
    text: str, material: SummaryInput, rest: Callable[[], None] | None
) -> Iterator[tuple[str, list[str], str]]:
    """Yield lines with missing values, most important first, with their values (none for open tasks) and kind."""
    there = FoldedText(text)
    for task in dict.fromkeys(" ".join(task.split()) for task in material.tasks):
        if task and not there.contains(task):
            yield f"- open: {_shorten_line(task, _LONGEST_TASK)}", [], "tasks"
    media = [medium for row in material.rows for medium in row.media]
    shown = describe_media(media).strip()
    if shown and not all(there.contains(medium.name) for medium in media if medium.name):
        yield f"- {_shorten_line(shown, _LONGEST_TASK)}", [], "media"
    lacks = _missing_by_kind(there, material, rest)
    for kind, role in _ORDER:
        # Newest first: if not all fit, the oldest matter least.
        for of_message in reversed(lacks.get((kind, role), [])):
            yield from ((line, values, kind) for line, values in _lines(of_message))


def _missing_by_kind(
    there: FoldedText, material: SummaryInput, rest: Callable[[], None] | None
) -> dict[tuple[str, str], list[list[_MissingValue]]]:
    """Return missing values by kind and role, grouped by message; each value only where it was said first."""
    missing: dict[tuple[str, str], list[list[_MissingValue]]] = {}
    seen: set[str] = set()
    rested = 0
    for row in _units(material):
        if row.role not in _SPOKEN:
            continue
        may_wish = row.role == "user" or material.depth > 1
        if rest is not None and rested < MAX_RESTS and not _values_to_keep.is_known(row.content, may_wish):
            rest()
            rested += 1
        of_row: dict[str, list[_MissingValue]] = {}
        for kind, value in _values_to_keep(row.content, may_wish):
            if value.casefold() not in seen and not there.contains(value):
                seen.add(value.casefold())
                of_row.setdefault(kind, []).append(_MissingValue(kind, value, row))
        for kind, lacks in of_row.items():
            missing.setdefault((kind, row.role), []).append(lacks)
    return missing


@FOUND_IN_MESSAGES.cached
def _values_to_keep(text: str, may_wish: bool) -> tuple[tuple[str, str], ...]:
    """Return the named values of a text with their kinds, and before them how the user wants to be answered in future:
    in summaries, any line may state it."""
    wishes = find_standing_wishes(text) if may_wish else []
    return (*(("wishes", wish) for wish in wishes), *find_named_values(text))


def prepare_values(row: Message) -> None:
    """Find out what `restore_missing_values` asks about a message."""
    if row.role in _SPOKEN:
        _values_to_keep(original_words(row), row.role == "user")
        find_secrets(row.content)


def _units(material: SummaryInput) -> Iterator[Message]:
    """Yield the messages, or the single lines of summaries under the ids they cite."""
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
    """Yield one message's missing values as lines of limited length; each value with preceding words."""
    row = lacks[0].row
    number = original_id(row)
    head = f"- #{number}: " if number else "- earlier: "
    parts: list[str] = []
    values: list[str] = []
    flat, at = " ".join(row.content.split()), 0
    for lack in lacks:
        if not any(fold_width_and_case(lack.value) in fold_width_and_case(part) for part in parts):
            if lack.kind in ("tasks", "wishes"):
                new = _shorten_line(lack.value, _LONGEST_TASK)
            else:
                new, at = _with_context(flat, " ".join(lack.value.split()), at)
            if parts and len(head) + sum(len(part) + 2 for part in parts) + len(new) > _LONGEST_LINE:
                yield head + "; ".join(parts), values
                parts, values = [], []
            parts.append(new)
        values.append(lack.value)
    yield head + "; ".join(parts), values


def _with_context(flat: str, value: str, since: int) -> tuple[str, int]:
    """Return the value with the words before it, since a bare number says nothing, and where it was found. Values come
    in the order of the text, so each is looked for from the one before it on: a long text is gone through once."""
    at = flat.find(value, since)
    if at < 0:
        return _shorten_line(value, _LONGEST_TASK), since
    start = max(0, at - _AROUND)
    if start and (space := flat.find(" ", start, at)) >= 0:
        start = space + 1
    return escape_boundaries(flat[start : at + len(value)]), at


def _shorten_line(text: str, most: int) -> str:
    return shorten(escape_boundaries(" ".join(text.split())), most)


_NUMBER = lazy_regex(rf"(?<![{IDENTIFIER_CHARS}_.,#-])[-+]?\d+(?:[.,:/-]\d+)*(?![{IDENTIFIER_CHARS}_-])")
_NAME = lazy_regex(
    r"(?<=[^\s.!?:;] )(?:(?:Dr|Prof|Mrs?|Ms|St)\. )?(?:[A-ZÀ-ÞА-ЯΑ-Ω][\w'’-]+)(?: [A-ZÀ-ÞА-ЯΑ-Ω][\w'’-]+)*"
)
_TASK = lazy_regex(
    r"(?im)^[ \t]*(?:[-*] \[ \] |todo:? |(?:please|remember to|remind me to|don't forget to|we need to)\b)[^\n]+"
)
# Each form with something that is in all its matches and is found faster.
_FORMS = (
    ("tasks", _TASK, None),
    ("identifiers", IDENTIFIER, lazy_regex(r"[\d@/]")),
    ("numbers", _NUMBER, lazy_regex(r"\d")),
    ("names", _NAME, lazy_regex(r" [A-ZÀ-ÞА-ЯΑ-Ω]")),
)
_END = ".,;:!?)]}"
_ENDS_WITH_NUMBER = lazy_regex(r"\d[.,:/-]?\Z")
_BEGINS_WITH_NUMBER = lazy_regex(r"[.,:/-]?\d")


class FoldedText:
    """A text normalised for substring queries."""

    def __init__(self, text: str) -> None:
        self._folded = fold_width_and_case(text)

    def contains(self, value: str) -> bool:
        """Return whether the text has the value; a number must match completely: 12 is not in 2012 or 12.50."""
        wanted = fold_width_and_case(value)
        if wanted not in self._folded:
            return False
        if not wanted[-1:].isdigit() or not _NUMBER.fullmatch(wanted):
            return True
        # A pattern for each number would take longer to compile than all searches together.
        return any(self._stands_alone(at, at + len(wanted)) for at in self._places_of(wanted))

    def _places_of(self, wanted: str) -> Iterator[int]:
        at = self._folded.find(wanted)
        while at >= 0:
            yield at
            at = self._folded.find(wanted, at + 1)

    def _stands_alone(self, start: int, end: int) -> bool:
        """Return whether what is there is no part of a longer number."""
        before, after = self._folded[max(0, start - 2) : start], self._folded[end : end + 2]
        return not (_ENDS_WITH_NUMBER.search(before) or _BEGINS_WITH_NUMBER.match(after))


def find_named_values(text: str) -> Iterator[tuple[str, str]]:
    """Yield (kind, value) for "tasks", "identifiers", "numbers", "names", in this order."""
    rest = text
    for kind, form, needed in _FORMS:
        if needed is not None and needed.search(rest) is None:
            continue
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
    """Return values in the sources that the summary lacks, by kind ("identifiers", "numbers", "names", "tasks"), in
    order and without duplicates; only kinds with missing values."""
    there = FoldedText(summary)
    missing: dict[str, dict[str, None]] = {}
    for text in source_texts:
        for kind, value in find_named_values(text):
            if not there.contains(value):
                missing.setdefault(kind, {}).setdefault(value)
    return {kind: list(values) for kind, values in missing.items()}


def fold_width_and_case(text: str) -> str:
    """Normalise width, case and white space."""
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
# A character of these scripts counts as three Latin letters.
_DENSE = frozenset({"kana", "hangul", "han"})
# Code, addresses, paths and identifiers are language-independent.
_NOT_WORDS = lazy_regex(r"```.*?(?:```|\Z)|`[^`\n]*`|(?<![!-~])[!-~]*[\d/\\@_<>{}=][!-~]*", re.DOTALL)
# Groups of languages that share most of their function words.
_ALIKE = (frozenset({"no", "da", "sv"}), frozenset({"es", "pt", "it"}), frozenset({"pl", "cs"}))
_LOOKED_AT = 20_000
_OF_A_ROW = 2_000
_ENOUGH_CHARACTERS = 20
_MOST_OF_IT = 0.5
# With at least this share of the conversation's script, a summary is accepted.
_SOME_OF_IT = 0.15
_ENOUGH_STOPS = 6
_CLEARLY = 1.5


def is_same_language(text: str, material: SummaryInput) -> bool:
    """Return whether the summary is in the language of the user, or of the assistant if they differ."""
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
    """Return text of one role, newest messages first, limited per message."""
    return " ".join(row.content[:_OF_A_ROW] for row in reversed(material.rows) if row.role == role)[:_LOOKED_AT]


def _prose(text: str) -> str:
    return _NOT_WORDS.sub(" ", text[:_LOOKED_AT])


def _shares(text: str) -> dict[str, float]:
    """Return the share of each script; empty for too few letters."""
    counts = {name: len(form.findall(text)) * (3 if name in _DENSE else 1) for name, form in _SCRIPTS}
    if counts["kana"] > 0.1 * (counts["kana"] + counts["han"]):
        # Japanese uses both; Chinese only Han.
        counts["kana"] += counts["han"]
        counts["han"] = 0
    total = sum(counts.values())
    return {name: count / total for name, count in counts.items()} if total >= _ENOUGH_CHARACTERS else {}


def _main_script(shares: dict[str, float]) -> str | None:
    return next((name for name, share in shares.items() if share > _MOST_OF_IT), None)


def _language(text: str) -> str | None:
    """Return the language with clearly the most function words, or None."""
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
