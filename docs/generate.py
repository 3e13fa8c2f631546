"""Writes docs/developing/reference/, docs/notices.md, the man pages, the recipes of packages and what a start looks up
rather than finds (schemas, words of patterns) from the program itself.

`make docs` writes the pages; `make docs-check` fails, naming the page, when one differs from what the program would
write now. The pages depend on nothing of the machine they are made on: no home, no terminal, no environment.
"""

from __future__ import annotations

import sqlite3
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import click
from pydantic import TypeAdapter
from sqlite_utils import Database, Migrations

from assistant.cli.aihistory.main import aihistory
from assistant.cli.main import assistant
from assistant.cli.output import JsonOption
from assistant.commands.catalog import command_root
from assistant.commands.table import TableCommand, leaf_commands
from assistant.core.errors import AssistantError
from assistant.core.notices import NoticeKind
from assistant.models.errors import read_error_table
from assistant.settings.home import Home
from assistant.settings.settings import ENVIRONMENT_VARIABLES, describe_settings, load_settings
from assistant.store.schema.migrations import (
    character_migrations,
    memory_migrations,
    script_migrations,
    search_migrations,
)
from docs.man_pages import render_man_page
from docs.system_packages import render_debian_changelog, render_debian_control, render_debian_rules, render_formula
from sleep.rules.pattern_files import list_patterns
from sleep.rules.word_index import render_needs

DOCS = Path(__file__).parent
REFERENCE = "developing/reference/"
WIDTH = 100


def main(arguments: list[str]) -> int:
    """Write the pages, or with `--check` only compare them. Returns the exit code."""
    stale = []
    for name, page in PAGES.items():
        path, text = DOCS / name, page().rstrip() + "\n"
        if "--check" not in arguments:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
    if stale:
        print(
            f"docs: {', '.join(stale)} does not say what the program does. Run `make docs`.",
            file=sys.stderr,
        )
    return 1 if stale else 0


def _page(title: str, source: str, *lines: str) -> str:
    return "\n".join([f"# {title}", "", f"Made by `make docs` from {source}. Do not edit.", "", *lines])


def commands() -> str:
    lines = []
    for root in (assistant, aihistory):
        context = click.Context(
            root, info_name=root.name, terminal_width=WIDTH, max_content_width=WIDTH, **root.context_settings
        )
        for place in _tree(context):
            lines += [f"## {place.command_path}", "", "```text", place.get_help(), "```", ""]
    return _page("Commands", "the `--help` of every command", *lines)


def _tree(context: click.Context) -> Iterator[click.Context]:
    yield context
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            child = context.command.get_command(context, name)
            if child is not None and not child.hidden:
                yield from _tree(click.Context(child, parent=context, info_name=name, max_content_width=WIDTH))


def json_shapes() -> str:
    """What `--json` prints of each command, and what the web API gives as its value."""
    lines = [_JSON_HEAD, ""]
    shapes: dict[str, Any] = {}
    for line, adapter in _json_adapters().items():
        schema = adapter.json_schema(mode="serialization", ref_template="{model}")
        shapes |= schema.get("$defs", {})
        if "properties" in schema:
            shapes[str(schema["title"])] = schema
        lines.append(f"- `{line}`: {_shape(schema)}")
    for name, schema in sorted(shapes.items()):
        lines += ["", f"## {name}", ""]
        if about := " ".join(str(schema.get("description", "")).split()):
            lines += [*textwrap.wrap(about, WIDTH), ""]
        lines += ["| Field | Type |", "|---|---|"]
        lines += [f"| `{field}` | {_shape(of)} |" for field, of in schema.get("properties", {}).items()]
    return _page("JSON", "the types that the commands name", *lines)


_JSON_HEAD = """\
What `--json` prints. Times are UTC, in ISO 8601. The web API (`POST /v1/commands`) returns the same as `value`, of the
commands of a conversation; those that differ in a shell, or are not there, are listed last, with a slash."""


def _json_adapters() -> Mapping[str, TypeAdapter[Any]]:
    """Command line -> how its value becomes JSON."""
    commands = {
        place.command_path: place.command
        for root in (assistant, aihistory)
        for place in _tree(click.Context(root, info_name=root.name))
    }
    in_shell = list(commands.values())
    commands |= {f"/{' '.join(path)}": leaf for path, leaf in leaf_commands(command_root()) if leaf not in in_shell}
    of_table = {line: command.adapter for line, command in commands.items() if isinstance(command, TableCommand)}
    of_shell = {
        line: TypeAdapter(option.shape)
        for line, command in commands.items()
        for option in command.params
        if isinstance(option, JsonOption)
    }
    adapters = of_table | of_shell
    return {line: adapters[line] for line in commands if line in adapters}


def _shape(schema: Mapping[str, Any]) -> str:
    """A JSON schema in a few words."""
    if "$ref" in schema:
        return f"[{schema['$ref']}](#{schema['$ref'].lower()})"
    if choices := schema.get("anyOf"):
        return " or ".join(_shape(choice) for choice in choices)
    if schema.get("type") == "array":
        items = schema.get("prefixItems") or [schema.get("items", {})]
        return f"array of {' and '.join(dict.fromkeys(_shape(item) for item in items))}"
    if "enum" in schema:
        return ", ".join(f'"{value}"' for value in schema["enum"])
    if "const" in schema:
        return f'"{schema["const"]}"'
    if "properties" in schema:
        return f"[{schema['title']}](#{schema['title'].lower()})"
    return {"date-time": "time"}.get(schema.get("format", ""), str(schema.get("type", "anything")))


def settings() -> str:
    lines = [_SETTINGS_HEAD, ""]
    section = ""
    for row in describe_settings(load_settings(Home(Path("no-home")), {})):
        head, _, key = row.key.partition(".")
        if key and head != section:
            section = head
            lines += [f"## [{section}]", "", row.section, ""]
        if key:
            lines += [
                f"### {row.key}",
                "",
                *textwrap.wrap(row.about, WIDTH, break_on_hyphens=False),
                "",
                f"- Default: `{row.value}`",
            ]
            lines += [f"- Allowed: {row.allowed}", f"- Environment: `{row.variable}`", ""]
    lines += ["## Other variables", "", "| Variable | What for |", "|---|---|"]
    lines += [f"| `{name}` | {about} |" for name, about in ENVIRONMENT_VARIABLES.items()]
    return _page("Settings", "`config/default.toml` and the classes that check it", *lines)


_SETTINGS_HEAD = """\
Put the keys that you want to change into `config.toml` in your data folder, or into the environment. The environment
overrides `config.toml`, and `config.toml` overrides the defaults. `assistant config show` prints the current value of
each setting and where it came from; `assistant config check` only checks that all are valid. The assistant does not
start with an unknown key, a wrong type or a value out of range. In variables, write text without quotes, and numbers
and lists as in TOML."""


def schema() -> str:
    lines = [_SCHEMA_HEAD, ""]
    for name, migrations in (("script.db", script_migrations), ("character.db", character_migrations)):
        lines += [f"## {name}", ""]
        for table, statements in _tables(migrations).items():
            lines += [f"### {table}", "", "```sql", *statements, "```", ""]
    return _page("Schema", "the migrations of the two databases", *lines)


_SCHEMA_HEAD = """\
Both files are SQLite, in WAL mode. Times are UTC, ISO-8601, of fixed width. The message log
(`log/<session>/conversation.jsonl`) contains what was said. `assistant verify --repair` can rebuild the message
index from it."""


def complete_schema(migrations: Migrations) -> str:
    """The statements that make a new database as all migrations of a set leave it, one after the other."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrations.apply(Database(connection))
        made = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid").fetchall()
        rows = [line.rstrip(";") for line in connection.iterdump() if line.startswith("INSERT INTO")]
    # SQLite makes the table of its counters itself, `apply_migrations` the record of migrations.
    own = ("CREATE TABLE sqlite_", _MIGRATION_RECORD)
    statements = [line for line in (*(sql for (sql,) in made), *rows) if not any(name in line for name in own)]
    head = f"-- Made by `make docs` from the migrations of {migrations.name}.db. Do not edit."
    return "\n\n".join([head, ";\n\n".join(statements)])


_MIGRATION_RECORD = Migrations.migrations_table


def _tables(migrations: Migrations) -> Mapping[str, list[str]]:
    """The statements that make each table and its indexes, in the order of the migrations."""
    database = Database(memory=True)
    migrations.apply(database)
    kinds = {row[1]: row[2] for row in database.execute("PRAGMA table_list").fetchall()}
    found: dict[str, list[str]] = {}
    for table, sql in database.execute("SELECT tbl_name, sql FROM sqlite_master ORDER BY rowid").fetchall():
        if sql and kinds.get(table) != "shadow" and not table.startswith(("_", "sqlite_")):
            head, newline, rest = sql.partition("\n")
            found.setdefault(table, []).append(f"{head}{newline}{_shifted(rest)};")
    return found


def _shifted(body: str) -> str:
    """The lines after the first, moved left to where they would stand outside the migration."""
    lines = body.splitlines()
    margin = len(lines[-1]) - len(lines[-1].lstrip()) if lines else 0
    return "\n".join(line[margin:] for line in lines)


def exit_codes() -> str:
    found: dict[int, list[str]] = {}
    for kind in _family(AssistantError):
        text = " ".join((kind.__doc__ or "").split("\n\n")[0].split())
        if kind.exit_code:
            found.setdefault(kind.exit_code, []).append(f"- {text}")
    lines = ["## 0: success", "", "The command did what you asked, or there is nothing yet to do it with.", ""]
    for code, reasons in sorted(found.items()):
        lines += [f"## {code}: {_CODES[code]}", "", *reasons, ""]
    return _page("Exit codes", "`assistant/core/errors.py`", *lines)


_CODES = {
    1: "failed",
    2: "wrong use or wrong settings",
    3: "no model answered; the message is kept",
    4: "budget used up",
}


def _family(kind: type[AssistantError]) -> Iterator[type[AssistantError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _family(child)


def notices() -> str:
    lines = [_NOTICES_HEAD, ""]
    lines += ["| Notice | When | To whom | Where it arrives | Once for |", "|---|---|---|---|---|"]
    for kind in NoticeKind:
        form, name = kind.form, kind.name.lower()
        cells = (f"[{name}](#{name})", form.when, _AUDIENCES[form.to], _PLACES[form.place], form.once or "each time")
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "## What each says", "", "Words in braces are filled in."]
    for kind in NoticeKind:
        text = (f"> {line}" for line in textwrap.wrap(kind.form.template, WIDTH))
        lines += ["", f"### {kind.name.lower()}", "", *text]
    table = read_error_table()
    lines += ["", "## Why a model does not answer", "", _OUTAGES_HEAD, ""]
    lines += ["| What happened | What to do |", "|---|---|"]
    for reason, advice in table.advice.items():
        lines.append(f"| {table.headlines[reason].format(who='The provider')} | {advice} |")
    return _page("Notices", "`assistant/core/notices.py`", *lines)


_NOTICES_HEAD = """\
What the assistant says without being asked. A notice is stored and sent like an answer, once: a restart neither loses
nor repeats it, and a network that is down gets it later. You read it where you are: in `assistant chat`, on standard
error of `assistant chat -m` and of a pipe (and in `notices` with `--json`), as a delivery of the web API, on Telegram,
on Matrix, on Discord, in Slack. What a nap or a night has to say comes where you wrote last. Several at once are one
message. Guests and rooms get what concerns their own conversation."""

_AUDIENCES = {
    "owner": "you",
    "conversation": "the people of the conversation",
    "stranger": "somebody who is not let in",
}
_PLACES = {
    "turn": "where the message came from",
    "outage": "each place that read of the outage",
    "recent": "where you, or they, wrote last",
    "bridge": "on that bridge, else in the terminal",
    "terminal": "in the terminal",
    "live": "in terminals and event streams that are open; not stored",
}

_OUTAGES_HEAD = """\
While a model does not answer, `assistant status` is red, and says since when and why, after a restart too. Another
model of `model.fallback` answers meanwhile, offline mode by default; then `chat -m` exits with 0 and says on standard
error who answered. It exits with 3 where nothing answered. The model is asked again with each message; `/retry` asks
again what the last one asked."""


PAGES: Mapping[str, Callable[[], str]] = {
    f"{REFERENCE}commands.md": commands,
    f"{REFERENCE}settings.md": settings,
    f"{REFERENCE}schema.md": schema,
    f"{REFERENCE}exit-codes.md": exit_codes,
    f"{REFERENCE}json.md": json_shapes,
    "notices.md": notices,
    "man/assistant.1": lambda: render_man_page(assistant, "a personal assistant that keeps every message", "aihistory"),
    "man/aihistory.1": lambda: render_man_page(aihistory, "what was compacted, and what it said", "assistant"),
    **{
        f"../assistant/store/schema/complete/{migrations.name}.sql": partial(complete_schema, migrations)
        for migrations in (script_migrations, character_migrations, memory_migrations, search_migrations)
    },
    "../sleep/rules/data/required_words.json": lambda: render_needs(list_patterns()),
    "../packaging/homebrew/nocturne.rb": render_formula,
    "../packaging/debian/control": render_debian_control,
    "../packaging/debian/rules": render_debian_rules,
    "../packaging/debian/changelog": render_debian_changelog,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
