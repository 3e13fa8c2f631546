"""Every command of docs/security.md does what the page says, and every test that it names as a proof is there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from keyring.backends.fail import Keyring as NoKeyring

from assistant.settings.home import Home
from assistant.settings.settings import settings_problems
from tests.support.command_line import ROOT
from tests.support.docs_pages import DOCS, read_page, run_shell_line, shell_lines
from tests.support.keyring import use_keyring

PAGE = read_page("security.md")
PROOFS = re.findall(r"\btest_\w+\b", PAGE.replace("begin with `test_`", ""))


@cache
def all_tests() -> frozenset[str]:
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "tests").rglob("test_*.py"))
    return frozenset(
        node.name
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    )


@pytest.mark.parametrize("name", sorted(set(PROOFS)))
def test_a_proof_that_the_page_names_is_there(name: str) -> None:
    assert name in all_tests()


def test_every_command_of_the_page_works(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    lines = shell_lines(PAGE)
    assert len(lines) >= 11
    with use_keyring(NoKeyring()):  # type: ignore[no-untyped-call]
        run_shell_line('assistant chat -m "the booking number is QX-7781"', home.path)
        printed = {line: run_shell_line(line, home.path) for line in lines}
    assert "All is well." in printed["assistant doctor"]
    assert printed["assistant verify"].endswith("All is well.\n")
    assert settings_problems(home, home.config.read_text(encoding="utf-8")) == ()


def test_every_row_of_what_leaves_names_a_setting() -> None:
    table = PAGE.partition("| What | Where to |")[2].partition("\n\n")[0].splitlines()[2:]
    assert len(table) >= 9
    for row in table:
        assert re.search(r"`[a-z]+\.[a-z_]+`", row.rsplit("|", 2)[1]), row


def test_links_between_pages_lead_somewhere() -> None:
    for path in DOCS.glob("*.md"):
        for target, anchor in re.findall(
            r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)", path.read_text(encoding="utf-8")
        ):
            there = (path.parent / target).resolve() if target else path
            assert there.exists(), (path.name, target)
            assert not anchor or anchor in anchors(there), (path.name, target, anchor)


def anchors(path: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
