"""The frame around every command: it is loaded when it is used, and its errors are printed in one line.

An expected failure (`AssistantError`) is its own text on standard error and its exit code; `--debug` shows where it
came from. Anything else is a defect and is named as such.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import shlex
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

import click

from assistant.cli.output import clean_for_terminal, fold_for
from assistant.core.errors import AssistantError, NothingYet
from assistant.core.text import quote_briefly

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

EXIT_INTERRUPTED = 130
# Where a context keeps the words of the whole line.
ARGV = f"{__name__}.argv"


class DefaultGroup(click.Group):
    """A group that does what its command `default` does, where it has one, when no command is named: bare, and with the
    options of that command."""

    def __init__(self, *args: Any, default: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **{"invoke_without_command": bool(default), **kwargs})
        self.default = default

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = {name: option for option in self.params for name in option.opts if isinstance(option, click.Option)}
        start = 0
        while start < len(args) and (option := own.get(args[start].partition("=")[0])) is not None:
            start += 1 if option.is_flag or "=" in args[start] else 2
        first = args[start] if start < len(args) else ""
        is_bare = not first or (first.startswith("-") and first not in ctx.help_option_names)
        # While a shell asks what may follow, nothing is meant before there is a word.
        implied = [self.default] if self.default and is_bare and (first or not ctx.resilient_parsing) else []
        return super().parse_args(ctx, [*args[:start], *implied, *args[start:]])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete names of commands, and what the command takes that is implied."""
        from assistant.commands.completion import with_implied  # only where it is needed

        implied = self.get_command(ctx, self.default) if self.default else None
        return with_implied(super().shell_complete(ctx, incomplete), implied, ctx, incomplete)


class LazyGroup(DefaultGroup):
    """A group whose commands are imported when one is asked for; some may be its own."""

    def __init__(
        self,
        *args: Any,
        names: Sequence[str],
        load: Callable[[str], click.Command],
        menu: Mapping[str, Mapping[str, str]] | None = None,
        **kwargs: Any,
    ) -> None:
        """`names` are all commands in their order, of which `load` imports one that is not here yet; `menu`, headings
        to commands and a line on each, is shown without importing any of them."""
        super().__init__(*args, **kwargs)
        self._names = names
        self._load = load
        self._menu = menu

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[ARGV] = list(args)
        return super().parse_args(ctx, args)

    def list_commands(self, context: click.Context) -> list[str]:
        return list(self._names)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        command = super().get_command(context, name) or (self._load(name) if name in self._names else None)
        if command is not None:
            show_examples(command)
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under the headings of the menu, without loading them; without a menu as click does."""
        if self._menu is None:
            super().format_commands(context, formatter)
            return
        width = max(map(len, self._names))
        for heading, commands in self._menu.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), line) for name, line in commands.items()])

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does; an unknown command is a `UsageError` with the whole line that was probably meant."""
        try:
            return super().resolve_command(context, args)
        except click.UsageError as error:
            from assistant.commands.argv import find_meant  # only where it is needed

            meant = find_meant(args, [*self._names, "help"])
            if not meant:
                raise
            line = shlex.join([*context.command_path.split(), *meant])
            raise click.UsageError(f"{error.message} Did you mean `{line}`?", error.ctx) from None


def show_examples(command: click.Command) -> None:
    """Have the help of a command, and of those below it, show the examples of their docstrings."""
    from assistant.commands.argv import with_examples  # the menu does without

    command.help = with_examples(command.help)
    for below in command.commands.values() if isinstance(command, click.Group) else ():
        show_examples(below)


def run_and_exit(command: click.Command) -> NoReturn:
    """Run this process's command line and end the process."""
    # Whatever this process inherited: who owns what is made here can use it, and nobody else can write it. A folder
    # around the data folder that anybody can write is one in which anybody can put another in its place.
    os.umask(os.umask(0) & 0o077 | 0o022)
    if "--debug" not in sys.argv[1:]:
        sys.excepthook = _defect
    if isinstance(sys.stdout, io.TextIOWrapper):
        escape_unencodable(sys.stdout)
    end_process(run_guarded(command, sys.argv[1:]))


def end_process(code: int) -> NoReturn:
    """End as the interpreter does: threads have ended, what was registered for the end has run, and what was printed is
    written. But what was imported is not taken apart object by object, which takes a tenth of the processor time of a
    short command, for memory that the system takes back anyway."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code & 0xFF)


def _in_plain_words(error: click.ClickException) -> click.ClickException:
    """Return the error for people; where a command wants a number of a list, with what shows that list."""
    from assistant.commands.argv import explain_wrong_value  # only where it is needed

    if type(error) is not click.BadParameter:
        return error
    said = explain_wrong_value(error.message)
    above = error.ctx.parent if error.ctx is not None else None
    is_listed = above is not None and isinstance(above.command, click.Group) and "list" in above.command.commands
    if above is not None and is_listed and said.endswith("is not a number."):
        said = f"{said} `{above.command_path}` lists them with their numbers."
    return click.BadParameter(said, error.ctx, error.param, error.param_hint)


def escape_unencodable(stream: io.TextIOWrapper) -> None:
    """Have characters that the terminal's encoding does not know written as their numbers, and none of them lost."""
    if stream.errors == "strict":
        stream.reconfigure(errors="backslashreplace")


def run_guarded(command: click.Command, arguments: Sequence[str]) -> int:
    """Run a command line to its end and return its exit code; expected failures are printed on standard error."""
    debug = "--debug" in arguments
    try:
        code = command.main(with_help_option(command, arguments), prog_name=command.name, standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        # Nothing was asked, and nothing is wrong: what there is, whole.
        click.echo(error.format_message())
    except click.ClickException as error:
        said = io.StringIO()
        _in_plain_words(error).show(said)
        # It quotes what was written, whatever that is.
        words = clean_for_terminal(quote_briefly(said.getvalue().rstrip("\n")))
        click.echo(fold_for(sys.stderr, words), err=True)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader of the output closed it; Python would complain once more while it closes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (AssistantError, OSError) as error:
        if debug:
            traceback.print_exc()
        if isinstance(error, AssistantError):
            lead = "" if isinstance(error, NothingYet) else "Error: "
            click.echo(fold_for(sys.stderr, f"{lead}{clean_for_terminal(str(error))}"), err=True)
            return error.exit_code
        where = f": {error.filename}" if error.filename else ""
        why = quote_briefly(f"Error: {error.strerror or error}{where}. What was accepted before is kept.")
        click.echo(fold_for(sys.stderr, clean_for_terminal(why)), err=True)
        return 1
    else:
        return code if isinstance(code, int) else 0
    return 0


def with_help_option(root: click.Command, arguments: Sequence[str]) -> list[str]:
    """`help`, `help NAME` and `GROUP help` as what they mean. Text that a command takes stays as it is."""
    start = next((n for n, word in enumerate(arguments) if not word.startswith("-")), len(arguments))
    flags, words = arguments[:start], arguments[start:]
    if words and words[0] == "help":
        return [*flags, *(word for word in words[1:] if word != "help"), "--help"]
    command: click.Command | None = root
    for name in words[:-1]:
        command = command.get_command(click.Context(command), name) if isinstance(command, click.Group) else None
    asks = words and words[-1] == "help" and isinstance(command, click.Group)
    return [*flags, *words[:-1], "--help"] if asks else list(arguments)


def _defect(kind: type[BaseException], error: BaseException, _: TracebackType | None) -> None:
    click.echo(
        f"Error: a defect in the assistant ({kind.__name__}: {error}). What was accepted is kept; "
        "`assistant --debug ...` shows where it happened.",
        err=True,
    )
