"""One record of the message log as one line of JSON.

What always holds: the fields are in a fixed order, compactly. Those before `salt` are the header, those after it
the body: what was said. `commit` is SHA-256 over the salt and the body as the line has it; `prev` is SHA-256 over the
header of the record before (GENESIS for the first). So the chain runs over headers alone, and blanking body and salt
in place leaves it provable, while the words cannot be guessed back from the commitment. With jq:

    header  jq -c 'del(.salt,.content,.name,.tool_calls,.media,.thinking)'
    body    jq -c '{content,name,tool_calls,media,thinking}'

Both come out byte for byte as hashed, since nothing is sorted or rewritten on the way.
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
    """What was said, as a line has it: all of a record that takes long to encode."""

    salt: str
    commit: str
    encoded: bytes  # the body object


def encode_body(said: Message | LogRecord, salt: str) -> RecordBody:
    body = dump_json({"content": said.content, **message_parts(said)}).encode()
    return RecordBody(salt, compute_commitment(salt, body), body)


def encode_record(record: LogRecord, seq: int, prev: str, body: RecordBody, start: int) -> tuple[LogRecord, bytes, str]:
    """(the record as it stands at byte `start` of its log, its line, its header's hash). `body` is the record's own."""
    header = dump_json(_header(record) | {"seq": seq, "commit": body.commit, "prev": prev}).encode()
    line = b"".join((header[:-1], SALT_KEY, body.salt.encode(), b'",', memoryview(body.encoded)[1:], b"\n"))
    # Once, with all of it: a record has many fields to copy.
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
    """(header without closing brace, salt, body object) of a line, as bytes of the line. Raises `ValueError`.

    The first `,"salt":"` is the key itself: within a JSON string a quote is escaped, so no value can contain it."""
    at = line.index(SALT_KEY)
    begin = at + len(SALT_KEY)
    after = begin + SALT_LENGTH
    if line[after : after + 2] != b'",' or not line.endswith(b"}\n"):
        raise ValueError("not a record")
    return line[:at], line[begin:after].decode("ascii"), b"{" + line[after + 2 : -1]


def decode_record(line: bytes, start: int) -> LogRecord:
    """The record of a line that begins at byte `start`. Raises `ValueError`, `KeyError`, `TypeError`."""
    raw = json.loads(line)
    return LogRecord(
        ts=parse_time(raw["ts"]),
        refs=tuple(raw["refs"]),
        content=raw["content"],
        commit=raw["commit"],
        prev=raw["prev"],
        salt=raw["salt"],
        # A line that was blanked may lack some of the body.
        **parts_from_json(raw),
        external_id=raw.get("external_id"),
        span=LogByteRange(start, start + len(line)),
        **{name: raw[name] for name in _PLAIN_HEADER_FIELDS},
    )


def record_to_json(record: LogRecord) -> dict[str, Any]:
    """What was said, by whom, when and where, without the proof of it; of what was forgotten, that there was
    something."""
    header = {name: value for name, value in _header(record).items() if name != "seq"}
    if record.salt.isspace():
        record = replace(record, content="", name=None, tool_calls=(), media=(), thinking=())
    return {**header, "content": record.content, **message_parts(record)}


def record_from_json(raw: Mapping[str, Any]) -> LogRecord:
    """A record to be logged, of what `record_to_json` made. Raises `ValueError`, `KeyError`, `TypeError`."""
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
    # Of imported messages alone: the headers of all others stay as they always were.
    imported = {} if record.external_id is None else {"external_id": record.external_id}
    return {"v": 1, **fields, "ts": format_time(record.ts), **imported}
