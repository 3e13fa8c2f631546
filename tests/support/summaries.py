"""Material for summaries, answers of models that summarise, a summariser at a strict server, and what is true of every
summary.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from assistant.context.tokens import TokenCounter
from assistant.core.messages import SUMMARY_MARKER, Message, Usage
from assistant.core.model_api import ModelReply, StopReason
from assistant.core.ports import Model, ModelPair
from assistant.core.quoting import RECORD_TAG as TAG
from assistant.core.records import CountingTier
from assistant.models.anthropic import AnthropicModel
from assistant.models.prices import Price
from assistant.settings.settings import shipped_config_dir
from sleep.compaction.prompts import SummaryPrompts
from sleep.compaction.summarise import Summariser
from sleep.compaction.values import CachedPrompt, Summary, SummaryInput
from tests.strict.asking import clock
from tests.strict.behaviour import Behaviour, ErrorStatus, ScriptedAnswer
from tests.strict.server import ROOMY_LIMITS, StrictServer
from tests.strict.validate import RequestLimits

COUNTER = TokenCounter(CountingTier("estimate", "", ""))
START = datetime(2026, 3, 4, 9, 0, tzinfo=UTC)
SUMMARY_TEXT = (
    "The person plans a trip to Bergen with Anna and has booked the ferry. They want a cabin with a window, and the "
    "assistant is to look for a hotel near the harbour next."
)
# The same in some languages.
TEXT_BY_LANGUAGE = {
    "en": (
        "We would like to go to Bergen in May, and the ferry is the best way for us, but it is not cheap for the kids."
    ),
    "de": (
        "Wir möchten im Mai nach Bergen fahren, und die Fähre ist für uns der beste Weg, aber sie ist nicht "
        "billig mit den Kindern."
    ),
    "fr": (
        "Nous voudrions aller à Bergen en mai, et le ferry est pour nous la meilleure solution, mais il est "
        "cher avec les enfants."
    ),
    "es": (
        "Queremos ir a Bergen en mayo, y el ferry es la mejor opción para nosotros, pero no es barato con los"
        " niños y las maletas."
    ),
    "no": (
        "Vi vil reise til Bergen i mai, og fergen er det beste for oss, men den er ikke billig for barna som "
        "skal være med."
    ),
    "nl": (
        "Wij willen in mei naar Bergen gaan, en de veerboot is voor ons het beste, maar het is niet goedkoop "
        "met de kinderen."
    ),
    "pl": (
        "Chcemy pojechać do Bergen w maju i prom jest dla nas najlepszy, ale nie jest tani, a dzieci też jadą"
        " z nami, bo jest tam ładnie."
    ),
    "tr": (
        "Mayıs ayında Bergen'e gitmek istiyoruz ve feribot bizim için en iyisi ama çok ucuz değil, çocuklar "
        "da var ve bu bir sorun."
    ),
    "ru": "Мы хотим поехать в Берген в мае, и паром для нас лучше всего, но это недёшево с детьми.",
    "zh": "我们想五月去卑尔根，坐渡轮最好，但是带孩子不便宜，而且票很快就卖完了。",
    "ja": "五月にベルゲンへ行きたいです。フェリーが一番いいですが、子供と一緒だと安くないです。",
    "ko": "우리는 5월에 베르겐에 가고 싶고 페리가 가장 좋지만 아이들과 함께라면 싸지 않습니다.",
}


def count_text_tokens(text: str) -> int:
    return COUNTER.count_text(text)


def alternating_messages(*texts: str, first: int = 1) -> tuple[Message, ...]:
    """The person and the assistant in turn, a minute apart."""
    return tuple(
        Message("user" if n % 2 == 0 else "assistant", text, id=first + n, ts=START + timedelta(minutes=n))
        for n, text in enumerate(texts)
    )


def summary_material(rows: Sequence[Message], budget: int = 2000, **more: Any) -> SummaryInput:
    return SummaryInput("main", "owner", tuple(rows), {}, budget, **more)


def long_conversation(pairs: int = 30) -> tuple[Message, ...]:
    """Ordinary English, some of it numbered, about forty tokens a message."""
    texts: list[str] = []
    for n in range(pairs):
        texts.append(
            f"We talked about the trip again, and for day {n + 1} of it I would like to have a place that is near the "
            "water, because the children were tired the last time and it was not easy for them to walk so far."
        )
        texts.append(
            f"That is a good idea for day {n + 1}. There are some places by the harbour, and from there you can take "
            "the bus to the old town, which is not as full in the morning as it is later."
        )
    return alternating_messages(*texts)


def summary_answer(text: str = SUMMARY_TEXT, memories: Sequence[str] = (), facts: str = "") -> str:
    """In the form that is asked for."""
    lines = "\n".join(f"- {memory}" for memory in memories)
    return f"<summary>\n{text}\n</summary>\n<memories>\n{lines}\n</memories>\n<facts>\n{facts}\n</facts>"


def model_reply(text: str, stop: StopReason = "end", **more: Any) -> ModelReply:
    return ModelReply(Message("assistant", text, **more), Usage(), stop)


SMALL_MODEL, LARGE_MODEL = "claude-small", "claude-large"
PRICES = {
    SMALL_MODEL: Price(input=1.0, output=5.0, cache_read=0.1, cache_write=1.25),
    LARGE_MODEL: Price(input=1.5, output=6.0, cache_read=0.15, cache_write=1.9),
}
TOO_LONG_ERROR = ErrorStatus(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum")
GOOD_ANSWER = ScriptedAnswer(summary_answer())
FERRY_MESSAGE = "The booking code of the ferry is TK-4471-Q, and I would like a cabin with a window."


def load_prompts() -> SummaryPrompts:
    folder = shipped_config_dir() / "prompts"
    texts = [(folder / f"{name}.md").read_text("utf-8") for name in ("summary", "summary_merge", "summary_prefix")]
    return SummaryPrompts(*texts)


def call_price(provider: str, model: str, usage: Usage) -> float | None:
    return PRICES[model].cost_of_call(usage) if model in PRICES else None


@dataclass
class SummariserSetup:
    """Who summarises at a server: a small model, beside the large one of the conversation."""

    server: StrictServer
    small: AnthropicModel
    large: AnthropicModel

    def play(self, *script: Behaviour, bounds: RequestLimits = ROOMY_LIMITS) -> None:
        self.server.play(*script, bounds=bounds)

    def summariser(
        self,
        *,
        writer: Model | None = None,
        seconds: float = 30,
        restored: int = 800,
        cost: Callable[[str, str, Usage], float | None] = call_price,
    ) -> Summariser:
        return Summariser(
            lambda: nullcontext(ModelPair(answering=self.large, writing=writer or self.small)),
            load_prompts(),
            lambda name: COUNTER,
            cost,
            restored_max_tokens=restored,
            timeout_seconds=seconds,
        )

    async def summarise(self, wanted: SummaryInput, *, live: CachedPrompt | None = None, **more: Any) -> Summary:
        """A summary, which keeps what every summary keeps."""
        found = await self.summariser(**more).summarise(wanted, cached_prompt=live)
        assert_valid_summary(found, wanted)
        return found

    @property
    def request_texts(self) -> list[str]:
        """The words of each request, without the instructions."""
        return ["\n".join(block["text"] for block in body["messages"][-1]["content"]) for body in self.server.bodies]


def assert_valid_summary(found: Summary, wanted: SummaryInput, restored: int = 800) -> None:
    """What is true of every summary, whoever wrote it."""
    assert found.text.strip()
    assert found.tokens == COUNTER.count_text(found.text)
    assert found.tokens <= wanted.budget + restored
    assert found.tokens < sum(COUNTER.count_message(row) for row in wanted.rows)
    assert SUMMARY_MARKER not in found.text
    assert f"<{TAG}" not in found.text
    assert f"</{TAG}" not in found.text


@asynccontextmanager
async def summariser_at(server: StrictServer) -> AsyncIterator[SummariserSetup]:
    small, large = (
        AnthropicModel(name, server.key, clock=clock, base_url=server.url, stall_seconds=5)
        for name in (SMALL_MODEL, LARGE_MODEL)
    )
    try:
        yield SummariserSetup(server, small, large)
    finally:
        await small.aclose()
        await large.aclose()


def conversation_with(*more: str, pairs: int = 12) -> tuple[Message, ...]:
    return alternating_messages(*(row.content for row in long_conversation(pairs)), *more)
