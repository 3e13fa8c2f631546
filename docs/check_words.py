"""Checks the words that people read: plain, direct English, without the vocabulary of the machinery.

`make lint` runs it, and prints a line with file and line number for each word that is not to be used. It reads

- every text of the program with two words or more, but for docstrings, SQL, regular expressions and lines of the log;
- the help of commands, which is their docstring, and the comments of `config/default.toml`, which are their reference;
- README.md and the pages for users in docs/.

What models read (tools, prompts) is not for people, and is left out. `WORDS` says what to write instead.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

# A word that is not to be used, and what to write instead.
WORDS = {
    r"whoever|whomever|whatever else": "who, anyone, or the thing itself",
    r"shall": "will, must, or the imperative",
    r"the house|house's": "the assistant",
    r"nobody's": "not yours, unassigned",
    r"goes on|go on with|going on": "continues, runs, resumes",
    r"by (?:itself|themselves)": "automatically",
    r"by hand": "manually",
    r"(?:it|that|this|which|still|and) holds\b(?! (?:of|the|a|an|all|up|\d))": "is valid, is current",
    r"no longer holds?|hold no longer|memories that hold": "is out of date; current memories",
    r"stands? (?:in|there|at|on|beside)\b": "is in",
    r"\blies\b|\blie (?:in|beside|there)\b": "is, is stored",
    r"taken? back|takes? back|took back|taking back": "undo",
    r"clerk": "offline mode (no language model)",
    r"\bticks?\b": "leave it out",
    # The command of a fleet has the name that operators know.
    r"(?<!fleet )(?<!`)\bdrain(?:ed|s)?\b": "leave it out",
    r"master log": "message log",
    r"working context|in view|out of view": "what the model currently sees",
    r"\bpressure\b": "how full the context is",
    r"\bcommitments?\b|\bcoverage\b|\boutbox\b|\binbox\b": "leave it out",
    r"is told\b|was told\b|are told\b|tells? (?:of|what|how|who|why|when|where)\b": "shows, reports, says",
    r"asked for again|is asked for\b": "say what asks",
    r"takes? (?:it|them) along": "export",
    r"put(?:s|ting)? (?:it |them |a memory )?right": "correct",
    r"as far as it is": "name it",
    r"beside it|beside them": "next to it, also",
}
_BANNED = [
    (re.compile(rf"\b(?:{pattern})" if pattern[0] not in "\\(" else pattern, re.I), instead)
    for pattern, instead in WORDS.items()
]
PAGES = ("README.md", "docs/*.md")
# Pages for those who work on the program: they speak of its machinery.
NOT_FOR_USERS = ("docs/architecture.md", "docs/glossary.md", "docs/failures.md")
# Rooms whose texts a model reads.
MODEL_READS = ("assistant/context/build.py", "assistant/context/normalise.py", "assistant/runtime/recall.py")
# Texts that are stored, or lists of words.
ALLOWED = ("by hand ", "taken back")
_LOGGED = frozenset({"debug", "info", "warning", "error", "exception", "critical"})
_WORD_LIST = re.compile(r"[\s\w;']+")
_SQL = re.compile(r"\b(SELECT|INSERT|UPDATE|DELETE|CREATE|PRAGMA|WHERE|FROM|BEGIN|ALTER|JOIN|ORDER BY)\b")

Problem = tuple[str, int, str]
"""A file, a line, and what is wrong there."""


def main(root: Path) -> int:
    """Print what is to be said otherwise. Returns the exit code."""
    problems = list(find_problems(root))
    for name, line, text in problems:
        print(f"{name}:{line}: {text}", file=sys.stderr)
    return 1 if problems else 0


def find_problems(root: Path) -> Iterator[Problem]:
    for name, line, text in texts(root):
        for pattern, instead in _BANNED:
            if match := pattern.search(text):
                yield name, line, f"{match[0]!r} (rather: {instead}) in {' '.join(text.split())[:100]!r}"


def texts(root: Path) -> Iterator[Problem]:
    """Everything that people read: file, line, text."""
    for folder in ("assistant", "sleep"):
        for path in sorted((root / folder).rglob("*.py")):
            name = path.relative_to(root).as_posix()
            if not name.startswith(MODEL_READS):
                yield from ((name, line, text) for line, text in _texts_of(ast.parse(path.read_text("utf-8"))))
    default = root / "config" / "default.toml"
    for number, line in enumerate(default.read_text("utf-8").splitlines(), 1):
        if line.startswith("#"):
            yield "config/default.toml", number, line
    for pattern in PAGES:
        for path in sorted(root.glob(pattern)):
            name = path.relative_to(root).as_posix()
            if name not in NOT_FOR_USERS:
                lines = enumerate(path.read_text("utf-8").splitlines(), 1)
                yield from ((name, number, line) for number, line in lines)


def _texts_of(tree: ast.Module) -> Iterator[tuple[int, str]]:
    left_out = set(_left_out(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in left_out:
            text = node.value if node.value not in ALLOWED and not _WORD_LIST.fullmatch(node.value) else ""
            if len(re.findall(r"[A-Za-z]{2,}", text)) > 1 and not _SQL.search(text) and "(?" not in text:
                yield node.lineno, text


def _left_out(tree: ast.Module) -> Iterator[int]:
    """Constants that nobody reads: docstrings but those of commands, and what is logged."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0] if node.body else None
            is_command = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and any(
                "command" in ast.unparse(decorator) or "group" in ast.unparse(decorator)
                for decorator in node.decorator_list
            )
            if isinstance(first, ast.Expr) and not is_command:
                yield id(first.value)
            # The docs of an attribute.
            yield from (id(part.value) for part in node.body[1:] if isinstance(part, ast.Expr))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _LOGGED:
            yield from (id(inner) for inner in ast.walk(node))


if __name__ == "__main__":
    sys.exit(main(Path(__file__).parent.parent))
