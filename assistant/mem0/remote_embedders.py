"""Embedders behind an address (OpenAI-compatible servers, and Ollama). Their requests are metered like calls of a model
(I9): reserved before, settled after, refused over the budget.

- A request has a few texts and a timeout; the key is only in a header and never in errors. Every fault is a
  `MemoryUnavailable` that says who did not answer and what to check.
- No request is sent without a reservation. Tokens the provider does not report are estimated. A refused request cost
  nothing; an interrupted one is assumed to have cost its texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import httpx2
import numpy as np

from assistant.core.dataclass import dataclass
from assistant.core.errors import BudgetExceeded, MemoryUnavailable
from assistant.core.messages import Usage
from assistant.core.model_api import ModelCall, text_fingerprint
from assistant.core.ports import LedgerPort
from assistant.core.text import host_of_address
from assistant.mem0.codec import EmbedderSettings
from assistant.mem0.vectors import Vectors, embed_in_batches
from assistant.store.rows import clean_text

_CHARACTERS_A_TOKEN = 4


@dataclass(slots=True)
class EmbeddingBill:
    """The cost of a request in tokens; None until known."""

    tokens: int | None = None


class EmbeddingMeter:
    """Meters one provider. `price` returns US dollars per token of a model, None if unknown."""

    def __init__(
        self, ledger: LedgerPort, provider: str, price: Callable[[str], float | None], clock: Callable[[], datetime]
    ) -> None:
        self._ledger = ledger
        self._provider = provider
        self._price = price
        self._clock = clock

    @contextmanager
    def count_request(self, model: str, texts: Sequence[str], *, probe: bool = False) -> Iterator[EmbeddingBill]:
        """Context for one request, which puts the billed tokens into the bill. A `probe` may be sent repeatedly. Raises
        `MemoryUnavailable` over the budget; then nothing may be sent."""
        price = self._price(model)
        # A token is rarely less than a character, and mostly several.
        worst = sum(map(len, texts))
        usd = None if price is None else worst * price
        fingerprint = "" if probe else text_fingerprint("embedding", model, texts)
        call = ModelCall("embedding", self._provider, model, worst, 0, usd, fingerprint=fingerprint)
        try:
            reservation = self._ledger.reserve(call, self._clock())
        except BudgetExceeded as error:
            raise MemoryUnavailable(
                f"{error.reason}. The journal keeps everything; the next sleep tries again."
            ) from error
        bill = EmbeddingBill()
        try:
            yield bill
        finally:
            tokens = -(-worst // _CHARACTERS_A_TOKEN) if bill.tokens is None else bill.tokens
            cost = None if price is None else tokens * price
            self._ledger.settle_reservation(reservation, Usage(input=tokens, cost_usd=cost), self._clock())


OPENAI_URL = "https://api.openai.com/v1"
OPENAI_MODEL = "text-embedding-3-small"
OLLAMA_URL = "http://localhost:11434"
OLLAMA_MODEL = "nomic-embed-text"

_CONNECT_SECONDS = 10.0
_TEXTS_AT_ONCE = 64
# Providers refuse texts beyond their window, mostly 8192 tokens; a character is at most about a token.
_MAX_TEXT_LENGTH = 8000
_KEPT = "The journal keeps everything"


class RemoteEmbedder:
    """One model at one address, of the kind "openai" (any OpenAI-compatible address) or "ollama". `dimensions` is
    determined by a first request. `seconds` limits one request; `meter` counts each (None: not counted)."""

    def __init__(
        self, settings: EmbedderSettings, *, seconds: float = 30.0, meter: EmbeddingMeter | None = None
    ) -> None:
        self._is_ollama = settings.kind == "ollama"
        default_model, default_url = (OLLAMA_MODEL, OLLAMA_URL) if self._is_ollama else (OPENAI_MODEL, OPENAI_URL)
        self._model = settings.model or default_model
        self.name = f"{settings.kind}:{self._model}"
        self._meter = meter
        url = settings.url or default_url
        self._host = host_of_address(url)
        self._dimensions = 0
        with_key = bool(settings.key) and not self._is_ollama
        self._client = httpx2.Client(
            base_url=url.rstrip("/") + "/",
            headers={"Authorization": f"Bearer {settings.key}"} if with_key else {},
            timeout=httpx2.Timeout(seconds, connect=min(seconds, _CONNECT_SECONDS)),
        )

    @property
    def dimensions(self) -> int:
        """Asked once, with a probe text. Raises like `embed`."""
        if not self._dimensions:
            self._dimensions = len(self._ask(["dimensions"], probe=True)[0])
        return self._dimensions

    def embed(self, texts: Sequence[str]) -> Vectors:
        return embed_in_batches(texts, self.dimensions, _TEXTS_AT_ONCE, self._rows)

    def _rows(self, texts: list[str]) -> Vectors:
        vectors = self._ask([text[:_MAX_TEXT_LENGTH] for text in texts])
        if vectors.shape[1] != self.dimensions:
            raise self._fault(f"answered with {vectors.shape[1]} dimensions after {self.dimensions}")
        return vectors

    def close(self) -> None:
        self._client.close()

    def _ask(self, texts: list[str], *, probe: bool = False) -> Vectors:
        if self._meter is None:
            return self._send(texts, EmbeddingBill())
        with self._meter.count_request(self._model, texts, probe=probe) as bill:
            return self._send(texts, bill)

    def _send(self, texts: list[str], bill: EmbeddingBill) -> Vectors:
        body: dict[str, Any] = {"model": self._model, "input": [clean_text(text) for text in texts]}
        body |= {"truncate": True} if self._is_ollama else {"encoding_format": "float"}
        try:
            answer = self._client.post("api/embed" if self._is_ollama else "embeddings", json=body)
            bill.tokens = 0 if answer.is_error else None
            answer.raise_for_status()
            content = answer.json()
            bill.tokens = self._read_tokens(content)
            vectors = np.asarray(self._read_vectors(content), dtype=np.float32)
        except httpx2.TimeoutException as error:
            raise self._fault("did not answer in time") from error
        except httpx2.HTTPStatusError as error:
            raise self._fault(_refusal(error.response)) from error
        except httpx2.HTTPError as error:
            if isinstance(error, httpx2.ConnectError):
                bill.tokens = 0
            raise self._fault(f"cannot be reached ({type(error).__name__})") from error
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise self._fault("answered with something that is no vectors") from error
        if vectors.ndim != 2 or len(vectors) != len(texts) or not vectors.shape[1] or not np.isfinite(vectors).all():
            raise self._fault("answered with something that is no vectors")
        return vectors

    def _read_vectors(self, answer: Any) -> list[Any]:
        """Return one vector per text, in order."""
        if self._is_ollama:
            return list(answer["embeddings"])
        return [row["embedding"] for row in sorted(answer["data"], key=lambda row: int(row["index"]))]

    def _read_tokens(self, answer: Any) -> int | None:
        """Return the reported number of tokens, None if missing."""
        usage, name = (answer, "prompt_eval_count") if self._is_ollama else (answer.get("usage"), "prompt_tokens")
        count = usage.get(name) if isinstance(usage, Mapping) else None
        return count if isinstance(count, int) and not isinstance(count, bool) and count >= 0 else None

    def _fault(self, what: str) -> MemoryUnavailable:
        return MemoryUnavailable(
            f"The embedder at {self._host} {what}. {_KEPT}; check `[memory] embedder_*`, the next sleep tries again."
        )


def _refusal(answer: httpx2.Response) -> str:
    if answer.status_code in (401, 403):
        return "does not accept the key"
    if answer.status_code == 404:
        return "does not know the model or the address"
    return f"refused with status {answer.status_code}"
