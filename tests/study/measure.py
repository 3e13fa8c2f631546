"""The strict server that the conversation is held against, and what it saw: every request, what it cost, how full it
was, how much of it came from the cache.

Prompts are counted by the strict server, and billed at list prices through its simulation of the prompt cache.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from assistant.core.messages import Usage
from assistant.core.quoting import NOTE_TAG
from assistant.models.prices import Prices, cost_usd_of_call, load_prices
from assistant.settings.settings import shipped_config_dir
from assistant.wire.models import PRICES_FILE
from tests.strict.behaviour import Behaviour, ScriptedAnswer
from tests.strict.cache import PromptCache
from tests.strict.count import block_tokens
from tests.strict.server import StrictServer
from tests.strict.validate import RequestLimits
from tests.study.asked import Body, Purpose, purpose_of, settled

# 3 and 15 US dollars per million tokens, 0.30 for what is read from the cache, 3.75 for what is written to it.
MODEL = "claude-sonnet-4-6"
# Shorter prompts are not cached for this model.
LEAST_CACHED = 1_024
MAX_OUTPUT = 8_192


@dataclass(frozen=True, slots=True)
class MeasuredRequest:
    """One request that was answered. `turn` is the number of the turn that was held then, or held last; `first` tells
    whether the view was changed since the conversation's request before it."""

    turn: int
    purpose: Purpose
    model: str
    usage: Usage
    usd: float
    first: bool = False
    # The lines that were neither read from the cache nor written to it: of the volatile block, and all others.
    volatile: frozenset[str] = frozenset()
    full: frozenset[str] = frozenset()


class StudyServer(StrictServer):
    """A strict server whose model is `answer`. Give it the clock of the app, in seconds."""

    def __init__(self, answer: Callable[[Body], ScriptedAnswer], window: int, clock: Callable[[], float]) -> None:
        super().__init__(
            bounds=RequestLimits(window=window, max_output=min(MAX_OUTPUT, window)),
            clock=clock,
            least_cached=LEAST_CACHED,
        )
        self.messages.cache = self._cache = _NotedCache(clock, least_tokens=LEAST_CACHED)
        self._answer = answer
        self._prices = list_prices()
        self._settled: Sequence[Any] = ()
        self._noted: list[tuple[int, Purpose, str, int, bool]] = []
        self.turn = 0
        self.refused: list[str] = []

    def behaviour_for(self, body: dict[str, Any]) -> Behaviour:
        purpose, answer = purpose_of(body), self._answer(body)
        first = False
        if purpose == "chat":
            stays = settled(body)
            first = stays[: len(self._settled)] != self._settled
            self._settled = stays
        self._noted.append((self.turn, purpose, body["model"], answer_tokens(answer), first))
        return answer

    async def _stream(self, api: Any, body: dict[str, Any], behaviour: Behaviour) -> AsyncIterator[bytes]:
        # All events in one piece: word by word, a tenth of the time of a long study goes by in sockets.
        assert isinstance(behaviour, ScriptedAnswer)
        yield b"".join(api.events(body, behaviour))

    def forget_bodies(self) -> None:
        """To be called when no request is under way: what was refused is kept, the bodies are not."""
        self.refused += self.complaints
        self.requests.clear()

    def seen(self) -> list[MeasuredRequest]:
        """All requests that were answered, in their order. What has no price raises `KeyError`."""
        return [
            replace(_seen(noted, usage, self._prices), volatile=volatile, full=full)
            for noted, usage, (volatile, full) in zip(self._noted, self._cache.used, self._cache.full, strict=True)
        ]


class _NotedCache(PromptCache):
    """Keeps what it said of each request."""

    def __init__(self, clock: Callable[[], float], *, least_tokens: int) -> None:
        super().__init__(clock, least_tokens=least_tokens)
        self.used: list[dict[str, Any]] = []
        self.full: list[tuple[frozenset[str], frozenset[str]]] = []  # of the volatile block, and of all others

    def use(self, body: dict[str, Any]) -> dict[str, Any]:
        used = super().use(body)
        self.used.append(used)
        texts = list(map(_text_of_part, self.paid_in_full))
        volatile = [text for text in texts if _VOLATILE in text]
        self.full.append((_lines(volatile), _lines(text for text in texts if text not in volatile)))
        return used


def _text_of_part(part: str | dict[str, Any]) -> str:
    if isinstance(part, str):
        return part
    return str(part["text"]) if part.get("type") == "text" else json.dumps(part, ensure_ascii=False)


def _lines(texts: Iterable[str]) -> frozenset[str]:
    """Those that are long enough to be told from another one."""
    return frozenset(line for text in texts for line in text.splitlines() if len(line) >= _LINE)


_LINE = 40
_VOLATILE = f"<{NOTE_TAG}>\nNow: "


def _seen(
    noted: tuple[int, Purpose, str, int, bool], used: dict[str, Any], prices: Mapping[str, Prices]
) -> MeasuredRequest:
    turn, purpose, model, output, first = noted
    usage = usage_of(used, output)
    return MeasuredRequest(turn, purpose, model, usage, price_of(model, usage, prices), first)


# ----------------------------------------------------------------------------------------------------------------- sums


def list_prices() -> Mapping[str, Prices]:
    return load_prices(shipped_config_dir() / PRICES_FILE)


def price_of(model: str, usage: Usage, prices: Mapping[str, Prices]) -> float:
    """US dollars. Raises `KeyError` for a model without a price."""
    usd = cost_usd_of_call(prices, "anthropic", model, usage)
    if usd is None:
        raise KeyError(f"{model} has no price in {PRICES_FILE}")
    return usd


def usage_of(used: dict[str, Any], output: int) -> Usage:
    """What the simulated API reported, in our words."""
    return Usage(
        input=used["input_tokens"],
        output=output,
        cache_read=used["cache_read_input_tokens"],
        cache_write=used["cache_creation_input_tokens"],
        cache_write_hour=used["cache_creation"]["ephemeral_1h_input_tokens"],
    )


def answer_tokens(answer: ScriptedAnswer) -> int:
    """What the strict server bills for an answer."""
    blocks: list[dict[str, Any]] = [{"type": "text", "text": answer.text}] if answer.text else []
    for call in answer.calls:
        blocks.append({"type": "tool_use", "id": call.id or "toolu_0000", "name": call.name, "input": call.arguments})
    return sum(map(block_tokens, blocks)) or 1


def usd(seen: Iterable[MeasuredRequest], *purposes: Purpose) -> float:
    """What the requests of these purposes cost, of all without any."""
    return sum(one.usd for one in seen if not purposes or one.purpose in purposes)


def fullest(seen: Iterable[MeasuredRequest], purpose: Purpose, window: int, reserve: int) -> float:
    """The highest share of the window that a request and the room kept for its answer took."""
    return max(((one.usage.prompt + reserve) / window for one in seen if one.purpose == purpose), default=0.0)


def cached_share(seen: Iterable[MeasuredRequest]) -> float:
    """Of the conversation's prompt tokens the share that came from the cache, leaving out the first request after each
    change of the view: between sittings the cache has expired, and that counts."""
    between = [one.usage for one in seen if one.purpose == "chat" and not one.first]
    return sum(usage.cache_read for usage in between) / max(1, sum(usage.prompt for usage in between))


def usd_per(seen: Sequence[MeasuredRequest], turns: int, block: int) -> list[float]:
    """What each whole block of so many turns cost, in order."""
    return [
        sum(one.usd for one in seen if start <= one.turn < start + block)
        for start in range(0, turns - block + 1, block)
    ]
