"""Whatever is said, noted, put right, slept over and taken back: what was known at any time is what was held then."""

from __future__ import annotations

import asyncio
from datetime import datetime

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.support.memories_home import Snapshot, Timeline, open_timeline
from tests.support.store_home import memory_backed_directory

SAID = (
    "I live in Oslo.",
    "I moved from Oslo to Bergen.",
    "I moved from Bergen to Tromsø.",
    "My sister Anna is a nurse.",
    "My sister Anna is a nurse in Rome.",
    "I prefer tea to coffee.",
    "I prefer coffee to tea.",
    "…",
)
ACTS = st.lists(
    st.tuples(
        st.sampled_from(("say", "say", "note", "notes", "correct", "sleep", "sleep", "sleep in vain", "undo", "write")),
        st.integers(0, len(SAID) - 1),
    ),
    min_size=1,
    max_size=14,
)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example([("notes", 0), ("say", 2), ("correct", 6), ("sleep", 3), ("undo", 6)])
@given(ACTS)
def test_what_was_known_at_any_time_is_what_was_held_then(acts: list[tuple[str, int]]) -> None:
    with memory_backed_directory() as directory, open_timeline(directory / "home") as life:
        for at, picture in asyncio.run(_lived(life, acts)):
            assert life.snapshot_at(at) == picture, at


async def _lived(life: Timeline, acts: list[tuple[str, int]]) -> list[tuple[datetime, Snapshot]]:
    """What was held at each moment."""
    pictures = [(life.now, await life.current_snapshot())]
    for what, which in acts:
        await _act(life, what, which)
        pictures.append((life.now, await life.current_snapshot()))
        assert life.snapshot_at(life.now) == pictures[-1][1]
    return pictures


async def _act(life: Timeline, what: str, which: int) -> None:
    match what:
        case "say":
            life.say(SAID[which])
        case "note" | "notes":
            life.note(*SAID[which : which + (2 if what == "notes" else 1)])
        case "sleep" | "sleep in vain":
            await life.sleep(memory_unavailable=what == "sleep in vain")
        case "correct":
            await life.correct(f"{SAID[which]} Rather: {life.hours}.", which)
        case "undo":
            await life.undo()
        case _:
            life.write_memory_file(f"Page {life.hours}.")
