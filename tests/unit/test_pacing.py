"""Of many coroutines that could go on at once, a few go on in each round of the event loop."""

from __future__ import annotations

import asyncio

from assistant.core.pacing import Pacer


class _Rounds:
    """Counts the rounds of the loop."""

    def __init__(self) -> None:
        self.number = 0
        self._counting = asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        self.number += 1
        self._counting = asyncio.get_running_loop().call_soon(self._next)

    def stop(self) -> None:
        self._counting.cancel()


async def test_a_few_go_on_in_each_round_in_their_order() -> None:
    pacer, rounds, went_on = Pacer(3), _Rounds(), list[tuple[int, int]]()

    async def work(number: int) -> None:
        await pacer.wait()
        went_on.append((number, rounds.number))

    await asyncio.gather(*(work(number) for number in range(20)))
    rounds.stop()
    assert [number for number, _ in went_on] == list(range(20))
    in_round = [at for _, at in went_on]
    assert max(map(in_round.count, in_round)) == 3 and len(set(in_round)) == 7


async def test_groups_go_on_in_turn_so_that_none_waits_for_the_hundreds_of_another() -> None:
    pacer, went_on = Pacer(2), list[str]()

    async def work(name: str) -> None:
        await pacer.wait(name[0])
        went_on.append(name)

    await asyncio.gather(*(work(name) for name in [f"a{number}" for number in range(8)] + ["b0", "c0", "b1"]))
    assert went_on == ["a0", "a1", "a2", "b0", "c0", "a3", "b1", "a4", "a5", "a6", "a7"]


async def test_who_was_cancelled_while_waiting_holds_nobody_up() -> None:
    pacer, went_on = Pacer(1), list[int]()

    async def work(number: int) -> None:
        await pacer.wait()
        went_on.append(number)

    tasks = [asyncio.create_task(work(number)) for number in range(6)]
    await asyncio.sleep(0)
    for task in tasks[2:5]:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert went_on == [0, 1, 5]


async def test_alone_nobody_waits() -> None:
    pacer, rounds = Pacer(1), _Rounds()
    before = rounds.number
    await pacer.wait()
    assert rounds.number == before
    rounds.stop()
