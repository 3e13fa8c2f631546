"""What `[memory]` says, as semantic memory is told it."""

from __future__ import annotations

from pathlib import Path

from assistant.settings.home import home_from_environment
from assistant.settings.settings import load_settings
from assistant.wire.memories import memory_store_settings


def _told(tmp_path: Path, toml: str, **environ: str) -> tuple[str, str, str, str, str]:
    environ["ASSISTANT_HOME"] = str(tmp_path)
    (tmp_path / "config.toml").write_text(f"[memory]\n{toml}\n", encoding="utf-8")
    told = memory_store_settings(load_settings(home_from_environment(environ), environ))
    return told.store, told.store_url, told.embedder.kind, told.embedder.model, told.embedder.key


def test_memory_lies_in_the_home_and_is_embedded_there_unless_said_otherwise(tmp_path: Path) -> None:
    assert _told(tmp_path, "", OPENAI_API_KEY="sk-model") == ("local", "", "wordllama", "", "")


def test_an_openai_embedder_takes_its_own_key_or_the_models(tmp_path: Path) -> None:
    own = 'embedder = "openai"\nembedder_key = "sk-own"'
    assert _told(tmp_path, own, OPENAI_API_KEY="sk-model")[-1] == "sk-own"
    assert _told(tmp_path, 'embedder = "openai"', OPENAI_API_KEY="sk-model")[-1] == "sk-model"


def test_the_models_key_goes_to_no_other_embedder(tmp_path: Path) -> None:
    assert _told(tmp_path, 'embedder = "ollama"', OPENAI_API_KEY="sk-model")[-1] == ""


def test_a_servers_address_is_handed_on(tmp_path: Path) -> None:
    told = _told(tmp_path, 'store = "pgvector"\nstore_url = "postgresql://me@localhost/x"')
    assert told[:2] == ("pgvector", "postgresql://me@localhost/x")
