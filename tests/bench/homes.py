"""Homes of any size, made through the store's own bulk append, the same for the same seed.

`home(1_000_000)` gives five years of an owner's conversation and of some guests', with facts planted whose questions
measure recall. Building takes about half a second a thousand messages; what was built is kept under `.bench/`, keyed
by size, seed and the code that decides what a home looks like, and an outdated one is removed.

    python -m tests.bench.homes 100000        build (or find) a home and print where it is
"""

from __future__ import annotations

import ast
import hashlib
import json
import random
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from assistant.core.checkpoints import RequestKind
from assistant.core.messages import Message, Role, ToolCall
from assistant.core.records import LogLocation
from assistant.core.sessions import MAIN_SESSION, peer_session_key, session_scope
from assistant.store.database import Database
from assistant.store.log.writer import MessageLog
from assistant.store.schema.migrations import script_migrations
from assistant.store.script.conversation import StoredConversation
from tests.bench.prose import Prose, ProseFact
from tests.support.imports import import_messages

CHECKOUT = Path(__file__).resolve().parents[2]
CACHE = CHECKOUT / ".bench"
START = datetime(2021, 11, 20, tzinfo=UTC)
YEARS = timedelta(days=5 * 365)
GUESTS = tuple(peer_session_key("bench", str(number)) for number in range(1, 6))

_BATCH = 500
_KEEP = 100
_GUEST_SHARE = 0.1
_TOPIC_MESSAGES = 30
_TOOL_SHARE = 0.04
_LOOK = (
    "assistant/store/schema/migrations.py",
    "assistant/store/schema/script.sql",
    "assistant/store/script/index.py",
    "assistant/search/query.py",
    "assistant/store/log/format.py",
    "tests/bench/words.py",
    "tests/bench/prose.py",
    "tests/bench/homes.py",
)


@dataclass(frozen=True, slots=True)
class PlantedFact:
    """A fact that the home holds: what is asked, and the id of the message with the answer."""

    kind: str
    question: str
    answer: int


@dataclass(frozen=True, slots=True)
class GeneratedHome:
    path: Path
    size: int
    planted: tuple[PlantedFact, ...]

    def copied(self, name: str) -> Path:
        """A copy that may be written to; the caller removes it."""
        target = self.path.with_name(f"{self.path.name}-{name}")
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(self.path, target)
        return target


@dataclass(frozen=True, slots=True)
class OpenHome:
    """The stores of a home as the benchmarks use them."""

    db: Database
    log: MessageLog
    conversation: StoredConversation

    def close(self) -> None:
        self.db.close()
        self.log.close()


def opened(path: Path, now: datetime) -> OpenHome:
    """The home's stores, for writing; views hold messages whole, tokens are estimated at four characters each."""
    db, log = Database.open(path / "script.db", script_migrations, now), MessageLog(path)
    conversation = StoredConversation(
        db,
        log,
        to_view_message=_whole,
        count_tokens=_estimate,
        classify_request=lambda text: RequestKind.ANSWER,
        undo_kept=10,
    )
    return OpenHome(db, log, conversation)


def _whole(message: Message, place: LogLocation) -> Message:
    return message


def _estimate(message: Message) -> int:
    return len(message.content) // 4 + 4


def home(size: int, seed: int = 1, *, facts: int | None = None, cache: Path = CACHE) -> GeneratedHome:
    """A home of about `size` messages, found or built. Treat it as read-only; `copied` gives one to write to."""
    facts = min(200, max(20, size // 50)) if facts is None else facts
    target = cache / f"home-{size}-{seed}-{facts}-{_look()}"
    if not (target / "planted.json").exists():
        for outdated in cache.glob(f"home-{size}-{seed}-*"):
            shutil.rmtree(outdated)
        _build(target, size, seed, facts)
    planted = json.loads((target / "planted.json").read_text(encoding="utf-8"))
    return GeneratedHome(target, size, tuple(PlantedFact(**one) for one in planted))


def _look() -> str:
    """A hash of the code that decides what a home looks like; comments and docstrings do not."""
    digest = hashlib.sha256()
    for path in _LOOK:
        text = (CHECKOUT / path).read_text(encoding="utf-8")
        if path.endswith(".sql"):
            digest.update(text.encode())
            continue
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                node.value = ast.Constant(None)
        digest.update(ast.dump(tree).encode())
    return digest.hexdigest()[:12]


def _build(target: Path, size: int, seed: int, facts: int) -> None:
    target.mkdir(parents=True)
    began = time.monotonic()
    planted: list[PlantedFact] = []
    stores = opened(target, START)
    try:
        for made, (session, batch) in enumerate(_batches(size, seed, facts)):
            scope = session_scope(session)
            kept = import_messages(
                stores.conversation,
                session,
                scope,
                [message for message, _ in batch],
                batch[-1][0].ts or START,
                keep=_KEEP,
            )
            for message, (_, fact) in zip(kept, batch, strict=True):
                if fact is not None and message.id is not None:
                    planted.append(PlantedFact(fact.kind, fact.question, message.id))
            if made % 100 == 99:
                _tell(f"  {(made + 1) * _BATCH:,} of {size:,} messages in {time.monotonic() - began:.0f} s")
    finally:
        stores.close()
    text = json.dumps([{"kind": p.kind, "question": p.question, "answer": p.answer} for p in planted])
    (target / "planted.json").write_text(text, encoding="utf-8")
    _tell(f"built {target.name} in {time.monotonic() - began:.0f} s")


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _batches(size: int, seed: int, facts: int) -> Iterator[tuple[str, list[tuple[Message, ProseFact | None]]]]:
    """(session, messages with the fact whose answer each holds). Facts stand in the owner's session, spread evenly."""
    chance = random.Random(seed)
    prose = Prose(seed)
    waiting = list(prose.facts(seed, facts))[::-1]
    owner_size = size * (1 - _GUEST_SHARE)
    step = YEARS / size
    said = by_owner = 0
    while said < size:
        guest = chance.random() < _GUEST_SHARE and said > 0
        session = chance.choice(GUESTS) if guest else MAIN_SESSION
        batch: list[tuple[Message, ProseFact | None]] = []
        for message, fact in _conversation(prose, chance, START + said * step, step):
            due = len(waiting) and by_owner > (facts - len(waiting) + 0.5) * owner_size / facts * 0.98
            if not guest and due and message.role == "user" and fact is None:
                batch += _planting(waiting.pop(), message, step)
            else:
                batch.append((message, fact))
            by_owner += not guest
            if len(batch) >= min(_BATCH, size - said) and message.role == "assistant" and not message.tool_calls:
                break
        said += len(batch)
        yield session, batch


def _planting(fact: ProseFact, message: Message, step: timedelta) -> list[tuple[Message, ProseFact | None]]:
    ts = message.ts or START
    if len(fact.said) == 2:
        asked, answered = fact.said
        return [(Message("user", asked, ts=ts), None), (Message("assistant", answered, ts=ts + step / 2), fact)]
    sentences = message.content.split(". ")
    sentences.insert(len(sentences) // 2, fact.said[0].removesuffix("."))
    return [(Message("user", ". ".join(sentences), ts=ts), fact)]


def _conversation(
    prose: Prose, chance: random.Random, start: datetime, step: timedelta
) -> Iterator[tuple[Message, None]]:
    """User and assistant in turn, now and then with a tool in between, for ever."""
    topic: list[str] = []
    number = 0
    while True:
        if number % _TOPIC_MESSAGES == 0:
            topic = prose.topic(chance)
        roles: tuple[Role, ...] = ("user", "assistant")
        if chance.random() < 2 * _TOOL_SHARE:
            roles = ("user", "assistant", "tool", "assistant")
        for place, role in enumerate(roles):
            ts = start + number * step
            text = prose.message(chance, topic)
            calls = (ToolCall(f"call-{number}", "read_file", {"path": f"notes-{number}.txt"}),)
            if role == "tool":
                yield Message(role, text, ts=ts, tool_call_id=f"call-{number - 1}", name="read_file"), None
            elif len(roles) == 4 and place == 1:
                yield Message(role, "Let me look.", ts=ts, tool_calls=calls), None
            else:
                yield Message(role, text, ts=ts), None
            number += 1


if __name__ == "__main__":
    for wanted in sys.argv[1:] or ["1000"]:
        print(home(int(wanted)).path)
