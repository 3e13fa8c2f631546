"""What is compared after a crash of the app, and what may differ from the unbroken run, and why."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import chain, permutations
from pathlib import Path
from typing import Any

from assistant.wire.stores import Stores
from tests.crash import pictures
from tests.crash.scenario import AllowedDifference, Faults, Snapshot
from tests.crash.witness import EffectLog
from tests.crash.world import BEGUN, RANG, settings_of

_NUMBERS = re.compile(r"\d[\d,]*")


def look(home: Path) -> Snapshot:
    """Everything a home holds and everything the world saw."""
    with pictures.each_opened_once():
        return _look(home)


def _look(home: Path) -> Snapshot:
    witness = EffectLog(home)
    stores = Stores(settings_of(home), BEGUN)
    try:
        report = stores.verifier.verify()
        read_late = [*stores.conversation.list_unread_generations(), *stores.conversation.list_sessions()]
    finally:
        stores.close()
    sent = Counter(seen["key"] for seen in witness.recorded("sent"))
    sent_bodies = {(seen["key"], seen["body"]) for seen in witness.recorded("sent")}
    log, stored = pictures.logged(home), pictures.stored(home)
    interrupted = sum(_as_rung(row, 3) for rows in log.values() for row in rows)
    for row in stored["view"]:
        _as_rung(row, 2)
        row[4:6] = [] if row[2] == RANG else row[4:6]
    bodies = [[row[0], row[5]] for row in stored["outbox"]]
    outbox = [_as_numbered_at_first([*row, sent[row[0]]]) for row in stored.pop("outbox")]
    told = [row for row in outbox if row[0].startswith(pictures.DOUBT)]
    deliveries = [row for row in outbox if row not in told]
    doubtful = [row for row in deliveries if row[-2] == "ambiguous"]
    picture: dict[str, Any] = {
        **stored,
        **pictures.remembered(home),
        "log": log,
        "said": sorted([r[2], r[3]] for rows in log.values() for r in rows if r[3] and not r[3].startswith("Error: ")),
        "files": pictures.files(home),
        "notes of days": pictures.noted(home),
        "verify": [f"{problem.kind} {problem.where}: {problem.text}" for problem in report.problems],
        "waiting to be read": [[info.key, info.unextracted] for info in read_late if info.unextracted],
        "model calls": len(witness.recorded("asked")),
        "acknowledged": sorted({seen["id"] for seen in witness.recorded("acknowledged")}),
        "deliveries": deliveries,
        "uncertain and not told of": len(doubtful) - len(told),
        # Each once: how often a key was sent stands with its delivery.
        "other bodies": [key for key, body in sorted(sent_bodies) if [key, body] not in bodies],
        "bell": {"rang": len(witness.recorded("rang")), "interrupted": interrupted},
        "told": [seen["text"] for seen in witness.recorded("told")],
    }
    return pictures.without_turn_ids(picture, home)


_NUMBERED_NOTICE = re.compile(r"(message_shortened:)\d+")
_SIZED_NOTICES = ("message_shortened:", "context_stays_full:")
_TOKENS = re.compile(r"\d[\d,]*")


def _as_numbered_at_first(row: list[Any]) -> list[Any]:
    """The row of a delivery as if no refused write had used up a message's number: that is in the key of a notice, and
    a longer number in the context makes the figures of its size differ by a token or two."""
    if row[4] == "notice" and row[0].startswith(_SIZED_NOTICES):
        row[0] = _NUMBERED_NOTICE.sub(r"\1N", row[0])
        row[5] = _TOKENS.sub("N", row[5])
    return row


def _as_rung(row: list[Any], content: int) -> bool:
    """Whether the row is the result of the bell interrupted; it then reads as if it had not been."""
    interrupted = str(row[content]).startswith("[interrupted] ring_bell")
    if interrupted:
        row[content] = RANG
    return interrupted


def _asked_again(before: int, after: int, faults: Faults, turns: int = 1) -> bool:
    """At most one call more for each turn that a fault may have cut off."""
    return before <= after <= before + turns * faults.all


def _sent_again(before: list[Any], after: list[Any], faults: Faults) -> bool:
    """The same deliveries, each sent, and all together at most once more a fault."""
    before, after = sorted(before), _told_apart(before, after, faults)
    again = sum(row[-1] for row in after) - sum(row[-1] for row in before)
    return [row[:-1] for row in before] == [row[:-1] for row in after] and 0 <= again <= faults.all and _all_sent(after)


def _told_apart(before: list[Any], after: list[Any], faults: Faults) -> list[Any]:
    """`after` sorted, with a row for each notice where several that the disk had refused came as one message: it has
    the key of one of them, goes to the place of all, and consists of their texts, each whole. Sending it again is one
    sending."""
    if not faults.errors:
        return sorted(after)
    there = {row[0] for row in after}
    rows = []
    for row in after:
        missing = [part for part in before if part[0] not in there and part[1:5] == row[1:5] and part[4] == "notice"]
        own = [part for part in before if part[0] == row[0]]
        parts = [part for part in own + missing if _figureless(part) in _figureless(row)]
        orders = chain.from_iterable(permutations(parts, count) for count in range(2, len(parts) + 1))
        together = next((found for found in orders if _is_all_of(row, found)), None)
        for part in together or [row]:
            rows.append([*part[:6], row[6], row[7] if part[0] == row[0] else min(row[7], 1)])
    return sorted(rows)


def _is_all_of(row: list[Any], parts: Sequence[list[Any]]) -> bool:
    """Whether the row's text is that of these one after another, its own among them; without figures where it has
    none (`_as_numbered_at_first`)."""
    text = "\n\n".join(part[5] for part in parts)
    whole = text == row[5] or (row[0].startswith(_SIZED_NOTICES) and _TOKENS.sub("N", text) == row[5])
    return whole and any(part[0] == row[0] for part in parts)


def _figureless(row: list[Any]) -> str:
    return _TOKENS.sub("N", row[5])


def _each_notice(deliveries: list[Any]) -> list[Any]:
    """A row for each notice, also where several came as one message, without the key, which is that of one of them, and
    without numbers: after an error there may be other messages in the context."""
    rows = []
    for row in deliveries:
        if row[4] != "notice":
            rows.append(row)
            continue
        for number, text in enumerate(row[5].split("\n\n")):
            rows.append(["", *row[1:5], _NUMBERS.sub("N", text), row[6], min(row[7], 1) if number else row[7]])
    return sorted(rows)


def _told_of_the_context(before: list[Any], after: list[Any], faults: Faults) -> bool:
    """As `_sent_again`, but notices may come together or apart, and fewer compactions may have been made after errors,
    and then the third is not told; "length not told" holds that it is told where it was made."""
    before, after = _each_notice(before), _each_notice(after)
    told = {row[5] for row in after}
    wanted = [row for row in before if row[5] in told or row[5] != pictures.LONG]
    return _sent_again(wanted, after, faults)


def _perhaps_sent(before: list[Any], after: list[Any], faults: Faults) -> bool:
    """The same deliveries, none sent twice; at most one a fault is uncertain, and is shown as that."""
    before, after = sorted(before), _told_apart(before, after, faults)
    uncertain = [row for row in after if row[-2] == "ambiguous"]
    certain = [row for row in after if row not in uncertain]
    same = [row[:-2] for row in before] == [row[:-2] for row in after]
    return same and len(uncertain) <= faults.all and all(row[-2:] == ["sent", 1] for row in certain)


def _all_sent(deliveries: list[Any]) -> bool:
    return all(row[-2] == "sent" and row[-1] >= 1 for row in deliveries)


def _paid(before: list[Any], after: list[Any], faults: Faults, turns: int = 1) -> bool:
    """Calls counted: at most one more for each turn that a fault may have cut off, and at most as many unsettled."""
    calls = {state: sum(row[3] for row in after if row[2] == state) for state in ("reserved", "settled")}
    made = sum(row[3] for row in before)
    most = turns * faults.all
    return bool(calls["reserved"] <= most and made <= sum(calls.values()) <= made + most)


def _bell(before: dict[str, int], after: dict[str, int], faults: Faults) -> bool:
    """Rung once; or not known to have been, and said so."""
    return after["rang"] <= 1 and after["interrupted"] <= faults.all and after["rang"] + after["interrupted"] >= 1


def _set_aside(before: list[Any], after: list[Any], faults: Faults) -> bool:
    extra = [name for name, _ in after if [name, "0600"] not in before and name not in dict(before)]
    gone = [name for name, mode in before if [name, mode] not in after]
    # An index is made by the first search, or upkeep, that the disk does not refuse.
    kept = not gone or (len(gone) == 1 and gone[0] in ("files.db", "search.db") and bool(faults.errors))
    return kept and all(".jsonl.torn-" in name for name in extra)


def _refused_search(before: list[Any], after: list[Any], faults: Faults) -> bool:
    """All but the result of one search, which changes nothing: its error stands in the log instead."""
    missing = [row for row in before if row not in after]
    rest = [row for row in before if row not in missing]
    return bool(faults.errors) and rest == after and len(missing) == 1 and " found, best first." in str(missing[0][1])


def _refused_tool(before: Any, after: Any, faults: Faults) -> bool:
    """A tool that the disk refused is an error to the model, which tries again. "said" holds that all else is equal."""
    refused = ("was not written", "cannot be opened", "cannot be read")
    return bool(faults.errors) and "Error: " in str(after) and any(words in str(after) for words in refused)


def _one_more_call(before: list[Any], after: list[Any], faults: Faults) -> bool:
    """What follows from a refused tool: a result and a new call more."""
    return bool(faults.errors) and len(after) >= len(before)


def _after_a_fault(before: Any, after: Any, faults: Faults) -> bool:
    """Anything; "coverage" and "running totals" hold what must be so all the same."""
    return bool(faults.all)


def _slept_again(before: list[Any], after: list[Any], faults: Faults) -> bool:
    """What a fault cut off is noted as that, once a fault, and none as under way. How many sleeps it took to read the
    same may differ, and none is left to end where each of two was cut off, the last of them after it had read, or where
    none did anything but read; "waiting to be read", "journal" and "notes of days" hold that all of it was."""
    others = [state for _, state in after if state != "done"]
    ended = len(others) < len(after) or len(others) == faults.all > 1 or {trigger for trigger, _ in after} == {"phase"}
    return bool(before) and ended and len(others) <= faults.all and "running" not in others


def _read_on(before: list[Any], after: list[Any], faults: Faults) -> bool:
    """What is still in view is read in the same sleep or a later one; "waiting to be read" holds that no more is."""
    return bool(faults.all) and [row[:-1] for row in before] == [row[:-1] for row in after]


def _clear_lines(before: list[str], after: list[str], faults: Faults) -> bool:
    return bool(faults.errors) and all(is_clear(text) for text in after if text not in before)


def is_clear(text: str) -> bool:
    """One or two lines that a person can read, which say what was kept or not changed."""
    return len(text.splitlines()) <= 2 and len(text) <= 400 and any(word in text for word in ("kept", "Nothing was"))


_TRIED_AGAIN = "a tool that the disk refused says so to the model, which calls it again"

DIFFER = (
    AllowedDifference("log", _TRIED_AGAIN, _refused_tool),
    AllowedDifference("view", _TRIED_AGAIN, _refused_tool),
    AllowedDifference("said", "a search that the disk refused says so to the model, which goes on", _refused_search),
    AllowedDifference("index", _TRIED_AGAIN, _one_more_call),
    AllowedDifference("sessions", _TRIED_AGAIN, _one_more_call),
    AllowedDifference("tool runs", _TRIED_AGAIN, _one_more_call),
    AllowedDifference(
        "model calls", "an answer that was not logged when the fault came is asked for again", _asked_again
    ),
    AllowedDifference("spending", "a call whose end the fault hid stays reserved, and is made again", _paid),
    AllowedDifference(
        "deliveries", "a network that shows a key once is sent again what perhaps did not arrive", _sent_again
    ),
    AllowedDifference(
        "bell", "a tool with an effect that cannot be recognised is not run again; its result says so", _bell
    ),
    AllowedDifference("files", "what was torn off the end of a log is kept in a file beside it", _set_aside),
    AllowedDifference("told", "what the disk refused is told, in one clear line", _clear_lines),
    AllowedDifference("sleep cycles", "what a fault cut off is noted as interrupted, and done again", _slept_again),
)


def but(*others: AllowedDifference) -> tuple[AllowedDifference, ...]:
    """`DIFFER` with other rules for some parts."""
    parts = {other.part for other in others}
    return (*(rule for rule in DIFFER if rule.part not in parts), *others)


SIDE_BY_SIDE = but(
    AllowedDifference("model calls", "each of three turns that ran may be cut off", partial(_asked_again, turns=3)),
    AllowedDifference("spending", "a call of each may stay reserved, and is made again", partial(_paid, turns=3)),
)
_SENT_ONCE = "a network that shows whatever it is sent is sent nothing twice; what is uncertain is shown as that"
SENT_ONCE = but(AllowedDifference("deliveries", _SENT_ONCE, _perhaps_sent))

_TWO_STEPS = "shortening and dropping are two commits: after a fault between them, one may do where two did, or later"
_LATER = "what the disk kept from the journal is written at the next start or sleep"
CUT_ELSEWHERE = but(
    AllowedDifference("journal", _LATER, _after_a_fault),
    AllowedDifference(
        "deliveries", "what is told of the context tells of another one after errors", _told_of_the_context
    ),
    AllowedDifference("read by the journal", "what is still in view may be read sooner or later", _read_on),
    *(AllowedDifference(part, _TWO_STEPS, _after_a_fault) for part in ("view", "checkpoints", "sessions")),
)
