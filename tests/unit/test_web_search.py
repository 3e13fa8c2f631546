"""Services that search the web: what is asked of each, what is read of their answers, and what is said without one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from assistant.core.errors import ToolError
from assistant.documents.web_search import SearchProvider, WebResult, WebSearch
from tests.support.page_server import listening

FOUND = [WebResult("Lund harbour", "https://example.org/harbour", "Opens on the third of May.")]


@contextmanager
def service(provider: SearchProvider, answer: Any = None, status: int = 0) -> Iterator[str]:
    """Refuses what the real one refuses, and answers in its form."""

    class Handler(BaseHTTPRequestHandler):
        def _answer(self, code: int, body: Any) -> None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status or code)
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
            row = {"title": "Lund harbour", "url": "https://example.org/harbour"}
            if provider == "brave" and parts.path == "/res/v1/web/search":
                if self.headers["X-Subscription-Token"] != "key-1" or not 1 <= int(asked["count"]) <= 20:
                    return self._answer(401, {})
                rows = [{**row, "description": "Opens on the third of May."}] if asked["q"] == "lund harbour" else []
                return self._answer(200, answer or {"web": {"results": rows}})
            if provider == "searxng" and parts.path == "/search" and asked.get("format") == "json":
                return self._answer(200, answer or {"results": [{**row, "content": "Opens on the third of May."}]})
            return self._answer(404, {})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if provider != "tavily" or self.path != "/search" or self.headers["Authorization"] != "Bearer key-1":
                return self._answer(401, {"detail": {"error": "Unauthorized"}})
            row = {
                "title": "Lund harbour",
                "url": "https://example.org/harbour",
                "content": "Opens on the third of May.",
            }
            return self._answer(200, answer or {"query": body["query"], "results": [row] * body["max_results"]})

        def log_message(self, *_: object) -> None:
            return

    with listening(Handler) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.mark.parametrize("provider", ["searxng", "brave", "tavily"])
async def test_each_service_is_asked_in_its_own_way(provider: SearchProvider) -> None:
    with service(provider) as url:
        assert await WebSearch(provider, url, "key-1").search("lund harbour", 1) == FOUND


@pytest.mark.parametrize("provider", ["brave", "tavily"])
async def test_a_key_that_is_wrong_or_missing_is_said(provider: SearchProvider) -> None:
    with service(provider) as url:
        with pytest.raises(ToolError, match="401, the key is not valid"):
            await WebSearch(provider, url, "key-2").search("lund harbour", 1)
        with pytest.raises(ToolError, match=r"assistant config secret set web_search\.key"):
            await WebSearch(provider, url).search("lund harbour", 1)


@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [
        (b"<html>", 0, "in an unknown form"),
        ({"results": 7}, 0, "in an unknown form"),
        ([1], 0, "in an unknown form"),
        ({"results": [{"title": "no address"}]}, 0, "in an unknown form"),
        (b"x" * (5 * 2**20), 0, "the answer is too large"),
        (None, 429, "too many searches"),
        (None, 500, "answered 500"),
    ],
)
async def test_an_answer_that_is_none_is_an_error_in_words(answer: Any, status: int, said: str) -> None:
    with service("searxng", answer, status) as url, pytest.raises(ToolError, match=said):
        await WebSearch("searxng", url).search("lund harbour", 3)


async def test_a_service_that_is_not_there_is_an_error_in_words() -> None:
    with service("searxng") as url:
        gone = url
    with pytest.raises(ToolError, match="searxng cannot be reached"):
        await WebSearch("searxng", gone).search("lund harbour", 3)
