"""What was typed after a slash, as words for the table of commands, and how commands are named in a shell."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Collection, Iterable, Sequence

from assistant.core.sessions import parse_session_name

# Short forms of commands, as people type them in a conversation.
ALIASES = {
    "pin": ("pins", "add"),
    "unpin": ("pins", "remove"),
    "done": ("requests", "done"),
    "drop": ("requests", "drop"),
    "why": ("memory", "why"),
    "search": ("memory", "search"),
    "pair": ("people", "pair"),
    "start": ("help",),  # what Telegram sends when a person opens the conversation
}
# What people call a command of a shell before they know its name.
OTHER_NAMES = {
    "alarm": "remind add at",
    "appointments": "agenda",
    "ask": "chat -m",
    "chats": "sessions",
    "conversations": "sessions",
    "delete": "forget",
    "doc": "docs",
    "documentation": "docs",
    "end": "reset",
    "events": "agenda",
    "find": "memory search",
    "history": "log --grep",
    "journal": "memory list",
    "link": "people link",
    "login": "web link",
    "logs": "service logs",
    "man": "docs",
    "manual": "docs",
    "memories": "memory list",
    "messages": "log --grep",
    "new": "reset",
    "note": "chat -m",
    "notes": "memory list",
    "page": "open",
    "recall": "memory search",
    "remember": "chat -m",
    "reminder": "remind",
    "reminders": "remind list",
    "restart": "service restart",
    "restore": "backup restore",
    "say": "chat -m",
    "settings": "config",
    "start": "run",
    "talk": "chat -m",
    "task": "todo",
    "tasks": "todo",
    "tell": "chat -m",
    "threads": "sessions",
    "timer": "remind add in",
    "token": "web token",
    "tokens": "context",
    "ui": "open",
}
# The commands that a conversation knows: offered for completion, and told from messages that begin with a slash.
_NAMES = """
help status model usage agenda brief todo session sessions reset compact context branch pin unpin pins requests done
drop remind schedule calendar contacts memory add files search why forget sleep approvals people pair start bridge
notify deliveries web mcp skills backup archive import docs undo retry stop
"""
SLASH_COMMANDS = tuple(f"/{name}" for name in _NAMES.split())
LEAVE_COMMANDS = ("/quit", "/exit")
_LEAVE_WORDS = ("exit", "quit", "bye")
SHELL_ONLY_COMMANDS = (
    "chat",
    "completion",
    "config",
    "doctor",
    "export",
    "fleet",
    "log",
    "mail",
    "open",
    "replica",
    "run",
    "service",
    "setup",
    "verify",
)
# These a shell does not have, or it means something else there.
_CHAT_ONLY = frozenset({"/help", "/model", "/session", "/retry", "/start", "/stop"})
_TOKEN = re.compile(
    r'(?P<lead>--[\w-]+=)?(?:"(?P<double>[^"]*)"|“(?P<curly>[^“”]*)”|\'(?P<single>[^\']*)\')(?=\s|$)|\S+'
)
_WORDS_OF_A_SENTENCE = 3
# How alike a name and what was typed for it are, from 0 to 1: one letter of six differs, or two.
_ALMOST_EQUAL = 0.8
_ALIKE = 0.7
_NO_INTEGER = re.compile(r"is not a valid integer(?: range)?")
_TOO_MANY = re.compile(r"\AGot unexpected extra arguments? \((.*)\)", re.DOTALL)
_COMMAND = re.compile(r"\s*/(?P<name>[^\W\d_]+)(?:@\w+)?[.,:;?!]*(?!\S)")
_OPTION = re.compile(r"(?P<name>--[a-z][a-z-]*)(?:=.*)?", re.DOTALL)
_NAMED = re.compile(r"`/(\w+)(?=[ `])")


class Token(str):
    """A word of a line that was typed in a conversation; it knows where it stands, so that free text stays exact."""

    line: str
    start: int
    end: int
    quoted: bool


def split_line(line: str) -> list[str]:
    """The words of a typed line. Quotation marks hold words together; an apostrophe within a word is part of it.

    Telephones write a dash for two hyphens: `—at` is `--at`."""
    tokens: list[str] = []
    for match in _TOKEN.finditer(line):
        inside = next((text for text in match.group("double", "curly", "single") if text is not None), None)
        text = match[0] if inside is None else f"{match['lead'] or ''}{inside}"
        if inside is None and re.match(r"[—–]\w", text):
            text = f"--{text[1:]}"
        token = Token(text)
        token.line, token.start, token.end, token.quoted = line, match.start(), match.end(), inside is not None
        tokens.append(token)
    return tokens


def join_words(words: Iterable[str], *, keep_quotes: bool = False) -> str:
    """Free text of several words: as it is in the line, where they were typed in one; a single quoted text without
    its quotation marks, unless these are kept."""
    words = list(words)
    tokens = [word for word in words if isinstance(word, Token)]
    if len(tokens) < max(1 if keep_quotes else 2, len(words)):
        return " ".join(words).strip()
    pieces: list[str] = []
    for n, token in enumerate(tokens):
        gap = token.line[tokens[n - 1].end : token.start] if n else ""
        pieces += [gap if not gap.strip() else " ", token.line[token.start : token.end]]
    return "".join(pieces).strip()


def find_option(words: Iterable[str]) -> str:
    """The name of the first word that is an option; "" for none. A word in quotation marks is text, and so is one after
    a dash: "Tom —the plumber—"."""
    typed = (word.line[word.start : word.end] if isinstance(word, Token) else word for word in words)
    return next((match["name"] for word in typed if (match := _OPTION.fullmatch(word))), "")


def find_meant(argv: Sequence[str], names: Collection[str]) -> list[str]:
    """The line that was probably meant by one whose first word is no command of `names`; empty if that is anybody's
    guess. A sentence is something to say."""
    first, *rest = argv
    line = (OTHER_NAMES.get(first.lower()) or " ".join(expand_alias([first]))).split()
    if line[0] in names:
        # What was said or is looked for is the value of an option: it goes without one where nothing was.
        if line[-1].startswith("-"):
            return [*line, " ".join(rest)] if rest else line[:-1]
        return [*line, *rest]
    is_sentence = (
        "chat" in names and len(rest) >= _WORDS_OF_A_SENTENCE - 1 and not any(word.startswith("-") for word in argv)
    )
    near = difflib.get_close_matches(first.lower(), names, 1, _ALMOST_EQUAL if is_sentence else _ALIKE)
    if near:
        return [*near, *rest]
    return ["chat", "-m", " ".join(argv)] if is_sentence else []


def expand_alias(argv: Sequence[str]) -> list[str]:
    """`argv` with a short form of a command spelled out; its name in lower case."""
    if not argv:
        return []
    name = argv[0].lower()
    return [*ALIASES.get(name, (name,)), *argv[1:]]


def explain_wrong_value(text: str) -> str:
    """The message of a command line that click refused, in the words of people."""
    plain = _NO_INTEGER.sub("is not a whole number", text).replace("is not a valid float", "is not a number")
    plain = _TOO_MANY.sub(r"It does not take '\1'", plain)
    return plain if plain.endswith((".", "?")) else f"{plain}."


def rewrite_for_shell(text: str) -> str:
    """`text` with the slash commands that it names as one types them in a shell."""
    return _NAMED.sub(_named_in_shell, text)


def rewrite_for_chat(text: str) -> str:
    """`text` with the shell commands that it names as one types them in a conversation."""
    return re.sub(rf"(^ *|`)assistant (?=(?:{'|'.join(_NAMES.split())})\b)", r"\1/", text, flags=re.MULTILINE)


def _named_in_shell(match: re.Match[str]) -> str:
    name = match[1]
    if name == "session":
        return "`assistant chat --session"
    if name == "retry":
        return "`assistant chat -m /retry"
    if f"/{name}" not in SLASH_COMMANDS or f"/{name}" in _CHAT_ONLY:
        return match[0]
    return f"`assistant {' '.join(ALIASES.get(name, (name,)))}"


def find_mistyped(word: str, names: Iterable[str]) -> str:
    """The name that a word was meant to be, with a letter left out, doubled or swapped with the next; "" for none. One
    with another letter in its place may be a word of its own (list, lost)."""
    typed = word.lower()
    return next((name for name in names if typed != name and typed in _slips(name)), "")


def _slips(name: str) -> set[str]:
    """How fingers miss a name, the first letter of which is mostly right; and the name of several."""
    places = range(1, len(name))
    return {
        *(name[:n] + name[n + 1 :] for n in places),
        *(name[:n] + name[n - 1] + name[n:] for n in (*places, len(name))),
        *(name[: n - 1] + name[n] + name[n - 1] + name[n + 1 :] for n in places),
        f"{name}s",
    }


def command_name(text: str) -> str:
    """The name of the command that was typed, in lower case, whether there is such a command or not; empty for a
    message. A command begins with a slash and letters alone: "/etc/hosts" and "/ 2" are messages. A slash alone asks
    which commands there are."""
    if text.strip() in ("/", "/?"):
        return "help"
    match = _COMMAND.match(text)
    return match["name"].lower() if match else ""


def session_after_command(text: str, session: str) -> str:
    """The session after `text` was typed in `session`: another one after `/session NAME`. Raises `UsageError`."""
    name, _, rest = text.strip().partition(" ")
    return parse_session_name(rest.strip()) if name.lower() == "/session" and rest.strip() else session


def is_leave_command(text: str) -> bool:
    """Whether it ends a conversation in a terminal or a pipe: people part in words, too."""
    return f"/{command_name(text)}" in LEAVE_COMMANDS or text.strip().lower().rstrip(".!") in _LEAVE_WORDS


def with_examples(docstring: str | None) -> str:
    """A docstring, the lines after whose last paragraph begin with `> ` and are examples, as click shows it."""
    text = inspect.cleandoc(docstring or "")
    about, _, examples = text.partition("\n\n> ")
    return f"{about}\n\n\b\nExample:\n  " + examples.replace("\n> ", "\n  ") if examples else text
