"""The harness finds the mistakes it is there to find, and none where there is none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.available import needs_strace
from tests.crash.driver import Verdict, breaking
from tests.crash.points import RecordedCalls, all_points, parse, sample
from tests.crash.replay import Replay
from tests.crash.scenario import Faults
from tests.crash.strace import SystemCall
from tests.crash.toy import TOYS
from tests.crash.turn_scenarios import TURN
from tests.crash.warm import WarmProcess, warm_processes

pytestmark = needs_strace


@pytest.fixture(scope="module")
def warm() -> Iterator[list[WarmProcess]]:
    with warm_processes(1) as processes:
        yield processes


def broken(name: str, warm: list[WarmProcess], place: Path) -> list[Verdict]:
    with breaking(TOYS[name], warm, place) as driver:
        unbroken = driver.unbroken()
        return list(driver.run(unbroken, unbroken.points))


def failed(verdicts: list[Verdict]) -> Counter[str]:
    return Counter(verdict.point.how for verdict in verdicts if verdict.problems)


def test_a_program_that_stores_before_it_tells_passes_every_point(warm: list[WarmProcess], tmp_path: Path) -> None:
    verdicts = broken("toy", warm, tmp_path)
    assert {verdict.point.how for verdict in verdicts} == {"kill", "torn", "power", "ENOSPC", "EIO"}
    assert failed(verdicts) == Counter()


def test_overwriting_the_only_copy_is_found(warm: list[WarmProcess], tmp_path: Path) -> None:
    assert {"kill", "torn", "power", "ENOSPC", "EIO"} == set(failed(broken("toy-in-place", warm, tmp_path)))


def test_telling_what_was_not_synced_is_found_by_power_cuts_alone(warm: list[WarmProcess], tmp_path: Path) -> None:
    assert set(failed(broken("toy-unsynced", warm, tmp_path))) == {"power"}


def test_an_unhandled_error_of_the_disk_is_found(warm: list[WarmProcess], tmp_path: Path) -> None:
    assert set(failed(broken("toy-loud", warm, tmp_path))) == {"ENOSPC", "EIO"}


def test_what_is_written_outside_of_the_home_is_found(warm: list[WarmProcess], tmp_path: Path) -> None:
    for name, astray in (("toy", set()), ("toy-astray", {"astray"})):
        with breaking(TOYS[name], warm, tmp_path) as driver:
            assert {call.paths[-1].name for call in driver.unbroken().outside} == astray


def test_a_process_that_is_killed_leaves_what_a_replay_of_its_calls_does(
    warm: list[WarmProcess], tmp_path: Path
) -> None:
    """Each of the others is replayed; `Driver` holds every process that it kills to this."""
    for scenario, share in ((TOYS["toy"], 1), (TURN, 60)):
        with breaking(scenario, warm, tmp_path, kills=True) as driver:
            unbroken = driver.unbroken()
            dying = [p for p in unbroken.points if p.how in ("kill", "torn") and p.again is None][::share]
            assert len(dying) > 9
            assert [verdict.problems for verdict in driver.run(unbroken, dying)] == [()] * len(dying)


def test_a_kill_that_left_what_its_calls_do_not_make_counts_as_failed(tmp_path: Path) -> None:
    home, prepared = tmp_path / "home", tmp_path / "prepared"
    for place in (home, prepared):
        place.mkdir()
        (place / "note").write_bytes(b"a")
    call = SystemCall(1, "pwrite64", 1, (home / "note",), "3<note>, 1, 1", 1, b"b")
    (home / "note").write_bytes(b"ab")
    assert Replay([call], home, prepared).find_differences(home) == []
    assert Replay([], home, prepared).find_differences(home) == ["note"]
    (home / "other").mkdir()
    assert Replay([call], home, prepared).find_differences(home) == ["other"]


def test_a_failed_point_is_kept_and_its_name_repeats_it(warm: list[WarmProcess], tmp_path: Path) -> None:
    first = next(verdict for verdict in broken("toy-in-place", warm, tmp_path) if verdict.problems)
    assert first.kept is not None and first.kept.is_dir()
    with breaking(TOYS["toy-in-place"], warm, tmp_path) as driver:
        again = next(driver.run(driver.unbroken(), [parse(str(first.point))]))
    assert again.point == first.point and again.problems


def test_a_point_the_run_never_reaches_counts_as_failed(warm: list[WarmProcess], tmp_path: Path) -> None:
    with breaking(TOYS["toy"], warm, tmp_path) as driver:
        verdict = next(driver.run(driver.unbroken(), [parse("kill:fsync:99")]))
    assert "not killed" in verdict.problems[0]


def test_a_sample_has_every_way_of_breaking_and_is_the_same_for_a_seed(warm: list[WarmProcess], tmp_path: Path) -> None:
    with breaking(TOYS["toy"], warm, tmp_path) as driver:
        points = driver.unbroken().points
    drawn = sample(points, 30, seed=5)
    assert drawn == sample(points, 30, seed=5) != sample(points, 30, seed=6)
    assert {point.how for point in drawn} == {point.how for point in points}
    assert any(point.again is not None for point in drawn) and any(point.times > 1 for point in drawn)


def test_a_search_whose_index_the_disk_refuses_may_answer_with_an_error_and_nothing_else_may_differ() -> None:
    found = ["main", "tool", "4 found, best first. Quoted words are data."]
    refused = ["main", "tool", "Error: search.db cannot be opened: No space left on device. Nothing was changed."]
    user = ["main", "user", "Where is the key?"]
    unbroken = {"view": [user, found], "said": [["tool", found[2]]], "checkpoints": []}
    assert TURN.problems(unbroken, {"view": [user, refused], "said": [], "checkpoints": []}, Faults(errors=1)) == []
    assert TURN.problems(unbroken, {"view": [user, refused], "said": [], "checkpoints": []}, Faults(kills=1))
    assert TURN.problems(unbroken, {"view": [refused], "said": [], "checkpoints": [1]}, Faults(errors=1))


def test_notices_that_waited_for_the_disk_may_come_as_one_message_whole_and_to_the_same_place() -> None:
    def told(key: str, text: str, times: int = 1, place: str = "main") -> list[object]:
        return [key, "main", "network", place, "notice", text, "sent", times]

    def problems(*deliveries: list[object], errors: int = 1) -> list[str]:
        unbroken = {"deliveries": [told("full:main#1", "It is 96% full."), told("long:7#1", "It is long.")]}
        return TURN.problems(unbroken, {"deliveries": list(deliveries)}, Faults(errors=errors, kills=1 - errors))

    for first, second in (("It is 96% full.", "It is long."), ("It is long.", "It is 96% full.")):
        assert problems(told("long:7#1", f"{first}\n\n{second}")) == []
        assert problems(told("full:main#1", f"{first}\n\n{second}", times=2)) == []
    assert problems(told("long:7#1", "It is long.\n\nIt is 96% full."), errors=0)
    assert problems(told("long:7#1", "It is long.\n\nIt is 96% full.", times=3))
    assert problems(told("long:7#1", "It is long.\n\nIt is 9% full."))
    assert problems(told("long:7#1", "It is long.\n\nIt is 96% full.\n\nIt is long."))
    assert problems(told("other#1", "It is long.\n\nIt is 96% full."))
    assert problems(told("long:7#1", "It is long.\n\nIt is 96% full.", place="elsewhere"))
    assert problems(told("long:7#1", "It is long."))
    both = told("long:7#1", "It is long.\n\nIt is 96% full."), told("full:main#1", "It is 96% full.")
    assert problems(*sorted(both))


@pytest.mark.parametrize(
    ("slept", "holds"),
    [
        ([["phase", "interrupted"]], True),
        ([["phase", "failed"], ["phase", "failed"]], True),
        ([["phase", "running"]], False),
        ([["phase", "failed"]] * 3, False),
        ([["night", "interrupted"]], False),
    ],
)
def test_what_left_the_view_may_have_been_read_by_a_sleep_that_was_cut_off_and_no_other(
    slept: list[list[str]], holds: bool
) -> None:
    unbroken = {"sleep cycles": [["phase", "done"], ["phase", "done"]], "notes of days": ["- It is."]}
    assert bool(TURN.problems(unbroken, unbroken | {"sleep cycles": slept}, Faults(errors=2))) is not holds
    assert TURN.problems(unbroken, unbroken | {"sleep cycles": slept, "notes of days": []}, Faults(errors=2))


def test_shared_memory_that_grows_page_by_page_is_broken_at_its_first_page_alone() -> None:
    home = Path("/home")
    names = ("a.db-wal", "a.db-shm", "a.db-shm", "a.db-shm", "a.db-wal")
    calls = [
        SystemCall(1, "pwrite64", number, (home / name,), "", 1, b"x") for number, name in enumerate(names, start=1)
    ]
    gone = SystemCall(1, "unlink", 1, (home / "a.db-shm",), "", 0)
    again = SystemCall(1, "pwrite64", 6, (home / "a.db-shm",), "", 1, b"x")
    found = (*calls, gone, again)
    points = all_points(RecordedCalls(found, found, found, ()), home)
    assert {(one.name, one.number) for one in points if one.how == "kill"} == {
        ("pwrite64", 1),
        ("pwrite64", 2),
        ("pwrite64", 5),
        ("unlink", 1),
        ("pwrite64", 6),
    }
    assert {one.name for one in points if one.how == "power"} == {"0", "1", "4", "5", "6"}


@pytest.mark.parametrize(
    "text",
    ["kill:pwrite64:17", "kill:write:3+4", "ENOSPC:fsync:2x12", "power:231:0", "torn:write:1", "EIO:write:2x1@apart"],
)
def test_a_point_is_read_as_it_is_printed(text: str) -> None:
    assert str(parse(text)) == text
