"""Which embedder is wanted. Light: whoever only says so loads none."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class EmbedderSettings:
    """Which embedder: the settings `embedder*` of `[memory]`. "" takes the embedder's default."""

    kind: str = "wordllama"
    model: str = ""
    url: str = ""
    key: str = field(default="", repr=False)
