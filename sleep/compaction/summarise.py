"""Summarises removed messages at the best available tier: full, partial, extractive, both ends.

- Every tier returns a checked `Summary`: values missing in the text are appended verbatim, our delimiters are escaped,
  and it is smaller than its source. Other model answers are rejected (F12, F25).
- No request exceeds its model's window: text is sent in chunks of a quarter of the smaller of both models' windows
  (F05). Chunks are summarised concurrently, each with a part of the length, and concatenated; if parts would be too
  short, or a sleep budget is counted per call, each call extends the summary of earlier chunks.
- The provider's cached prompt is reused if that is cheaper than the economical model (F23).
- Calls and costs are counted before the answer is parsed. Failures are of three kinds with different consequences: too
  long (smaller chunks), unusable (retry or give up), unavailable (no model).
- Models are limited in time. Errors are listed in `failures`; only cancellation and `StoreError` are raised.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import field, replace

from assistant.context.tokens import TokenCounter
from assistant.core.dataclass import dataclass
from assistant.core.errors import BudgetExceeded, ModelError
from assistant.core.messages import Message, Usage
from assistant.core.model_api import ModelRequest
from assistant.core.ports import Model, ModelPair, UseModels
from sleep.compaction.answer import (
    DECLINED,
    BadSummaryAnswer,
    SummaryAnswer,
    SummaryOverflow,
    SummaryUnusable,
    append_answers,
    limit_answer,
    merge_answers,
    parse_summary_answer,
)
from sleep.compaction.budget import OFFLINE, CostFunction, SleepBudget, complete, cost_of_reply
from sleep.compaction.extractive import summarise_without_model
from sleep.compaction.key_facts import collect_key_facts
from sleep.compaction.prompts import (
    SummaryPrompts,
    build_summary_request,
    render_cached_prompt_question,
    render_instructions,
    split_evenly,
    split_transcript,
)
from sleep.compaction.validate import is_same_language, restore_missing_values
from sleep.compaction.values import CachedPrompt, Summary, SummaryEstimate, SummaryInput, SummaryTier
from sleep.rules.secrets import find_secret_values, leave_out_secrets

_SHARE_OF_WINDOW = 4
_LEAST_CHUNK = 500
# Chunks are summarised concurrently if each has at least this many tokens of the summary.
_LEAST_PART = 150
_ROOM_FOR_MEMORIES = 800
# Even in a small context, standing wishes need this room.
_ROOM_FOR_WISHES = 400
_ROOM_OF_BUDGET = 1.5
_TRIES = 2
_ANOTHER_LANGUAGE = "the answer was in another language than the conversation"


@dataclass(frozen=True, slots=True)
class _SummaryJob:
    """A summary in progress.

    - `models`: fixed for the whole summary.
    - `source`: tokens of the material in the view.
    - `most`: tokens per chunk.
    """

    material: SummaryInput
    models: ModelPair
    counter: TokenCounter
    attempts: SummaryAttempts
    source: int
    most: int = _LEAST_CHUNK
    sleep_budget: SleepBudget | None = None

    async def texts(self, most: int, *, partial: bool) -> list[str]:
        """Return the material in chunks of `most` tokens; in a thread, since it may be long."""
        return await asyncio.to_thread(
            split_transcript, self.material.rows, most, self.counter.count_text, partial=partial
        )

    @property
    def context_tokens(self) -> int:
        """Limit of the additional context of a chunk."""
        return self.most // 2

    @property
    def room(self) -> int:
        """Output limit in tokens."""
        return int(self.material.budget * _ROOM_OF_BUDGET) + _ROOM_FOR_MEMORIES


@dataclass(frozen=True, slots=True)
class Summariser:
    """Summarises material. Stateless between calls."""

    use_models: UseModels
    prompts: SummaryPrompts
    count_for: Callable[[str], TokenCounter]
    cost: CostFunction
    restored_max_tokens: int = field(kw_only=True)  # maximum appended verbatim
    timeout_seconds: float = field(kw_only=True)  # for all calls of a summary
    # by (provider, model): the prompt size from which prices rise; None if they never do
    price_rise: Callable[[str, str], int | None] = field(kw_only=True, default=lambda provider, model: None)
    # called between the steps of background work, in its thread, so that turns get the interpreter
    rest: Callable[[], None] | None = field(kw_only=True, default=None)

    async def max_chunk_tokens(self) -> int:
        """Return the maximum tokens to summarise in one call."""
        with self.use_models() as models:
            return await self._max_chunk_tokens(models)

    async def _max_chunk_tokens(self, models: ModelPair) -> int:
        """Return a quarter of the smaller window, and at most half the size from which prices rise."""
        windows = [(await model.limits()).window for model in (models.writing, models.answering)]
        most = min(windows) // _SHARE_OF_WINDOW
        if (rise := self.price_rise(models.writing.provider, models.writing.name)) is not None:
            most = min(most, rise // 2)
        return max(_LEAST_CHUNK, most)

    async def summarise(
        self,
        material: SummaryInput,
        *,
        cached_prompt: CachedPrompt | None = None,
        without_model: bool = False,
        sleep_budget: SleepBudget | None = None,
    ) -> Summary:
        """Summarise; without a model if `without_model` is set or `sleep_budget` is exhausted. Raises `StoreError` if a
        call cannot be metered."""
        with self.use_models() as models:
            job = replace(self._job(material, models), sleep_budget=sleep_budget)
            answer = None if without_model else await self._ask_models(job, cached_prompt)
        # In a thread: thousands of messages take a second.
        if answer is not None:
            return await asyncio.to_thread(self._checked, *answer, job)
        return await asyncio.to_thread(self._without_model, job)

    async def _ask_models(
        self, job: _SummaryJob, cached_prompt: CachedPrompt | None
    ) -> tuple[SummaryAnswer, SummaryTier] | None:
        if job.models.writing.provider == OFFLINE:
            return None
        try:
            async with asyncio.timeout(self.timeout_seconds):
                return await self._by_model(replace(job, most=await self._max_chunk_tokens(job.models)), cached_prompt)
        except TimeoutError:
            why = f"no summary after {self.timeout_seconds:g} seconds (compaction.summary_seconds)"
            job.attempts.failures.append(why)
            return None

    async def estimate(self, material: SummaryInput, *, cached_prompt: CachedPrompt | None = None) -> SummaryEstimate:
        """Return the approximate usage of `summarise` if no retries are needed."""
        with self.use_models() as models:
            writer, answerer = models.writing, models.answering
            if writer.provider == OFFLINE:
                return SummaryEstimate(writer.name, 0, 0, 0, 0.0)
            job = replace(self._job(material, models), most=await self._max_chunk_tokens(models))
            reused = await self._reused(cached_prompt, job) if cached_prompt is not None else None
            model, (usage, calls) = (writer, await self._chunked(job)) if reused is None else (answerer, (reused, 1))
            usd = self.cost(model.provider, model.name, usage)
            return SummaryEstimate(model.name, calls, usage.prompt, usage.output, usd)

    def _job(self, material: SummaryInput, models: ModelPair) -> _SummaryJob:
        counter = self.count_for(models.writing.name)
        source = sum(counter.count_message(row) for row in material.rows)
        return _SummaryJob(material, models, counter, SummaryAttempts(), source)

    # ------------------------------------------------------------------------------------------------------------ tiers

    async def _by_model(self, job: _SummaryJob, live: CachedPrompt | None) -> tuple[SummaryAnswer, SummaryTier] | None:
        """Return the answer and its tier, or None. Chunks that are too long are halved once, then summarised partially.
        Other failures are final, unless a message was too large to be shown in full."""
        if live is not None and (answer := await self._over_live(live, job)) is not None:
            return answer, "full"
        size = job.most
        tier: SummaryTier = "full"
        while True:
            partial = tier == "partial"
            try:
                return await self._side_by_side(job, await job.texts(size, partial=partial)), tier
            except SummaryUnusable as error:
                job.attempts.failures.append(str(error))
                if partial:
                    return None
                if isinstance(error, SummaryOverflow):
                    size, tier = size // 2, "partial" if size < job.most else "full"
                elif isinstance(error, BadSummaryAnswer) and (
                    await job.texts(size, partial=True) != await job.texts(size, partial=False)
                ):
                    tier = "partial"
                else:
                    return None

    async def _side_by_side(self, job: _SummaryJob, texts: list[str]) -> SummaryAnswer:
        """Summarise chunks in as many groups as the length permits. Raises `SummaryUnusable`."""
        if not texts:
            raise SummaryUnusable("there was nothing to summarise")
        most = 1 if job.sleep_budget is not None and job.sleep_budget.is_limited else job.material.budget // _LEAST_PART
        groups = split_evenly(texts, max(1, most))
        part = replace(job, material=replace(job.material, budget=job.material.budget // len(groups)))
        tasks = [asyncio.create_task(self._rolling(part, group)) for group in groups]
        try:
            return append_answers(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _rolling(self, job: _SummaryJob, texts: Sequence[str]) -> SummaryAnswer:
        """Summarise chunks in sequence, each call extending the summary. Raises `SummaryUnusable`."""
        so_far = SummaryAnswer("")
        for text in texts:
            so_far = merge_answers(so_far, await self._piece(job, text, so_far.text))
        return so_far

    async def _piece(self, job: _SummaryJob, text: str, so_far: str) -> SummaryAnswer:
        """Summarise one chunk, with one retry that names the error. Raises `SummaryUnusable`."""
        model, why = job.models.writing, ""
        limits = await model.limits()
        for _ in range(_TRIES):
            request = build_summary_request(
                self.prompts,
                job.material,
                text,
                job.counter.count_text,
                summary_so_far=so_far,
                last_error=why,
                max_context_tokens=job.context_tokens,
                max_output=min(limits.max_output, job.room),
            )
            prompt = job.counter.corrected(_tokens_of(request, job.counter))
            if prompt + request.max_output_tokens > limits.window:
                raise SummaryOverflow(f"{prompt} tokens would not fit into a window of {limits.window}")
            try:
                return await self._ask(model, request, job)
            except BadSummaryAnswer as error:
                why = str(error)
            if why == DECLINED:
                break
        raise BadSummaryAnswer(why)

    async def _ask(self, model: Model, request: ModelRequest, job: _SummaryJob) -> SummaryAnswer:
        """Return an answer of valid length and language. Raises `SummaryUnusable`."""
        if job.sleep_budget is not None and not job.sleep_budget.allows_call(model, request):
            raise SummaryUnusable(job.sleep_budget.exhausted_reason)
        answer = await request_summary(model, request, job.material.session, self.cost, job.attempts, job.sleep_budget)
        if isinstance(answer, SummaryAnswer):
            if not is_same_language(answer.text, job.material):
                raise BadSummaryAnswer(_ANOTHER_LANGUAGE)
            answer = limit_answer(answer, job.material.budget, job.source, job.counter.count_text)
        if isinstance(answer, str):
            raise BadSummaryAnswer(answer)
        return answer

    # ------------------------------------------------------------------------------------------------------------- live

    async def _over_live(self, live: CachedPrompt, job: _SummaryJob) -> SummaryAnswer | None:
        """Ask over the cached prompt, with one message added (F23). None if that is more expensive or unusable."""
        if await self._reused(live, job) is None:
            return None
        model = job.models.answering
        question = render_cached_prompt_question(self.prompts, job.material, job.context_tokens, job.counter.count_text)
        last = len(live.request.messages) - 1
        request = replace(
            live.request,
            messages=(*live.request.messages, Message("user", question)),
            cache_boundaries=tuple(dict.fromkeys((*live.request.cache_boundaries, last)))[-2:],
            max_output_tokens=min((await model.limits()).max_output, job.room),
        )
        try:
            return await self._ask(model, request, job)
        except SummaryUnusable as error:
            job.attempts.failures.append(f"over the live prompt: {error}")
            return None

    async def _reused(self, live: CachedPrompt, job: _SummaryJob) -> Usage | None:
        """Return the usage of a call over the cached prompt if it is for the answering model, contains all removed
        messages, fits, and is cheaper than the economical model; else None."""
        model, writer = job.models.answering, job.models.writing
        if live.model != model.name or job.material.depth > 1 or not _holds(live.request, job.material):
            return None
        question = render_cached_prompt_question(self.prompts, job.material, job.context_tokens, job.counter.count_text)
        tokens = job.counter.corrected(job.counter.count_text(question))
        if live.prompt_tokens + tokens + job.room > (await model.limits()).window:
            return None
        usage = Usage(input=tokens, output=job.material.budget, cache_read=live.prompt_tokens)
        reused = self.cost(model.provider, model.name, usage)
        chunked = self.cost(writer.provider, writer.name, (await self._chunked(job))[0])
        return usage if reused is not None and chunked is not None and reused < chunked else None

    async def _chunked(self, job: _SummaryJob) -> tuple[Usage, int]:
        """Return the approximate usage and number of calls of chunked summarising."""
        texts = await job.texts(job.most, partial=False)
        around = job.counter.count_text(render_instructions(self.prompts, job.material))
        tokens = sum(job.counter.count_text(text) + around for text in texts)
        carried = job.material.budget * max(0, len(texts) - 1)
        usage = Usage(input=job.counter.corrected(tokens + carried), output=job.material.budget * len(texts))
        return usage, len(texts)

    # ---------------------------------------------------------------------------------------------------- without model

    def _without_model(self, job: _SummaryJob) -> Summary:
        text, tier = summarise_without_model(job.material, job.source, job.counter.count_text, self._rest_during(job))
        return self._checked(SummaryAnswer(text, facts=collect_key_facts(job.material)), tier, job)

    def _rest_during(self, job: _SummaryJob) -> Callable[[], None] | None:
        """Only in background work, for which nobody waits."""
        return self.rest if job.sleep_budget is not None else None

    def _checked(self, answer: SummaryAnswer, tier: SummaryTier, job: _SummaryJob) -> Summary:
        """Append missing values, with limits that keep the summary smaller than its source, and extra room for
        wishes."""
        material, count, attempts = job.material, job.counter.count_text, job.attempts
        shorter = job.source - 1 - count(answer.text)
        most = min(self.restored_max_tokens, material.restored_max_tokens, material.budget // 2, shorter)
        wishes = min(max(most, _ROOM_FOR_WISHES), shorter - most)
        rest = self._rest_during(job)
        checked = restore_missing_values(answer.text, material, count, most, wishes, rest=rest)
        # Passwords are not sent with every request; the journal has them, and recall on demand.
        secrets = find_secret_values(row.content for row in material.rows)
        text = leave_out_secrets(checked.text, secrets)
        facts = {
            kind: tuple(leave_out_secrets(value, secrets) for value in values) for kind, values in answer.facts.items()
        }
        return Summary(
            text,
            tier,
            count(text),
            answer.memories,
            facts,
            tuple(leave_out_secrets(line, secrets) for line in checked.restored),
            tuple(attempts.failures),
            attempts.model if tier in ("full", "partial") else "",
            attempts.calls,
            attempts.cost_usd,
            material.depth,
        )


def _holds(request: ModelRequest, material: SummaryInput) -> bool:
    """Return whether the request contains every removed message with text."""
    there = {message.id for message in request.messages}
    return all(
        row.id in there
        for row in material.rows
        if row.id is not None and row.role in ("user", "assistant") and row.content.strip()
        if not row.metadata.get("internal")
    )


def _tokens_of(request: ModelRequest, counter: TokenCounter) -> int:
    system = sum(counter.count_text(block.text) for block in request.system)
    return system + sum(counter.count_message(message) for message in request.messages)


@dataclass(slots=True)
class SummaryAttempts:
    """Record of attempts for one summary. `cost_usd` is None once a cost is unknown; `model` answered last."""

    failures: list[str] = field(default_factory=list)
    calls: int = 0
    cost_usd: float | None = 0.0
    model: str = ""

    def record_answer(self, cost_usd: float | None, model: str) -> None:
        self.model = model
        both = self.cost_usd is not None and cost_usd is not None
        self.cost_usd = (self.cost_usd or 0.0) + (cost_usd or 0.0) if both else None


async def request_summary(
    model: Model,
    request: ModelRequest,
    session: str,
    cost: CostFunction,
    attempts: SummaryAttempts,
    sleep_budget: SleepBudget | None = None,
) -> SummaryAnswer | str:
    """Return the answer, or a short reason why it is unusable; with a `sleep_budget` it counts as background. Raises
    `SummaryOverflow`, and `SummaryUnusable` if no model answered."""
    attempts.calls += 1
    try:
        reply = await complete(model, request, "summary" if sleep_budget is None else "sleep_summary", session)
    except ModelError as error:
        if sleep_budget is not None and isinstance(error, BudgetExceeded):
            sleep_budget.record_refusal(error)
        raise (SummaryOverflow if error.kind == "overflow" else SummaryUnusable)(error.reason) from None
    by = reply.message.model or model.name
    attempts.record_answer(cost_of_reply(model, reply, cost), by)
    if reply.stop == "overflow":
        raise SummaryOverflow("the window was full before the answer was whole")
    if by == OFFLINE:
        raise SummaryUnusable("only the built-in model answered")
    return parse_summary_answer(reply)
