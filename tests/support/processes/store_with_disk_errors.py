"""A process that lives through disk errors: says everything it was told to say, again after each refusal.

Run as a program by the tests of faults, under a limit or a tracer that makes writes fail. Prints one JSON object: the
error lines it met, the replies it gave."""

from __future__ import annotations

import json
import resource
import signal
import sys
from pathlib import Path

from assistant.core.errors import StoreError
from assistant.core.messages import Message
from assistant.core.records import Turn
from tests.support.store_home import NOW, StoreHome, reply_item, tool_round

_TRIES = 40


def main(path: Path, turns: int, limit: int) -> None:
    home = StoreHome(path).open()
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    errors: list[str] = []
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    for number in range(turns):
        while not _said(home, number, errors):
            if limit and len(errors) >= 3:
                resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            if len(errors) > _TRIES:
                raise SystemExit(f"gave up: {errors[-1]}")
    home.close()
    print(json.dumps({"errors": errors, "logged": [record.content for record in home.log.scan("main")]}))


def _said(home: StoreHome, number: int, errors: list[str]) -> bool:
    """One turn, taken up where an error left it. False when the disk refused."""
    try:
        running = {turn.session: turn for turn in home.conversation.recover_after_crash(NOW).running_turns}
        turn = running.get("main") or _begun(home, number)
        if turn is None:
            return True
        said = home.conversation.turn_messages(turn)
        if len(said) == 1:
            home.conversation.record_messages(turn, tool_round(f"c{number}", f"result {number} " * 200), NOW)
        reply = said[-1] if said[-1].content.startswith("reply") else Message("assistant", f"reply {number}")
        home.conversation.finish_turn(turn, "answered", reply, [reply_item(turn, reply.content)], NOW)
        for item in home.outbox.pending_items("terminal"):
            home.outbox.set_state(item.id, "sent", NOW)
    except StoreError as error:
        errors.append(str(error))
        return False
    return True


def _begun(home: StoreHome, number: int) -> Turn | None:
    """The turn of message `number`, unless it was answered before."""
    home.externals = iter([number])  # type: ignore[assignment]
    accepted = home.accept(f"question {number}")
    item = home.conversation.inbox_item(accepted.inbox_id)
    if item is None or item.state == "answered":
        return None
    return home.conversation.begin_turn(item, "", NOW)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
