"""Pages are read from addresses that everybody can reach, and from nowhere else, within bounds."""

from __future__ import annotations

import gzip
import socket

import pytest

from assistant.core.errors import ToolError
from assistant.documents.fetch import PageFetcher, is_public, split_address
from tests.support.page_server import Answer, serving

LOCAL = PageFetcher({"127.0.0.1"})


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.0.0.1",
        "192.168.1.1",
        "172.16.9.9",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "255.255.255.255",
        "224.0.0.1",
        "240.0.0.1",
        "::1",
        "::",
        "fe80::1%eth0",
        "fc00::1",
        "fec0::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "2002:7f00:1::",
    ],
)
def test_what_is_of_this_network_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", "::ffff:8.8.8.8"])
def test_what_everybody_can_reach_is_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        "file:///etc/passwd",
        "ftp://example.org/x",
        "example.org",
        "http://",
        "https://[::1",
        "http://example.org:99999/",
        "http://example.org/\x00",
        "https://example.org/" + "a" * 2_000,
        "javascript:alert(1)",
        "https://me:secret@example.org/",
    ],
)
async def test_what_is_no_address_of_a_page_is_refused(address: str) -> None:
    with pytest.raises(ToolError):
        split_address(address)
    with pytest.raises(ToolError):
        await LOCAL.fetch(address)


async def test_a_page_is_read_under_its_name_and_redirects_are_followed() -> None:
    pages = {
        "/here": Answer(status=302, headers={"Location": "/there?x=1"}),
        "/there?x=1": Answer(b"<p>found</p>"),
        "/zip": Answer(gzip.compress(b"words"), "text/plain", headers={"Content-Encoding": "gzip"}),
    }
    with serving(pages) as server:
        page = await LOCAL.fetch(server.url("/here"))
        assert (page.address, page.content_type, page.data) == (server.url("/there?x=1"), "text/html", b"<p>found</p>")
        assert (await LOCAL.fetch(server.url("/zip"))).data == b"words"
        assert server.asked[0] == (f"127.0.0.1:{server.port}", "/here")


@pytest.mark.parametrize("host", ["localhost", "127.1", "0x7f.1", "2130706433", "[::ffff:127.0.0.1]", "0"])
async def test_this_machine_is_not_read_from_under_any_of_its_names(host: str) -> None:
    with serving({"/": Answer(b"secret")}) as server:
        with pytest.raises(ToolError, match=r"own network|No address is known"):
            await PageFetcher().fetch(server.url("/", host))
        assert server.asked == []


async def test_a_name_of_which_one_address_is_private_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a server that answers with another address each time: all are looked at, and the one looked at is used."""

    def answers(*_: object, **__: object) -> list[object]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (place, 80)) for place in ("93.184.215.14", "10.0.0.7")]

    monkeypatch.setattr(socket, "getaddrinfo", answers)
    with pytest.raises(ToolError, match="own network"):
        await PageFetcher().fetch("http://rebind.example.org/")


@pytest.mark.parametrize("to", ["http://169.254.169.254/latest/meta-data/", "http://[::1]/", "file:///etc/passwd"])
async def test_a_redirect_leads_into_no_private_network(to: str) -> None:
    refused = pytest.raises(ToolError, match=r"own network|no address of a page")
    with serving({"/": Answer(status=301, headers={"Location": to})}) as server, refused:
        await LOCAL.fetch(server.url("/"))


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/loop", "redirects more than 5 times"),
        ("/missing", "answered 404"),
        ("/large", "is larger than 1000 bytes"),
        ("/bomb", "is larger than 1000 bytes"),
        ("/stalls", "did not answer within 0 seconds"),
    ],
)
async def test_a_server_that_lies_or_stalls_gives_an_error_that_says_so(path: str, said: str) -> None:
    pages = {
        "/loop": Answer(status=302, headers={"Location": "/loop"}),
        "/large": Answer(b"x" * 1001),
        "/bomb": Answer(gzip.compress(b"x" * 10**6), headers={"Content-Encoding": "gzip"}),
        "/stalls": Answer(stalls=True),
    }
    seconds = 0.3 if path == "/stalls" else 30.0
    with serving(pages) as server, pytest.raises(ToolError, match=said):
        await PageFetcher({"127.0.0.1"}, timeout_seconds=seconds, max_bytes=1000).fetch(server.url(path))
