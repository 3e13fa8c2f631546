"""The prompts: the shipped ones, or a person's own in `prompts/` of the data folder."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from assistant.core.dataclass import dataclass
from assistant.core.errors import SettingsError
from assistant.core.plain_files import FileRefused, read_plain_text
from assistant.core.text import lazy_regex
from assistant.settings.home import Home
from assistant.settings.settings import shipped_config_dir

_MAX_BYTES = 1 << 20


def load_system_prompt() -> str:
    """Return the rules, which are the same for everybody. Raises `SettingsError`."""
    return _read(shipped_config_dir() / "prompts" / "system.md")


def load_persona(home: Home) -> str:
    """Raises `SettingsError`."""
    return _read(home.persona if home.persona.exists() else shipped_config_dir() / "prompts" / "persona.md")


def load_prompt_asking_for(home: Home, name: str, tag: str) -> str:
    """Return a prompt whose answer is parsed by a tag. Raises `SettingsError` if it does not ask for the tag."""
    text = load_prompt(home, name)
    if tag not in text:
        raise SettingsError(
            f"{home.path / 'prompts' / name}.md does not ask for {tag}, by which the answer is read. Nothing was "
            "started; ask for it as the shipped prompt does, or remove the file."
        )
    return text


def load_prompt(home: Home, name: str) -> str:
    """Raises `SettingsError`."""
    own = home.path / "prompts" / f"{name}.md"
    return _read(own if own.exists() else shipped_config_dir() / "prompts" / f"{name}.md")


def find_prompt_problems(home: Home) -> Iterator[str]:
    """Yield why the persona or a prompt of a person's own cannot be read, which stops a start; nothing otherwise."""
    for path in (home.persona, *sorted((home.path / "prompts").glob("*.md"))):
        if path.exists():
            try:
                _read(path)
            except SettingsError as error:
                yield str(error)


def _read(path: Path) -> str:
    try:
        return read_plain_text(path, _MAX_BYTES)
    except FileRefused as error:
        raise SettingsError(f"{path} {error}. Nothing was started; save it as UTF-8 text, or remove it.") from None


_ASSISTANT = lazy_regex(r"\AYou are ([^,.\n]+)(?=[,.])")
_PERSON = lazy_regex(r"^The person you work for is called (.+)\.$", re.MULTILINE)
_MANNER = lazy_regex(r"^They want you to be: (.+)\.$", re.MULTILINE)
MAX_NAME_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class PersonaNames:
    """The names of the assistant and the person, and the preferred manner; "" if not set."""

    assistant: str = ""
    person: str = ""
    manner: str = ""


def parse_persona_names(text: str) -> PersonaNames:
    """Parse the names in a persona."""
    found = (pattern.search(text) for pattern in (_ASSISTANT, _PERSON, _MANNER))
    return PersonaNames(*(match[1].strip() if match else "" for match in found))


def replace_persona_names(text: str, names: PersonaNames) -> str:
    """Return `text` with these names; a sentence whose name is "" is removed."""
    text = _first(text, names.assistant)
    text = _line(text, _PERSON, f"The person you work for is called {names.person}." if names.person else "")
    return _line(text, _MANNER, f"They want you to be: {names.manner}." if names.manner else "")


def clean_persona_name(text: str) -> str:
    """Return a name or a manner as used in a sentence: on one line, without a final full stop."""
    return " ".join(text.split())[:MAX_NAME_CHARACTERS].rstrip(". ")


def _first(text: str, name: str) -> str:
    if not name:
        return text
    if _ASSISTANT.search(text):
        return _ASSISTANT.sub(lambda _: f"You are {name}", text, count=1)
    return f"You are {name}.\n\n{text}"


def _line(text: str, pattern: re.Pattern[str], line: str) -> str:
    if not line:
        return re.sub(pattern.pattern + r"\n?", "", text, flags=re.MULTILINE)
    if pattern.search(text):
        return pattern.sub(lambda _: line, text, count=1)
    known = _PERSON.search(text) or _MANNER.search(text)
    gap = "\n" if known else "\n\n"
    return f"{text.rstrip()}{gap}{line}\n"
