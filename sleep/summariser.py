"""A summary of what leaves a view, in the best tier that can be had: full, partial, extractive, both ends.

What always holds:
- Every tier gives a checked `Summary`: what the originals name and the text lacks is appended word for word, boundaries
  are escaped, and it is shorter than what it stands for. A model's answer that is anything else is not used (F12).
- No request is larger than the window of whoever gets it: what was said is sent in chunks of a quarter of the smaller
  of both models' windows, each call carrying the record so far on (F05). A row that is too large by itself is shown
  with both its ends, and where even that fails, described (F06).
- The prompt that the provider has in its cache is used again where that is cheaper than the economical model (F23).
- The model part ends in time. What fails is told in `failures`; nothing is raised but cancellation and `StoreError`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from assistant.context.pressure import Counter
from assistant.errors import ModelError
from assistant.messages import Message, Usage
from assistant.ports import Model
from assistant.requests import Reply, Request
from sleep.answer import Answer, clean, is_noise, read_answer
from sleep.check import restored, same_language
from sleep.extractive import both_ends, extractive
from sleep.summary import Material, Summary, SummaryTier
from sleep.summary_prompts import SummaryPrompts, chunk_request, chunks, prefix_words

Cost = Callable[[str, str, Usage], float | None]

OFFLINE = "offline"
_SHARE_OF_WINDOW = 4
_LEAST_CHUNK = 500
_ROOM_FOR_MEMORIES = 800
# An answer this much longer than it should be is cut down to its budget; a longer one is no summary.
_TOO_LONG = 2.0
_TRIES = 2


@dataclass(frozen=True, slots=True)
class Live:
    """The last request of a session, which its provider has in its cache; `prompt_tokens` of it, as they are billed."""

    model: str
    request: Request
    prompt_tokens: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """About what a summary takes. `usd` is None where no price is known."""

    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    usd: float | None


@dataclass(slots=True)
class _Attempts:
    """What was tried for one summary, and what that cost."""

    failures: list[str] = field(default_factory=list)
    calls: int = 0
    cost_usd: float | None = 0.0
    model: str = ""

    def add(self, cost_usd: float | None, model: str) -> None:
        self.model = model
        known = self.cost_usd is not None and cost_usd is not None
        self.cost_usd = (self.cost_usd or 0.0) + (cost_usd or 0.0) if known else None


class _Unusable(Exception):
    """A tier could not be had; the text says why."""


class _Overflow(_Unusable):
    """The request did not fit."""


class Summariser:
    """Summarises materials. Holds nothing between calls."""

    def __init__(
        self,
        writer: Callable[[], Model],
        answerer: Callable[[], Model],
        prompts: SummaryPrompts,
        count_for: Callable[[str], Counter],
        cost: Cost,
        *,
        restored_max_tokens: int,
        seconds: float,
    ) -> None:
        """`writer` is the economical model, `answerer` that of the conversation; `cost` (provider, model, usage) gives
        US dollars. `restored_max_tokens` bounds what is appended word for word, `seconds` all calls of a summary."""
        self._writer = writer
        self._answerer = answerer
        self._prompts = prompts
        self._count_for = count_for
        self._cost = cost
        self._restored = restored_max_tokens
        self._seconds = seconds

    async def chunk_tokens(self) -> int:
        """The most that one call is given to summarise, in tokens."""
        windows = [(await model.limits()).window for model in (self._writer(), self._answerer())]
        return max(_LEAST_CHUNK, min(windows) // _SHARE_OF_WINDOW)

    async def summarise(self, material: Material, *, live: Live | None = None, plain: bool = False) -> Summary:
        """With `plain` no model is asked. Raises `StoreError` where a call cannot be metered."""
        attempts = _Attempts()
        counter = self._count_for(self._writer().name)
        if not plain and self._writer().provider != OFFLINE:
            try:
                async with asyncio.timeout(self._seconds):
                    found = await self._by_model(material, live, attempts, counter)
            except TimeoutError:
                attempts.failures.append(f"no summary after {self._seconds:g} seconds (compaction.summary_seconds)")
            else:
                if found is not None:
                    answer, tier = found
                    return self._checked(answer, tier, material, attempts, counter)
        return self._without_model(material, attempts, counter)

    async def estimate(self, material: Material, *, live: Live | None = None) -> Estimate:
        """About what `summarise` would take, all going well."""
        model = self._writer()
        if model.provider == OFFLINE:
            return Estimate(model.name, 0, 0, 0, 0.0)
        counter = self._count_for(model.name)
        texts = chunks(material.rows, await self.chunk_tokens(), counter.count_text, partial=False)
        if live is not None and await self._reuses(live, material, texts, counter):
            usage = Usage(output=material.budget, cache_read=live.prompt_tokens)
            answerer = self._answerer()
            usd = self._cost(answerer.provider, answerer.name, usage)
            return Estimate(answerer.name, 1, live.prompt_tokens, material.budget, usd)
        usage = self._usage_of(texts, material, counter)
        usd = self._cost(model.provider, model.name, usage)
        return Estimate(model.name, len(texts), usage.input, usage.output, usd)

    # ------------------------------------------------------------------------------------------------------------ model

    async def _by_model(
        self, material: Material, live: Live | None, attempts: _Attempts, counter: Counter
    ) -> tuple[Answer, SummaryTier] | None:
        most = await self.chunk_tokens()
        texts = chunks(material.rows, most, counter.count_text, partial=False)
        try:
            if live is not None and await self._reuses(live, material, texts, counter):
                return await self._from_live(live, material, attempts, counter), "full"
        except _Unusable as error:
            attempts.failures.append(f"over the live prompt: {error}")
        tiers: tuple[tuple[SummaryTier, int, bool], ...] = (
            ("full", most, False), ("full", most // 2, False), ("partial", most // 2, True),
        )  # fmt: skip
        for tier, size, partial in tiers:
            try:
                return await self._rolling(material, size, partial, attempts, counter), tier
            except _Overflow as error:
                attempts.failures.append(f"{tier}: {error}")
            except _Unusable as error:
                # The same model would answer smaller pieces no better; only what was too long is cut smaller.
                attempts.failures.append(f"{tier}: {error}")
                return None
        return None

    async def _rolling(
        self, material: Material, most: int, partial: bool, attempts: _Attempts, counter: Counter
    ) -> Answer:
        """Chunk by chunk, each call carrying on the record so far. Raises `_Unusable`."""
        texts = chunks(material.rows, most, counter.count_text, partial=partial)
        so_far: Answer | None = None
        memories: list[str] = []
        for text in texts:
            so_far = await self._one(material, text, so_far.text if so_far else "", attempts, counter)
            memories += so_far.memories
        if so_far is None:
            raise _Unusable("there was nothing to summarise")
        return replace(so_far, memories=tuple(dict.fromkeys(memories)))

    async def _one(self, material: Material, text: str, so_far: str, attempts: _Attempts, counter: Counter) -> Answer:
        """One chunk, tried again once with what was wrong. Raises `_Unusable`."""
        model, why = self._writer(), ""
        room = min((await model.limits()).max_output, material.budget * 2 + _ROOM_FOR_MEMORIES)
        for _ in range(_TRIES):
            request = chunk_request(self._prompts, material, text, so_far, room, why)
            found = await self._ask(model, request, material, attempts, counter)
            if isinstance(found, Answer):
                return found
            why = found
        raise _Unusable(why)

    async def _from_live(self, live: Live, material: Material, attempts: _Attempts, counter: Counter) -> Answer:
        """Over the prompt that the provider has: the same request with one message more (F23). Raises `_Unusable`."""
        words = Message("user", prefix_words(self._prompts, material))
        messages = (*live.request.messages, words)
        room = material.budget * 2 + _ROOM_FOR_MEMORIES
        edges = (*live.request.cache_edges, len(live.request.messages) - 1)[-2:]
        request = replace(live.request, messages=messages, cache_edges=edges, max_output_tokens=room)
        found = await self._ask(self._answerer(), request, material, attempts, counter)
        if isinstance(found, Answer):
            return found
        raise _Unusable(found)

    async def _ask(
        self, model: Model, request: Request, material: Material, attempts: _Attempts, counter: Counter
    ) -> Answer | str:
        """The answer, or what is wrong with it. Raises `_Unusable` where the model cannot be asked."""
        attempts.calls += 1
        reply: Reply | None = None
        try:
            async with aclosing(model.stream(request, "summary", session=material.session)) as events:
                async for event in events:
                    if isinstance(event, Reply):
                        reply = event
        except ModelError as error:
            raise (_Overflow if error.kind == "overflow" else _Unusable)(str(error)) from None
        if reply is None:
            raise _Unusable("the stream ended without an answer")
        if reply.stop == "overflow":
            raise _Overflow("the request was too long")
        by = reply.message.model or model.name
        attempts.add(self._cost_of(model, reply), by)
        if by == OFFLINE:
            raise _Unusable("only the built-in model answered")
        answer = read_answer(reply)
        return answer if isinstance(answer, str) else _judged(answer, material, counter)

    def _cost_of(self, model: Model, reply: Reply) -> float | None:
        known = reply.usage.cost_usd
        return (
            known if known is not None else self._cost(model.provider, reply.message.model or model.name, reply.usage)
        )

    async def _reuses(self, live: Live, material: Material, texts: list[str], counter: Counter) -> bool:
        """Whether the live prompt is of the model that would answer, fits with the question, and is cheaper."""
        model = self._answerer()
        if material.depth > 1 or live.model != model.name:
            return False
        answer = material.budget * 2 + _ROOM_FOR_MEMORIES
        asked = counter.count_text(prefix_words(self._prompts, material))
        if live.prompt_tokens + asked + answer > (await model.limits()).window:
            return False
        reused = Usage(input=asked, output=material.budget, cache_read=live.prompt_tokens)
        mine = self._cost(model.provider, model.name, reused)
        writer = self._writer()
        theirs = self._cost(writer.provider, writer.name, self._usage_of(texts, material, counter))
        return mine is not None and theirs is not None and mine < theirs

    def _usage_of(self, texts: list[str], material: Material, counter: Counter) -> Usage:
        """About what the calls for these chunks use."""
        asked = counter.count_text(self._prompts.summary) + material.budget
        tokens = sum(counter.corrected(counter.count_text(text) + asked) for text in texts)
        return Usage(input=tokens, output=material.budget * len(texts))

    # --------------------------------------------------------------------------------------------------------- checking

    def _without_model(self, material: Material, attempts: _Attempts, counter: Counter) -> Summary:
        size = sum(counter.count_text(row.content) for row in material.rows)
        text = extractive(material, min(material.budget, max(40, size // 2)), counter.count_text)
        tier: SummaryTier = "extractive"
        if not text:
            text, tier = both_ends(material), "ends"
        return self._checked(Answer(clean(text)), tier, material, attempts, counter)

    def _checked(
        self, answer: Answer, tier: SummaryTier, material: Material, attempts: _Attempts, counter: Counter
    ) -> Summary:
        size = sum(counter.count_text(row.content) for row in material.rows)
        most = min(self._restored, max(0, size - counter.count_text(answer.text)), material.budget // 2)
        text, added = restored(answer.text, material, counter.count_text, most)
        return Summary(
            text, tier, counter.count_text(text), answer.memories, answer.facts, added, tuple(attempts.failures),
            attempts.model if tier in ("full", "partial") else "", attempts.calls, attempts.cost_usd, material.depth,
        )  # fmt: skip


def _judged(answer: Answer, material: Material, counter: Counter) -> Answer | str:
    """The answer, cut to its budget where it is only a little too long; or what is wrong with it."""
    size = sum(counter.count_text(row.content) for row in material.rows)
    tokens = counter.count_text(answer.text)
    if tokens > size or tokens > _TOO_LONG * material.budget:
        return f"it took {tokens} tokens where {min(size, material.budget)} were asked for"
    if not same_language(answer.text, material):
        return "it was in another language than the conversation"
    if is_noise(answer.text):
        return "it was noise"
    if tokens > material.budget:
        return replace(answer, text=_cut_to(answer.text, material.budget, counter))
    return answer


def _cut_to(text: str, budget: int, counter: Counter) -> str:
    """Whole lines from the start, as many as fit; the most important come first."""
    kept: list[str] = []
    left = budget
    for line in text.splitlines():
        left -= counter.count_text(line) + 1
        if left < 0:
            break
        kept.append(line)
    return "\n".join(kept) or text[: budget * 3]
