"""`forget`: show what would be erased from every copy, ask, and erase it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import click

from assistant.commands.context import CommandContext
from assistant.commands.table import Confirmation, TableCommand, words_argument
from assistant.core.erasure import ErasureMatches, ErasurePreview, ErasureRequest, ErasureResult
from assistant.core.errors import UsageError
from assistant.core.memories import MIN_ID_DIGITS
from assistant.core.text import lazy_regex, pluralize

_ENTRY = lazy_regex(r"(?:entry[ :#]?|e)(\d{1,18})", re.IGNORECASE)
_MESSAGE = lazy_regex(r"(?:message |#)?(\d{1,18})", re.IGNORECASE)
# As memories are shown, or whole. Fewer digits name a memory where that word stands before them.
_DIGITS = lazy_regex(r"[0-9]{8}")
_MEMORY = lazy_regex(r"(?=[0-9-]*[a-f])[0-9a-f]{8}(?:(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})?", re.IGNORECASE)
_NAMED_MEMORY = lazy_regex(rf"memory[ :#]+([0-9a-f][0-9a-f-]{{{MIN_ID_DIGITS - 1},35}})", re.IGNORECASE)
_QUOTES = ('""', "''", "\u201c\u201d", "\u300c\u300d")
_RELATED = 10
# A code that confirms an erasure.
_CODE = lazy_regex(r"[0-9A-Fa-f]{6}")


def parse_forget_target(argument: str, scope: str) -> ErasureRequest:
    """What is meant: `#17` or `17` a message, `entry 12` a journal entry, `1a2b3c4d` or `memory 1a2b` a memory, eight
    digits alone one or the other, anything else the words themselves; in quotes, words that look like one of these.
    Raises `UsageError` for nothing."""
    text = argument.strip()
    if not text:
        raise UsageError(
            "Say what to forget: #17 (a message), entry 12, a memory's id, or the words. Nothing was changed."
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


def render_forget_preview(preview: ErasurePreview, code: str = "", *, shown: bool = True) -> list[str]:
    """What would go, place by place; with a code, how to confirm it. Not `shown`: only how much of it, for an answer
    that is itself kept in the log."""
    earlier = [line for finished in preview.finished for line in _finished_lines(finished)]
    if not preview:
        kept = f"Only backups have it, and you keep them: {'; '.join(preview.backups)}."
        nothing = f"Nothing {'more ' if earlier else ''}of that is kept anywhere."
        return [*earlier, f"{kept if preview.backups else nothing} Nothing was changed."]
    lines = [*earlier, "Nothing was changed yet. This would be forgotten for good:"]
    for place in preview.places:
        more = "; ..." if place.count > len(place.examples) else ""
        examples = f" ({'; '.join(map(_one_line, place.examples))}{more})" if shown else ""
        lines.append(f"- {place.kind}: {place.count}{examples}")
    lines += _backup_lines(preview)
    if preview.related:
        lines.append("Learned from these messages in other words, and staying unless named:")
        lines += [f"- {_one_line(text)}" for text in preview.related[:_RELATED]]
    if code:
        lines.append("")  # or a reader of Markdown takes it for a part of the last item
        lines.append(f"It cannot be undone. To forget it, the user types /forget {code} within 15 minutes.")
    return lines


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
        return ["Nothing of that is kept anywhere. Nothing was changed."]
    return [
        "Forgotten, except for what is listed below:" if result.leftovers else "Forgotten:",
        *(f"- {place.kind}: {place.count}" for place in result.places),
        f"Every byte of {pluralize(result.files_searched, 'file')} was searched for the words afterwards.",
        "Still there:" if result.leftovers else "They are found nowhere any more.",
        *(f"- {leftover.where} ({leftover.count}): {leftover.why}" for leftover in result.leftovers),
    ]


def _finished_lines(result: ErasureResult) -> list[str]:
    """What became of a forgetting that had been cut off; none of the words, place by place."""
    is_done = all(leftover.kind != "not_done" for leftover in result.leftovers)
    state = "is finished now" if is_done else "was continued, and is not finished yet"
    gone = ", ".join(f"{place.kind} {place.count}" for place in result.places)
    return [
        f"An earlier forgetting that was cut off {state}{f'; what was left of it: {gone}' if gone else ''}. Every byte "
        f"of {pluralize(result.files_searched, 'file')} was searched for its words afterwards.",
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


def _ask(report: ForgetReport) -> Confirmation | None:
    if not report.code:
        return None
    return Confirmation("It cannot be undone. Forget it?", ("forget", "--code", report.code))


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
@click.option("--yes", is_flag=True, help="Do it without asking.")
@click.option("--code", hidden=True, help="Confirm what was shown with this code.")
async def forget(context: CommandContext, text: str, keep_backups: bool, yes: bool, code: str | None) -> ForgetReport:
    """Forget something for good, in every copy.

    That is a memory by its id, a journal entry (e12), a message (#17), or TEXT. It shows what would be erased and asks.
    It cannot be undone. Backups that have it are removed, and one new backup is made.

    > assistant forget 1a2b3c4d
    > assistant forget "the code of the gate" --yes
    """
    erasure = context.services.erasure
    if context.surface == "chat" and _CODE.fullmatch(text):
        code = text
    if code is not None:
        return _report(await erasure.confirm(code, context.scope, context.now))
    if context.surface == "chat" and yes:
        raise UsageError("--yes is for a shell. Nothing was changed.")
    if context.surface == "shell" and _CODE.fullmatch(text):
        text = f"#{text}" if text.isdecimal() else f"memory {text}"
    request = replace(parse_forget_target(text, context.scope), keep_backups=keep_backups)
    preview, code = await erasure.request_code(request, context.now)
    if code and yes:
        return _report(await erasure.confirm(code, context.scope, context.now))
    lines = render_forget_preview(preview, code if context.surface == "chat" else "")
    return ForgetReport(False, _counts(preview.places), "\n".join(lines), code)


def _report(result: ErasureResult) -> ForgetReport:
    return ForgetReport(True, _counts(result.places), "\n".join(render_forget_result(result)), "")


def _counts(places: Sequence[ErasureMatches]) -> dict[str, int]:
    return {place.kind: place.count for place in places}
