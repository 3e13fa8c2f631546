"""The prompts: those that ship, or a person's own in `prompts/` of the data folder."""

from __future__ import annotations

from pathlib import Path

from assistant.core.errors import SettingsError
from assistant.settings.home import Home
from assistant.settings.settings import shipped_config_dir


def load_system_prompt() -> str:
    """The rules, which are the same for everybody. Raises `SettingsError`."""
    return _read(shipped_config_dir() / "prompts" / "system.md")


def load_persona(home: Home) -> str:
    """Raises `SettingsError`."""
    return _read(home.persona if home.persona.is_file() else shipped_config_dir() / "prompts" / "persona.md")


def load_prompt_asking_for(home: Home, name: str, tag: str) -> str:
    """A prompt whose answer is read by a tag. Raises `SettingsError` for one that does not ask for it."""
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
    return _read(own if own.is_file() else shipped_config_dir() / "prompts" / f"{name}.md")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} cannot be read: {error}. Nothing was started.") from None
