"""`assistant export`: everything, to read and to move; a new data folder that is made of it exports the same."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from tests.scenario.test_cli_import import OFFLINE, conversation, export
from tests.support.command_line import one_line_error, run_in_process


def lived(home: Path, tmp_path: Path) -> None:
    """A home with talk, a thread, an import, reminders, to-dos, something learned and something forgotten."""
    path = export(tmp_path / "c.json", conversation(0, "My bicycle is called Rocinante.", "A fine name."))
    for words in (
        ("chat", "-m", "My sister is called Berta and lives in Lisbon."),
        ("chat", "-m", "The code of the gate is kestrel-4471."),
        ("chat", "--session", "trip", "-m", "The train to Rome leaves at nine."),
        ("import", str(path)),
        ("remind", "add", "water the plants", "--at", "2031-05-06 09:00"),
        ("todo", "add", "paint the hull"),
        ("sleep",),
        ("reset", "trip", "--yes"),
        ("forget", "kestrel-4471", "--yes"),
    ):
        done = run_in_process(home, *words, **OFFLINE)
        assert done.returncode == 0, (words, done.err)
    (home / "workspace").mkdir(exist_ok=True)
    (home / "workspace" / "list.txt").write_text("rope")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_a_home_made_of_an_export_exports_the_same(tmp_path: Path) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    lived(home, tmp_path)
    assert run_in_process(home, "export", str(tmp_path / "one")).returncode == 0
    made = run_in_process(other, "import", str(tmp_path / "one"))
    assert "Your data folder is made of one" in made.out, made.err
    assert run_in_process(other, "export", str(tmp_path / "two")).returncode == 0
    one, two = contents(tmp_path / "one"), contents(tmp_path / "two")
    assert one.keys() == two.keys()
    assert [name for name in one if one[name] != two[name]] == []
    assert b"kestrel" not in b"".join(one.values())
    assert run_in_process(other, "verify").returncode == 0
    found = run_in_process(other, "memory", "search", "Lisbon", **OFFLINE)
    assert "Berta" in found.out
    answer = run_in_process(other, "chat", "-m", "Where does Berta live?", **OFFLINE)
    assert "Lisbon" in answer.out
    assert "water the plants" in run_in_process(other, "remind", "list").out


def test_an_export_as_a_zip_is_the_same_in_one_file(tmp_path: Path) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    lived(home, tmp_path)
    assert run_in_process(home, "export", str(tmp_path / "folder")).returncode == 0
    assert run_in_process(home, "export", str(tmp_path / "all.zip")).returncode == 0
    with zipfile.ZipFile(tmp_path / "all.zip") as archive:
        packed = {name: archive.read(name) for name in archive.namelist()}
    assert packed == contents(tmp_path / "folder")
    assert (tmp_path / "all.zip").stat().st_mode & 0o777 == 0o600
    assert run_in_process(other, "import", str(tmp_path / "all.zip")).returncode == 0
    assert b"rope" in (other / "workspace" / "list.txt").read_bytes()
    assert "## You" in packed["conversations/main-1.md"].decode()


def test_an_export_comes_into_a_home_that_has_talk_as_archived_conversations(tmp_path: Path) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    # An order calls a tool: its call and its result are no messages, for an export as for an import.
    for place, words in ((home, "My sister is called Berta. Add milk to my list."), (other, "I have a boat.")):
        assert run_in_process(place, "chat", "-m", words, **OFFLINE).returncode == 0
    exported = json.loads(run_in_process(home, "export", str(tmp_path / "one"), "--json").out)
    report = json.loads(run_in_process(other, "import", str(tmp_path / "one"), "--json").out)
    assert (report["source"], report["conversations"], report["rejected"]) == ("jsonl", 1, [])
    assert report["messages"] == exported["messages"] == 2
    written = run_in_process(home, "sessions", "export", "main", "-o", str(tmp_path / "main.md"))
    assert "2 messages written" in written.out + written.err
    assert "Nothing new" in run_in_process(other, "import", str(tmp_path / "one")).out
    assert "I have a boat." in run_in_process(other, "sessions", "export", "main").out


def test_an_export_of_this_data_folder_brings_only_what_is_not_here(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for words in (("chat", "-m", "My sister is called Berta."), ("chat", "--session", "trip", "-m", "I fly at nine.")):
        assert run_in_process(home, *words, **OFFLINE).returncode == 0
    assert run_in_process(home, "export", str(tmp_path / "one.zip")).returncode == 0
    assert "all 4 messages are here already" in run_in_process(home, "import", str(tmp_path / "one.zip")).out
    assert len(json.loads(run_in_process(home, "sessions", "--json").out)) == 2
    # Elsewhere something was said since: that is new, and nothing else.
    elsewhere = tmp_path / "elsewhere"
    assert run_in_process(elsewhere, "import", str(tmp_path / "one.zip")).returncode == 0
    assert run_in_process(elsewhere, "chat", "-m", "My boat is called Kiel.", **OFFLINE).returncode == 0
    assert run_in_process(elsewhere, "export", str(tmp_path / "two.zip")).returncode == 0
    report = json.loads(run_in_process(home, "import", str(tmp_path / "two.zip"), "--json").out)
    assert (report["conversations"], report["messages"], report["known"]) == (1, 2, 4)


def test_an_export_writes_over_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert run_in_process(home, "chat", "-m", "hello", **OFFLINE).returncode == 0
    (tmp_path / "all.zip").write_text("mine")
    for name in ("all.zip", "."):
        assert "exists already" in one_line_error(run_in_process(home, "export", str(tmp_path / name)))
    nowhere = one_line_error(run_in_process(home, "export", str(tmp_path / "nowhere" / "all.zip")))
    assert "cannot be made: No such file or directory. Nothing was written" in nowhere
    assert (tmp_path / "all.zip").read_text() == "mine"


@pytest.mark.parametrize("name", ["files/../../outside.txt", "home/../outside.txt", "home/config.toml", "/outside.txt"])
def test_names_in_an_export_lead_nowhere(tmp_path: Path, name: str) -> None:
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as archive:
        archive.writestr("export.json", '{"format": "nocturne-export", "version": 1}')
        archive.writestr(name, "x")
    home = tmp_path / "home"
    assert run_in_process(home, "import", str(tmp_path / "bad.zip")).returncode == 0
    assert not (tmp_path / "outside.txt").exists()
    assert not (home / "config.toml").exists()
    assert not (home / "outside.txt").exists()


def test_a_damaged_export_is_refused_by_the_name_of_its_file(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as archive:
        archive.writestr("export.json", '{"format": "nocturne-export", "version": 1}')
        archive.writestr("sessions/main.jsonl", '{"id": 1,')
    error = one_line_error(run_in_process(tmp_path / "home", "import", str(tmp_path / "bad.zip")))
    assert "sessions/main.jsonl in the export is damaged" in error
