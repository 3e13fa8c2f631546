"""Settings that are refused."""

from __future__ import annotations

import pytest

from assistant.core.errors import SettingsError
from assistant.settings.home import Home
from assistant.settings.settings import load_settings


def refused(home: Home, text: str = "", **environ: str) -> str:
    """What is told of a config.toml of this text."""
    home.config.write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        load_settings(home, environ)
    return str(caught.value)
