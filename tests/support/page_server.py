"""A web server on this machine with the pages that a test gives it, and what was asked of it."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@dataclass
class Answer:
    body: bytes = b""
    content_type: str = "text/html; charset=utf-8"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    stalls: bool = False  # until the server is stopped


@dataclass
class PageServer:
    port: int
    asked: list[tuple[str, str]]  # host, path
    pages: dict[str, Answer]

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"


@contextmanager
def serving(pages: Mapping[str, Answer], tls: tuple[Path, Path] | None = None) -> Iterator[PageServer]:
    """`tls`: a certificate and its key."""
    asked: list[tuple[str, str]] = []
    served = dict(pages)
    stopped = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            asked.append((self.headers["Host"], self.path))
            self.send_error(501)

        do_DELETE = do_PROPFIND = do_REPORT = do_PUT  # noqa: N815

        def do_GET(self) -> None:
            asked.append((self.headers["Host"], self.path))
            answer = served.get(self.path, Answer(b"not here", status=404))
            if answer.stalls:
                stopped.wait()
            self.send_response(answer.status)
            for name, value in {"Content-Type": answer.content_type, **answer.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                self.wfile.write(answer.body)
            except ConnectionError:
                return

        def log_message(self, *_: object) -> None:
            return

    with listening(Handler, tls) as port:
        try:
            yield PageServer(port, asked, served)
        finally:
            stopped.set()  # before the threads that stall are waited for


@contextmanager
def listening(handler: type[BaseHTTPRequestHandler], tls: tuple[Path, Path] | None = None) -> Iterator[int]:
    """A server in threads of its own, which has ended afterwards; gives its port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    if tls is not None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*tls)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    # It looks every hundredth of a second whether it is to end.
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
