"""When a backup is due, which ones go, and what their names tell."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from assistant.backup.scheduler import backups_to_remove, first_missed_backup, is_backup_due
from assistant.core.backups import Backup, BackupKind, backup_name, parse_backup_name
from assistant.core.calendar import SleepSchedule

OSLO = ZoneInfo("Europe/Oslo")
DAYS = SleepSchedule("05:00", OSLO)
BEGUN = datetime(2026, 3, 1, 12, tzinfo=UTC)


def backup(made_at: datetime, kind: BackupKind = "daily") -> Backup:
    return Backup(backup_name(made_at, kind), made_at, kind, 100)


def at(day: int, hour: int, month: int = 3) -> datetime:
    return datetime(2026, month, day, hour, tzinfo=OSLO).astimezone(UTC)


@pytest.mark.parametrize(
    ("now", "is_due"), [(at(1, 14), False), (at(2, 4), False), (at(2, 5), True), (at(2, 23), True), (at(9, 3), True)]
)
def test_the_first_backup_is_due_at_its_hour_after_the_home_was_begun(now: datetime, is_due: bool) -> None:
    assert is_backup_due(DAYS, [], BEGUN, now) == is_due


def test_a_home_in_which_nothing_was_said_needs_none() -> None:
    assert not is_backup_due(DAYS, [], None, at(9, 12))
    assert not is_backup_due(SleepSchedule("", OSLO), [], BEGUN, at(9, 12))


def test_what_was_missed_for_a_week_is_made_once() -> None:
    now = at(9, 12)
    assert is_backup_due(DAYS, [backup(at(2, 5))], BEGUN, now)
    assert not is_backup_due(DAYS, [backup(at(2, 5)), backup(now)], BEGUN, now + timedelta(hours=1))
    assert is_backup_due(DAYS, [backup(now)], BEGUN, at(10, 5))


@pytest.mark.parametrize("at_night", ["02:30", "05:00"])
def test_there_is_one_a_day_over_a_year_with_both_changes_of_the_clocks(at_night: str) -> None:
    days, made, now = SleepSchedule(at_night, OSLO), list[Backup](), datetime(2026, 1, 1, 11, tzinfo=UTC)
    begun = now
    while now < begun + timedelta(days=365):
        if is_backup_due(days, made[-2:], begun, now):
            made.append(backup(now))
        now += timedelta(minutes=30)
    local = [one.made_at.astimezone(OSLO).date() for one in made]
    assert len(local) == len(set(local)) == 365


def test_a_day_without_one_is_told_and_a_late_hour_is_not() -> None:
    assert first_missed_backup(DAYS, [backup(at(2, 5))], BEGUN, at(3, 23)) is None
    assert first_missed_backup(DAYS, [backup(at(2, 5))], BEGUN, at(4, 6)) == at(3, 5)
    assert first_missed_backup(DAYS, [backup(at(2, 5)), backup(at(4, 1), "manual")], BEGUN, at(4, 6)) is None


def test_only_those_made_by_themselves_go_the_oldest_first_and_never_the_newest() -> None:
    daily = [backup(at(day, 5)) for day in (4, 2, 3, 5)]
    by_hand = [backup(at(day, 6), "manual") for day in (1, 2)]
    assert backups_to_remove([*by_hand, *daily], 2, at(6, 1)) == [daily[1], daily[2]]
    assert backups_to_remove([*by_hand, *daily], 0, at(6, 1)) == [daily[1], daily[2], daily[0]]
    assert backups_to_remove(by_hand, 1, at(6, 1)) == []


def test_backups_that_a_wrong_clock_dated_in_the_future_neither_stand_for_todays_nor_outlive_it() -> None:
    wrong, now = [backup(at(day, 5, month=9)) for day in (1, 2, 3)], at(9, 12)
    assert is_backup_due(DAYS, wrong, BEGUN, now)
    assert first_missed_backup(DAYS, wrong, BEGUN, now) == at(2, 5)
    assert not is_backup_due(DAYS, [*wrong, backup(now)], BEGUN, now + timedelta(hours=1))
    assert backups_to_remove([*wrong, backup(now)], 3, now) == wrong[:1]


@pytest.mark.parametrize("kind", ["daily", "manual"])
def test_a_name_tells_when_and_why(kind: BackupKind) -> None:
    made_at = datetime(2026, 11, 20, 5, 0, 7, tzinfo=UTC)
    assert parse_backup_name(backup_name(made_at.astimezone(OSLO), kind), 7) == Backup(
        backup_name(made_at, kind), made_at, kind, 7
    )
    assert parse_backup_name(backup_name(made_at, kind, 3), 7) == Backup(
        backup_name(made_at, kind, 3), made_at, kind, 7
    )


@pytest.mark.parametrize(
    "name",
    [
        "script-20261120T100000Z-before-0002.db",
        ".nocturne-20261120T050000Z-daily.tar.gz",
        "nocturne-20261340T050000Z-daily.tar.gz",
        "nocturne-20261120T050000Z-hourly.tar.gz",
        "nocturne-20261120T050000Z-daily.tar.gz.part",
    ],
)
def test_other_files_are_no_backups(name: str) -> None:
    assert parse_backup_name(name, 1) is None
