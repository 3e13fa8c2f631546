"""Offline mode does what people say in four languages, or says plainly that it can't: hundreds of utterances, each in a
home of its own, against what must hold in the stores afterwards (`tests/data/utterances`)."""

from __future__ import annotations

import pytest

from tests.support.utterances import TABLES, play_table

LEAST_SHARE = 0.92


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("table", sorted(path.name for path in TABLES.glob("*.jsonl")))
async def test_what_people_say_is_done_or_refused_plainly(table: str) -> None:
    result = await play_table(TABLES / table)
    print(f"{table}: {result.shares}", *result.wrong, sep="\n")
    assert result.noted == ()
    assert result.right >= LEAST_SHARE * result.rows, result.shares
