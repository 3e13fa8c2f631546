"""The check of the words that people read finds them where people read them, and nowhere else."""

from __future__ import annotations

from pathlib import Path

from docs.check_words import find_problems

CODE = '''
"""A docstring: whoever reads it works on the program."""
import click

@click.command()
def show() -> None:
    """Show whatever, whoever asks."""
    log.info("nobody's business, by itself")
    raise ValueError("It goes on by itself.")

def pure() -> None:
    """Whoever calls this knows."""

SQL = "SELECT a FROM b WHERE it goes on"
'''


def write_tree(root: Path) -> None:
    for folder in ("assistant", "sleep", "config", "docs"):
        (root / folder).mkdir()
    (root / "assistant" / "shown.py").write_text(CODE)
    (root / "config" / "default.toml").write_text("# It is made by itself.\nkey = 1\n")
    (root / "README.md").write_text("The master log is kept.\n")
    (root / "docs" / "glossary.md").write_text("A tick is a pass of the runtime.\n")


def test_only_what_people_read_is_checked(tmp_path: Path) -> None:
    write_tree(tmp_path)
    found = sorted((name, line) for name, line, _ in find_problems(tmp_path))
    assert found == [
        ("README.md", 1),
        ("assistant/shown.py", 7),
        ("assistant/shown.py", 9),
        ("assistant/shown.py", 9),
        ("config/default.toml", 1),
    ]


def test_what_is_to_be_written_instead_is_said(tmp_path: Path) -> None:
    write_tree(tmp_path)
    texts = [text for _, _, text in find_problems(tmp_path)]
    assert any("'master log' (rather: message log)" in text for text in texts)
