"""The manifest of a backup as it stands in the archive: JSON that a person can read."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from assistant.core.backups import MANIFEST_NAME, BackupEntry, BackupManifest
from assistant.core.errors import CorruptStore, NewerSchema
from assistant.store.encoding import format_time, parse_time

_FORMAT = 1
_MADE_AGAIN = "search.db is not in a backup: it is made again from the logs."


def manifest_bytes(manifest: BackupManifest) -> bytes:
    """Names that are no UTF-8 are escaped, as JSON can."""
    told: dict[str, Any] = {
        "format": _FORMAT,
        "program": manifest.program,
        "made_at": format_time(manifest.made_at),
        "kind": manifest.kind,
        "rewritten_at": format_time(manifest.rewritten_at) if manifest.rewritten_at else None,
        "schemas": {name: list(applied) for name, applied in manifest.schemas.items()},
        "logs": dict(manifest.logs),
        "left_out": dict(manifest.left_out),
        "note": _MADE_AGAIN,
        "files": [asdict(entry) for entry in manifest.files],
    }
    return json.dumps(told, indent=1).encode() + b"\n"


def manifest_from(data: bytes) -> BackupManifest:
    """Raises `CorruptStore` for what is no manifest, `NewerSchema` for one of a later form."""
    try:
        told = json.loads(data)
        if told["format"] > _FORMAT:
            raise NewerSchema("The backup was made by a newer version. Nothing was changed; install that version.")
        return BackupManifest(
            program=str(told["program"]),
            made_at=parse_time(told["made_at"]),
            kind="daily" if told["kind"] == "daily" else "manual",
            files=tuple(BackupEntry(str(one["path"]), int(one["bytes"]), str(one["sha256"])) for one in told["files"]),
            schemas={str(name): tuple(map(str, applied)) for name, applied in told["schemas"].items()},
            logs={str(name): int(length) for name, length in told["logs"].items()},
            left_out={str(name): str(why) for name, why in told["left_out"].items()},
            rewritten_at=parse_time(told["rewritten_at"]) if told["rewritten_at"] else None,
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptStore(f"{MANIFEST_NAME} of the backup cannot be read ({error}). Nothing was changed.") from error
