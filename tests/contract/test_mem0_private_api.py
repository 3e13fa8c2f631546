"""What is used of Mem0's private parts: a release that moves one of them fails here, and tells which."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

_CHILD = "tests.support.processes.mem0_private_api"
_ROOT = Path(__file__).parents[2]


_ALONE = "files"
_TOGETHER = (
    "version",
    "telemetry",
    "attributes_not_set",
    "overridden_with_other_parameters",
    "created_otherwise",
    "listed_by_mem0",
    "second_store",
)


def _told(path: Path, *facts: str) -> dict[str, Any]:
    command = [sys.executable, "-m", _CHILD, str(path), *facts]
    run = subprocess.run(command, capture_output=True, text=True, cwd=_ROOT, check=False)
    assert run.returncode == 0, run.stderr
    return dict(json.loads(run.stdout))


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    facts = _told(tmp_path_factory.mktemp("mem0"), *_TOGETHER)
    return facts.__getitem__


def test_the_minor_version_is_the_one_that_was_read(told: Any) -> None:
    assert told("version").split(".")[:2] == ["2", "2"]


def test_telemetry_is_off(told: Any) -> None:
    assert told("telemetry") is False


def test_everything_that_mem0s_constructor_sets_is_set(told: Any) -> None:
    # Only with telemetry on.
    assert told("attributes_not_set") == ["_telemetry_vector_store"]


def test_what_stands_in_the_place_of_mem0s_is_called_as_mem0s(told: Any) -> None:
    assert told("overridden_with_other_parameters") == []


def test_a_memory_is_created_as_mem0_creates_it_but_for_its_id(told: Any) -> None:
    assert told("created_otherwise") == []


def test_mem0_lists_the_memories_of_a_scope(told: Any) -> None:
    assert told("listed_by_mem0") == ["Mine."]


def test_a_memorys_words_lie_in_one_store_only(told: Any) -> None:
    assert told("second_store") is False


def test_beside_memory_db_mem0_writes_a_number_of_its_own_and_no_history(tmp_path: Path) -> None:
    assert [name for name in _told(tmp_path, _ALONE)[_ALONE] if not name.startswith("memory.db")] == [
        "mem0",
        "mem0/config.json",
    ]
