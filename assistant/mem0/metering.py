"""What an embedder's provider is asked, counted like any call of a model (I9): reserved before each request, settled
after it, refused over the budget.

What always holds: no request leaves without a reservation. Tokens that the provider does not tell are estimated. A
request that was refused has cost nothing; of one that broke off nobody knows, so it has cost its texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from assistant.core.errors import BudgetExceeded, MemoryUnavailable
from assistant.core.messages import Usage
from assistant.core.model_api import ModelCall
from assistant.core.ports import LedgerPort
from assistant.spending.turn_guard import text_fingerprint

_CHARACTERS_A_TOKEN = 4


@dataclass(slots=True)
class Bill:
    """What a request turned out to cost, in tokens; None until that is known."""

    tokens: int | None = None


class Meter(Protocol):
    def counted(self, model: str, texts: Sequence[str], *, probe: bool = False) -> AbstractContextManager[Bill]:
        """Around one request: what was billed is put into the `Bill`. A `probe` may be sent again and again. Raises
        `MemoryUnavailable` over the budget; then nothing is to be asked."""
        ...


class Unmetered:
    """Where nobody counts."""

    @contextmanager
    def counted(self, model: str, texts: Sequence[str], *, probe: bool = False) -> Iterator[Bill]:
        yield Bill()


class LedgerMeter:
    """For one provider. `price` of a model is in US dollars a token, None where none is known."""

    def __init__(
        self, ledger: LedgerPort, provider: str, price: Callable[[str], float | None], clock: Callable[[], datetime]
    ) -> None:  # fmt: skip
        self._ledger = ledger
        self._provider = provider
        self._price = price
        self._clock = clock

    @contextmanager
    def counted(self, model: str, texts: Sequence[str], *, probe: bool = False) -> Iterator[Bill]:
        price = self._price(model)
        # A token is hardly ever less than a character, and mostly several.
        worst = sum(map(len, texts))
        usd = None if price is None else worst * price
        same = "" if probe else text_fingerprint("embedding", model, texts)
        call = ModelCall("embedding", self._provider, model, worst, 0, usd, fingerprint=same)
        try:
            reservation = self._ledger.reserve(call, self._clock())
        except BudgetExceeded as error:
            why = str(error).partition(" Your message is kept")[0].rstrip(".")
            raise MemoryUnavailable(f"{why}. The journal keeps everything; the next sleep tries again.") from error
        bill = Bill()
        try:
            yield bill
        finally:
            tokens = -(-worst // _CHARACTERS_A_TOKEN) if bill.tokens is None else bill.tokens
            cost = None if price is None else tokens * price
            self._ledger.settle(reservation, Usage(input=tokens, cost_usd=cost), self._clock())
