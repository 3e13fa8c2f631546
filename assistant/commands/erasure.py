"""What a person types to have something forgotten, and what they are told of it. Pure."""

from __future__ import annotations

import re
from dataclasses import replace

from assistant.core.erasure import ErasurePreview, ErasureRequest, ErasureResult
from assistant.core.errors import UsageError
from assistant.core.memories import MIN_ID_DIGITS
from assistant.core.text import lazy_regex, pluralize

_ENTRY = lazy_regex(r"(?:entry[ :#]?|e)(\d{1,18})", re.IGNORECASE)
_MESSAGE = lazy_regex(r"(?:message |#)?(\d{1,18})", re.IGNORECASE)
# As memories are shown, or whole. Fewer digits name a memory where that word stands before them.
_DIGITS = lazy_regex(r"[0-9]{8}")
_MEMORY = lazy_regex(r"(?=[0-9-]*[a-f])[0-9a-f]{8}(?:(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})?", re.IGNORECASE)
_NAMED_MEMORY = lazy_regex(rf"memory[ :#]+([0-9a-f][0-9a-f-]{{{MIN_ID_DIGITS - 1},35}})", re.IGNORECASE)
KEEP_BACKUPS = "--keep-backups"
_QUOTES = ('""', "''", "\u201c\u201d", "\u300c\u300d")
_RELATED = 10
_ASKED = lazy_regex(r"It cannot be taken back\. To forget it, the user types /forget ([0-9A-F]{6}) within 15 minutes\.")
_PLACE = lazy_regex(r"- ([^:(]+): (\d+)(?: \(|$)")


def parse_forget_target(argument: str, scope: str) -> ErasureRequest:
    """What is meant: `#17` or `17` a message, `entry 12` a journal entry, `1a2b3c4d` or `memory 1a2b` a memory, eight
    digits alone one or the other, anything else the words themselves; in quotes, words that look like one of these.
    `--keep-backups` before it keeps backups. Raises `UsageError` for nothing."""
    option, _, rest = argument.strip().partition(" ")
    if option == KEEP_BACKUPS:
        return replace(parse_forget_target(rest, scope), keep_backups=True)
    text = argument.strip()
    if not text:
        raise UsageError("Say what to forget: #17 (a message), entry 12, a memory's id, or the words themselves.")
    if any(len(text) > 2 and text[0] == pair[0] and text[-1] == pair[1] for pair in _QUOTES):
        return ErasureRequest(scope, text=text[1:-1].strip())
    if _DIGITS.fullmatch(text):
        return ErasureRequest(scope, digits=text)
    if found := _MESSAGE.fullmatch(text):
        return ErasureRequest(scope, messages=(int(found[1]),))
    if found := _ENTRY.fullmatch(text):
        return ErasureRequest(scope, entries=(int(found[1]),))
    if found := _NAMED_MEMORY.fullmatch(text):
        return ErasureRequest(scope, memories=(found[1].lower(),))
    if _MEMORY.fullmatch(text):
        return ErasureRequest(scope, memories=(text.lower(),))
    return ErasureRequest(scope, text=text)


def render_forget_preview(found: ErasurePreview, code: str = "", *, shown: bool = True) -> list[str]:
    """What would go, place by place; with a code, how to confirm it. Not `shown`: only how much of it, for an answer
    that is itself kept in the log."""
    earlier = [line for done in found.finished for line in _finished_lines(done)]
    if not found:
        if found.backups:
            return [
                *earlier,
                f"Only backups have it, and you keep them: {'; '.join(found.backups)}. Nothing was changed.",
            ]
        return [*earlier, f"Nothing {'more ' if earlier else ''}of that is kept anywhere. Nothing was changed."]
    lines = [*earlier, "Nothing was changed yet. This would be forgotten for good:"]
    for place in found.places:
        more = "; ..." if place.count > len(place.examples) else ""
        told = f" ({'; '.join(map(_one_line, place.examples))}{more})" if shown else ""
        lines.append(f"- {place.kind}: {place.count}{told}")
    lines += _backup_lines(found)
    if found.related:
        lines.append("Learned from these messages in other words, and staying unless named:")
        lines += [f"- {_one_line(one)}" for one in found.related[:_RELATED]]
    if code:
        lines.append(f"It cannot be taken back. To forget it, the user types /forget {code} within 15 minutes.")
    return lines


def _backup_lines(found: ErasurePreview) -> list[str]:
    names = "; ".join(found.backups)
    if not names:
        return []
    if found.request.keep_backups:
        return [f"Backups that have it stay, as you asked: {names}."]
    return [
        f"- backups of the home: {len(found.backups)} ({names})",
        "Each of these backups is removed whole, and with it the state of that day. First one new backup is made.",
    ]


def confirmation_code_in(preview: str) -> str:
    """The code that the lines of `found_lines` ask for; "" where they ask for none."""
    found = _ASKED.fullmatch(preview.rpartition("\n")[2])
    return found[1] if found else ""


def preview_counts(preview: str) -> dict[str, int]:
    """How much stands in which place, by the lines of `found_lines`."""
    return {found[1]: int(found[2]) for line in preview.split("\n") if (found := _PLACE.match(line))}


def render_forget_result(done: ErasureResult) -> list[str]:
    """What was done and what was not; none of the words."""
    if done.was_resumed:
        return _finished_lines(done)
    if not done.places:
        return ["Nothing of that is kept anywhere. Nothing was changed."]
    lines = ["Forgotten, as far as it is the house's to forget:" if done.leftovers else "Forgotten:"]
    lines += [f"- {place.kind}: {place.count}" for place in done.places]
    lines.append(f"Every byte of {pluralize(done.files_searched, 'file')} was searched for the words afterwards.")
    if done.leftovers:
        lines.append("Still there:")
        lines += [f"- {one.where} ({one.count}): {one.why}" for one in done.leftovers]
    else:
        lines.append("They are found nowhere any more.")
    return lines


def _finished_lines(done: ErasureResult) -> list[str]:
    """What became of a forgetting that had been cut off; none of the words, and no line that `counts_in` reads."""
    undone = [one for one in done.leftovers if one.kind == "not_done"]
    state = "was gone on with, and is not finished yet" if undone else "is finished now"
    gone = ", ".join(f"{place.kind} {place.count}" for place in done.places)
    lines = [
        f"An earlier forgetting that was cut off {state}{f'; what was left of it: {gone}' if gone else ''}. Every byte "
        f"of {pluralize(done.files_searched, 'file')} was searched for its words afterwards."
    ]
    return [*lines, *(f"Still there: {one.where} ({one.count}): {one.why}" for one in done.leftovers)]


def _one_line(text: str) -> str:
    return " ".join(text.split())
