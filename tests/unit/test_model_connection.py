"""What a provider may send over its connection, and through what it is asked."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2
import pytest

from assistant.models.connection import limit_size, proxy_remark
from assistant.models.encoding import MalformedProviderData


async def test_a_line_without_an_end_is_not_collected_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assistant.models.connection._MAX_MEGABYTES", 1)

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 2**16

    response = httpx2.Response(200, content=endless())
    limit_size(response)
    size = 0
    with pytest.raises(MalformedProviderData, match="more than 1 MB"):
        async for data in response.aiter_bytes():
            size += len(data)
    assert size == 2**20


@pytest.mark.parametrize(
    ("variables", "address", "named"),
    [
        ({}, "http://127.0.0.1:11434/v1", ""),
        ({"http_proxy": "http://me:secret@proxy:3128"}, "http://127.0.0.1:11434/v1", "proxy:3128"),
        ({"http_proxy": "http://proxy:3128"}, "https://api.openai.com/v1", ""),
        ({"all_proxy": "socks5://proxy:1080"}, "https://api.openai.com/v1", "proxy:1080"),
        ({"http_proxy": "http://proxy:3128", "no_proxy": "127.0.0.1"}, "http://127.0.0.1:11434/v1", ""),
    ],
)
def test_the_proxy_of_the_environment_is_named_without_its_password(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], address: str, named: str
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    remark = proxy_remark(address)
    assert (f"proxy {named}," in remark) if named else remark == ""
    assert "secret" not in remark
