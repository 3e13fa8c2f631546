"""Who may do what, decided in one place: the least of what a tool or command admits and what the settings grant."""

from __future__ import annotations

import pytest

from assistant.core.authority import EVERYBODY, NOBODY_ELSE, OWNER_ALONE, Authority, Grant, misnamed

AUTHORITY = Authority(
    {
        "guest": Grant(frozenset({"look", "change"}), frozenset({"help"}), memory=False, budget_share=0.25),
        "room": Grant(frozenset(), frozenset({"help", "stop"}), memory=True, budget_share=0.5),
    }
)


@pytest.mark.parametrize(
    ("role", "name", "admitted", "may"),
    [
        ("owner", "anything", OWNER_ALONE, True),
        ("owner", "for guests", frozenset({"guest"}), False),
        ("guest", "look", EVERYBODY, True),
        ("guest", "look", OWNER_ALONE, False),
        ("guest", "else", EVERYBODY, False),
        ("room", "look", EVERYBODY, False),
        ("stranger", "look", EVERYBODY | {"stranger"}, False),
        ("", "look", EVERYBODY, False),
    ],
)
def test_a_tool_is_used_by_whom_it_admits_and_the_settings_name(
    role: str, name: str, admitted: frozenset[str], may: bool
) -> None:
    assert AUTHORITY.may_use(role, name, admitted) is may


def test_a_command_is_typed_by_whom_it_admits_and_the_settings_name() -> None:
    assert AUTHORITY.may_type("room", "stop", EVERYBODY) and not AUTHORITY.may_type("guest", "stop", EVERYBODY)
    assert not AUTHORITY.may_type("guest", "help", OWNER_ALONE)
    assert not AUTHORITY.may_type("guest", "look", EVERYBODY), "a tool's name is no command's"


def test_what_is_learned_and_spent_goes_by_role() -> None:
    assert [AUTHORITY.learns(one) for one in ("main", "thread:a", "peer:a:b", "room:a:b", "?")] == [
        True, True, False, True, False,
    ]  # fmt: skip
    assert [AUTHORITY.share(one) for one in ("owner", "guest", "room", "?")] == [1.0, 0.25, 0.5, 0.0]


def test_without_grants_nobody_else_may_anything() -> None:
    for role in ("guest", "room"):
        assert not NOBODY_ELSE.may_use(role, "look", EVERYBODY) and not NOBODY_ELSE.may_type(role, "help", EVERYBODY)
        assert NOBODY_ELSE.share(role) == 0
    assert not NOBODY_ELSE.learns("peer:a:b")


def test_what_cannot_be_granted_is_told_by_name() -> None:
    admitting = {"look": EVERYBODY, "files": OWNER_ALONE}
    assert misnamed(["look", "files", "gone"], admitting, "guest") == ["files", "gone"]
