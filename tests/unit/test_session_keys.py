"""Keys of sessions: whatever a network calls somebody, nobody gets another's key, and nobody an owner's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.core.errors import UsageError
from assistant.core.sessions import (
    MAIN_SESSION,
    OWNER_SCOPE,
    encode_key_part,
    is_visible_on_bridge,
    peer_session_key,
    room_session_key,
    session_role,
    session_scope,
)
from assistant.store.log.reader import session_folder_name

LONG = "x" * 1000
HOSTILE = [
    "main",
    "owner",
    "branch:1",
    "thread:a",
    "a:b",
    "a%3Ab",
    "a",
    "b:a",
    ":",
    "..",
    ".",
    "/",
    "../../main",
    "a/b",
    "\\",
    "~",
    encode_key_part(LONG),
    LONG,
    LONG + "x",
    "A",
    "å",
    "a\u030a",
    "nl\n",
    "nl",
    "nul\0",
    "nul",
    " ",
    "\u202e",
    "\ud800",
    "\udfff",
    "?",
    "*",
    "%",
    "%25",
    "@ann:example.org",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_makes_an_owner(name: str) -> None:
    assert (
        session_role(peer_session_key(name, name)) == "guest" and session_role(room_session_key(name, name)) == "room"
    )
    assert session_scope(peer_session_key("kept", name)) == peer_session_key("kept", name) != OWNER_SCOPE
    assert MAIN_SESSION not in (peer_session_key("kept", name), room_session_key("kept", name))


def test_two_names_never_share_a_key_or_a_folder() -> None:
    keys = [key(bridge, name) for key in (peer_session_key, room_session_key) for bridge in HOSTILE for name in HOSTILE]
    assert len(set(keys)) == len(keys)
    folders = {session_folder_name(key).lower() for key in keys}
    assert len(folders) == len(keys)
    assert all(len(folder) < 250 and "/" not in folder and folder not in (".", "..") for folder in folders)


@given(st.tuples(st.text(min_size=1), st.text(min_size=1)), st.tuples(st.text(min_size=1), st.text(min_size=1)))
def test_any_two_accounts_have_two_keys(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert (peer_session_key(*one) == peer_session_key(*other)) == (one == other)
    assert peer_session_key(*one).isascii() and peer_session_key(*one).count(":") == 2


def test_an_empty_name_is_nobodys() -> None:
    with pytest.raises(UsageError, match="empty"):
        peer_session_key("kept", "")
    with pytest.raises(UsageError, match="empty"):
        room_session_key("", "1")


def test_what_happens_in_a_session_is_shown_on_its_bridge_and_the_owners_anywhere() -> None:
    assert is_visible_on_bridge(MAIN_SESSION, "a") and is_visible_on_bridge("thread:x", "b")
    assert is_visible_on_bridge(peer_session_key("a", "b"), "a") and not is_visible_on_bridge(
        peer_session_key("a", "b"), "b"
    )
    assert is_visible_on_bridge(room_session_key(LONG, "1"), LONG) and not is_visible_on_bridge(
        room_session_key("a:b", "1"), "a"
    )
