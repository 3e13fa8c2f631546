"""What a conversation tells of its person, by rules alone: message by message, in answer to a question, or as a
correction. Pure.

What always holds:
- Only the person's own words, as they said them, in their order; never a question, an order, something supposed, a
  quotation, pasted text, code or small talk. What is not taken stays findable in the message log.
- Every text names the messages that it is made of, and can be understood by itself: an answer stands behind its
  question, a correction that only says "it" behind what it corrects, a day that was near has its date.
- Question and answer stand in their text word for word. Only questions about the person's own life are joined, with
  an answer that says something; of offers only one that is answered with how it is to be done.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Literal

from assistant.core.records import LogRecord
from assistant.core.text import lazy_regex
from sleep.rules.classifier import (
    asks_for_action,
    classify_kind,
    classify_other_language,
    classify_word,
    mentions_entity,
    names_date,
    score_clause,
    score_importance,
    split_words,
)
from sleep.rules.clauses import (
    depends_on_previous,
    is_disclaimer,
    is_hypothetical,
    is_order,
    is_small_talk_clause,
    is_standing_instruction,
    join_fragments,
    mentions_reminder,
    strip_opening_words,
)
from sleep.rules.corrections import announces_correction, describes_change
from sleep.rules.durable_part import SentenceContext, extract_durable_part, is_too_short
from sleep.rules.pattern_files import load_pattern
from sleep.rules.resolve_dates import append_dates
from sleep.rules.sentences import Sentence, blank_foreign_text, ends_role_play, split_sentences, starts_role_play

_LONGEST_ANSWER = 25
_LONGEST_QUESTION = 220
_QUESTION_CLASSES = frozenset(
    {"kin", "person", "pet", "home", "vehicle", "work", "health", "pastime", "admin", "recurring"}
)
_OF_PEOPLE = frozenset({"kin", "person", "health", "pet"})
_OFFERS = load_pattern("answers", "offers")
_ASKS_OF_PERSON = load_pattern("answers", "asks_of_person")
_EMPTY = load_pattern("answers", "empty")
_ASKED_BACK = load_pattern("answers", "asked_back")
_CALLED = load_pattern("answers", "called")
_HOW = load_pattern("answers", "how")
_ENOUGH_FOR_YES = 0.8
_AUXILIARY = lazy_regex(
    r"^(?:\w+[,.!] )*(?:do|does|is|are|have|has|any|did|was|were|can|will|anything|got)\b", re.IGNORECASE
)
_YES_NO = lazy_regex(r"^(?:yes|yeah|yep|no|nope|none|never|nothing)\b[.!]*$", re.IGNORECASE)
_ABOUT_HAVING = load_pattern("answers", "about_having")


def find_personal_question(said: str, *, after_statement: bool = False) -> str:
    """The question about the person's life that a message of the assistant ends with; "" where there is none. Asked
    back in a few words `after_statement`, it is about what was told."""
    own = blank_foreign_text(said)
    asked = [one for one in split_sentences(own) if one.has_question_mark]
    if not asked or not said.rstrip().endswith(("?", "？", '?"', "?)")):
        return ""
    question = asked[-1]
    back = after_statement and bool(_ASKED_BACK.match(question.own_text)) and not _OFFERS.match(question.own_text)
    return question.text if back or _is_lasting(question) else ""


def find_answered_offer(said: str, answer: Sentence) -> str:
    """The offer that a message of the assistant ends with, where it is answered with how it is to be done; else ""."""
    asked = [one for one in split_sentences(blank_foreign_text(said)) if one.has_question_mark]
    if not asked or not said.rstrip().endswith("?") or not _OFFERS.match(asked[-1].own_text):
        return ""
    return asked[-1].text if _HOW.match(answer.own_text) and not answer.is_question else ""


def join_answer(question: str, answer: Sentence) -> str:
    """Question and answer as one text; "" where the answer says nothing that lasts."""
    own = answer.own_text
    if answer.is_question or is_disclaimer(own) or is_order(own) or is_hypothetical(own):
        return ""
    if len(own.split()) > _LONGEST_ANSWER:
        return ""
    if _EMPTY.match(own) and not (_YES_NO.match(own) and _ABOUT_HAVING.search(question)):
        return ""
    if (
        _AUXILIARY.match(question)
        and not _YES_NO.match(own)
        and (score_clause(strip_opening_words(own)) < _ENOUGH_FOR_YES)
    ):
        return ""
    return f"{question} {answer.text}"


def _is_lasting(question: Sentence) -> bool:
    own = question.own_text
    if _CALLED.search(own):
        return True
    if len(own) > _LONGEST_QUESTION or _OFFERS.match(own):
        return False
    found: set[str] = set()
    for word in split_words(own.lower()):
        found |= classify_word(word)
    if found & {"desk", "mood", "weather", "praise"} and not found & _OF_PEOPLE:
        return False
    return bool(found & _QUESTION_CLASSES) or bool(_ASKS_OF_PERSON.search(own))


StatementKind = Literal["fact", "preference", "decision", "task"]

_LONGEST_TEXT = 20_000
_LONGEST = 400
_SHORTEST_CJK = 5
_CJK = lazy_regex(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


@dataclass(frozen=True, slots=True)
class ExtractedStatement:
    """What is worth keeping, word for word."""

    kind: StatementKind
    content: str
    importance: float  # 0 to 1
    is_correction: bool = False  # of what was said before
    needs_context: bool = False  # its subject is only a pronoun


def extract_statements(text: str, *, was_acknowledged: bool = False) -> list[ExtractedStatement]:
    """What a user's message tells, in its order, each sentence once. `was_acknowledged`: the assistant took note."""
    said = join_fragments(split_sentences(blank_foreign_text(text[:_LONGEST_TEXT])))
    found = {one.content: one for one in _joined(said, noted=was_acknowledged)}
    return list(found.values())


def _joined(said: Sequence[Sentence], *, noted: bool) -> Iterator[ExtractedStatement]:
    """What is said of "her" stands behind the sentence that says who she is."""
    last: ExtractedStatement | None = None
    before, asked, announced = "", "", False
    for sentence in said:
        one = _statement_of_sentence(
            sentence,
            SentenceContext(after_announcement=announced, was_acknowledged=noted),
        )
        if (
            one is not None
            and last is not None
            and one.needs_context
            and len(last.content) + len(one.content) < _LONGEST
        ):
            last = _of_one(last, one)
        else:
            if last is not None:
                yield last
            last = _behind(before, asked, one) if one is not None and one.needs_context else one
        small = is_small_talk_clause(sentence.own_text)
        states = not (sentence.is_question or is_order(sentence.own_text) or small)
        before, asked = f"{sentence.text} " * states, f"{sentence.text} " * (not states and not small)
        announced = announces_correction(sentence.own_text) or (one is not None and one.is_correction)
    if last is not None:
        yield last


def _behind(before: str, asked: str, one: ExtractedStatement) -> ExtractedStatement:
    """What hangs on the sentence before it, with that; with a question or an order only where it names nothing."""
    context = before or ("" if mentions_entity(one.content) else asked)
    return replace(one, content=f"{context}{one.content}"[:_LONGEST], needs_context=not context)


def _of_one(first: ExtractedStatement, second: ExtractedStatement) -> ExtractedStatement:
    content = f"{first.content} {second.content}"
    weight = score_importance(first.kind, content)
    return replace(first, content=content, importance=weight, is_correction=first.is_correction or second.is_correction)


def _statement_of_sentence(sentence: Sentence, beside: SentenceContext) -> ExtractedStatement | None:
    own = sentence.own_text[:_LONGEST]
    if asks_for_action(sentence) and mentions_reminder(own) and names_date(own):
        return _new_statement("task", sentence.text, own)
    spaceless = _CJK.search(own) is not None
    content = "" if spaceless else extract_durable_part(sentence, beside)
    if content:
        shown = content.replace("’", "'")
        return _new_statement(
            classify_kind(shown, standing=is_standing_instruction(shown)),
            content,
            shown,
            announced=beside.after_announcement,
        )
    if sentence.is_question or (len(own) < _SHORTEST_CJK if spaceless else is_too_short(own)):
        return None
    kind = classify_other_language(own)
    return _new_statement(kind, sentence.text, own) if kind else None


def _new_statement(kind: StatementKind, words: str, own: str, *, announced: bool = False) -> ExtractedStatement:
    content = words[:_LONGEST]
    return ExtractedStatement(
        kind,
        content,
        score_importance(kind, content),
        announced or describes_change(own),
        depends_on_previous(strip_opening_words(own)),
    )


_PLAY_LASTS = timedelta(minutes=20)
_ANSWERED_WITHIN = timedelta(hours=12)
_OF_LIFE = frozenset({"kin", "person", "pet", "home", "vehicle", "work", "health", "pastime", "admin"})
_FIRST = 300
_TOOK_NOTE = load_pattern("answers", "took_note")


@dataclass(frozen=True, slots=True)
class SourcedStatement:
    """A statement as it is to be kept."""

    statement: ExtractedStatement
    record: LogRecord
    sources: tuple[int, ...]  # the messages that it is from, the person's own first


@dataclass(slots=True)
class _ConversationState:
    """What a message is understood by."""

    assistant: LogRecord | None = None  # the assistant's last message
    user: LogRecord | None = None  # the person's last message
    play_until: datetime | None = None  # a game goes on until then
    noted: bool = False  # the assistant took note of what is read
    told: bool = False  # the person's last message told something


def extract_from_conversation(records: Sequence[LogRecord], zone: tzinfo = UTC) -> list[SourcedStatement]:
    """What the users' messages tell, in their order; `zone` is where the days of the person begin."""
    state = _ConversationState()
    found: list[SourcedStatement] = []
    for number, record in enumerate(records, 1):
        if record.role == "user":
            if not _plays(state, record):
                state.noted = any(map(is_acknowledgement, records[number : number + 1]))
                new = [_dated(one, zone) for one in _of_message(record, state)]
                state.told = bool(new)
                found += new
            state.user, state.assistant = record, None
        elif record.role == "assistant":
            state.assistant = record
    return found


def is_acknowledgement(record: LogRecord) -> bool:
    """Whether the assistant says that it will keep what it was told."""
    return record.role == "assistant" and bool(_TOOK_NOTE.search(record.content[:_FIRST]))


def _plays(state: _ConversationState, record: LogRecord) -> bool:
    """Whether the message is part of a game in which people say what is true of nobody."""
    if starts_role_play(record.content):
        state.play_until = record.ts + _PLAY_LASTS
        return True
    if state.play_until is None:
        return False
    if ends_role_play(record.content) or record.ts > state.play_until:
        state.play_until = None
        return False
    return True


def _of_message(record: LogRecord, state: _ConversationState) -> Iterator[SourcedStatement]:
    answered = _answer(record, state)
    if answered is not None:
        yield answered
    said = record.content
    for one in extract_statements(said, was_acknowledged=state.noted):
        if answered is not None and one.content in answered.statement.content:
            continue
        if one.needs_context and one.is_correction:
            yield from _with_what_it_corrects(one, record, state)
        elif not one.needs_context or _names_something(one.content):
            yield SourcedStatement(one, record, (record.id,))


def _answer(record: LogRecord, state: _ConversationState) -> SourcedStatement | None:
    asked = state.assistant
    if asked is None or record.ts - asked.ts > _ANSWERED_WITHIN:
        return None
    question = find_personal_question(asked.content, after_statement=state.told)
    first = next(iter(split_sentences(blank_foreign_text(record.content[:_FIRST]))), None)
    if first is None:
        return None
    offer = "" if question else find_answered_offer(asked.content, first)
    content = join_answer(question, first) if question else f"{offer} {first.text}" if offer else ""
    if not content:
        return None
    content = content[:_LONGEST]
    return SourcedStatement(
        ExtractedStatement("fact", content, score_importance("fact", content)), record, (record.id, asked.id)
    )


def _with_what_it_corrects(
    one: ExtractedStatement, record: LogRecord, state: _ConversationState
) -> Iterator[SourcedStatement]:
    """Before the last words that name what "it" is; nothing where nobody can tell."""
    if _names_something(one.content):
        yield SourcedStatement(one, record, (record.id,))
        return
    for before in (state.assistant, state.user):
        if before is None:
            continue
        named = [
            said.text for said in split_sentences(blank_foreign_text(before.content)) if _names_something(said.own_text)
        ]
        if named:
            content = f'{one.content} (of: "{named[-1]}")'[:_LONGEST]
            yield SourcedStatement(replace(one, content=content, needs_context=False), record, (record.id, before.id))
            return


def _names_something(text: str) -> bool:
    return any(classify_word(word) & _OF_LIFE for word in split_words(text.lower())) or bool(
        re.search(r"(?<=\w )[A-Z][a-z]", text)
    )


def _dated(one: SourcedStatement, zone: tzinfo) -> SourcedStatement:
    content = append_dates(one.statement.content, one.record.ts.astimezone(zone).date())
    return replace(one, statement=replace(one.statement, content=content))
