"""Who summarises at a strict server, and what every summary keeps to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from assistant.context.quoting import RECORD_TAG as TAG
from assistant.core.messages import SUMMARY_MARKER, Message, Usage
from assistant.core.ports import Model
from assistant.models.anthropic import AnthropicModel
from assistant.models.prices import Price
from assistant.settings.settings import shipped_config_dir
from sleep.compaction.prompts import SummaryPrompts
from sleep.compaction.summarise import Summariser
from sleep.compaction.values import CachedPrompt, Summary, SummaryInput
from tests.strict.asking import clock
from tests.strict.behaviour import Answer, Behaviour, Status
from tests.strict.server import ROOMY, StrictServer
from tests.strict.validate import Bounds
from tests.summarising import COUNTER, answered, long_talk, spoken

SMALL, LARGE = "claude-small", "claude-large"
PRICES = {
    SMALL: Price(input=1.0, output=5.0, cache_read=0.1, cache_write=1.25),
    LARGE: Price(input=1.5, output=6.0, cache_read=0.15, cache_write=1.9),
}
TOO_LONG = Status(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum")
GOOD = Answer(answered())
FERRY = "The booking code of the ferry is TK-4471-Q, and I would like a cabin with a window."


def prompts() -> SummaryPrompts:
    folder = shipped_config_dir() / "prompts"
    texts = [(folder / f"{name}.md").read_text("utf-8") for name in ("summary", "summary_merge", "summary_prefix")]
    return SummaryPrompts(*texts)


def price(provider: str, model: str, usage: Usage) -> float | None:
    return PRICES[model].billed(usage) if model in PRICES else None


@dataclass
class Desk:
    """Who summarises at a server: a small model, beside the large one of the conversation."""

    server: StrictServer
    small: AnthropicModel
    large: AnthropicModel

    def play(self, *script: Behaviour, bounds: Bounds = ROOMY) -> None:
        self.server.play(*script, bounds=bounds)

    def summariser(
        self,
        *,
        writer: Model | None = None,
        seconds: float = 30,
        restored: int = 800,
        cost: Callable[[str, str, Usage], float | None] = price,
    ) -> Summariser:
        return Summariser(
            lambda: writer or self.small, lambda: self.large, prompts(), lambda name: COUNTER, cost,
            restored_max_tokens=restored, seconds=seconds,
        )  # fmt: skip

    async def summarise(self, wanted: SummaryInput, *, live: CachedPrompt | None = None, **more: Any) -> Summary:
        """A summary, which keeps what every summary keeps."""
        found = await self.summariser(**more).summarise(wanted, live=live)
        holds(found, wanted)
        return found

    @property
    def asked(self) -> list[str]:
        """The words of each request, without the instructions."""
        return ["\n".join(block["text"] for block in body["messages"][-1]["content"]) for body in self.server.bodies]


def holds(found: Summary, wanted: SummaryInput, restored: int = 800) -> None:
    """What is true of every summary, whoever wrote it."""
    assert found.text.strip()
    assert found.tokens == COUNTER.count_text(found.text)
    assert found.tokens <= wanted.budget + restored
    assert found.tokens < sum(COUNTER.count_message(row) for row in wanted.rows)
    assert SUMMARY_MARKER not in found.text
    assert f"<{TAG}" not in found.text
    assert f"</{TAG}" not in found.text


@asynccontextmanager
async def at(server: StrictServer) -> AsyncIterator[Desk]:
    small, large = (
        AnthropicModel(name, server.key, clock=clock, base_url=server.url, stall_seconds=5) for name in (SMALL, LARGE)
    )
    try:
        yield Desk(server, small, large)
    finally:
        await small.aclose()
        await large.aclose()


def talk(*more: str, pairs: int = 12) -> tuple[Message, ...]:
    return spoken(*(row.content for row in long_talk(pairs)), *more)
