"""What a compacted conversation still knows and says: floors told once, open tasks, pictures, key facts, and others
answered meanwhile."""

from __future__ import annotations

from pathlib import Path

from tests.scenario.test_compaction_house import WALK, made, pressure, told, walked, writer
from tests.scenario.test_runtime import Lived
from tests.scripted import ScriptedModel

STUCK = "nothing more can be left out"


async def walk_on(it: Lived, walks: int, words: str = WALK) -> None:
    for number in range(walks):
        await it.say(f"another walk {number}: {words}")
        await it.answered()


# ---------------------------------------------------------------------------------------------------------------- floors


async def test_f02_a_context_at_its_floor_is_never_paid_for_and_told_once(tmp_path: Path) -> None:
    by = writer()
    async with walked(tmp_path, 30, by=by, ASSISTANT_CONTEXT__MAX_CONTEXT_TOKENS="0") as it:
        large, small = it.house.turns.model, ScriptedModel("Yes.", window=2_200, name="small-1")
        it.house.turns.model = small
        await walk_on(it, 8, WALK * 3)
        await it.house.sleeping.compacting.in_sleep("main", "nap")
        assert pressure(it) > 0.80 and len(made(it)) > 3 and {one.tier for one in made(it)} == {"floor"}
        assert by.requests == [] and it.bridge.bodies[-1] == "Yes."
        assert len(told(it)) == 1 and STUCK in told(it)[0]

        it.house.turns.model = large
        await walk_on(it, 1)
        it.house.turns.model = small
        await walk_on(it, 2)
        assert len([line for line in told(it) if STUCK in line]) == 2 and by.requests == []
