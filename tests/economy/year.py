"""A year of a person's life, in calls to a model that nobody makes: what it costs with each way of keeping the context
small. The very functions of the runtime decide (`assistant/context/economy.py`, `assistant/context/rhythm.py`).

`make economy ARGS='[--seed 1] [--model claude-sonnet-4-6]'` prints dollars a month, with a picture.

What always holds: everything follows from the seed. A call pays for its prompt as a provider's cache would have it:
what stands before the first change is read while the cache lives, the rest is written to it. Lengths of messages follow
the quantiles of those in LoCoMo's ten conversations (5,882 messages); an answer is three such messages long. Naps and
nights are there: the background looks after each answer, and when the prompt is forgotten.
"""

from __future__ import annotations

import argparse
import random
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal, get_args

from assistant.commands.usage import draw_bar
from assistant.context.economy import (
    LIFETIME_SECONDS,
    CallForecast,
    CallPrices,
    ContextState,
    EconomyMode,
    choose_cache_lifetime,
    decide,
)
from assistant.context.rhythm import LEARNING_PERIOD, Rhythm, learn_rhythm
from assistant.core.messages import Usage
from assistant.core.model_api import FULL_CONTEXT_TOKENS, CacheLifetime
from assistant.models.prices import MILLION, Price
from tests.study.measure import list_prices

Person = Literal["evening talker", "all-day worker", "weekend only"]
Policy = Literal["off", "balanced", "thrifty", "sliding window"]

BEGUN = datetime(2026, 1, 1, tzinfo=UTC)
# Characters of a message of LoCoMo, at every twentieth of the distribution.
LENGTHS = (2, 38, 50, 59, 66, 73, 80, 86, 94, 101, 109, 117, 127, 137, 148, 161, 175, 193, 219, 257, 454)
_CHARACTERS_A_TOKEN = 4
_ANSWER = 3
_SUMMARY_MODEL = "claude-haiku-5-5"
_FRAME, _VOLATILE = 2_600, 60
# What a summary takes in a small context, with what is put back, and what the newest twenty messages take.
_SUMMARY, _RECENT = 700, 20 * 75
_TARGET, _SLEEP_THRESHOLD, _THRESHOLD = 0.30, 0.50, 0.80
SLIDING_TOKENS = 20_000
_NIGHT, _NAP = timedelta(hours=4), timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class Habit:
    """When somebody writes: on which days of the week, in how many bursts, from which hour to which, how many messages
    a burst has on average, and how long they are apart."""

    days: tuple[int, ...]
    bursts: tuple[int, int]
    hours: tuple[float, float]
    messages: int
    seconds: tuple[int, int]


HABITS: dict[Person, Habit] = {
    "evening talker": Habit((0, 1, 2, 3, 4, 5, 6), (1, 3), (18.5, 23), 9, (25, 180)),
    "all-day worker": Habit((0, 1, 2, 3, 4), (8, 14), (8.5, 18.5), 5, (30, 240)),
    "weekend only": Habit((5, 6), (3, 6), (9, 22), 10, (25, 200)),
}


def messages_of(person: Person, seed: int, days: int = 365) -> list[tuple[datetime, int, int]]:
    """(when, tokens of the message, tokens of its answer), oldest first."""
    chance, habit = random.Random(f"{person} {seed}"), HABITS[person]
    times: list[datetime] = []
    for day in range(days):
        at_midnight = BEGUN + timedelta(days=day)
        if at_midnight.weekday() not in habit.days:
            continue
        for _ in range(chance.randint(*habit.bursts)):
            at = at_midnight + timedelta(hours=chance.uniform(*habit.hours))
            for _ in range(max(1, round(chance.expovariate(1 / habit.messages)))):
                times.append(at)
                at += timedelta(seconds=chance.uniform(*habit.seconds))
    return [(at, _tokens(chance), sum(_tokens(chance) for _ in range(_ANSWER))) for at in sorted(times)]


def _tokens(chance: random.Random) -> int:
    place = chance.random() * (len(LENGTHS) - 1)
    low = int(place)
    characters = LENGTHS[low] + (LENGTHS[low + 1] - LENGTHS[low]) * (place - low)
    return max(1, round(characters / _CHARACTERS_A_TOKEN))


@dataclass(slots=True)
class Year:
    """What came of it: dollars by month, of them for summaries; calls, prompts, compactions."""

    months: list[float] = field(default_factory=lambda: [0.0] * 12)
    summaries: float = 0.0
    calls: int = 0
    cold: int = 0
    hours: int = 0  # calls whose prompt was cached for an hour
    prompt_tokens: int = 0
    compactions: int = 0

    def pay(self, at: datetime, usd: float) -> None:
        self.months[min(11, (at - BEGUN).days * 12 // 365)] += usd

    @property
    def usd(self) -> float:
        return sum(self.months)


class YearOfCalls:
    """One person with one policy, call by call."""

    def __init__(self, person: Person, policy: Policy, model: str, seed: int, days: int = 365) -> None:
        prices = list_prices()["anthropic"]
        price, summary = prices.price_for_model(model), prices.price_for_model(_SUMMARY_MODEL)
        assert price is not None and summary is not None, "a model without a price"
        self._price: Price = price
        self._summary_price: Price = summary
        self._policy = policy
        self._mode: EconomyMode = "off" if policy in ("off", "sliding window") else policy
        self._said = messages_of(person, seed, days)
        self._times = [at for at, _, _ in self._said]
        self.year = Year()
        self._history: list[int] = []  # tokens of each message with its answer, in view
        self._summaries = 0  # tokens of all summaries in view
        self._cached, self._cached_until = 0, BEGUN  # how much of the prompt the provider has, and until when
        self._lifetime: CacheLifetime = "5m"
        self._rhythm: tuple[datetime, Rhythm] | None = None
        self._prepared = False

    def live(self) -> Year:
        for number, (at, said, answered) in enumerate(self._said):
            if number:
                self._rest(self._said[number - 1][0], at)
            self._call(at, said, answered)
        return self.year

    def _call(self, at: datetime, said: int, answered: int) -> None:
        is_cold = at >= self._cached_until
        if is_cold:
            self._cached, self._lifetime = 0, self._choose_lifetime(at)
            self.year.cold += 1
            if self._prepared:
                self._compact(at, self._decide(at, is_cold=True)[1])
        self._make_room(at)
        prompt = self._standing + said
        read = min(self._cached, prompt)
        hour = prompt - read if self._lifetime == "1h" else 0
        usage = Usage(_VOLATILE, answered, read, prompt - read, cache_write_hour=hour)
        self.year.pay(at, self._price.cost_of_call(usage))
        self.year.calls += 1
        self.year.hours += self._lifetime == "1h"
        self.year.prompt_tokens += prompt
        self._history.append(said + answered)
        self._cached = prompt
        self._cached_until = at + timedelta(seconds=LIFETIME_SECONDS[self._lifetime])
        step, size = self._decide(at, is_cold=False)
        if step == "compact":
            self._compact(at, size)
        self._prepared = self._prepared or step == "prepare"

    def _rest(self, since: datetime, until: datetime) -> None:
        """Between two messages: the cache dies, and at night there is a sleep."""
        if self._cached_until < until:
            at = self._cached_until
            step, size = self._decide(at, is_cold=True)
            if step == "compact" or self._prepared:
                self._compact(at, size)
        night = (until - _NIGHT).date() != (since - _NIGHT).date() or until - since >= _NAP
        if night and self._policy != "sliding window" and self._standing >= _SLEEP_THRESHOLD * FULL_CONTEXT_TOKENS:
            self._compact(until, FULL_CONTEXT_TOKENS)

    def _make_room(self, at: datetime) -> None:
        if self._policy == "sliding window":
            if self._standing > SLIDING_TOKENS:
                self._keep(SLIDING_TOKENS // 2)
        elif self._standing >= _THRESHOLD * FULL_CONTEXT_TOKENS:
            self._compact(at, FULL_CONTEXT_TOKENS)

    def _compact(self, at: datetime, size: int) -> None:
        """What leaves is summarised by the small model; summaries take half of what the target leaves at most."""
        before = self._standing
        room = int(size * _TARGET) - _FRAME
        self._summaries = min(self._summaries + _SUMMARY, max(_SUMMARY, room // 2))
        self._keep(max(int(size * _TARGET), _FRAME + self._summaries + _RECENT))
        usage = Usage(max(0, before - self._standing + _SUMMARY), _SUMMARY)
        usd = self._summary_price.cost_of_call(usage)
        self.year.pay(at, usd)
        self.year.summaries += usd
        self.year.compactions += 1
        self._prepared = False

    def _keep(self, most: int) -> None:
        while len(self._history) > 1 and self._standing > most:
            self._history.pop(0)
        self._cached = min(self._cached, _FRAME)

    @property
    def _standing(self) -> int:
        return _FRAME + self._summaries + sum(self._history)

    def _decide(self, at: datetime, *, is_cold: bool) -> tuple[str, int]:
        rhythm = self._learn(at)
        cold = rhythm.share_longer(LIFETIME_SECONDS[self._lifetime], hour=at.hour)
        recent = sum(self._history[-10:])
        state = ContextState(self._standing, _FRAME, recent, FULL_CONTEXT_TOKENS, _TARGET, _SUMMARY)
        forecast = CallForecast(rhythm.calls_a_day, cold, self._added)
        decision = decide(state, self._prices(self._lifetime), forecast, self._mode, is_cold=is_cold)
        return decision.step, decision.size

    def _choose_lifetime(self, at: datetime) -> CacheLifetime:
        prices = {lifetime: self._prices(lifetime) for lifetime in get_args(CacheLifetime)}
        return choose_cache_lifetime(self._learn(at), prices, self._standing, self._added)

    @property
    def _added(self) -> float:
        return (sum(self._history) + 1_200) / (len(self._history) + 4)

    def _learn(self, at: datetime) -> Rhythm:
        if self._rhythm is None or at - self._rhythm[0] >= timedelta(hours=1):
            known = self._times[bisect_left(self._times, at - LEARNING_PERIOD) : bisect_left(self._times, at)]
            self._rhythm = at, learn_rhythm(known, UTC, at)
        return self._rhythm[1]

    def _prices(self, lifetime: CacheLifetime) -> CallPrices:
        price, summary = self._price, self._summary_price
        return CallPrices(
            price.input / MILLION,
            price.output / MILLION,
            price.cache_read / MILLION,
            price.write_rate(lifetime) / MILLION,
            summary.input / MILLION,
            summary.output / MILLION,
        )


def compare(model: str, seed: int, days: int = 365) -> dict[tuple[Person, Policy], Year]:
    return {
        (person, policy): YearOfCalls(person, policy, model, seed, days).live()
        for person in get_args(Person)
        for policy in get_args(Policy)
    }


_BAR = 40


def lines(years: dict[tuple[Person, Policy], Year], months: int = 12) -> Iterator[str]:
    for person in get_args(Person):
        of_person = {policy: years[person, policy] for policy in get_args(Policy)}
        dearest = max(year.usd for year in of_person.values())
        a_day = of_person["off"].calls / 365
        yield f"{person}: {a_day:.0f} messages a day"
        for policy, year in of_person.items():
            prompt = year.prompt_tokens // max(1, year.calls)
            yield (
                f"  {policy:<15} ${year.usd / months:>7.2f} a month  {draw_bar(year.usd / dearest, _BAR):<{_BAR}} "
                f"{year.cold / year.calls:>4.0%} cold, prompt {prompt:>7,}, {year.compactions:>5,} compactions, "
                f"{year.hours / year.calls:>4.0%} cached an hour"
            )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.economy", description="What a year costs.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--model", default="claude-sonnet-4-6")
    chosen = parser.parse_args(arguments)
    print(f"{chosen.model} answers, {_SUMMARY_MODEL} writes summaries; seed {chosen.seed}\n")
    print("\n".join(lines(compare(chosen.model, chosen.seed))))
