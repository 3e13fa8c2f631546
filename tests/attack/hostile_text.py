"""Hostile text for every expression, every bridge's formatting and what else reads what people and models say.

Cases take turns. One is an expression of the program, drawn from the seed, on texts made against it; the other is a
reader, a kind of hostile text and its length. Nothing may raise, a text twice as long takes at most 2.5 times as long,
and no part of a message is longer than its network takes. How long a whole daemon is held by such texts, `python -m
tests.bench --only holds` measures.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import cache, partial
from random import Random

from assistant.bridges.matrix.bridge import MatrixBridge
from assistant.bridges.matrix.events import message_content
from assistant.bridges.telegram.bridge import TelegramBridge
from assistant.bridges.telegram.render import render_markdown
from assistant.core.bridge_api import BridgeCapabilities
from assistant.core.quoting import (
    escape_own_tags,
    parse_quotes,
    parse_todos,
    quote_block,
    quote_in_tag,
    replace_hidden_characters,
    replace_unsendable,
)
from assistant.gateway.parts import split_text
from assistant.search.units import count_words, split_into_units
from sleep.rules.classifier import classify_request
from sleep.rules.secrets import mask_secrets
from tests.attack.tally import Tally
from tests.support.hostile_texts import KINDS, hostile_text
from tests.support.regex_growth import GIVEN_LITTLE, MOST_GROWTH, measure
from tests.support.regex_sources import Expression, find_expressions

KIND = "hostile-text"
CASES = 1_000
_SIZES = (1_000, 20_000, 100_000)
_NOTICEABLE = 0.02
_UNITS: Mapping[str, Callable[[str], int]] = {
    "characters": len,
    "utf-16": lambda text: len(text.encode("utf-16-le", "surrogatepass")) // 2,
    "utf-8": lambda text: len(text.encode("utf-8", "surrogatepass")),
}


def _split(can: BridgeCapabilities, text: str) -> None:
    size = _UNITS[can.length_unit]
    longest = max(map(size, split_text(text, can)))
    if can.max_length is not None and longest > can.max_length:
        raise ValueError(f"a part of {longest} where {can.max_length} are taken")


def _render_for_telegram(text: str) -> None:
    for part in split_text(text, TelegramBridge.capabilities):
        render_markdown(part)


def _render_for_matrix(text: str) -> None:
    for part in split_text(text, MatrixBridge.capabilities):
        message_content(part)


READERS: Mapping[str, Callable[[str], object]] = {
    "parts for Telegram": partial(_split, TelegramBridge.capabilities),
    "parts for Matrix": partial(_split, MatrixBridge.capabilities),
    "formatting for Telegram": _render_for_telegram,
    "formatting for Matrix": _render_for_matrix,
    "units of the index": split_into_units,
    "words of the index": count_words,
    "secrets": mask_secrets,
    "request or not": classify_request,
    "quoted in a tag": partial(quote_in_tag, "record"),
    "own tags": escape_own_tags,
    "hidden characters": replace_hidden_characters,
    "what cannot be sent": replace_unsendable,
    "a block of quotes": quote_block,
    "quotes read back": parse_quotes,
    "to-dos read back": parse_todos,
}


def run(seed: int, cases: int = CASES, until: float = float("inf"), only: int | None = None) -> Tally:
    combinations = [(reader, kind, size) for reader in READERS for kind in KINDS for size in _SIZES]
    Random(seed).shuffle(combinations)
    tried, failures = 0, []
    for case in range(cases) if only is None else [only]:
        if time.monotonic() >= until:
            break
        tried += 1
        if case % 2 == 0:
            expressions = _shuffled_expressions(seed)
            growth = measure(expressions[case // 2 % len(expressions)])
            problem = str(growth) if growth else ""
        else:
            problem = _read(*combinations[case // 2 % len(combinations)])
        if problem:
            failures.append(f"case {case}: {problem}")
    return Tally(KIND, tried, tuple(failures))


@cache
def _shuffled_expressions(seed: int) -> list[Expression]:
    expressions = [one for one in find_expressions() if not one.place.startswith(GIVEN_LITTLE)]
    Random(seed).shuffle(expressions)
    return expressions


def _read(reader: str, kind: str, size: int) -> str:
    read, text = READERS[reader], hostile_text(kind, size)

    def took(given: str, times: int) -> float:
        seconds = []
        for _ in range(times):
            begun = time.thread_time()
            read(given)
            seconds.append(time.thread_time() - begun)
        return min(seconds)

    try:
        once = took(text, 1)
        if once < _NOTICEABLE:
            return ""
        # Twice in a row: one step may be the one at which a message is first cut into parts, or other work.
        longer = [took(hostile_text(kind, times * size), 2) for times in (1, 2, 4)]
        factor = min(longer[1] / longer[0], longer[2] / longer[1])
    except Exception as error:  # noqa: BLE001 -- whatever it is, it is a failure of this case
        return f"{reader}, {size:,} bytes of {kind}: {error!r}"
    if factor <= MOST_GROWTH:
        return ""
    return f"{reader}, {size:,} bytes of {kind}: x{factor:.1f} for twice as much ({1e3 * once:.0f} ms)"
