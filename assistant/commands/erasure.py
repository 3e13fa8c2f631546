"""`forget`: show what would be erased from every copy, ask, and erase it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, tzinfo

import click

from assistant.commands.context import CommandContext
from assistant.commands.table import Confirmation, TableCommand, words_argument
from assistant.commands.usage_line import ShellOption
from assistant.core.dataclass import dataclass
from assistant.core.erasure import (
    MESSAGES_PLACE,
    ErasedMessage,
    ErasureLeftover,
    ErasureMatches,
    ErasurePreview,
    ErasureRequest,
    ErasureResult,
)
from assistant.core.erasure_phrases import SEARCHED_FORMS
from assistant.core.erasure_values import MIN_LETTERS
from assistant.core.errors import UsageError
from assistant.core.memories import MIN_ID_DIGITS
from assistant.core.text import lazy_regex, pluralize

_ENTRY = lazy_regex(r"(?:entry[ :#]?|e)(\d{1,18})", re.IGNORECASE)
_MESSAGE = lazy_regex(r"(?:message |#)?(\d{1,18})", re.IGNORECASE)
# A message, a memory as it is shown (eight; fewer name one where that word stands before them), or a number that was
# said: a telephone number, a code.
_DIGITS = lazy_regex(rf"[0-9]{{{MIN_LETTERS},18}}")
_MEMORY = lazy_regex(r"(?=[0-9-]*[a-f])[0-9a-f]{8}(?:(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})?", re.IGNORECASE)
_NAMED_MEMORY = lazy_regex(rf"memory[ :#]+([0-9a-f][0-9a-f-]{{{MIN_ID_DIGITS - 1},35}})", re.IGNORECASE)
_QUOTES = ('""', "''", "\u201c\u201d", "\u300c\u300d")
_RELATED = 10
# Places where the words of the machinery stand around what was said: how often is enough.
_COPIES = frozenset(
    [
        *("what the model sees", "what is stored to undo a compaction", "notes for the model", "tool calls"),
        *("approvals", "delegated tasks", "messages sent to you", "messages as they arrived", "error messages"),
    ]
)
# A code that confirms an erasure.
_CODE = lazy_regex(r"[0-9A-Fa-f]{6}")


def parse_forget_target(argument: str, scope: str) -> ErasureRequest:
    """What is meant: `#17` or `17` a message, `e12` a journal entry, `1a2b3c4d` or `memory 1a2b` a memory, four digits
    or more alone one of these or else words, anything else the words themselves; in quotes, words that look like one.
    Raises `UsageError` for nothing."""
    text = argument.strip()
    if not text:
        raise UsageError(
            "Say what to forget: #17 (a message), e12 (a journal entry), a memory's id, or the words. "
            "Nothing was changed."
        )
    if any(len(text) > 2 and text[0] == pair[0] and text[-1] == pair[1] for pair in _QUOTES):
        return ErasureRequest(scope, text=text[1:-1].strip())
    if _DIGITS.fullmatch(text):
        return ErasureRequest(scope, digits=text)
    if match := _MESSAGE.fullmatch(text):
        return ErasureRequest(scope, messages=(int(match[1]),))
    if match := _ENTRY.fullmatch(text):
        return ErasureRequest(scope, entries=(int(match[1]),))
    if match := _NAMED_MEMORY.fullmatch(text):
        return ErasureRequest(scope, memories=(match[1].lower(),))
    if _MEMORY.fullmatch(text):
        return ErasureRequest(scope, memories=(text.lower(),))
    return ErasureRequest(scope, text=text)


def render_forget_preview(
    preview: ErasurePreview, code: str = "", *, shown: bool = True, zone: tzinfo = UTC
) -> list[str]:
    """What would go, place by place; with a code, how to confirm it. Not `shown`: only how much of it, for an answer
    that is itself kept in the log. Messages have their day in `zone` and their first words, and their number where it
    was asked for."""
    earlier = [line for finished in preview.finished for line in _finished_lines(finished)]
    if not preview:
        return [*earlier, *_nothing_lines(preview, more=bool(earlier))]
    lines = [*earlier, "Nothing was changed yet. This would be forgotten for good:"]
    lines += _place_lines(preview, zone, shown=shown)
    if preview.values and shown:
        lines.append("")  # or a reader of Markdown takes it for a part of the last item
        lines.append(f"Values that nothing else said, and that are searched for: {_listed(preview.values)}")
    lines += _backup_lines(preview)
    if preview.related:
        lines.append(
            "Learned from these messages and others, part of the same memory, or answers that have a word of it; it "
            "stays unless you forget it:"
        )
        lines += [f"- {_one_line(text)}" for text in preview.related[:_RELATED]]
    if preview.came_from:
        lines += _origin_lines(preview, zone, shown=shown)
    if code:
        lines.append("")  # or a reader of Markdown takes it for a part of the last item
        who = "type" if shown else "the user types"
        lines.append(f"It cannot be undone. To forget it, {who} /forget {code} within 15 minutes.")
        if preview.came_from and not preview.request.keep_messages:
            lines.append(f"To keep what it came from: /forget {code} --keep-message")
    return lines


def _nothing_lines(preview: ErasurePreview, *, more: bool) -> list[str]:
    """Why nothing would go. `more`: than what was forgotten before."""
    kept = f"Only backups have it, and you keep them: {'; '.join(preview.backups)}."
    nothing = f"Nothing {'more ' if more else ''}of that is kept anywhere."
    if preview.leftovers:
        nothing = "There is nothing to forget. The words are in places that forgetting leaves as they are:"
    return [
        f"{kept if preview.backups else nothing}{'' if preview.leftovers else ' Nothing was changed.'}",
        *_leftover_lines(preview.leftovers),
    ]


def _place_lines(preview: ErasurePreview, zone: tzinfo, *, shown: bool) -> list[str]:
    """How much would go from each place, with examples; copies together in the last line."""
    lines = []
    messages = tuple(_describe_message(message, preview.request, zone) for message in preview.first_messages)
    copies = [place for place in preview.places if place.kind in _COPIES]
    for place in preview.places:
        if place in copies:
            continue
        known = messages if place.kind == MESSAGES_PLACE else _examples(place)
        more = "; ..." if place.count > len(known) else ""
        examples = f" ({'; '.join(known)}{more})" if shown and known else ""
        lines.append(f"- {place.kind}: {place.count}{examples}")
    if copies:
        lines.append(f"- copies, and what was made of it: {', '.join(f'{p.kind} {p.count}' for p in copies)}")
    return lines


def _origin_lines(preview: ErasurePreview, zone: tzinfo, *, shown: bool) -> list[str]:
    """The messages that it came from, and what becomes of them."""
    keeps = preview.request.keep_messages
    it = "It" if len(preview.came_from) == 1 else "These"
    fate = "stays, and nothing is learned of it again" if keeps else f"{it.lower()} would be forgotten, too"
    count = pluralize(len(preview.came_from), "message")
    head = f"It came from {count}; {fate}{':' if shown else '.'}"
    return [head, *(f"- {_describe_message(message, preview.request, zone)}" for message in preview.came_from if shown)]


def _examples(place: ErasureMatches) -> tuple[str, ...]:
    """Those in words; what a row keeps as JSON says the same again."""
    return tuple(_one_line(text) for text in place.examples if not text.startswith(("{", "[")))


def _describe_message(message: ErasedMessage, request: ErasureRequest, zone: tzinfo) -> str:
    number = f"#{message.id}, " if message.id in request.messages else ""
    words = f": {_one_line(message.excerpt)}" if message.excerpt else ""
    return f"{number}{message.at.astimezone(zone):%Y-%m-%d}{words}"


def _listed(values: Sequence[str]) -> str:
    more = f" and {len(values) - _RELATED} more" if len(values) > _RELATED else ""
    return f"{'; '.join(map(_one_line, values[:_RELATED]))}{more}"


def _backup_lines(preview: ErasurePreview) -> list[str]:
    names = "; ".join(preview.backups)
    if not names:
        return []
    if preview.request.keep_backups:
        return [f"Backups that have it stay, as you asked: {names}."]
    return [
        f"- backups of the data folder: {len(preview.backups)} ({names})",
        "Each of these backups is removed whole, and with it the state of that day. First one new backup is made.",
    ]


def render_forget_result(result: ErasureResult) -> list[str]:
    """What was done and what was not; none of the words."""
    if result.was_resumed:
        return _finished_lines(result)
    if not result.places:
        return render_forget_preview(ErasurePreview(ErasureRequest(""), (), (), leftovers=result.leftovers))
    return [
        "Forgotten, except for what is listed below:" if result.leftovers else "Forgotten:",
        *(f"- {place.kind}: {place.count}" for place in result.places),
        _search_line(result),
        "Still there:" if result.leftovers else "They are found nowhere any more.",
        *_leftover_lines(result.leftovers),
    ]


def _leftover_lines(leftovers: Sequence[ErasureLeftover]) -> list[str]:
    return [f"- {leftover.where} ({leftover.count}): {leftover.why}" for leftover in leftovers]


def _search_line(result: ErasureResult) -> str:
    """What was searched for, and where; none of the words."""
    kinds = Counter(result.value_kinds)
    listed = ", ".join(pluralize(number, kind) for kind, number in kinds.items())
    values = f" and for what else they carried ({listed})" if kinds else ""
    return (
        f"Every byte of {pluralize(result.files_searched, 'file')}, those in backups included, was searched for the "
        f"words{values}: {SEARCHED_FORMS}."
    )


def _finished_lines(result: ErasureResult) -> list[str]:
    """What became of a forgetting that had been cut off; none of the words, place by place."""
    is_done = all(leftover.kind != "not_done" for leftover in result.leftovers)
    state = "is finished now" if is_done else "was continued, and is not finished yet"
    gone = ", ".join(f"{place.kind} {place.count}" for place in result.places)
    return [
        f"An earlier forgetting that was cut off {state}{f'; what was left of it: {gone}' if gone else ''}. "
        f"{_search_line(result)}",
        *(f"Still there: {leftover.where} ({leftover.count}): {leftover.why}" for leftover in result.leftovers),
    ]


def _one_line(text: str) -> str:
    return " ".join(text.split())


# ---------------------------------------------------------------------------------------------------------- the command


@dataclass(frozen=True, slots=True)
class ForgetReport:
    """What was erased, or would be."""

    forgotten: bool
    places: dict[str, int]  # how often it was in each place
    report: str  # Markdown
    code: str  # confirms what is shown here; "" where there is nothing to confirm
    messages: int = 0  # how many messages a memory or a journal entry came from


def _ask(report: ForgetReport) -> Confirmation | None:
    if not report.code:
        return None
    argv = ("forget", "--code", report.code)
    if not report.messages:
        return Confirmation("It cannot be undone. Forget it?", argv)
    them = "message that it" if report.messages == 1 else f"{report.messages} messages that it"
    question = f"It cannot be undone. Forget the {them} came from, too?"
    return Confirmation(question, argv, (*argv, "--keep-message"))


@click.command(
    cls=TableCommand,
    render=lambda report, _: report.report,
    confirm=_ask,
    exit_code=lambda report: 1 if report.code else 0,
    max_seconds=3600.0,
    context_settings={"ignore_unknown_options": True},
)
@words_argument("text", required=False, metavar="ID|TEXT", keep_quotes=True)
@click.option("--keep-backups", is_flag=True, help="List the backups that have it, and keep them.")
@click.option(
    "--keep-message", is_flag=True, help="Of a memory: keep the message it came from, and learn nothing of it."
)
@click.option("--dry-run", is_flag=True, help="Show what would be erased, and erase nothing.")
@click.option("--yes", cls=ShellOption, is_flag=True, help="Do it without asking.")
@click.option("--code", hidden=True, help="Confirm what was shown with this code.")
async def forget(
    context: CommandContext,
    text: str,
    keep_backups: bool,
    keep_message: bool,
    dry_run: bool,
    yes: bool,
    code: str | None,
) -> ForgetReport:
    """Forget something for good, in every copy.

    That is a memory by its id, a journal entry (e12), a message (#17), or TEXT. It shows what would be erased and asks.
    With a memory goes the message that it came from, and with a message all that was made of it. It cannot be undone.
    Backups that have it are removed, and one new backup is made.

    > assistant forget 1a2b3c4d
    > assistant forget "the code of the gate" --yes
    """
    erasure = context.services.erasure
    if context.surface == "chat" and _CODE.fullmatch(text):
        code = text
    if code is not None:
        return _report(await erasure.confirm(code, context.scope, context.now, keep_messages=keep_message))
    if dry_run and yes:
        raise UsageError("Give one of --dry-run and --yes. Nothing was changed.")
    if context.surface == "chat" and yes:
        raise UsageError("--yes is for a shell. Nothing was changed.")
    if context.surface == "shell" and _CODE.fullmatch(text):
        text = f"#{text}" if text.isdecimal() else f"memory {text}"
    request = parse_forget_target(text, context.scope)
    if keep_message and (request.text or request.messages):
        raise UsageError("--keep-message is for a memory or a journal entry. Nothing was changed.")
    request = replace(request, keep_backups=keep_backups, keep_messages=keep_message)
    preview, code = await erasure.request_code(request, context.now)
    if dry_run:
        code = ""
    if code and yes:
        return _report(await erasure.confirm(code, context.scope, context.now))
    lines = render_forget_preview(preview, code if context.surface == "chat" else "", zone=context.zone)
    asked = 0 if keep_message else len(preview.came_from)
    return ForgetReport(False, _counts(preview.places), "\n".join(lines), code, asked)


def _report(result: ErasureResult) -> ForgetReport:
    return ForgetReport(True, _counts(result.places), "\n".join(render_forget_result(result)), "")


def _counts(places: Sequence[ErasureMatches]) -> dict[str, int]:
    return {place.kind: place.count for place in places}
