"""Searches the web with a service the owner chose: their own SearXNG, Brave or Tavily.

Only the query is sent, with the owner's key for the service. Results are untrusted text of limited size.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from assistant.core.dataclass import dataclass
from assistant.core.errors import ToolError
from assistant.core.network_errors import describe_connection_error
from assistant.core.text import shorten_line

SearchProvider = Literal["", "searxng", "brave", "tavily"]

# Brave: https://api-dashboard.search.brave.com/app/documentation/web-search/get-started
# Tavily: https://docs.tavily.com/documentation/api-reference/endpoint/search
# SearXNG: https://docs.searxng.org/dev/search_api.html (its settings must allow the format json)
_DEFAULT_URLS: Mapping[SearchProvider, str] = {
    "brave": "https://api.search.brave.com",
    "tavily": "https://api.tavily.com",
}
_NEED_KEY: frozenset[SearchProvider] = frozenset(["brave", "tavily"])
_NOTHING = "The web was not searched"
_TIMEOUT_SECONDS = 20.0
_MAX_ANSWER_BYTES = 4 * 1024 * 1024
_MAX_TITLE = 200
_MAX_EXCERPT = 500
_REFUSED = {401: "the key is not valid", 403: "the key may not search, or the format is off", 429: "too many searches"}


@dataclass(frozen=True, slots=True)
class WebResult:
    title: str
    address: str
    excerpt: str


@dataclass(frozen=True, slots=True)
class WebSearch:
    provider: SearchProvider
    url: str = ""
    key: str = field(default="", repr=False)
    timeout_seconds: float = _TIMEOUT_SECONDS

    async def search(self, query: str, count: int) -> list[WebResult]:
        """Return at most `count` results, best first. Raises `ToolError`."""
        import httpx2  # loaded at first use

        if self.provider in _NEED_KEY and not self.key:
            raise ToolError(f"{_NOTHING}: `assistant config secret set web_search.key` stores the key that it needs.")
        try:
            async with httpx2.AsyncClient(timeout=self.timeout_seconds) as client:
                response = await client.send(self._request(client, query, count), stream=True)
                data = await _read(response)
                if not response.is_success:
                    why = _REFUSED.get(response.status_code, response.reason_phrase or "no reason given")
                    raise ToolError(f"{_NOTHING}: {self.provider} answered {response.status_code}, {why}.")
                found = self._results(json.loads(data))
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            why = describe_connection_error(error)
            raise ToolError(f"{_NOTHING}: {self.provider} cannot be reached ({why}).") from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise ToolError(f"{_NOTHING}: {self.provider} answered in an unknown form.") from None
        return found[:count]

    def _request(self, client: Any, query: str, count: int) -> Any:
        base = (self.url or _DEFAULT_URLS.get(self.provider, "")).rstrip("/")
        match self.provider:
            case "brave":
                headers = {"X-Subscription-Token": self.key, "Accept": "application/json"}
                asked = {"q": query, "count": str(count)}
                return client.build_request("GET", f"{base}/res/v1/web/search", params=asked, headers=headers)
            case "tavily":
                headers = {"Authorization": f"Bearer {self.key}"}
                return client.build_request(
                    "POST", f"{base}/search", json={"query": query, "max_results": count}, headers=headers
                )
            case _:
                return client.build_request("GET", f"{base}/search", params={"q": query, "format": "json"})

    def _results(self, answer: Any) -> list[WebResult]:
        rows = answer.get("web", {}).get("results", []) if self.provider == "brave" else answer["results"]
        excerpt = "description" if self.provider == "brave" else "content"
        return [
            WebResult(
                shorten_line(str(row.get("title") or ""), _MAX_TITLE),
                str(row["url"]),
                shorten_line(str(row.get(excerpt) or ""), _MAX_EXCERPT),
            )
            for row in rows
        ]


async def _read(response: Any) -> bytes:
    data = bytearray()
    try:
        async for chunk in response.aiter_bytes():
            data += chunk
            if len(data) > _MAX_ANSWER_BYTES:
                raise ToolError(f"{_NOTHING}: the answer is too large.")
    finally:
        await response.aclose()
    return bytes(data)
