"""The rules that a linter does not know: sizes, empty packages, one reader of the environment, no leftovers."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("assistant", "sleep", "tools")
LONGEST_FILE = 400
LONGEST_FUNCTION = 60
ENVIRONMENT = ("environ", "getenv", "environb")


def sources(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def written() -> Iterator[tuple[Path, str]]:
    """Every text file of the project that a person wrote."""
    folders = (*PACKAGES, "config", "docs", "tests", ".ci")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]
    paths += [path for path in ROOT.iterdir() if path.is_file() and path.name != "uv.lock"]
    for path in sorted(paths):
        if "__pycache__" not in path.parts:
            try:
                yield path, path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue


def place(path: Path, line: int = 0) -> str:
    return f"{path.relative_to(ROOT)}:{line}" if line else str(path.relative_to(ROOT))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def statements(path: Path) -> tuple[ast.AST, ...]:
    """All but expressions, which are ten times as many and hold no statements."""
    found: list[ast.AST] = []
    waiting: list[ast.AST] = [tree(path)]
    while waiting:
        node = waiting.pop()
        found.append(node)
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            waiting += getattr(node, block, ())
    return tuple(found)


@pytest.fixture(scope="module", autouse=True)
def _trees_are_let_go() -> Iterator[None]:
    """They are hundreds of megabytes, and nobody asks for them after these tests."""
    yield
    statements.cache_clear()
    tree.cache_clear()


# Lines alone are looked at first: parsing every file takes seconds, and these find all that may be meant, and more.
IMPORT = re.compile(r"^[ \t]*(?:import|from)[ \t]+(\w+)", re.MULTILINE)
# Comments, and a docstring with something in it.
BEGINNING = re.compile(r'(?:#.*\n|\s)*+r?"""\s*[^\s"]')
DEFINITION = re.compile(r"^([ ]*)(?:(?:async )?def|class) ")


def may_have_long_function(path: Path) -> bool:
    """Whether the next definition that is no part of one is further off than a function may be long."""
    lines = path.read_text(encoding="utf-8").splitlines()
    begun: list[tuple[int, int]] = []  # indentation and line of what is open
    for number, line in enumerate([*lines, "def "]):
        if definition := DEFINITION.match(line):
            while begun and begun[-1][0] >= len(definition[1]):
                if number - begun.pop()[1] > LONGEST_FUNCTION:
                    return True
            begun.append((len(definition[1]), number))
    return False


def imported(path: Path) -> set[str]:
    """The top-level packages that a module imports."""
    names = {alias.name for node in statements(path) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in statements(path) if isinstance(node, ast.ImportFrom) and not node.level}
    return {name.partition(".")[0] for name in names}


def normal(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


def test_the_wheel_has_three_packages_and_each_is_here() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == list(PACKAGES)
    assert all((ROOT / package / "__init__.py").is_file() for package in PACKAGES)


def test_every_package_that_is_imported_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [project["project"]["dependencies"], *project["project"].get("optional-dependencies", {}).values()]
    declared = {normal(re.split(r"[^\w.-]", requirement)[0]) for group in wanted for requirement in group}
    distributions = importlib.metadata.packages_distributions()
    undeclared = {
        (path, name)
        for path in sources(*PACKAGES)
        for name in {*IMPORT.findall(path.read_text(encoding="utf-8"))} - {*PACKAGES, *sys.stdlib_module_names}
        if not {normal(found) for found in distributions.get(name, [])} & declared
    }
    assert not {f"{place(path)}: {name}" for path, name in undeclared if name in imported(path)}


def test_package_files_hold_a_docstring_at_most_but_for_the_version() -> None:
    filled = {
        place(path): text
        for path in sources(*PACKAGES)
        if path.name == "__init__.py"
        and (text := path.read_text())
        and len(tree(path).body) > bool(ast.get_docstring(tree(path)))
    }
    assert list(filled) == ["assistant/__init__.py"]
    assert re.fullmatch(r'__version__ = "\d+\.\d+\.\d+[^"]*"\n', filled["assistant/__init__.py"])


def test_no_file_is_longer_than_a_head_can_hold() -> None:
    long = {
        place(path): lines
        for path in sources(*PACKAGES, "docs", "tests")
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > LONGEST_FILE
    }
    assert not long


def test_no_function_is_longer_than_a_screen() -> None:
    long = {
        place(path, node.lineno): lines
        for path in sources(*PACKAGES, "docs", "tests")
        if may_have_long_function(path)
        for node in statements(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := (node.end_lineno or 0) - node.lineno + 1) > LONGEST_FUNCTION
    }
    assert not long


def test_every_module_says_what_it_is() -> None:
    silent = [
        place(path)
        for path in sources(*PACKAGES, "docs", "tests")
        if path.name != "__init__.py" and not BEGINNING.match(path.read_text(encoding="utf-8"))
    ]
    assert not silent


def test_only_the_settings_read_the_environment() -> None:
    readers = {
        place(path)
        for path in sources(*PACKAGES, "docs")
        if any(name in path.read_text(encoding="utf-8") for name in ENVIRONMENT)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute) and node.attr in ENVIRONMENT
    }
    # Mem0 reads its switches from there when it is imported: its child process sets them. So do pydantic and numpy: the
    # command sets theirs.
    assert readers == {
        "assistant/cli/lazy.py",
        "assistant/settings/home.py",
        "assistant/settings/settings.py",
        "assistant/wire/memory_worker_main.py",
    }


# A chat about to-dos is welcome; a note to oneself in capitals is not.
LEFTOVERS = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X|NotImplemented" r"Error)\b")
SOMEBODYS_HOME = re.compile(r"/(?:home|Users)/[a-z]\w*/|/(?:root)\b")


def test_nothing_is_left_for_later() -> None:
    found = [
        place(path, number)
        for path, text in written()
        for number, line in enumerate(text.splitlines(), 1)
        if LEFTOVERS.search(line)
    ]
    assert not found


def test_no_file_names_the_machine_it_was_written_on() -> None:
    here = str(ROOT) if len(ROOT.parts) > 2 else "no path so short is telling"
    found = [
        place(path, number)
        for path, text in written()
        for number, line in enumerate(text.splitlines(), 1)
        if SOMEBODYS_HOME.search(line) or here in line
    ]
    assert not found


NEWCOMERS_LOOK_FOR = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "LICENSE",
    "Makefile",
    ".ci/run",
    "docs/index.md",
    "docs/architecture.md",
    "docs/failures.md",
    "docs/glossary.md",
    "docs/developing/decisions.md",
)


@pytest.mark.parametrize("name", NEWCOMERS_LOOK_FOR)
def test_what_a_newcomer_looks_for_is_there(name: str) -> None:
    assert (ROOT / name).stat().st_size > 100
