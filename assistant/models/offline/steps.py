"""What offline mode does next about a request: call a tool, or answer. Pure.

What always holds: it knows nothing but the model request, like any model. The same request gives the same step with
the same call ids, so a turn that is resumed after a crash continues where it stopped. It claims nothing that a result
or the message log does not show, and quotes instead of retelling.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from assistant.core.dataclass import dataclass
from assistant.core.messages import Message
from assistant.core.quoting import (
    QuotedMessage,
    is_failed_result,
    parse_quotes,
    parse_read_messages,
    quote_block,
)
from assistant.core.text import pluralize, shorten
from assistant.models.offline.carry_out import MAYBE_AN_ORDER, UNCLEAR_ORDER, NoOrder, run_look_up, run_plan
from assistant.models.offline.cues import fold, says, says_any
from assistant.models.offline.file_answers import answer_from_files, search_files
from assistant.models.offline.matching import subject_words
from assistant.models.offline.order_signs import commands, is_likely_told, may_be_request, tells_need
from assistant.models.offline.order_spelling import spell_order
from assistant.models.offline.own_name import NAME_WORDS, asks_own_name, newest_name
from assistant.models.offline.parse import as_question, is_statement, note_of
from assistant.models.offline.plain_forms import only_tells_of_new
from assistant.models.offline.plans import (
    EarlierCall,
    PlanContext,
    ToolStep,
    changed_right_before,
    describe_failure,
    names_earlier,
)
from assistant.models.offline.ranking import (
    RankedAnswer,
    content_words,
    find_replaced_statement,
    points_to,
    query_words,
)
from assistant.models.offline.remembered import MEMORY, find_remembered, read_memories
from assistant.models.offline.requests import (
    AboutMe,
    Correction,
    DoOrder,
    Note,
    Question,
    Request,
    Say,
    UseTool,
)
from assistant.models.offline.told_days import find_told_day
from assistant.models.offline.undo import other_number
from sleep.rules.translate import to_english

INTRODUCTION = (
    "*This is offline mode (no language model). I keep what you tell me, find it again word for word, and manage your "
    "reminders and lists. Say `help` for examples.*"
)
_NOTED = "Noted."
_NOT_CHANGED = "No reminder or to-do was changed."
_NOT_REPLACED = "You don't say what is to hold instead, so nothing was replaced."
_NOWHERE_ELSE = "Offline I can't look anywhere else. Tell me, and I will know it next time."
_NEEDED_FOR = {
    "manage_todo_list": "a to-do list",
    "set_reminder": "reminders",
    "list_reminders": "reminders",
    "change_reminder": "reminders",
    "cancel_reminder": "reminders",
    "show_agenda": "the agenda",
}
_SEARCH_LIMIT = 20
_SAID_BESIDE = 10
_MOST_QUERY_WORDS = 40
_LONGEST_QUERY = 400
_MOST_STATEMENTS = 5
_MOST_RESULTS = 5
_LONGEST_RESULT = 600


@dataclass(frozen=True, slots=True)
class StepContext:
    message: Message
    tools: frozenset[str]  # on offer in this request
    own_words: tuple[QuotedMessage, ...]  # what people said before, as far as the request still has it
    now: datetime | None = None  # local
    earlier: tuple[EarlierCall, ...] = ()  # of earlier turns
    has_files: bool = False  # of the person, which can be searched
    attached: tuple[str, ...] = ()  # the paths of those that came with the message
    person: str = ""  # the name of the person, as the request has it
    knows_offer: bool = False  # it was told how to be reminded of a day


def next_step(request: Request, results: Sequence[str], context: StepContext) -> ToolStep | str:
    """The next call for `request`, or its answer; `results` are those of the calls it has made so far, in order."""
    if context.attached and (asked := question_of(request)):
        return _answer_from_attached(asked, request, results, context)
    match request:
        case Say():
            return request.text
        case Note(is_doubtful=True):
            return UNCLEAR_ORDER if request.is_command else MAYBE_AN_ORDER
        case Note(is_likely=False) if changed_right_before(_plan_context(context)):
            return MAYBE_AN_ORDER
        case Note():
            return _note(request, results, context)
        case AboutMe():
            told = _about_person([quote for quote in context.own_words if is_statement(quote.text)])
            return f"I don't count what you tell me. {told}" if request.counts else told
        case Question():
            return _answer(request, results, context)
        case Correction():
            return _correct(request, results, context)
        case UseTool():
            return _use_tool(request, results, context)
        case DoOrder():
            return _do(request, results, context)


def question_of(request: Request) -> str:
    """What is asked, in words that what was said may answer; "" where nothing is."""
    plain = request.otherwise if isinstance(request, DoOrder) else request
    return plain.text if isinstance(plain, Question) and plain.role == "user" else ""


def _answer_from_attached(asked: str, request: Request, results: Sequence[str], context: StepContext) -> ToolStep | str:
    """Who asks beside a file asks the file first, and whatever else there is where it says nothing of that."""
    words, files = _words_to_search(asked), context.attached
    searched = len(files) if words else 0
    if len(results) < searched:
        return search_files(words, files[len(results)])
    for result in results[:searched]:
        if said_in_file := answer_from_files(asked, result):
            return said_in_file
    step = next_step(request, results[searched:], replace(context, attached=()))
    nothing = f"I found no answer in the {'file' if len(files) == 1 else 'files'} that you sent."
    return f"{nothing} {step}" if searched and isinstance(step, str) else step


def _note(note: Note, results: Sequence[str], context: StepContext) -> ToolStep | str:
    """That it is kept, and on which day it stands in the agenda; and that nothing else was done, where it may have been
    meant as an order."""
    if note.name:
        return f"{_NOTED} You are called {_line(note.name)}."
    open_words = note.plain_unless_named
    # "The plumber came and fixed the tap" may mean the to-do to fix it.
    may_be_there = names_earlier(context.message.content, context.earlier, least=2)
    is_plain = (note.is_plain and not may_be_there) or bool(
        open_words and not names_earlier(open_words, context.earlier)
    )
    reads = is_plain or not note.names_item
    day = find_told_day(context.message.content, results, _plan_context(context), is_plain=reads)
    if isinstance(day, ToolStep):
        return day
    if day is not None:
        unchanged = "" if reads or not day.names_item else _NOT_CHANGED
        offer = "" if context.knows_offer else day.offer
        return " ".join(filter(None, (_NOTED, f"It is in your agenda on {day.when}.", unchanged, offer)))
    if note.is_task and "manage_todo_list" in context.tools:
        return f"{_NOTED} {_NOT_CHANGED} To put it on your to-do list, say: add … to my list."
    return _NOTED if is_plain else f"{_NOTED} {_NOT_CHANGED}"


def _do(request: DoOrder, results: Sequence[str], context: StepContext) -> ToolStep | str:
    step = run_plan(request.text, results, _plan_context(context), corrects=isinstance(request.otherwise, Correction))
    if isinstance(step, NoOrder):
        if isinstance(request.otherwise, Note) and step.asks and not tells_need(request.text):
            return _answer(as_question(request.text), results[step.used :], context)
        is_open = isinstance(request.otherwise, Note) or may_be_request(request.text)
        in_doubt = (not step.sure and is_open) or commands(request.text)
        # What puts right what was just set, and is not understood, is no statement either.
        in_doubt |= not is_likely_told(request.text) and _may_put_right(request.text, step, context)
        in_doubt &= step.names_item or not only_tells_of_new(request.text)
        if in_doubt and not isinstance(request.otherwise, Question | Say):
            return UNCLEAR_ORDER if commands(request.text) else MAYBE_AN_ORDER
        otherwise = request.otherwise
        if isinstance(otherwise, Note):
            told = note_of(request.text)
            is_plain = told.is_plain or bool(told.plain_unless_named and not step.names_item)
            is_task = otherwise.is_task or told.is_task
            otherwise = replace(otherwise, is_plain=is_plain, is_task=is_task, names_item=step.names_item)
        return next_step(otherwise, results[step.used :], context)
    return step if isinstance(step, str) or step.tool in context.tools else _unavailable(_NEEDED_FOR[step.tool])


def _may_put_right(text: str, told: NoOrder, context: StepContext) -> bool:
    """Whether a sentence may be about what was changed right before it, rather than tell of something else."""
    if not changed_right_before(_plan_context(context)):
        return False
    is_new = bool(subject_words(text)) and not (told.names_item or names_earlier(text, context.earlier))
    return not (is_new and says_any(("forms", "states"), fold(text)))


def _plan_context(context: StepContext) -> PlanContext:
    return PlanContext(context.tools, context.now, context.earlier)


def _use_tool(request: UseTool, results: Sequence[str], context: StepContext) -> ToolStep | str:
    if request.tool not in context.tools:
        return _unavailable(request.needs)
    if not results:
        return ToolStep(request.tool, request.arguments)
    return _failure(results[0]) if is_failed_result(results[0]) else f"{request.lead}{results[0]}"


def _unavailable(what: str) -> str:
    return f"I can't get at {what} in this conversation. Your message is kept."


def _failure(result: str) -> str:
    return f"That did not work: {describe_failure(result)}"


# --------------------------------------------------------------------------------------------------------------- memory


def _answer(question: Question, results: Sequence[str], context: StepContext) -> ToolStep | str:
    asks_name = question.role == "user" and asks_own_name(question.text)
    words = list(NAME_WORDS) if asks_name else _words_to_search(question.text)
    if not words:
        return "Ask me with a word that was in it: a name, a place, a thing."
    can_search, can_recall = "search_history" in context.tools, _can_recall(question, context)
    searched = int(can_search) + int(can_recall)
    if can_search and not results:
        return _search(words, question.role)
    if can_recall and len(results) < searched:
        return ToolStep("search_memory", {"query": question.text[:_LONGEST_QUERY]})
    found = results[: int(can_search)]
    quotes = _quotes(found, context) if question.role == "user" else parse_quotes("\n".join(found))
    memories = read_memories(results[searched - 1]) if can_recall else []
    if asks_name and (told := newest_name(quotes, context.message.name)):
        return _quotation(f"You are called {_line(told[0])}. You told me on", told[1])
    ranked = find_remembered(question.text, quotes, memories, topic=question.topic)
    if question.role == "user" and "read_history" in context.tools and (first := _out_of_view(ranked, context)):
        if len(results) == searched:
            return ToolStep("read_history", {"message_id": first.message_id, "neighbours": _SAID_BESIDE})
        quotes = _with_following(first, quotes, results[searched])
        ranked = find_remembered(question.text, quotes, memories, topic=question.topic)
    if not ranked.answers and question.role == "user" and not question.topic:
        if name := _name_from_setup(question, context):
            return name
        planned = run_look_up(question.text, results[searched:], _plan_context(context))
        if not isinstance(planned, NoOrder):
            return planned
        if context.has_files:
            read = results[searched + planned.used :]
            if not read:
                return search_files(words)
            if said_in_file := answer_from_files(question.text, read[0]):
                return said_in_file
    asks = "?" in question.text or says("asks", fold(spell_order(question.text)))  # "ki a le double"
    if not ranked.answers and not asks and commands(question.text):
        return UNCLEAR_ORDER
    said = _say_answers(question, ranked) if ranked.answers else _say_nothing_found(ranked, can_search=can_search)
    return _with_failure(said, results)


def _say_nothing_found(ranked: RankedAnswer, *, can_search: bool) -> str:
    where = "what you told me" if can_search else "the messages that I still see"
    parts = [f"I found nothing in {where} that answers this. {_NOWHERE_ELSE}"]
    if ranked.nearest is not None:
        parts.append(_quotation("The nearest is from", ranked.nearest))
    return "\n\n".join(parts)


def _say_answers(question: Question, ranked: RankedAnswer) -> str:
    first, *others = ranked.answers
    guesses = "; ".join(f'I read "{_line(word)}" as "{_line(meant)}"' for word, meant in ranked.guessed.items())
    speaker = "I told you" if question.role == "assistant" else f"{_line(first.name) if first.name else 'You'} told me"
    speaker = "Noted" if first.speaker == MEMORY else speaker
    parts = [f"{guesses}." if guesses else "", _quotation(f"{speaker} on", first)]
    for other in others:
        newer = other.message_id > first.message_id
        lead = "Also said" if newer else "Earlier"
        parts.append(_quotation(f"{lead} on", other))
    if ranked.replaced:
        days = ", ".join(dict.fromkeys(quote.when for quote in ranked.replaced if quote.when))
        parts.append(f"It replaces what was said on {days}." if days else "It replaces what was said before.")
    return "\n\n".join(filter(None, parts))


def _out_of_view(ranked: RankedAnswer, context: StepContext) -> QuotedMessage | None:
    """The first answer, where what was said right after it is not in view: it may have been put right there."""
    first = ranked.answers[0] if ranked.answers else None
    in_view = {quote.message_id for quote in context.own_words}
    return first if first and first.message_id and first.speaker != MEMORY and first.message_id not in in_view else None


def _with_following(first: QuotedMessage, quotes: Sequence[QuotedMessage], result: str) -> list[QuotedMessage]:
    known = {quote.message_id for quote in quotes}
    read = (quote for quote in parse_read_messages(result) if quote.message_id > first.message_id)
    return [*quotes, *(quote for quote in read if quote.speaker == "user" and quote.message_id not in known)]


def _name_from_setup(question: Question, context: StepContext) -> str:
    asked = context.person and asks_own_name(question.text)
    return f"You are called {context.person}: that is the name you gave when you set me up." if asked else ""


def _can_recall(question: Question, context: StepContext) -> bool:
    return question.role == "user" and "search_memory" in context.tools


def _correct(correction: Correction, results: Sequence[str], context: StepContext) -> ToolStep | str:
    words = _words_to_search(correction.text)
    if words and "search_history" in context.tools and not results:
        return _search(words, "user")
    if meant := points_to(context.message.content, _quotes(results, context)):
        return _quotation(f"{_NOT_REPLACED} You told me on", meant)
    old = find_replaced_statement(context.message.content, correction.text, _quotes(results, context))
    if old is None and len(words) < 2 and context.own_words and other_number(context.message.content) is None:
        old = context.own_words[-1]
    if old is None:
        nothing = f"{_NOTED} I found nothing earlier that it replaces; from now on this counts. {_NOT_CHANGED}"
        return _with_failure(nothing, results)
    # What was an order is not carried out otherwise because other words count from now on.
    changes = "" if is_statement(old.text) else f" {_NOT_CHANGED}"
    return _with_failure(_quotation(f"{_NOTED}{changes} It replaces what you told me on", old), results)


def _about_person(statements: Sequence[QuotedMessage]) -> str:
    if not statements:
        return "Ask me about one thing, by name, and I will look through everything you told me."
    lines = "\n".join(quote_block(quote.text) for quote in statements[-_MOST_STATEMENTS:])
    return (
        f"The last things you told me here:\n\n{lines}\n\nAsk me about one thing by name, and I will look further back."
    )


def _words_to_search(text: str) -> list[str]:
    return list(dict.fromkeys((*content_words(text), *content_words(to_english(text)))))


def _search(words: Sequence[str], role: str) -> ToolStep:
    query = " ".join(query_words(words)[:_MOST_QUERY_WORDS])[:_LONGEST_QUERY]
    return ToolStep("search_history", {"query": query, "role": role, "limit": _SEARCH_LIMIT})


def _quotes(results: Sequence[str], context: StepContext) -> list[QuotedMessage]:
    """What the search found, and what the request still has: a search that finds nothing must not hide that."""
    hits = [quote for result in results for quote in parse_quotes(result)]
    found_ids = {context.message.id, *(quote.message_id for quote in hits)}
    recent = [quote for quote in context.own_words if quote.message_id not in found_ids]
    return [*recent, *(quote for quote in hits if quote.message_id != context.message.id)]


def _quotation(lead: str, quote: QuotedMessage) -> str:
    """`lead` ends with "on" or "from": the day follows, where one is known."""
    when = f"{lead} {quote.when}" if quote.when else lead.rpartition(" ")[0]
    return f"{when}:\n\n{quote_block(quote.text)}"


def _with_failure(text: str, results: Sequence[str]) -> str:
    failed = next((result for result in results if is_failed_result(result)), None)
    return f"{text}\n\n(The search failed, so I only looked at recent messages. {failed})" if failed else text


def _line(text: str) -> str:
    return quote_block(" ".join(text.split())).removeprefix("> ")


# ------------------------------------------------------------------------------------------------ another model's work


def describe_tool_results(results: Sequence[tuple[str, str]]) -> str:
    """(tool, result) of the calls of a model that could not finish, the last ones, the longest cut."""
    blocks = [f"`{tool}`:\n\n{quote_block(shorten(text, _LONGEST_RESULT))}" for tool, text in results[-_MOST_RESULTS:]]
    left_out = len(results) - len(blocks)
    note = [f"({pluralize(left_out, 'earlier result')} not shown.)"] if left_out else []
    return "\n\n".join(["This was found before the model stopped:", *note, *blocks])
