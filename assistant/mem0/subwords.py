"""The tokens of a word, by byte-pair encoding with the vocabulary of Llama, as the library `tokenizers` makes them.

Of two neighbours that are a token together, those that make the token with the lowest number are joined first, until
none are left. Here that needs nothing but the vocabulary, 4 MB; the library with its list of all joins takes 19 MB of
each process, and saves 10 microseconds a word, of which most are seen before (`WordLlamaEmbedder`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from pathlib import Path

import msgspec

_BLANK = "\u2581"


class _Model(msgspec.Struct):
    vocab: dict[str, int]


class _TokenizerFile(msgspec.Struct):
    """What is read of the library's file; the list of joins, which is most of it, is passed over."""

    model: _Model


class SubwordTokenizer:
    """Returns the tokens of words. What looks like one of the model's control tokens, such as "<s>", is a word."""

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        """Raises `KeyError` for a vocabulary without a token for each byte."""
        self._bytes = [vocabulary[f"<0x{byte:02X}>"] for byte in range(256)]
        self._size = len(vocabulary)
        # By token: its number, plus the size for several blanks in a row, which are joined last.
        self._order = {
            token: number if token.strip(_BLANK) else number + self._size
            for token, number in vocabulary.items()
            if number > self._bytes[-1] or len(token) == 1
        }

    def encode(self, word: str) -> list[int]:
        """Return the tokens of a word with the blanks before and after it; takes n log n steps for n characters."""
        word = word.replace(" ", _BLANK)
        tokens: list[int] = []
        # Each token is what its characters are joined to.
        for part in (word,) if word in self._order else self._joined(list(word)):
            order = self._order.get(part)
            if order is None:  # a character without a token
                tokens += (self._bytes[byte] for byte in part.encode(errors="replace"))
            else:
                tokens.append(order % self._size)
        return tokens

    def _joined(self, parts: list[str]) -> Sequence[str]:
        """Join the characters of a word. What was joined to the part before it is empty until the end."""
        order = self._order
        size = len(parts)
        following, preceding = list(range(1, size + 1)), list(range(-1, size - 1))
        joins = [
            (number, index, pair)
            for index, pair in enumerate(map(str.__add__, parts, parts[1:]))
            if (number := order.get(pair)) is not None
        ]
        heapify(joins)
        while joins:
            _, index, pair = heappop(joins)
            second = following[index]
            # One of the two was joined with another part meanwhile.
            if not parts[index] or second >= size or parts[index] + parts[second] != pair:
                continue
            parts[index], parts[second] = pair, ""
            following[index] = after = following[second]
            before = preceding[index]
            if after < size:
                preceding[after] = index
                if (number := order.get(longer := pair + parts[after])) is not None:
                    heappush(joins, (number, index, longer))
            if before >= 0 and (number := order.get(longer := parts[before] + pair)) is not None:
                heappush(joins, (number, before, longer))
        return [part for part in parts if part]


def read_tokenizer(path: Path) -> SubwordTokenizer:
    """Return the tokenizer of a file of the library `tokenizers`. Raises `OSError`, `ValueError`, `KeyError`."""
    return SubwordTokenizer(msgspec.json.decode(path.read_bytes(), type=_TokenizerFile).model.vocab)
