"""Who may do what, decided in one place: the least of what a tool or command admits and what the settings grant."""

from __future__ import annotations

from pathlib import Path

import pytest

from assistant.commands.catalog import command_root
from assistant.commands.registry import grantable_roles
from assistant.core.errors import SettingsError
from assistant.core.permissions import ALL_ROLES, OWNER_ONLY, OWNER_ONLY_PERMISSIONS, Permissions, RoleGrant
from assistant.settings.consistency import check_names
from assistant.settings.home import Home
from assistant.settings.settings import parse_settings_values
from tools.toolbox import tool_roles

AUTHORITY = Permissions(
    {
        "guest": RoleGrant(frozenset({"look", "change"}), frozenset({"help"}), memory=False, budget_share=0.25),
        "room": RoleGrant(frozenset(), frozenset({"help", "stop"}), memory=True, budget_share=0.5),
    }
)


@pytest.mark.parametrize(
    ("role", "name", "admitted", "may"),
    [
        ("owner", "anything", OWNER_ONLY, True),
        ("owner", "for guests", frozenset({"guest"}), False),
        ("guest", "look", ALL_ROLES, True),
        ("guest", "look", OWNER_ONLY, False),
        ("guest", "else", ALL_ROLES, False),
        ("room", "look", ALL_ROLES, False),
        ("stranger", "look", ALL_ROLES | {"stranger"}, False),
        ("", "look", ALL_ROLES, False),
    ],
)
def test_a_tool_is_used_by_whom_it_admits_and_the_settings_name(
    role: str, name: str, admitted: frozenset[str], may: bool
) -> None:
    assert AUTHORITY.may_use_tool(role, name, admitted) is may


def test_a_command_is_typed_by_whom_it_admits_and_the_settings_name() -> None:
    assert AUTHORITY.may_run_command("room", "stop", ALL_ROLES) and not AUTHORITY.may_run_command(
        "guest", "stop", ALL_ROLES
    )
    assert not AUTHORITY.may_run_command("guest", "help", OWNER_ONLY)
    assert not AUTHORITY.may_run_command("guest", "look", ALL_ROLES), "a tool's name is no command's"


def test_what_is_learned_and_spent_goes_by_role() -> None:
    assert [AUTHORITY.may_learn_from(one) for one in ("main", "thread:a", "peer:a:b", "room:a:b", "?")] == [
        True,
        True,
        False,
        True,
        False,
    ]
    assert [AUTHORITY.budget_share(one) for one in ("owner", "guest", "room", "?")] == [1.0, 0.25, 0.5, 0.0]


def test_without_grants_nobody_else_may_anything() -> None:
    for role in ("guest", "room"):
        assert not OWNER_ONLY_PERMISSIONS.may_use_tool(
            role, "look", ALL_ROLES
        ) and not OWNER_ONLY_PERMISSIONS.may_run_command(role, "help", ALL_ROLES)
        assert OWNER_ONLY_PERMISSIONS.budget_share(role) == 0
    assert not OWNER_ONLY_PERMISSIONS.may_learn_from("peer:a:b")


@pytest.mark.parametrize(("name", "why"), [("files", "only the owner may use"), ("gone", "does not exist")])
def test_what_cannot_be_granted_is_told_by_name(name: str, why: str) -> None:
    values, _ = parse_settings_values(Home(Path("home")), f"[guest]\ntools = ['look', '{name}']\n")
    with pytest.raises(SettingsError, match=f"`guest.tools` names '{name}', which {why}"):
        check_names(values, {"look": ALL_ROLES, "files": OWNER_ONLY, "manage_todo_list": OWNER_ONLY}, {})


def test_what_the_shipped_settings_grant_is_there_to_be_granted() -> None:
    """A start only looks at what a person has changed."""
    values, _ = parse_settings_values(Home(Path("home")), "")
    check_names(values, tool_roles(), grantable_roles(command_root()))
