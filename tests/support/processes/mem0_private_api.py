"""Mem0 itself, for the test of its private parts: it reads its environment when it is imported, so that this module is
run in a process of its own. Prints the facts that are asked for as JSON; each has a folder of its own but `files`,
which is about all that lies there."""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from assistant.mem0.codec import memory_metadata
from assistant.mem0.embedders import WordLlamaEmbedder
from assistant.store.database import Database
from assistant.store.memory.vectors import MemoryVectors
from assistant.store.schema.migrations import memory_migrations as schema
from tests.support.semantic_memory import NOW, make_memory

HOME = Path(sys.argv[1])
os.environ.update(MEM0_TELEMETRY="False", MEM0_DIR=str(HOME / "mem0"))
sys.modules.update(dict.fromkeys(("spacy", "fastembed")))  # type: ignore[arg-type]

mem0_main = importlib.import_module("mem0.memory.main")
mem0_storage = importlib.import_module("mem0.memory.storage")
mem0_telemetry = importlib.import_module("mem0.memory.telemetry")
adapter = importlib.import_module("assistant.mem0.adapter")


def open_store() -> Any:
    store = MemoryVectors(Database.open(HOME / "memory.db", schema, NOW))
    embedder = WordLlamaEmbedder()
    vectors = adapter.LocalVectorStore(store, embedder.name, embedder.dimensions)
    return adapter.Mem0Adapter(adapter.BatchedEmbeddings(embedder), vectors, store)


def version() -> str:
    return importlib.metadata.version("mem0ai")


def telemetry() -> bool:
    return bool(mem0_telemetry.MEM0_TELEMETRY)


def attributes_not_set() -> list[str]:
    """What Mem0's constructor sets and ours does not."""
    set_there = set(re.findall(r"self\.(\w+)\s*=[^=]", inspect.getsource(mem0_main.Memory.__init__)))
    return sorted(set_there - set(vars(open_store())))


def overridden_with_other_parameters() -> list[str]:
    """Of what ours puts in the place of Mem0's, methods that are missing there or are called otherwise."""
    own = [name for name, made in vars(adapter.Mem0Adapter).items() if inspect.isfunction(made) and name[:2] != "__"]
    private = [name for name in own if name.startswith("_")]
    kept = [name for name in vars(mem0_storage.SQLiteManager) if not name.startswith("_")]
    pairs = [
        (mem0_main.Memory, adapter.Mem0Adapter, private),
        (mem0_storage.SQLiteManager, adapter.Mem0HistoryAdapter, kept),
    ]
    return [name for theirs, own, names in pairs for name in names if not _called_alike(theirs, own, name)]


def _called_alike(theirs: type, own: type, name: str) -> bool:
    known, made = getattr(theirs, name, None), getattr(own, name, None)
    if known is None or made is None:
        return False
    parameters = inspect.signature(made).parameters
    takes_any = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    return takes_any or list(inspect.signature(known).parameters) == list(parameters)


def created_otherwise() -> list[str]:
    """Fields of a payload and of a row of history that Mem0's own `_create_memory` writes and ours does not, or the
    other way round."""
    one = open_store()
    kept = make_memory("I live in Oslo.")
    one.remember(kept)
    vector = one.embedding_model.embed(kept.text)
    given = {**memory_metadata(kept), "user_id": "main", "role": "user"}
    seen: list[dict[str, Any]] = []
    one.vector_store.insert = lambda vectors, ids, payloads: seen.extend(payloads)
    theirs = mem0_main.Memory._create_memory(one, kept.text, {kept.text: vector}, given)
    one.remember(kept)
    fields = set(seen[0]) ^ set(seen[1])
    same = [key for key in ("data", "hash", "text_lemmatized", "user_id", "role") if seen[0][key] != seen[1][key]]
    rows = [{key: bool(value) for key, value in one.db.get_history(name)[0].items()} for name in (theirs, kept.id)]
    return [*sorted(fields), *same, *[key for key in rows[0] if rows[0][key] != rows[1][key]]]


def listed_by_mem0() -> list[str]:
    one = open_store()
    one.remember(make_memory("Mine."))
    one.remember(make_memory("Hers.", "peer:test:ann with a space"))
    return [hit["memory"] for hit in one.get_all(filters={"user_id": "main"})["results"]]


def second_store() -> bool:
    """Whether adding, updating, searching and deleting has opened Mem0's store of names."""
    one = open_store()
    kept = make_memory("Anna Berg lives in Oslo.")
    one.remember(kept)
    one.update(kept.id, text="Anna Berg moved to New York.")
    one.search("Where does Anna Berg live?", filters={"user_id": "main"})
    one.drop(kept.id)
    return one._entity_store is not None


def files() -> list[str]:
    open_store().remember(make_memory("I live in Oslo."))
    return sorted(str(path.relative_to(HOME)) for path in HOME.rglob("*"))


FACTS: dict[str, Callable[[], Any]] = {
    fact.__name__: fact
    for fact in (
        version,
        telemetry,
        attributes_not_set,
        overridden_with_other_parameters,
        created_otherwise,
        listed_by_mem0,
        second_store,
        files,
    )
}

if __name__ == "__main__":
    told = {}
    for name in sys.argv[2:]:
        HOME = Path(sys.argv[1], *([] if name == "files" else [name]))
        HOME.mkdir(exist_ok=True)
        told[name] = FACTS[name]()
    print(json.dumps(told))
