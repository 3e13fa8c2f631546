"""MEMORY.md taken apart: the lines that stay as they are, the places where sleep's own go, and under which heading a
journal entry belongs, by its kind and its words. Pure.

What always holds: what is not sleep's comes out as it went in, each line with its own end, in its order.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import field
from datetime import date
from difflib import SequenceMatcher

from assistant.core.calendar import MONTH_PATTERN, month_number
from assistant.core.dataclass import dataclass
from assistant.core.text import lazy_regex
from sleep.rules.classifier import asks_for_action
from sleep.rules.pattern_files import load_pattern
from sleep.rules.secrets import has_secret
from sleep.rules.sentences import split_sentences

PEOPLE, HOME, HEALTH, WORK = "People", "Home", "Health", "Work"
PREFERENCES, DECISIONS, STANDING_FACTS = "Preferences", "Decisions", "Standing facts"
SECTIONS = (PEOPLE, HOME, HEALTH, WORK, PREFERENCES, DECISIONS, STANDING_FACTS)

_HEALTH = load_pattern("sections", "health")
_PEOPLE = load_pattern("sections", "people")
_WORK = load_pattern("sections", "work")
_HOME = load_pattern("sections", "home")
_BY_WORDS = ((HEALTH, _HEALTH), (PEOPLE, _PEOPLE), (WORK, _WORK), (HOME, _HOME))
_READ = 400
_SCRAP = load_pattern("sections", "scrap")
_HOUR = load_pattern("sections", "hour")
_OF_DAY = load_pattern("sections", "of_day")
# As `sleep.rules.resolve_dates` writes them.
_DATED_DAYS = lazy_regex(rf"\b(\d{{1,2}}) ({MONTH_PATTERN}) ((?:19|20)\d\d)\b", re.IGNORECASE)
_FEWEST_WORDS, _SHORTEST_TYPED, _ALIKE = 3, 4, 0.85


def is_worth_a_daily_line(content: str, tags: Sequence[str], today: date) -> bool:
    """No secret, question, order or scrap, and nothing that is over: what is read with every request is to be so."""
    read = content[:_READ]
    sentences = split_sentences(read)
    is_wish = "preference" in tags or "decision" in tags
    if has_secret(content) or _SCRAP.match(read) or any(sentence.is_question for sentence in sentences):
        return False
    if not is_wish and any(map(asks_for_action, sentences)):
        return False
    days = [date(int(year), month_number(month), int(day)) for day, month, year in _DATED_DAYS.findall(read)]
    if days and max(days) < today:
        return False
    return not _HOUR.search(read) or bool(_OF_DAY.search(read))


def is_typed_again(line: str, other: str) -> bool:
    """Whether two texts are the same but for a letter or two in one of their words: one of them is a typo. Two names
    are two names, however alike."""
    words, others = line.split(), other.split()
    differing = [pair for pair in zip(words, others, strict=False) if pair[0].casefold() != pair[1].casefold()]
    if len(words) != len(others) or len(differing) != 1 or len(words) < _FEWEST_WORDS:
        return False
    one, two = differing[0]
    if (
        any(char.isdigit() for char in one + two)
        or (one[0].isupper() and two[0].isupper())
        or min(len(one), len(two)) < _SHORTEST_TYPED
    ):
        return False
    one, two = one.casefold(), two.casefold()
    return sorted(one) == sorted(two) or SequenceMatcher(None, one, two).ratio() >= _ALIKE


def choose_section(content: str, tags: Sequence[str]) -> str:
    """Health goes before everything; a preference or a decision stays one whatever it is about."""
    read = content[:_READ]
    if _HEALTH.search(read):
        return HEALTH
    if "preference" in tags:
        return PREFERENCES
    if "decision" in tags:
        return DECISIONS
    return next((name for name, words in _BY_WORDS if words.search(read)), STANDING_FACTS)


_HEADING = lazy_regex(r"#{1,6} ++(?P<name>.*\S)\s*")
_OURS = "## "
DATED_LINE = lazy_regex(r"- (?P<said>.*) \((?P<day>\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01]))\)")


@dataclass(frozen=True, slots=True)
class MemoryLine:
    """A line of sleep's under a section's heading."""

    text: str
    section: str
    rank: tuple[float, int, str]  # the smallest comes first


def normalise_line(line: str, *, folded: bool = True) -> str:
    """What a line says, without its mark, its date and needless space; `folded`: without case."""
    flat = " ".join(line.split())
    dated = DATED_LINE.fullmatch(flat)
    text = dated["said"] if dated else flat.removeprefix("- ")
    return text.casefold() if folded else text


@dataclass(slots=True)
class _Section:
    """A heading with the lines that stay below it."""

    heading: str | None  # None before the first one
    mine: bool  # sleep wrote the heading
    lines: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        match = _HEADING.fullmatch(self.heading or "")
        return match["name"] if match else ""


@dataclass(frozen=True, slots=True)
class MemoryPage:
    """MEMORY.md taken apart."""

    sections: tuple[_Section, ...]
    own_lines: tuple[tuple[str, str], ...]  # sleep's lines, each with its section
    line_end: str  # of a line

    @classmethod
    def parse(cls, current: str, ours: Counter[str]) -> MemoryPage:
        """`ours` are the lines, headings included, that sleep wrote, and how often: the first of those alike."""
        sections, own_lines, left = [_Section(None, False)], [], Counter(ours)
        for line in split_lines(current):
            bare = line.rstrip("\r\n")
            mine = left[bare] > 0
            left[bare] -= mine
            if _HEADING.fullmatch(bare):
                sections.append(_Section(line, mine))
            elif mine:
                name = sections[-1].name
                own_lines.append((bare, name if name in SECTIONS else STANDING_FACTS))
            else:
                sections[-1].lines.append(line)
        return cls(tuple(sections), tuple(own_lines), "\r\n" if "\r\n" in f"{current}\n" else "\n")

    def other_lines(self) -> Iterator[str]:
        """The lines that are not sleep's, with their ends, headings left out."""
        for section in self.sections:
            yield from section.lines

    def render(self, chosen: Sequence[MemoryLine]) -> str:
        """The page with these lines of sleep's, in their order, each behind what its section says already; sections
        that are not there come at the end."""
        waiting: dict[str, list[str]] = {name: [] for name in SECTIONS}
        for own_line in chosen:
            waiting[own_line.section].append(f"{own_line.text}{self.line_end}")
        made: list[str] = []
        for section in self.sections:
            new = waiting.pop(section.name, [])
            empty = not new and not any(line.strip() for line in section.lines)
            if section.mine and empty:
                # The empty line below goes with a heading of ours, as it came with the next one.
                made += section.lines[1:]
            else:
                made += [] if section.heading is None else [section.heading]
                end = max((place for place, line in enumerate(section.lines, 1) if line.strip()), default=0)
                made += section.lines[:end]
                self._append(made, new)
                made += section.lines[end:]
        for name, new in waiting.items():
            if new:
                between = [self.line_end] if made and made[-1].strip() else []
                self._append(made, [*between, f"{_OURS}{name}{self.line_end}", *new])
        return "".join(made)

    def _append(self, made: list[str], lines: Sequence[str]) -> None:
        """A last line without an end gets one first."""
        if lines and made and not made[-1].endswith("\n"):
            made[-1] += "\n" if made[-1].endswith("\r") else self.line_end
        made += lines


def split_lines(text: str) -> list[str]:
    """With their ends; only a line feed ends a line."""
    *lines, last = text.split("\n")
    return [*(f"{line}\n" for line in lines), *filter(None, [last])]
