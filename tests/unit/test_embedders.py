"""What turns words into vectors: the built-in embedder, and those behind an address."""

from __future__ import annotations

import importlib.util
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from assistant.core.errors import MemoryUnavailable
from assistant.mem0.codec import EmbedderSettings
from assistant.mem0.embedders import TokenTable, WordLlamaEmbedder, open_embedder
from assistant.mem0.remote_embedders import RemoteEmbedder
from assistant.mem0.vectors import nearest_vectors, vector_to_bytes
from tests.support.semantic_memory import EmbedderServer, run_embedder_server

TEXTS = [
    "I live in Oslo.",
    "我住在东京,喜欢吃寿司",
    "אני גר בתל אביב",
    "emoji 🐈 ok",
    "a",
    "x" * 5000,
    "'); DROP TABLE x; -- **md**",
    "  spaces  ",
    "word " * 1000,
    " \u2581is a blank   to it\n too \t",
]


@pytest.fixture(scope="module")
def wordllama() -> WordLlamaEmbedder:
    return WordLlamaEmbedder()


@pytest.fixture
def letters() -> Iterator[EmbedderServer]:
    with run_embedder_server() as one:
        yield one


# ------------------------------------------------------------------------------------------------------- WordLlama


def test_vectors_are_those_of_the_package_itself(wordllama: WordLlamaEmbedder) -> None:
    package = pytest.importorskip("wordllama", reason="this release of wordllama cannot be imported here")
    spec = importlib.util.find_spec("wordllama")
    assert spec is not None and spec.origin is not None
    theirs = package.WordLlama.load(cache_dir=Path(spec.origin).parent, disable_download=True, trunc_dim=256)
    made = wordllama.embed(TEXTS)
    assert made.shape == (len(TEXTS), 256) and made.dtype == np.float32
    np.testing.assert_allclose(made, theirs.embed(TEXTS, norm=True), atol=1e-5)
    # Longer than what is gathered at once; summed in another order.
    long = ["Every thing has its place, and that is not here. " * 3000]
    assert float(wordllama.embed(long)[0] @ theirs.embed(long, norm=True)[0]) > 0.99999


def test_what_looks_like_a_control_token_is_a_word(wordllama: WordLlamaEmbedder) -> None:
    assert wordllama.is_word("the") and not wordllama.is_word("<s>")
    np.testing.assert_allclose(wordllama.embed(["<s> of </s>"]), wordllama.embed(["</s> of <s>"]), atol=1e-6)


def test_its_name_tells_its_dimensions(wordllama: WordLlamaEmbedder) -> None:
    assert (wordllama.name, wordllama.dimensions) == ("wordllama:256", 256)


def test_rows_have_length_one_and_texts_without_words_the_zero_row(wordllama: WordLlamaEmbedder) -> None:
    made = wordllama.embed(["Oslo", "", "  \n", "?! …", "東"])
    np.testing.assert_allclose(np.linalg.norm(made, axis=1), [1, 0, 0, 0, 1], atol=1e-6)
    assert wordllama.embed([]).shape == (0, 256)


def test_a_text_has_the_same_vector_alone_and_among_many(wordllama: WordLlamaEmbedder) -> None:
    many = [f"Thing number {number} {'is long ' * (number % 40)}" for number in range(600)]
    together = wordllama.embed(many)
    alone = wordllama.embed([many[i] for i in (0, 255, 256, 599)])
    assert np.allclose(together[[0, 255, 256, 599]], alone, rtol=1e-7, atol=0)


def test_half_a_character_is_no_fault(wordllama: WordLlamaEmbedder) -> None:
    assert np.linalg.norm(wordllama.embed(["cut \ud83d here"])) == pytest.approx(1)


def test_texts_that_were_embedded_leave_nothing_in_memory() -> None:
    """A tokenizer that keeps texts, as it does by itself, would hold 30 MB of these, weights that stay mapped 15."""
    program = """
from string import ascii_lowercase as letters

from assistant.mem0.embedders import WordLlamaEmbedder
from tests.bench.process import resident_mib

embedder = WordLlamaEmbedder()
embedder.embed(["The first text loads what is needed."])
before = resident_mib()
for number in range(100):
    embedder.embed([f"In row {number} of field {n} grow {n % 7} plants that nobody counted." for n in range(100)])
for first in letters:
    embedder.embed([first + second + third for second in letters for third in letters])
print(resident_mib() - before)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 10


def weights(header: object) -> bytes:
    told = json.dumps(header).encode()
    return len(told).to_bytes(8, "little") + told


@pytest.mark.parametrize(
    "data",
    [
        None,
        b"",
        b"<html>not found</html>",
        weights([]),
        weights({"other": {}}),
        weights({"embedding.weight": {"dtype": "F32", "shape": [2, 256], "data_offsets": [0, 2048]}}),
        weights({"embedding.weight": {"dtype": "F16", "shape": [2, 256], "data_offsets": [0, 1024]}}) + bytes(1023),
    ],
)
def test_weights_that_are_damaged_are_told_of(data: bytes | None, tmp_path: Path) -> None:
    if data is not None:
        (tmp_path / "weights").write_bytes(data)
    with pytest.raises(MemoryUnavailable, match=r"files cannot be read .* The journal keeps everything"):
        TokenTable(tmp_path / "weights")


def test_the_package_is_not_imported() -> None:
    script = (
        "import sys; from assistant.mem0.embedders import WordLlamaEmbedder as E; E().embed(['x']);"
        "sys.exit('wordllama' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


# ------------------------------------------------------------------------------------------------- behind an address


def _both(letters: EmbedderServer) -> list[RemoteEmbedder]:
    return [RemoteEmbedder(letters.settings(kind)) for kind in ("openai", "ollama")]


def test_a_provider_is_asked_in_batches_and_its_rows_are_put_in_order(letters: EmbedderServer) -> None:
    texts = [chr(97 + number % 26) * (number + 1) for number in range(150)]
    for embedder in _both(letters):
        letters.request_bodies.clear()
        made = embedder.embed(texts)
        assert made.shape == (150, 26) and embedder.dimensions == 26
        np.testing.assert_allclose(np.linalg.norm(made, axis=1), 1, atol=1e-5)
        assert made.argmax(axis=1).tolist() == [number % 26 for number in range(150)]
        assert [len(body["input"]) for body in letters.request_bodies] == [1, 64, 64, 22]
        embedder.close()


def test_texts_without_words_are_not_sent_and_long_ones_are_cut(letters: EmbedderServer) -> None:
    embedder = RemoteEmbedder(letters.settings())
    made = embedder.embed(["", "?!", "b" * 1_000_000])
    assert np.linalg.norm(made, axis=1).tolist() == pytest.approx([0, 0, 1])
    assert max(len(text) for body in letters.request_bodies for text in body["input"]) == 8000


def test_the_key_goes_into_the_header_alone(letters: EmbedderServer) -> None:
    RemoteEmbedder(letters.settings()).embed(["a"])
    assert letters.headers[0]["Authorization"] == "Bearer sk-secret-key"
    assert "sk-secret-key" not in repr(letters.settings())


def test_names_tell_provider_and_model(letters: EmbedderServer) -> None:
    assert [embedder.name for embedder in _both(letters)] == ["openai:letters", "ollama:letters"]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (401, "key"),
        (404, "does not know the model"),
        (500, "status 500"),
        (b"no JSON", "no vectors"),
        (b"{}", "no vectors"),
        (b'{"data": [], "embeddings": []}', "no vectors"),
        (b'{"data": [{"index": 0, "embedding": ["x"]}], "embeddings": [["x"]]}', "no vectors"),
        (b'{"data": [{"index": 0, "embedding": [NaN]}], "embeddings": [[NaN]]}', "no vectors"),
        (b'{"data": [{"index": 0, "embedding": [1, 2]}], "embeddings": [[1, 2]]}', "2 dimensions after 26"),
    ],
)
def test_f30_a_provider_that_answers_otherwise_is_unavailable(
    letters: EmbedderServer, answer: int | bytes, told: str
) -> None:
    for embedder in _both(letters):
        assert embedder.dimensions == 26
        letters.next_answers.append(answer)
        with pytest.raises(MemoryUnavailable, match=told) as raised:
            embedder.embed(["cake"])
        assert "sk-secret-key" not in str(raised.value)
        assert embedder.embed(["cake"]).shape == (1, 26)


def test_f30_a_provider_that_hangs_or_is_not_there_is_unavailable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(MemoryUnavailable, match="did not answer in time"):
            RemoteEmbedder(EmbedderSettings("openai", "letters", url), seconds=0.2).embed(["cake"])
    url = url.replace("//", "//me:pass-7@")
    with pytest.raises(MemoryUnavailable, match="cannot be reached") as refused:
        RemoteEmbedder(EmbedderSettings("ollama", "letters", url), seconds=5).embed(["cake"])
    assert "pass-7" not in str(refused.value)


def test_an_embedder_that_is_not_known_or_not_installed_is_told(tmp_path: Path) -> None:
    with pytest.raises(MemoryUnavailable, match="There is no embedder"):
        open_embedder(EmbedderSettings("magic"), tmp_path)
    if importlib.util.find_spec("fastembed") is None:
        with pytest.raises(MemoryUnavailable, match="not installed"):
            open_embedder(EmbedderSettings("fastembed"), tmp_path)
    else:
        with pytest.raises(MemoryUnavailable, match="does not know the model"):
            open_embedder(EmbedderSettings("fastembed", "no/such-model"), tmp_path)


# -------------------------------------------------------------------------------------------------------- closeness


def test_the_closest_are_those_of_a_full_comparison() -> None:
    random = np.random.default_rng(7)
    rows = random.normal(size=(20_000, 16)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    stored = [(f"{number:05}", vector_to_bytes(row)) for number, row in enumerate(rows)]
    queries = rows[[5, 9000, 19_999]]
    exact = queries @ rows.astype(np.float16).astype(np.float32).T
    for found, scores in zip(nearest_vectors(queries, stored, 10), exact, strict=True):
        assert [int(name) for name, _ in found] == np.argsort(-scores)[:10].tolist()
        assert [score for _, score in found] == pytest.approx(np.sort(scores)[::-1][:10].tolist(), abs=1e-3)
        assert all(-1 <= score <= 1 for _, score in found)


def test_nothing_is_closest_where_there_is_nothing() -> None:
    none = np.zeros((0, 4), dtype=np.float32)
    assert nearest_vectors(none, [], 5) == []
    assert nearest_vectors(np.ones((1, 4), dtype=np.float32), [], 5) == [[]]
    assert nearest_vectors(np.ones((1, 4), dtype=np.float32), [("a", vector_to_bytes(np.ones(4)))], 0) == [[]]


def test_threads_that_begin_side_by_side_share_the_builtin_embedder() -> None:
    """In a process of its own, in which nothing was embedded yet."""
    code = (
        "from concurrent.futures import ThreadPoolExecutor\nfrom threading import Barrier\n"
        "import assistant.mem0.embedders\nfrom assistant.wire.search import builtin_embedder\nbarrier = Barrier(3)\n"
        "def load(_):\n    barrier.wait()\n    return builtin_embedder()\n"
        "print(len(set(ThreadPoolExecutor(3).map(load, range(3)))))"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed == "1\n"
