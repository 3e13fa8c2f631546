"""`assistant import` of calendars and address books: kept, read, once, with what cannot be read by its number."""

from __future__ import annotations

import json
import zipfile
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from assistant.store.calendars import CalendarReader
from tests.support.calendar_home import calendar_text, card_text, timed
from tests.support.command_line import run_assistant

TOMORROW = f"{date.today() + timedelta(days=1):%Y%m%d}"
LUNCH = timed("Lunch with Berta", f"{TOMORROW}T120000")
DAMAGED = "SUMMARY:no start"


def bring(home: Path, file: Path, *options: str) -> dict[str, Any]:
    done = run_assistant(home, "import", str(file), "--json", *options)
    assert done.returncode == 0, done.err
    value: dict[str, Any] = json.loads(done.out)
    return value


def agenda(home: Path) -> str:
    return run_assistant(home, "agenda", "tomorrow").out


def config(home: Path) -> str:
    return (home / "config.toml").read_text()


def test_a_calendar_comes_in_with_its_dates_and_names_what_it_cannot_read(tmp_path: Path) -> None:
    file, home = tmp_path / "family.ics", tmp_path / "home"
    assert run_assistant(home, "remind", "add", "milk", "--at", "tomorrow at 9").returncode == 0
    file.write_text(calendar_text(LUNCH, DAMAGED))
    brought = bring(home, file)
    assert (brought["source"], brought["entries"]) == ("ics", 1)
    assert [it["where"] for it in brought["rejected"]] == ["event 2"]
    assert "Lunch with Berta" in agenda(home)
    assert (home / "workspace" / "imported" / "family.ics").read_bytes() == file.read_bytes()


def test_a_calendar_is_shown_before_anything_was_said(tmp_path: Path) -> None:
    file, home = tmp_path / "family.ics", tmp_path / "home"
    file.write_text(calendar_text(LUNCH))
    bring(home, file)
    shown = run_assistant(home, "agenda", "tomorrow")
    assert "Lunch with Berta" in shown.out and "not read yet" not in shown.out and shown.err == ""
    assert "1 event" in run_assistant(home, "calendar").out
    assert not (home / "script.db").exists()


def test_an_imported_calendar_moves_with_the_data_folder_and_is_told_without_a_path_of_this_machine(
    tmp_path: Path,
) -> None:
    file, home = tmp_path / "family.ics", tmp_path / "home"
    assert run_assistant(home, "remind", "add", "milk", "--at", "tomorrow at 9").returncode == 0
    file.write_text(calendar_text(LUNCH))
    bring(home, file)
    moved = home.rename(tmp_path / "moved")
    read = run_assistant(moved, "calendar", "sync", "family").out
    assert "1 event" in read and "failed" not in read
    (moved / "workspace" / "imported" / "family.ics").unlink()
    told = run_assistant(moved, "calendar", "sync", "family").out
    assert "imported/family.ics is not there" in told and str(tmp_path) not in told
    # As it was told by earlier versions: with the next import the path goes.
    settings = moved / "config.toml"
    settings.write_text(config(moved).replace("imported/family.ics", f"{home}/workspace/imported/family.ics"))
    bring(moved, file)
    assert str(tmp_path) not in config(moved) and config(moved).count("imported/family.ics") == 1


def test_the_same_file_again_changes_nothing_and_a_newer_one_takes_its_place(tmp_path: Path) -> None:
    file, home = tmp_path / "family.ics", tmp_path / "home"
    assert run_assistant(home, "remind", "add", "milk", "--at", "tomorrow at 9").returncode == 0
    file.write_text(calendar_text(LUNCH))
    bring(home, file)
    before = config(home)
    again = run_assistant(home, "import", str(file))
    assert again.out == "Nothing new: family.ics is here already.\n" and config(home) == before
    file.write_text(calendar_text(LUNCH, timed("Regatta", f"{TOMORROW}T150000")))
    bring(home, file)
    assert config(home) == before
    assert "Regatta" in agenda(home)
    assert CalendarReader(home).count_entries() == {"family": (2, 0)}


def test_contacts_come_in_with_their_birthdays(tmp_path: Path) -> None:
    file, home = tmp_path / "people.vcf", tmp_path / "home"
    file.write_text(card_text("Berta", "BDAY:19800229\r\nEMAIL:berta@example.org") + "BEGIN:VCARD\r\nEND:VCARD\r\n")
    brought = bring(home, file)
    assert (brought["source"], brought["entries"]) == ("vcard", 1)
    assert [it["where"] for it in brought["rejected"]] == ["contact 2"]
    (berta,) = CalendarReader(home).find_contacts(["berta"])
    assert (berta.birthday, berta.emails) == ("1980-02-29", ("berta@example.org",))


def test_a_dry_run_counts_and_changes_nothing(tmp_path: Path) -> None:
    file, home = tmp_path / "family.ics", tmp_path / "home"
    file.write_text(calendar_text(LUNCH))
    assert bring(home, file, "--dry-run")["entries"] == 1
    assert not (home / "config.toml").exists() and not (home / "workspace").exists()


def test_a_file_that_is_no_calendar_is_refused_and_nothing_is_changed(tmp_path: Path) -> None:
    file, home = tmp_path / "family.ics", tmp_path / "home"
    file.write_text("hello")
    done = run_assistant(home, "import", str(file))
    assert done.returncode != 0 and "Nothing was changed" in done.err
    assert not (home / "config.toml").exists() and not (home / "workspace").exists()


def test_a_zip_of_calendars_and_contacts_brings_each_of_them(tmp_path: Path) -> None:
    file, home = tmp_path / "takeout.zip", tmp_path / "home"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("Calendar/family.ics", calendar_text(LUNCH))
        archive.writestr("../../work.ics", calendar_text(timed("Regatta", f"{TOMORROW}T150000"), DAMAGED))
    brought = bring(home, file)
    assert brought["entries"] == 2 and [it["where"] for it in brought["rejected"]] == ["event 2"]
    shown = agenda(home)
    assert "Lunch with Berta" in shown and "Regatta" in shown
    assert sorted(it.name for it in (home / "workspace" / "imported").iterdir()) == ["family.ics", "work.ics"]
    before = config(home)
    bring(home, file)
    assert config(home) == before


def test_of_a_zip_whose_second_calendar_is_none_it_is_said_what_was_imported(tmp_path: Path) -> None:
    file, home = tmp_path / "takeout.zip", tmp_path / "home"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("family.ics", calendar_text(LUNCH))
        archive.writestr("work.ics", "hello")
    done = run_assistant(home, "import", str(file))
    assert done.returncode != 0 and "Nothing was changed" not in done.err
    assert "work.ics was not imported" in done.err and "Imported before it and kept: family.ics." in done.err
    assert "Lunch with Berta" in agenda(home)


def test_a_zip_that_unpacks_to_more_than_a_calendar_may_have_changes_nothing(tmp_path: Path) -> None:
    file, home = tmp_path / "bomb.zip", tmp_path / "home"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("family.ics", bytes(2_000_000))
    home.mkdir()
    (home / "config.toml").write_text("[calendar]\nmax_megabytes = 1\n")
    done = run_assistant(home, "import", str(file))
    assert done.returncode != 0 and "larger than 1 MB" in done.err
    assert not (home / "workspace").exists()
