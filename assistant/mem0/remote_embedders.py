"""Embedders behind an address: anything that speaks OpenAI's way, and Ollama.

What always holds: a request carries a few texts and is over in time; the key goes into a header and nowhere else, not
into errors either. Every fault is a `MemoryUnavailable` that says who did not answer and what to look at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import httpx2
import numpy as np

from assistant.core.errors import MemoryUnavailable
from assistant.mem0.embedder import Vectors, embedded, encodable
from assistant.mem0.metering import Bill, Meter, Unmetered

OPENAI_URL = "https://api.openai.com/v1"
OPENAI_MODEL = "text-embedding-3-small"
OLLAMA_URL = "http://localhost:11434"
OLLAMA_MODEL = "nomic-embed-text"

_CONNECT_SECONDS = 10.0
_TEXTS_AT_ONCE = 64
# Providers refuse what is longer than their window, 8192 tokens with most; a character is at most about a token.
_LONGEST = 8000
_KEPT = "The journal keeps everything"

Ask = Callable[[list[str]], tuple[str, dict[str, Any]]]
Read = Callable[[Any], list[Any]]
Billed = Callable[[Any], int | None]
"""The tokens that an answer says it took, None where it does not."""


class RemoteEmbedder:
    """One model at one address. `dimensions` is found by asking, once. `seconds` bounds one request; `meter` counts
    each."""

    def __init__(
        self, name: str, url: str, headers: Mapping[str, str], ask: Ask, read: Read, billed: Billed, *,
        seconds: float = 30.0, meter: Meter | None = None,
    ) -> None:  # fmt: skip
        self.name = name
        self._billed = billed
        self._meter = meter or Unmetered()
        self._host = urlsplit(url).netloc or url
        self._ask = ask
        self._read = read
        self._dimensions = 0
        timeout = httpx2.Timeout(seconds, connect=min(seconds, _CONNECT_SECONDS))
        self._client = httpx2.Client(base_url=url.rstrip("/") + "/", headers=dict(headers), timeout=timeout)

    @property
    def dimensions(self) -> int:
        if not self._dimensions:
            self._dimensions = len(self._asked(["dimensions"], probe=True)[0])
        return self._dimensions

    def embed(self, texts: Sequence[str]) -> Vectors:
        return embedded(texts, self.dimensions, _TEXTS_AT_ONCE, self._rows)

    def _rows(self, texts: list[str]) -> Vectors:
        found = self._asked([text[:_LONGEST] for text in texts])
        if found.shape[1] != self.dimensions:
            raise self._fault(f"answered with {found.shape[1]} dimensions after {self.dimensions}")
        return found

    def close(self) -> None:
        self._client.close()

    def _asked(self, texts: list[str], *, probe: bool = False) -> Vectors:
        path, body = self._ask([encodable(text) for text in texts])
        model = self.name.partition(":")[2]
        with self._meter.counted(model, texts, probe=probe) as bill:
            return self._answered(path, body, len(texts), bill)

    def _answered(self, path: str, body: dict[str, Any], texts: int, bill: Bill) -> Vectors:
        try:
            answer = self._client.post(path, json=body)
            bill.tokens = 0 if answer.is_error else None
            answer.raise_for_status()
            told = answer.json()
            bill.tokens = self._billed(told)
            found = np.asarray(self._read(told), dtype=np.float32)
        except httpx2.TimeoutException as error:
            raise self._fault("did not answer in time") from error
        except httpx2.HTTPStatusError as error:
            raise self._fault(_refusal(error.response)) from error
        except httpx2.ConnectError as error:
            bill.tokens = 0
            raise self._fault(f"cannot be reached ({type(error).__name__})") from error
        except httpx2.HTTPError as error:
            raise self._fault(f"cannot be reached ({type(error).__name__})") from error
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise self._fault("answered with something that is no vectors") from error
        if found.ndim != 2 or found.shape[0] != texts or not found.shape[1] or not np.isfinite(found).all():
            raise self._fault("answered with something that is no vectors")
        return found

    def _fault(self, what: str) -> MemoryUnavailable:
        return MemoryUnavailable(
            f"The embedder at {self._host} {what}. {_KEPT}; check `[memory] embedder_*`, the next sleep tries again."
        )


def openai_embedder(
    model: str = "", url: str = "", key: str = "", *, seconds: float = 30.0, meter: Meter | None = None
) -> RemoteEmbedder:
    """Any address that speaks as OpenAI's embeddings do."""
    chosen = model or OPENAI_MODEL

    def ask(texts: list[str]) -> tuple[str, dict[str, Any]]:
        return "embeddings", {"model": chosen, "input": texts, "encoding_format": "float"}

    def read(answer: Any) -> list[Any]:
        return [row["embedding"] for row in sorted(answer["data"], key=lambda row: int(row["index"]))]

    def billed(answer: Any) -> int | None:
        return _tokens(answer.get("usage"), "prompt_tokens")

    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return RemoteEmbedder(
        f"openai:{chosen}", url or OPENAI_URL, headers, ask, read, billed, seconds=seconds, meter=meter
    )  # fmt: skip


def ollama_embedder(
    model: str = "", url: str = "", *, seconds: float = 30.0, meter: Meter | None = None
) -> RemoteEmbedder:
    chosen = model or OLLAMA_MODEL

    def ask(texts: list[str]) -> tuple[str, dict[str, Any]]:
        return "api/embed", {"model": chosen, "input": texts, "truncate": True}

    def read(answer: Any) -> list[Any]:
        return list(answer["embeddings"])

    def billed(answer: Any) -> int | None:
        return _tokens(answer, "prompt_eval_count")

    return RemoteEmbedder(
        f"ollama:{chosen}", url or OLLAMA_URL, {}, ask, read, billed, seconds=seconds, meter=meter
    )  # fmt: skip


def _tokens(told: Any, name: str) -> int | None:
    count = told.get(name) if isinstance(told, Mapping) else None
    return count if isinstance(count, int) and not isinstance(count, bool) and count >= 0 else None


def _refusal(answer: httpx2.Response) -> str:
    if answer.status_code in (401, 403):
        return "does not accept the key"
    if answer.status_code == 404:
        return "does not know the model or the address"
    return f"refused with status {answer.status_code}"
