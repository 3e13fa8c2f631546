"""Decides by rules whether a later statement repeats an earlier one, supersedes it, or is about something else. Pure.

- Two statements about different people or things are separate, however similar.
- A change needs evidence in the words: an attribute with one value at a time, a word of change ("now", "actually", "not
  X"), an end ("no longer"), or the same sentence with another number or day.
- A past event is not undone by a later one.
- In doubt both are kept: a redundant memory costs a line, a missing one a fact.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Literal

from assistant.core.dataclass import dataclass
from assistant.core.text import fold_text
from sleep.rules.corrections import find_corrected, is_correction
from sleep.rules.pattern_files import load_pattern, read_word_set
from sleep.rules.relations import PLACE_ATTRIBUTE, SELF_SUBJECT, AttributeSlot, find_slots
from sleep.rules.sentences import strip_request_to_keep
from sleep.rules.statements import Statement, is_same_stem, parse_statement, stem_word
from sleep.rules.translate import to_english

StatementRelation = Literal["same", "supersedes", "separate"]

_NEARLY_ALL = 0.75
_MOST = 0.6
_HALF = 0.5
# "It" and "that" refer to nothing older than this.
_JUST_SAID = timedelta(hours=12)
_KINDS = ("number", "time", "day", "month")


@dataclass(frozen=True, slots=True)
class ParsedStatement:
    """A statement with the slots it fills and its subject; "" if that is the user or unknown."""

    statement: Statement
    slots: tuple[AttributeSlot, ...]
    about: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MemoryCandidate:
    """A memory that may be related to a new entry."""

    id: str
    parsed: ParsedStatement
    said_at: datetime
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class EntryDecision:
    """The decision about an entry; without ids it becomes a new memory."""

    same_as: str = ""  # the memory with the same content
    superseded_ids: tuple[str, ...] = ()  # memories that contradict it, whichever was said first


def parse_entry(text: str, *, corrects: bool = False) -> ParsedStatement:
    """Parse at most 1,500 characters, translated to English as far as possible. `corrects`: it was said as a
    correction, in words that were removed from it."""
    text = to_english(strip_request_to_keep(text))
    statement = parse_statement(text)
    statement = replace(statement, says_changed=True) if corrects else statement
    return ParsedStatement(statement, tuple(find_slots(text)), _about(" ".join(text[:200].split())))


def list_matters(parsed: ParsedStatement) -> frozenset[tuple[str, ...]]:
    """Return keys of a statement's topics: its subject, its words without numbers and days, and each slot it fills.
    Statements without a common key rarely contradict each other, while those with one may be dissimilar in wording."""
    filled = {(slot.subject, slot.attribute) for slot in parsed.slots}
    words = tuple(sorted(parsed.statement.content_stems))
    return frozenset(matter for matter in (*filled, parsed.about, words) if matter)


def decide_entry(entry: ParsedStatement, said_at: datetime, candidates: Sequence[MemoryCandidate]) -> EntryDecision:
    """Decide how a statement said at `said_at` relates to memories of the same scope."""
    same: list[tuple[float, MemoryCandidate]] = []
    against: list[str] = []
    for candidate in candidates:
        relation = _relation(entry, said_at, candidate)
        if relation == "same" and _held_then(candidate, said_at):
            same.append((_jaccard(entry.statement.content_stems, candidate.parsed.statement.content_stems), candidate))
        elif relation == "supersedes":
            against.append(candidate.id)
    if same:
        best = max(same, key=lambda pair: (pair[0], pair[1].said_at, pair[1].id))[1]
        return EntryDecision(best.id, tuple(against))
    standing = [
        (memory.id, memory.parsed.statement)
        for memory in sorted(candidates, key=lambda memory: memory.said_at)
        if memory.said_at <= said_at and memory.until is None and memory.id not in against
        if not _is_of_another(entry, memory.parsed)
    ]
    against += find_corrected(entry.statement, standing, only_ended=bool(against))
    return EntryDecision("", tuple(against))


def _relation(entry: ParsedStatement, said_at: datetime, candidate: MemoryCandidate) -> StatementRelation:
    if said_at < candidate.said_at:
        return compare_statements(candidate.parsed, entry)
    return compare_statements(entry, candidate.parsed, is_recent=said_at - candidate.said_at <= _JUST_SAID)


def _held_then(candidate: MemoryCandidate, said_at: datetime) -> bool:
    """Return whether the candidate was still valid then: a fact that ended and is stated again becomes a new memory."""
    return candidate.until is None or said_at <= candidate.until


def compare_statements(
    later: ParsedStatement, earlier: ParsedStatement, *, is_recent: bool = False
) -> StatementRelation:
    """Compare a later to an earlier statement; `is_recent`: "it" in the later one may refer to the earlier one."""
    new, old = later.statement, earlier.statement
    if new.words == old.words:
        return "same"
    if _puts_right(new, old, just_said=is_recent) and not _is_of_another(later, earlier):
        return "supersedes"
    filled = _by_slots(later, earlier)
    if filled is not None:
        return filled
    stands_beside = new.says_additional or (old.says_additional and not new.says_changed)
    if _other_subjects(later, earlier) or (stands_beside and not new.replaced):
        return _same(later, earlier)
    changed = _ends(new, old) or _flips(later, earlier) or _revalues(new, old) or _renames(new, old)
    if changed or _redefines(later, earlier):
        return "supersedes"
    return _same(later, earlier)


def restate_correction(text: str, about: str) -> str:
    """Complete a correction that does not name its topic ("it's 900, not 750"): the earlier text with the new value
    instead of the old one, followed by the correction itself. Unless the correction changes the day, day and time of a
    dated fact are kept. Other texts are returned unchanged."""
    new = parse_statement(text)
    if new.content_stems or not new.replaced:
        return _with_day_of(new, text, about)
    value = _NEW_VALUE.search(text)
    for replaced in new.replaced:
        place = re.search(rf"(?<!\w){re.escape(replaced.text.strip())}(?!\w)", about, re.IGNORECASE)
        if value is not None and place is not None:
            return f"{about[: place.start()]}{value['value']}{about[place.end() :]} ({text.strip()})"
    return text


_NEW_VALUE = load_pattern("supersede", "new_value")
_WHEN = load_pattern("supersede", "when")


def _with_day_of(new: Statement, text: str, about: str) -> str:
    old = parse_statement(about)
    pieces = dict.fromkeys(match[0].strip(" )") for match in _WHEN.finditer(about))
    when = " ".join(pieces).replace(" (", ", ").lstrip("(")
    is_part = new.replaced and not new.says_ended and is_correction(text)
    if not when or old.is_past_event or not is_part or _WHEN.search(text):
        return text
    return f"{text.rstrip(' .')} ({when})"


# ----------------------------------------------------------------------------------------------------------- supersedes


def _puts_right(new: Statement, old: Statement, *, just_said: bool) -> bool:
    """Return whether it names an outdated value that is in the earlier one, and both have the same topic."""
    for replaced in new.replaced:
        if not replaced.is_named_in(old):
            continue
        about = old.content_stems - replaced.content_stems
        if new.content_stems & about:
            return not (_names_differ(new, old, beside=replaced.content_stems))
        if not new.content_stems:
            return just_said
        if replaced.content_stems and not about:
            return True
    return False


def _is_of_another(later: ParsedStatement, earlier: ParsedStatement) -> bool:
    """Return whether only one of them is about the user, and the other about a named person: where Ruben moved from is
    not where the user lives."""
    pairs = [(new, old) for new in later.slots for old in earlier.slots if new.attribute == old.attribute]
    own = {new.subject == SELF_SUBJECT for new, _ in pairs}, {old.subject == SELF_SUBJECT for _, old in pairs}
    return own in (({True}, {False}), ({False}, {True})) and bool(later.about or earlier.about)


def _by_slots(later: ParsedStatement, earlier: ParsedStatement) -> StatementRelation | None:
    for new in later.slots:
        for old in earlier.slots:
            if not _is_one_matter(new, old, changes=later.statement.says_changed):
                continue
            if later.statement.says_additional or (earlier.statement.says_ended and not later.statement.says_ended):
                continue
            agrees = _agree(new.value, old.value)
            if later.statement.says_ended and not earlier.statement.says_ended:
                return "supersedes" if agrees else None
            if not agrees:
                return None if later.statement.is_negated else "supersedes"
            if later.statement.is_negated != earlier.statement.is_negated:
                return "supersedes"
    return None


def _is_one_matter(new: AttributeSlot, old: AttributeSlot, *, changes: bool) -> bool:
    if new.attribute != old.attribute:
        return False
    if new.attribute != PLACE_ATTRIBUTE:
        return new.subject == old.subject
    # Things may be in several places in turn, unless a change is stated.
    mine, theirs = set(new.subject.split()), set(old.subject.split())
    return changes and new.subject != SELF_SUBJECT and bool(mine & theirs) and (mine <= theirs or theirs <= mine)


def _agree(new: str, old: str) -> bool:
    """Return whether one says the same as the other, possibly in more words."""
    a, b = parse_statement(new), parse_statement(old)
    mine, theirs = _bare_words(new), _bare_words(old)
    return (a.values == b.values and (mine <= theirs or theirs <= mine)) or a.words == b.words


def _bare_words(text: str) -> frozenset[str]:
    return frozenset(word for word in text.split() if not word[0].isdigit()) - read_word_set("little")


def _ends(new: Statement, old: Statement) -> bool:
    """Return whether one says that the other is over."""
    if new.says_ended == old.says_ended:
        return False
    over, so = (new, old) if new.says_ended else (old, new)
    if (
        so.is_past_event
        or so.is_negated
        or not so.content_stems
        or not _values_agree(over, so)
        or _names_differ(over, so)
    ):
        return False
    shared = len(over.main_stems & so.content_stems)
    return bool(shared) and shared >= _MOST * min(len(over.main_stems), len(so.content_stems))


def _flips(later: ParsedStatement, earlier: ParsedStatement) -> bool:
    """Return whether they are opposites about the same thing: liked and not liked, true and not true."""
    new, old = later.statement, earlier.statement
    if new.sentiment * old.sentiment < 0:
        if later.about != earlier.about:
            return False
        return _jaccard(new.main_stems, old.main_stems) >= _HALF or (
            bool(new.main_stems) and new.main_stems <= old.content_stems
        )
    if new.is_negated == old.is_negated or new.is_past_event or old.is_past_event or new.sentiment != old.sentiment:
        return False
    return _jaccard(new.main_stems, old.main_stems) >= _MOST and _values_agree(new, old)


def _revalues(new: Statement, old: Statement) -> bool:
    """Return whether it is the same statement with another number, time or day."""
    differing = [
        kind for kind in _KINDS if _differ(new.values_of_kind(kind, main=new.says_changed), old.values_of_kind(kind))
    ]
    if not differing or _names_differ(new, old) or (new.is_negated != old.is_negated and not new.says_changed):
        return False
    if (new.is_past_event or new.is_indefinite or old.is_indefinite or old.is_past_event) and not new.says_changed:
        return False
    if are_separate_doings(new, old):
        return False
    if new.replaced and not any(
        replaced.content_stems & old.content_stems or replaced.values & old.values for replaced in new.replaced
    ):
        # It names the value it replaces.
        return False
    if new.says_changed:
        shared = len(new.main_stems & old.content_stems)
        return bool(shared) and shared >= _MOST * min(len(new.main_stems), len(old.main_stems))
    return bool(new.content_stems) and _jaccard(new.content_stems, old.content_stems) >= _NEARLY_ALL


def are_separate_doings(new: Statement, old: Statement) -> bool:
    """Return whether they are the same activity on two days: meeting Anna on Tuesday, and on Thursday."""
    if new.says_changed or not (_OWN_DOING.match(new.text) and _OWN_DOING.match(old.text)):
        return False
    return any(_differ(new.values_of_kind(kind), old.values_of_kind(kind)) for kind in ("day", "month")) or (
        bool(new.values_of_kind("month")) and _differ(new.values_of_kind("number"), old.values_of_kind("number"))
    )


def _renames(new: Statement, old: Statement) -> bool:
    """Return whether it is the same statement, said to have changed, with another name or colour."""
    if not new.says_changed or new.is_negated != old.is_negated or old.is_past_event or not _values_agree(new, old):
        return False
    shared, added, missing = (
        new.main_stems & old.content_stems,
        new.main_stems - old.content_stems,
        old.content_stems - new.content_stems,
    )
    if not shared or not added or not missing or len(added) > 2:
        return False
    colours = frozenset(map(stem_word, read_word_set("colours")))
    other = bool(added & new.names and missing & old.names) or bool(added & colours and missing & colours)
    return other and len(shared) >= _HALF * len(new.main_stems) and not (new.names & old.names and len(shared) < 2)


def _redefines(later: ParsedStatement, earlier: ParsedStatement) -> bool:
    """Return whether it changes the same attribute of the same thing: "the name of the boat is now Vega"."""
    new, old = later.statement, earlier.statement
    if not new.says_changed or new.is_negated or old.is_negated or new.is_past_event or old.is_past_event:
        return False
    return later.about == earlier.about and _OF in later.about[1:-1] and new.content_stems != old.content_stems


# ----------------------------------------------------------------------------------------------------------------- same


def _same(later: ParsedStatement, earlier: ParsedStatement) -> StatementRelation:
    new, old = later.statement, earlier.statement
    if new.is_negated != old.is_negated or new.sentiment * old.sentiment < 0 or _other_subjects(later, earlier):
        return "separate"
    if not _values_agree(new, old) or _names_differ(new, old):
        return "separate"
    return "same" if _contains(new, old) or _contains(old, new) else "separate"


def _contains(more: Statement, less: Statement) -> bool:
    """Return whether the longer one includes everything in the shorter one and is not much longer."""
    if not less.content_stems or not less.values <= more.values or more.says_additional != less.says_additional:
        return False
    if not all(any(is_same_stem(word, other) for other in more.content_stems) for word in less.content_stems):
        return False
    in_less, in_more = len(less.content_stems) + len(less.values), len(more.content_stems) + len(more.values)
    return in_less >= in_more or (in_less >= 2 and in_less >= _HALF * in_more)


# ------------------------------------------------------------------------------------------------------------ compared

_OF = "of"
_ABOUT = load_pattern("supersede", "about")
_OWN_DOING = load_pattern("supersede", "own_doing")


def _other_subjects(later: ParsedStatement, earlier: ParsedStatement) -> bool:
    new, old = {*later.about}, {*earlier.about}
    if not new or not old:
        return False
    if new & old:
        # The north gate and the south gate.
        return later.about[-1] == earlier.about[-1] and bool(new - old and old - new)
    return not (
        {*map(stem_word, new)} & earlier.statement.content_stems
        or {*map(stem_word, old)} & later.statement.content_stems
    )


def _about(text: str) -> tuple[str, ...]:
    """Return the words of the subject of a sentence; empty if that is the user or unknown."""
    match = _ABOUT.match(fold_text(text[:200]).replace("’", "'"))
    if match is None:
        return ()
    words = [word.removesuffix("'s") for word in match["who"].split()]
    if read_word_set("first_person") & {*words}:
        return ()
    return tuple(word for word in words if word not in read_word_set("little"))


def _names_differ(new: Statement, old: Statement, *, beside: frozenset[str] = frozenset()) -> bool:
    """Return whether each names a person or thing that the other does not."""
    mine, theirs = new.names - old.content_stems, old.names - new.content_stems - beside
    return bool(mine and theirs)


def _differ(new: frozenset[str], old: frozenset[str]) -> bool:
    return bool(new and old) and not (new <= old or old <= new)


def _values_agree(new: Statement, old: Statement) -> bool:
    return not any(_differ(new.values_of_kind(kind), old.values_of_kind(kind)) for kind in _KINDS)


def _jaccard(stems: frozenset[str], other: frozenset[str]) -> float:
    return len(stems & other) / len(stems | other) if stems or other else 0.0
