"""Of many coroutines that could go on at once, a few go on in each round of the event loop."""

from __future__ import annotations

import asyncio

from assistant.core.pacing import GroupPlaces, Pacer


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


async def test_a_few_of_each_group_are_at_it_at_a_time_and_those_of_another_do_not_wait_for_them() -> None:
    places, ends, at_it = GroupPlaces(2, seconds=60), asyncio.Event(), list[str]()

    async def work(name: str) -> None:
        give_back = await places.wait(name[0])
        at_it.append(name)
        await ends.wait()
        give_back()
        give_back()

    working = [asyncio.create_task(work(name)) for name in ("a0", "a1", "a2", "a3", "b0")]
    await asyncio.sleep(0)
    assert at_it == ["a0", "a1", "b0"]
    working[2].cancel()
    ends.set()
    await asyncio.gather(*working, return_exceptions=True)
    assert at_it == ["a0", "a1", "b0", "a3"] and places._taken == places._waiting == {}


async def test_who_is_slow_keeps_nobody_out() -> None:
    places = GroupPlaces(1, seconds=0)
    held = [await places.wait("a") for _ in range(5)]
    for give_back in held:
        give_back()
    assert places._taken == {}


async def test_a_place_that_is_offered_to_one_who_is_cancelled_then_goes_to_the_next() -> None:
    places = GroupPlaces(1, seconds=60)
    give_back = await places.wait("a")
    first, second = (asyncio.create_task(places.wait("a")) for _ in range(2))
    await asyncio.sleep(0)
    give_back()
    first.cancel()
    (await second)()
    assert places._taken == places._waiting == {}
