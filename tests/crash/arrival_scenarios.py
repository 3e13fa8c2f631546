"""A scenario of what comes in and goes out besides words: files, a picture, edits and deletions of messages that wait
and of one that was answered, and a file sent with the answer."""

from __future__ import annotations

import base64
from datetime import timedelta
from pathlib import Path
from typing import Literal

from assistant.core.bridge_api import MessageChange
from assistant.core.errors import StoreError
from assistant.core.messages import Media, ToolCall
from assistant.core.model_api import ModelRequest
from tests.crash.comparison import DIFFER, look
from tests.crash.pictures import rows
from tests.crash.scenario import Scenario, Snapshot
from tests.crash.turn_scenarios import LIVED
from tests.crash.world import BRIDGE, AppRun, CrashEnvironment, live, message, tail
from tests.support.scripted import ScriptStep

_TRIES = 40
# A disk that is full for a while is asked again and again.
_PATIENT = {"ASSISTANT_BUDGET__RUNAWAY_CALLS": "100"}
_FILE = Media("file", "text/plain", "key.txt", data=base64.b64encode(b"Under the flowerpot.").decode())
_PICTURE = Media("image", "image/png", "pot.png", data=base64.b64encode(b"\x89PNG").decode())
_MESSAGES = (
    *LIVED.messages,
    message("Send me back what I sent you.", 3, media=(_FILE, _PICTURE)),
    message("Lunch is at five.", 4),
    message("The boiler hums.", 5),
)
_CHANGES: tuple[tuple[int, Literal["edit", "delete"], str], ...] = (
    (1, "edit", "The spare key lies under the red flowerpot."),
    (4, "edit", "Lunch is at six."),
    (4, "edit", "Lunch is at seven."),
    (5, "delete", ""),
    (2, "delete", ""),
)


def _answer(request: ModelRequest) -> ScriptStep:
    asked = next(m for m in reversed(request.messages) if m.role == "user")
    results = [m.content for m in tail(request) if m.role == "tool"]
    if "back what I sent" in asked.content and (not results or results[-1].startswith("Error")):
        return ToolCall(f"send{len(results)}", "send_file", {"path": next(one.path for one in asked.media if one.path)})
    return f"Noted: {asked.content.splitlines()[-1]}"


async def _changed(life: AppRun) -> None:
    """Before anybody answers. A network says it again until it was kept."""
    for number, (name, kind, words) in enumerate(_CHANGES):
        change = MessageChange(BRIDGE, f"m{name}", f"c{number}", kind, "owner", words, position=f"p{number}")
        for _ in range(_TRIES):
            try:
                await life.app.inbound.receive_change(change)
            except StoreError:
                life.clock.now += timedelta(seconds=30)
            else:
                break


def _look(home: Path) -> Snapshot:
    script = home / "script.db"
    looked = dict(look(home))
    for row in looked["view"]:
        # Numbers that a full disk refused are not given again; which message is meant, "changes" tells.
        row[3].pop("refs", None)
    # A network without files is told their names with the text, as often as it is sent that.
    looked["other bodies"] = sorted(set(looked["other bodies"]))
    changes = (
        "SELECT c.change_id, c.kind, i.external_id, c.content, c.state FROM changes c"
        " JOIN inbox i ON i.message_id = c.message_id ORDER BY c.id"
    )
    return {
        **looked,
        "changes": rows(script, changes),
        "files left": rows(script, "SELECT * FROM turn_files"),
        "files sent": rows(script, "SELECT media FROM outbox WHERE media <> '[]' ORDER BY id"),
        "position": rows(script, "SELECT bridge, position FROM bridge_states"),
    }


ARRIVALS = Scenario(
    "arrivals",
    "a file and a picture come in, messages are edited and deleted, a file goes out",
    lambda home: live(home, LIVED),
    lambda home: live(home, CrashEnvironment(_MESSAGES, _answer, settings=_PATIENT, meanwhile=_changed)),
    _look,
    DIFFER,
)
