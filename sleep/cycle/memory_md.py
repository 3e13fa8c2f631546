"""Parses and renders MEMORY.md: other people's lines, our own lines by section, and the choice of a section. Pure.

Lines that are not ours are preserved, with their line endings and order.
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
# In the format of `sleep.rules.resolve_dates`.
_DATED_DAYS = lazy_regex(rf"\b(\d{{1,2}}) ({MONTH_PATTERN}) ((?:19|20)\d\d)\b", re.IGNORECASE)
_FEWEST_WORDS, _SHORTEST_TYPED, _ALIKE = 3, 4, 0.85


def is_worth_a_daily_line(content: str, tags: Sequence[str], today: date) -> bool:
    """Return whether a text deserves a line in every prompt: no secret, question, order or fragment, and not about the
    past."""
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
    """Return whether two texts differ only by a typo in one word. Two capitalised words count as different names."""
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
    """Choose the section of an entry. Health comes first; preferences and decisions keep their section whatever they
    are about."""
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
    """A line of ours in a section."""

    text: str
    section: str
    rank: tuple[float, int, str]  # smallest first


def normalise_line(line: str, *, folded: bool = True) -> str:
    """Return the content of a line, without bullet, date and extra space; `folded`: ignoring case."""
    flat = " ".join(line.split())
    dated = DATED_LINE.fullmatch(flat)
    text = dated["said"] if dated else flat.removeprefix("- ")
    return text.casefold() if folded else text


@dataclass(slots=True)
class _Section:
    """A heading with the foreign lines below it."""

    heading: str | None  # None before the first heading
    mine: bool  # we wrote the heading
    lines: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        match = _HEADING.fullmatch(self.heading or "")
        return match["name"] if match else ""


@dataclass(frozen=True, slots=True)
class MemoryPage:
    """The parsed MEMORY.md."""

    sections: tuple[_Section, ...]
    own_lines: tuple[tuple[str, str], ...]  # our lines with their sections
    line_end: str  # line ending

    @classmethod
    def parse(cls, current: str, ours: Counter[str]) -> MemoryPage:
        """Parse the file; `ours` counts the lines (including headings) that we wrote; the first occurrences are taken
        as ours."""
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
        """Yield all foreign lines except headings, with line endings."""
        for section in self.sections:
            yield from section.lines

    def render(self, chosen: Sequence[MemoryLine]) -> str:
        """Render the page with these lines of ours, in order, each after its section's existing content; new sections
        are appended."""
        waiting: dict[str, list[str]] = {name: [] for name in SECTIONS}
        for own_line in chosen:
            waiting[own_line.section].append(f"{own_line.text}{self.line_end}")
        made: list[str] = []
        for section in self.sections:
            new = waiting.pop(section.name, [])
            empty = not new and not any(line.strip() for line in section.lines)
            if section.mine and empty:
                # Drop the blank line of our heading with it; one with spaces is not ours, and its characters count.
                blank = bool(section.lines) and not section.lines[0].strip("\r\n")
                made += section.lines[blank:]
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
        """Append lines, terminating an unterminated last line first."""
        if lines and made and not made[-1].endswith("\n"):
            made[-1] += "\n" if made[-1].endswith("\r") else self.line_end
        made += lines


def split_lines(text: str) -> list[str]:
    """Split into lines with their endings; only a line feed ends a line."""
    *lines, last = text.split("\n")
    return [*(f"{line}\n" for line in lines), *filter(None, [last])]
