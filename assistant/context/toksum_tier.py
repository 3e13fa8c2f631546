"""The toksum tier: per-family approximations of toksum, for models without a public vocabulary.

toksum is optional and takes seconds to import (it brings a provider's SDK along), so that this module is imported only
where it is installed and chosen. toksum takes every script for English; the wide ones keep the estimate's count.
"""

from __future__ import annotations

import toksum  # type: ignore[import-not-found,import-untyped,unused-ignore]

from assistant.context.tokens import ESTIMATE_MARGIN, EncodedLength, VocabularyError, estimate_tokens
from assistant.core.records import CountingTier


def encoder(tier: CountingTier) -> EncodedLength:
    """A function that counts the tokens of a text. Raises `VocabularyError` for a model that toksum does not know."""
    if tier.model.lower() in (known.lower() for known in toksum.get_supported_models()["openai"]):
        raise VocabularyError(f"toksum would download a vocabulary for {tier.model}")
    try:
        counter = toksum.TokenCounter(tier.model)
    except (toksum.UnsupportedModelError, toksum.TokenizationError) as error:
        raise VocabularyError(f"toksum does not know {tier.model}") from error

    def encode(text: str) -> int:
        return max(int(counter.count(text)), int(estimate_tokens(text) / ESTIMATE_MARGIN))

    return encode
