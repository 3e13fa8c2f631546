"""A run over all points may be stopped at any time and goes on where it was; its table says what was tried."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.crash.__main__ import main
from tests.crash.available import needs_strace
from tests.crash.driver import Verdict
from tests.crash.equivalence import PointClass
from tests.crash.journal import Journal
from tests.crash.points import parse

POINTS = [parse(text) for text in ("kill:write:1", "kill:write:1+0", "power:3:0", "ENOSPC:write:1x12")]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "crash.jsonl"


def journal_with(file: Path, *verdicts: Verdict) -> Journal:
    journal = Journal(file)
    journal.begin()
    journal.list_classes("toy", [PointClass((point,)) for point in POINTS])
    for verdict in verdicts:
        journal.add("toy", verdict)
    return journal


def test_what_has_a_verdict_is_not_left_to_do_in_the_next_run(file: Path) -> None:
    journal_with(file, Verdict(POINTS[0], (), 0.5), Verdict(POINTS[2], ("lost",), 0.5))
    again = Journal(file)
    assert again.left("toy") == [POINTS[1], POINTS[3]]
    assert again.failed("toy") == [POINTS[2]]


def test_a_later_verdict_takes_the_place_of_an_earlier_one(file: Path) -> None:
    journal_with(file, Verdict(POINTS[2], ("lost",), 0.5), Verdict(POINTS[2], (), 0.5))
    assert Journal(file).failed("toy") == []


def test_a_line_that_a_kill_cut_off_is_done_again(file: Path) -> None:
    journal_with(file, Verdict(POINTS[0], (), 0.5), Verdict(POINTS[1], (), 0.5))
    file.write_text(file.read_text(encoding="utf-8")[:-20], encoding="utf-8")
    assert Journal(file).left("toy") == POINTS[1:]


def test_points_of_another_unbroken_run_take_the_place_of_those_before(file: Path) -> None:
    journal_with(file, Verdict(POINTS[0], (), 0.5))
    other = parse("kill:fsync:7")
    journal_with(file).list_classes("toy", [PointClass((POINTS[0],)), PointClass((other,))])
    assert Journal(file).left("toy") == [other]


def test_a_point_that_failed_and_is_gone_fails_no_more_and_its_class_is_left_under_another_name(file: Path) -> None:
    journal = journal_with(file, Verdict(POINTS[0], ("lost",), 0.5), Verdict(POINTS[2], ("lost",), 0.5))
    renamed = parse("kill:fsync:7")
    journal.list_classes("toy", [PointClass((renamed,)), PointClass((POINTS[2],))])
    again = Journal(file)
    assert again.failed("toy") == [POINTS[2]] and again.left("toy") == [renamed]


def test_the_report_counts_what_was_tried_failed_and_is_left_by_kind(file: Path) -> None:
    journal = journal_with(file, Verdict(POINTS[1], (), 1800), Verdict(POINTS[3], ("lost",), 1800))
    report = journal.report(["toy", "never-begun"])
    assert "| toy | 4 | 4 | 2 | 2 | 2 | 1 | 0 of 0 | kill twice 1, ENOSPC in a row 1 |" in report
    assert "| never-begun | 0 | 0 | 0 | 0 | 0 | 0 | 0 of 0 |  |" in report
    assert "1.0 hours" in report


def test_a_class_is_done_when_one_of_its_points_was_tried(file: Path) -> None:
    journal = journal_with(file, Verdict(POINTS[1], (), 0.5))
    journal.list_classes("toy", [PointClass((POINTS[0], POINTS[1])), PointClass((POINTS[2], POINTS[3]))])
    assert Journal(file).left("toy") == [POINTS[2]]
    assert "| toy | 4 | 2 | 1 | 1 | 1 | 0 |" in Journal(file).report(["toy"])


def test_pairs_that_differ_are_counted_as_that(file: Path) -> None:
    journal = journal_with(file)
    journal.add_pair("toy", POINTS[0], POINTS[1], [])
    journal.add_pair("toy", POINTS[0], POINTS[2], ["log"])
    assert "| 1 of 2 |" in Journal(file).report(["toy"])


@needs_strace
def test_a_run_without_time_left_goes_on_in_the_next(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*arguments: str) -> int:
        monkeypatch.setattr(
            sys, "argv", ["crash", "--scenario", "toy", "--jobs", "1", "--journal", str(file), *arguments]
        )
        return main()

    assert run("--minutes", "0") == 0
    assert run("--sample", "3") == 0
    first = _tried(file)
    assert run() == 0
    both = _tried(file)
    assert 0 < len(first) < len(both) == len(set(both))
    assert not Journal(file).left("toy")
    assert run("--report") == 0
    assert "| toy | " in capsys.readouterr().out


def _tried(file: Path) -> list[str]:
    entries = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return [entry["point"] for entry in entries if "point" in entry]
