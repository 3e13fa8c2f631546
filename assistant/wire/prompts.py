"""The prompts that ship, and those that a person put in their place under `prompts/` of the data folder."""

from __future__ import annotations

from pathlib import Path

from assistant.core.errors import SettingsError
from assistant.runtime.context_meter import SystemPrompts
from assistant.settings.home import Home
from assistant.settings.settings import shipped_config_dir
from sleep.compaction.prompts import SummaryPrompts


def load_system_prompts(home: Home) -> SystemPrompts:
    """Raises `SettingsError`."""
    persona = home.persona if home.persona.is_file() else shipped_config_dir() / "prompts" / "persona.md"
    return SystemPrompts(_read(shipped_config_dir() / "prompts" / "system.md"), _read(persona))


def load_summary_prompts(home: Home) -> SummaryPrompts:
    names = ("summary", "summary_merge", "summary_prefix")
    return SummaryPrompts(*(load_prompt_asking_for(home, name, "<summary>") for name in names))


def load_prompt_asking_for(home: Home, name: str, tag: str) -> str:
    """A prompt that asks for the tag its answer is read by. Raises `SettingsError` for one that does not."""
    text = load_prompt(home, name)
    if tag not in text:
        raise SettingsError(
            f"{home.path / 'prompts' / name}.md does not ask for {tag}, by which the answer is read. Nothing was "
            "started; keep the form that the shipped prompt asks for, or take the file away."
        )
    return text


def load_prompt(home: Home, name: str) -> str:
    """A prompt of ours, or the home's own `prompts/NAME.md` instead of it. Raises `SettingsError`."""
    own = home.path / "prompts" / f"{name}.md"
    return _read(own if own.is_file() else shipped_config_dir() / "prompts" / f"{name}.md")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} cannot be read: {error}. Nothing was started.") from None
