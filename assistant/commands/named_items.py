"""To-dos and reminders as a command line names them: by their numbers, or by words of one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click

from assistant.commands.argv import join_words
from assistant.commands.table import parse_numbers
from assistant.core.dataclass import dataclass
from assistant.core.errors import UsageError
from assistant.core.text import WORD, fold_text, lazy_regex, pluralize, shorten_line

_NUMBERS = lazy_regex(r"[#\d,\s]+")
_MOST_SHOWN = 5
_LONGEST = 80
# Fewer letters begin too many words.
_SHORTEST = 4


@dataclass(frozen=True, slots=True)
class NamedItems:
    """Numbers of items, or words of one."""

    ids: tuple[int, ...]
    words: str

    def find(self, kind: str, items: Iterable[tuple[int, str]]) -> Sequence[int]:
        """Return the numbers of what is meant; `items` are those that words may name, each with its text. Raises
        `UsageError` if none of them has the words, or several have."""
        if self.ids:
            return self.ids
        wanted = WORD.findall(fold_text(self.words))
        texts = {number: text for number, text in items if wanted and _has_words(text, wanted)}
        if len(texts) == 1:
            return tuple(texts)
        if not texts:
            where = "/remind" if kind == "reminder" else "/todo"
            words = shorten_line(self.words, _LONGEST)
            raise UsageError(f"No {kind} has the words {words!r}. Nothing was changed; `{where}` lists them.")
        few = list(texts.items())[:_MOST_SHOWN]
        shown = ", ".join(f"{number} ({shorten_line(text, _LONGEST)})" for number, text in few)
        found = pluralize(len(texts), kind)
        raise UsageError(f"{found} have these words: {shown}. Nothing was changed; give the number.")


def _has_words(text: str, wanted: Iterable[str]) -> bool:
    """Whether each word is in the text, or begins one of its words: "tooth" names "toothbrush", "all" not "call"."""
    words = WORD.findall(fold_text(text))
    return all(any(word == it or (len(it) >= _SHORTEST and word.startswith(it)) for word in words) for it in wanted)


def items_argument(name: str) -> Callable[[Any], Any]:
    """Whole numbers, with or without `#`; or words of one item."""
    return click.argument(
        name, nargs=-1, required=True, metavar="ID...|WORDS", type=click.UNPROCESSED, callback=_parse_items
    )


def _parse_items(context: click.Context, parameter: click.Parameter, value: Sequence[str]) -> NamedItems:
    text = join_words(value)
    if _NUMBERS.fullmatch(text) or not text:
        return NamedItems(tuple(parse_numbers(context, parameter, value)), "")
    return NamedItems((), text)
