"""Checks that what the pages name exists: files, modules, classes, tests, links.

`make docs` and `make lint` run it, and print a line with page and line number for each name that does not exist. It
reads README.md, CONTRIBUTING.md, CHANGELOG.md and every page below docs/:

- A relative link leads to a file, and to a heading of that file where it names one.
- A path in backticks exists: one that begins with a folder of the project, or ends in `.py`. What follows it exists in
  that file: `path.py::test_name`, `path.py: Name`, and further names in backticks after a colon.
- A dotted name in backticks is a module, a name in a module, or a setting; a test's name alone is that of some test.
- Paths in blocks of text exist, and so does what blocks of Python import from the project.

CHANGELOG.md and the decisions tell of the past: only their links are checked.
"""

from __future__ import annotations

import ast
import re
import sys
import textwrap
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGES = ("assistant", "sleep", "tools", "tests", "docs")
FOLDERS = (*PACKAGES, "config", ".ci")
LINKS_ONLY = ("CHANGELOG.md", "docs/developing/decisions.md")
_FENCE = re.compile(r"^ *```(\w*)[^\n]*\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
_SPAN = re.compile(r"`([^`\n]+(?:\n[^`\n]+)?)`")
_LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)")
_PATH = re.compile(rf"((?:(?:{'|'.join(map(re.escape, FOLDERS))})/[\w./-]*)|[\w./-]+\.py)(?:(?:::|: )([\w.]+))?")
_DOTTED = re.compile(rf"(?:{'|'.join(PACKAGES)})(?:\.\w+)+")
_PATH_IN_TEXT = re.compile(rf"(?<![\w/.])(?:{'|'.join(PACKAGES)})/[\w./-]+\.py")
_TEST = re.compile(r"test_\w+")
# Names after a path: `file.py`: `Name`, `Other`.
_NAMES_AFTER = re.compile(r":((?:,?\s+`[\w.]+`)+)")

Problem = tuple[int, str]
"""The line of a page, and the name that does not exist."""


def main(root: Path) -> int:
    """Print what does not exist. Returns the exit code."""
    missing = find_missing_names(root)
    for line in missing:
        print(line, file=sys.stderr)
    return 1 if missing else 0


def find_missing_names(root: Path) -> list[str]:
    """A line for each name of a page that does not exist, with page and line number."""
    pages = [*sorted(root.glob("*.md")), *sorted((root / "docs").rglob("*.md"))]
    return [
        f"{page.relative_to(root)}:{line}: {name} does not exist"
        for page in pages
        for line, name in sorted(_missing_in_page(root, page))
    ]


def _missing_in_page(root: Path, page: Path) -> Iterator[Problem]:
    text = page.read_text(encoding="utf-8")
    prose = _FENCE.sub(lambda block: "\n" * block[0].count("\n"), text)
    yield from _missing_links(page, prose)
    if str(page.relative_to(root)) not in LINKS_ONLY:
        yield from _missing_in_prose(root, prose)
        yield from _missing_in_blocks(root, text)


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


# ---------------------------------------------------------------------------------------------------------------- links


def _missing_links(page: Path, prose: str) -> Iterator[Problem]:
    for link in _LINK.finditer(prose):
        target, anchor = link[1], link[2]
        there = (page.parent / target).resolve() if target else page
        if not there.exists() or (anchor and anchor not in anchors_of_page(there)):
            yield _line(prose, link.start()), f"the link {target}{'#' if anchor else ''}{anchor or ''}"


def anchors_of_page(page: Path) -> set[str]:
    """The anchors that a page's headings get where it is shown."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


# ---------------------------------------------------------------------------------------------------------------- names


def _missing_in_prose(root: Path, prose: str) -> Iterator[Problem]:
    for span in _SPAN.finditer(prose):
        name, line = " ".join(span[1].split()), _line(prose, span.start())
        if path := _PATH.fullmatch(name):
            after = _NAMES_AFTER.match(prose, span.end())
            names = [path[2] or "", *re.findall(r"`([\w.]+)`", after[1] if after else "")]
            if not (root / path[1]).exists():
                yield line, path[1]
            elif path[1].endswith(".py"):
                wanted = [one for one in names if one]
                yield from ((line, f"{path[1]}: {one}") for one in wanted if not _defines(root / path[1], one))
        elif (_DOTTED.fullmatch(name) and not _is_dotted_name(root, name)) or (
            _TEST.fullmatch(name) and name not in _all_tests(root)
        ):
            yield line, name


def _missing_in_blocks(root: Path, text: str) -> Iterator[Problem]:
    for block in _FENCE.finditer(text):
        line = _line(text, block.start()) + 1
        if block[1] in ("", "text"):
            for path in _PATH_IN_TEXT.finditer(block[2]):
                if not (root / path[0]).exists():
                    yield line + block[2].count("\n", 0, path.start()), path[0]
        elif block[1] == "python":
            yield from ((line + number, name) for number, name in _missing_imports(root, textwrap.dedent(block[2])))


def _missing_imports(root: Path, code: str) -> Iterator[Problem]:
    """What code imports from the project and is not there; lines count from 0."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PACKAGES:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from ((node.lineno - 1, one) for one in names if not _is_dotted_name(root, one))


def _is_dotted_name(root: Path, name: str) -> bool:
    """Whether it is a package, a module, a name in a module, or a setting."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        place = root.joinpath(*parts[:count])
        if place.is_dir() and count == len(parts):
            return True
        if (file := place.with_name(f"{place.name}.py")).is_file():
            return count == len(parts) or _defines(file, ".".join(parts[count:]))
    return len(parts) == 2 and parts[1] in _settings(root).get(parts[0], {})


def _defines(file: Path, name: str) -> bool:
    return name in _names_in(file)


@cache
def _names_in(file: Path) -> frozenset[str]:
    """Top-level names of a module, and `Class.member` for what a class has."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    found = set(_names_of(tree.body))
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            members = set(_names_of(node.body))
            found |= {f"{node.name}.{member}" for member in members} | {one for one in members if _TEST.match(one)}
    return frozenset(found)


def _names_of(body: list[ast.stmt]) -> Iterator[str]:
    for node in body:
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.If(body=body, orelse=other):
                yield from (*_names_of(body), *_names_of(other))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.Assign(targets=targets):
                yield from (one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name))


@cache
def _all_tests(root: Path) -> frozenset[str]:
    pages = (path.read_text(encoding="utf-8") for path in (root / "tests").rglob("test_*.py"))
    return frozenset(name for page in pages for name in re.findall(r"\bdef (test_\w+)", page))


@cache
def _settings(root: Path) -> dict[str, dict[str, object]]:
    file = root / "config" / "default.toml"
    return tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


if __name__ == "__main__":
    sys.exit(main(Path(__file__).parents[1]))
