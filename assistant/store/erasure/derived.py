"""Finds what was derived from erased messages: values that only they contained, and later messages that only repeat
such values (answers, handover notes, reminders).

A value that a person also said in another message, or that a file contained, stays everywhere; so does one that the
program itself writes. Only logs of the scope are read (I10), one line at a time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import field, replace
from functools import cache
from itertools import chain

from assistant.core.dataclass import dataclass
from assistant.core.erasure_phrases import PhraseMatcher, identifying_phrases
from assistant.core.erasure_values import (
    MIN_LETTERS,
    SENTENCES,
    find_days,
    find_values,
    find_words,
    is_written_by_us,
    may_have_words,
)
from assistant.core.messages import LogByteRange
from assistant.core.records import LogRecord, is_from_schedule
from assistant.core.text import STOP_WORDS, WORD, fold_text
from assistant.store.erasure.own_words import without_own_words
from assistant.store.erasure.plan import ErasurePlan, RecordLocation
from assistant.store.home.workspace import ADDED_FOLDER, EARLIER_FOLDER, SENT_FOLDER
from assistant.store.log.format import SALT_KEY, decode_record
from assistant.store.log.reader import LogFiles
from assistant.store.log.redact import is_blank_line
from sleep.rules.pattern_files import read_word_set, read_words

_MOST_CHARACTERS = 200_000
_MOST_WORDS, _FEW_WORDS = 500, 40
_YEARS_AHEAD = 3
_TURN = re.compile(rb'"turn":"([^"]*)"')
# Workspace folders of files that came with messages, were sent with them, or were added.
TRANSFER_FOLDERS = ("received/", f"{SENT_FOLDER}/", f"{ADDED_FOLDER}/", f"{EARLIER_FOLDER}/")
# Results of these tools were said by somebody else.
_FROM_OUTSIDE = frozenset({"read_file", "list_files", "fetch_url"})


@dataclass
class _Values:
    """Values with the first message that contained each, and values found elsewhere."""

    years: range  # in which our own texts write dates
    own: dict[str, int] = field(default_factory=dict)
    weak: dict[str, int] = field(default_factory=dict)
    words: dict[str, int] = field(default_factory=dict)
    days: set[str] = field(default_factory=set)  # written-out dates of these years, may be repeated as 2026-06-13
    said: set[str] = field(default_factory=set)
    files: set[str] = field(default_factory=set)

    def add(self, text: str, message_id: int) -> None:
        for values, found in zip((self.own, self.weak), find_values(text[:_MOST_CHARACTERS]), strict=True):
            for value in found:
                values.setdefault(value, message_id)
        words = {word for _, _, word in find_words(text[:_MOST_CHARACTERS])} - common_words()
        for word in sorted(words, key=len, reverse=True)[:_MOST_WORDS]:
            self.words.setdefault(word, message_id)
        for day in find_days(text[:_MOST_CHARACTERS]):
            if is_written_by_us(day, self.years):
                self.weak.setdefault(day, message_id)
                self.days.add(day)
            else:
                self.own.setdefault(day, message_id)

    def drop_words(self, words: Iterable[str]) -> None:
        for word in words:
            self.words.pop(word, None)


def add_derived(
    plan: ErasurePlan,
    sources: Sequence[LogRecord],
    texts: Iterable[str],
    others: Iterable[str],
    names: Collection[str],
    log: LogFiles,
    sessions: Sequence[str],
) -> ErasurePlan:
    """Return the plan with the values that only its messages (`sources`) and `texts` contained, and the messages that
    repeat them. Words that are only in `texts`, and in `others` made of other messages, are their author's wording.
    `names` are the program's own."""
    values = _collect_values(plan, sources, texts, others, names)
    turns = {record.turn for record in sources if record.turn}
    questions = [record for record in sources if record.turn and record.role == "user"]
    asked = {record.turn for record in questions if record.turn}
    words = {word for record in questions for word in _weighty_words(record.content)}
    matcher = PhraseMatcher((), (*values.own, *values.weak))
    echoes = list(_find_echoes(plan, matcher, values, asked, log, sessions))
    own = values.own.keys() - values.said
    alone = values.words.keys()
    repeated = [
        echo
        for echo, met in echoes
        if met & own
        or (echo.turn in turns and (met & values.weak.keys() or _words_among(alone, _words_said(echo))))
        or (echo.turn in asked and not words.isdisjoint(_asked_words(echo)))
        or _retells(_words_said(echo), alone)
        # Our own tools write no words of their own: this is a copy, as a search result is.
        or (echo.role == "tool" and _words_among(alone, _words_said(echo)))
    ]
    ids = {record.id for record in repeated}
    other_echoes = [echo for echo, _ in echoes if echo.id not in ids]
    elsewhere = {value for echo in other_echoes for value in matcher.matched_in_any_case(_words_said(echo).encode())}
    return replace(
        plan,
        records=(*plan.records, *(RecordLocation(record.id, record.session, record.span) for record in repeated)),
        calls=(*plan.calls, *list_calls(repeated)),
        values=tuple(value for value in values.own if value in own),
        runs=tuple(value for value in values.weak if value not in values.said | elsewhere),
        words=tuple(alone),
        mentions=tuple(echo.id for echo in other_echoes if _words_among(alone, _words_said(echo))),
        files=tuple(sorted(path for path in values.files if path.startswith(TRANSFER_FOLDERS))),
    )


def _collect_values(
    plan: ErasurePlan, sources: Sequence[LogRecord], texts: Iterable[str], others: Iterable[str], names: Collection[str]
) -> _Values:
    """Collect the values and the wording of the messages and texts; `said` are those that are not theirs alone."""
    spoken_in = [record.ts.year for record in sources]
    years = range(min(spoken_in, default=0) - 1, max(spoken_in, default=0) + _YEARS_AHEAD)
    values = _Values(years, said=set(names), files=_paths(sources))
    # With `everywhere`, messages that only repeat the text have no values of their own, only our own text format.
    firsthand = [record for record in sources if _is_independent(record)] if plan.everywhere else []
    for record in firsthand or sources:
        carried = _carried(record, plan)
        values.add(carried, record.id)
        # The words around it in tool results and answers are also used about other things.
        sentences = [] if _is_own_words(record) else identifying_phrases(carried)
        values.weak.update((sentence, record.id) for sentence in sentences if sentence not in values.weak)
    for text in texts:
        values.add(text, 0)
    own_wording = [value for value, said_in in (*values.own.items(), *values.weak.items()) if not said_in]
    values.said |= (
        PhraseMatcher((), own_wording).matched_in_any_case("\n".join(others).encode()) if own_wording else set()
    )
    written = {value for value in (*values.own, *values.weak) if is_written_by_us(value, years)}
    values.said |= written - (values.days - values.own.keys())
    return values


def _paths(records: Iterable[LogRecord]) -> set[str]:
    return {media.path for record in records for media in record.media if media.path}


def list_calls(records: Iterable[LogRecord]) -> tuple[tuple[str, str], ...]:
    """Return the tool runs that these messages requested."""
    return tuple((record.turn or "", call.id) for record in records for call in record.tool_calls)


def spoken_texts(record: LogRecord) -> list[str]:
    """Return what was said, and which tools were called."""
    return [record.content, *(text for call in record.tool_calls for text in _texts(dict(call.arguments)))]


def _words_said(record: LogRecord) -> str:
    return "\n".join((*spoken_texts(record), *(media.name or "" for media in record.media)))


@cache
def common_words() -> frozenset[str]:
    """Return common words in the languages of the rules, in the form of `find_words`."""
    lists = [read_word_set(name) for name in ("small", "of_anything", "common")]
    words = (*STOP_WORDS, *chain(*lists), *read_words("days").values(), *read_words("months").values())
    return frozenset(word for _, _, word in find_words(" ".join(words)))


def _words_among(words: Collection[str], text: str) -> set[str]:
    return {word for _, _, word in find_words(text) if word in words}


def _retells(text: str, words: Collection[str]) -> bool:
    """Return whether a sentence has so many of these words that it is most likely about the same thing."""
    fewest = 2 if len(words) <= _FEW_WORDS else 3
    sentences = SENTENCES.split(text) if words else ()
    return any(len(_words_among(words, sentence)) >= fewest for sentence in sentences)


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for item in inner for text in _texts(item)]


def _carried(record: LogRecord, plan: ErasurePlan) -> str:
    """Return what is erased with a message. If it only contains the text among other things, and is not a person's,
    these are the lines with it."""
    text = _words_said(record)
    if _is_own_words(record) or not plan.everywhere:
        return text
    return "\n".join(line for line in text.splitlines() if plan.unique.matches(line))


def _asked_words(record: LogRecord) -> set[str]:
    """Return the words in which the message calls tools. A call made for an erased message has that message's words, in
    its own form ("zed tau 417")."""
    return {
        word for call in record.tool_calls for text in _texts(dict(call.arguments)) for word in _weighty_words(text)
    }


def _weighty_words(text: str) -> Iterator[str]:
    return (word for word in WORD.findall(fold_text(text)) if len(word) >= MIN_LETTERS)


def _find_echoes(
    plan: ErasurePlan,
    matcher: PhraseMatcher,
    values: _Values,
    asked: Collection[str],
    log: LogFiles,
    sessions: Sequence[str],
) -> Iterator[tuple[LogRecord, set[str]]]:
    """Return messages that the assistant wrote after the erased ones and that have their values, and all it wrote in
    the turns `asked`. Words said by others are noted in any case: a noun here may be another word there."""
    for session in sessions:
        for offset, line in log.iterate_lines(session):
            at = line.find(SALT_KEY)
            if at < 0 or is_blank_line(line):
                continue
            # Names of models and accounts, and the like.
            values.said |= matcher.matched(line[:at])
            in_any_case, met = matcher.matched_in_any_case(line[at:]), set[str]()
            if in_any_case:
                body = without_own_words(line[at:])
                in_any_case, met = matcher.matched_in_any_case(body), matcher.matched(body)
            shared = {path for path in values.files if path.encode() in line}
            has_words = may_have_words(line[at:].decode(errors="replace"), values.words)
            in_turn = _TURN.search(line, 0, at)
            is_of_turn = in_turn is not None and in_turn[1].decode() in asked
            if not (in_any_case or shared or is_of_turn or has_words) or json.loads(line[:at] + b"}")["id"] in plan.ids:
                continue
            record = decode_record(line, offset)
            values.files -= {media.path for media in record.media}
            words = _words_among(values.words, _words_said(record))
            if _is_independent(record):
                values.said |= in_any_case
                values.drop_words(words)
                continue
            values.drop_words(word for word in words if values.words[word] > record.id)
            earlier = {value for value in met if values.own.get(value, values.weak.get(value, 0)) > record.id}
            values.said |= earlier
            yield replace(record, span=LogByteRange(offset, offset + len(line))), met - earlier


def _is_own_words(record: LogRecord) -> bool:
    """Return whether a person wrote it: a message, or what they changed one to."""
    return record.role == "user" or record.kind == "edit"


def _is_independent(record: LogRecord) -> bool:
    if _is_own_words(record):
        return record.kind != "reminder" and not is_from_schedule(record)
    return record.role == "tool" and record.name in _FROM_OUTSIDE
