"""What the stores cost one turn: accept, begin, view, finish, and the outbox's marks, everything fsynced as in life.

The sizes are measured in turns, several rounds of each, so that what else the machine does meets them alike.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from assistant.core.messages import Message
from assistant.core.records import IncomingMessage, OutgoingMessage
from assistant.core.sessions import MAIN_SESSION, OWNER_SCOPE
from assistant.store.script.outbox import StoredOutbox
from tests.bench.figures import Row
from tests.bench.homes import OpenHome, opened
from tests.bench.process import resident_mib
from tests.bench.prose import Prose
from tests.bench.rounds import turn_costs

_TURNS, _WARM_UP = 100, 10


def measure(sizes: Sequence[int]) -> Iterator[Row]:
    yield from turn_costs("turn", "tests.bench.turn", "stores alone", sizes)


def _child(path: Path, number: int) -> None:
    stores = opened(path, datetime.now(UTC))
    stores.conversation.recover_after_crash(datetime.now(UTC))
    chance, prose = random.Random(number), Prose(1)
    topic = prose.topic(chance)
    seconds, processor_seconds = [], []
    for turn in range(_WARM_UP + _TURNS):
        asked, answered = prose.message(chance, topic), prose.message(chance, topic)
        began, used = time.perf_counter(), time.process_time()
        one_turn(stores, f"{number}-{turn}", asked, answered)
        seconds.append(time.perf_counter() - began)
        processor_seconds.append(time.process_time() - used)
    found = {"seconds": seconds[_WARM_UP:], "processor_seconds": processor_seconds[_WARM_UP:]}
    print(json.dumps({**found, "resident_mib": resident_mib()}))
    stores.close()


def one_turn(stores: OpenHome, key: str, asked: str, answered: str) -> None:
    """A question and its answer; `key` tells it from every other turn of the home."""
    now = datetime.now(UTC)
    conversation, outbox = stores.conversation, StoredOutbox(stores.db)
    conversation.accept(IncomingMessage("terminal", key, MAIN_SESSION, OWNER_SCOPE, "me", "owner", asked), now)
    (item,) = conversation.list_accepted(MAIN_SESSION)
    turn = conversation.begin_turn(item, "It is Friday.", now)
    conversation.load_view(MAIN_SESSION)
    reply = OutgoingMessage(f"reply-{key}", MAIN_SESSION, OWNER_SCOPE, "terminal", "", answered)
    conversation.finish_turn(turn, "answered", Message("assistant", answered), [reply], now)
    (sent,) = outbox.pending_items("terminal")
    outbox.set_state(sent.id, "sending", now)
    outbox.set_state(sent.id, "sent", now)


if __name__ == "__main__":
    _child(Path(sys.argv[1]), int(sys.argv[2]))
