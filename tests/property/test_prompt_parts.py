"""What the parts of a prompt were billed, for any prompt and whatever a provider reports."""

from __future__ import annotations

from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from assistant.context.prompt_parts import split_usage
from assistant.core.messages import Usage
from assistant.core.model_api import PromptPart, PromptParts
from assistant.models.prices import Price

_TOKENS = st.integers(0, 200_000)
_NAMES: list[PromptPart] = ["tools", "rules", "summary", "history", "new", "recalled", "new"]
_PRICE = Price(input=3, output=15, cache_read=0.3, cache_write=3.75, cache_write_hour=6)


def _parts(sizes: list[int]) -> PromptParts:
    return tuple(zip(_NAMES, sizes, strict=True))


@st.composite
def _usages(draw: st.DrawFn) -> Usage:
    written = draw(_TOKENS)
    hour = draw(st.sampled_from([0, written]))
    return Usage(draw(_TOKENS), draw(_TOKENS), draw(_TOKENS), written, cache_write_hour=hour)


@given(st.lists(_TOKENS, min_size=7, max_size=7), _usages())
def test_the_parts_add_up_to_what_the_provider_reported(sizes: list[int], usage: Usage) -> None:
    split = split_usage(_parts(sizes), usage, _PRICE.cost)
    whole = reduce(Usage.__add__, split.values())
    assert (whole.input, whole.output, whole.cache_read, whole.cache_write) == (
        usage.input,
        usage.output,
        usage.cache_read,
        usage.cache_write,
    )
    assert abs((whole.cost_usd or 0) - _PRICE.cost(usage)) < 1e-4
    assert all(min(part.input, part.cache_read, part.cache_write) >= 0 for part in split.values())


@given(st.lists(st.integers(1, 50_000), min_size=7, max_size=7))
def test_what_is_read_is_the_beginning_and_what_is_paid_in_full_the_end(sizes: list[int]) -> None:
    read, written = sum(sizes[:3]), sum(sizes[3:5])
    usage = Usage(sum(sizes[5:]), 0, read, written)
    split = split_usage(_parts(sizes), usage, None)
    assert [split[name].cache_read for name in ("tools", "rules", "summary")] == sizes[:3]
    assert split["history"].cache_write == sizes[3] and split["recalled"].input == sizes[5]
    assert (split["new"].cache_write, split["new"].input) == (sizes[4], sizes[6])
    assert split["answer"] == Usage()
