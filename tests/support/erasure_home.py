"""A home in which the same words stand in every place that keeps words, put there the way the app puts them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from prompt_toolkit.history import FileHistory

from assistant.core.erasure import ErasureRequest
from assistant.core.errors import MemoryUnavailable
from assistant.core.memories import ChangePlan, JournalEntry, Memory, MemoryChange, SleepReport
from assistant.core.messages import Media, Message, ToolCall
from assistant.core.profiles import Profile, ProfileAttribute
from assistant.core.records import Button, OutgoingMessage
from assistant.erasure.service import ErasureService
from assistant.mem0.client import LocalMemoryReader
from assistant.mem0.codec import memory_metadata
from assistant.store.character.consolidations import StoredConsolidations
from assistant.store.character.journal import StoredJournal
from assistant.store.character.memory_files import StoredMemoryFiles
from assistant.store.character.profiles import StoredProfiles
from assistant.store.character.todos import StoredTodos
from assistant.store.database import Database
from assistant.store.erasure.store import ErasureStore
from assistant.store.log.reader import session_folder_name
from assistant.store.memory.vectors import MemoryVectors
from assistant.store.schema.migrations import character_migrations
from assistant.store.schema.migrations import memory_migrations as memory_schema
from assistant.store.script.turns import Delegations, Pins
from assistant.wire.search import open_history
from tests.support.compactions import kept_copy, live_messages, plan_compaction, plan_masking, summary_message
from tests.support.imports import import_messages
from tests.support.semantic_memory import make_memory
from tests.support.store_home import NOW, StoreHome, reply_item

SECRET = 'copper heron "zanzibarquux" 47'
CJK = "青い鷺の合言葉"
SECRET_SPELLINGS = (
    SECRET,
    'Copper  Heron\n> "ZANZIBARQUUX"\t47',
    json.dumps({"said": SECRET}),
    json.dumps({"said": 'copper\nheron "zanzibarquux" 47'}),
)
CJK_SPELLINGS = (CJK, "青い鷺の\n合言葉", json.dumps({"said": CJK}))
SECRET_BYTES = (b"zanzibarquux", "鷺".encode(), b"\\u9dfa")
"""Bytes of the secrets that stand nowhere else."""
GUEST = "peer:telegram:7"
DAY = date(2026, 11, 20)
KEPT_FACT = "The boat is called Albatross."


class ErasableLocalMemories(LocalMemoryReader):
    """Memories read and erased in the home itself, without the child process."""

    def __init__(self, vectors: MemoryVectors) -> None:
        super().__init__(vectors)
        self._written = vectors

    async def erase(self, memory_ids: Sequence[str]) -> None:
        self._written.erase(memory_ids)


class UnreachableMemories:
    """A memory layer that answers again some day."""

    def __init__(self, home: ErasureHome) -> None:
        self.home = home
        self.answers = False

    async def all(self, scope: str | None = None) -> list[Memory]:
        return await self.home.memories.all(scope)

    async def erase(self, memory_ids: Sequence[str]) -> None:
        if not self.answers:
            raise MemoryUnavailable
        await self.home.memories.erase(memory_ids)


@dataclass
class ErasureHome(StoreHome):
    """Everything of a home that keeps words, open."""

    def open(self) -> ErasureHome:
        super().open()
        self.character_db = Database.open(self.path / "character.db", character_migrations, NOW)
        self.memory_db = Database.open(self.path / "memory.db", memory_schema, NOW)
        self.vectors = MemoryVectors(self.memory_db)
        self.memories = ErasableLocalMemories(self.vectors)
        self.history, self.finder = open_history(self.path, patient=True)
        self.erasure_store = ErasureStore(
            self.path, self.db, self.character_db, self.log, self.conversation, self.finder
        )
        self.erasure = ErasureService(self.erasure_store, self.memories)  # type: ignore[arg-type]
        self.todos, self.pins, self.journal = (
            StoredTodos(self.character_db),
            Pins(self.character_db),
            StoredJournal(self.character_db),
        )
        self.profiles, self.consolidations = StoredProfiles(self.character_db), StoredConsolidations(self.character_db)
        self.files = StoredMemoryFiles(self.path, self.character_db, count_tokens=len, max_tokens=10_000)
        return self

    def close(self) -> None:
        self.history.close()
        self.character_db.close()
        self.memory_db.close()
        super().close()

    def add_memory(self, one: Memory) -> None:
        payload = memory_metadata(one) | {"data": one.text, "user_id": one.scope}
        self.vectors.put(one.id, payload, "letters", bytes(52))
        row = {"memory_id": one.id, "old_memory": None, "new_memory": one.text, "event": "ADD", "is_deleted": 0}
        self.vectors.add_history([row])

    def add_entry(self, key: str, content: str, sources: Sequence[int] = (), scope: str = "owner", **rest: str) -> int:
        session = "main" if scope == "owner" else scope
        kind = rest.get("source_type", "extraction")
        entry = JournalEntry(key, scope, session, 1, content, NOW, kind, tags=("fact",), sources=tuple(sources))  # type: ignore[arg-type]
        return self.journal.add([entry], NOW)[0].id or 0

    def search_ids(self, words: str) -> list[int]:
        return [hit.message_id for hit in self.history.search(words, "owner")]

    def files_containing(self, rare: Sequence[bytes] = SECRET_BYTES) -> list[str]:
        """Files that have any of these bytes, in any case, gzip unpacked."""
        return [
            path.relative_to(self.path).as_posix()
            for path in sorted(self.path.rglob("*"))
            if path.is_file() and any(one in _unpacked(path).lower() for one in rare)
        ]


def _unpacked(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def erasure_request(text: str = SECRET, scope: str = "owner") -> ErasureRequest:
    return ErasureRequest(scope, text=text)


def write_everywhere(home: ErasureHome, spelled: str, secret: str) -> None:
    """Put the words as `spelled` into every place; around them stands what is to stay."""
    home.say("What is my boat called?", KEPT_FACT)
    turn = _turn_with_tools(home, spelled)
    home.say("And the weather?", "It rains.")
    _compactions(home, spelled)
    _learned(home, spelled, turn)
    _files(home, spelled, secret)


def _turn_with_tools(home: ErasureHome, spelled: str) -> list[int]:
    """A turn whose every part has the words; the ids of its messages."""
    incoming = home.inbox_item(f"Please remember: {spelled}. It is for the gate.")
    turn = home.conversation.begin_turn(incoming, f"It is ten.\nRecalled: {spelled}\nThe sun shines.", NOW)
    call = ToolCall("c1", "write_file", {"text": spelled, "path": "a.txt"})
    asked = Message("assistant", "", tool_calls=(call,), thinking=({"type": "thinking", "thinking": spelled},))
    result = Message("tool", f"wrote {spelled} " + "x" * 1500, tool_call_id="c1", name="write_file")
    home.conversation.record_messages(turn, [asked], NOW)
    home.conversation.start_tool(turn, call, NOW)
    home.conversation.record_messages(turn, [result], NOW)
    delegated = Delegations(home.db)
    [task] = delegated.begin(f"d{turn.id}", turn.id, "main", "owner", [f"Find out. {spelled}"], NOW)
    delegated.end(task.id, "done", f"Found. It is {spelled}", None, NOW)
    picture = Media("file", "text/plain", f"{' '.join(spelled.split())}.txt", 3, path="a.txt")
    import_messages(home.conversation, "main", "owner", [Message("user", "See this.", media=(picture,))], NOW)
    notice = OutgoingMessage(f"n{turn.id}", "main", "owner", "terminal", "tty", f"A notice. {spelled}", "notice")
    notice = replace(notice, media=(picture,), buttons=(Button("Again", f"/remind {spelled}"),))
    home.outbox.push(notice, NOW)
    home.conversation.finish_turn(
        turn,
        "answered",
        Message("assistant", f"I will keep {spelled}"),
        [reply_item(turn, f"I will keep {spelled}")],
        NOW,
        error=f"late. {spelled}",
    )
    home.conversation.annotate("main", "edit", [incoming.message_id], f"now: {spelled}", NOW)
    return [row["id"] for row in home.db.rows("SELECT id FROM messages WHERE turn = ? ORDER BY seq", (turn.id,))]


def _compactions(home: ErasureHome, spelled: str) -> None:
    """A masked form, a summary, a kept copy, a branch."""
    tool = next(n for n, one in enumerate(live_messages(home)) if one.role == "tool")
    home.conversation.commit_compaction(plan_masking(home, tool, text=f"[archived] {spelled[:60]}"), NOW)
    of_it = live_messages(home)
    text = f"[CONTEXT SUMMARY]\n- {KEPT_FACT}\n- The gate: {spelled}\n- It rained."
    compaction = plan_compaction(home, 0, len(of_it) - 3, summary_message(text), kept_copy(of_it[2]))
    facts = {"identifiers": ["A-1", spelled], "note": f"Kept. And {spelled}"}
    home.conversation.commit_compaction(replace(compaction, summary=text, key_facts=facts), NOW)
    home.conversation.branch_session("main", of_it[-1].id or 0, NOW)


def _learned(home: ErasureHome, spelled: str, turn: Sequence[int]) -> None:
    home.todos.add("owner", [f"Paint the gate {spelled}"], f"todo {len(spelled)}", NOW)
    todo = home.todos.add("owner", [f"Buy bread. Say {spelled}"], f"other {len(spelled)}", NOW)
    home.todos.complete("owner", [todo[0].id], f"done {len(spelled)}", NOW)
    home.pins.add("main", "owner", f"Always: {spelled}", "user", None, NOW)
    home.pins.add("main", "owner", f"pinned {spelled}", "user", turn[0], NOW)
    told = home.add_entry(f"k1{len(spelled)}", f"The word for the gate is {spelled}", turn[:1])
    other = home.add_entry(f"k2{len(spelled)}", "The boat has a word.", [1, turn[0]])
    both = home.add_entry(f"k3{len(spelled)}", f"The boat is red. The word is {spelled}", [1, turn[0]])
    home.add_entry(f"k4{len(spelled)}", f"They met.\nWord: {spelled}\nThey left.", [1], source_type="context_synthesis")
    newest = home.add_entry(f"k5{len(spelled)}", "The word was changed.", [1, turn[-1]])
    one = make_memory(f"Word of the gate: {spelled}", "owner", entries=(told, other))
    was = make_memory(f"The boat is red, not {spelled}", "owner", entries=(both,))
    home.add_memory(one)
    home.add_memory(was)
    home.add_memory(replace(was, text="The boat is red."))
    changes = (MemoryChange("add", one), MemoryChange("add", make_memory(KEPT_FACT, "owner", entries=(newest,))))
    done = ChangePlan(
        f"p{len(spelled)}", 1, "owner", changes, (told, other, newest), ((told, newest),), ((both, f"like {spelled}"),)
    )
    home.consolidations.save_plan(done, NOW)
    home.consolidations.mark_applied(done.key, NOW)
    home.consolidations.save_plan(replace(done, key=f"q{len(spelled)}", superseded=(), rejected=()), NOW)
    profile = Profile("owner", "thing", f"Gate {len(spelled)}", (f"{spelled}",), f"It is old. It has {spelled}")
    saved = home.profiles.save(profile, "model", NOW, key=f"pr{len(spelled)}")
    attributes = (ProfileAttribute("word", spelled, NOW), ProfileAttribute("colour", "green", NOW))
    home.profiles.save(replace(saved, attributes=attributes), "user", NOW)
    report = SleepReport(home.journal.begin_cycle("nap", NOW), "nap", NOW, NOW, "done")
    rejected = {"rejected": [f"too vague: {spelled}"], "read": 3}
    home.journal.save_cycle(replace(report, phases={"consolidate": rejected}))


def _files(home: ErasureHome, spelled: str, secret: str) -> None:
    stood = home.files.read_memory_file()
    home.files.replace_memory_file(f"{stood}- {KEPT_FACT}\n- Gate: {' '.join(spelled.split())}\n", stood, "model", NOW)
    home.files.append_daily_note(
        "owner", DAY, f"10:{len(spelled):02}", [f"The word is {spelled}", "It rained."], f"n{len(spelled)}"
    )
    typed = FileHistory(home.path / "chat_history")
    typed.store_string("hello there")
    typed.store_string(f"please remember\n{spelled}")
    folder = home.path / "log" / session_folder_name("main")
    with (folder / "conversation.jsonl.torn-1").open("ab") as torn:
        torn.write(json.dumps({"content": spelled}, ensure_ascii=False).encode()[:-1] + b"\n")
    archive = home.path / "archive" / session_folder_name("main")
    archive.mkdir(parents=True, exist_ok=True)
    (archive / "1.jsonl.gz").write_bytes(gzip.compress(home.log_bytes()))
    with home.db.write() as db:
        place = {"session": "main", "generation": 1, "scope": "owner", "bridge": "terminal", "target": "main"}
        how = {"kind": "reminder", "spec": "{}", "zone": "UTC", "catch_up": "once", "state": "active", "created_at": ""}
        said = {"key": f"job {len(spelled)}", "name": f"gate {spelled}", "text": f"Open the gate. {spelled}"}
        job = db.insert_row("jobs", **place, **how, **said)
        done = {"due_at": "", "local_key": "k", "state": "ran", "ended_at": "", "note": f"said {spelled}"}
        db.insert_row("slots", job_id=job, scope="owner", **done)
    for name, of in (("script", home.db), ("character", home.character_db), ("memory", home.memory_db)):
        of.backup(NOW, f"{name}{len(spelled)}")
    home.search_ids(secret)


def say_as_guest(home: ErasureHome, text: str) -> int:
    """The same words in a guest's own places; the id of the message."""
    message = import_messages(home.conversation, GUEST, GUEST, [Message("user", f"My word: {text}")], NOW)[0]
    home.todos.add(GUEST, [f"Use {text}"], f"guest {len(text)}", NOW)
    home.add_entry(f"guest {len(text)}", f"The guest's word is {text}", [message.id or 0], GUEST)
    home.add_memory(make_memory(f"Guest said {text}", GUEST))
    home.files.append_daily_note(GUEST, DAY, "10:00", [text], "guest")
    return message.id or 0
