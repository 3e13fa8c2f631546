"""Extracts durable statements from a conversation by rules: from messages, answers to questions, and corrections. Pure.

- Only the person's own words, verbatim and in order; never a question, an order, a supposition, a quotation, pasted
  text, code or small talk. What is not extracted can still be found in the message log.
- Every text names its source messages and is understandable by itself: an answer follows its question, a correction
  that only says "it" follows what it corrects, a relative day has its date.
- Question and answer are verbatim in their text. Only questions about the person's life are joined with an answer; an
  offer is joined only if the answer says how to do it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Literal

from assistant.core.dataclass import dataclass
from assistant.core.records import LogRecord
from assistant.core.text import lazy_regex
from sleep.rules.carried_out import is_carried_out, ordered_words
from sleep.rules.classifier import (
    asks_for_action,
    classify_kind,
    classify_other_language,
    classify_words,
    is_passing,
    mentions_entity,
    names_date,
    score_clause,
    score_importance,
)
from sleep.rules.clauses import (
    depends_on_previous,
    extract_durable_part,
    is_disclaimer,
    is_hypothetical,
    is_order,
    is_small_talk_clause,
    is_standing_instruction,
    is_too_short,
    join_fragments,
    mentions_reminder,
    strip_opening_words,
)
from sleep.rules.corrections import announces_correction, correct_part, describes_change, is_correction
from sleep.rules.pattern_files import load_pattern
from sleep.rules.resolve_dates import append_dates
from sleep.rules.sentence_cache import IN_A_TEXT, cached_by_sentence
from sleep.rules.sentences import (
    Sentence,
    asks_to_keep,
    blank_foreign_text,
    ends_role_play,
    split_sentences,
    starts_role_play,
)
from sleep.rules.supersede import compare_statements, parse_entry
from sleep.rules.translate import to_english

_LONGEST_ANSWER = 25
_LONGEST_QUESTION = 220
_OF_LIFE = frozenset({"kin", "person", "pet", "home", "vehicle", "work", "health", "pastime", "admin"})
_QUESTION_CLASSES = _OF_LIFE | {"recurring"}
_OF_PEOPLE = frozenset({"kin", "person", "health", "pet"})
_OFFERS = load_pattern("answers", "offers")
_ASKS_OF_PERSON = load_pattern("answers", "asks_of_person")
_EMPTY = load_pattern("answers", "empty")
_ASKED_BACK = load_pattern("answers", "asked_back")
_CALLED = load_pattern("answers", "called")
_HOW = load_pattern("answers", "how")
# Number of characters at the end of a message where its question is searched.
_LOOKED_AT = 20_000
_ENOUGH_FOR_YES = 0.8
_AUXILIARY = lazy_regex(
    r"^(?:\w+[,.!] )*(?:do|does|is|are|have|has|any|did|was|were|can|will|anything|got)\b", re.IGNORECASE
)
_YES_NO = lazy_regex(r"^(?:yes|yeah|yep|no|nope|none|never|nothing)\b[.!]*$", re.IGNORECASE)
_ABOUT_HAVING = load_pattern("answers", "about_having")


def find_personal_question(message: str, *, after_statement: bool = False) -> str:
    """Return the question about the person's life at the end of the assistant's message; "" if there is none.
    `after_statement`: a short question then refers to the statement before it."""
    question = _closing_question(message)
    if question is None:
        return ""
    own = question.own_text
    back = after_statement and _ASKED_BACK.match(own) and not _OFFERS.match(own)
    return question.text if back or _is_about_life(own) else ""


def find_answered_offer(message: str, answer: Sentence) -> str:
    """Return the offer at the end of the assistant's message if the answer says how to do it; else ""."""
    question = _closing_question(message)
    if question is None or not _OFFERS.match(question.own_text) or answer.is_question:
        return ""
    return question.text if _HOW.match(answer.own_text) else ""


def _closing_question(message: str) -> Sentence | None:
    message = message.rstrip()
    if not message.endswith(("?", "？", '?"', "?)")):
        return None
    end = blank_foreign_text(message[-_LOOKED_AT:])
    questions = [sentence for sentence in split_sentences(end) if sentence.has_question_mark]
    return questions[-1] if questions else None


def join_answer(question: str, answer: Sentence) -> str:
    """Join question and answer; "" if the answer says nothing durable."""
    own = answer.own_text
    if answer.is_question or is_disclaimer(own) or is_order(own) or is_hypothetical(own):
        return ""
    yes_or_no = _YES_NO.match(own)
    if len(own.split()) > _LONGEST_ANSWER or (_EMPTY.match(own) and not (yes_or_no and _ABOUT_HAVING.search(question))):
        return ""
    if _AUXILIARY.match(question) and not yes_or_no and score_clause(strip_opening_words(own)) < _ENOUGH_FOR_YES:
        return ""
    return f"{question} {answer.text}"


def _is_about_life(question: str) -> bool:
    if _CALLED.search(question):
        return True
    if len(question) > _LONGEST_QUESTION or _OFFERS.match(question):
        return False
    classes = classify_words(question)
    if classes & {"desk", "mood", "weather", "praise"} and not classes & _OF_PEOPLE:
        return False
    return bool(classes & _QUESTION_CLASSES) or bool(_ASKS_OF_PERSON.search(question))


StatementKind = Literal["fact", "preference", "decision", "task"]

_LONGEST_TEXT = 20_000
_LONGEST = 400
_SHORTEST_CJK = 5
# A longer message does not only correct a part.
_SHORTEST_WHOLE = 120
_CJK = lazy_regex(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


@dataclass(frozen=True, slots=True)
class ExtractedStatement:
    """A statement to keep, verbatim."""

    kind: StatementKind
    content: str
    importance: float  # 0 to 1
    is_correction: bool = False  # of something said before
    needs_context: bool = False  # its subject is only a pronoun


def extract_statements(text: str, *, was_acknowledged: bool = False) -> list[ExtractedStatement]:
    """Return the statements of a user's message, in order, each sentence once. `was_acknowledged`: the assistant
    confirmed it."""
    sentences = join_fragments(split_sentences(blank_foreign_text(text[:_LONGEST_TEXT])))
    return list({statement.content: statement for statement in _joined(sentences, was_acknowledged)}.values())


def _joined(sentences: Sequence[Sentence], noted: bool) -> Iterator[ExtractedStatement]:
    """Join a statement about "her" to the sentence that says who she is."""
    pending: ExtractedStatement | None = None
    before, request, announced = "", "", False
    for sentence in sentences:
        new = _statement_of_sentence(sentence, announced, noted)
        if pending and new and new.needs_context and len(pending.content) + len(new.content) < _LONGEST:
            pending = _of_one(pending, new)
        else:
            if pending is not None:
                yield pending
            pending = _with_context(before, request, new) if new is not None and new.needs_context else new
        small = is_small_talk_clause(sentence.own_text)
        states = not (sentence.is_question or is_order(sentence.own_text) or small)
        before, request = f"{sentence.text} " * states, f"{sentence.text} " * (not states and not small)
        announced = announces_correction(sentence.own_text) or (new is not None and new.is_correction)
    if pending is not None:
        yield pending


def _with_context(before: str, request: str, statement: ExtractedStatement) -> ExtractedStatement:
    """Join a statement that depends on the sentence before it to that sentence; to a question or an order only if it
    names nothing itself."""
    context = before or ("" if mentions_entity(statement.content) else request)
    return replace(statement, content=f"{context}{statement.content}"[:_LONGEST], needs_context=not context)


def _of_one(first: ExtractedStatement, second: ExtractedStatement) -> ExtractedStatement:
    content = f"{first.content} {second.content}"
    weight = score_importance(first.kind, content)
    return replace(first, content=content, importance=weight, is_correction=first.is_correction or second.is_correction)


# A compaction that is planned again, and the sleep after it, look at the same sentences.
@cached_by_sentence(IN_A_TEXT)
def _statement_of_sentence(sentence: Sentence, announced: bool, noted: bool) -> ExtractedStatement | None:
    """`announced`: the sentence before announced a correction; `noted`: the assistant confirmed it."""
    own = sentence.own_text[:_LONGEST]
    if asks_for_action(sentence) and mentions_reminder(own) and names_date(own):
        return _new_statement("task", sentence.text, own)
    spaceless = _CJK.search(own) is not None
    content = "" if spaceless else extract_durable_part(sentence, after_announcement=announced, was_acknowledged=noted)
    if not content and asks_to_keep(own) and not sentence.is_question:
        content = sentence.text
    if content:
        plain = content.replace("’", "'")
        kind = classify_kind(plain, standing=is_standing_instruction(plain))
        return _new_statement(kind, content, plain, announced=announced or is_correction(own))
    if sentence.is_question or (len(own) < _SHORTEST_CJK if spaceless else is_too_short(own)):
        return None
    other = classify_other_language(own) or _classify_in_english(own, announced=announced, noted=noted)
    return _new_statement(other, sentence.text, own) if other else None


def _classify_in_english(own: str, *, announced: bool, noted: bool) -> StatementKind | None:
    """Classify a text in another language by the English translation of its everyday words."""
    english = to_english(own)
    if english == own or is_passing(own):
        return None
    sentence = Sentence(english, english)
    lasts = extract_durable_part(sentence, after_announcement=announced, was_acknowledged=noted)
    return classify_kind(english, standing=False) if lasts else None


def _new_statement(kind: StatementKind, words: str, own: str, *, announced: bool = False) -> ExtractedStatement:
    content = words[:_LONGEST]
    corrects = announced or describes_change(own)
    hangs = depends_on_previous(strip_opening_words(own))
    return ExtractedStatement(kind, content, score_importance(kind, content), corrects, hangs)


_PLAY_LASTS = timedelta(minutes=20)
_ANSWERED_WITHIN = timedelta(hours=12)
_FIRST = 300
_TOOK_NOTE = load_pattern("answers", "took_note")


@dataclass(frozen=True, slots=True)
class SourcedStatement:
    """A statement to store."""

    statement: ExtractedStatement
    record: LogRecord
    sources: tuple[int, ...]  # source messages, the person's own first


@dataclass(slots=True)
class _ConversationState:
    """The context for understanding a message."""

    assistant: LogRecord | None = None  # the assistant's last message
    user: LogRecord | None = None  # the person's last message
    play_until: datetime | None = None  # a game continues until then
    noted: bool = False  # the assistant confirmed the current message
    told: tuple[SourcedStatement, ...] = ()  # after the person's last message that stated something or asked nothing


def extract_from_conversation(
    records: Sequence[LogRecord], zone: tzinfo = UTC, rest: Callable[[], None] | None = None
) -> list[SourcedStatement]:
    """Return the statements in users' messages, in order; `zone` determines dates. `rest` is called before each message
    is read, which takes milliseconds."""
    state = _ConversationState()
    statements: list[SourcedStatement] = []
    for number, record in enumerate(records, 1):
        if record.role == "user":
            if rest is not None:
                rest()
            if not _plays(state, record):
                state.noted = any(map(is_acknowledgement, records[number : number + 1]))
                ordered = ordered_words(records[later] for later in range(number, len(records)))
                found = _of_message(record, state)
                new = tuple(one for one in found if not is_carried_out(one.statement.content, ordered))
                if new or not record.content.rstrip().endswith("?"):
                    state.told = new
                statements += [_dated(sourced, zone) for sourced in new]
            state.user, state.assistant = record, None
        elif record.role == "assistant":
            state.assistant = record
    return statements


def list_earnest_messages(records: Sequence[LogRecord]) -> list[LogRecord]:
    """Return the users' messages that are not part of a game."""
    state = _ConversationState()
    return [record for record in records if record.role == "user" and not _plays(state, record)]


def is_acknowledgement(record: LogRecord) -> bool:
    """Return whether the assistant says that it will remember something."""
    return record.role == "assistant" and bool(_TOOK_NOTE.search(record.content[:_FIRST]))


def _plays(state: _ConversationState, record: LogRecord) -> bool:
    """Return whether the message is part of a game whose statements are about nobody."""
    said = record.content[:_LONGEST_TEXT]
    if starts_role_play(said):
        state.play_until = record.ts + _PLAY_LASTS
        return True
    if state.play_until is None:
        return False
    if ends_role_play(said) or record.ts > state.play_until:
        state.play_until = None
        return False
    return True


def _of_message(record: LogRecord, state: _ConversationState) -> Iterator[SourcedStatement]:
    whole = _with_corrected_part(record, state)
    if whole is not None:
        yield whole
        return
    answered = _answer(record, state)
    if answered is not None:
        yield answered
    for statement in extract_statements(record.content, was_acknowledged=state.noted):
        if answered is not None and statement.content in answered.statement.content:
            continue
        if not statement.needs_context or _names_something(statement.content):
            yield SourcedStatement(statement, record, (record.id,))
        elif statement.is_correction and (corrected := _with_what_it_corrects(statement, record, state)) is not None:
            yield corrected


def _with_corrected_part(record: LogRecord, state: _ConversationState) -> SourcedStatement | None:
    """Return the previous statement with a part corrected, if the message only corrects that part."""
    if len(record.content) > _SHORTEST_WHOLE:
        return None
    for told in reversed(state.told):
        earlier = told.statement
        content = correct_part(earlier.content, record.content)[:_LONGEST]
        if not content and _says_anew(record.content, earlier.content):
            content = record.content.strip()
        if content:
            importance = max(earlier.importance, score_importance(earlier.kind, content))
            statement = replace(earlier, content=content, importance=importance, is_correction=True)
            return SourcedStatement(statement, record, (record.id, told.record.id))
    return None


def _says_anew(message: str, earlier: str) -> bool:
    """Return whether a message without a statement repeats the previous statement with another value."""
    if extract_statements(message) or not is_correction(message):
        return False
    return compare_statements(parse_entry(message), parse_entry(earlier)) == "supersedes"


def _answer(record: LogRecord, state: _ConversationState) -> SourcedStatement | None:
    assistant = state.assistant
    first = next(iter(split_sentences(blank_foreign_text(record.content[:_FIRST]))), None)
    if assistant is None or record.ts - assistant.ts > _ANSWERED_WITHIN or first is None:
        return None
    just_told = any(told.record is state.user for told in state.told)
    if question := find_personal_question(assistant.content, after_statement=just_told):
        content = join_answer(question, first)
    else:
        offer = find_answered_offer(assistant.content, first)
        content = offer and f"{offer} {first.text}"
    if not content:
        return None
    content = content[:_LONGEST]
    statement = ExtractedStatement("fact", content, score_importance("fact", content))
    return SourcedStatement(statement, record, (record.id, assistant.id))


def _with_what_it_corrects(
    statement: ExtractedStatement, record: LogRecord, state: _ConversationState
) -> SourcedStatement | None:
    """Join it to the last text that names what "it" is; None if unknown."""
    for before in filter(None, (state.assistant, state.user)):
        sentences = split_sentences(blank_foreign_text(before.content))
        named = [sentence.text for sentence in sentences if _names_something(sentence.own_text)]
        if named:
            content = f'{statement.content} (of: "{named[-1]}")'[:_LONGEST]
            corrected = replace(statement, content=content, needs_context=False)
            return SourcedStatement(corrected, record, (record.id, before.id))
    return None


def _names_something(text: str) -> bool:
    return not classify_words(text).isdisjoint(_OF_LIFE) or bool(re.search(r"(?<=\w )[A-Z][a-z]", text))


def _dated(sourced: SourcedStatement, zone: tzinfo) -> SourcedStatement:
    content = append_dates(sourced.statement.content, sourced.record.ts.astimezone(zone).date())
    return replace(sourced, statement=replace(sourced.statement, content=content))
