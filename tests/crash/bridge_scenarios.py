"""A scenario of a bridge: messages come in over a network and their answers go out, a long one in parts. Telegram has
no key under which a message that is sent again would be known, so that nothing may be."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from assistant.bridges.telegram.bridge import TelegramBridge
from assistant.core.model_api import ModelRequest
from assistant.gateway.inbound import COMMAND_INTERRUPTED
from assistant.gateway.parts import split_text
from assistant.wire.stores import Stores
from tests.crash import pictures
from tests.crash.scenario import AllowedDifference, Faults, Scenario, Snapshot
from tests.crash.telegram_world import BRIDGE, live_on_telegram
from tests.crash.witness import EffectLog
from tests.crash.world import BEGUN, settings_of

_EARLIER = ("The spare key of the cabin lies under the blue flowerpot.",)
_MESSAGES = (
    *_EARLIER,
    "Where is the spare key?",
    "/todo add call the plumber",
    "And tell me the way there, at length.",
)
# What the owner is told of a command whose words the disk did not take.
_REFUSED = "then try again"
_LONG = "\n\n".join(f"Stage {number} of the road. " + "It goes on and on. " * 40 for number in range(8))


def _answer(request: ModelRequest) -> str:
    asked = next(message.content for message in reversed(request.messages) if message.role == "user")
    return _LONG if "at length" in asked else f"Noted: {asked.splitlines()[-1]}"


def _look(home: Path) -> Snapshot:
    stores = Stores(settings_of(home), BEGUN)
    try:
        verified = [f"{one.kind} {one.where}: {one.text}" for one in stores.verifier.verify().problems]
        position = stores.bridge_states.load_position(BRIDGE)
        todos = [todo.text for todo in stores.todos.list_todos("owner")]
    finally:
        stores.close()
    witness = EffectLog(home)
    shown = Counter(squeezed(seen["text"]) for seen in witness.recorded("shown"))
    kept = pictures.rows(home / "script.db", "SELECT kind, body, state, key FROM outbox ORDER BY kind, body")
    told = [body for _, body, _, key in kept if key.startswith(pictures.DOUBT)]
    outbox = [row[:3] for row in kept if not row[3].startswith(pictures.DOUBT)]
    said = pictures.rows(home / "script.db", "SELECT external_id, state FROM inbox ORDER BY id")
    return {
        "verify": verified,
        "position": position,
        "command": {
            "todos": todos,
            "cut off": sum(body == COMMAND_INTERRUPTED for _, body, _ in outbox),
            "refused": sum(_REFUSED in body for _, body, _ in outbox),
        },
        "inbox": said,
        "log": [[row[2], row[3]] for rows in pictures.logged(home).values() for row in rows],
        "deliveries": [
            [kind, body[:40] * (kind == "reply"), state, [shown[squeezed(part)] for part in _parts(body)]]
            for kind, body, state in outbox
        ],
        "model calls": len(witness.recorded("asked")),
        "uncertain and not told of": sum(state == "ambiguous" for *_, state in outbox) - len(told),
        "strangers": sorted(shown - Counter(squeezed(part) for _, body, *_ in kept for part in _parts(body))),
    }


def _parts(body: str) -> tuple[str, ...]:
    return split_text(body, TelegramBridge.capabilities)


def squeezed(text: str) -> str:
    return "".join(letter for letter in text if letter.isalnum())


def _once_or_uncertain(before: list[Any], after: list[Any], faults: Faults) -> bool:
    """The same deliveries; each part was shown once, or it is told that this is not known, at most one a fault."""
    uncertain = [row for row in after if row[2] == "ambiguous"]
    same = [[*row[:2], len(row[3])] for row in before] == [[*row[:2], len(row[3])] for row in after]
    whole = all(row[2] == "sent" and set(row[3]) == {1} for row in after if row not in uncertain)
    return same and whole and len(uncertain) <= faults.all and all(max(row[3]) <= 1 for row in uncertain)


def _run_or_told(before: dict[str, Any], after: dict[str, Any], faults: Faults) -> bool:
    """A command that was cut off is not run again, whether it took effect or not, and says so; one that the disk
    refused took none, and says that."""
    if after["refused"]:
        return bool(faults.errors) and (after["cut off"], after["refused"], after["todos"]) == (0, 1, [])
    return after["cut off"] == 1 and after["todos"] in ([], before["todos"])


def _more_calls(before: int, after: int, faults: Faults) -> bool:
    return before <= after <= before + faults.all


SHOWN_ONCE = AllowedDifference(
    "deliveries", "nothing is shown twice; what is uncertain is told as that", _once_or_uncertain
)
MORE_CALLS = AllowedDifference(
    "model calls", "an answer that was not logged when the fault came is asked for again", _more_calls
)
_COMMAND = AllowedDifference("command", "a command may have an effect that cannot be recognised", _run_or_told)

TELEGRAM = Scenario(
    "telegram",
    "messages and a command come in over Telegram, their answers go out, a long one in parts",
    lambda home: live_on_telegram(home, _EARLIER, _answer),
    lambda home: live_on_telegram(home, _MESSAGES, _answer),
    _look,
    (SHOWN_ONCE, _COMMAND, MORE_CALLS),
)
