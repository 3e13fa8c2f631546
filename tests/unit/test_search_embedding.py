"""How often a turn calls the embedder: once per question, for its memories and its messages together."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, timedelta
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from assistant.context.tokens import estimate_tokens
from assistant.core.messages import Message
from assistant.core.records import ContextView
from assistant.mem0.embedders import WordLlamaEmbedder
from assistant.mem0.vectors import Vectors
from assistant.runtime.recall import HistoryRecall, MemoryRecall
from assistant.search.dtypes import Floats
from assistant.search.embedding_cache import EmbeddingCache
from tests.support.search_home import NOW, OWNER, SearchHome, add_chatter
from tests.unit.test_memory_search import JournalAndMemories

_LATER = NOW + timedelta(days=1)
_SUMMARY = Message("system", "[CONTEXT SUMMARY]\n", metadata={"type": "compaction"})
_VIEW = ContextView("main", 1, OWNER, 1, (_SUMMARY,), 0, 0, 0)


def test_a_question_is_embedded_once_for_memories_and_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[list[str]] = []
    embed = WordLlamaEmbedder._rows

    def counted(self: WordLlamaEmbedder, texts: list[str]) -> Vectors:
        calls.append(texts)
        return embed(self, texts)

    room, notes = SearchHome(tmp_path), JournalAndMemories(tmp_path)
    memories = MemoryRecall(notes.search, estimate_tokens, UTC, lambda: 400)
    messages = HistoryRecall(room.history, estimate_tokens, UTC, lambda: 400)

    def recall(question: str) -> str:
        said = messages.recall(question, "main", OWNER, _VIEW, _LATER)
        return memories.recall(question, OWNER, _VIEW, "", _LATER) + said

    try:
        room.say("The zeppelin is repaired by Ragna in Bergen every April.")
        add_chatter(room, 60)
        notes.note("The boiler is serviced every March.", "The zeppelin lies in Bergen harbour.")
        recall("Is there anything new?")
        monkeypatch.setattr(WordLlamaEmbedder, "_rows", counted)
        recalled = recall("Who repairs the zeppelin in Bergen?")
        assert "harbour" in recalled and "Ragna" in recalled
        assert [texts[0] for texts in calls] == ["Who repairs the zeppelin in Bergen?"]
        recall("When is the boiler beside the zeppelin serviced?")
        assert len(calls) == 2
        assert "harbour" in recall("Who repairs the zeppelin in Bergen?") and len(calls) == 2
    finally:
        room.close()
        notes.close()


def test_vectors_are_those_of_the_embedder_and_few_are_kept() -> None:
    calls: list[list[str]] = []

    def embed(texts: list[str]) -> Vectors:
        calls.append(list(texts))
        return np.array([[len(text), ord(text[0])] for text in texts], np.float32)

    cache = EmbeddingCache(embed)  # type: ignore[arg-type]
    assert cache.embed(["a", "bcd", "a"]).tolist() == [[1, 97], [3, 98], [1, 97]]
    assert cache.embed(["bcd", "ef"]).tolist() == [[3, 98], [2, 101]]
    assert calls == [["a", "bcd"], ["ef"]]
    cache.embed([f"text {number}" for number in range(200)])
    cache.embed(["a"])
    assert calls[-1] == ["a"] and len(cache._vectors) == 128


def test_a_search_does_not_wait_while_the_background_embeds(tmp_path: Path) -> None:
    room = SearchHome(tmp_path / "home")
    (old,) = room.say("The zeppelin flies north.")
    assert room.search_ids("zeppelin") == [old]
    before = NOW + timedelta(seconds=90)
    room.say("The balloon is in the barn.")
    embedded = room.finder._opened().index._embedded_units
    embed, found = embedded._embed, list[list[int]]()

    def search_and_embed(texts: Sequence[str]) -> Floats:
        searching = Thread(target=lambda: found.append(room.search_ids("zeppelin", before=before)), daemon=True)
        searching.start()
        searching.join(60)
        return embed(texts)

    embedded._embed = search_and_embed
    assert room.finder.index_next_batch() == 1
    assert found == [[old]]
    room.close()
