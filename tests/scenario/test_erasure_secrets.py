"""Secrets, told in every way there is; half of them are forgotten in every way there is. None of these is
in any byte of the data folder afterwards, and all of the others are where they were."""

from __future__ import annotations

import base64
import random
import re
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from assistant.core.bridge_api import MessageChange
from assistant.core.messages import Media, ToolCall
from assistant.core.model_api import CallPurpose, ModelEvent, ModelRequest
from tests.support.running_app import OWNER, BridgePeople, LiveApp, run_app
from tests.support.scripted import ScriptedModel, ScriptStep, owner_message
from tests.support.secrets import KINDS, LANGUAGES, HomeBytes, Secret, make_secrets
from tests.support.sleep_home import learn_every_line
from tests.support.store_home import memory_backed_directory

# `make attack ARGS=forgetting` tells two hundred.
SEED, COUNT = 20_261_123, 48
_ASKED = re.compile(r"^\((\w+)\) (.+)$", re.MULTILINE)
_CODE = re.compile(r"/forget ([0-9A-F]{6})")
Place = tuple[str, int, bytes]
"""Where something is, and what it is."""
WAYS = ("said", "todo", "note", "remind", "delegate", "file", "edit", "branch", "said", "said")
METHODS = ("text", "message", "entry", "memory", "in words")


def way_of(secret: Secret) -> str:
    """How a secret is told. Each kind is told in every way, and so is each language: kinds are dealt out in turn, and
    the ways by one further in each round."""
    return WAYS[(secret.number + secret.number // len(KINDS)) % len(WAYS)]


def choose_half(secrets: Sequence[Secret], rng: random.Random) -> list[tuple[Secret, str]]:
    """What is forgotten, and how it is named: half of each kind and of each language, each kind in every way."""
    ordered = sorted(secrets, key=lambda secret: (KINDS.index(secret.kind), LANGUAGES.index(secret.language)))
    chosen = [rng.choice(pair) for pair in batched_by_two(ordered)]
    named = [(secret, METHODS[number % len(METHODS)]) for number, secret in enumerate(chosen)]
    rng.shuffle(named)
    return named


def batched_by_two(secrets: Sequence[Secret]) -> list[Sequence[Secret]]:
    return [secrets[start : start + 2] for start in range(0, len(secrets), 2)]


class Assistant(ScriptedModel):
    """Does what is asked for in brackets, repeats everything it is told, and learns every line at night."""

    async def stream(
        self,
        request: ModelRequest,
        purpose: CallPurpose = "chat",
        *,
        session: str | None = None,
        turn: str | None = None,
    ) -> AsyncGenerator[ModelEvent]:
        self.script = [_answer(request) if purpose == "chat" else learn_every_line(request)]
        async for event in super().stream(request, purpose, session=session, turn=turn):
            yield event


def _answer(request: ModelRequest) -> ScriptStep:
    newest = next(message.content for message in reversed(request.messages) if message.role == "user")
    if "Your task:" in newest:
        return f"Found out. {newest.rpartition('Your task:')[2].strip()}"
    if request.messages[-1].role == "tool":
        return f"It is done. {request.messages[-1].content[:300]}"
    asked = _ASKED.search(newest)
    if asked is None:
        return f"I will keep in mind: {newest[:300]}"
    text = asked[2]
    arguments = {
        "todo": ("manage_todo_list", {"action": "add", "items": [text]}),
        "note": ("add_journal_entry", {"content": text}),
        "remind": ("set_reminder", {"text": text, "when": "tomorrow at 9:00"}),
        "delegate": ("delegate", {"tasks": [text]}),
        "file": ("read_file", {"path": _last_received(request)}),
        "forget": ("forget", {"text": text}),
    }
    return ToolCall("c1", *arguments[asked[1]])


def _last_received(request: ModelRequest) -> str:
    return next((file.path for message in reversed(request.messages) for file in message.media if file.path), "")


@dataclass
class Story:
    """The app with the secrets in it; the messages that told each."""

    it: LiveApp
    secrets: list[Secret]
    told: dict[int, int] = field(default_factory=dict)
    named_by: Counter[str] = field(default_factory=Counter)  # how what is forgotten was named
    before: HomeBytes = field(default_factory=HomeBytes)  # what the home held before anything was forgotten
    texts_before: set[Place] = field(default_factory=set)  # and what was said and learned, with its place

    def __post_init__(self) -> None:
        self.people = BridgePeople(self.it)

    @property
    def home(self) -> Path:
        return self.it.app.settings.home.path

    async def tell(self, secret: Secret) -> None:
        way = way_of(secret)
        text, name = secret.sentence, f"s{secret.number}"
        if way == "file":
            data = base64.b64encode(text.encode()).decode()
            media = Media("file", "text/plain", f"{secret.owner}.txt", len(text.encode()), data=data)
            accepted = await self.people.write(f"(file) of {secret.owner}", OWNER, name, media=(media,))
        elif way == "edit":
            accepted = await self.people.write(f"Something about {secret.owner}", OWNER, name)
            change = MessageChange("kept", name, f"edit {name}", "edit", OWNER, text)
            await self.it.app.inbound.receive_change(change)
        elif way == "branch":
            accepted = await self.it.app.runtime.accept(owner_message(text, external_id=name, session="branch:1"))
        else:
            accepted = await self.people.write(text if way == "said" else f"({way}) {text}", OWNER, name)
        await self.people.wait_idle()
        assert accepted is not None
        self.told[secret.number] = self.it.inbox_item(accepted.inbox_id).message_id

    def is_found(self, secret: Secret) -> bool:
        """Whether a search for it finds the message that told it, or what was read in the file that did."""
        history = self.it.app.stores.history
        hits = [hit for hit in history.search(secret.value, "owner") if secret.value in hit.text]
        if way_of(secret) == "file":
            return bool(hits)
        return self.told[secret.number] in {hit.message_id for hit in hits}

    async def list_texts(self) -> set[Place]:
        """Every line of the logs and its place in them, every entry, every memory, every file that was sent along."""
        stores, texts = self.it.app.stores, set[Place]()
        for path in (self.home / "log").rglob("*.jsonl"):
            start, name = 0, path.parent.name
            for line in path.read_bytes().splitlines(keepends=True):
                texts.add((name, start, line))
                start += len(line)
        texts |= {("journal", entry.id or 0, entry.content.encode()) for entry in stores.journal.entries("owner")}
        texts |= {(memory.id, 0, memory.text.encode()) for memory in await stores.memories.all("owner")}
        files = (self.home / "workspace" / "received").iterdir()
        return texts | {(path.name, 0, path.read_bytes()) for path in files}

    async def command(self, text: str) -> str:
        return await self.it.app.commands.run(text, "main")

    async def forget(self, secret: Secret, method: str) -> str:
        """What the assistant reports."""
        stores = self.it.app.stores
        # A summary tells of many; whoever forgets it does not mean one of them.
        has_value = [
            entry
            for entry in stores.journal.entries("owner")
            if secret.value in entry.content and entry.source_type != "context_synthesis"
        ]
        memories = [memory for memory in await stores.memories.all("owner") if secret.value in memory.text]
        named = f"#{self.told[secret.number]}"
        if (method == "entry" and not has_value) or (method == "memory" and not memories):
            method = "message"
        self.named_by[method] += 1
        if method == "entry":
            named = f"e{has_value[0].id}"
        elif method == "memory":
            named = memories[0].id
        elif method == "text":
            named = f'"{secret.about}"'
        elif method == "in words":
            await self.people.write(f"(forget) {secret.about}", OWNER, f"f{secret.number}")
            shown = stores.history.recent("owner", limit=6)
            # The newest: an earlier one may still be shown.
            [*_, code] = [found[1] for record in shown for found in _CODE.finditer(record.content)]
            return await self.command(f"/forget {code}")
        shown_text = await self.command(f"/forget {named}")
        found_code = _CODE.search(shown_text)
        return await self.command(f"/forget {found_code[1]}") if found_code else shown_text


@asynccontextmanager
async def open_story(count: int, seed: int) -> AsyncIterator[Story]:
    with memory_backed_directory() as path:
        async with run_app(path / "home", model=Assistant(window=40_000), writer=Assistant()) as it:
            story = Story(it, make_secrets(count, seed))
            await story.people.allow_everybody()
            yield story


async def _tell_all(story: Story) -> None:
    """With everything in between that makes copies."""
    await story.people.write("Hello.", OWNER, "hello")
    await story.command("/branch 1")
    events = ["/compact", "/sleep", "/reset", "/compact", "/backup create", "/sleep", "/compact"]
    every = max(1, len(story.secrets) // len(events))
    for secret in story.secrets:
        await story.tell(secret)
        if secret.number % every == every - 1 and events:
            await story.command(events.pop(0))


async def _tell_and_forget(story: Story, rng: random.Random) -> tuple[list[Secret], list[Secret], list[str]]:
    """The forgotten ones, the others, and reports that did not say that it is found nowhere."""
    await _tell_all(story)
    story.before, story.texts_before = HomeBytes(story.home), await story.list_texts()
    named = choose_half(story.secrets, rng)
    forgotten = [secret for secret, _ in named]
    others = [secret for secret in story.secrets if secret not in forgotten]
    doubts = []
    for number, (secret, method) in enumerate(named):
        if number in (5, len(forgotten) - 5):
            await story.command("/backup create")
        report = await story.forget(secret, method)
        if "They are found nowhere any more." not in report:
            doubts.append(f"{secret} {method}: {report}")
        if number == 5:
            for backup in list((story.home / "backups").glob("*.tar.gz")):
                backup.unlink()
    return forgotten, others, doubts


def _kept_places(held: HomeBytes, secret: Secret) -> set[str]:
    """Where it was and has to stay: all but backups, which are made anew, and what a database has not written into
    itself yet."""
    return {place for place in held.places(secret.value) if not place.endswith(("-wal", "-shm", ".tar.gz"))}


def _tells_only_of(text: bytes, kept: Sequence[Secret], forgotten: Sequence[Secret]) -> bool:
    """Whether it has one of some secrets, and no word of the others."""
    words = text.decode()
    of_others = any(secret.owner in words or secret.value in words for secret in forgotten)
    return not of_others and any(secret.value in words for secret in kept)


async def tell_and_forget_half(count: int, seed: int) -> None:
    async with open_story(count, seed) as story:
        forgotten, others, doubts = await _tell_and_forget(story, random.Random(seed))
        await story.command("/backup create")
        held = HomeBytes(story.home)
        # Each way to name it was taken often, and was not another one that gave the same result.
        assert min(story.named_by[method] for method in METHODS) > count // 30, story.named_by
        left = {secret: held.places(secret.value) for secret in forgotten}
        assert {secret: places for secret, places in left.items() if places} == {}
        assert doubts == []
        lost = {secret: _kept_places(story.before, secret) - _kept_places(held, secret) for secret in others}
        assert {secret: places for secret, places in lost.items() if places} == {}
        kept = {text for text in story.texts_before if _tells_only_of(text[2], others, forgotten)}
        assert len(kept) > count and kept - await story.list_texts() == set()
        await story.it.app.maintenance.index_new_messages()
        assert [secret for secret in others if not story.is_found(secret)] == []


def test_the_secrets_are_spread_evenly_over_kinds_languages_and_ways() -> None:
    secrets = make_secrets(200, SEED)
    for one, other, least in (
        ([secret.kind for secret in secrets], [secret.language for secret in secrets], 4),
        ([secret.kind for secret in secrets], [way_of(secret) for secret in secrets], 1),
        ([secret.language for secret in secrets], [way_of(secret) for secret in secrets], 4),
    ):
        pairs = Counter(zip(one, other, strict=True))
        assert len(pairs) == len(set(one)) * len(set(other)) and min(pairs.values()) >= least, pairs
    named = choose_half(secrets, random.Random(SEED))
    assert len(named) == 100
    by_method = Counter((secret.kind, method) for secret, method in named)
    assert len(by_method) == len(KINDS) * len(METHODS) and max(by_method.values()) <= 3, by_method
    by_language = Counter((secret.kind, secret.language) for secret, _ in named)
    assert len(by_language) == len(KINDS) * len(LANGUAGES), by_language


@pytest.mark.timeout(1200)
async def test_half_of_the_secrets_are_nowhere_and_the_others_where_they_were() -> None:
    await tell_and_forget_half(COUNT, SEED)
