"""Material for summaries, and answers of models that summarise."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from assistant.context.tokens import CountingTier, TokenCounter
from assistant.core.messages import Message, Usage
from assistant.core.model_api import ModelReply, StopReason
from sleep.compaction.values import SummaryInput

COUNTER = TokenCounter(CountingTier("estimate", "", ""))
START = datetime(2026, 3, 4, 9, 0, tzinfo=UTC)
RECORD = (
    "The person plans a trip to Bergen with Anna and has booked the ferry. They want a cabin with a window, and the "
    "assistant is to look for a hotel near the harbour next."
)
# The same in some languages.
SPOKEN = {
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


def count(text: str) -> int:
    return COUNTER.count_text(text)


def spoken(*texts: str, first: int = 1) -> tuple[Message, ...]:
    """The person and the assistant in turn, a minute apart."""
    return tuple(
        Message("user" if n % 2 == 0 else "assistant", text, id=first + n, ts=START + timedelta(minutes=n))
        for n, text in enumerate(texts)
    )


def material(rows: Sequence[Message], budget: int = 2000, **more: Any) -> SummaryInput:
    return SummaryInput("main", "owner", tuple(rows), {}, budget, **more)


def long_talk(pairs: int = 30) -> tuple[Message, ...]:
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
    return spoken(*texts)


def answered(text: str = RECORD, memories: Sequence[str] = (), facts: str = "") -> str:
    """In the form that is asked for."""
    lines = "\n".join(f"- {memory}" for memory in memories)
    return f"<summary>\n{text}\n</summary>\n<memories>\n{lines}\n</memories>\n<facts>\n{facts}\n</facts>"


def reply(text: str, stop: StopReason = "end", **more: Any) -> ModelReply:
    return ModelReply(Message("assistant", text, **more), Usage(), stop)
