"""Reads exports of ChatGPT and Claude: `conversations.json`, a list of conversations.

- ChatGPT stores every version of an answer in a tree (`mapping`); the visible conversation is the path from
  `current_node` to the root. Tool output, hidden messages and a model's thoughts are left out.
- Claude has a list (`chat_messages`), each with `sender` and its text in `content`, or only in `text`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

from assistant.core.import_records import ImportedMessage, ImportSource
from assistant.imports.json_stream import MAX_OBJECT, TOO_LARGE, CutOff, read_objects
from assistant.imports.records import (
    BadRecord,
    Read,
    ReadOptions,
    RejectedRecord,
    clean_id,
    clean_title,
    clean_words,
    in_batches,
    read_time,
)

_CUT_OFF = "the file ends, or is broken, there; everything before it was read"
_UNNAMED = "Untitled"


def read_conversations(stream: BinaryIO, options: ReadOptions) -> Iterator[Read]:
    """Yield the conversations in a file of either program."""
    number = 0
    try:
        for path, conversation in read_objects(stream, {("item",)}):
            if path != ("item",):
                continue
            number += 1
            where = f"conversation {number}"
            try:
                yield from _read(conversation, where, options)
            except BadRecord as error:
                yield RejectedRecord(where, str(error))
    except CutOff:
        yield RejectedRecord(f"conversation {number + 1}", _CUT_OFF)


def _read(conversation: Any, where: str, options: ReadOptions) -> Iterator[Read]:
    if conversation is TOO_LARGE:
        raise BadRecord(f"is larger than {MAX_OBJECT // 2**20} MB, or nested too deeply")
    if not isinstance(conversation, Mapping):
        raise BadRecord("is no conversation")
    if isinstance(conversation.get("mapping"), Mapping):
        yield from _read_chatgpt(conversation, where, options)
    elif isinstance(conversation.get("chat_messages"), Sequence):
        yield from _read_claude(conversation, where, options)
    else:
        raise BadRecord("has no messages")


def _read_chatgpt(conversation: Mapping[str, Any], where: str, options: ReadOptions) -> Iterator[Read]:
    external_id = clean_id(conversation.get("conversation_id") or conversation.get("id"))
    title = clean_title(conversation.get("title"), _UNNAMED)
    nodes = _way_to(conversation["mapping"], conversation.get("current_node"))
    messages = _each("chatgpt", nodes, where, conversation.get("create_time"), options)
    yield from in_batches("chatgpt", external_id, title, messages)


def _way_to(mapping: Mapping[str, Any], last: Any) -> list[Mapping[str, Any]]:
    """Return the messages from the root of the tree to its node `last`, else to the newest one. Raises `BadRecord`."""
    if last not in mapping:
        last = max(mapping, key=lambda key: _created(mapping[key]), default=None)
    way: list[Mapping[str, Any]] = []
    seen: set[Any] = set()
    while isinstance(last, str) and last in mapping and last not in seen:
        seen.add(last)
        node = mapping[last]
        if not isinstance(node, Mapping):
            raise BadRecord("has a broken tree of messages")
        if isinstance(node.get("message"), Mapping):
            way.append({"id": last, **node["message"]})
        last = node.get("parent")
    return way[::-1]


def _created(node: Any) -> float:
    message = node.get("message") if isinstance(node, Mapping) else None
    at = message.get("create_time") if isinstance(message, Mapping) else None
    return float(at) if isinstance(at, int | float) else 0.0


def _read_claude(conversation: Mapping[str, Any], where: str, options: ReadOptions) -> Iterator[Read]:
    external_id = clean_id(conversation.get("uuid"))
    title = clean_title(conversation.get("name"), _UNNAMED)
    messages = _each("claude", conversation["chat_messages"], where, conversation.get("created_at"), options)
    yield from in_batches("claude", external_id, title, messages)


def _each(
    source: ImportSource, rows: Sequence[Any], where: str, begun_at: Any, options: ReadOptions
) -> Iterator[ImportedMessage | RejectedRecord]:
    """Yield the messages with text; one without a time has that of the previous one."""
    before = begun_at
    for number, row in enumerate(rows, 1):
        try:
            if not isinstance(row, Mapping):
                raise BadRecord("is no message")
            message = _chatgpt_message(row, before, options) if source == "chatgpt" else _claude_message(row, options)
        except BadRecord as error:
            yield RejectedRecord(f"{where}, message {number}", str(error))
            continue
        if message is not None:
            before = message.at.timestamp()
            yield message


def _chatgpt_message(row: Mapping[str, Any], before: Any, options: ReadOptions) -> ImportedMessage | None:
    author, metadata, content = (_mapping(row, name) for name in ("author", "metadata", "content"))
    role = author.get("role")
    is_aside = metadata.get("is_visually_hidden_from_conversation") or row.get("recipient", "all") not in ("all", None)
    if role not in ("user", "assistant") or is_aside or content.get("content_type") not in _SPOKEN_CONTENT:
        return None
    parts = content.get("parts")
    text = clean_words("\n".join(filter(None, map(_part_text, parts))) if isinstance(parts, list) else "")
    at = before if row.get("create_time") is None else row["create_time"]
    return ImportedMessage(clean_id(row.get("id")), role, text, read_time(at, options)) if text else None


_SPOKEN_CONTENT = ("text", "multimodal_text")


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        return ""
    if isinstance(text := part.get("text"), str):
        return text
    return "[picture]" if part.get("content_type") == "image_asset_pointer" else ""


def _claude_message(row: Mapping[str, Any], options: ReadOptions) -> ImportedMessage | None:
    sender, blocks = row.get("sender"), row.get("content")
    if sender not in ("human", "assistant"):
        raise BadRecord("does not say who sent it")
    texts = [
        block["text"]
        for block in (blocks if isinstance(blocks, list) else ())
        if isinstance(block, Mapping) and block.get("type") == "text" and isinstance(block.get("text"), str)
    ]
    text = "\n\n".join(texts) or row.get("text") or ""
    files = [*_file_names(row.get("attachments")), *_file_names(row.get("files"))]
    words = clean_words("\n".join([clean_words(text), *files]))
    if not words:
        return None
    at = read_time(row.get("created_at"), options)
    return ImportedMessage(clean_id(row.get("uuid")), "user" if sender == "human" else "assistant", words, at)


def _file_names(files: Any) -> list[str]:
    """Return attachments by name: the content of a file is not the sender's text."""
    names = [file.get("file_name") for file in files if isinstance(file, Mapping)] if isinstance(files, list) else []
    return [f"[file: {name}]" for name in names if isinstance(name, str) and name]


def _mapping(row: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = row.get(name)
    return value if isinstance(value, Mapping) else {}
