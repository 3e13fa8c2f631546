"""Tokens as a tokenizer counts them, where this machine has one.

- `tiktoken`: exact for OpenAI's models, from a vocabulary file that is already on this machine. tiktoken's own loader
  downloads what it misses, and what it finds damaged; so the file is read and proved here, and the encoding built from
  it: no road leads to the network. An open encoding takes some 80 MB and a third of a second.
- `toksum`: approximations by family, for models without a public vocabulary. It is optional and takes seconds to import
  (it brings a provider's SDK along). It takes every script for English; the wide ones keep the estimate's count.

Both are imported only where they are chosen.
"""

from __future__ import annotations

import base64
import binascii
import hashlib

from assistant.context.tokens import ESTIMATE_MARGIN, EncodedLength, VocabularyError, estimate_tokens
from assistant.core.records import CountingTier

_SHA256 = {
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}
# How each encoding splits text before it merges bytes, as in tiktoken_ext.openai_public (which cannot be asked without
# loading the file its own way); a test compares the counts.
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


def tiktoken_encoder(tier: CountingTier) -> EncodedLength:
    """A function that counts the tokens of a text. Raises `VocabularyError` when the file is missing or not the one
    that the encoding is defined by."""
    import tiktoken

    if tier.path is None or tier.encoding not in _SHA256:
        raise VocabularyError(f"no vocabulary is known for {tier.model}")
    encoding = tiktoken.Encoding(
        tier.encoding, pat_str=_SPLIT[tier.encoding], mergeable_ranks=_ranks(tier), special_tokens={}
    )
    return lambda text: len(encoding.encode_ordinary(text))


def _ranks(tier: CountingTier) -> dict[bytes, int]:
    assert tier.path is not None
    try:
        raw = tier.path.read_bytes()
    except OSError as error:
        raise VocabularyError(f"{tier.path} cannot be read ({error.strerror})") from None
    if hashlib.sha256(raw).hexdigest() != _SHA256[tier.encoding]:
        raise VocabularyError(f"{tier.path} is not the vocabulary of {tier.encoding}; remove it")
    try:
        lines = (line.split() for line in raw.splitlines() if line)
        return {base64.b64decode(token): int(rank) for token, rank in lines}
    except (ValueError, binascii.Error) as error:
        raise VocabularyError(f"{tier.path} is not a vocabulary: {error}") from None


def toksum_encoder(tier: CountingTier) -> EncodedLength:
    """A function that counts the tokens of a text. Raises `VocabularyError` for a model that toksum does not know."""
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
