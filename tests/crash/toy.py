"""Small programs that keep a counter, one well and the others each with a classic mistake. They show that the harness
finds what it is there to find (`test_harness.py`)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from assistant.core.errors import StoreError
from tests.crash.scenario import AllowedDifference, Faults, Scenario, Snapshot
from tests.crash.witness import EffectLog

_STEPS = 3


def _prepare(home: Path) -> None:
    home.mkdir()
    (home / "state").write_text(json.dumps({"done": 0}), encoding="utf-8")


def _count(home: Path, store: Callable[[Path, bytes], None]) -> None:
    """Announce each number once it is stored, and again after a crash: whoever listens knows numbers it has heard."""
    witness = EffectLog(home)
    try:
        done = json.loads((home / "state").read_text(encoding="utf-8"))["done"]
        for number in range(1, _STEPS + 1):
            if number > done:
                store(home / "state", json.dumps({"done": number}).encode())
            witness.record("announced", number=number)
    except OSError as error:
        raise StoreError(f"The state could not be stored: {error.strerror}. Nothing was changed.") from None


def _look(home: Path) -> Snapshot:
    announced = [seen["number"] for seen in EffectLog(home).recorded("announced")]
    return {
        "state": json.loads((home / "state").read_text(encoding="utf-8")),
        "heard": sorted(set(announced)),
        "announced": len(announced),
        "files": sorted(path.name for path in home.iterdir() if path.suffix != ".new"),
    }


def _well(path: Path, data: bytes) -> None:
    new = path.with_suffix(".new")
    file = os.open(new, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    try:
        _write(file, data)
        os.fsync(file)
    finally:
        os.close(file)
    new.replace(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _in_place(path: Path, data: bytes) -> None:
    file = os.open(path, os.O_WRONLY | os.O_TRUNC)
    try:
        _write(file, data)
        os.fsync(file)
    finally:
        os.close(file)


def _unsynced(path: Path, data: bytes) -> None:
    new = path.with_suffix(".new")
    new.write_bytes(data)
    new.replace(path)


def _write(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]


def _again(before: int, after: int, faults: Faults) -> bool:
    return before <= after <= before * (1 + faults.all)


def _scenario(name: str, store: Callable[[Path, bytes], None], about: str) -> Scenario:
    said_again = AllowedDifference("announced", "a restart announces again what it had stored", _again)
    return Scenario(name, about, _prepare, lambda home: _count(home, store), _look, (said_again,))


def _loud(path: Path, data: bytes) -> None:
    try:
        _well(path, data)
    except OSError as error:
        raise RuntimeError("nobody handles this") from error


def _astray(path: Path, data: bytes) -> None:
    _well(path, data)
    path.parent.with_name("astray").write_bytes(data)


TOYS = {
    scenario.name: scenario
    for scenario in (
        _scenario("toy", _well, "a new file, synced, takes the old one's name; then the directory is synced"),
        _scenario("toy-in-place", _in_place, "the mistake: the only copy is overwritten"),
        _scenario("toy-unsynced", _unsynced, "the mistake: announced before it is durable"),
        _scenario("toy-astray", _astray, "the mistake: a file is written beside the home"),
        _scenario("toy-loud", _loud, "the mistake: an error of the disk ends in a traceback"),
    )
}
