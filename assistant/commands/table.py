"""The table of commands: each is defined once, with click, and run alike from the shell, a conversation and the API.

A command is a function of a `CommandContext` and what was typed. It returns a value, and names the function that
renders that value as Markdown. The value is its own JSON (a frozen dataclass), or it is a value of another room, and
`result` is the `Item` that says which of its attributes are the JSON. Words and options are checked by click; code that
runs the command decides what is printed.

    @pins.command("remove", result=list[PinItem], render=render_removed)
    @numbers_argument("ids")
    def remove(context: CommandContext, ids: Sequence[int]) -> list[Pin]:
        \"""Take pins away.

        > assistant pins remove 3
        \"""
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, tzinfo
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, get_type_hints

import click

from assistant.commands.argv import Token, explain_wrong_value, find_mistyped, find_option, join_words, with_examples
from assistant.commands.completion import with_implied
from assistant.commands.context import CommandContext, CommandStores
from assistant.commands.usage_line import AS_JSON, SESSION_NAME, usage_line
from assistant.core.dataclass import dataclass
from assistant.core.errors import NothingYet, UsageError
from assistant.core.permissions import OWNER_ONLY
from assistant.core.sessions import parse_session_name
from assistant.core.text import lazy_regex, shorten

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem
    from pydantic import TypeAdapter

# A daemon that is alive answers at once.
DEFAULT_MAX_SECONDS = 60.0
_PAGE = "page_number"
_PAGES = click.IntRange(1, 1_000_000)
# Where a click context keeps the words of a command as they were typed.
_TYPED = f"{__name__}.typed"
_ASSURANCE = lazy_regex(r"\s?Nothing was changed(?:\.|[;:] (\w?))")
# What a database takes for a number.
_LARGEST = 2**63 - 1
_MOST_DIGITS = 100


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What a person has to agree to, and the command that is run when they do."""

    question: str
    argv: Sequence[str]
    otherwise: Sequence[str] | None = None  # run for "no"; then "yes" is what an empty answer means


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What a command did."""

    text: str  # Markdown, for people
    value: Any  # plain JSON, for programs
    exit_code: int = 0
    confirmation: Confirmation | None = None
    remark: str = ""  # what a person has to know of the text

    @property
    def text_and_remark(self) -> str:
        """Both as one Markdown text, for places that show only one."""
        # Its own paragraph: below a list it would be part of the last line.
        return "\n\n".join(filter(None, [self.text, self.remark]))


class TableCommand(click.Command):
    """One command of the table."""

    def __init__(
        self,
        name: str | None,
        *,
        result: Any = None,
        render: Callable[[Any, tzinfo], str] = lambda value, _: str(value.text),
        roles: frozenset[str] = OWNER_ONLY,
        reads: bool = False,
        creates_home: bool = False,
        max_seconds: float = DEFAULT_MAX_SECONDS,
        with_session: bool = True,
        exit_code: Callable[[Any], int] | None = None,
        confirm: Callable[[Any], Confirmation | None] | None = None,
        follow: Callable[[CommandStores, datetime], str] | None = None,
        remark: Callable[[Any], str] | None = None,
        **attributes: Any,
    ) -> None:
        """`render` makes Markdown of the value with times in the zone given; by default it is the value's `text`.

        - `result`: what the JSON is made as from the value; by default the type that the function returns.
        - `roles`: who may use it at most. One that others than the owner may use changes nothing outside of their
          conversation or scope.
        - `reads`: it changes nothing and needs the stores alone (`context.stores`), so that it also works beside a
          running daemon, and without one.
        - `creates_home`: it may be the first thing that is done with a data folder.
        - `max_seconds`: how long it may take, at most.
        - `with_session`: what it does depends on a conversation.
        - `exit_code`, `confirm`: what the value means for a shell.
        - `remark`: what a person has to know of the value that is no part of it; on standard error in a shell.
        - `follow`: how far it is while it runs, in a line; for a terminal that waits.
        """
        super().__init__(name, **attributes)
        self.help = with_examples(self.help)
        self._result = result
        self.render = render
        self.roles = roles
        self.reads = reads
        self.creates_home = creates_home
        self.max_seconds = max_seconds
        self.follow = follow
        self._exit_code = exit_code
        self._confirm = confirm
        self._remark = remark
        self.params.append(click.Option(["--json", AS_JSON], is_flag=True, help="Print JSON."))
        if reads:
            about = "Of a long answer in a conversation, page N."
            self.params.append(click.Option(["--page", _PAGE], type=_PAGES, default=1, hidden=True, help=about))
        if with_session:
            self.params.append(
                click.Option(["--session", SESSION_NAME], metavar="NAME", help="The conversation that is meant (main).")
            )

    @cached_property
    def adapter(self) -> TypeAdapter[Any]:
        """How its value becomes JSON."""
        from pydantic import TypeAdapter  # see `assistant.commands.items`

        return TypeAdapter(self._result or get_type_hints(self.callback)["return"])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Also keep what was typed, and know in an error which command it is of."""
        ctx.meta[_TYPED] = typed = _join_phrases(self, args)
        try:
            return super().parse_args(ctx, list(typed))
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise

    def invoke(self, ctx: click.Context) -> Any:
        """Hands itself to the code that parsed the line (`click.Context.obj`), instead of running."""
        return ctx.find_root().obj(_parsed(self, ctx))

    async def run(self, context: CommandContext, params: Mapping[str, Any]) -> CommandResult:
        """Raises whatever the function raises: `UsageError` for what cannot be done as asked. That there is nothing yet
        is a result."""
        assert self.callback is not None
        try:
            value = self.callback(context, **params)
            if inspect.isawaitable(value):
                value = await value
        except NothingYet as error:
            return CommandResult(str(error), None)
        except UsageError as error:
            raise (_without_assurance(error) if self.reads else error) from None
        from assistant.commands.items import to_json

        return CommandResult(
            self.render(value, context.zone).strip(),
            to_json(self.adapter, value),
            self._exit_code(value) if self._exit_code else 0,
            self._confirm(value) if self._confirm else None,
            self._remark(value) if self._remark else "",
        )


def _without_assurance(error: UsageError) -> UsageError:
    """What a command that only reads has to say: that it changed nothing goes without saying."""
    plain = _ASSURANCE.sub(lambda match: "" if match[1] is None else f" {match[1].upper()}", str(error))
    return type(error)(plain.strip())


@dataclass(frozen=True, slots=True)
class ParsedCommand:
    """A line that click understood."""

    command: TableCommand
    path: tuple[str, ...]  # its words from the root on, as in ("pins", "add")
    params: Mapping[str, Any]
    as_json: bool
    session: str | None  # what --session named
    page: int = 1  # of a long answer in a conversation


class CommandGroup(click.Group):
    """Commands of one subject. Called bare it does what its `list` does; words that are none of its commands go to
    `default`, where it has one, and so do words that begin like a command and are `is_free_text`. `other_names`: what
    people call its commands, where a number follows."""

    command_class = TableCommand

    def __init__(
        self,
        *args: Any,
        default: str = "",
        is_free_text: Callable[[Sequence[str]], bool] = lambda words: False,
        other_names: Mapping[str, str] = MappingProxyType({}),
        **attributes: Any,
    ) -> None:
        super().__init__(*args, **attributes)
        self.help = with_examples(self.help)
        self.default = default
        self.is_free_text = is_free_text
        self.other_names = other_names

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the name of the command that is implied before the words, as the class says. Raises `click.UsageError` if
        a word may be a misspelt command or a text."""
        if ctx.resilient_parsing:  # a shell asks what may follow: nothing is meant before there is a word
            implied = self._implied(args) if args else ""
            return super().parse_args(ctx, [implied, *args] if implied else args)
        own_flags = {*ctx.help_option_names, *(name for option in self.params for name in option.opts)}
        start = next((n for n, word in enumerate(args) if word not in own_flags), len(args))
        implied = "" if start and args[0] in ctx.help_option_names else self._implied(args[start:])
        is_default = bool(implied) and implied == self.default
        if is_default and args[start:] and (meant := self._meant(args[start:])):
            either = f"Did you mean `{meant}`? If {args[start]!r} is part of the text, put {implied!r} before it."
            raise click.UsageError(either, ctx)
        return super().parse_args(ctx, [*args[:start], implied, *args[start:]] if implied else args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete names of commands, and what the command takes that is implied."""
        return with_implied(super().shell_complete(ctx, incomplete), self.commands.get(self.default), ctx, incomplete)

    def _implied(self, args: Sequence[str]) -> str:
        """The command that is meant where the words name none."""
        first = args[0] if args else ""
        if not first or first.startswith("-"):
            takes_option = any(first.partition("=")[0] in option.opts for option in self._default_only_options())
            return self.default if takes_option else "list" if "list" in self.commands else ""
        return self.default if first not in self.commands or self.is_free_text(args) else ""

    def _meant(self, words: Sequence[str]) -> str:
        """The command that the words may mean although they do not name it; "" for none."""
        has_number = len(words) > 1 and words[1].removeprefix("#").isdecimal()
        named = self.other_names.get(words[0].lower(), "") if has_number else ""
        return named or find_mistyped(words[0], self.commands)

    def _default_only_options(self) -> list[click.Parameter]:
        """Options that the default command has, and the list has not."""
        default, listing = self.commands.get(self.default), self.commands.get("list")
        listed = {name for option in listing.params for name in option.opts} if listing else set()
        return [option for option in default.params if not listed.intersection(option.opts)] if default else []


def parse_command(root: click.Group, argv: Sequence[str]) -> ParsedCommand:
    """`argv` as a command of `root`. Raises `UsageError`: nothing was run."""
    try:
        with root.make_context("", list(argv), obj=lambda parsed: parsed, help_option_names=[]) as ctx:
            parsed = root.invoke(ctx)
    except click.UsageError as error:
        is_bare = isinstance(error, click.exceptions.NoArgsIsHelpError)
        said = "It has commands of its own." if is_bare else explain_wrong_value(error.format_message())
        raise UsageError(f"{said} {_how(error)}Nothing was changed.".replace("  ", " ")) from None
    assert isinstance(parsed, ParsedCommand)
    return parsed


def leaf_commands(root: click.Group) -> Iterable[tuple[tuple[str, ...], TableCommand]]:
    """Every command below `root`, with its path."""
    for name, command in root.commands.items():
        if isinstance(command, click.Group):
            yield from (((name, *path), leaf) for path, leaf in leaf_commands(command))
        elif isinstance(command, TableCommand):
            yield (name,), command


# ------------------------------------------------------------------------------------------------------------ arguments


def words_argument(
    name: str, *, required: bool = True, metavar: str = "TEXT", keep_quotes: bool = False
) -> Callable[[Any], Any]:
    """Free text: all words to the end, exactly as they were typed. `keep_quotes`: quotation marks around all of it
    mean something."""
    return click.argument(
        name,
        nargs=-1,
        required=required,
        metavar=metavar if required else f"[{metavar}]",
        type=click.UNPROCESSED,
        callback=partial(_text, keep_quotes),
    )


def _text(keep_quotes: bool, context: click.Context, _parameter: click.Parameter, value: Sequence[str]) -> str:
    # For what only looks like an option, as "-5" does, click hands on another string.
    typed = iter(context.meta[_TYPED])
    words = [next((word for word in typed if word == part), part) for part in value]
    # A misspelt option is no part of a text: `forget dog --dryrun` would look for "dog --dryrun".
    if "--" not in context.meta[_TYPED] and (name := find_option(words)):
        about = f"No such option {name!r}. If it is part of the text, put quotation marks around the whole text."
        raise click.NoSuchOption(name, about, [one for param in context.command.params for one in param.opts], context)
    text = join_words(words, keep_quotes=keep_quotes)
    if value and not text:
        raise UsageError("There is nothing in that but blanks. Nothing was changed.")
    return text


def phrase_option(name: str, parameter: str, *, metavar: str, help: str) -> Callable[[Any], Any]:
    """An option of several words; in a conversation they need no quotation marks and end at the next option."""
    return click.option(name, parameter, cls=_PhraseOption, metavar=metavar, help=help)


def number_argument(name: str, *, metavar: str = "ID") -> Callable[[Any], Any]:
    """One whole number, with or without `#`."""
    return click.argument(name, metavar=metavar, type=click.UNPROCESSED, callback=_number)


def numbers_argument(name: str, *, required: bool = True, metavar: str = "ID...") -> Callable[[Any], Any]:
    """Whole numbers, with or without `#`, with or without commas between them."""
    return click.argument(
        name,
        nargs=-1,
        required=required,
        metavar=metavar if required else f"[{metavar}]",
        type=click.UNPROCESSED,
        callback=parse_numbers,
    )


def parse_numbers(context: click.Context, parameter: click.Parameter, value: Sequence[str]) -> list[int]:
    numbers = [_number(context, parameter, word) for word in " ".join(value).replace(",", " ").split()]
    if parameter.required and not numbers:
        raise UsageError("A number is missing. Nothing was changed.")
    return numbers


def _number(context: click.Context, parameter: click.Parameter, value: str) -> int:
    number = value.removeprefix("#")
    if not (number.isascii() and number.isdigit()):
        raise click.BadParameter(f"{shorten(value, _MOST_DIGITS)!r} is not a number.", context, parameter)
    # Python itself reads no number of thousands of digits.
    if len(number) > _MOST_DIGITS or int(number) > _LARGEST:
        raise click.BadParameter("No number here is that large.", context, parameter)
    return int(number)


class _PhraseOption(click.Option):
    pass


def _join_phrases(command: click.Command, args: list[str]) -> list[str]:
    """In a conversation, the words after a phrase option as one: `--at tomorrow at 9`."""
    names = {name for option in command.params if isinstance(option, _PhraseOption) for name in option.opts}
    joined: list[str] = []
    phrase: list[str] | None = None
    for word in args:
        if not isinstance(word, Token) or (word.startswith("--") and not word.quoted):
            joined += [join_words(phrase)] if phrase else []
            joined.append(word)
            phrase = [] if isinstance(word, Token) and word in names else None
        elif phrase is None:
            joined.append(word)
        else:
            phrase.append(word)
    return [*joined, *([join_words(phrase)] if phrase else [])]


def _parsed(command: TableCommand, ctx: click.Context) -> ParsedCommand:
    params = dict(ctx.params)
    as_json, session, page = bool(params.pop(AS_JSON, False)), params.pop(SESSION_NAME, None), params.pop(_PAGE, 1)
    path = ctx.command_path.removeprefix(ctx.find_root().info_name or "").split()
    named = None if session is None else session if ":" in session else parse_session_name(session)
    return ParsedCommand(command, tuple(path), params, as_json, named, page)


def _how(error: click.UsageError) -> str:
    if error.ctx is None or error.ctx.parent is None:
        return "`/help` lists the commands. "
    path = error.ctx.command_path.split()
    return f"Use `{usage_line(error.ctx.command, path)}`. "
