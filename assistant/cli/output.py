"""What commands print, and what a terminal may be sent.

Answers go to standard output and nothing else does; remarks about them go to standard error. Markdown is drawn with
rich where a terminal shows it, and printed as it is for a program.

What a model, a tool or another person wrote may contain escape sequences that move the cursor, rewrite the screen or
set the clipboard. Of such characters only line breaks and tabs ever reach a terminal; each of the others is shown
as a visible sign in its place.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import shutil
import sys
import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TextIO

import click

from assistant.core.errors import UsageError
from assistant.core.text import shorten_line

if TYPE_CHECKING:  # rich is loaded only where something is drawn
    from rich.console import Console
    from rich.markdown import Markdown

# Wide enough that nothing is folded where the output is read by a program.
_WIDTH_OF_A_FILE = 240
_NARROWEST = 20

_SHOWN_AS = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"}
_SHOWN_AS |= {0x7F: "\u2421"}
_SHOWN_AS |= dict.fromkeys(range(0x80, 0xA0), "\ufffd")
# Overrides of the writing direction can make text read as something it is not.
_SHOWN_AS |= dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)], "\ufffd")


def clean_for_terminal(text: str) -> str:
    """`text` without anything that a terminal would act on."""
    text = text.replace("\r\n", "\n").encode("utf-8", "replace").decode("utf-8")
    return text.translate(_SHOWN_AS)


def clean_line(text: str, limit: int = 100) -> str:
    """The beginning of `text` as one clean line of at most `limit` characters."""
    return shorten_line(clean_for_terminal(text), limit)


def is_utf8(text: str) -> bool:
    """Whether it was UTF-8 when it was given to us (`surrogateescape` leaves marks)."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def require_utf8(text: str, where: str) -> str:
    """What a person gave us as text. Raises `UsageError` when it was not UTF-8 (`surrogateescape` left its marks)."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UsageError(f"{where} is not valid UTF-8 (at character {error.start + 1}). It was not sent.") from None
    return text


# ------------------------------------------------------------------------------------------------------------ printing


def print_text(text: str) -> None:
    """Text as it is; cleaned when a terminal would read it."""
    sys.stdout.write(f"{clean_for_terminal(text) if sys.stdout.isatty() else text}\n")
    sys.stdout.flush()


def print_prose(text: str) -> None:
    """Sentences: a terminal gets whole words on each line, a program the text as it is."""
    print_text(fold_for(sys.stdout, text))


def print_markdown(text: str) -> None:
    """Markdown: drawn where a terminal would show it, as it is for a program."""
    if sys.stdout.isatty():
        make_console().print(render_markdown(text))
    else:
        print_text(text)


def print_remark(text: str) -> None:
    """A remark beside the output, on standard error; lost where that cannot be written."""
    sys.stdout.flush()
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{fold_for(sys.stderr, clean_for_terminal(text))}\n")
        sys.stderr.flush()


def fold_for(stream: TextIO, text: str) -> str:
    """Sentences as `stream` gets them: a terminal with whole words on each line, a program as they are."""
    if not stream.isatty():
        return text
    width = shutil.get_terminal_size().columns
    return "\n".join(fold_line(line, width) for line in text.split("\n"))


def fold_line(line: str, width: int) -> str:
    """`line` broken between words where it is longer than `width`, below its own indent. What has no spaces, such as a
    path or an address, stays whole."""
    if len(line) <= width or width < _NARROWEST:
        return line
    indent = line[: len(line) - len(line.lstrip(" "))]
    folded = textwrap.wrap(
        line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False, replace_whitespace=False
    )
    return "\n".join(folded)


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """`value` as JSON with its keys in the order given; without `indent`, on one line."""
    print_text(json.dumps(value, ensure_ascii=False, indent=indent, default=str))


def print_value(kind: Any, value: Any) -> None:
    """A value as the JSON of the type `kind`: dataclasses, items of commands, or lists of them."""
    from pydantic import TypeAdapter

    from assistant.commands.items import to_json

    print_json(to_json(TypeAdapter(kind), value))


class JsonOption(click.Option):
    """`--json` of a command that only a shell has; `shape` is the type of what it prints."""

    def __init__(self, *args: Any, shape: Any, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.shape = shape


def json_option(shape: Any, help: str = "Print JSON.") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """For a command that prints its JSON itself, as it comes: it gets `json_out`."""
    return click.option("--json", "json_out", cls=JsonOption, shape=shape, is_flag=True, help=help)


def json_result(
    shape: Any, help: str = "Print JSON.", *, ok: Callable[[Any], bool] = lambda _: True
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """For a command that prints for people and returns a value: with `--json` only that is printed, as the JSON of
    `shape`. It exits with 1 where the value is not `ok`."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @json_option(shape, help)
        @functools.wraps(function)
        def run(*args: Any, json_out: bool = False, **options: Any) -> None:
            with contextlib.redirect_stdout(io.StringIO()) if json_out else contextlib.nullcontext():
                value = function(*args, **options)
            if json_out:
                print_value(shape, value)
            if not ok(value):
                click.get_current_context().exit(1)

        return run

    return decorate


def make_console() -> Console:
    """Plain where the output is not a terminal, without colours under NO_COLOR."""
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else _WIDTH_OF_A_FILE)


def render_markdown(text: str) -> Markdown:
    """Return what rich prints, without control characters."""
    from rich.markdown import Markdown

    # Addresses are written out: a link whose text says something else is a trap.
    return Markdown(clean_for_terminal(text), code_theme="ansi_dark", hyperlinks=False)
