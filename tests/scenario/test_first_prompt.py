"""What a new home's first request holds, with every tool that its owner has: each later one pays for it again."""

from __future__ import annotations

from pathlib import Path

from tests.bench.start import PROMPT_TOKENS, prompt_tokens


async def test_the_first_prompt_of_a_whole_house_is_small(tmp_path: Path) -> None:
    assert 1_000 < await prompt_tokens(tmp_path / "home") <= PROMPT_TOKENS
