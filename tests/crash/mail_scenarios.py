"""A scenario of mail: the owner says yes to a mail, and it goes out once, or it is said that nobody knows."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import structlog

from assistant.core.messages import ToolCall
from assistant.core.model_api import ModelRequest
from assistant.wire.stores import Stores
from tests.crash.mail_world import RecordedFolders, account_settings, mail_servers
from tests.crash.pictures import rows
from tests.crash.scenario import AllowedDifference, Faults, Scenario, Snapshot
from tests.crash.turn_scenarios import LIVED
from tests.crash.witness import EffectLog
from tests.crash.world import BEGUN, CrashEnvironment, live, live_once, message, settings_of, tail
from tests.support.scripted import ScriptStep

_MAIL = {"to": ["bob@example.org"], "subject": "Boat", "text": "The boat is ready."}


def _writes(request: ModelRequest) -> ScriptStep:
    asked = next(m.content for m in reversed(request.messages) if m.role == "user").lower()
    if "write to bob" not in asked:
        return f"Noted, message {sum(m.role == 'user' for m in request.messages)}."
    if not any(m.role == "tool" for m in tail(request)):
        return ToolCall("mail", "use_tool", {"name": "send_mail", "arguments": _MAIL})
    return "I wrote it."


# Nothing is asked of the servers before the yes.
_ASKED = CrashEnvironment(
    (*LIVED.messages, message("Write to Bob that the boat is ready", 3)), _writes, settings=account_settings(1, 1)
)
_ANSWERED = replace(_ASKED, messages=(*_ASKED.messages, message("yes", 4)))


def _work(home: Path) -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(30))
    asyncio.run(_with_servers(home))


async def _with_servers(home: Path) -> None:
    async with mail_servers(EffectLog(home)) as settings:
        await live_once(home, replace(_ANSWERED, settings=settings))


def _look(home: Path) -> Snapshot:
    stores = Stores(settings_of(home), BEGUN)
    try:
        verified = [f"{one.kind} {one.where}: {one.text}" for one in stores.verifier.verify().problems]
    finally:
        stores.close()
    witness = EffectLog(home)
    folders = RecordedFolders(witness)
    (state,) = rows(home / "script.db", "SELECT state FROM approvals")
    sent = Counter(seen["id"] for seen in witness.recorded("mailed"))
    answers = rows(home / "script.db", "SELECT body FROM outbox ORDER BY id")
    return {
        "verify": verified,
        "mail": {
            "state": state[0],
            "sent": sorted(sent.values()),
            "with the sent": len(folders.numbered("Sent")),
            "in the drafts": len(folders.numbered("Drafts")),
            "told": any("ada@example.org" in body and "Not done yet" not in body for (body,) in answers),
        },
    }


def _sent_once_or_said_to_be_unknown(before: Any, after: Any, faults: Faults) -> bool:
    """What was sent is known, or said to be unknown; then it is in the drafts, and was sent once at most. What failed
    was not sent."""
    if not after["told"]:
        return False
    match after["state"]:
        case "done":
            return bool(after["sent"] == [1] and after["with the sent"] + after["in the drafts"] == 1)
        case "uncertain":
            return bool(after["sent"] in ([], [1]) and after["in the drafts"] == 1)
        case "failed":
            return bool(after["sent"] == [] and faults.errors)
    return False


MAILED = Scenario(
    "mailed",
    "the owner says yes to a mail",
    lambda home: live(home, _ASKED),
    _work,
    _look,
    (AllowedDifference("mail", "a mail that was interrupted is not sent again", _sent_once_or_said_to_be_unknown),),
)
