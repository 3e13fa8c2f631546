"""Property: `sleep --dry-run` says what `sleep` then does. Without a model every number is the sleep's; with one the
calls are, phase by phase, over what the journal has already.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from assistant.core.model_api import ModelRequest
from assistant.models.offline.model import OfflineModel
from tests.support.consolidation_home import decisions_answer, scores_answer
from tests.support.running_app import LiveApp, run_app
from tests.support.scripted import ScriptedModel
from tests.support.sleep_home import learn_every_line

_CITIES, _NAMES = ("Oslo", "Bergen", "Lyon", "Graz"), ("Anna", "Ivo", "Mira")
_SENTENCES = (
    "I live in {city}.",
    "I moved to {city}.",
    "My sister {name} lives in {city}.",
    "My brother {name} is a nurse.",
    "My cat is called {name}.",
    "I work as a carpenter in {city}.",
    "I like walks in {city}.",
    "What is the time?",
    "No, my sister {name} lives in {city}.",
    "We decided to buy the house in {city}.",
)


def words(chance: random.Random, count: int) -> list[str]:
    return [
        chance.choice(_SENTENCES).format(city=chance.choice(_CITIES), name=chance.choice(_NAMES)) for _ in range(count)
    ]


async def say_all(it: LiveApp, texts: list[str]) -> None:
    for text in texts:
        await it.say(text)
        await it.wait_idle()


async def sleep(it: LiveApp, *options: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(await it.app.commands.run(" ".join(["/sleep", "--json", *options]), "main"))
    return value


def became(phase: dict[str, Any]) -> dict[str, int]:
    return {key: phase.get(key, 0) for key in ("learned", "merged", "superseded", "junk")}


@pytest.mark.parametrize("seed", range(3))
async def test_without_a_model_what_becomes_of_each_entry_is_foreseen(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    async with run_app(tmp_path, model=OfflineModel()) as it:  # type: ignore[arg-type]
        for _ in range(2):
            await say_all(it, words(chance, 9))
            told = await sleep(it, "--dry-run")
            done = (await sleep(it))["phases"]
            assert told["pending"] == done["consolidate"]["read"] > 0
            assert told["changes"] == became(done["consolidate"])
            assert sum(one["entries"] for one in told["unread"]) == done["extract"]["written"]
            assert (told["calls"], sum(phase["calls"] for phase in done.values())) == (0, 0)


def judge(request: ModelRequest) -> str:
    asked = request.messages[0].content
    labels = [line.split()[0].rstrip(":") for line in asked.splitlines() if line.startswith("E")]
    if "<decisions>" in request.system[0].text:
        return decisions_answer(*((label, "new", []) for label in labels))
    if "<scores>" in request.system[0].text:
        return scores_answer(*((label, 0.6) for label in labels))
    return learn_every_line(request)


@pytest.mark.parametrize("seed", range(2))
async def test_with_a_model_the_calls_of_each_phase_are_foreseen(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    by = ScriptedModel(judge, name="claude-haiku-5-5")
    by.provider = "anthropic"
    async with run_app(tmp_path, "Nice.", writer=by) as it:
        await say_all(it, [f"{text} ({number})" for number, text in enumerate(words(chance, 22 + seed))])
        told = await sleep(it, "--dry-run")
        read = await sleep(it, "--phase", "extract")
        assert told["calls_by_phase"]["extract"] == read["phases"]["extract"]["calls"] > 0
        before = len(by.requests)
        told = await sleep(it, "--dry-run")
        assert len(by.requests) == before
        done = (await sleep(it))["phases"]
        assert told["calls_by_phase"] == {name: done[name]["calls"] for name in told["calls_by_phase"]}
        assert told["calls"] == len(by.requests) - before > 1
