"""What the pages name exists: the check of `make docs`, tried on a small project, and run over this one."""

from __future__ import annotations

import re
import textwrap
from configparser import ConfigParser
from pathlib import Path

import pytest

from docs.check_names import find_missing_names, main

ROOT = Path(__file__).parents[2]
FAILURES = 43
LONGEST_READING_PATH = 2900
MOST_FILES_TO_READ = 10

FILES = {
    "assistant/core/text.py": "WIDTH: int = 80\n\n\ndef shorten() -> None: ...\n\n\nclass Line:\n    width: int\n",
    "assistant/core/__init__.py": "",
    "tests/unit/test_text.py": "def test_a_line_is_cut() -> None: ...\n",
    "config/default.toml": '[sleep]\nat = "03:30"\n',
    "docs/other.md": "# Other\n\n## Where it is stored\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def missing(project: Path, text: str, page: str = "docs/page.md") -> list[str]:
    (project / page).parent.mkdir(parents=True, exist_ok=True)
    (project / page).write_text(text, encoding="utf-8")
    return find_missing_names(project)


EXISTS = (
    "`assistant/core/text.py`",
    "`assistant/core/`",
    "`assistant/core/text.py: Line.width`",
    "`assistant/core/text.py`: `shorten`, `WIDTH`",
    "`tests/unit/test_text.py::test_a_line_is_cut`",
    "`test_a_line_is_cut`",
    "`assistant.core`",
    "`assistant.core.text`",
    "`assistant.core.text.Line`",
    "`sleep.at`",
    "`MEMORY.md`, `memory/2026-11-20.md`, `run/control.sock`",
    "[other](other.md), [a heading](other.md#where-it-is-stored), [elsewhere](https://example.org/nothing.py)",
    "```text\nassistant/core/text.py  cuts lines\n```",
    "```python\nfrom assistant.core.text import Line\n```",
    "```sh\nassistant/nothing.py\n```",
)


@pytest.mark.parametrize("text", EXISTS)
def test_what_exists_is_no_problem(project: Path, text: str) -> None:
    assert missing(project, text) == []


MISSING = (
    ("`assistant/core/words.py`", "assistant/core/words.py"),
    ("`core/text.py`", "core/text.py"),
    ("`assistant/house/`", "assistant/house/"),
    ("`assistant/core/text.py: Page`", "assistant/core/text.py: Page"),
    ("`assistant/core/text.py`: `shorten`, `Page`", "assistant/core/text.py: Page"),
    ("`assistant/core/text.py: Line.height`", "assistant/core/text.py: Line.height"),
    ("`tests/unit/test_text.py::test_nothing`", "tests/unit/test_text.py: test_nothing"),
    ("`test_nothing`", "test_nothing"),
    ("`assistant.core.words`", "assistant.core.words"),
    ("`assistant.core.text.Page`", "assistant.core.text.Page"),
    ("`sleep.when`", "sleep.when"),
    ("[other](others.md)", "the link others.md"),
    ("[other](other.md#when)", "the link other.md#when"),
    ("```text\n-> assistant/core/words.py\n```", "assistant/core/words.py"),
    ("```python\nfrom assistant.core.text import Page\n```", "assistant.core.text.Page"),
)


@pytest.mark.parametrize(("text", "name"), MISSING)
def test_what_does_not_exist_is_named_with_its_page_and_line(project: Path, text: str, name: str) -> None:
    line = 4 if text.startswith("```") else 3
    assert missing(project, f"# Page\n\n{text}\n") == [f"docs/page.md:{line}: {name} does not exist"]


def test_what_tells_of_the_past_has_only_its_links_checked(project: Path) -> None:
    assert missing(project, "`assistant/core/words.py` was split.", "CHANGELOG.md") == []
    assert missing(project, "See [the page](nowhere.md).", "CHANGELOG.md") == [
        "CHANGELOG.md:1: the link nowhere.md does not exist"
    ]


def test_the_check_fails_where_a_name_does_not_exist(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(project) == 0
    missing(project, "`test_nothing`")
    assert main(project) == 1
    assert capsys.readouterr().err == "docs/page.md:1: test_nothing does not exist\n"


# ------------------------------------------------------------------------------------------------- pages for developers


def page_rows(page: str, first: str) -> list[list[str]]:
    """The cells of each table row of a page of docs/ whose first cell matches."""
    lines = (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return [row for row in rows if re.fullmatch(first, row[0])]


def test_every_failure_has_a_test_that_carries_its_number() -> None:
    rows = page_rows("failures.md", r"F\d\d")
    assert [row[0] for row in rows] == [f"F{number:02}" for number in range(1, FAILURES + 1)]
    for row in rows:
        tests = re.findall(r"`(?:[\w/]+\.py::)?(test_\w+)`", row[-1])
        assert tests, row[0]
        assert all(f"{row[0].lower()}_" in name for name in tests), row[0]


def test_every_invariant_has_a_place_and_a_test() -> None:
    rows = page_rows("architecture.md", r"I\d+")
    assert [row[0] for row in rows] == [f"I{number}" for number in range(1, 12)]
    for row in rows:
        assert "/" in row[-2], row[0]
        assert "test_" in row[-1], row[0]


def test_the_core_can_be_read_in_an_hour_and_the_page_says_how_long_it_is() -> None:
    rows = page_rows("architecture.md", r"\d+\. `[\w/]+\.py`")
    files = [ROOT / row[0].partition(" ")[2].strip("`") for row in rows]
    lines = [len(file.read_text(encoding="utf-8").splitlines()) for file in files]
    assert len(files) == MOST_FILES_TO_READ
    assert sum(lines) <= LONGEST_READING_PATH
    for row, count in zip(rows, lines, strict=True):
        assert int(row[1]) == pytest.approx(count, rel=0.25), row[0]


CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
EXAMPLES = [textwrap.dedent(block) for block in re.findall(r"^ *```python\n(.*?)^ *```$", CONTRIBUTING, re.M | re.S)]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda text: text.strip().splitlines()[-1].strip()[:30])
def test_an_example_for_contributors_runs(example: str) -> None:
    names: dict[str, object] = {"__name__": "example"}
    exec(compile(example, "CONTRIBUTING.md", "exec", dont_inherit=True), names)
    assert names.keys() > {"__name__", "__builtins__"}, "the example defines nothing"


def test_the_floors_of_the_page_are_those_that_are_checked() -> None:
    parser = ConfigParser()
    parser.read(ROOT / ".importlinter", encoding="utf-8")
    layers = parser["importlinter:contract:layers"]["layers"].split("\n")
    checked = [{room.strip() for room in layer.split("|")} for layer in layers if layer.strip()]
    floors: list[list[str]] = []
    for row in page_rows("architecture.md", r"\d*"):
        floors += [[]] if row[0] else []
        floors[-1].append(row[1].strip("`/").removesuffix(".py").replace("/", "."))
    assert [sorted(floor) for floor in floors] == [sorted(floor) for floor in checked]
