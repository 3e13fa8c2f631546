"""Encodes one record of the message log as one line of JSON.

The fields are in a fixed order, without extra spaces. Those before `salt` are the header, those after it the body: the
content of the message. `commit` is SHA-256 over the salt and the body as written; `prev` is SHA-256 over the header of
the previous record (GENESIS for the first). The hash chain thus covers headers only: after body and salt are blanked in
place, it can still be verified, and the content cannot be guessed from the commitment. With jq:

    header  jq -c 'del(.salt,.content,.name,.tool_calls,.media,.thinking)'
    body    jq -c '{content,name,tool_calls,media,thinking}'

Both print exactly the bytes that were hashed, since nothing is sorted or reformatted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from assistant.core.dataclass import dataclass
from assistant.core.messages import LogByteRange, Message
from assistant.core.records import LogRecord
from assistant.store.rows import dump_json, format_time, message_parts, parse_time, parts_from_json

GENESIS_HASH = hashlib.sha256(b"").hexdigest()
SALT_KEY = b',"salt":"'
SALT_LENGTH = 32


@dataclass(frozen=True, slots=True)
class RecordBody:
    """The encoded content of a record, the part that takes long to encode."""

    salt: str
    commit: str
    encoded: bytes  # the body object


def encode_body(said: Message | LogRecord, salt: str) -> RecordBody:
    """Return what is committed to: content and parts as JSON, with the hash over it and the salt."""
    body = dump_json({"content": said.content, **message_parts(said)}).encode()
    return RecordBody(salt, compute_commitment(salt, body), body)


def encode_record(record: LogRecord, seq: int, prev: str, body: RecordBody, start: int) -> tuple[LogRecord, bytes, str]:
    """Return the record at byte `start` of its log, its line, and the hash of its header. `body` is the record's
    own."""
    header = dump_json(_header(record) | {"seq": seq, "commit": body.commit, "prev": prev}).encode()
    line = b"".join((header[:-1], SALT_KEY, body.salt.encode(), b'",', memoryview(body.encoded)[1:], b"\n"))
    # One copy with all changes: a record has many fields.
    span = LogByteRange(start, start + len(line))
    placed = replace(record, seq=seq, commit=body.commit, prev=prev, salt=body.salt, span=span)
    return placed, line, hash_header(header[:-1])


def compute_commitment(salt: str, body: bytes) -> str:
    """SHA-256 over the salt (16 bytes, given in hex) and the body object."""
    digest = hashlib.sha256(bytes.fromhex(salt))
    digest.update(body)
    return digest.hexdigest()


def hash_header(opened: bytes) -> str:
    """SHA-256 of a header; `opened` is the header object without its closing brace, as it starts a line."""
    return hashlib.sha256(opened + b"}").hexdigest()


def split_line(line: bytes) -> tuple[bytes, str, bytes]:
    """Split a line into header without closing brace, salt, and body object, as bytes of the line. Raises `ValueError`.

    The first `,"salt":"` is always the key: within a JSON string a quote is escaped, so no value can contain it.
    """
    at = line.index(SALT_KEY)
    begin = at + len(SALT_KEY)
    after = begin + SALT_LENGTH
    if line[after : after + 2] != b'",' or not line.endswith(b"}\n"):
        raise ValueError("not a record")
    return line[:at], line[begin:after].decode("ascii"), b"{" + line[after + 2 : -1]


def decode_record(line: bytes, start: int) -> LogRecord:
    """Decode the line that begins at byte `start`. Raises `ValueError`, `KeyError`, `TypeError`."""
    raw = json.loads(line)
    return LogRecord(
        ts=parse_time(raw["ts"]),
        refs=tuple(raw["refs"]),
        content=raw["content"],
        commit=raw["commit"],
        prev=raw["prev"],
        salt=raw["salt"],
        # A blanked line may lack parts of the body.
        **parts_from_json(raw),
        external_id=raw.get("external_id"),
        span=LogByteRange(start, start + len(line)),
        **{name: raw[name] for name in _PLAIN_HEADER_FIELDS},
    )


def record_to_json(record: LogRecord) -> dict[str, Any]:
    """Return a record's content, sender, time and place, without its proof; for an erased record, only that it
    existed."""
    header = {name: value for name, value in _header(record).items() if name != "seq"}
    if record.salt.isspace():
        record = replace(record, content="", name=None, tool_calls=(), media=(), thinking=())
    return {**header, "content": record.content, **message_parts(record)}


def record_from_json(raw: Mapping[str, Any]) -> LogRecord:
    """Return a record to log from the output of `record_to_json`. Raises `ValueError`, `KeyError`, `TypeError`."""
    plain = {name: raw[name] for name in _PLAIN_HEADER_FIELDS if name != "seq"}
    if not isinstance(raw["content"], str) or type(raw["id"]) is not int:
        raise ValueError("not a record")
    return LogRecord(
        seq=0,
        ts=parse_time(raw["ts"]),
        refs=tuple(raw["refs"]),
        content=raw["content"],
        commit="",
        prev="",
        external_id=raw.get("external_id"),
        **parts_from_json(raw),
        **plain,
    )


_HEADER_FIELDS = (
    "kind",
    "seq",
    "id",
    "ts",
    "session",
    "generation",
    "scope",
    "role",
    "tool_call_id",
    "bridge",
    "sender",
    "trust",
    "model",
    "turn",
    "refs",
)
_PLAIN_HEADER_FIELDS = [name for name in _HEADER_FIELDS if name not in ("ts", "refs")]


def _header(record: LogRecord) -> dict[str, Any]:
    fields = {name: getattr(record, name) for name in _HEADER_FIELDS}
    # Only for imported messages, so that the headers of others keep their format.
    imported = {} if record.external_id is None else {"external_id": record.external_id}
    return {"v": 1, **fields, "ts": format_time(record.ts), **imported}
