"""Whatever a person, the assistant and the night do to the file of a day: notes are there once, and go when undone."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assistant.core.errors import UsageError
from tests.contract.test_store_memory_files import LATER, WORDS, note
from tests.support.memory_files_home import MemoryFilesHome
from tests.support.store_home import memory_backed_directory

ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("person"), WORDS),
        st.tuples(st.just("note"), st.sampled_from("abc")),
        st.tuples(st.just("undo"), st.just("")),
        st.tuples(st.just("restart"), st.just("")),
    ),
    max_size=12,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(ACTS)
def test_whatever_is_done_notes_are_there_once_and_undo_restores_the_bytes(acts: list[tuple[str, str]]) -> None:
    with memory_backed_directory() as directory:
        home = MemoryFilesHome(directory / "home").open()
        home.day_file().parent.mkdir()
        keys: set[str] = set()
        for act, what in acts:
            stood = _bytes(home)
            if act == "person":
                home.day_file().write_bytes(what.encode())
            elif act == "note":
                assert note(home, f"said {what}", key=what) == (what not in keys)
                now = _bytes(home)
                assert now.startswith(stood) and (now == stood) == (what in keys)
                keys.add(what)
            elif act == "restart":
                home.restart()
            else:
                _undo_newest(home, stood)
        home.close()


def _bytes(home: MemoryFilesHome) -> bytes:
    return home.day_file().read_bytes() if home.day_file().exists() else b""


def _undo_newest(home: MemoryFilesHome, stood: bytes) -> None:
    for edit in home.files.list_edits("owner", limit=1):
        if edit.undone_at is None and edit.after.encode() == stood:
            home.files.undo_edit(edit.id or 0, "owner", LATER)
            assert _bytes(home) == edit.before.encode() and home.day_file().exists() == bool(edit.before)
        else:
            with pytest.raises(UsageError):
                home.files.undo_edit(edit.id or 0, "owner", LATER)
            assert not home.day_file().exists() or home.day_file().read_bytes() == stood
